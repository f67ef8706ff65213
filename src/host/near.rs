//! Where a path leads without leaving this machine: links are followed one by one, and nothing is looked at that lies on a
//! file system of another machine, or of a program, which may take any time to answer.

use super::Host;
use crate::ir::{NodeKind, is_far};
use crate::sets::path::{AbsPath, Start};

/// The most links on the way, as path_resolution(7) has it.
const MOST_LINKS: usize = 40;

/// The path that an absolute path leads to, links followed; `None` where it leads to what may be elsewhere, or is not there,
/// or cannot be looked at.
pub fn near(host: &dyn Host, path: &AbsPath) -> Option<AbsPath> {
    if matches!(path.start, Start::Variable(_)) {
        return None;
    }
    let top = |start: Start| AbsPath { start, segments: Vec::new() };
    let mut left: Vec<Vec<u8>> = path.segments.iter().rev().map(|name| name.to_vec()).collect();
    let mut at = top(path.start.clone());
    let mut links = 0;
    while let Some(name) = left.pop() {
        let next = match &name[..] {
            b"." => continue,
            b".." => {
                at = at.parent().unwrap_or(at);
                continue;
            }
            name => at.join(name),
        };
        // The last mount that shows it.
        let shown = host.mounts().iter().rev().find(|mount| next.is_inside(&mount.at));
        if shown.is_some_and(|mount| is_far(&mount.kind)) {
            return None;
        }
        if host.node(&next).ok()??.kind == NodeKind::Link {
            links += 1;
            let target = host.read_link(&next).ok().filter(|_| links <= MOST_LINKS)?;
            let mut target = &target[..];
            if let ([letter, b':', rest @ ..], Start::Drive(_)) = (target, &at.start) {
                at = top(Start::Drive(char::from(letter.to_ascii_uppercase())));
                target = rest;
            } else if target.starts_with(b"/") {
                // From the root, or that of the drive.
                at = top(at.start);
            }
            left.extend(names(target).into_iter().rev());
        } else {
            at = next;
        }
    }
    Some(at)
}

fn names(path: &[u8]) -> Vec<Vec<u8>> {
    path.split(|byte| *byte == b'/').filter(|name| !name.is_empty()).map(<[u8]>::to_vec).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::host::Listing;

    #[test]
    fn nothing_far_is_entered() {
        let listing = "m ext4 8:1 / /\nm nfs4 0:50 / /srv/far\nm fuse.sshfs 0:51 / /mnt/ssh\nm ext4 8:2 / /srv/far/back\n\
            d /srv\nd /srv/far\nd /srv/far/deep\nd /srv/far/back\nd /home/me\nd /mnt/ssh\nl /home/me/share -> ../../srv/far\n\
            l /home/me/own -> .\nl /home/me/loop -> loop\nl /home/me/abs -> /srv/./x\nd /srv/x\n\
            d C:/a\nl C:/a/up -> ../../a\nl C:/a/there -> d:/b\nl C:/a/top -> /a\nd D:/b/c\n";
        let host = Listing::parse(listing).unwrap();
        let leads = |path: &str| near(&host, &AbsPath::parse(path).unwrap()).map(|path| path.to_string());
        assert_eq!(leads("/srv").as_deref(), Some("/srv"));
        assert_eq!(leads("/").as_deref(), Some("/"));
        assert_eq!(leads("/home/me/own/own/abs").as_deref(), Some("/srv/x"));
        assert_eq!(leads("C:/").as_deref(), Some("C:/"));
        assert_eq!(leads("c:/a/up/top").as_deref(), Some("C:/a"));
        assert_eq!(leads("C:/a/there/c").as_deref(), Some("D:/b/c"));
        for path in
            ["/srv/far", "/srv/far/deep", "/home/me/share", "/home/me/share/deep", "/mnt/ssh", "/home/me/loop", "/no"]
        {
            assert_eq!(leads(path), None, "{path}");
        }
        // What is mounted on top of it is here, but the way leads through it.
        assert_eq!(leads("/srv/far/back"), None);
    }
}
