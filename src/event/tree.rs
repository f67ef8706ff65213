//! Kinds of events by where they were: directories with what lies in them, domains with the names below them.

use super::{Event, Kind, Outcome};
use std::collections::BTreeMap;

/// So many levels are shown one below the other; what lies deeper stands in the last of them. Whoever made the paths may have
/// made them deep.
const DEEPEST: usize = 40;

/// A place, what happened there, and the places in it.
#[derive(Default)]
pub(super) struct Node<'k> {
    pub kinds: Vec<&'k Kind>,
    pub children: BTreeMap<String, Node<'k>>,
    pub counts: Counts,
}

/// How many events had which outcome.
#[derive(Default, Clone, Copy)]
pub(super) struct Counts {
    pub refused: u64,
    pub predicted: u64,
    pub allowed: u64,
}

impl Counts {
    pub fn add(&mut self, kind: &Kind) {
        let outcome = match &kind.event {
            Event::Violation(violation) => violation.outcome,
            Event::Connection(connection) => connection.outcome,
            Event::Limit(_) => super::Outcome::Refused,
            Event::Dropped { .. } => return,
        };
        *match outcome {
            Outcome::Refused => &mut self.refused,
            Outcome::Predicted => &mut self.predicted,
            Outcome::Allowed => &mut self.allowed,
        } += kind.count;
    }
}

/// Where an event was.
pub(super) enum Place<'e> {
    Path(&'e str),
    Host(&'e str),
    /// Somewhere that nothing names.
    Nowhere,
}

pub(super) fn place(event: &Event) -> Place<'_> {
    match event {
        Event::Connection(it) => named(it.host.as_deref(), it.path.as_deref()),
        Event::Violation(it) => named(it.host.as_deref(), it.path.as_deref()),
        Event::Limit(_) | Event::Dropped { .. } => Place::Nowhere,
    }
}

fn named<'e>(host: Option<&'e str>, path: Option<&'e str>) -> Place<'e> {
    match (host, path) {
        (Some(host), _) => Place::Host(host),
        (None, Some(path)) => Place::Path(path),
        (None, None) => Place::Nowhere,
    }
}

/// The names on the way to a path, as in `/`, `home`, `you`.
pub(super) fn of_path(path: &str) -> Vec<String> {
    let rest = path.strip_prefix('/').unwrap_or(path);
    let mut steps: Vec<&str> = vec!["/"];
    steps.extend(rest.splitn(DEEPEST, '/').filter(|name| !name.is_empty()));
    steps.into_iter().map(str::to_owned).collect()
}

/// The domains on the way to a host, as in `com`, `example.com`, `api.example.com`; an address is one.
pub(super) fn of_host(host: &str) -> Vec<String> {
    if host.parse::<std::net::IpAddr>().is_ok() {
        return vec![host.to_owned()];
    }
    let dots = host.rmatch_indices('.').map(|(at, _)| host[at + 1..].to_owned());
    dots.take(DEEPEST).chain([host.to_owned()]).collect()
}

impl<'k> Node<'k> {
    /// Adds a kind at the end of some steps.
    pub fn add(&mut self, steps: Vec<String>, kind: &'k Kind) {
        let mut node = self;
        node.counts.add(kind);
        for step in steps {
            node = node.children.entry(step).or_default();
            node.counts.add(kind);
        }
        node.kinds.push(kind);
    }

    /// Makes one place of those in which nothing is but one other; `join` names it.
    pub fn joined(self, join: fn(&str, &str) -> String) -> Self {
        let children = self.children.into_iter().map(|(mut name, mut child)| {
            while child.kinds.is_empty() && child.children.len() == 1 {
                let Some((inner, node)) = child.children.pop_first() else { break };
                (name, child) = (join(&name, &inner), node);
            }
            (name, child.joined(join))
        });
        Node { children: children.collect(), ..self }
    }
}

/// A directory and a name in it.
pub(super) fn join_path(directory: &str, name: &str) -> String {
    let slash = if directory.ends_with('/') { "" } else { "/" };
    format!("{directory}{slash}{name}")
}

#[cfg(test)]
mod tests {
    use super::super::Tally;
    use super::super::tests::refused;
    use super::*;

    fn show(node: &Node<'_>, depth: usize) -> Vec<String> {
        let line = |name: &String, child: &Node<'_>| format!("{}{name} {}", "  ".repeat(depth), child.counts.refused);
        let lines = |(name, child): (&String, _)| [vec![line(name, child)], show(child, depth + 1)].concat();
        node.children.iter().flat_map(lines).collect()
    }

    #[test]
    fn places_that_hold_one_other_are_one() {
        let mut tally = Tally::new(9);
        for path in ["/home/you/project/a", "/home/you/project/b/c", "/home/you/project/b/c", "/etc", "/"] {
            let mut violation = refused("", 0);
            violation.path = Some(path.to_owned());
            tally.add(Event::Violation(violation));
        }
        let mut root = Node::default();
        for kind in tally.kinds() {
            let Event::Violation(violation) = &kind.event else { continue };
            root.add(of_path(violation.path.as_deref().unwrap_or_default()), kind);
        }
        let expected = ["/ 5", "  etc 1", "  home/you/project 3", "    a 1", "    b/c 2"];
        assert_eq!(show(&root.joined(join_path), 0), expected);
    }

    #[test]
    fn hosts_stand_below_their_domains() {
        assert_eq!(of_host("api.example.com"), ["com", "example.com", "api.example.com"]);
        assert_eq!(of_host("localhost"), ["localhost"]);
        for address in ["10.0.0.7", "2001:db8::1"] {
            assert_eq!(of_host(address), [address]);
        }
    }

    #[test]
    fn what_is_too_deep_stands_in_the_last_place() {
        let steps = of_path(&"/a".repeat(2000));
        assert_eq!(steps.len(), DEEPEST + 1);
        assert_eq!(of_host(&"a.".repeat(2000)).len(), DEEPEST + 1);
    }
}
