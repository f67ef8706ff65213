//! `srt windows`: the account is made, removed, and shown; what an interrupted run left is put back.

use super::super::Error;
use super::super::launch::Act;
use super::account as made;
use super::run::{filter_keys, lists, open_journal, open_platform, put_back_lists};
use std::fmt::Write as _;
use std::io;

/// Does it; what there is to say, a line each.
///
/// # Errors
/// What it fails with.
pub fn account(act: Act) -> Result<String, Error> {
    let setup = |act: &str, source: io::Error| Error::Setup { act: act.to_owned(), source };
    match act {
        Act::Install => {
            let sid = made::install().map_err(|error| setup("install", error))?;
            Ok(format!("commands run as the account `{}` ({sid})\n", made::NAME))
        }
        Act::Uninstall => {
            let left = put_back()?;
            let there = made::uninstall().map_err(|error| setup("remove the account", error))?;
            let what = if there { "is removed" } else { "was not there" };
            Ok(format!("{left}the account `{}` {what}\n", made::NAME))
        }
        Act::Status => status(),
    }
}

/// Puts back what a run left that did not end by itself.
fn put_back() -> Result<String, Error> {
    let (mut journal, left) = open_journal()?;
    if left.is_empty() {
        return Ok(String::new());
    }
    let setup = |source| Error::Setup { act: "put back what an earlier run left".into(), source };
    if let Some(account) = made::sid().map_err(setup)? {
        put_back_lists(lists(&left), &account).map_err(setup)?;
    }
    open_platform()?.remove(&filter_keys(&left), None).map_err(setup)?;
    journal.clear().map_err(setup)?;
    Ok(format!("{} left by an earlier run: put back\n", changes(left.len())))
}

fn status() -> Result<String, Error> {
    let mut text = String::new();
    let account = made::sid().map_err(|source| Error::Setup { act: "look up the account".into(), source })?;
    // Writing into a string does not fail.
    let _ = match account {
        Some(sid) => writeln!(text, "account: `{}` ({sid})", made::NAME),
        None => writeln!(text, "account: none; `srt windows install` makes it"),
    };
    let _ = match made::secret() {
        Ok(_) => writeln!(text, "password: kept"),
        Err(error) => writeln!(text, "password: {error}"),
    };
    let _ = match open_platform() {
        Ok(_) => writeln!(text, "filters: may be set"),
        Err(error) => writeln!(text, "filters: {error}"),
    };
    let _ = match open_journal() {
        Ok((_, left)) if left.is_empty() => writeln!(text, "journal: nothing to put back"),
        Ok((_, left)) => {
            writeln!(text, "journal: {} left by an earlier run; the next one puts them back", changes(left.len()))
        }
        Err(error) => writeln!(text, "journal: {error}"),
    };
    Ok(text)
}

fn changes(count: usize) -> String {
    if count == 1 { "1 change".to_owned() } else { format!("{count} changes") }
}
