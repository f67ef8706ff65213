//! What the supervisor says to pid 1 while the command runs: told apart by how long it is.

use super::Control;
use crate::exec::linux::cgroup::Files;
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
    /// Before the command runs: it is in a group that holds its limits, of which these are the files to watch; or there is none.
    Held(Option<Files>),
}

/// The word that rules come with.
const RULES: u8 = b'R';

/// What it begins with that a group holds limits, or none does, and how long that is: a byte says which files come with it.
const GROUP: u8 = b'G';
const NONE: u8 = b'N';

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
            Word::Held(None) => self.send(&[NONE, 0], &[]),
            Word::Held(Some(files)) => {
                let files = [files.memory, files.processes, files.cpu];
                let which =
                    (0..).zip(&files).filter(|(_, file)| file.is_some()).fold(0, |which, (at, _)| which | 1 << at);
                self.send(&[GROUP, which], &files.into_iter().flatten().collect::<Vec<_>>())
            }
        }
    }

    /// In pid 1: the next word of the supervisor; `None` when it is gone.
    pub fn word(&self) -> Result<Option<Word>, Errno> {
        let (bytes, descriptors) = self.receive_with_descriptors(MsgFlags::MSG_DONTWAIT)?;
        match bytes[..] {
            [] => Ok(None),
            [family @ (4 | 6)] => Ok(Some(Word::Socket { v6: family == 6 })),
            [RULES] => Ok(Some(Word::Rules(descriptors.into_iter().next()))),
            [NONE, 0] => Ok(Some(Word::Held(None))),
            [GROUP, which] => {
                let mut descriptors = descriptors.into_iter();
                let mut file =
                    |at: u8| (which & 1 << at != 0).then(|| descriptors.next().ok_or(Errno::EBADMSG)).transpose();
                Ok(Some(Word::Held(Some(Files { memory: file(0)?, processes: file(1)?, cpu: file(2)? }))))
            }
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::fs::File;
    use std::io::Read as _;

    #[test]
    fn the_files_of_a_group_arrive_as_what_they_are() {
        let folder = tempfile::tempdir().unwrap();
        let (ours, theirs) = Control::pair().unwrap();
        let file = |name: &str| -> OwnedFd {
            std::fs::write(folder.path().join(name), name).unwrap();
            File::open(folder.path().join(name)).unwrap().into()
        };
        let text = |file: Option<OwnedFd>| {
            let mut text = String::new();
            file.map(|file| File::from(file).read_to_string(&mut text).unwrap()).map(|_| text)
        };
        ours.say(Word::Held(None)).unwrap();
        ours.say(Word::Held(Some(Files { memory: Some(file("m")), processes: None, cpu: Some(file("c")) }))).unwrap();
        ours.say(Word::Held(Some(Files::default()))).unwrap();
        assert!(matches!(theirs.word(), Ok(Some(Word::Held(None)))));
        let Ok(Some(Word::Held(Some(files)))) = theirs.word() else { panic!() };
        assert_eq!(
            (text(files.memory), text(files.processes), text(files.cpu)),
            (Some("m".into()), None, Some("c".into()))
        );
        assert!(matches!(theirs.word(), Ok(Some(Word::Held(Some(files)))) if files.descriptors().count() == 0));
        ours.send(&[GROUP, 0b111], &[]).unwrap();
        assert_eq!(theirs.word().unwrap_err(), Errno::EBADMSG);
    }
}
