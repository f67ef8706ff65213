//! [`Plan`] → bubblewrap's arguments (bwrap(1), checked with 0.8.0).
//!
//! Only what bubblewrap does is said here: namespaces and mounts. The listener, Landlock, system calls, limits and the
//! covers in `/proc` are the business of the program that it starts as process 1, and so is what bubblewrap has no word
//! for: [`Arguments::noexec`]. That the nodes are still those that were seen is not checked by bubblewrap either.

use super::plan::DEVICES;
use super::{Mount, Plan, Root};

/// What bubblewrap cannot be told.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unsupported {
    #[error(
        "the plan takes {count} arguments, and bubblewrap takes {limit} at the most; `--engine native` has no such limit"
    )]
    TooManyMounts { count: usize, limit: usize },
}

/// Bubblewrap 0.8 refuses more than 9000 arguments (`MAX_ARGS` in bubblewrap.c), its own `--args FD --` and the command
/// included, for which this leaves room.
pub const MOST_ARGUMENTS: usize = 8900;

/// One argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Argument {
    Text(Vec<u8>),
    /// The number of a descriptor that reads this, up to its end.
    Data(Vec<u8>),
}

/// What bubblewrap is told, up to, not including, `--` and the command; and what it must be helped with.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Arguments {
    pub list: Vec<Argument>,
    /// Mount points from which nothing may run, in order of their mounts, each with what is mounted below it unless
    /// [`exec`](Self::exec) says otherwise. Process 1 makes them so (`mount_setattr`), or refuses to go on.
    pub noexec: Vec<Vec<u8>>,
    /// Mount points below one of these from which programs may run.
    pub exec: Vec<Vec<u8>>,
}

impl Arguments {
    fn push(&mut self, arguments: &[&str]) {
        self.list.extend(arguments.iter().map(|text| Argument::Text(text.as_bytes().to_vec())));
    }

    /// An option, and a path as its value.
    fn path(&mut self, option: &[&str], path: &[u8]) {
        self.push(option);
        self.list.push(Argument::Text(path.to_vec()));
    }

    fn runs(&mut self, exec: bool, path: &[u8]) {
        let list = if exec { &mut self.exec } else { &mut self.noexec };
        list.push(path.to_vec());
    }
}

/// The arguments for a plan.
///
/// # Errors
/// See [`Unsupported`].
pub fn arguments(plan: &Plan) -> Result<Arguments, Unsupported> {
    let mut to = Arguments::default();
    namespaces(&mut to);
    // A tmpfs must stay writable until the mount points in it are made.
    let mut read_only: Vec<&[u8]> = Vec::new();
    match plan.root {
        Root::Host { exec } => {
            to.push(&["--ro-bind", "/", "/"]);
            to.runs(exec, b"/");
        }
        Root::Empty { listable } => {
            to.push(&["--chmod", mode(listable), "/"]);
            read_only.push(b"/");
        }
    }
    for mount in &plan.mounts {
        match mount {
            Mount::Bind { path, node: _, write, exec } => {
                to.path(&[if *write { "--bind" } else { "--ro-bind" }], path);
                to.path(&[], path);
                to.runs(*exec, path);
            }
            Mount::EmptyDirectory { path, node: _, listable } => {
                to.path(&["--perms", mode(*listable), "--tmpfs"], path);
                read_only.push(path);
            }
            Mount::Directory { path, listable } => to.path(&["--perms", mode(*listable), "--dir"], path),
            Mount::MaskFile { path, node: _ } => mask(&mut to, path),
            Mount::Private { path, mode, exec } => {
                to.path(&["--perms", &format!("{mode:04o}"), "--tmpfs"], path);
                to.runs(*exec, path);
            }
            Mount::File { path, text } => {
                to.push(&["--perms", "0444", "--file"]);
                to.list.push(Argument::Data(text.clone()));
                to.path(&[], path);
            }
            Mount::Symlink { path, to: target } => {
                to.path(&["--symlink"], target);
                to.path(&[], path);
            }
            Mount::Devices { nodes } => {
                to.push(&["--dev", "/dev"]);
                for absent in DEVICES.iter().filter(|name| !nodes.iter().any(|node| node == *name)) {
                    mask(&mut to, format!("/dev/{absent}").as_bytes());
                }
                read_only.push(b"/dev");
            }
            Mount::Proc => to.push(&["--proc", "/proc"]),
        }
    }
    for path in read_only {
        to.path(&["--remount-ro"], path);
    }
    match to.list.len() {
        count if count > MOST_ARGUMENTS => Err(Unsupported::TooManyMounts { count, limit: MOST_ARGUMENTS }),
        _ => Ok(to),
    }
}

