//! What the supervisor, pid 1 and the process that becomes the command say to each other, over `SOCK_SEQPACKET` pairs: a
//! message a packet, in order; a longer text as its length and as many packets as it takes.
//!
//! ```text
//! pid 1 → supervisor     reports, questions
//! supervisor → pid 1     the plan; then words: signals to pass on, answers, wishes for sockets, rules
//! pid 1 → the command    turns;  the command → pid 1: who listens to its filter
//! ```
//!
//! pid 1 is ours, but from the exec on it shares a namespace with the command: nothing received is trusted beyond
//! its own few values.

use super::tree::Breach;
use crate::vocabulary::{LimitKind, Verb};
use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, ControlMessage, ControlMessageOwned, MsgFlags, SockFlag, SockType, recvmsg, sendmsg, socketpair,
};
use std::io::{IoSlice, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};

/// What could not be done inside, on its way out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    pub stage: Stage,
    /// What was tried, after "cannot"; the path alone for `Changed`.
    pub act: String,
    pub errno: i32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    Setup,
    Start,
    Changed,
}

impl Failure {
    pub fn setup(act: impl Into<String>, errno: Errno) -> Failure {
        Failure { stage: Stage::Setup, act: act.into(), errno: errno as i32 }
    }

    pub fn changed(path: &[u8]) -> Failure {
        Failure { stage: Stage::Changed, act: String::from_utf8_lossy(path).into_owned(), errno: Errno::ESTALE as i32 }
    }
}

/// That nothing is redirected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    pub errno: Errno,
    /// Ports that should be listened on instead, and are not.
    pub unheard: Vec<u16>,
    /// Nothing is listened on but the proxy's own port: there are too many that the policy names.
    pub alone: bool,
}

/// From inside.
#[derive(Debug)]
pub enum Report {
    /// The sandbox stands; the command is about to start. With the sockets that were made inside, and what is left where
    /// connections can't be redirected to them.
    Ready(Vec<OwnedFd>, Option<Missing>),
    Failed(Failure),
    Exited(u8),
    Signaled(i32),
    /// The command was stopped, by this signal.
    Stopped(i32),
    /// A socket of the sandbox's own network, that was asked for, or the error number of why there is none.
    Socket(Result<OwnedFd, i32>),
    /// Nobody listens to the filter, since this failed, so that unix sockets are closed.
    Unheard(i32),
    Asked(Question),
    /// What the command asked for was refused because it could not be looked at.
    Unseen(String),
    /// The rules about files are needed now.
    WantsRules,
    /// The command tries what they refuse.
    Tried(Attempt),
    /// So many attempts were not reported, as nobody listened in time.
    Untold(u64),
    /// A limit was passed, and everything is ended.
    Passed(Breach),
}

/// Something that the command does to a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// `read` or `write`.
    pub verb: Verb,
    /// Its process, as it is numbered inside, and what that calls itself.
    pub process: i32,
    pub name: Vec<u8>,
    /// As the sandbox shows it, links resolved.
    pub path: Vec<u8>,
    /// It was refused; else the kernel decides after this.
    pub performed: bool,
}

/// May the command connect to this socket of the host?
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// By which the answer is known.
    pub number: u32,
    pub device: u64,
    pub inode: u64,
    /// As the sandbox shows it, links resolved.
    pub path: Vec<u8>,
}

/// From the supervisor, once the command runs.
#[derive(Debug)]
pub enum Word {
    /// Pass this signal to the command.
    Signal(i32),
    /// To the question of this number.
    Answer(u32, bool),
    /// Make a socket for connections, of IPv6 or else IPv4; each is answered by a report, in order.
    Socket { v6: bool },
    /// The rules about files, in a file; none where there are none.
    Rules(Option<OwnedFd>),
}

/// One end.
#[derive(Debug)]
pub struct Control(OwnedFd);

/// The word that rules come with.
const RULES: u8 = b'R';

/// More than any path the kernel takes.
const LONGEST: usize = 8192;

/// The most that the kernel passes with one packet (SCM_MAX_FD, unix(7)).
const DESCRIPTORS: usize = 253;

/// Well below what a socket holds, so that one end writes while the other reads.
const CHUNK: usize = 32 * 1024;

