//! The environment of a command: what of its caller's a policy lets in, and what the policy sets.
//!
//! Pure: whoever starts the command has the caller's environment, and adds what a proxy needs.

use crate::ir::{Access, BoundPolicy, Policy, Subject, decide};
use crate::sets::path::AbsPath;
use crate::vocabulary::{System, Verb};
use std::collections::BTreeSet;
use std::ffi::OsString;

/// The variables of a command, of those that its caller has. `TMPDIR` (on Windows `TEMP` and `TMP` too) is the run's own place
/// where the policy lets that be written, whatever the caller's is. On Windows names are compared without case.
pub fn environment(
    policy: &BoundPolicy,
    caller: impl IntoIterator<Item = (OsString, OsString)>,
) -> Vec<(OsString, OsString)> {
    // Rules of other verbs have no say in a name: they are looked through once, not once a variable.
    let mut names = Policy::new(policy.system, policy.default_read.clone());
    names.default_env.clone_from(&policy.default_env);
    names.rules = policy.rules_of(Verb::Env).map(|(_, rule)| rule.clone()).collect();
    let windows = policy.system == System::Windows;
    for rule in names.rules.iter_mut().filter(|_| windows) {
        if let Subject::Names(set) = &mut rule.subject {
            *set = set.in_upper_case();
        }
    }
    let spelled = |name: &str| if windows { name.to_uppercase() } else { name.to_owned() };
    let own: &[&str] = if windows { &["TMPDIR", "TEMP", "TMP"] } else { &["TMPDIR"] };
    let set: BTreeSet<String> = policy.set.keys().map(|name| spelled(name)).collect();
    let passes = |name: &OsString| match name.to_str().map(spelled) {
        // What cannot be named in a policy cannot be allowed by one.
        None => false,
        Some(name) => !set.contains(&name) && !own.contains(&&*name) && decide(&names, &Access::Env(name)).allowed,
    };
    let mut environment: Vec<_> = caller.into_iter().filter(|(name, _)| passes(name)).collect();
    // Named only where it is there: a program falls back to what it knows, and to nothing that does not exist.
    let private = policy.facts.variables.get("TMP").filter(|place| {
        let writable = |place| decide(policy, &Access::Write(place)).allowed;
        AbsPath::parse(place).is_ok_and(writable)
    });
    let named = own.iter().filter(|name| !set.contains(**name));
    environment
        .extend(private.into_iter().flat_map(|place| named.clone().map(move |name| ((*name).into(), place.into()))));
    environment.extend(policy.set.iter().map(|(name, setting)| (name.into(), setting.value.clone().into())));
    environment
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::environment;
    use crate::bind::bind;
    use crate::diagnostic::any_error;
    use crate::host::Listing;
    use crate::resolve::{Options, resolve, tests::Texts};
    use crate::source::Sources;
    use crate::vocabulary::System;
    use std::collections::BTreeMap;

    fn passed(system: System, listing: &str, text: &str, caller: &[(&str, &str)]) -> Vec<(String, String)> {
        let mut sources = Sources::default();
        let given = sources.add("given", format!("srt 1\ndefault read deny\n{text}\n"));
        let (policy, said) =
            resolve(&[given], &mut sources, &Texts(&[]), &Options { system, defines: BTreeMap::new() });
        assert!(!any_error(&said), "{said:?}");
        let (bound, more) = bind(policy.unwrap_or_else(|| panic!("{said:?}")), &Listing::parse(listing).unwrap());
        let bound = bound.unwrap_or_else(|| panic!("{more:?}"));
        let caller = caller.iter().map(|(name, value)| ((*name).into(), (*value).into()));
        let text = |text: std::ffi::OsString| text.into_string().unwrap();
        environment(&bound, caller).into_iter().map(|(name, value)| (text(name), text(value))).collect()
    }

    const WINDOWS: &str = "d C:/Users/u\nd C:/w\nd C:/t\nv HOME=C:/Users/u\nv WORKSPACE=C:/w\nv TMP=C:/t\n";

    #[test]
    fn on_windows_names_have_no_case_and_temporary_files_three_names() {
        let caller = [("Path", "p"), ("gh_Token", "s"), ("Temp", "C:/else"), ("x1", "1"), ("X9", "9"), ("set", "old")];
        let text =
            "default env deny\nallow env [PATH, *_TOKEN, x*]\ndeny env GH_*\nset SET=new\nallow read, write $TMP";
        let mut passed = passed(System::Windows, WINDOWS, text, &caller);
        passed.sort();
        let expected = [
            ("Path", "p"),
            ("SET", "new"),
            ("TEMP", "C:/t"),
            ("TMP", "C:/t"),
            ("TMPDIR", "C:/t"),
            ("X9", "9"),
            ("x1", "1"),
        ];
        assert_eq!(passed, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
    }

    #[test]
    fn elsewhere_names_are_what_they_are() {
        let listing = "d /home/u\nd /w\nv HOME=/home/u\nv WORKSPACE=/w\n";
        let caller = [("Path", "p"), ("PATH", "q"), ("TEMP", "t"), ("TMPDIR", "/else")];
        let passed = passed(System::Linux, listing, "default env deny\nallow env [PATH, TEMP]", &caller);
        assert_eq!(passed, [("PATH", "q"), ("TEMP", "t")].map(|(name, value)| (name.to_owned(), value.to_owned())));
    }
}
