//! Who runs `srt`, for the minimal `/etc/passwd` that a closed root shows.

use crate::backend::bubblewrap::User;
use nix::unistd::{Group, getgid, getuid};

/// The real user and group, by number where the system has no name for them.
pub fn caller() -> User {
    let (uid, gid) = (getuid(), getgid());
    // A look-up that fails costs a name in a listing, nothing more.
    let user = nix::unistd::User::from_uid(uid).ok().flatten();
    let group = Group::from_gid(gid).ok().flatten();
    User {
        name: user.map_or_else(|| format!("user{uid}"), |user| user.name),
        uid: uid.as_raw(),
        group: group.map_or_else(|| format!("group{gid}"), |group| group.name),
        gid: gid.as_raw(),
    }
}
