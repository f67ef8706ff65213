//! What is said from inside: a letter, a number, and the rest of it. Decides nothing; the supervisor does what it says.

use super::{Control, LONGEST};
use crate::exec::linux::tree::Breach;
use crate::vocabulary::{LimitKind, Verb};
use nix::errno::Errno;
use nix::sys::socket::MsgFlags;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;

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
    /// A connection for which there is no way.
    Unreached(Unreached),
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

/// Somebody connects to what the sandbox's network does not lead to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreached {
    /// As of an [`Attempt`].
    pub process: i32,
    pub name: Vec<u8>,
    /// To a name server, with a question, where there is none.
    pub to: Option<SocketAddr>,
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

impl Control {
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
            Report::Unreached(unreached) => {
                let to = unreached.to.map(|to| to.to_string()).unwrap_or_default();
                asked = [to.as_bytes(), b" ", &unreached.name[..]].concat();
                (b'Z', unreached.process, &asked, &[][..])
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

    /// Receives one report; `None` when the other end is closed, `EAGAIN` when there is none yet and `flags` say
    /// `MSG_DONTWAIT`.
    pub fn receive(&self, flags: MsgFlags) -> Result<Option<Report>, Errno> {
        let (bytes, descriptors) = match self.receive_with_descriptors(flags) {
            // Told once of an end that was closed with something unread, and before what it had said itself
            // (Linux, net/unix/af_unix.c, `unix_release_sock`).
            Err(Errno::ECONNRESET) => self.receive_with_descriptors(flags)?,
            received => received?,
        };
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
            b'Z' => {
                let space = text.iter().position(|byte| *byte == b' ').ok_or(Errno::EBADMSG)?;
                let (to, name) = (&text[..space], text[space + 1..].to_vec());
                let to = match str::from_utf8(to) {
                    Ok("") => None,
                    Ok(to) => Some(to.parse().map_err(|_| Errno::EBADMSG)?),
                    Err(_) => return Err(Errno::EBADMSG),
                };
                Report::Unreached(Unreached { process: value, name, to })
            }
            b'N' => Report::Untold(u64::from_ne_bytes(text.try_into().map_err(|_| Errno::EBADMSG)?)),
            _ => return Err(Errno::EBADMSG),
        }))
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
