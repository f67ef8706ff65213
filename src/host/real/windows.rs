//! Windows: paths from a drive, spelled with `/` as policies spell them; base directories are those of the user's profile.
//!
//! Who may write a file is in its access list, which takes calls that `exec` alone makes: here it is not looked at.

use super::LookError;
use crate::ir::{MountFact, Node, NodeKind};
use crate::sets::path::{AbsPath, Start};
use std::ffi::OsString;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use winapi_util::file::{Information, information};

/// The variable that says where the home directory is.
pub const HOME: &str = "USERPROFILE";
/// Known folders (Microsoft, "KNOWNFOLDERID"): the variable, and the default below the home directory.
pub const CONFIG: (&str, &str) = ("APPDATA", "AppData/Roaming");
pub const CACHE: (&str, &str) = ("LOCALAPPDATA", "AppData/Local");
pub const DATA: (&str, &str) = ("APPDATA", "AppData/Roaming");

/// Settings of git for the whole machine, where its installer puts them.
// Elsewhere there is no one place, hence the option.
#[allow(clippy::unnecessary_wraps)]
pub fn git_settings() -> Option<PathBuf> {
    Some(PathBuf::from("C:/Program Files/Git/etc/gitconfig"))
}

/// The system's directory for temporary files, links followed.
pub fn temporary() -> PathBuf {
    let place = std::env::temp_dir();
    place.canonicalize().unwrap_or(place)
}

/// There is none: every account has a home.
pub fn home_of_user() -> Option<PathBuf> {
    None
}

/// There is nothing of the kind.
pub fn runtime() -> Option<PathBuf> {
    None
}

pub fn native(path: &AbsPath) -> io::Result<PathBuf> {
    let Start::Drive(drive) = path.start else {
        // Nothing is there: every place is on a drive.
        return Err(io::ErrorKind::NotFound.into());
    };
    let mut text = format!("{drive}:");
    for name in &path.segments {
        text.push('/');
        text.push_str(std::str::from_utf8(name).map_err(|_| io::ErrorKind::InvalidInput)?);
    }
    if path.segments.is_empty() {
        text.push('/');
    }
    Ok(text.into())
}

/// Where the system's owner has settings for all.
pub fn owners_settings() -> PathBuf {
    #[allow(clippy::disallowed_methods)]
    let data = std::env::var_os("ProgramData").map(PathBuf::from).filter(|path| path.is_absolute());
    data.unwrap_or_else(|| "C:/ProgramData".into()).join("srt")
}

pub fn spelled(path: &Path) -> String {
    let shown = path.display().to_string();
    text_of(&shown).replace('\\', "/")
}

pub fn place(path: &Path) -> Option<AbsPath> {
    AbsPath::parse(text_of(path.to_str()?)).ok()
}

/// As a policy spells it; what is no path stays as it is.
// As elsewhere, where nothing is copied.
#[allow(clippy::needless_pass_by_value)]
pub fn value(path: PathBuf) -> Option<String> {
    Some(text_of(path.to_str()?))
}

