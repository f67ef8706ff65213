//! Bubblewrap's arguments as it carries them out (bwrap(1)): in their order, on a root that is an empty tmpfs at first.
//!
//! Read are the options that a plan needs. What would fail, make something in the host's tree, or leave something writable by
//! accident, is refused.

use super::text::Word;
use super::{Layer, What};
use crate::sets::path::AbsPath;
use std::collections::BTreeMap;

type Read<T> = Result<T, String>;

/// What a sandbox of ours never goes without; all of these come before the mounts.
const ALWAYS: [&str; 8] = [
    "--unshare-user",
    "--unshare-pid",
    "--unshare-net",
    "--unshare-ipc",
    "--unshare-uts",
    "--unshare-cgroup-try",
    "--die-with-parent",
    "--as-pid-1",
];

/// What process 1 is given, to set up the rest with.
const CAPABILITIES: [&str; 4] = ["CAP_NET_ADMIN", "CAP_SYS_ADMIN", "CAP_SETPCAP", "CAP_SYS_PTRACE"];

/// What the command is shown.
#[derive(Debug, Default)]
pub struct Shown {
    /// What is mounted, in order: the last that covers a path is what it shows.
    pub layers: Vec<Layer>,
    /// What is made in a tmpfs, by its path: what it is, as text.
    pub made: BTreeMap<AbsPath, String>,
}

struct Words<'w> {
    words: std::slice::Iter<'w, Word>,
}

impl<'w> Words<'w> {
    fn text(&mut self) -> Read<&'w [u8]> {
        match self.words.next() {
            Some(Word::Text(text)) => Ok(text),
            Some(Word::Data(_)) => Err("a descriptor where a text should be".to_owned()),
            None => Err("an option without its value".to_owned()),
        }
    }

    fn data(&mut self) -> Read<&'w [u8]> {
        match self.words.next() {
            Some(Word::Data(data)) => Ok(data),
            _ => Err("a text where a descriptor should be".to_owned()),
        }
    }

    fn path(&mut self) -> Read<AbsPath> {
        let text = self.text()?;
        AbsPath::parse(text).map_err(|error| format!("`{}`: {error}", String::from_utf8_lossy(text)))
    }
}

/// Reads the arguments, up to the command.
pub fn read(words: &[Word]) -> Read<Shown> {
    let mut rest = Words { words: words.iter() };
    let mut shown = Shown::default();
    shown.layers.push(Layer { at: AbsPath::root(), what: What::Own { write: true, listable: true } });
    let (mut flags, mut capabilities) = (Vec::new(), Vec::new());
    let mut mode: Option<u32> = None;
    while let Some(option) = rest.words.next() {
        let Word::Text(option) = option else { return Err("a descriptor where an option should be".to_owned()) };
        let option = std::str::from_utf8(option).map_err(|_| "an option that is no text")?;
        let perms = mode.take();
        if perms.is_some() && !["--tmpfs", "--dir", "--file"].contains(&option) {
            return Err(format!("`--perms` before `{option}`"));
        }
        match option {
            "--cap-add" => capabilities.push(rest.text()?),
            "--perms" => mode = Some(octal(rest.text()?)?),
            "--chmod" => {
                let mode = octal(rest.text()?)?;
                let path = rest.path()?;
                match shown.layers.iter_mut().rfind(|layer| layer.at == path).map(|layer| &mut layer.what) {
                    Some(What::Own { listable, .. }) => *listable = is_listable(mode)?,
                    _ => return Err(format!("the mode of `{path}`, which is not ours, is changed")),
                }
            }
            "--bind" | "--ro-bind" => {
                let (from, at) = (rest.path()?, rest.path()?);
                let write = option == "--bind";
                shown.room(&at)?;
                let what = match from.as_bytes() {
                    _ if from == at => What::Host { write, exec: true },
                    Some(from) if from == b"/dev/null" && !write => What::Masked,
                    _ => return Err(format!("`{from}` is shown at `{at}`")),
                };
                shown.layers.push(Layer { at, what });
            }
            "--tmpfs" => {
                let at = rest.path()?;
                shown.room(&at)?;
                let listable = perms.map_or(Ok(true), is_listable)?;
                shown.layers.push(Layer { at, what: What::Own { write: true, listable } });
            }
            "--dir" => {
                let at = rest.path()?;
                let mode = perms.ok_or("`--dir` without `--perms`")?;
                shown.make(&at, format!("directory {mode:04o}"))?;
            }
            "--file" => {
                let (data, at) = (rest.data()?, rest.path()?);
                let mode = perms.ok_or("`--file` without `--perms`")?;
                shown.make(&at, format!("file {mode:04o} {}", data.escape_ascii()))?;
            }
            "--symlink" => {
                let to = rest.text()?;
                let at = rest.path()?;
                shown.make(&at, format!("link {}", to.escape_ascii()))?;
            }
            "--dev" | "--proc" => {
                let at = rest.path()?;
                shown.room(&at)?;
                let what = if option == "--dev" { What::Devices { write: true } } else { What::Proc };
                shown.layers.push(Layer { at, what });
            }
            "--remount-ro" => {
                let path = rest.path()?;
                match shown.layers.iter_mut().rfind(|layer| layer.at == path).map(|layer| &mut layer.what) {
                    Some(What::Own { write, .. } | What::Devices { write }) if *write => *write = false,
                    _ => return Err(format!("`{path}`, which is not ours or is closed already, is closed")),
                }
            }
            _ if ALWAYS.contains(&option) && shown.layers.len() == 1 => flags.push(option),
            _ => return Err(format!("`{option}` has no place here")),
        }
    }
    let lacks = ALWAYS.iter().find(|flag| !flags.contains(flag));
    if let Some(flag) = lacks {
        return Err(format!("`{flag}` is lacking"));
    }
    if capabilities.iter().any(|given| !CAPABILITIES.iter().any(|known| known.as_bytes() == *given)) {
        return Err("a capability that nothing needs".to_owned());
    }
    Ok(shown)
}

impl Shown {
    /// The last layer that covers a path.
    fn around(&self, path: &AbsPath) -> Option<&Layer> {
        self.layers.iter().rfind(|layer| path.is_inside(&layer.at))
    }

    /// Whether something can be mounted there: what is not there yet is made, which must not be in the host's tree, nor in what is
    /// closed.
    fn room(&self, path: &AbsPath) -> Read<()> {
        match self.around(path).map(|layer| &layer.what) {
            Some(What::Own { write: false, .. }) => Err(format!("`{path}` is made in what is read-only")),
            Some(What::Masked | What::Proc) => Err(format!("`{path}` lies in what has no place for it")),
            _ => Ok(()),
        }
    }

    fn make(&mut self, path: &AbsPath, what: String) -> Read<()> {
        match self.around(path).map(|layer| &layer.what) {
            Some(What::Own { write: true, .. }) => {}
            _ => return Err(format!("`{path}` is made in what is not ours")),
        }
        if self.made.insert(path.clone(), what).is_some() {
            return Err(format!("`{path}` is made twice"));
        }
        Ok(())
    }
}

fn octal(text: &[u8]) -> Read<u32> {
    let text = std::str::from_utf8(text).map_err(|_| "a mode that is no text")?;
    u32::from_str_radix(text, 8).map_err(|_| format!("`{text}` is no mode"))
}

/// Whether a directory of a mode can be listed: by everybody or by nobody.
fn is_listable(mode: u32) -> Read<bool> {
    match mode & 0o555 {
        0o555 => Ok(true),
        0o111 => Ok(false),
        _ => Err(format!("the mode {mode:04o} is neither open nor closed")),
    }
}
