//! Where a path of the command's leads: looked up from its own root, directory and descriptors.
//!
//! Magic links (proc(5)) are followed only where they are the command's own and come first: this process has a `/proc/self` of
//! another meaning.

use super::task::Task;
use nix::errno::Errno;
use nix::fcntl::{OFlag, OpenHow, ResolveFlag, openat2, readlinkat};
use nix::sys::stat::fstat;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;

/// As the kernel has it (MAXSYMLINKS, linux/namei.h).
pub const MOST_LINKS: usize = 40;

/// How often a look-up is begun again.
const MOST_TRIES: usize = 64;

/// What a path means: its beginning as a place, and the rest, which is looked up from there.
pub struct Way {
    pub from: OwnedFd,
    pub rest: Vec<u8>,
    pub resolve: ResolveFlag,
    /// The task's descriptor that it is as a whole.
    pub descriptor: Option<i32>,
}

/// How a path is looked up that starts where the command says.
pub const PLAIN: ResolveFlag = ResolveFlag::RESOLVE_NO_MAGICLINKS;

/// What is there.
pub struct Found {
    /// As the sandbox shows it, links resolved; where nothing is, links of what is there resolved.
    pub path: Vec<u8>,
    pub state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    There,
    /// Its directory is there.
    Missing,
    /// Nor is its directory.
    Astray,
}

impl Way {
    /// Of a path that starts at a descriptor of the task's, or its working directory.
    pub fn new(task: &Task<'_>, directory: Option<i32>, path: &[u8]) -> Result<Way, Errno> {
        let way = |from, rest: &[u8], resolve| Way { from, rest: rest.to_vec(), resolve, descriptor: None };
        if let Some((place, rest)) = own_place(task, path) {
            let number = place.strip_prefix("fd/").and_then(|number| number.parse().ok());
            let descriptor = number.filter(|_| rest.is_empty());
            return Ok(Way { descriptor, ..way(task.place(&place)?, rest, PLAIN) });
        }
        if path.starts_with(b"/") {
            let root = PLAIN | ResolveFlag::RESOLVE_IN_ROOT;
            return match own_directory(task, path) {
                Some(path) => Ok(way(task.place("root")?, &path, root)),
                None => Ok(way(task.place("root")?, path, root)),
            };
        }
        let from = match directory {
            Some(number) if number != libc::AT_FDCWD => {
                task.place(&format!("fd/{number}")).map_err(|errno| match errno {
                    Errno::ENOENT => Errno::EBADF,
                    errno => errno,
                })?
            }
            _ => task.place("cwd")?,
        };
        Ok(way(from, path, PLAIN))
    }

    /// The node, as a place.
    pub fn node(self) -> Result<OwnedFd, Errno> {
        if self.rest.is_empty() {
            return Ok(self.from);
        }
        match open(&self.from, &self.rest, OFlag::empty(), self.resolve) {
            // A magic link.
            Err(Errno::ELOOP) => Err(Errno::EACCES),
            found => found,
        }
    }

    /// What is there, and under which name. `None`: what has no name, or cannot be looked at.
    pub fn look(self, follow: bool, proc: BorrowedFd<'_>) -> Option<Found> {
        let Way { mut from, mut rest, resolve, descriptor: _ } = self;
        for _ in 0..MOST_LINKS {
            let end = rest.iter().rposition(|byte| *byte != b'/').map_or(0, |last| last + 1);
            let trimmed = &rest[..end];
            if trimmed.is_empty() {
                return Some(Found { path: name_of(&from, proc)?, state: State::There });
            }
            let kept = if follow { OFlag::empty() } else { OFlag::O_NOFOLLOW };
            match open(&from, trimmed, kept, resolve) {
                Ok(node) => return Some(Found { path: name_of(&node, proc)?, state: State::There }),
                Err(Errno::ENOENT) => (),
                Err(_) => return None,
            }
            let (above, last) = split(trimmed);
            if matches!(last, b"." | b"..") {
                return None;
            }
            let parent = if above.is_empty() {
                from.try_clone().ok()?
            } else {
                match open(&from, above, OFlag::O_DIRECTORY, resolve) {
                    Ok(parent) => parent,
                    Err(Errno::ENOENT) => return astray(&from, trimmed, resolve, proc),
                    Err(_) => return None,
                }
            };
            match readlinkat(&parent, last) {
                // It leads to what is not there.
                Ok(target) if follow => {
                    rest = target.into_vec();
                    from = parent;
                }
                Err(Errno::ENOENT) => {
                    let path = [name_of(&parent, proc)?, last.to_vec()].join(&b'/');
                    return Some(Found { path: one_slash(path), state: State::Missing });
                }
                // Made, or replaced, just now.
                _ => return None,
            }
        }
        None
    }
}