const LENGTH: usize = size_of::<usize>();

impl Control {
    pub fn pair() -> Result<(Control, Control), Errno> {
        let (ours, theirs) = socketpair(AddressFamily::Unix, SockType::SeqPacket, None, SockFlag::SOCK_CLOEXEC)?;
        Ok((Control(ours), Control(theirs)))
    }

    pub fn from_descriptor(fd: OwnedFd) -> Control {
        Control(fd)
    }

    pub fn report(&self, report: &Report) -> Result<(), Errno> {
        self.report_with(report, MsgFlags::empty())
    }

    /// The same, but that nobody waits: `EAGAIN` while the other end does not read.
    pub fn report_at_once(&self, report: &Report) -> Result<(), Errno> {
        self.report_with(report, MsgFlags::MSG_DONTWAIT)
    }

    fn report_with(&self, report: &Report, flags: MsgFlags) -> Result<(), Errno> {
        let (left, asked);
        let (tag, value, text, descriptors): (_, _, &[u8], _) = match report {
            Report::Ready(sockets, missing) => {
                left = missing.as_ref().map(left_over).unwrap_or_default();
                (b'R', missing.as_ref().map_or(0, |missing| missing.errno as i32), left.as_bytes(), &sockets[..])
            }
            Report::Failed(failure) => {
                let tag = match failure.stage {
                    Stage::Setup => b'F',
                    Stage::Start => b'X',
                    Stage::Changed => b'C',
                };
                (tag, failure.errno, failure.act.as_bytes(), &[][..])
            }
            Report::Exited(code) => (b'E', i32::from(*code), b"", &[][..]),
            Report::Signaled(signal) => (b'K', *signal, b"", &[][..]),
            Report::Stopped(signal) => (b'S', *signal, b"", &[][..]),
            Report::Unheard(errno) => (b'U', *errno, b"", &[][..]),
            Report::Unseen(what) => (b'V', 0, what.as_bytes(), &[][..]),
            Report::Asked(question) => {
                let node = [question.device.to_ne_bytes(), question.inode.to_ne_bytes()].concat();
                asked = [&node, &question.path[..]].concat();
                (b'Q', question.number.cast_signed(), &asked, &[][..])
            }
            Report::WantsRules => (b'W', 0, b"", &[][..]),
            Report::Tried(attempt) => {
                let verb = match attempt.verb {
                    Verb::Read => b'r',
                    Verb::Exec => b'x',
                    _ => b'w',
                };
                let name = &attempt.name[..attempt.name.len().min(u8::MAX.into())];
                let length = u8::try_from(name.len()).unwrap_or_default();
                asked = [&[verb, u8::from(attempt.performed), length], name, &attempt.path[..]].concat();
                (b'T', attempt.process, &asked, &[][..])
            }
            Report::Untold(count) => {
                asked = count.to_ne_bytes().to_vec();
                (b'N', 0, &asked, &[][..])
            }
            Report::Passed(Breach { limit, found }) => {
                asked = [&found.to_ne_bytes(), limit.word().as_bytes()].concat();
                (b'L', 0, &asked, &[][..])
            }
            Report::Socket(Ok(socket)) => (b'D', 0, b"", std::slice::from_ref(socket)),
            Report::Socket(Err(errno)) => (b'D', *errno, b"", &[][..]),
        };
        let mut packet = vec![tag];
        packet.extend(value.to_ne_bytes());
        packet.extend(text.iter().take(LONGEST - 5));
        self.send_with(&packet, descriptors, flags)
    }

    fn send(&self, packet: &[u8], descriptors: &[OwnedFd]) -> Result<(), Errno> {
        self.send_with(packet, descriptors, MsgFlags::empty())
    }

    fn send_with(&self, packet: &[u8], descriptors: &[OwnedFd], flags: MsgFlags) -> Result<(), Errno> {
        let fds: Vec<RawFd> = descriptors.iter().map(AsRawFd::as_raw_fd).collect();
        let messages = [ControlMessage::ScmRights(&fds)];
        let messages = if fds.is_empty() { &[][..] } else { &messages[..] };
        let flags = flags | MsgFlags::MSG_NOSIGNAL;
        sendmsg::<()>(self.0.as_raw_fd(), &[IoSlice::new(packet)], messages, flags, None).map(drop)
    }

