//! Who runs `srt`, for the minimal `/etc/passwd` that a closed root shows.
//!
//! By the files alone (passwd(5), group(5)): the C library's look-up loads the machine's modules, which a statically linked
//! process may not survive. Who is known to a directory service only has a number for a name, inside.

use crate::backend::bubblewrap::User;
use nix::unistd::{getgid, getuid};
use std::fs;

/// The real user and group, by number where the files have no name for them.
pub fn caller() -> User {
    let (uid, gid) = (getuid().as_raw(), getgid().as_raw());
    let named = |file: &str, number: u32| name_of(&fs::read(file).unwrap_or_default(), number);
    User {
        name: named("/etc/passwd", uid).unwrap_or_else(|| format!("user{uid}")),
        uid,
        group: named("/etc/group", gid).unwrap_or_else(|| format!("group{gid}")),
        gid,
    }
}

/// The name in the first line whose third field is a number.
fn name_of(file: &[u8], number: u32) -> Option<String> {
    String::from_utf8_lossy(file).lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next().filter(|name| !name.is_empty())?;
        (fields.nth(1)?.parse() == Ok(number)).then(|| name.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::name_of;

    #[test]
    fn names_are_read_from_the_files() {
        let file = b"root:x:0:0:root:/root:/bin/bash\n# a comment\n+::::::\nbuild:x:1001:1001::/:/bin/sh\ntwin:x:1001:7::/:/\n";
        assert_eq!(name_of(file, 0).as_deref(), Some("root"));
        assert_eq!(name_of(file, 1001).as_deref(), Some("build"));
        assert_eq!(name_of(file, 7), None);
    }
}
