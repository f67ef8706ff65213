//! What every plan needs and none changes, mounted before there is a plan: the nodes of masks, a covered `/proc`, a `/dev`.
//!
//! It stands in a tmpfs that is this process's root meanwhile, with the host's tree beside it, so that both are let go of
//! together once the sandbox's own root stands. Knows nothing of any policy.

use super::{Masks, Shape, make, memory, open, open_root};
use crate::backend::bubblewrap::DEVICES;
use crate::exec::linux::control::Failure;
use crate::exec::linux::defence::Defence;
use crate::exec::linux::kernel::{self, NODEV, NOEXEC, NOSUID};
use crate::exec::linux::numbers::Numbers;
use crate::exec::linux::{devices, proc};
use nix::errno::Errno;
use std::ffi::CStr;
use std::os::fd::{AsFd, OwnedFd};

pub struct Stage {
    /// The root of the host's tree.
    pub host: OwnedFd,
    /// Where the sandbox's root goes: on top of the stage's.
    pub place: OwnedFd,
    pub masks: Masks,
    /// Mounts that a plan may not want: what they fail with is said only if it does.
    pub proc: Result<OwnedFd, Failure>,
    pub devices: Result<OwnedFd, Failure>,
    pub numbers: Option<Numbers>,
}

impl Stage {
    /// The process has a mount namespace of its own, from which nothing gets back to the host's.
    pub fn new(missing: &[Defence]) -> Result<Stage, Failure> {
        const HOST: &CStr = c"host";
        let failed = |errno| Failure::setup("make a place to prepare the sandbox in", errno);
        let host = open_root().map_err(|errno| Failure::setup("open `/`", errno))?;
        // Changes nothing: asks for the newest call of those that follow.
        kernel::restrict_mount(host.as_fd(), 0, false).map_err(|errno| match errno {
            Errno::ENOSYS => Failure::setup("set mount attributes (Linux 5.12 or newer is needed)", errno),
            errno => failed(errno),
        })?;
        let place = memory(c"0700", NOSUID | NODEV | NOEXEC, None).map_err(failed)?;
        for name in [HOST, c"masks", c"proc", c"dev"] {
            make(&place, name, Shape::Directory).map_err(failed)?;
        }
        kernel::attach(place.as_fd(), host.as_fd()).map_err(failed)?;
        nix::unistd::fchdir(&place).map_err(failed)?;
        kernel::pivot_root_here(HOST).map_err(failed)?;
        let inside = |name: &[u8]| open(place.as_fd(), name).map_err(failed);
        let mut masks = Masks::new(inside(b"masks")?.as_fd())?;
        let mut numbers = None;
        let proc = inside(b"proc").and_then(|place| {
            let mount = proc::mount(place.as_fd())?;
            numbers = Numbers::open(mount.as_fd());
            if !missing.contains(&Defence::ProcCovers) {
                proc::cover(mount.as_fd(), &mut masks)?;
            }
            Ok(mount)
        });
        let devices = inside(b"dev").and_then(|place| devices::mount(host.as_fd(), &DEVICES, &place));
        Ok(Stage { host, place, masks, proc, devices, numbers })
    }
}