    /// Receives one report; `None` when the other end is closed, `EAGAIN` when there is none yet and `flags` say
    /// `MSG_DONTWAIT`.
    pub fn receive(&self, flags: MsgFlags) -> Result<Option<Report>, Errno> {
        let (bytes, descriptors) = self.receive_with_descriptors(flags)?;
        let Some((&tag, rest)) = bytes.split_first() else { return Ok(None) };
        let Some((value, text)) = rest.split_first_chunk::<4>() else { return Err(Errno::EBADMSG) };
        let value = i32::from_ne_bytes(*value);
        let failed =
            |stage| Report::Failed(Failure { stage, act: String::from_utf8_lossy(text).into_owned(), errno: value });
        Ok(Some(match tag {
            b'R' => Report::Ready(descriptors, missing(value, text)),
            b'F' => failed(Stage::Setup),
            b'X' => failed(Stage::Start),
            b'C' => failed(Stage::Changed),
            b'E' => Report::Exited(u8::try_from(value).map_err(|_| Errno::EBADMSG)?),
            b'K' => Report::Signaled(value),
            b'S' => Report::Stopped(value),
            b'D' => Report::Socket(descriptors.into_iter().next().ok_or(value)),
            b'U' => Report::Unheard(value),
            b'V' => Report::Unseen(String::from_utf8_lossy(text).into_owned()),
            b'Q' => {
                let (device, text) = text.split_first_chunk().ok_or(Errno::EBADMSG)?;
                let (inode, path) = text.split_first_chunk().ok_or(Errno::EBADMSG)?;
                let (device, inode) = (u64::from_ne_bytes(*device), u64::from_ne_bytes(*inode));
                Report::Asked(Question { number: value.cast_unsigned(), device, inode, path: path.to_vec() })
            }
            b'W' => Report::WantsRules,
            b'T' => {
                let [verb, performed, length, rest @ ..] = text else { return Err(Errno::EBADMSG) };
                let (name, path) = rest.split_at_checked(usize::from(*length)).ok_or(Errno::EBADMSG)?;
                let verb = match verb {
                    b'r' => Verb::Read,
                    b'x' => Verb::Exec,
                    _ => Verb::Write,
                };
                let (name, path, performed) = (name.to_vec(), path.to_vec(), *performed != 0);
                Report::Tried(Attempt { verb, process: value, name, path, performed })
            }
            b'L' => {
                let (found, word) = text.split_first_chunk().ok_or(Errno::EBADMSG)?;
                let limit = str::from_utf8(word).ok().and_then(LimitKind::from_word).ok_or(Errno::EBADMSG)?;
                Report::Passed(Breach { limit, found: u64::from_ne_bytes(*found) })
            }
            b'N' => Report::Untold(u64::from_ne_bytes(text.try_into().map_err(|_| Errno::EBADMSG)?)),
            _ => return Err(Errno::EBADMSG),
        }))
    }

    fn receive_with_descriptors(&self, flags: MsgFlags) -> Result<(Vec<u8>, Vec<OwnedFd>), Errno> {
        let mut bytes = vec![0; LONGEST];
        let mut space = nix::cmsg_space!([RawFd; DESCRIPTORS]);
        let (length, descriptors) = {
            let mut parts = [IoSliceMut::new(&mut bytes)];
            let flags = flags | MsgFlags::MSG_CMSG_CLOEXEC;
            let message = recvmsg::<()>(self.0.as_raw_fd(), &mut parts, Some(&mut space), flags)?;
            let mut descriptors = Vec::new();
            for part in message.cmsgs()? {
                if let ControlMessageOwned::ScmRights(fds) = part {
                    descriptors.extend(fds.into_iter().map(own));
                }
            }
            (message.bytes, descriptors)
        };
        bytes.truncate(length);
        Ok((bytes, descriptors))
    }

    /// Sends a value of any size; waits while the other end does not read.
    pub fn hand_over(&self, text: &[u8]) -> Result<(), Errno> {
        let (with_length, rest) = text.split_at(text.len().min(CHUNK - LENGTH));
        self.send_uninterrupted(&[&text.len().to_ne_bytes(), with_length].concat())?;
        rest.chunks(CHUNK).try_for_each(|part| self.send_uninterrupted(part))
    }