fn namespaces(to: &mut Arguments) {
    to.push(&["--unshare-user", "--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts"]);
    to.push(&["--unshare-cgroup-try", "--die-with-parent", "--as-pid-1"]);
    // For process 1 alone, which sets up the address, noexec and the covers, looks into the command when it connects, and
    // gives all of them up before the command.
    for capability in ["CAP_NET_ADMIN", "CAP_SYS_ADMIN", "CAP_SETPCAP", "CAP_SYS_PTRACE"] {
        to.push(&["--cap-add", capability]);
    }
}

/// A device node that is mounted without devices: it cannot be opened, by whoever it is (EACCES), and it costs no
/// descriptor, of which a data file would need one each.
fn mask(to: &mut Arguments, path: &[u8]) {
    to.path(&["--ro-bind", "/dev/null"], path);
}

fn mode(listable: bool) -> &'static str {
    if listable { "0555" } else { "0111" }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::backend::bubblewrap::{Landlock, Network, seccomp};
    use crate::backend::limits::Limits;
    use crate::ir::{Node, NodeKind};

    fn plan(root: Root, mounts: Vec<Mount>) -> Plan {
        Plan {
            root,
            mounts,
            network: Network::Loopback,
            listen: vec![],
            syscalls: seccomp::Table {
                nest: false,
                notified: true,
                watch: seccomp::Watch::Nothing,
                performed: seccomp::Watch::Nothing,
                runs: false,
            },
            unheard: false,
            sockets: false,
            landlock: Some(Landlock::default()),
            limits: Limits::default(),
        }
    }

    fn bind(path: &str, write: bool, exec: bool) -> Mount {
        let node = Node { kind: NodeKind::Directory, device: 1, inode: 2 };
        Mount::Bind { path: path.into(), node, write, exec }
    }

    fn masked(path: &str) -> Mount {
        Mount::MaskFile { path: path.into(), node: Node { kind: NodeKind::File, device: 1, inode: 3 } }
    }

    /// One option a line.
    fn show(arguments: &Arguments) -> String {
        let mut text = String::new();
        for argument in &arguments.list {
            let word = match argument {
                Argument::Text(word) => String::from_utf8_lossy(word).into_owned(),
                Argument::Data(data) => format!("<{}>", String::from_utf8_lossy(data).escape_default()),
            };
            let separator = if text.is_empty() {
                ""
            } else if word.starts_with("--") {
                "\n"
            } else {
                " "
            };
            text += separator;
            text += &word;
        }
        text
    }

    #[test]
    fn one_of_each() {
        let arguments = arguments(&plan(
            Root::Empty { listable: false },
            vec![
                Mount::Devices { nodes: vec!["null".into(), "urandom".into()] },
                Mount::Directory { path: b"/etc".into(), listable: false },
                Mount::File { path: b"/etc/passwd".into(), text: b"root:x:0:0::/:/bin/sh\n".into() },
                Mount::Directory { path: b"/home".into(), listable: true },
                bind("/home/ws", true, false),
                bind("/home/ws/bin", true, true),
                masked("/home/ws/.env"),
                Mount::EmptyDirectory { path: b"/home/ws/secret".into(), node: None, listable: false },
                bind("/home/ws/secret/open", false, false),
                Mount::Symlink { path: b"/lib".into(), to: b"/usr/lib".into() },
                Mount::Proc,
                Mount::Private { path: b"/tmp".into(), mode: 0o1777, exec: true },
                bind("/usr", false, true),
            ],
        ))
        .unwrap();
        assert_eq!(arguments.noexec, [&b"/home/ws"[..], b"/home/ws/secret/open"]);
        let mut settings = insta::Settings::clone_current();
        settings.set_snapshot_path(concat!(env!("CARGO_MANIFEST_DIR"), "/snapshots/bubblewrap"));
        settings.set_prepend_module_to_snapshot(false);
        settings.set_omit_expression(true);
        settings.bind(|| insta::assert_snapshot!("arguments", show(&arguments)));
    }

    #[test]
    fn the_limit_is_counted_before_anything_starts() {
        let masks = |count: usize| (0..count).map(|at| masked(&format!("/f{at}"))).collect();
        let root = Root::Host { exec: true };
        assert!(arguments(&plan(root, masks(2900))).is_ok());
        let error = arguments(&plan(root, masks(3000))).unwrap_err();
        assert!(matches!(error, Unsupported::TooManyMounts { count, limit: MOST_ARGUMENTS } if count > 9000));
    }

    /// A tmpfs is sealed after everything in it is made.
    #[test]
    fn tmpfs_are_sealed_last() {
        let mounts = vec![
            Mount::EmptyDirectory { path: b"/a".into(), node: None, listable: true },
            Mount::Directory { path: b"/a/b".into(), listable: true },
            bind("/a/b/c", false, true),
        ];
        let arguments = arguments(&plan(Root::Host { exec: true }, mounts)).unwrap();
        assert!(show(&arguments).ends_with("--ro-bind /a/b/c /a/b/c\n--remount-ro /a"), "{}", show(&arguments));
    }
}
