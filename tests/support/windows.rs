//! Windows, and Wine: there is one user, and a scene is among the temporary files.

use std::path::{Path, PathBuf};
use std::process::ExitStatus;

/// The variable that says where the home is.
pub const HOME: &str = "USERPROFILE";

pub fn scratch() -> PathBuf {
    std::env::temp_dir()
}

/// What a process needs to start at all, and `srt` to find programs.
pub fn environment() -> Vec<(String, String)> {
    let wanted = ["PATH", "PATHEXT", "SystemRoot", "SystemDrive", "ProgramData", "TEMP", "TMP", "COMSPEC"];
    std::env::vars().filter(|(name, _)| wanted.iter().any(|wanted| wanted.eq_ignore_ascii_case(name))).collect()
}

pub fn status(status: ExitStatus) -> i32 {
    status.code().unwrap()
}

pub fn open_to_all(_: &Path) {}

pub fn writable_by_all(_: &Path, writable: bool) {
    assert!(!writable, "Wine makes access lists of its own");
}

pub fn give(_: &Path) {
    unreachable!("tests for Windows run as their caller");
}

/// Nobody here is root.
pub fn am_root() -> bool {
    false
}

pub fn for_everyone(program: &Path) -> PathBuf {
    program.to_owned()
}
