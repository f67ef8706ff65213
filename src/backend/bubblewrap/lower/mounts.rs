//! Points → mount operations: what each point needs differs from what is around it, or it gets none.

mod assemble;
mod gaps;

use super::codes;
use super::cover::Cover;
use super::judge::{Judge, State};
use super::opened::Opened;
use super::sockets;
use super::tree::{Place, Point, Tree};
use super::{Needs, User};
use crate::backend::bubblewrap::plan::{DEVICES, Landlock, Mount, Root};
use crate::diagnostic::Diagnostic;
use crate::ir::{NodeKind, Why};
use crate::vocabulary::Verb;
use std::fmt::Write as _;

#[derive(Debug, Clone, PartialEq, Eq)]
enum Op {
    Bind { write: bool, exec: bool },
    EmptyDirectory { listable: bool },
    Directory { listable: bool },
    MaskFile,
    Private { mode: u32, exec: bool },
    File(String),
    Symlink,
    Devices(Vec<String>),
    Proc,
}

/// What came out.
#[derive(Debug)]
pub(super) struct Layout {
    pub root: Root,
    pub mounts: Vec<Mount>,
    pub landlock: Landlock,
    pub gaps: Vec<Diagnostic>,
    pub errors: Vec<Diagnostic>,
    /// By point.
    pub covers: Vec<Cover>,
    /// Some directory is writable for names alone that are not there yet.
    pub opened: bool,
}

struct Builder<'a> {
    tree: &'a Tree,
    judge: &'a Judge<'a>,
    opened: &'a Opened<'a>,
    user: &'a User,
    covers: Vec<Cover>,
    ops: Vec<Option<Op>>,
    /// By point: directories that are writable for names alone that are not there yet.
    lent: Vec<bool>,
    /// By point: directories whose own node is more closed than what is below them.
    named: Vec<bool>,
    /// Device nodes that the policy allows to write.
    written: Vec<Vec<u8>>,
    gaps: Vec<Diagnostic>,
    errors: Vec<Diagnostic>,
}

pub(super) fn lay_out(tree: &Tree, judge: &Judge<'_>, opened: &Opened<'_>, needs: &Needs) -> Layout {
    let mut builder = Builder {
        tree,
        judge,
        opened,
        user: &needs.user,
        covers: vec![Cover::Closed; tree.points.len()],
        ops: vec![None; tree.points.len()],
        lent: vec![false; tree.points.len()],
        named: vec![false; tree.points.len()],
        written: Vec::new(),
        gaps: Vec::new(),
        errors: Vec::new(),
    };
    let root = builder.root();
    for at in 1..tree.points.len() {
        builder.point(at);
    }
    builder.pin();
    builder.show();
    let landlock = builder.landlock(root);
    let mounts = builder.emit();
    let Builder { covers, gaps, errors, lent, .. } = builder;
    Layout { root, mounts, landlock, gaps, errors, covers, opened: lent.contains(&true) }
}

