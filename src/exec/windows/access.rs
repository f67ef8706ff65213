//! Access lists of files: stamped before the command starts, and put back when it is over.
//!
//! Putting back takes the account's entries out of the lists as they are then; whatever else was changed in them meanwhile stays.

use super::super::Error;
use super::journal::{Change, Journal};
use super::list::{Entry, List};
use super::read::{Ace, Node};
use super::sid::Sid;
use std::io;

/// `OWNER RIGHTS` ([MS-DTYP] section 2.4.2.4).
const OWNER: &str = "OW";
const OWNER_SID: &str = "S-1-3-4";

/// Stamps the lists of all nodes that exist, what lies above first; each is written down before.
///
/// # Errors
/// At the first that cannot be: what was stamped is in the journal.
pub fn stamp(nodes: &[Node], account: &Sid, journal: &mut Journal) -> Result<(), Error> {
    for node in nodes {
        stamp_one(node, account, journal)
            .map_err(|source| Error::Setup { act: format!("set the access list of `{}`", node.path), source })?;
    }
    Ok(())
}

fn stamp_one(node: &Node, account: &Sid, journal: &mut Journal) -> io::Result<()> {
    // Of what is not there nothing can be said; what is made there later is a gap that was declared.
    let Some(list) = List::of(&node.path)? else { return Ok(()) };
    if is_given(&list, &node.aces, account) {
        return Ok(());
    }
    let owner = Sid::parse(OWNER_SID)?;
    // One for owners that was there before is somebody's, and stays when ours go.
    let theirs = list.entries()?.iter().any(|entry| !entry.is_inherited() && entry.is_of(&owner));
    let adds_owner = !theirs && node.aces.iter().any(|ace| ace.trustee == OWNER);
    let aces: Vec<Ace> = node.aces.iter().filter(|ace| ace.trustee != OWNER || adds_owner).cloned().collect();
    journal.write(&[Change::List { path: node.path.clone(), owner: adds_owner }])?;
    list.with(&aces, |entry| entry.is_of(account))?.set(&node.path)
}

/// Whether the account may already do all that the entries give it, and they take nothing: so it is with the system's own
/// directories, whose lists not even an administrator may change.
fn is_given(list: &List, aces: &[Ace], account: &Sid) -> bool {
    if aces.iter().any(|ace| ace.deny || ace.trustee == OWNER) {
        return false;
    }
    let wanted = aces.iter().fold(0, |mask, ace| mask | ace.mask);
    list.rights_of(account).is_some_and(|rights| rights & wanted == wanted)
}

/// Takes the account's entries out of a node's list again.
///
/// # Errors
/// Whatever that fails with; a node that is gone is none.
pub fn put_back(path: &str, owner: bool, account: &Sid) -> io::Result<()> {
    let Some(list) = List::of(path)? else { return Ok(()) };
    let owners = Sid::parse(OWNER_SID)?;
    let ours = |entry: &Entry<'_>| entry.is_of(account) || owner && entry.is_of(&owners);
    list.with(&[], ours)?.set(path)
}
