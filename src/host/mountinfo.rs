//! `/proc/self/mountinfo` (proc_pid_mountinfo(5)) as mount facts. Lines that do not follow the format are left out: the
//! kernel writes none.

use crate::ir::MountFact;
use crate::sets::path::AbsPath;

/// The mounts of a table: each after the one it is mounted on, those on one mount in the order of the table. So of the
/// mounts above a path it is the last one that shows it. (The table's own order does not say so: a root that was
/// changed stands after what was mounted on it.)
pub(super) fn parse(table: &[u8]) -> Vec<MountFact> {
    let lines: Vec<Line> = table.split(|byte| *byte == b'\n').filter_map(line).collect();
    let is_top = |line: &&Line| line.parent == line.id || lines.iter().all(|other| other.id != line.parent);
    // The next one last.
    let mut left: Vec<&Line> = lines.iter().filter(is_top).rev().collect();
    let mut mounts = Vec::new();
    while let Some(next) = left.pop() {
        mounts.extend(next.mount.clone());
        left.extend(lines.iter().filter(|line| line.parent == next.id && line.id != next.id).rev());
    }
    mounts
}

struct Line {
    id: u64,
    parent: u64,
    /// `None` where it has no path.
    mount: Option<MountFact>,
}

fn line(line: &[u8]) -> Option<Line> {
    let mut fields = line.splitn(3, |byte| *byte == b' ');
    let mut number = || std::str::from_utf8(fields.next()?).ok()?.parse().ok();
    let (id, parent) = (number()?, number()?);
    Some(Line { id, parent, mount: mount(fields.next()?) })
}

/// `ID PARENT MAJOR:MINOR ROOT POINT OPTIONS [TAG…] - KIND SOURCE SUPER`, from the third on.
fn mount(fields: &[u8]) -> Option<MountFact> {
    let mut fields = fields.split(|byte| *byte == b' ');
    let device = std::str::from_utf8(fields.next()?).ok()?;
    let (major, minor) = device.split_once(':')?;
    let root = unescape(fields.next()?);
    let at = unescape(fields.next()?);
    let options = fields.next()?;
    let mut rest = fields.skip_while(|field| *field != b"-");
    let kind = rest.nth(1)?;
    let superblock = rest.nth(1)?;
    let read_only = |options: &[u8]| options.split(|byte| *byte == b',').any(|option| option == b"ro");
    Some(MountFact {
        device: (major.parse().ok()?, minor.parse().ok()?),
        // A deleted root (`/dir//deleted`) or one outside (`/../x`, of a file system mounted in part) has no path.
        root: AbsPath::parse(root).ok()?,
        at: AbsPath::parse(at).ok()?,
        kind: String::from_utf8_lossy(kind).into_owned(),
        read_only: read_only(options) || read_only(superblock),
    })
}

/// Space, tab, newline and backslash stand there as `\040`, `\011`, `\012`, `\134`.
fn unescape(field: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((first, after)) = rest.split_first() {
        let digit =
            |at: usize| after.get(at).filter(|digit| (b'0'..=b'7').contains(*digit)).map(|d| u32::from(d - b'0'));
        let byte = (*first == b'\\')
            .then(|| Some(digit(0)? * 64 + digit(1)? * 8 + digit(2)?))
            .flatten()
            .and_then(|value| u8::try_from(value).ok());
        out.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { &after[3..] } else { after };
    }
    out
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::{parse, unescape};

    #[test]
    fn reads_the_lines_the_manual_shows() {
        let table = b"36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue\n\
                      37 35 0:5 / /a\\040b ro,relatime - tmpfs none rw\n\
                      38 35 0:6 / /c rw shared:2 master:3 - nfs4 host:/x ro\n\
                      39 35 0:7 /x//deleted /d rw - ext4 /dev/y rw\n";
        let mounts = parse(table);
        assert_eq!(mounts.len(), 3, "a deleted root has no path: {mounts:?}");
        assert_eq!(mounts[0].device, (98, 0));
        assert_eq!(mounts[0].root.to_string(), "/mnt1");
        assert_eq!(mounts[0].kind, "ext3");
        assert!(!mounts[0].read_only);
        assert_eq!(mounts[1].at.to_string(), "/a b");
        assert!(mounts[1].read_only, "by its own option");
        assert!(mounts[2].read_only, "by its file system's option");
    }

    #[test]
    fn what_is_mounted_on_another_mount_comes_after_it() {
        let table = b"22 27 0:21 / /proc rw - proc proc rw\n\
                      27 1 254:0 / / rw - ext4 /dev/vda rw\n\
                      30 28 0:9 / /a/b rw - tmpfs none rw\n\
                      28 27 0:8 / /a rw - tmpfs none rw\n\
                      31 22 0:22 / /proc/x rw - tmpfs none rw\n";
        let at: Vec<String> = parse(table).iter().map(|mount| mount.at.to_string()).collect();
        assert_eq!(at, ["/", "/proc", "/proc/x", "/a", "/a/b"]);
    }

    #[test]
    fn octal_escapes_are_taken_out_once() {
        assert_eq!(unescape(b"a\\040b\\134040\\"), b"a b\\040\\");
        assert_eq!(unescape(b"\\777x"), b"\\777x", "not a byte");
        assert_eq!(unescape(b"\\04"), b"\\04");
    }
}
