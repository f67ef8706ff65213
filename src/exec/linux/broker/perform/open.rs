//! `open` and its like, for writing.

use super::super::files::Flags;
use super::super::notification::Answer;
use super::target::{Named, Node, Target, find};
use super::{Acting, Done, node};
use crate::backend::bubblewrap::seccomp::FileCall;
use crate::exec::linux::defence::Defence;
use crate::sets::path::AbsPath;
use nix::errno::Errno;
use nix::fcntl::{OFlag, openat};
use nix::sys::stat::{Mode, SFlag, fstat};
use std::os::fd::{AsFd, OwnedFd};

/// What the command wants of an open.
struct Wanted {
    flags: Flags,
    /// Of what is made, less the umask.
    mode: Mode,
}

impl Wanted {
    fn has(&self, flag: i32) -> bool {
        self.flags.has(flag)
    }

    /// As it is opened where it is there already. No terminal becomes this process's.
    fn existing(&self, slash: bool) -> OFlag {
        // Of a file without a name O_EXCL says that it never gets one.
        let exclusive = if self.flags.is_temporary() { 0 } else { libc::O_EXCL };
        let not_again = libc::O_CREAT | exclusive | libc::O_NOFOLLOW;
        let directory = if slash { OFlag::O_DIRECTORY } else { OFlag::empty() };
        OFlag::from_bits_retain(self.flags.0 & !not_again) | OFlag::O_NOCTTY | OFlag::O_CLOEXEC | directory
    }
}