/// The name of something far below what is there.
fn astray(from: &OwnedFd, path: &[u8], resolve: ResolveFlag, proc: BorrowedFd<'_>) -> Option<Found> {
    let mut above = path;
    loop {
        above = split(above).0;
        let parent = if above.is_empty() {
            from.try_clone().ok()?
        } else {
            match open(from, above, OFlag::O_DIRECTORY, resolve) {
                Ok(parent) => parent,
                Err(Errno::ENOENT) => continue,
                Err(_) => return None,
            }
        };
        let below = path[above.len()..].split(|byte| *byte == b'/').filter(|word| !matches!(*word, b"" | b"."));
        let mut name = name_of(&parent, proc)?;
        for word in below {
            if word == b".." {
                return None;
            }
            name.push(b'/');
            name.extend(word);
        }
        return Some(Found { path: one_slash(name), state: State::Astray });
    }
}

/// A name below the root's, which ends in a slash itself.
fn one_slash(mut path: Vec<u8>) -> Vec<u8> {
    if path.starts_with(b"//") {
        path.remove(0);
    }
    path
}

/// A path above its last part, without slashes at its end, and the part.
pub fn split(path: &[u8]) -> (&[u8], &[u8]) {
    let Some(slash) = path.iter().rposition(|byte| *byte == b'/') else { return (b"", path) };
    let above = &path[..slash];
    let end = above.iter().rposition(|byte| *byte != b'/').map_or(0, |last| last + 1);
    // Of an absolute path, the root is left.
    (if end == 0 { &path[..1] } else { &above[..end] }, &path[slash + 1..])
}

/// Opens a place; again, where something was renamed or mounted meanwhile, wherever that was (openat2(2), `EAGAIN`).
pub fn open(from: &OwnedFd, path: &[u8], more: OFlag, resolve: ResolveFlag) -> Result<OwnedFd, Errno> {
    let how = OpenHow::new().flags(OFlag::O_PATH | OFlag::O_CLOEXEC | more).resolve(resolve);
    for _ in 0..MOST_TRIES {
        match openat2(from, path, how) {
            Err(Errno::EAGAIN) => (),
            opened => return opened,
        }
    }
    Err(Errno::EACCES)
}

/// How the sandbox shows a node. `None`: nowhere, or not any more.
pub fn name_of(node: &OwnedFd, proc: BorrowedFd<'_>) -> Option<Vec<u8>> {
    let name = readlinkat(proc, own_name(node).as_str()).ok()?.into_vec();
    let is_name = name.starts_with(b"/") && (!name.ends_with(b" (deleted)") || fstat(node).ok()?.st_nlink > 0);
    is_name.then_some(name)
}

/// What this process's directory calls a descriptor.
pub fn own_name(node: &OwnedFd) -> String {
    format!("self/fd/{}", node.as_raw_fd())
}

/// `/proc/self/fd/7/x`, with which names that are too long for an address are made shorter: `fd/7`, and `x`.
fn own_place<'p>(task: &Task<'_>, path: &'p [u8]) -> Option<(String, &'p [u8])> {
    let (number, rest) = if let Some(rest) = path.strip_prefix(b"/dev/fd/") {
        (None, [&b"fd/"[..], rest].concat())
    } else {
        let rest = path.strip_prefix(b"/proc/")?;
        let end = rest.iter().position(|byte| *byte == b'/')?;
        (Some(&rest[..end]), rest[end + 1..].to_vec())
    };
    if !number.is_none_or(|number| number == b"self" || number == b"thread-self" || task.is_called(number)) {
        return None;
    }
    let mut words = rest.split(|byte| *byte == b'/');
    let place = match words.next()? {
        b"cwd" => "cwd".to_owned(),
        b"root" => "root".to_owned(),
        b"fd" => {
            let number = std::str::from_utf8(words.next()?).ok()?;
            format!("fd/{}", number.parse::<u32>().ok()?)
        }
        _ => return None,
    };
    let left: usize = words.map(|word| word.len() + 1).sum();
    let rest = &path[path.len() - left..];
    let start = rest.iter().position(|byte| *byte != b'/').unwrap_or(rest.len());
    Some((place, &rest[start..]))
}

/// A path below the task's own directory in `/proc`, by its number: `self` there is whoever looks.
fn own_directory(task: &Task<'_>, path: &[u8]) -> Option<Vec<u8>> {
    let rest = path.strip_prefix(b"/proc/")?;
    let (number, rest) = if let Some(rest) = rest.strip_prefix(b"self/") {
        (task.process().to_string(), rest)
    } else {
        (task.own_directory(), rest.strip_prefix(b"thread-self/")?)
    };
    Some([b"/proc/", number.as_bytes(), b"/", rest].concat())
}

#[cfg(test)]
mod tests {
    use super::split;

    #[test]
    fn a_path_is_split_before_its_last_part() {
        let cases: [(&[u8], &[u8], &[u8]); 6] = [
            (b"a", b"", b"a"),
            (b"/a", b"/", b"a"),
            (b"//a", b"/", b"a"),
            (b"a/b", b"a", b"b"),
            (b"/a//b", b"/a", b"b"),
            (b"../b", b"..", b"b"),
        ];
        for (path, above, last) in cases {
            assert_eq!(split(path), (above, last), "{path:?}");
        }
    }
}
