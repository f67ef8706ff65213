//! What this machine offers for sandboxing, by trying it; nothing is changed.

use super::super::Probe;
use super::account;
use super::run::{open_journal, open_platform};

/// Tries everything.
pub fn probes() -> Vec<Probe> {
    let account = match account::sid() {
        Ok(Some(sid)) => Ok(format!("`{}` ({sid})", account::NAME)),
        Ok(None) => Err("none".to_owned()),
        Err(error) => Err(error.to_string()),
    };
    let password = account::secret().map(|_| "kept".to_owned()).map_err(|error| error.to_string());
    let platform = open_platform().map(|_| "open".to_owned()).map_err(|error| error.to_string());
    let journal = match open_journal() {
        Ok((_, left)) => Ok(format!("{} to put back", left.len())),
        Err(error) => Err(error.to_string()),
    };
    let (install, elevated) = ("srt windows install", "start `srt` from an elevated prompt");
    vec![
        Probe::new("account", true, account, "commands have an account of their own, and run as no other", install),
        Probe::new("password", true, password, "nothing can be started as the account", install),
        Probe::new("filtering platform", true, platform, "connections cannot be held to a policy", elevated),
        Probe::new("journal", true, journal, "one command runs at a time, and changes are put back by it", elevated),
    ]
}
