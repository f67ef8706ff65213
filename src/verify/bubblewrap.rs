//! Bubblewrap's arguments, read back from the text that is written and proved to show what the plan says: over all paths, what may
//! be read and written, what keeps its name, and what is made beside the host's tree.
//!
//! That the plan is the policy is proved in [`policy`], and tested path by path with a simulator of its own. Which programs may run is
//! not bubblewrap's to say, and in no text: of the plan alone it is known.

mod arguments;
pub mod policy;
mod text;

use super::{Fault, equal};
use crate::analysis::Kind;
use crate::analysis::permission::{Permission, Prepared, Refused};
use crate::backend::bubblewrap::{DEVICES, Mount, Plan, Root};
use crate::backend::gap::Operation;
use crate::ir::Subject;
use crate::sets::path::{AbsPath, PathSet, Pattern};
use crate::vocabulary::Reach;
use arguments::Shown;
use std::collections::BTreeMap;
use std::sync::Arc;
use text::Word;

/// How the arguments are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    Lines,
    Nul,
    Shell,
}

/// Something that is mounted, with everything below it that nothing later covers.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Layer {
    at: AbsPath,
    what: What,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    /// The host's tree.
    Host { write: bool, exec: bool },
    /// A tmpfs.
    Own { write: bool, listable: bool },
    /// Nothing can be done with it.
    Masked,
    /// A `/dev` of the sandbox's own.
    Devices { write: bool },
    /// A `/proc` of the sandbox's own.
    Proc,
}

/// Proves that a text tells bubblewrap to show what the plan says.
///
/// # Errors
/// The first difference, or a text that bubblewrap would take otherwise or not at all.
pub fn prove(plan: &Plan, form: Form, text: &[u8]) -> Result<(), Fault> {
    let words = match form {
        Form::Lines => text::lines(text),
        Form::Nul => text::nul(text),
        Form::Shell => text::shell(text),
    };
    let shown = words.and_then(|words: Vec<Word>| arguments::read(&words)).map_err(Fault::Unread)?;
    let planned = planned(plan).map_err(Fault::Unread)?;
    for operation in [Operation::Read, Operation::Write, Operation::Rename] {
        let [planned, shown] = [&planned, &shown].map(|shown| permitted(shown, operation));
        equal(operation, &Prepared::new(&planned), &Prepared::new(&shown), &[])?;
    }
    let [wanted, found] = [&planned, &shown].map(own);
    if wanted != found {
        return Err(Fault::Lacks(format!("the `/dev` and `/proc` of the plan: it has {found:?}, and not {wanted:?}")));
    }
    let differs = planned.made.iter().find(|(path, what)| shown.made.get(*path) != Some(what));
    if let Some((path, what)) =
        differs.or_else(|| shown.made.iter().find(|(path, _)| !planned.made.contains_key(*path)))
    {
        return Err(Fault::Lacks(format!("what is made at `{path}` in the plan, or has something else there: {what}")));
    }
    Ok(())
}

/// What a plan shows, by its own words.
fn planned(plan: &Plan) -> Result<Shown, String> {
    let parse = |path: &[u8]| AbsPath::parse(path).map_err(|error| error.to_string());
    let mut shown = Shown::default();
    let root = match plan.root {
        Root::Host { exec } => What::Host { write: false, exec },
        Root::Empty { listable } => What::Own { write: false, listable },
    };
    let mut layers = vec![(AbsPath::root(), root)];
    let mut made = BTreeMap::new();
    for mount in &plan.mounts {
        let (path, what) = match mount {
            Mount::Bind { path, write, exec, .. } => (parse(path)?, What::Host { write: *write, exec: *exec }),
            Mount::EmptyDirectory { path, listable, .. } => {
                (parse(path)?, What::Own { write: false, listable: *listable })
            }
            Mount::MaskFile { path, .. } => (parse(path)?, What::Masked),
            Mount::Private { path, .. } => (parse(path)?, What::Own { write: true, listable: true }),
            Mount::Devices { nodes } => {
                let dev = AbsPath::root().join("dev");
                layers.push((dev.clone(), What::Devices { write: false }));
                let absent = DEVICES.iter().filter(|name| !nodes.iter().any(|node| node == *name));
                layers.extend(absent.map(|name| (dev.join(name), What::Masked)));
                continue;
            }
            Mount::Proc => (AbsPath::root().join("proc"), What::Proc),
            Mount::Directory { path, listable } => {
                made.insert(parse(path)?, format!("directory {}", if *listable { "0555" } else { "0111" }));
                continue;
            }
            Mount::File { path, text } => {
                made.insert(parse(path)?, format!("file 0444 {}", text.escape_ascii()));
                continue;
            }
            Mount::Symlink { path, to } => {
                made.insert(parse(path)?, format!("link {}", to.escape_ascii()));
                continue;
            }
        };
        layers.push((path, what));
    }
    shown.layers = layers.into_iter().map(|(at, what)| Layer { at, what }).collect();
    shown.made = made;
    Ok(shown)
}

