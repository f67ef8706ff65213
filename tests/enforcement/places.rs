//! A root of the run's own, and what is laid out in it.

use crate::sandbox::{Run, bytes, for_each_native_user, for_each_user, make_directory, node, write};
use sandbox_runtime::backend::bubblewrap::{Mount, Root};
use std::path::Path;

/// An empty root with a C library and a shell.
fn closed(script: &str) -> Run {
    let mut run = Run::shell(script);
    run.plan.root = Root::Empty { listable: false };
    for (place, listable) in [("/etc", false), ("/var", true), ("/var/tmp", true)] {
        run.plan.mounts.push(Mount::Directory { path: place.into(), listable });
    }
    for place in ["/usr", "/etc/alternatives", "/etc/ld.so.cache"] {
        run = run.bound(Path::new(place), false, true);
    }
    for name in ["bin", "lib", "lib64", "sbin"] {
        let path = Path::new("/").join(name);
        if path.is_symlink() {
            let to = bytes(&std::fs::read_link(&path).unwrap());
            run.plan.mounts.push(Mount::Symlink { path: bytes(&path), to });
        } else if path.exists() {
            run = run.bound(&path, false, true);
        }
    }
    run
}

#[test]
fn what_is_not_named_is_not_there() {
    for_each_user(|user, scratch| {
        write(&scratch.join("file"), "text\n", user);
        let mut run = closed(
            "cat file; echo x > new; cat /etc/passwd; ls / 2>/dev/null; ls /etc 2>/dev/null; ls /root /home /var/log 2>/dev/null; \
             touch /x /etc/x /etc/passwd 2>/dev/null; mkdir /new 2>/dev/null; chmod 700 / 2>/dev/null; stat -c %a / /etc /var",
        )
        .as_user_of(user)
        .writing(scratch)
        .in_directory(scratch);
        run.plan.mounts.push(Mount::File { path: b"/etc/passwd".to_vec(), text: b"me:x:0:0::/:/bin/sh\n".to_vec() });
        assert_eq!(run.succeeds(), "text\nme:x:0:0::/:/bin/sh\n111\n111\n555\n");
        assert!(scratch.join("new").exists());
        let mut names: Vec<_> = std::fs::read_dir(scratch).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["file", "new"]);
    });
}

#[test]
fn nothing_is_ever_made_on_the_host() {
    for_each_native_user(|user, scratch| {
        // The plan wants a place that is gone: refused, and not made anew.
        let mut run = Run::shell("true").as_user_of(user).writing(scratch);
        for mount in [
            Mount::Private { path: bytes(&scratch.join("a/b")), mode: 0o700, exec: true },
            Mount::MaskFile { path: bytes(&scratch.join("a")), node: node(scratch) },
            Mount::EmptyDirectory { path: bytes(&scratch.join("a")), node: None, listable: true },
            Mount::File { path: bytes(&scratch.join("a")), text: vec![] },
            Mount::Symlink { path: bytes(&scratch.join("a")), to: b"x".to_vec() },
            Mount::Directory { path: bytes(&scratch.join("a")), listable: true },
        ] {
            run.plan.mounts.push(mount);
            assert_eq!(run.status(), 125);
            run.plan.mounts.pop();
        }
        assert_eq!(std::fs::read_dir(scratch).unwrap().count(), 0);
    });
}

#[test]
fn a_hole_in_a_hidden_directory() {
    for_each_user(|user, scratch| {
        let (hidden, open) = (scratch.join("hidden"), scratch.join("hidden/deep/open"));
        make_directory(&hidden, user);
        make_directory(&hidden.join("deep"), user);
        make_directory(&open, user);
        write(&open.join("file"), "text\n", user);
        write(&hidden.join("secret"), "secret\n", user);
        let run = Run::shell("cat hidden/deep/open/file hidden/secret; echo x > hidden/deep/open/new; touch hidden/x hidden/deep/x; ls hidden/deep")
            .as_user_of(user)
            .writing(scratch)
            .masked(&hidden)
            .writing(&open)
            .in_directory(scratch);
        assert_eq!(String::from_utf8(run.output().stdout).unwrap(), "text\nopen\n");
        assert!(open.join("new").exists() && !hidden.join("x").exists());
    });
}

#[test]
fn nothing_runs_where_running_is_denied() {
    for_each_user(|user, scratch| {
        make_directory(&scratch.join("bin"), user);
        for place in ["here", "bin/there"] {
            std::fs::copy("/bin/true", scratch.join(place)).unwrap();
        }
        let run = Run::shell("./here; /lib64/ld-linux-x86-64.so.2 ./here; bin/there && echo there")
            .as_user_of(user)
            .bound(scratch, true, false)
            .bound(&scratch.join("bin"), true, true)
            .in_directory(scratch);
        let output = run.output();
        assert_eq!(String::from_utf8_lossy(&output.stdout), "there\n");
        assert_eq!(String::from_utf8_lossy(&output.stderr).matches("./here: ").count(), 3, "{output:?}");
    });
}

#[test]
fn a_read_only_mount_inside_a_writable_place_stays_so() {
    if !nix::unistd::geteuid().is_root() {
        return;
    }
    for_each_user(|user, scratch| {
        let inner = scratch.join("inner");
        make_directory(&inner, user);
        let mount = |arguments: &[&str]| {
            assert!(std::process::Command::new("mount").args(arguments).arg(&inner).status().unwrap().success());
        };
        mount(&["-t", "tmpfs", "none"]);
        mount(&["-o", "remount,ro"]);
        let run = Run::shell("touch here && ! touch inner/x").as_user_of(user).writing(scratch).in_directory(scratch);
        let output = run.output();
        assert!(std::process::Command::new("umount").arg(&inner).status().unwrap().success());
        assert!(output.status.success(), "{output:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("Read-only"));
    });
}
