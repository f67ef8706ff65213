//! Programs of the host that `srt` starts for itself. What runs inside is no part of it.

use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;

/// The first executable of this name on a PATH.
pub fn program(name: &str, path: Option<OsString>) -> Option<PathBuf> {
    let path = path?;
    std::env::split_paths(&path).filter(|directory| directory.is_absolute()).map(|directory| directory.join(name)).find(
        |program| {
            fs::metadata(program).is_ok_and(|seen| seen.is_file())
                && nix::unistd::access(program, nix::unistd::AccessFlags::X_OK).is_ok()
        },
    )
}
