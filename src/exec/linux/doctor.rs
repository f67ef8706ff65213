//! What this machine offers, found by doing it: each probe carries out, in a process of its own, what a run would.
//!
//! Nothing is changed outside those processes.

use super::cgroup::{self, Lack};
use super::control::{Control, Failure, Report};
use super::native::{NAMESPACES, map_ids};
use super::{Probe, broker, capture, environment, kernel, landlock, mounts, network, proc, program};
use crate::backend::bubblewrap::Ports;
use crate::backend::limits::Limits;
use crate::host;
use nix::errno::Errno;
use nix::sys::signal::Signal;
use nix::sys::socket::MsgFlags;
use nix::unistd::Pid;
use std::fs;
use std::os::fd::AsFd;
use std::path::Path;

/// Tries everything. Call it before any thread exists.
pub fn probes() -> Vec<Probe> {
    vec![
        kernel_release(),
        namespaces(),
        mount_api(),
        fresh_proc(),
        filter(),
        landlock_abi(),
        notification(),
        nftables(),
        limits(),
        upstream(),
        bubblewrap(),
    ]
}

fn kernel_release() -> Probe {
    let release = read("/proc/sys/kernel/osrelease").unwrap_or_default();
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(|number| number.parse().unwrap_or(0u32));
    let version = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    let result = if version >= (5, 12) { Ok(release) } else { Err(release) };
    Probe::new("kernel", true, result, "the native engine needs Linux 5.12 or newer", "install a newer kernel")
}

fn namespaces() -> Probe {
    let result = inside(|| Ok(()));
    let setting = |path: &str, bad: &str| read(path).is_some_and(|value| value == bad);
    let mend = if setting("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1") {
        "sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"
    } else if setting("/proc/sys/kernel/unprivileged_userns_clone", "0") {
        "sudo sysctl -w kernel.unprivileged_userns_clone=1"
    } else if setting("/proc/sys/user/max_user_namespaces", "0") {
        "sudo sysctl -w user.max_user_namespaces=15000"
    } else {
        of_container("in a container: docker run --security-opt seccomp=unconfined --security-opt apparmor=unconfined")
    };
    let costs = "no command can be run: every sandbox is made of namespaces";
    Probe::new("namespaces", true, worked(result, "made and mapped without privilege"), costs, mend)
}

/// Whether `/` is a directory that somebody has gone down to, and no mount (user_namespaces(7): EPERM). A chroot to where
/// something is mounted cannot be told apart so.
fn in_chroot() -> bool {
    let is_root = |line: &str| line.split(' ').nth(4) == Some("/");
    read("/proc/self/mountinfo").is_some_and(|mounts| !mounts.lines().any(is_root))
}

