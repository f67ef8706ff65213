//! Where a path of the command's leads: looked up from its own root, directory and descriptors.
//!
//! Magic links (proc(5)) are followed only where they are the command's own and come first: this process has a `/proc/self` of
//! another meaning.

use super::task::Task;
use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, OpenHow, ResolveFlag, openat2, readlinkat};
use nix::sys::stat::{Mode, fstat, fstatat};
use nix::sys::statfs::{PROC_SUPER_MAGIC, fstatfs};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;

/// As the kernel has it (MAXSYMLINKS, linux/namei.h).
const MOST_LINKS: usize = 40;

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
const PLAIN: ResolveFlag = ResolveFlag::RESOLVE_NO_MAGICLINKS;

/// Where a path ends.
pub enum End {
    Named {
        directory: OwnedFd,
        last: Vec<u8>,
        /// The path ended in a slash: it means a directory.
        slash: bool,
    },
    /// `/`, `.`, `..`, or what a magic link of the task's own leads to.
    Node(OwnedFd),
    /// A descriptor of the task's, by its name in `/proc`.
    Descriptor(i32),
    /// In a directory that is not there; this is left to be looked up.
    Astray(Way),
}

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

    pub fn try_clone(&self) -> Result<Way, Errno> {
        let from = self.from.try_clone().map_err(|_| Errno::EMFILE)?;
        Ok(Way { from, rest: self.rest.clone(), resolve: self.resolve, descriptor: self.descriptor })
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

    /// Follows links, up to a directory and the last part of the path in it, or a node. `follow`: a link in the last place, too.
    pub fn walk(self, task: &Task<'_>, follow: bool) -> Result<End, Errno> {
        let mut way = self;
        for _ in 0..MOST_LINKS {
            let Way { from, rest, resolve, descriptor } = way;
            if let Some(number) = descriptor {
                return Ok(End::Descriptor(number));
            }
            if rest.is_empty() {
                return Ok(End::Node(from));
            }
            let end = rest.iter().rposition(|byte| *byte != b'/').map_or(0, |last| last + 1);
            let (trimmed, slash) = (&rest[..end], end < rest.len());
            let (above, last) = split(trimmed);
            if trimmed.is_empty() || matches!(last, b"." | b"..") {
                let path = if trimmed.is_empty() { b"." } else { trimmed };
                return open(&from, path, OFlag::O_DIRECTORY, resolve).map(End::Node);
            }
            let directory = if above.is_empty() {
                from
            } else {
                match open(&from, above, OFlag::O_DIRECTORY, resolve) {
                    Err(Errno::ENOENT) => return Ok(End::Astray(Way { from, rest, resolve, descriptor })),
                    opened => opened?,
                }
            };
            if follow || slash {
                match readlinkat(&directory, last) {
                    Ok(target) => {
                        may_follow(&directory, last)?;
                        let mut target = target.into_vec();
                        if slash {
                            target.push(b'/');
                        }
                        way = if target.starts_with(b"/") {
                            Way::new(task, None, &target)?
                        } else {
                            Way { from: directory, rest: target, resolve: PLAIN, descriptor: None }
                        };
                        continue;
                    }
                    Err(Errno::EINVAL | Errno::ENOENT) => (),
                    Err(errno) => return Err(errno),
                }
            }
            return Ok(End::Named { directory, last: last.to_vec(), slash });
        }
        Err(Errno::ELOOP)
    }

    /// What is there, and under which name. `None`: what has no name, or cannot be looked at.
    pub fn look(self, task: &Task<'_>, follow: bool, proc: BorrowedFd<'_>) -> Option<Found> {
        let there = |node: &OwnedFd| Some(Found { path: name_of(node, proc)?, state: State::There });
        match self.walk(task, follow).ok()? {
            End::Node(node) => there(&node),
            End::Descriptor(number) => there(&task.place(&format!("fd/{number}")).ok()?),
            End::Astray(Way { from, rest, resolve, .. }) => astray(&from, &rest, resolve, proc),
            End::Named { directory, last, slash: _ } => {
                let state = match fstatat(&directory, &*last, AtFlags::AT_SYMLINK_NOFOLLOW) {
                    Ok(_) => State::There,
                    Err(Errno::ENOENT) => State::Missing,
                    Err(_) => return None,
                };
                let path = [name_of(&directory, proc)?, last].join(&b'/');
                Some(Found { path: one_slash(path), state })
            }
        }
    }
}

/// Not a magic link; and, in a place where anybody may make links, one of the follower's own, or of whoever owns the place
/// (`fs.protected_symlinks`, the kernel's admin-guide).
fn may_follow(directory: &OwnedFd, last: &[u8]) -> Result<(), Errno> {
    if is_of_processes(directory)? {
        return Err(Errno::EACCES);
    }
    let around = fstat(directory)?;
    if !Mode::from_bits_truncate(around.st_mode).contains(Mode::S_ISVTX | Mode::S_IWOTH) {
        return Ok(());
    }
    let link = fstatat(directory, last, AtFlags::AT_SYMLINK_NOFOLLOW)?;
    let own = link.st_uid == nix::unistd::geteuid().as_raw() || link.st_uid == around.st_uid;
    if own { Ok(()) } else { Err(Errno::EACCES) }
}

/// Whether a place is in a procfs.
pub fn is_of_processes(place: &OwnedFd) -> Result<bool, Errno> {
    Ok(fstatfs(place)?.filesystem_type() == PROC_SUPER_MAGIC)
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
fn split(path: &[u8]) -> (&[u8], &[u8]) {
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
        b"exe" if words.clone().next().is_none() => "exe".to_owned(),
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
    let (number, rest) = if rest == b"mounts" {
        // A link to that of `self`.
        (task.process().to_string(), rest)
    } else if let Some(rest) = rest.strip_prefix(b"self/") {
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
