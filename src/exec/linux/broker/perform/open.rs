//! `open` and its like, for writing.

use super::super::files::Flags;
use super::super::notification::Answer;
use super::target::{Named, Node, Target, find};
use super::{Acting, Done, node};
use crate::backend::bubblewrap::seccomp::{FileCall, Watch};
use crate::exec::linux::defence::Defence;
use crate::sets::path::AbsPath;
use crate::vocabulary::Verb;
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
        self.look_ahead(&way, flags.follows())?;
        let acting = self.acting();
        match find(&self.task, way, flags.follows(), self.broker.proc.as_fd())? {
            Target::Node(node) => {
                if wanted.has(libc::O_CREAT | libc::O_EXCL) {
                    return Err(Errno::EEXIST);
                }
                if node::is_of_processes(&node.place)? {
                    self.own_process(node.name.as_ref().ok_or(Errno::EACCES)?, flags)?;
                }
                self.decide_node(&node, flags)?;
                drop(acting);
                self.open_held(&node.place, &wanted, false)
            }
            Target::Named(named) if named.name == terminal() => {
                drop(acting);
                self.decide(&named.name, flags)?;
                self.hand_over(|| self.open_terminal(wanted.existing(false)), wanted.has(libc::O_CLOEXEC))
            }
            Target::Named(named) => {
                let there = node::look(&named.directory, &named.last)?;
                match there {
                    None if !wanted.has(libc::O_CREAT) => Err(Errno::ENOENT),
                    None if named.slash => Err(Errno::EISDIR),
                    None => {
                        self.may_write(&named.name)?;
                        let _acting = self.unless_far(acting, &named)?;
                        self.make_file(&named, &wanted)
                    }
                    Some(_) if wanted.has(libc::O_CREAT | libc::O_EXCL) => Err(Errno::EEXIST),
                    Some(_) => {
                        let place = node::hold(&named.directory, &named.last)?;
                        if node::kind(&fstat(&place)?) == SFlag::S_IFLNK {
                            return Err(Errno::ELOOP);
                        }
                        if node::is_of_processes(&place)? {
                            self.own_process(&named.name, flags)?;
                        }
                        self.decide(&named.name, flags)?;
                        drop(acting);
                        self.open_held(&place, &wanted, named.slash)
                    }
                }
            }
        }
    }

    /// Whether a name decides of reading: else mounts let what is there be read, or do not.
    fn decides_reading(&self, flags: Flags) -> bool {
        self.broker.performed == Watch::Opens && flags.reads()
    }

    /// Of what is there already.
    fn decide(&self, name: &AbsPath, flags: Flags) -> Result<(), Errno> {
        if flags.changes() {
            self.may_write(name)?;
        }
        if self.decides_reading(flags) && !self.rules.may_read(name) {
            return Err(self.refuse(Verb::Read, name));
        }
        Ok(())
    }

    /// Who has a descriptor that writes, or reads, may open what it is for the same, wherever that is; of any other its name
    /// decides.
    fn decide_node(&self, node: &Node, flags: Flags) -> Result<(), Errno> {
        let opened =
            node.opened.filter(|opened| !opened.contains(OFlag::O_PATH)).map(|opened| opened & OFlag::O_ACCMODE);
        let has = |access: OFlag| opened.is_some_and(|opened| opened == access || opened == OFlag::O_RDWR);
        let (writes, reads) = (flags.changes(), self.decides_reading(flags));
        if (!writes || has(OFlag::O_WRONLY)) && (!reads || has(OFlag::O_RDONLY)) {
            return Ok(());
        }
        match &node.name {
            Some(name) => self.decide(name, flags),
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

    /// What is in a procfs is the command's own, or not for it to change: this process can look into itself. What another process's
    /// may be read, the kernel says; of this process's own, what is there for everybody.
    fn own_process(&self, name: &AbsPath, flags: Flags) -> Result<(), Errno> {
        const FOR_ALL: [&[u8]; 12] = [
            b"cgroup",
            b"cmdline",
            b"comm",
            b"limits",
            b"mountinfo",
            b"mounts",
            b"oom_score",
            b"oom_score_adj",
            b"schedstat",
            b"stat",
            b"statm",
            b"status",
        ];
        let number = name.segments.get(1);
        let own = number.is_some_and(|number| self.task.is_called(number));
        let first = name.segments.first().is_some_and(|first| &**first == b"proc");
        let is_served = || {
            if flags.writes() {
                return false;
            }
            let Some(number) = number else { return true };
            let mut below = name.segments.iter().skip(2);
            let is_for_all = name.name().is_some_and(|last| FOR_ALL.contains(&last));
            !self.task.is_of(number, nix::unistd::getpid())
                || is_for_all
                || below.next().is_none_or(|next| &**next == b"net")
        };
        let may = first && (own && name.segments.len() > 2 || is_served());
        if may || !self.broker.has(&Defence::OwnProcess) { Ok(()) } else { Err(Errno::EACCES) }
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
