//! `*.example.com` where somebody may think that `example.com` is in it.

use super::broad_grant::suffix;
use super::is_given;
use crate::diagnostic::Diagnostic;
use crate::diagnostic::codes;
use crate::ir::{Access, Policy, Subject, decide, special};
use crate::sets::host::{Host, HostSet, Pattern};
use crate::sets::peer::{Endpoint, Protocol};
use crate::vocabulary::{Effect, Verb};

codes! {
    /// # `wildcard-apex`
    ///
    /// ## What it says
    /// A rule allows every name below a domain, and the domain itself is not allowed.
    ///
    /// ## Why
    /// `*.example.com` is every name below `example.com`, never that name itself. If that is what you want, nothing is wrong.
    ///
    /// ## Example
    /// ```policy
    /// srt 1
    /// use std/system
    /// default read deny
    /// allow connect *.example.com
    /// ```
    ///
    /// ## Use instead
    /// ```policy
    /// srt 1
    /// use std/system
    /// default read deny
    /// allow connect [example.com, *.example.com]
    /// ```
    pub WILDCARD_APEX = "wildcard-apex", Note;
}

/// One finding for each such rule.
pub fn check(policy: &Policy) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    for (_, rule) in policy.rules_of(Verb::Connect).filter(|(_, rule)| rule.effect == Effect::Allow && is_given(rule)) {
        let Subject::Peers(peers) = &rule.subject else { continue };
        let Endpoint::Hosts(hosts) = &peers.endpoint else { continue };
        // A table is not written by hand.
        let [Pattern::Labels { below: true, labels }] = &hosts.include[..] else { continue };
        let apex = Pattern::Labels { below: false, labels: labels.clone() };
        // A suffix below which anyone has names is nobody's to connect to.
        if labels.len() < 2 || !apex.is_literal() || suffix::open(&hosts.include[0]).is_some() {
            continue;
        }
        let Some(Host::Name(name)) = HostSet::from(apex).shortest() else { continue };
        let Some(port) = peers.ports.shortest() else { continue };
        let protocol = if peers.tcp { Protocol::Tcp } else { Protocol::Udp };
        let access = Access::Connect { name: Some(name.clone()), address: special::NOMINAL, port, protocol };
        let verdict = decide(policy, &access);
        // What a rule denies, somebody has thought of.
        if verdict.allowed || !verdict.matching.is_empty() {
            continue;
        }
        let message = format!("`{name}` itself is not allowed by this, nor by anything else");
        let diagnostic = Diagnostic::new(&WILDCARD_APEX, message).label(rule.span, "the names below it alone");
        let diagnostic = diagnostic.witness(access.to_string());
        found.push(diagnostic.help(format!("add `{name}` if it is meant too")));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lint::tests::{lines, symbolic};

    #[test]
    fn the_name_itself_is_not_below_it() {
        for (rules, expected) in [
            ("allow connect *.example.com", true),
            ("allow connect *.example.com:8443", true),
            ("allow connect [example.com, *.example.com]", false),
            ("allow connect *.example.com\ndeny connect example.com", false),
            ("allow connect [*, *.example.com]", false),
            ("allow connect *.github.io", false),
            ("allow connect [*.com, api-*.example.com, example.com]", false),
        ] {
            let text = format!("srt 1\ndefault read deny\n{rules}\n");
            let policy = symbolic(&text);
            assert_eq!(!lines(&policy, &text, &check(&policy)).is_empty(), expected, "{rules}");
        }
    }
}
