//! From what each point needs by itself to the list: pins, directories on the way, order, and the Landlock lists.

use super::{Builder, Op};
use crate::backend::bubblewrap::lower::codes;
use crate::backend::bubblewrap::lower::cover::Cover;
use crate::backend::bubblewrap::plan::{Landlock, Mount, Root};
use crate::diagnostic::Diagnostic;
use crate::sets::path::AbsPath;

impl Builder<'_> {
    /// A denied path keeps its name only if no directory above it can be renamed away: each is made a mount point.
    pub(super) fn pin(&mut self) {
        for at in 1..self.tree.points.len() {
            let around = self.covers[self.tree.points[at].parent];
            let denies = match (&self.ops[at], around) {
                (Some(Op::EmptyDirectory { .. } | Op::MaskFile), _) => true,
                (Some(Op::Bind { write, exec }), Cover::Host { write: may_write, exec: may_run }) => {
                    (may_write && !write) || (may_run && !exec)
                }
                (Some(Op::Bind { .. }), Cover::Private { .. }) => true,
                _ => false,
            };
            if denies || self.named[at] {
                self.pin_above(at);
            }
        }
    }

    fn pin_above(&mut self, at: usize) {
        let mut above = self.tree.points[at].parent;
        while above != 0 {
            let point = &self.tree.points[above];
            let (here, around) = (self.covers[above], self.covers[point.parent]);
            if self.ops[above].is_none() {
                match here {
                    Cover::Host { write: true, exec } if around.is_writable() => {
                        if point.node.is_none() {
                            self.unseen(above);
                            return;
                        }
                        self.ops[above] = Some(Op::Bind { write: true, exec });
                    }
                    Cover::Private { write: true, exec } => self.ops[above] = Some(Op::Private { mode: 0o755, exec }),
                    Cover::Private { write: false, .. } => self.ops[above] = Some(Op::Directory { listable: true }),
                    _ => {}
                }
            }
            above = point.parent;
        }
    }

    fn unseen(&mut self, at: usize) {
        let path = &self.tree.points[at].path;
        self.errors.push(Diagnostic::new(
            &codes::UNENFORCEABLE,
            format!("`{path}` was not looked at when the policy was bound, so that it cannot be kept in its place"),
        ));
    }

    /// Directories on the way are made only where they lead to something, and links only where their target is there.
    pub(super) fn show(&mut self) {
        let points = &self.tree.points;
        let mut shown: Vec<bool> = self
            .ops
            .iter()
            .map(|op| op.as_ref().is_some_and(|op| !matches!(op, Op::Directory { listable: false } | Op::Symlink)))
            .collect();
        for at in (1..points.len()).rev() {
            if shown[at] {
                shown[points[at].parent] = true;
            }
        }
        for (at, point) in points.iter().enumerate() {
            if self.ops[at] == Some(Op::Symlink)
                && let Some(target) = &point.link
            {
                let deepest = self.tree.deepest(target);
                let is_there = match self.covers[deepest] {
                    Cover::Empty | Cover::Closed => shown[deepest] && points[deepest].path == *target,
                    _ => true,
                };
                let mut above = at;
                while is_there && !shown[above] {
                    shown[above] = true;
                    above = points[above].parent;
                }
            }
        }
        for (at, point) in points.iter().enumerate().skip(1) {
            if !shown[at] {
                self.ops[at] = None;
            } else if self.ops[at].is_none() && self.covers[at] == Cover::Empty {
                debug_assert!(point.path.name().is_some());
                self.ops[at] = Some(Op::Directory { listable: false });
            }
        }
    }

    pub(super) fn landlock(&self, root: Root) -> Landlock {
        let mut write = self.written.clone();
        let mut exec = Vec::new();
        if root == (Root::Host { exec: true }) {
            exec.push(b"/".to_vec());
        }
        for (at, point) in self.tree.points.iter().enumerate().skip(1) {
            let Some(path) = point.path.as_bytes() else { continue };
            let around = self.covers[point.parent];
            let (writes, runs) = match (&self.ops[at], self.covers[at]) {
                (Some(Op::Bind { write, exec }), _) => (*write, *exec),
                (Some(Op::Devices(_)), _) => {
                    write.push(b"/dev/pts".to_vec());
                    (false, false)
                }
                (_, Cover::Proc { write }) => (write, false),
                (_, Cover::Private { write, exec }) => (write, exec && write),
                _ => (false, false),
            };
            if writes && !around.is_writable() {
                write.push(path.clone());
            }
            let around_runs = matches!(around, Cover::Host { exec: true, .. } | Cover::Private { exec: true, .. });
            if runs && !around_runs {
                exec.push(path);
            }
        }
        for list in [&mut write, &mut exec] {
            list.sort_unstable();
            list.dedup();
        }
        Landlock { write, exec }
    }

    pub(super) fn emit(&mut self) -> Vec<Mount> {
        let mut mounts = Vec::new();
        for at in self.tree.in_order() {
            let Some(op) = self.ops[at].take() else { continue };
            let point = &self.tree.points[at];
            let Some(path) = point.path.as_bytes() else { continue };
            mounts.push(match op {
                Op::Bind { .. } | Op::MaskFile if point.node.is_none() => {
                    self.unseen(at);
                    continue;
                }
                Op::Bind { write, exec } => {
                    let Some(node) = point.node else { continue };
                    Mount::Bind { path, node, write, exec }
                }
                Op::EmptyDirectory { listable } => Mount::EmptyDirectory { path, node: point.node, listable },
                Op::Directory { listable } => Mount::Directory { path, listable },
                Op::MaskFile => {
                    let Some(node) = point.node else { continue };
                    Mount::MaskFile { path, node }
                }
                Op::Private { mode, exec } => Mount::Private { path, mode, exec },
                Op::File(text) => Mount::File { path, text: text.into_bytes() },
                Op::Symlink => {
                    let Some(to) = point.link.as_ref().and_then(AbsPath::as_bytes) else { continue };
                    Mount::Symlink { path, to }
                }
                Op::Devices(nodes) => Mount::Devices { nodes },
                Op::Proc => Mount::Proc,
            });
        }
        mounts
    }
}