impl Builder<'_> {
    fn root(&mut self) -> Root {
        let path = &self.tree.points[0].path;
        let (here, below) = (self.judge.reads(path), self.judge.below(path));
        if !below.read {
            self.covers[0] = Cover::Empty;
            return Root::Empty { listable: here };
        }
        if below.write {
            let verdict = self.judge.verdict(Verb::Write, &self.judge.unnamed_child(path));
            let mut error = Diagnostic::new(
                &codes::UNENFORCEABLE,
                "writing everywhere cannot be permitted on Linux by this build: the root is always read-only",
            )
            .help("name the trees that the command may write");
            if let Some(rule) = verdict.decisive.first() {
                error = error.label(self.judge.policy.rules[rule.0 as usize].span, "allows writing below `/`");
            }
            self.errors.push(error);
        }
        if !here {
            self.listing_gap(0);
        }
        self.covers[0] = Cover::Host { write: false, exec: below.exec };
        Root::Host { exec: below.exec }
    }

    fn point(&mut self, at: usize) {
        let point = &self.tree.points[at];
        let around = self.covers[point.parent];
        self.covers[at] = match (point.place, around) {
            (Some(Place::Devices), _) => self.devices(at, around),
            (Some(Place::SharedMemory), Cover::Devices) => self.shared_memory(at),
            (Some(Place::Proc), _) => self.proc(at, around),
            (Some(Place::Temporary), _) => self.temporary(at, around),
            (Some(Place::Account), Cover::Empty) if self.is_closed_by_default(point) => {
                self.ops[at] = Some(Op::File(account(point, self.user)));
                Cover::Closed
            }
            (Some(_), _) if point.node.is_none() => Cover::Closed,
            (_, Cover::Closed) => Cover::Closed,
            (_, Cover::Devices | Cover::Proc { .. }) => around,
            _ if point.link.is_some() || point.node.is_some_and(|node| node.kind == NodeKind::Link) => {
                self.link(at, around)
            }
            _ if !point.decides => {
                self.lent[at] = self.lent[point.parent];
                around
            }
            _ if point.is_directory() => self.directory(at, around),
            _ => {
                self.file(at, around);
                Cover::Closed
            }
        };
    }

    fn is_closed_by_default(&self, point: &Point) -> bool {
        let verdict = self.judge.verdict(Verb::Read, &point.path);
        !verdict.allowed && verdict.why == Why::Default
    }

    /// A private place that the policy keeps closed.
    fn close(&mut self, at: usize, around: Cover) -> Cover {
        let listable = self.judge.reads(&self.tree.points[at].path);
        self.ops[at] = match around {
            Cover::Empty => Some(Op::Directory { listable }),
            _ => Some(Op::EmptyDirectory { listable }),
        };
        Cover::Empty
    }

    fn devices(&mut self, at: usize, around: Cover) -> Cover {
        let path = &self.tree.points[at].path;
        let mut nodes = Vec::new();
        for name in DEVICES {
            let node = path.join(name);
            let state = self.judge.state(&node);
            if state.read {
                nodes.push(name.to_owned());
            }
            if state.write {
                self.written.extend(node.as_bytes());
            }
        }
        let shared = self.judge.below(&path.join("shm"));
        if nodes.is_empty() && !self.judge.below(path).read && !shared.read {
            return self.close(at, around);
        }
        self.ops[at] = Some(Op::Devices(nodes));
        Cover::Devices
    }

    fn shared_memory(&mut self, at: usize) -> Cover {
        let path = &self.tree.points[at].path;
        let below = self.judge.below(path);
        self.ops[at] = Some(if below.write {
            Op::Private { mode: 0o1777, exec: below.exec }
        } else {
            Op::EmptyDirectory { listable: self.judge.reads(path) }
        });
        Cover::Private { write: below.write, exec: below.exec }
    }

    fn proc(&mut self, at: usize, around: Cover) -> Cover {
        let path = &self.tree.points[at].path;
        let below = self.judge.below(path);
        if !below.read {
            return self.close(at, around);
        }
        self.ops[at] = Some(Op::Proc);
        Cover::Proc { write: below.write }
    }

    fn temporary(&mut self, at: usize, around: Cover) -> Cover {
        let path = &self.tree.points[at].path;
        let below = self.judge.below(path);
        if !below.read {
            return self.close(at, around);
        }
        let State { write, exec, .. } = below;
        self.ops[at] = Some(if write {
            Op::Private { mode: 0o1777, exec }
        } else {
            Op::EmptyDirectory { listable: self.judge.reads(path) }
        });
        Cover::Private { write, exec }
    }

    fn link(&mut self, at: usize, around: Cover) -> Cover {
        let point = &self.tree.points[at];
        if around.is_writable_host() && !self.lent[point.parent] {
            let verdict = self.judge.verdict(Verb::Write, &point.path);
            if !verdict.allowed {
                self.gap(
                    &codes::REPLACEABLE_LINK,
                    &verdict,
                    format!("the link `{}` can be replaced: nothing can be mounted on a link", point.path),
                    point,
                );
            }
        }
        if around == Cover::Empty && point.link.is_some() {
            self.ops[at] = Some(Op::Symlink);
        }
        Cover::Closed
    }

    fn directory(&mut self, at: usize, around: Cover) -> Cover {
        let point = &self.tree.points[at];
        let (here, below) = (self.judge.state(&point.path), self.judge.below(&point.path));
        if matches!(around, Cover::Private { .. }) && !below.read {
            return around;
        }
        self.lent[at] = below.read && !below.write && self.opened.holds(self.tree, at, self.judge);
        self.directory_gaps(at, here, below);
        if !below.read {
            let listable = here.read;
            self.ops[at] = Some(match around {
                Cover::Empty => Op::Directory { listable },
                _ => Op::EmptyDirectory { listable },
            });
            return Cover::Empty;
        }
        let State { write, exec, .. } = below;
        let write = write || self.lent[at];
        let cover = Cover::Host { write, exec };
        // Under another name the directory itself would be less closed than the rules have it: it keeps this one. In what is only
        // lent, no name is given without a decision.
        self.named[at] =
            around.is_writable() && !self.lent[point.parent] && (!here.read || !here.write || here.exec != exec);
        if cover != around || self.named[at] {
            self.ops[at] = Some(Op::Bind { write, exec });
        }
        cover
    }

    fn file(&mut self, at: usize, around: Cover) {
        let point = &self.tree.points[at];
        let state = self.judge.state(&point.path);
        let State { write, exec, .. } = state;
        // A socket cannot be opened, whatever may be read: it is shown to be connected to.
        let shown = state.read || sockets::connects(self.judge, point);
        self.ops[at] = match around {
            Cover::Host { .. } if !shown => Some(Op::MaskFile),
            Cover::Host { .. } if around == (Cover::Host { write, exec }) => None,
            Cover::Host { .. } => Some(Op::Bind { write, exec }),
            _ => shown.then_some(Op::Bind { write, exec }),
        };
        if write && !around.is_writable() && self.ops[at].is_some() {
            let verdict = self.judge.verdict(Verb::Write, &point.path);
            self.gap(
                &codes::PINNED_FILE,
                &verdict,
                format!("`{}` can be changed in place, but not deleted or replaced by a rename", point.path),
                point,
            );
        }
    }
}

/// The text of `/etc/passwd` or `/etc/group`: root, nobody and the caller (passwd(5), group(5)).
fn account(point: &Point, user: &User) -> String {
    let is_passwd = point.path.name() == Some(b"passwd");
    let mut text = if is_passwd {
        "root:x:0:0:root:/:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n".to_owned()
    } else {
        "root:x:0:\nnogroup:x:65534:\n".to_owned()
    };
    let is_plain = |name: &str| !name.is_empty() && !name.contains([':', '\n', '\0']);
    if is_passwd && user.uid != 0 && user.uid != 65534 && is_plain(&user.name) {
        let _ = writeln!(text, "{}:x:{}:{}::/:/bin/sh", user.name, user.uid, user.gid);
    }
    if !is_passwd && user.gid != 0 && user.gid != 65534 && is_plain(&user.group) {
        let _ = writeln!(text, "{}:x:{}:", user.group, user.gid);
    }
    text
}
