//! What a rule decides alone: each answer is checked by `decide` with and without the rule.

use super::policy;
use sandbox_runtime::analysis::{Alone, Budget, alone};
use sandbox_runtime::ir::{RuleId, decide};
use sandbox_runtime::vocabulary::Effect;
use std::collections::BTreeSet;

/// Of each rule, by its place, what it decides alone.
fn each(text: &str) -> Vec<String> {
    let policy = policy(text);
    let ids = (0..).map(RuleId).take(policy.rules.len());
    let one = |id: RuleId| {
        let rules = BTreeSet::from([id]);
        let without = policy.without(&rules);
        let allows = policy.rule(id).effect == Effect::Allow;
        match alone(&policy, &without, &rules, &mut Budget::new(1_000_000)) {
            Alone::Decides(access) => {
                assert_ne!(decide(&policy, &access).allowed, decide(&without, &access).allowed, "{access}");
                format!("decides {access}")
            }
            Alone::Covered(access) => {
                assert_eq!(decide(&policy, &access).allowed, allows, "{access}");
                assert_eq!(decide(&without, &access).allowed, allows, "{access}");
                format!("covered {access}")
            }
            Alone::Overruled(access) => {
                assert_ne!(decide(&policy, &access).allowed, allows, "{access}");
                format!("overruled {access}")
            }
            other => format!("{other:?}").to_lowercase(),
        }
    };
    ids.map(one).collect()
}

#[test]
fn paths() {
    let text = "\
default read deny
allow read /a
deny read /a/b
allow read /a/b/c
deny read /a/b/d
allow read /a/e
forbid read /a/f
allow read /a/f/g
deny write /a
allow env A
deny env A
";
    let expected = [
        "decides read /a",
        // `/a/b/d` has a rule of its own.
        "decides read /a/b",
        "decides read /a/b/c",
        "covered read /a/b/d",
        "covered read /a/e",
        "decides read /a/f",
        "overruled read /a/f/g",
        "covered write /a",
        "overruled env A",
        "decides env A",
    ];
    assert_eq!(each(text), expected);
}

#[test]
fn connections() {
    let text = "\
default read deny
allow connect *.example.com
allow connect a.example.com
deny connect b.example.com:443
allow connect 10.0.0.0/8:22
allow connect 10.1.0.0/16:22
deny connect 10.2.0.0/16:*
";
    let expected = [
        "decides connect x.example.com:80",
        // Who writes a name without a `*` means it at private addresses too.
        "decides connect a.example.com:80",
        "decides connect b.example.com:443",
        "decides connect 10.0.0.0:22",
        "covered connect 10.1.0.0:22",
        "decides connect 10.2.0.0:22",
    ];
    assert_eq!(each(text), expected);
}

#[test]
fn what_opens_reading_opens_writing_and_is_not_said_to_do_nothing() {
    let text = "\
default read allow
deny read /a
allow read /a/b
allow write /a/b
";
    assert_eq!(each(text), ["decides read /a", "decides read /a/b", "decides write /a/b"]);
}