    /// Waits for what [`Control::hand_over`] sends; `None` when the other end is closed.
    pub fn take_over(&self) -> Result<Option<Vec<u8>>, Errno> {
        let mut packet = vec![0; CHUNK];
        let first = match self.wait(&mut packet)? {
            0 => return Ok(None),
            got => &packet[..got],
        };
        let (length, first) = first.split_first_chunk::<LENGTH>().ok_or(Errno::EBADMSG)?;
        let length = usize::from_ne_bytes(*length);
        let mut text = Vec::with_capacity(length);
        text.extend(first);
        while text.len() < length {
            match self.wait(&mut packet)? {
                0 => return Ok(None),
                got => text.extend(&packet[..got]),
            }
        }
        if text.len() == length { Ok(Some(text)) } else { Err(Errno::EBADMSG) }
    }

    /// To the process that becomes the command: go on; and, with the first turn, whether somebody would listen to its filter,
    /// with the second, whether the proxy's variables are all there is.
    pub fn give_turn(&self, so: bool) -> Result<(), Errno> {
        self.send_uninterrupted(&[u8::from(so)])
    }

    /// In that process: waits for its turn, and what is said with it. `None` when pid 1 is gone.
    pub fn await_turn(&self) -> Option<bool> {
        let mut said = [0];
        (self.wait(&mut said) == Ok(1)).then_some(said != [0])
    }

    /// In that process, to pid 1: what to listen to its filter with, or why nobody does; `None` where there is nothing to say.
    pub fn hand_listener(&self, listener: Result<OwnedFd, Option<Errno>>) -> Result<(), Errno> {
        match listener {
            Ok(listener) => self.send(&0_i32.to_ne_bytes(), &[listener]),
            Err(errno) => self.send(&errno.map_or(0, |errno| errno as i32).to_ne_bytes(), &[]),
        }
    }

    /// In pid 1: waits for what [`Control::hand_listener`] sends. Where the other end is closed instead, that has said why.
    pub fn take_listener(&self) -> Result<OwnedFd, Option<Errno>> {
        loop {
            match self.receive_with_descriptors(MsgFlags::empty()) {
                Err(Errno::EINTR) => (),
                Err(errno) => return Err(Some(errno)),
                Ok((word, descriptors)) => {
                    let errno = word.try_into().map_or(0, i32::from_ne_bytes);
                    let why = (errno != 0).then(|| Errno::from_raw(errno));
                    return descriptors.into_iter().next().ok_or(why);
                }
            }
        }
    }

    fn send_uninterrupted(&self, packet: &[u8]) -> Result<(), Errno> {
        loop {
            match self.send(packet, &[]) {
                Err(Errno::EINTR) => (),
                sent => return sent,
            }
        }
    }

    fn wait(&self, packet: &mut [u8]) -> Result<usize, Errno> {
        loop {
            match nix::sys::socket::recv(self.0.as_raw_fd(), packet, MsgFlags::empty()) {
                Err(Errno::EINTR) => (),
                got => return got,
            }
        }
    }

    /// To pid 1: a signal is four bytes, an answer eight, a wish for a socket the one byte that is its family, and rules are one
    /// byte and a descriptor.
    pub fn say(&self, word: Word) -> Result<(), Errno> {
        match word {
            Word::Signal(signal) => self.send(&signal.to_ne_bytes(), &[]),
            Word::Socket { v6 } => self.send_uninterrupted(&[if v6 { 6 } else { 4 }]),
            Word::Answer(number, allowed) => {
                self.send(&[number.to_ne_bytes(), u32::from(allowed).to_ne_bytes()].concat(), &[])
            }
            Word::Rules(file) => self.send(&[RULES], file.as_slice()),
        }
    }

