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

mod report;
mod word;

pub use report::{Attempt, Failure, Missing, Question, Report, Stage, Unreached};
pub use word::Word;

use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, ControlMessage, ControlMessageOwned, MsgFlags, SockFlag, SockType, recvmsg, sendmsg, socketpair,
};
use std::io::{IoSlice, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};

/// One end.
#[derive(Debug)]
pub struct Control(OwnedFd);

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

    /// The same end, for another thread.
    pub fn try_clone(&self) -> Result<Control, Errno> {
        self.0.try_clone().map(Control).map_err(|_| Errno::EMFILE)
    }
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
    use crate::exec::linux::tree::Breach;
    use crate::vocabulary::{LimitKind, Verb};

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
    fn what_was_said_is_heard_whatever_was_left_unread() {
        let (ours, theirs) = Control::pair().unwrap();
        ours.hand_over(b"a plan").unwrap();
        theirs.report(&Report::Exited(3)).unwrap();
        drop(theirs);
        assert!(matches!(ours.receive(MsgFlags::empty()).unwrap(), Some(Report::Exited(3))));
        assert!(ours.receive(MsgFlags::empty()).unwrap().is_none());
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
        for to in [None, Some("[2001:db8::1]:443".parse().unwrap()), Some("192.0.2.7:80".parse().unwrap())] {
            let sent = Unreached { process: 7, name: b"a b".to_vec(), to };
            theirs.report(&Report::Unreached(sent.clone())).unwrap();
            match ours.receive(MsgFlags::empty()).unwrap() {
                Some(Report::Unreached(got)) => assert_eq!(got, sent),
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