/// A path as a policy spells it: without the prefix of the system's own form, by which canonical paths begin, and with `/`.
fn text_of(text: &str) -> String {
    let plain = text.strip_prefix(r"\\?\").unwrap_or(text);
    let mut start = plain.chars();
    match (start.next(), start.next(), start.next()) {
        (Some(drive), Some(':'), None | Some('\\' | '/')) if drive.is_ascii_alphabetic() => {
            format!("{}{}", drive.to_ascii_uppercase(), plain[1..].replace('\\', "/"))
        }
        _ => text.to_owned(),
    }
}

/// Half a pair of surrogates, which a name may have, stays what it is, and no policy spells it.
pub fn name(name: OsString) -> Vec<u8> {
    name.into_encoded_bytes()
}

/// What a link says.
pub fn target(path: PathBuf) -> Vec<u8> {
    match path.to_str().map(text_of) {
        Some(text) => text.replace('\\', "/").into_bytes(),
        None => path.into_os_string().into_encoded_bytes(),
    }
}

#[allow(clippy::disallowed_methods)]
pub fn node(path: &Path) -> io::Result<Node> {
    let kind = fs::symlink_metadata(path)?.file_type();
    let kind = if kind.is_symlink() {
        NodeKind::Link
    } else if kind.is_dir() {
        NodeKind::Directory
    } else {
        NodeKind::File
    };
    // What may not be opened is like nothing else.
    let mut unlike = DefaultHasher::new();
    path.hash(&mut unlike);
    let unlike = (u64::MAX, unlike.finish());
    let known = if kind == NodeKind::Link { None } else { opened(path) };
    let (device, inode) = known.map_or(unlike, |known| (known.volume_serial_number(), known.file_index()));
    Ok(Node { kind, device, inode })
}

/// What the system knows of a file, links followed.
fn opened(path: &Path) -> Option<Information> {
    information(winapi_util::Handle::from_path_any(path).ok()?).ok()
}

/// That is a right, which access lists give: no mode says it.
pub fn is_executable(path: &Path) -> bool {
    path.is_file()
}

#[allow(clippy::disallowed_methods)]
pub fn names_of_file(path: &Path) -> u64 {
    let file = fs::symlink_metadata(path).is_ok_and(|found| found.is_file());
    opened(path).filter(|_| file).map_or(1, |known| known.number_of_links())
}

/// A name is found by look-ups that no listing shows (8.3 names, other spellings).
pub fn names(_: &[MountFact], _: &AbsPath, _: usize) -> Option<Vec<Vec<u8>>> {
    None
}

// As elsewhere.
#[allow(clippy::unnecessary_wraps)]
pub fn writable_by_others(_: &Path) -> io::Result<bool> {
    Ok(false)
}

// As elsewhere.
#[allow(clippy::unnecessary_wraps)]
pub fn mounts() -> Result<Vec<MountFact>, LookError> {
    Ok(Vec::new())
}

/// The machine's own addresses.
pub fn addresses() -> Vec<IpAddr> {
    let adapters = ipconfig::get_adapters().unwrap_or_default();
    let mut addresses: Vec<IpAddr> =
        adapters.iter().flat_map(|adapter| adapter.ip_addresses().iter().copied()).collect();
    addresses.sort_unstable();
    addresses.dedup();
    addresses
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::disallowed_methods)]
    use super::*;
    use crate::host::Host;
    use crate::host::real::Machine;
    use std::collections::BTreeMap;

    #[test]
    fn paths_are_spelled_as_policies_spell_them() {
        for (native, policy) in [
            (r"c:\Users\me", "C:/Users/me"),
            (r"\\?\C:\Users\me", "C:/Users/me"),
            ("C:/x", "C:/x"),
            // No place a policy can name: it is refused as a value.
            (r"\\server\share\x", r"\\server\share\x"),
            (r"\\?\UNC\server\share", r"\\?\UNC\server\share"),
            ("api.example.com", "api.example.com"),
            (r"a\b", r"a\b"),
        ] {
            assert_eq!(text_of(native), policy);
        }
        let path = AbsPath::parse("C:/a b/ü").unwrap();
        assert_eq!(place(&native(&path).unwrap()), Some(path));
        assert_eq!(native(&AbsPath::parse("C:/").unwrap()).unwrap(), Path::new("C:/"));
        assert!(native(&AbsPath::parse("/etc").unwrap()).is_err());
        assert_eq!(target(r"..\a\b".into()), b"../a/b");
    }

    #[test]
    fn shows_what_is_there() {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("d")).unwrap();
        fs::write(directory.path().join("d/f"), "x").unwrap();
        let defines = BTreeMap::from([("x".to_owned(), "y".to_owned())]);
        let machine = Machine::look(Some(directory.path()), defines).unwrap();
        let root = AbsPath::parse(machine.variable("WORKSPACE").unwrap()).unwrap();
        assert_eq!(machine.variable("x").as_deref(), Some("y"));
        let node = |path: &AbsPath| machine.node(path).unwrap();
        assert_eq!(node(&root.join("d")).map(|node| node.kind), Some(NodeKind::Directory));
        assert_eq!(node(&root.join("d").join("f")).map(|node| node.kind), Some(NodeKind::File));
        assert_eq!(node(&root.join("n")), None);
        assert_eq!(node(&AbsPath::parse("/etc/passwd").unwrap()), None, "no place is without a drive");
        assert_ne!(node(&root.join("d")).unwrap().inode, node(&root.join("d").join("f")).unwrap().inode);
        assert_eq!(machine.list(&root).unwrap(), [(b"d".to_vec(), true)]);
    }
}
