//! What the supervisor says to pid 1 while the command runs: told apart by how long it is.

use super::Control;
use nix::errno::Errno;
use nix::sys::socket::MsgFlags;
use std::os::fd::OwnedFd;

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

/// The word that rules come with.
const RULES: u8 = b'R';

impl Control {
    /// To pid 1: a signal is four bytes, an answer eight, a wish for a socket the one byte that is its family, and rules are one
    /// byte and a descriptor. Whatever others can have said without end waits for nobody: `EAGAIN` while pid 1 does not read.
    pub fn say(&self, word: Word) -> Result<(), Errno> {
        match word {
            Word::Signal(signal) => self.send_with(&signal.to_ne_bytes(), &[], MsgFlags::MSG_DONTWAIT),
            Word::Socket { v6 } => self.send_with(&[if v6 { 6 } else { 4 }], &[], MsgFlags::MSG_DONTWAIT),
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
}
