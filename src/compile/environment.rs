//! The environment of a command: what of its caller's a policy lets in, and what the policy sets.
//!
//! Pure: whoever starts the command has the caller's environment, and adds what a proxy needs.

use crate::ir::{Access, BoundPolicy, Policy, decide};
use crate::sets::path::AbsPath;
use crate::vocabulary::Verb;
use std::ffi::OsString;

/// The variables of a command, of those that its caller has. `TMPDIR` is the run's own place where the policy lets that be
/// written, whatever the caller's is.
pub fn environment(
    policy: &BoundPolicy,
    caller: impl IntoIterator<Item = (OsString, OsString)>,
) -> Vec<(OsString, OsString)> {
    // Rules of other verbs have no say in a name: they are looked through once, not once a variable.
    let mut names = Policy::new(policy.system, policy.default_read.clone());
    names.default_env.clone_from(&policy.default_env);
    names.rules = policy.rules_of(Verb::Env).map(|(_, rule)| rule.clone()).collect();
    let passes = |name: &OsString| match name.to_str() {
        // What cannot be named in a policy cannot be allowed by one.
        None => false,
        Some(name) => {
            !policy.set.contains_key(name) && name != "TMPDIR" && decide(&names, &Access::Env(name.to_owned())).allowed
        }
    };
    let mut environment: Vec<_> = caller.into_iter().filter(|(name, _)| passes(name)).collect();
    // Named only where it is there: a program falls back to what it knows, and to nothing that does not exist.
    let private = policy.facts.variables.get("TMP").filter(|place| {
        let writable = |place| decide(policy, &Access::Write(place)).allowed;
        !policy.set.contains_key("TMPDIR") && AbsPath::parse(place).is_ok_and(writable)
    });
    environment.extend(private.map(|place| ("TMPDIR".into(), place.into())));
    environment.extend(policy.set.iter().map(|(name, setting)| (name.into(), setting.value.clone().into())));
    environment
}
