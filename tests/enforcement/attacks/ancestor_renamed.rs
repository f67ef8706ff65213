//! `mv .git .git.old; mkdir -p .git/hooks`: a mount on `.git/hooks` moves away with its parent, unless the parent is
//! pinned.

use crate::sandbox::{Run, for_each_user, make_directory};

#[test]
fn a_pinned_parent_cannot_be_renamed() {
    for_each_user(|user, scratch| {
        let (git, hooks) = (scratch.join(".git"), scratch.join(".git/hooks"));
        make_directory(&git, user);
        make_directory(&hooks, user);
        let attack = "mv .git .git.old && mkdir -p .git/hooks && echo x > .git/hooks/pre-commit";
        let rules = "allow write $WORKSPACE\ndeny write $WORKSPACE/.git/hooks";
        let defended = Run::policy(rules, scratch, attack).as_user_of(user);
        assert!(defended.fails().contains("busy"));
        assert!(!hooks.join("pre-commit").exists());
        defended.without_mount(git.to_str().unwrap()).succeeds();
        assert!(hooks.join("pre-commit").exists());
    });
}