/// What may be done, of all paths. To rename is what no mount point can be.
fn permitted(shown: &Shown, operation: Operation) -> Permission {
    if operation != Operation::Rename {
        return permitted_together(shown, &[operation]);
    }
    let points = shown.layers.iter().map(|layer| Pattern::literal(&layer.at, Reach::Exact));
    let refusals = points.map(|point| Refused { set: set(point), lifted_by: Arc::default() }).collect();
    Permission { everything: true, refusals, ..Permission::none(Kind::Paths) }
}

/// Where all of some operations may be done that are about files as they are there.
fn permitted_together(shown: &Shown, operations: &[Operation]) -> Permission {
    let mut permission = Permission::none(Kind::Paths);
    // What each layer says of its node and of what is below it.
    let said: Vec<(&AbsPath, Reach, bool)> = shown.layers.iter().flat_map(|layer| said(layer, operations)).collect();
    for (place, (at, reach, permits)) in said.iter().enumerate() {
        let own = set(Pattern::literal(at, *reach));
        if *permits {
            permission.grants.push(own);
            continue;
        }
        // The last that covers a path decides.
        let later = said[place + 1..]
            .iter()
            .filter(|(other, _, permits)| *permits && (other.is_inside(at) || at.is_inside(other)));
        let lifted_by = later.map(|(at, reach, _)| set(Pattern::literal(at, *reach))).collect();
        permission.refusals.push(Refused { set: own, lifted_by });
    }
    permission
}

fn said<'l>(layer: &'l Layer, operations: &[Operation]) -> Vec<(&'l AbsPath, Reach, bool)> {
    let permits = |below: bool| operations.iter().all(|operation| permits(layer.what, *operation, below));
    match (permits(false), permits(true)) {
        (here, below) if here == below => vec![(&layer.at, Reach::Tree, here)],
        (here, below) => vec![(&layer.at, Reach::Exact, here), (&layer.at, Reach::Below, below)],
    }
}

/// Whether what is mounted permits an operation, of its own node or of what is below it.
fn permits(what: What, operation: Operation, below: bool) -> bool {
    match (what, operation) {
        (What::Host { .. }, Operation::Read) | (What::Proc, Operation::Read | Operation::Write) => true,
        (What::Host { write, .. }, Operation::Write) => write,
        (What::Host { exec, .. }, Operation::Exec) => exec,
        // To read is to read what is the host's: in one of the sandbox's own there is what was made in it.
        (What::Own { listable, .. }, Operation::Read) => listable && !below,
        (What::Own { write, .. }, Operation::Write | Operation::Exec) => write,
        (What::Devices { .. }, Operation::Read) => true,
        (What::Devices { write }, Operation::Write) => write,
        _ => false,
    }
}

fn set(pattern: Pattern) -> Subject {
    Subject::Paths(PathSet::from(pattern))
}

/// Each `/dev` and `/proc` of the sandbox's own.
fn own(shown: &Shown) -> Vec<&Layer> {
    let is_own = |layer: &&Layer| matches!(layer.what, What::Devices { .. } | What::Proc);
    shown.layers.iter().filter(is_own).collect()
}
