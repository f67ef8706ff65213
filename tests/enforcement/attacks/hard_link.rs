//! A hard link made inside gives a denied file a second name, which no rule is about. A mount of its own keeps a file from
//! being linked across.

use crate::sandbox::{Run, for_each_user, write};

#[test]
fn a_denied_file_gets_no_second_name() {
    for_each_user(|user, scratch| {
        write(&scratch.join("secret"), "secret\n", user);
        write(&scratch.join("closed"), "closed\n", user);
        let script = "ln secret s && cat s; ln closed c && echo x > c; mv secret t; cat t";
        let rules = "allow write $WORKSPACE\ndeny read $WORKSPACE/secret\ndeny write $WORKSPACE/closed";
        let run = Run::policy(rules, scratch, script).as_user_of(user);
        assert_eq!(run.output().stdout, b"");
        assert_eq!(std::fs::read_to_string(scratch.join("closed")).unwrap(), "closed\n");
        assert!(!scratch.join("s").exists() && !scratch.join("c").exists());
        let open = Run::policy("allow write $WORKSPACE", scratch, script).as_user_of(user);
        assert_eq!(open.succeeds(), "secret\nsecret\n");
        assert_eq!(std::fs::read_to_string(scratch.join("closed")).unwrap(), "x\n");
    });
}
