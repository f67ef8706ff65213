//! What this machine offers for sandboxing, by trying it; nothing is changed.

use super::super::Probe;
use super::Tools;
use std::path::Path;
use std::process::{Command, Stdio};

/// The smallest profile that denies something and lets a program start.
const PROFILE: &str = "(version 1)(allow default)(deny file-read-data (literal \"/private/etc/master.passwd\"))";

/// Tries everything.
pub fn probes() -> Vec<Probe> {
    let tools = Tools::of_the_system();
    let sandbox = tried(&tools.sandbox_exec, &["-p", PROFILE, "/usr/bin/true"]);
    let log = tried(&tools.log, &["help", "stream"]);
    vec![
        Probe::new(
            "sandbox-exec",
            true,
            sandbox,
            "no command can be run: profiles are loaded by it",
            "it is a part of macOS; inside another sandbox it does not work",
        ),
        Probe::new("log", false, log, "what is refused is not told", "it is a part of macOS"),
    ]
}

fn tried(program: &Path, arguments: &[&str]) -> Result<String, String> {
    let tried = Command::new(program).args(arguments).stdin(Stdio::null()).output();
    match tried {
        Ok(ended) if ended.status.success() => Ok(program.display().to_string()),
        Ok(ended) => Err(String::from_utf8_lossy(&ended.stderr).trim().to_owned()),
        Err(error) => Err(format!("{}: {error}", program.display())),
    }
}