    /// In pid 1: the next word of the supervisor; `None` when it is gone.
    pub fn word(&self) -> Result<Option<Word>, Errno> {
        let (bytes, descriptors) = self.receive_with_descriptors(MsgFlags::MSG_DONTWAIT)?;
        match bytes[..] {
            [] => Ok(None),
            [family @ (4 | 6)] => Ok(Some(Word::Socket { v6: family == 6 })),
            [RULES] => Ok(Some(Word::Rules(descriptors.into_iter().next()))),
            _ => match bytes.split_first_chunk::<4>() {
                Some((signal, [])) => Ok(Some(Word::Signal(i32::from_ne_bytes(*signal)))),
                Some((number, allowed)) if allowed.len() == 4 => {
                    Ok(Some(Word::Answer(u32::from_ne_bytes(*number), *allowed == 1_u32.to_ne_bytes())))
                }
                _ => Err(Errno::EBADMSG),
            },
        }
    }

    /// The same end, for another thread.
    pub fn try_clone(&self) -> Result<Control, Errno> {
        self.0.try_clone().map(Control).map_err(|_| Errno::EMFILE)
    }
}

/// Whether the proxy is alone, and the ports that are not heard.
fn left_over(missing: &Missing) -> String {
    let unheard = missing.unheard.iter().map(|port| format!(" {port}"));
    std::iter::once(u8::from(missing.alone).to_string()).chain(unheard).collect()
}

fn missing(errno: i32, text: &[u8]) -> Option<Missing> {
    let mut words = str::from_utf8(text).unwrap_or_default().split(' ');
    let alone = words.next() == Some("1");
    let unheard = words.filter_map(|word| word.parse().ok()).collect();
    (errno != 0).then(|| Missing { errno: Errno::from_raw(errno), unheard, alone })
}

