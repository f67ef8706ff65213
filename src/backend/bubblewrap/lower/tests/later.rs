//! Names that are not there yet: what is said where several rules speak of one.

use super::*;
use crate::backend::bubblewrap::Watch;

/// A directory can be made under a name that is opened for itself alone, and a file in that.
#[test]
fn what_is_opened_exactly_is_not_opened_below() {
    let statements = ["deny read /c", "allow read, write exact /c/*"];
    let bound = bind(policy(Effect::Deny, rules(&statements)), &Listing::new(&["/c/a"]));
    let lowered = lower(&bound, &Needs::default()).unwrap();
    let gap = lowered.gaps.iter().find(|gap| gap.code.name == "later-names").unwrap();
    assert!(gap.witness.as_deref().unwrap().starts_with("read /c/"), "{gap:?}");
    let performs = Needs { performs: Watch::Writes, errors_alone: true, ..Needs::default() };
    assert_eq!(lower(&bound, &performs).unwrap().plan.syscalls.performed, Watch::Writes);
}

/// The one directory has two names, and what may not be made by the one may not be by the other.
#[test]
fn later_names_are_denied_under_every_name() {
    let mut machine = Listing::new(&["/a/b/", "/m/b/"]);
    machine.alias("/a", "/m");
    let bound = bind(policy(Effect::Allow, rules(&["allow write /m/b", "deny read /a/b/a"])), &machine);
    let lowered = lower(&bound, &Needs::default()).unwrap();
    let gap = lowered.gaps.iter().find(|gap| gap.code.name == "later-names").unwrap();
    assert_eq!(gap.witness.as_deref(), Some("read /m/b/a"));
    let performs = Needs { performs: Watch::Writes, errors_alone: true, ..Needs::default() };
    assert_eq!(lower(&bound, &performs).unwrap().plan.syscalls.performed, Watch::Writes);
}

/// Names that none of a pattern's first instances is, since other rules open those.
#[test]
fn a_name_between_several_patterns_is_found() {
    let deny = Effect::Deny;
    for (default, machine, statements, rule, witness) in [
        (Effect::Allow, "/b/", &["allow write /b/a*", "allow write /b except /b/[ab]*"][..], 1, "write /b/b"),
        (
            deny,
            "/a/a/",
            &["deny read /[ab]*/[ab]*", "allow read /a/[ab]* except /a/?", "allow read, write /[ab]*"],
            0,
            "read /a/b",
        ),
        (deny, "/b/a", &["allow read /b/*/a", "allow read, write /b", "deny read /**/a"], 3, "read /b/b/x/a"),
        (deny, "/c/a", &["allow read /c except /**/a/b", "allow read, write /c except /?/b"], 0, "read /c/b/a/b"),
    ] {
        let bound = bind(policy(default, rules(statements)), &Listing::new(&[machine]));
        let lowered = lower(&bound, &Needs::default()).unwrap();
        let mut gaps = lowered.gaps.iter().filter(|gap| gap.code.name == "later-names");
        let gap = gaps.find(|gap| gap.span() == Some(span(rule))).unwrap_or_else(|| panic!("{statements:?}"));
        assert_eq!(gap.witness.as_deref(), Some(witness), "{statements:?}");
        let performs = Needs { performs: Watch::Writes, errors_alone: true, ..Needs::default() };
        assert_eq!(lower(&bound, &performs).unwrap().plan.syscalls.performed, Watch::Writes, "{statements:?}");
    }
}
