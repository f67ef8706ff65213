//! `bind`: gives a socket its address, of which a path is a new file.

use super::super::place::Way;
use super::super::socket;
use super::target::{Target, find};
use super::{Acting, Done, node, syscall};
use nix::errno::Errno;
use nix::sys::stat::{FchmodatFlags, Mode, fchmodat};
use std::os::fd::{AsFd, AsRawFd};

/// The length of `struct sockaddr_storage`, and of `struct sockaddr_un` and where its path begins.
const LONGEST: i32 = 128;
const ADDRESS: usize = 110;
const PATH: usize = 2;

impl Acting<'_> {
    pub(super) fn bind(&self) -> Done {
        let length = self.int(2);
        if !(0..=LONGEST).contains(&length) {
            return Err(Errno::EINVAL);
        }
        let length = usize::try_from(length).map_err(|_| Errno::EINVAL)?;
        let (own, address, umask) = self.read(|| {
            let own = self.task.descriptor(self.int(0))?;
            Ok((own, self.task.read(self.argument(1), length)?, self.task.umask()?))
        })?;
        let path = address.get(PATH..).filter(|path| !path.is_empty() && path[0] != 0);
        let is_path = socket::domain(own.as_fd())? == libc::AF_UNIX && address.starts_with(&socket::UNIX);
        let Some(path) = path.filter(|_| is_path) else {
            // No file: what it may be, is decided elsewhere.
            return self.act(|| syscall::bind(&own, &address));
        };
        if address.len() > ADDRESS {
            return Err(Errno::EINVAL);
        }
        let path = path.split(|byte| *byte == 0).next().unwrap_or_default();
        let way = self.read(|| Way::new(&self.task, None, path))?;
        let _acting = self.acting();
        let Target::Named(named) = find(&self.task, way, false, self.broker.proc.as_fd())? else {
            return Err(Errno::EADDRINUSE);
        };
        if node::look(&named.directory, &named.last)?.is_some() {
            return Err(Errno::EADDRINUSE);
        }
        self.may_write(&named.name)?;
        // Where the kernel would find it, if the command had named it so; else by the directory that is held.
        let by_name = named.name.as_bytes().filter(|name| name.len() < ADDRESS - PATH);
        let held = || [format!("self/fd/{}/", named.directory.as_raw_fd()).as_bytes(), named.last.as_bytes()].concat();
        let place = by_name.unwrap_or_else(held);
        if place.len() >= ADDRESS - PATH {
            return Err(Errno::EINVAL);
        }
        let address = [&socket::UNIX[..], &place, b"\0"].concat();
        self.act(|| {
            syscall::bind(&own, &address)?;
            let mode = Mode::from_bits_truncate(0o777 & !umask);
            fchmodat(&named.directory, named.last.as_c_str(), mode, FchmodatFlags::FollowSymlink)
        })
    }
}