/// What to do where a container's own walls are in the way.
fn of_container(mend: &'static str) -> &'static str {
    if in_chroot() { "the kernel makes no namespaces in a chroot: enter it by `systemd-nspawn -D DIR`" } else { mend }
}

fn mount_api() -> Probe {
    let result = inside(|| {
        let step = |act: &'static str| move |errno| Failure::setup(act, errno);
        let root = mounts::open_root().map_err(step("open `/`"))?;
        kernel::make_private(root.as_fd()).map_err(step("make mounts private"))?;
        let copy = kernel::copy_tree(root.as_fd(), c"", true).map_err(step("copy the mounts"))?;
        let flags = kernel::RDONLY | kernel::NOSUID | kernel::NODEV;
        kernel::restrict_mount(copy.as_fd(), flags, true).map_err(step("make mounts read-only, recursively"))?;
        kernel::new_filesystem(c"tmpfs", &[], &[], 0).map(drop).map_err(step("make a tmpfs"))
    });
    let mend =
        of_container("in a container: docker run --security-opt seccomp=unconfined --security-opt apparmor=unconfined");
    let costs = "no command can be run: files are protected by mounts";
    Probe::new("mounts", true, worked(result, "tmpfs and recursive attributes"), costs, mend)
}

fn fresh_proc() -> Probe {
    let result = inside(|| {
        let step = |act: &'static str| move |errno| Failure::setup(act, errno);
        let root = mounts::open_root().map_err(step("open `/`"))?;
        kernel::make_private(root.as_fd()).map_err(step("make mounts private"))?;
        proc::mount(root.as_fd()).map(drop)
    });
    let costs = "policies that give the command a `/proc`, as `std/system` does, cannot be run";
    let mend = of_container("in a container: docker run --security-opt systempaths=unconfined");
    Probe::new("proc", true, worked(result, "a fresh one can be mounted"), costs, mend)
}

fn filter() -> Probe {
    let result = match super::command::ARCHITECTURE {
        None => Err(format!("no filter is written for {}", std::env::consts::ARCH)),
        Some(_) => Ok(std::env::consts::ARCH.to_owned()),
    };
    Probe::new("seccomp", true, result, "no command can be run on this architecture", "use x86_64 or aarch64")
}

fn landlock_abi() -> Probe {
    let result = match kernel::landlock_abi() {
        Ok(abi) if abi >= landlock::FLOOR => Ok(format!("ABI {abi}")),
        Ok(abi) => Err(format!("ABI {abi}")),
        Err(Errno::EOPNOTSUPP) => Err("built in, but switched off at boot".to_owned()),
        Err(errno) => Err(errno.desc().to_owned()),
    };
    let costs = "no command can be run without `--nest`: FIFOs and descriptors of the host would be writable";
    let mend = "use Linux 5.19 or newer, booted with `lsm=landlock,…` (see /sys/kernel/security/lsm)";
    Probe::new("landlock", true, result, costs, mend)
}

fn notification() -> Probe {
    let result = inside(|| {
        broker::may_look().map_err(|errno| Failure::setup("look into other processes", errno))?;
        kernel::try_notification().map_err(|errno| Failure::setup("be notified", errno))
    });
    let costs = "unix sockets are closed to the command, its own servers' too, and what it is refused of files is not told; with a \
                 `socket` rule, or rules over names that are not there yet, it cannot be run";
    Probe::new(
        "notification",
        false,
        worked(result, "calls can be performed"),
        costs,
        of_container(
            "use Linux 5.19 or newer; in a container: docker run --cap-add SYS_PTRACE; not kernel.yama.ptrace_scope=3",
        ),
    )
}

fn nftables() -> Probe {
    let result = inside(|| {
        network::set_up()?;
        let doors = capture::open(&Ports::default(), true)?;
        doors.missing.map_or(Ok(()), |missing| Err(Failure::setup("redirect connections", missing.errno)))
    });
    let costs =
        "programs that ignore the proxy variables reach the ports that a policy names, if these are few, and no others";
    Probe::new(
        "nftables",
        false,
        worked(result, "connections are redirected, in a network of one's own"),
        costs,
        "sudo modprobe nf_tables",
    )
}

/// Holds a process by limits that it does not reach.
fn limits() -> Probe {
    let held = || {
        let lack = |errno: Errno| Lack::new(errno.desc());
        let (held, keeper) = (Waiting::start().map_err(lack)?, Waiting::start().map_err(lack)?);
        let limits = Limits { memory: Some(64 << 20), processes: Some(64), cpu: Some(60), ..Limits::default() };
        let mounts = host::real::mounts().map_err(|error| Lack::new(error.to_string()))?;
        cgroup::hold(held.0, keeper.0, &limits, &mounts, &[]).map(|group| group.says())
    };
    let (result, mend) = match held() {
        Ok(says) => (Ok(format!("held by {says}")), ""),
        Err(lack) => (Err(lack.to_string()), lack.mend),
    };
    let costs = "`limit memory`, `limit processes` and `limit cpu` are held by a look at the processes a few times a second, and not by the \
                 kernel: what lies between two looks is not seen";
    Probe::new("limits", false, result, costs, mend)
}

/// A process that does nothing until this is dropped.
struct Waiting(Pid);

impl Waiting {
    fn start() -> Result<Waiting, Errno> {
        let supervisor = nix::unistd::getpid();
        if let Some(process) = kernel::fork()? {
            return Ok(Waiting(process));
        }
        let _ = nix::sys::prctl::set_pdeathsig(Signal::SIGKILL);
        while nix::unistd::getppid() == supervisor {
            nix::unistd::pause();
        }
        kernel::exit(0)
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let _ = nix::sys::signal::kill(self.0, Signal::SIGKILL);
        let _ = nix::sys::wait::waitpid(self.0, None);
    }
}

fn upstream() -> Probe {
    let result = match environment::upstream() {
        Ok(None) => Ok("connections go straight to their hosts: no variable names a proxy".to_owned()),
        Ok(Some(upstream)) => Ok(upstream.says()),
        Err(error) => Err(error.to_string()),
    };
    let costs = "policies that allow connections cannot be run";
    Probe::new("proxy", false, result, costs, "mend the variable, or unset it where there is no such proxy")
}

fn bubblewrap() -> Probe {
    let result = match program::program("bwrap", std::env::var_os("PATH")) {
        None => Err("not found on PATH".to_owned()),
        Some(program) => {
            match std::process::Command::new(&program).arg("--version").stdin(std::process::Stdio::null()).output() {
                Ok(output) if output.status.success() => {
                    Ok(format!("{} at {}", String::from_utf8_lossy(&output.stdout).trim(), program.display()))
                }
                Ok(output) => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
                Err(error) => Err(error.to_string()),
            }
        }
    };
    let mend = "sudo apt-get install bubblewrap (or dnf, pacman -S)";
    Probe::new("bubblewrap", false, result, "`--engine bwrap` cannot be used", mend)
}

/// Does something in namespaces like a sandbox's, as a process of its own.
fn inside(act: impl FnOnce() -> Result<(), Failure>) -> Result<(), String> {
    let told = |errno: Errno| errno.desc().to_owned();
    let (ours, theirs) = Control::pair().map_err(told)?;
    let (uid, gid) = (nix::unistd::geteuid().as_raw(), nix::unistd::getegid().as_raw());
    let cloned =
        kernel::clone(NAMESPACES.unsigned_abs().into()).map_err(|errno| format!("cannot clone: {}", errno.desc()))?;
    match cloned {
        kernel::Cloned::Child => {
            let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                let report = match map_ids(uid, gid).and_then(|()| act()) {
                    Ok(()) => Report::Ready(Vec::new(), None),
                    Err(failure) => Report::Failed(failure),
                };
                theirs.report(&report)
            }));
            kernel::exit(i32::from(!matches!(result, Ok(Ok(())))))
        }
        kernel::Cloned::Parent(pid, _) => {
            drop(theirs);
            let report = ours.receive(MsgFlags::empty());
            let _ = nix::sys::wait::waitpid(pid, None);
            match report {
                Ok(Some(Report::Ready(..))) => Ok(()),
                Ok(Some(Report::Failed(failure))) => {
                    Err(format!("cannot {}: {}", failure.act, Errno::from_raw(failure.errno).desc()))
                }
                _ => Err("the process that tried was killed".to_owned()),
            }
        }
    }
}

fn worked(result: Result<(), String>, how: &str) -> Result<String, String> {
    result.map(|()| how.to_owned())
}

fn read(path: impl AsRef<Path>) -> Option<String> {
    fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}
