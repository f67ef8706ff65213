//! Names that are made, taken away, and moved.

use super::target::{Named, Node, Target, find};
use super::{Acting, Done, LONGEST, node, syscall};
use crate::backend::bubblewrap::seccomp::{FileCall, Last};
use crate::sets::path::AbsPath;
use crate::vocabulary::Verb;
use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sys::stat::{Mode, SFlag, fstat, mkdirat};
use nix::unistd::{LinkatFlags, UnlinkatFlags, linkat, symlinkat, unlinkat};
use std::os::fd::{AsFd, AsRawFd};

impl Acting<'_> {
    fn named(&self, way: super::Way, instead: Errno) -> Result<Named, Errno> {
        match find(&self.task, way, false, self.broker.proc.as_fd())? {
            Target::Named(named) => {
                if node::is_of_processes(&named.directory)? {
                    return Err(Errno::EACCES);
                }
                Ok(named)
            }
            Target::Node(_) => Err(instead),
        }
    }

    /// `mkdir`, `mknod`, `symlink`.
    pub(super) fn make(&self, file_call: &FileCall) -> Done {
        let is_link = file_call.name.starts_with("symlink");
        let is_directory = file_call.name.starts_with("mkdir");
        let (way, umask, target) = self.read(|| {
            let target = if is_link { self.task.string(self.argument(0), LONGEST)? } else { Vec::new() };
            let umask = if is_link { 0 } else { self.task.umask()? };
            Ok((self.path(file_call.first)?, umask, target))
        })?;
        let after = file_call.first.path + 1;
        self.look_ahead(&way, false)?;
        let acting = self.acting();
        let named = self.named(way, Errno::EEXIST)?;
        if node::look(&named.directory, &named.last)?.is_some() {
            return Err(Errno::EEXIST);
        }
        if named.slash && !is_directory {
            return Err(Errno::ENOENT);
        }
        if is_link && target.is_empty() {
            return Err(Errno::ENOENT);
        }
        self.may_write(&named.name)?;
        let given = u32::try_from(self.argument(after) & 0xffff_ffff).unwrap_or_default();
        let mode = given & 0o7777 & !umask;
        let _acting = self.unless_far(acting, &named)?;
        self.act(|| {
            if is_link {
                symlinkat(target.as_slice(), &named.directory, named.last.as_c_str())
            } else if is_directory {
                mkdirat(&named.directory, named.last.as_c_str(), Mode::from_bits_truncate(mode))
            } else {
                let kind = given & SFlag::S_IFMT.bits();
                syscall::mknod(&named.directory, &named.last, kind | mode, self.argument(after + 1))
            }
        })
    }

    /// `unlink`, `rmdir`, `unlinkat`.
    pub(super) fn remove(&self, file_call: &FileCall) -> Done {
        let flags = if file_call.name == "unlinkat" { self.int(2) } else { 0 };
        if flags & !libc::AT_REMOVEDIR != 0 {
            return Err(Errno::EINVAL);
        }
        let directory = file_call.name == "rmdir" || flags == libc::AT_REMOVEDIR;
        let way = self.read(|| self.path(file_call.first))?;
        self.look_ahead(&way, false)?;
        let acting = self.acting();
        let named = self.named(way, if directory { Errno::EINVAL } else { Errno::EISDIR })?;
        let seen = node::look(&named.directory, &named.last)?.ok_or(Errno::ENOENT)?;
        if named.slash && !node::is_directory(&seen) {
            return Err(Errno::ENOTDIR);
        }
        if directory && !self.rules.may_write(&named.name) {
            drop(acting);
            // The policy is not what keeps a directory with something in it.
            let place = node::hold(&named.directory, &named.last)?;
            let is_empty = node::is_empty(&place, self.broker.proc.as_fd())?;
            return Err(if is_empty { self.refuse(Verb::Write, &named.name) } else { Errno::ENOTEMPTY });
        }
        self.may_write(&named.name)?;
        let _acting = self.unless_far(acting, &named)?;
        let how = if directory { UnlinkatFlags::RemoveDir } else { UnlinkatFlags::NoRemoveDir };
        self.act(|| unlinkat(&named.directory, named.last.as_c_str(), how))
    }

    /// `rename` and its like. What a directory holds comes under other names: only where the rules say the same of them.
    pub(super) fn rename(&self, file_call: &FileCall) -> Done {
        let flags = if file_call.name == "renameat2" { self.int(4).cast_unsigned() } else { 0 };
        if flags & !(libc::RENAME_NOREPLACE | libc::RENAME_EXCHANGE) != 0 {
            return Err(Errno::EINVAL);
        }
        let new = file_call.second.ok_or(Errno::ENOSYS)?;
        let (from, to) = self.read(|| Ok((self.path(file_call.first)?, self.path(new)?)))?;
        self.look_ahead(&from, false)?;
        self.look_ahead(&to, false)?;
        let _acting = self.acting();
        let (from, to) = (self.named(from, Errno::EBUSY)?, self.named(to, Errno::EBUSY)?);
        let seen = node::look(&from.directory, &from.last)?.ok_or(Errno::ENOENT)?;
        let there = node::look(&to.directory, &to.last)?;
        let exchanges = flags & libc::RENAME_EXCHANGE != 0;
        match &there {
            Some(_) if flags & libc::RENAME_NOREPLACE != 0 => return Err(Errno::EEXIST),
            None if exchanges => return Err(Errno::ENOENT),
            _ => (),
        }
        if (from.slash || to.slash) && !node::is_directory(&seen) {
            return Err(Errno::ENOTDIR);
        }
        self.may_move(&from.name, &to.name, node::is_directory(&seen))?;
        if exchanges {
            self.may_move(&to.name, &from.name, there.as_ref().is_some_and(node::is_directory))?;
        }
        self.act(|| syscall::rename(&from.directory, &from.last, &to.directory, &to.last, flags))
    }

    fn may_move(&self, from: &AbsPath, to: &AbsPath, directory: bool) -> Result<(), Errno> {
        self.may_write(from)?;
        self.may_write(to)?;
        if directory {
            // As between two disks, so that tools copy, and each name is decided.
            return if self.rules.says_the_same(from, to) { Ok(()) } else { Err(Errno::EXDEV) };
        }
        self.widens_nothing(from, to)
    }

    fn widens_nothing(&self, from: &AbsPath, to: &AbsPath) -> Result<(), Errno> {
        match self.rules.widened(from, to) {
            None => Ok(()),
            Some(verb) => Err(self.refuse(verb, from)),
        }
    }

    /// `link` and its like.
    pub(super) fn link(&self, file_call: &FileCall) -> Done {
        let flags = if file_call.name == "linkat" { self.int(4) } else { 0 };
        if flags & !(libc::AT_SYMLINK_FOLLOW | libc::AT_EMPTY_PATH) != 0 {
            return Err(Errno::EINVAL);
        }
        let new = file_call.second.ok_or(Errno::ENOSYS)?;
        let (old, descriptor, to) = self.read(|| {
            let to = self.path(new)?;
            match self.path(file_call.first) {
                Err(Errno::ENOENT) if flags & libc::AT_EMPTY_PATH != 0 => Ok((None, Some(self.int(0)), to)),
                way => Ok((Some(way?), None, to)),
            }
        })?;
        let follow = matches!(file_call.first.last, Last::FollowedBy(_)) && flags & libc::AT_SYMLINK_FOLLOW != 0;
        if let Some(old) = &old {
            self.look_ahead(old, follow)?;
        }
        self.look_ahead(&to, false)?;
        let _acting = self.acting();
        let proc = self.broker.proc.as_fd();
        let source = match (old, descriptor) {
            (Some(way), _) => find(&self.task, way, follow, proc)?,
            (None, Some(number)) if number >= 0 => {
                Target::Node(super::target::of_descriptor(&self.task, number, proc)?)
            }
            _ => return Err(Errno::ENOENT),
        };
        let (place, name) = match source {
            Target::Named(named) => {
                if node::is_of_processes(&named.directory)? {
                    return Err(Errno::EXDEV);
                }
                let place = node::hold(&named.directory, &named.last)?;
                if named.slash && !node::is_directory(&fstat(&place)?) {
                    return Err(Errno::ENOTDIR);
                }
                (place, Some(named.name))
            }
            // Only what was opened: who holds a place alone has not been decided about.
            Target::Node(Node { place, name, opened: Some(opened) }) if !opened.contains(OFlag::O_PATH) => {
                (place, name)
            }
            Target::Node(Node { place, name: Some(name), .. }) => (place, Some(name)),
            Target::Node(_) => return Err(Errno::EACCES),
        };
        if node::is_directory(&fstat(&place)?) {
            return Err(Errno::EPERM);
        }
        let to = self.named(to, Errno::EEXIST)?;
        if node::look(&to.directory, &to.last)?.is_some() {
            return Err(Errno::EEXIST);
        }
        match &name {
            Some(name) => {
                if !self.rules.may_read(name) {
                    return Err(self.refuse(Verb::Read, name));
                }
                self.may_write(name)?;
                self.may_write(&to.name)?;
                self.widens_nothing(name, &to.name)?;
            }
            // Made without a name (O_TMPFILE), which the kernel lets have one; what has lost its name it does not.
            None if fstat(&place)?.st_nlink == 0 => self.may_write(&to.name)?,
            None => return Err(Errno::EACCES),
        }
        // By its name in our own `/proc`: what is held is what is linked.
        let own = format!("self/fd/{}", place.as_raw_fd());
        self.act(|| linkat(proc, own.as_str(), &to.directory, to.last.as_c_str(), LinkatFlags::AT_SYMLINK_FOLLOW))
    }
}