impl AsFd for Control {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl AsRawFd for Control {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

#[allow(unsafe_code)]
fn own(fd: RawFd) -> OwnedFd {
    // SAFETY: the kernel has just installed this descriptor for us with the message, and nothing else owns it.
    unsafe { OwnedFd::from_raw_fd(fd) }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_failure_arrives_as_it_was_sent() {
        let (ours, theirs) = Control::pair().unwrap();
        let failure = Failure::setup("mount `/é`", Errno::EPERM);
        theirs.report(&Report::Failed(failure.clone())).unwrap();
        match ours.receive(MsgFlags::empty()).unwrap() {
            Some(Report::Failed(got)) => assert_eq!(got, failure),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn descriptors_go_along_and_the_end_is_told() {
        let (ours, theirs) = Control::pair().unwrap();
        let file = OwnedFd::from(std::net::TcpListener::bind("127.0.0.1:0").unwrap());
        let files = (0..140).map(|_| file.try_clone().unwrap()).collect();
        let left = Missing { errno: Errno::EOPNOTSUPP, unheard: (100..164).collect(), alone: true };
        theirs.report(&Report::Ready(files, Some(left.clone()))).unwrap();
        theirs.report(&Report::Ready(Vec::new(), None)).unwrap();
        drop(theirs);
        match ours.receive(MsgFlags::empty()).unwrap() {
            Some(Report::Ready(files, Some(missing))) => assert_eq!((files.len(), missing), (140, left)),
            other => panic!("{other:?}"),
        }
        assert!(matches!(ours.receive(MsgFlags::empty()).unwrap(), Some(Report::Ready(_, None))));
        assert!(ours.receive(MsgFlags::empty()).unwrap().is_none());
    }

    #[test]
    fn a_long_text_arrives_whole_and_what_is_cut_off_does_not() {
        let text: Vec<u8> = (0..1_000_000u32).map(|number| number.to_ne_bytes()[0]).collect();
        for text in [&text[..], b"", b"short", &text[..CHUNK - LENGTH], &text[..=CHUNK - LENGTH], &text[..CHUNK]] {
            let (ours, theirs) = Control::pair().unwrap();
            std::thread::scope(|scope| {
                scope.spawn(|| ours.hand_over(text).unwrap());
                assert_eq!(theirs.take_over().unwrap().unwrap(), text);
            });
        }
        let (ours, theirs) = Control::pair().unwrap();
        ours.send(&10usize.to_ne_bytes(), &[]).unwrap();
        ours.send(b"half", &[]).unwrap();
        drop(ours);
        assert_eq!(theirs.take_over().unwrap(), None);
        let (ours, theirs) = Control::pair().unwrap();
        ours.send(b"odd", &[]).unwrap();
        assert_eq!(theirs.take_over(), Err(Errno::EBADMSG));
    }

    #[test]
    fn words_arrive_and_are_answered() {
        let (ours, theirs) = Control::pair().unwrap();
        let file = OwnedFd::from(std::net::TcpListener::bind("127.0.0.1:0").unwrap());
        let words = [
            Word::Signal(15),
            Word::Socket { v6: false },
            Word::Rules(Some(file)),
            Word::Answer(7, true),
            Word::Socket { v6: true },
            Word::Answer(8, false),
            Word::Rules(None),
        ];
        for word in words {
            ours.say(word).unwrap();
        }
        let mut heard = Vec::new();
        for _ in 0..7 {
            heard.push(match theirs.word().unwrap().unwrap() {
                Word::Rules(file) => format!("Rules({})", file.is_some()),
                word => format!("{word:?}"),
            });
        }
        let said = [
            "Signal(15)",
            "Socket { v6: false }",
            "Rules(true)",
            "Answer(7, true)",
            "Socket { v6: true }",
            "Answer(8, false)",
            "Rules(false)",
        ];
        assert_eq!(heard, said);
        theirs.report(&Report::Socket(Err(23))).unwrap();
        let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        theirs.report(&Report::Socket(Ok(socket.into()))).unwrap();
        assert!(matches!(ours.receive(MsgFlags::empty()), Ok(Some(Report::Socket(Err(23))))));
        assert!(matches!(ours.receive(MsgFlags::empty()), Ok(Some(Report::Socket(Ok(_))))));
        drop(ours);
        assert!(theirs.word().unwrap().is_none());
    }

    #[test]
    fn a_question_arrives_as_it_was_asked() {
        let (ours, theirs) = Control::pair().unwrap();
        let path = b"/run/\xff\n.sock".to_vec();
        let question = Question { number: u32::MAX, device: 7, inode: u64::MAX, path };
        theirs.report(&Report::Asked(question.clone())).unwrap();
        match ours.receive(MsgFlags::empty()).unwrap() {
            Some(Report::Asked(got)) => assert_eq!(got, question),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn an_attempt_arrives_as_it_was_made_and_nobody_waits_for_a_reader() {
        let (ours, theirs) = Control::pair().unwrap();
        let attempt = |verb, name: &[u8]| Attempt {
            verb,
            process: 7,
            name: name.to_vec(),
            path: b"/a\xff b".to_vec(),
            performed: name.is_empty(),
        };
        for sent in [attempt(Verb::Read, b"sh"), attempt(Verb::Write, b""), attempt(Verb::Write, &[b'x'; 15])] {
            theirs.report(&Report::Tried(sent.clone())).unwrap();
            match ours.receive(MsgFlags::empty()).unwrap() {
                Some(Report::Tried(got)) => assert_eq!(got, sent),
                other => panic!("{other:?}"),
            }
        }
        theirs.report(&Report::Untold(1 << 40)).unwrap();
        assert!(matches!(ours.receive(MsgFlags::empty()), Ok(Some(Report::Untold(count))) if count == 1 << 40));
        let mut sent = 0;
        while theirs.report_at_once(&Report::Tried(attempt(Verb::Write, b"sh"))).is_ok() {
            sent += 1;
            assert!(sent < 1_000_000, "a socket that is never full");
        }
    }

    #[test]
    fn a_breach_arrives_as_it_was_found() {
        let (ours, theirs) = Control::pair().unwrap();
        for limit in LimitKind::ALL {
            let breach = Breach { limit: *limit, found: 1 << 40 };
            theirs.report(&Report::Passed(breach)).unwrap();
            assert!(matches!(ours.receive(MsgFlags::empty()), Ok(Some(Report::Passed(got))) if got == breach));
        }
    }

    #[test]
    fn who_listens_is_told_once() {
        let (ours, theirs) = Control::pair().unwrap();
        let file = OwnedFd::from(std::net::TcpListener::bind("127.0.0.1:0").unwrap());
        theirs.hand_listener(Ok(file)).unwrap();
        assert!(ours.take_listener().is_ok());
        theirs.hand_listener(Err(Some(Errno::EBUSY))).unwrap();
        assert_eq!(ours.take_listener().unwrap_err(), Some(Errno::EBUSY));
        drop(theirs);
        assert_eq!(ours.take_listener().unwrap_err(), None);
    }
}
