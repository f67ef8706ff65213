//! Host names that look like others: letters of several scripts in one label, or of another script that look Latin.
//!
//! Whether a name is spelled canonically at all has been asked when it was read.

use super::{is_given, listed};
use crate::diagnostic::Diagnostic;
use crate::diagnostic::codes;
use crate::ir::{Access, Policy, Subject, decide, special};
use crate::sets::host::{Host, HostSet, Label, Pattern, readable};
use crate::sets::peer::{Endpoint, PeerSet, Protocol};
use crate::vocabulary::Effect;
use std::collections::BTreeSet;
use unicode_script::{Script, UnicodeScript};

codes! {
    /// # `mixed-script`
    ///
    /// ## What it says
    /// A rule allows a host whose name mixes letters of several scripts, or is made of letters that look Latin and are not.
    ///
    /// ## Why
    /// A reader takes it for another host, the one that it was made to resemble. The compiler compares names in the form in which
    /// they are looked up, which begins with `xn--`, and is not deceived; the reader of the policy may be.
    ///
    /// ## Example
    /// The first letter is a Cyrillic one:
    /// ```policy
    /// srt 1
    /// use std/system
    /// default read deny
    /// allow connect аpple.example
    /// ```
    ///
    /// ## Use instead
    /// The host that was meant; or, if it is this one, the form in which it is looked up, accepted by a comment.
    /// ```policy
    /// srt 1
    /// use std/system
    /// default read deny
    /// allow connect apple.example
    /// ```
    pub MIXED_SCRIPT = "mixed-script", Warning;
}

/// Letters of other scripts that look like a Latin one (Unicode UTS 39, confusables.txt).
const LOOK_LATIN: &[(char, char)] = &[
    ('а', 'a'),
    ('с', 'c'),
    ('ԁ', 'd'),
    ('е', 'e'),
    ('һ', 'h'),
    ('і', 'i'),
    ('ј', 'j'),
    ('ӏ', 'l'),
    ('о', 'o'),
    ('р', 'p'),
    ('ԛ', 'q'),
    ('ѕ', 's'),
    ('ѵ', 'v'),
    ('ԝ', 'w'),
    ('х', 'x'),
    ('у', 'y'),
    ('ο', 'o'),
    ('ν', 'v'),
    ('α', 'a'),
    ('ι', 'i'),
    ('ρ', 'p'),
    ('ս', 'u'),
    ('օ', 'o'),
    ('հ', 'h'),
    ('ո', 'n'),
];

/// One finding for each rule that allows such a host.
pub fn check(policy: &Policy) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    for rule in policy.rules.iter().filter(|rule| rule.effect == Effect::Allow && is_given(rule)) {
        let Subject::Peers(peers) = &rule.subject else { continue };
        let Endpoint::Hosts(hosts) = &peers.endpoint else { continue };
        let Some((label, why, named)) = hosts.include.iter().find_map(|pattern| match pattern {
            Pattern::Table(table) => {
                let mut deceiving = table.international().filter_map(|entry| Some((deceiving(&entry)?, entry)));
                let ((label, why), entry) = deceiving.next()?;
                Some((label, format!("{why}{}", super::more_lines(table, deceiving.count())), entry))
            }
            _ => deceiving(pattern).map(|(label, why)| (label, why, pattern.clone())),
        }) else {
            continue;
        };
        let message = format!("`{label}` {why}");
        let named = HostSet { include: vec![named], exclude: hosts.exclude.clone() };
        let access = connection(peers, &named).filter(|access| decide(policy, access).allowed);
        let line = access.as_ref().map(|access| listed(policy, rule, access)).unwrap_or_default();
        let mut diagnostic =
            Diagnostic::new(&MIXED_SCRIPT, message).label(rule.span, format!("may be taken for another host{line}"));
        diagnostic.witness = access.map(|access| access.to_string());
        found.push(
            diagnostic.help(format!("write the host that is meant; if it is this one, write `{label}`, and accept it")),
        );
    }
    found
}

/// A connection of a rule to one of some hosts.
fn connection(peers: &PeerSet, hosts: &HostSet) -> Option<Access> {
    let Host::Name(name) = hosts.shortest()? else { return None };
    let protocol = if peers.tcp { Protocol::Tcp } else { Protocol::Udp };
    Some(Access::Connect { name: Some(name), address: special::NOMINAL, port: peers.ports.shortest()?, protocol })
}

/// A label that may be taken for another one, and why.
fn deceiving(pattern: &Pattern) -> Option<(String, String)> {
    let Pattern::Labels { labels, .. } = pattern else { return None };
    labels.iter().find_map(|label| {
        let Label::Literal(label) = label else { return None };
        Some((label.clone(), deceives(&readable(label)?)?))
    })
}

/// Why a label may be taken for another one.
fn deceives(label: &str) -> Option<String> {
    // What is written together in Chinese, Japanese and Korean counts as one, and goes with Latin (UTS 39, section 5.2).
    const TOGETHER: [Script; 5] = [Script::Han, Script::Hiragana, Script::Katakana, Script::Bopomofo, Script::Hangul];
    let scripts: BTreeSet<&str> = label
        .chars()
        .map(|letter| letter.script())
        .filter(|script| !matches!(script, Script::Common | Script::Inherited))
        .map(|script| if TOGETHER.contains(&script) { Script::Han.full_name() } else { script.full_name() })
        .collect();
    let one = scripts.len() < 2 || scripts.iter().all(|script| matches!(*script, "Latin" | "Han"));
    if !one {
        let names: Vec<&str> = scripts.into_iter().collect();
        return Some(format!("mixes letters of {}", names.join(" and ")));
    }
    let latin = |letter: char| {
        let looks = LOOK_LATIN.iter().find(|(known, _)| *known == letter).map(|(_, latin)| *latin);
        looks.or_else(|| letter.is_ascii().then_some(letter))
    };
    let looks: Option<String> = label.chars().map(latin).collect();
    looks.filter(|looks| looks != label).map(|looks| format!("looks like `{looks}`, and is not"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lint::tests::{lines, symbolic};

    #[test]
    fn names_that_look_like_others() {
        for (host, expected) in [
            ("аpple.example", "mixes letters of Cyrillic and Latin"),
            ("*.gооgle.example", "mixes letters of Cyrillic and Latin"),
            ("xn--pple-43d.example", "mixes letters of Cyrillic and Latin"),
            ("сосо.example", "looks like `coco`"),
            ("яндекс.example", ""),
            ("münchen.example", ""),
            ("日本テレビ.example", ""),
            ("apple.example", ""),
            ("*", ""),
        ] {
            let text = format!("srt 1\ndefault read deny\nallow connect {host}\n");
            let policy = symbolic(&text);
            let said = lines(&policy, &text, &check(&policy));
            assert!(if expected.is_empty() { said.is_empty() } else { said.contains(expected) }, "{host}: {said}");
        }
    }
}