impl Acting<'_> {
    pub(super) fn open(&self, file_call: &FileCall, argument: Option<u8>) -> Done {
        let flags = Flags::of(self.call, argument);
        let (way, umask) = self.read(|| {
            let umask = if flags.has(libc::O_CREAT) || flags.is_temporary() { self.task.umask()? } else { 0 };
            Ok((self.path(file_call.first)?, umask))
        })?;
        // The last argument of each of them that makes something.
        let mode = match argument {
            Some(at) => self.argument(at + 1),
            None => self.argument(1),
        };
        let mode = u32::try_from(mode & 0o7777).unwrap_or_default();
        let wanted = Wanted { flags, mode: Mode::from_bits_truncate(mode & !umask) };
        if wanted.has(libc::O_CREAT | libc::O_DIRECTORY) && !wanted.flags.is_temporary() {
            return Err(Errno::EINVAL);
        }
        let acting = self.acting();
        match find(&self.task, way, flags.follows(), self.broker.proc.as_fd())? {
            Target::Node(node) => {
                if wanted.has(libc::O_CREAT | libc::O_EXCL) {
                    return Err(Errno::EEXIST);
                }
                if node::is_of_processes(&node.place)? {
                    self.own_process(node.name.as_ref().ok_or(Errno::EACCES)?)?;
                }
                if flags.changes() {
                    self.decide_node(&node)?;
                }
                drop(acting);
                self.open_held(&node.place, &wanted, false)
            }
            Target::Named(named) if named.name == terminal() => {
                drop(acting);
                let flags = wanted.existing(false);
                self.may_write(&named.name)?;
                self.hand_over(|| self.open_terminal(flags), wanted.has(libc::O_CLOEXEC))
            }
            Target::Named(named) => {
                let there = node::look(&named.directory, &named.last)?;
                match there {
                    None if !wanted.has(libc::O_CREAT) => Err(Errno::ENOENT),
                    None if named.slash => Err(Errno::EISDIR),
                    None => {
                        self.may_write(&named.name)?;
                        self.make_file(&named, &wanted)
                    }
                    Some(_) if wanted.has(libc::O_CREAT | libc::O_EXCL) => Err(Errno::EEXIST),
                    Some(_) => {
                        let place = node::hold(&named.directory, &named.last)?;
                        if node::kind(&fstat(&place)?) == SFlag::S_IFLNK {
                            return Err(Errno::ELOOP);
                        }
                        if node::is_of_processes(&place)? {
                            self.own_process(&named.name)?;
                        }
                        // To read what is there, mounts let or do not.
                        if flags.changes() {
                            self.may_write(&named.name)?;
                        }
                        drop(acting);
                        self.open_held(&place, &wanted, named.slash)
                    }
                }
            }
        }
    }

    /// Who has a descriptor that writes may open what it is for writing, wherever that is; of any other its name decides.
    fn decide_node(&self, node: &Node) -> Result<(), Errno> {
        let access =
            node.opened.filter(|opened| !opened.contains(OFlag::O_PATH)).map(|opened| opened & OFlag::O_ACCMODE);
        if matches!(access, Some(OFlag::O_WRONLY | OFlag::O_RDWR)) {
            return Ok(());
        }
        match &node.name {
            Some(name) => self.may_write(name),
            // A pipe has two ends, and no name.
            None if node::kind(&fstat(&node.place)?) == SFlag::S_IFIFO && node.opened.is_some() => Ok(()),
            None => Err(Errno::EACCES),
        }
    }

    /// Makes a file under a name that was decided.
    fn make_file(&self, named: &Named, wanted: &Wanted) -> Done {
        self.linger();
        let flags = OFlag::from_bits_retain(wanted.flags.0) | OFlag::O_NOFOLLOW | OFlag::O_NOCTTY | OFlag::O_CLOEXEC;
        let open = || openat(&named.directory, named.last.as_c_str(), flags, wanted.mode);
        self.hand_over(open, wanted.has(libc::O_CLOEXEC))
    }

    /// Opens what is held, for as long as that takes.
    fn open_held(&self, place: &OwnedFd, wanted: &Wanted, slash: bool) -> Done {
        self.linger();
        let (flags, cloexec) = (wanted.existing(slash), wanted.has(libc::O_CLOEXEC));
        let proc = self.broker.proc.as_fd();
        if wanted.flags.is_temporary() {
            return self.hand_over(|| openat(place, c".", flags, wanted.mode), cloexec);
        }
        if node::kind(&fstat(place)?) == SFlag::S_IFREG {
            return self.hand_over(|| node::open(place, flags, proc), cloexec);
        }
        if !self.broker.has(&Defence::Performed) {
            return Ok(Answer::Continue);
        }
        match self.broker.take_long(self.call, || node::open(place, flags, proc)) {
            None => Ok(Answer::Nobody),
            Some(opened) => self.hand_over(|| opened, cloexec),
        }
    }

    /// Gives the command what was opened.
    fn hand_over(&self, open: impl FnOnce() -> Result<OwnedFd, Errno>, cloexec: bool) -> Done {
        if !self.broker.listener.waits(self.call.id) {
            return Ok(Answer::Nobody);
        }
        if !self.broker.has(&Defence::Performed) {
            return Ok(Answer::Continue);
        }
        self.broker.listener.hand_over(self.call.id, &open()?, cloexec)
    }

    /// What is in a procfs is the command's own, or not for it: this process can look into itself.
    fn own_process(&self, name: &AbsPath) -> Result<(), Errno> {
        let own = name.segments.get(1).is_some_and(|number| self.task.is_called(number));
        let first = name.segments.first().is_some_and(|first| &**first == b"proc");
        if !self.broker.has(&Defence::OwnProcess) || own && first && name.segments.len() > 2 {
            Ok(())
        } else {
            Err(Errno::EACCES)
        }
    }

    /// The command's own terminal: this process has that of whoever started `srt`.
    fn open_terminal(&self, flags: OFlag) -> Result<OwnedFd, Errno> {
        let (session, terminal) = self.task.session()?;
        if session == 0 {
            // Of outside, as this process's is.
            return openat(&self.broker.proc, "/dev/tty", flags, Mode::empty());
        }
        let (major, minor) = (nix::sys::stat::major(terminal), nix::sys::stat::minor(terminal));
        // Unix98 pseudo-terminals (the kernel's list of devices): those of our own devpts.
        if !(136..=143).contains(&major) {
            return Err(Errno::ENXIO);
        }
        let number = (major - 136) * 256 + minor;
        let opened = openat(&self.broker.proc, format!("/dev/pts/{number}").as_str(), flags, Mode::empty())?;
        if fstat(&opened)?.st_rdev == terminal { Ok(opened) } else { Err(Errno::ENXIO) }
    }
}

fn terminal() -> AbsPath {
    AbsPath::root().join("dev").join("tty")
}
