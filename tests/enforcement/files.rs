//! What mounts hold: reads, writes, masks, pins, and that nothing is left behind.

use crate::sandbox::{Run, for_each_native_user, for_each_user, make_directory, write};
use std::fs;

#[test]
fn the_host_is_read_only_and_the_private_places_are_not() {
    for_each_user(|user, scratch| {
        write(&scratch.join("file"), "old\n", user);
        let place = scratch.display();
        let run = Run::shell(&format!(
            "cat {place}/file; echo new > /tmp/srt-test-private && cat /tmp/srt-test-private; echo new > /dev/shm/x && echo shm; echo x > /dev/null; \
             echo new > {place}/file; touch {place}/other /etc/x"
        ));
        let output = run.as_user_of(user).output();
        assert_eq!(String::from_utf8_lossy(&output.stdout), "old\nnew\nshm\n");
        assert!(!output.status.success());
        assert_eq!(fs::read_to_string(scratch.join("file")).unwrap(), "old\n");
        assert!(!scratch.join("other").exists() && !std::path::Path::new("/tmp/srt-test-private").exists());
    });
}

#[test]
fn a_writable_place_is_writable_and_a_masked_file_is_nobodys() {
    for_each_user(|user, scratch| {
        write(&scratch.join("file"), "old\n", user);
        write(&scratch.join("secret"), "secret\n", user);
        make_directory(&scratch.join("hidden"), user);
        write(&scratch.join("hidden/inner"), "secret\n", user);
        let run = Run::shell(
            "echo new > file; cat secret; echo x > secret; echo x >> secret; chmod 644 secret; rm -f secret; mv secret other; \
             ls hidden; cat hidden/inner; echo x > hidden/y; rmdir hidden; stat -c %a hidden",
        )
        .as_user_of(user)
        .writing(scratch)
        .masked(&scratch.join("secret"))
        .masked(&scratch.join("hidden"))
        .in_directory(scratch);
        let output = run.output();
        assert_eq!(String::from_utf8_lossy(&output.stdout), "111\n", "{}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(fs::read_to_string(scratch.join("file")).unwrap(), "new\n");
        assert_eq!(fs::read_to_string(scratch.join("secret")).unwrap(), "secret\n");
        let mut names: Vec<_> = fs::read_dir(scratch).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["file", "hidden", "secret"]);
    });
}

#[test]
fn three_thousand_masks_hold() {
    for_each_native_user(|user, scratch| {
        let mut run = Run::shell(
            "for i in 0 1500 2999; do cat $i 2>/dev/null && echo leak; done; grep -c . /proc/self/mountinfo",
        )
        .as_user_of(user)
        .writing(scratch)
        .in_directory(scratch);
        for i in 0..3000 {
            let path = scratch.join(i.to_string());
            write(&path, "secret\n", user);
            run = run.masked(&path);
        }
        let count: usize = run.succeeds().trim().parse().unwrap();
        assert!(count > 3000, "{count}");
    });
}
