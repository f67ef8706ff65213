//! Whether others may change a file: by the lists of the file and of the directories above it.

use super::list::List;
use super::sid::Sid;
use std::io;
use std::path::Path;

/// The system, administrators, the installer of the system: who is one of these may do anything anyway.
const TRUSTED: [&str; 3] =
    ["S-1-5-18", "S-1-5-32-544", "S-1-5-80-956008885-3418522649-1831038044-1853292631-2271478464"];

/// Rights by which a file is changed, or gets another list or owner (winnt.h).
const CHANGE: u32 = WRITE_DATA | APPEND_DATA | REPLACE;
/// Rights by which something else is put in a node's place, or its list is changed.
const REPLACE: u32 = DELETE | WRITE_DAC | WRITE_OWNER | GENERIC_WRITE | GENERIC_ALL;
/// On a directory also: removing what is in it.
const REMOVE: u32 = REPLACE | DELETE_CHILD;
const WRITE_DATA: u32 = 0x2;
const APPEND_DATA: u32 = 0x4;
const DELETE_CHILD: u32 = 0x40;
const DELETE: u32 = 0x1_0000;
const WRITE_DAC: u32 = 0x4_0000;
const WRITE_OWNER: u32 = 0x8_0000;
const GENERIC_WRITE: u32 = 0x4000_0000;
const GENERIC_ALL: u32 = 0x1000_0000;

/// Whether someone other than us and the system's own accounts may change a file, or put another in its place.
///
/// # Errors
/// Whatever reading the lists fails with.
pub fn others_may_change(path: &Path) -> io::Result<bool> {
    let trusted = trusted()?;
    #[allow(clippy::disallowed_methods)]
    let file = std::fs::canonicalize(path)?;
    for (depth, place) in file.ancestors().enumerate() {
        let text = place.to_str().ok_or(io::ErrorKind::InvalidInput)?;
        let text = text.strip_prefix(r"\\?\").unwrap_or(text);
        let Some(list) = List::of(text)? else { return Err(io::ErrorKind::NotFound.into()) };
        let rights = if depth == 0 { CHANGE } else { REMOVE };
        if !list.is_owned_by(&trusted) {
            return Ok(true);
        }
        for entry in list.entries()? {
            let given = entry.gives().unwrap_or(0) & rights != 0;
            if given && !entry.is_below() && !trusted.iter().any(|sid| entry.is_of(sid)) {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

fn trusted() -> io::Result<Vec<Sid>> {
    let known = TRUSTED.iter().map(|sid| Sid::parse(sid));
    known.chain([Sid::own()]).collect()
}
