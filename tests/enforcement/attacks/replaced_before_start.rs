//! The first run replaces `build` in its workspace by a link to `../secret`; the second, allowed to write `build`, is
//! to be led there. Every place is opened without following links and compared with what was seen; what bubblewrap made is
//! compared afterwards, before anything of the command runs.

use crate::sandbox::{Run, for_each_user, make_directory, write};
use sandbox_runtime::exec::linux::Defence;
use std::os::unix::fs::symlink;

#[test]
fn a_place_that_was_replaced_ends_the_run() {
    for_each_user(|user, scratch| {
        let build = scratch.join("build");
        make_directory(&build, user);
        make_directory(&scratch.join("secret"), user);
        let run = Run::policy("allow write $WORKSPACE/build", scratch, "touch build/x").as_user_of(user);
        run.succeeds();
        std::fs::rename(&build, scratch.join("old")).unwrap();
        for attack in ["link", "directory", "file", "nothing"] {
            match attack {
                "link" => symlink("secret", &build).unwrap(),
                "directory" => make_directory(&build, user),
                "file" => write(&build, "", user),
                _ => (),
            }
            assert_eq!(run.status(), 125, "{attack}");
            // What is gone bubblewrap misses by itself, in its own words.
            assert!(run.fails().contains("is not what it was") || run.bwrap, "{attack}");
            if attack == "link" {
                let open = run.clone().without(Defence::SameNode).without_landlock();
                open.succeeds();
                std::fs::remove_file(scratch.join("secret/x")).unwrap();
            }
            let _ = std::fs::remove_file(&build);
            let _ = std::fs::remove_dir(&build);
        }
        assert!(!scratch.join("secret/x").exists());
        // A link in the way of a mask is not followed either.
        symlink("secret", &build).unwrap();
        let masked = Run::shell("true").as_user_of(user).masked(&build);
        assert_eq!(masked.status(), 125);
    });
}

/// Whoever moves a secret away, and puts another file in its place, between the look and the mounts, leaves the mask over
/// the wrong one.
#[test]
fn a_mask_over_another_node_ends_the_run() {
    for_each_user(|user, scratch| {
        let make = |path: &std::path::Path, text: &str| match path.extension() {
            Some(_) => {
                make_directory(path, user);
                write(&path.join("key"), text, user);
            }
            None => write(path, text, user),
        };
        for name in ["secret", "secret.d"] {
            let (place, moved) = (scratch.join(name), scratch.join("moved"));
            make(&place, "secret\n");
            let run = Run::shell("cat moved moved/key").as_user_of(user).in_directory(scratch).masked(&place);
            std::fs::rename(&place, &moved).unwrap();
            make(&place, "decoy\n");
            assert_eq!(run.status(), 125);
            assert!(run.fails().contains("is not what it was"), "{}", run.fails());
            let output = run.without(Defence::SameNode).output();
            assert_eq!(String::from_utf8_lossy(&output.stdout), "secret\n");
            std::fs::remove_file(&place).or_else(|_| std::fs::remove_dir_all(&place)).unwrap();
            std::fs::remove_file(&moved).or_else(|_| std::fs::remove_dir_all(&moved)).unwrap();
        }
    });
}
