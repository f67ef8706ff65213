//! The places that the lints know by name, as patterns of the policy at hand.
//!
//! The tables of the lints spell them as the language does. Where the policy is bound, a variable stands for its value
//! here, links on the way followed; else it stays a variable.

use crate::ir::Policy;
use crate::sets::path::{AbsPath, PathSet, Pattern, Start};

/// As many links as are followed one after the other (path_resolution(7)).
const LINKS: usize = 40;

/// The tree of a place in a table: `/run/docker.sock`, `~/.ssh`, `$RUNTIME/bus`, `**/x`, with `*` in a segment.
pub(super) fn tree(text: &str, policy: &Policy) -> Pattern {
    bound(Pattern::written(text), policy)
}

/// The trees of several places, as one set.
pub(super) fn trees<'t>(texts: impl IntoIterator<Item = &'t str>, policy: &Policy) -> PathSet {
    PathSet { include: texts.into_iter().map(|text| tree(text, policy)).collect(), exclude: Vec::new() }
}

/// The place of a variable in this policy.
pub(super) fn variable(name: &str, policy: &Policy) -> AbsPath {
    match policy.facts.variables.get(name).and_then(|value| AbsPath::parse(value).ok()) {
        Some(place) => resolved(place, policy),
        None => AbsPath::variable(name),
    }
}

/// A pattern with its variable's value, where the policy is bound.
pub(super) fn bound(pattern: Pattern, policy: &Policy) -> Pattern {
    match &pattern.start {
        Start::Variable(name) => {
            let name = name.clone();
            pattern.bound(&name, &variable(&name, policy))
        }
        _ => pattern,
    }
}

/// Where a path leads by the links that `bind` met.
pub(super) fn resolved(mut place: AbsPath, policy: &Policy) -> AbsPath {
    for _ in 0..LINKS {
        let mut links = policy.facts.links.iter();
        let Some(next) = links.find_map(|link| Some(link.to.join_all(place.below(&link.at)?))) else { break };
        place = next;
    }
    place
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::lint::tests::{bound, symbolic};

    #[test]
    fn places_are_those_of_the_policy() {
        let text = "srt 1\ndefault read deny\nallow read ~/x\n";
        let (here, anywhere) = (bound(text), symbolic(text));
        for (place, on_the_machine, nowhere) in [
            ("~/.ssh", "/home/user/.ssh", "$HOME/.ssh"),
            ("~", "/home/user", "$HOME"),
            ("/run/x.sock", "/run/x.sock", "/run/x.sock"),
            ("$env.SSH_AUTH_SOCK", "$env.SSH_AUTH_SOCK", "$env.SSH_AUTH_SOCK"),
            ("/run/user/*/bus", "/run/user/*/bus", "/run/user/*/bus"),
            ("**/.git/hooks", "**/.git/hooks", "**/.git/hooks"),
        ] {
            assert_eq!(tree(place, &here).to_string(), on_the_machine);
            assert_eq!(tree(place, &anywhere).to_string(), nowhere);
        }
    }
}
