//! Linux, and other systems with users, modes and `/var/tmp`.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::{Mutex, PoisonError};

/// The variable that says where the home is.
pub const HOME: &str = "HOME";

/// Where scenes are: not below `/tmp`, so that the private one is not in the way.
pub fn scratch() -> PathBuf {
    "/var/tmp".into()
}

/// What `srt` needs to find programs.
pub fn environment() -> Vec<(String, String)> {
    vec![("PATH".into(), "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin".into())]
}

/// The exit status as a shell shows it.
pub fn status(status: ExitStatus) -> i32 {
    status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default())
}

pub fn open_to_all(folder: &Path) {
    fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).unwrap();
}

pub fn writable_by_all(file: &Path, writable: bool) {
    fs::set_permissions(file, fs::Permissions::from_mode(if writable { 0o666 } else { 0o644 })).unwrap();
}

/// Gives the ordinary user what root owns.
pub fn give(path: &Path) {
    if fs::symlink_metadata(path).unwrap().uid() == 0 {
        std::os::unix::fs::lchown(path, Some(super::ORDINARY), Some(super::ORDINARY)).unwrap();
    }
}

pub fn am_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|metadata| metadata.uid() == 0)
}

/// A copy of a program where every user may run it: a checkout may lie where only its owner can go. There is one for each
/// build, whoever asks first makes it, and those of builds that are some hours old go with it.
pub fn for_everyone(program: &Path) -> PathBuf {
    static MAKING: Mutex<()> = Mutex::new(());
    let _one_at_a_time = MAKING.lock().unwrap_or_else(PoisonError::into_inner);
    let built = fs::metadata(program).unwrap();
    let name = program.file_name().unwrap().to_string_lossy();
    let all = PathBuf::from(format!("/var/tmp/srt-tests-{}", built.uid()));
    let folder = all.join(format!("{name}-{}-{}-{}", built.dev(), built.ino(), built.mtime_nsec()));
    let copy = folder.join(&*name);
    if copy.is_file() {
        return copy;
    }
    fs::create_dir_all(&folder).unwrap();
    for place in [&all, &folder] {
        fs::set_permissions(place, fs::Permissions::from_mode(0o755)).unwrap();
    }
    for old in fs::read_dir(&all).unwrap().flatten() {
        let age = old.metadata().ok().and_then(|found| found.modified().ok()).and_then(|time| time.elapsed().ok());
        if age.is_some_and(|age| age.as_secs() > 6 * 3600) {
            let _ = fs::remove_dir_all(old.path());
        }
    }
    // Complete before it has its name: others may be waiting for it.
    let making = folder.join(format!("making-{}", std::process::id()));
    fs::copy(program, &making).unwrap();
    fs::set_permissions(&making, fs::Permissions::from_mode(0o755)).unwrap();
    fs::rename(&making, &copy).unwrap();
    copy
}
