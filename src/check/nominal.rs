//! The machine that a check stands on when it looks at none: the nominal one, on which every variable of the policy has a
//! value, since which value it has is not the policy's matter.

use crate::host::{Host, Listing, nominal};
use crate::ir::{MountFact, Node, Policy, Subject};
use crate::lint::assumed_place;
use crate::sets::path::{AbsPath, Start};
use crate::sets::{host, peer::Endpoint};
use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;

/// The nominal machine, and a value for each variable that it has none of.
pub struct Nominal {
    machine: Listing,
    /// What whoever asks has given variables, which counts before the machine's own.
    given: BTreeMap<String, String>,
    values: BTreeMap<String, String>,
}

impl Nominal {
    /// A machine for this policy: what an `assume` says of a variable holds there; any other has a place, or a name, of
    /// its own.
    pub fn of(policy: &Policy) -> Self {
        let machine = nominal();
        let mut values = BTreeMap::new();
        for assume in policy.assumes.iter().filter(|assume| assume.inside) {
            let place = assumed_place(policy, assume).map(|place| match &place.start {
                Start::Variable(name) => machine
                    .variable(name)
                    .and_then(|value| AbsPath::parse(value).ok())
                    .map_or(place.clone(), |above| above.join_all(&place.segments)),
                _ => place,
            });
            values.extend(place.map(|place| (assume.variable.clone(), place.to_string())));
        }
        let rules = policy.rules.iter().map(|rule| &rule.subject);
        let expects = policy.expects.iter().map(|expect| &expect.subject);
        let ignores = policy.ignores.iter().map(|ignore| &ignore.subject);
        for subject in rules.chain(expects).chain(ignores) {
            match subject {
                Subject::Paths(set) => {
                    for pattern in set.patterns() {
                        if let Start::Variable(name) = &pattern.start {
                            values.entry(name.to_string()).or_insert_with(|| format!("/srv/{name}"));
                        }
                    }
                }
                Subject::Peers(set) => {
                    let Endpoint::Hosts(hosts) = &set.endpoint else { continue };
                    for pattern in hosts.include.iter().chain(&hosts.exclude) {
                        if let host::Pattern::Variable(name) = pattern {
                            // RFC 2606: no such host exists.
                            let label = name.replace(['.', '_'], "-").to_lowercase();
                            values.entry(name.clone()).or_insert_with(|| format!("{label}.example"));
                        }
                    }
                }
                Subject::Names(_) => {}
            }
        }
        Self { machine, given: BTreeMap::new(), values }
    }

    /// With these values of variables.
    #[must_use]
    pub fn with(self, given: BTreeMap<String, String>) -> Self {
        Self { given, ..self }
    }
}

impl Host for Nominal {
    fn variable(&self, name: &str) -> Option<String> {
        let given = self.given.get(name).cloned();
        given.or_else(|| self.machine.variable(name)).or_else(|| self.values.get(name).cloned())
    }

    fn node(&self, path: &AbsPath) -> io::Result<Option<Node>> {
        self.machine.node(path)
    }

    fn read_link(&self, path: &AbsPath) -> io::Result<Vec<u8>> {
        self.machine.read_link(path)
    }

    fn list(&self, path: &AbsPath) -> io::Result<Vec<(Vec<u8>, bool)>> {
        self.machine.list(path)
    }

    fn names(&self, path: &AbsPath, most: usize) -> Option<Vec<Vec<u8>>> {
        self.machine.names(path, most)
    }

    fn file(&self, _: &str) -> Vec<AbsPath> {
        Vec::new()
    }

    fn mounts(&self) -> &[MountFact] {
        self.machine.mounts()
    }

    fn addresses(&self) -> &[IpAddr] {
        self.machine.addresses()
    }
}
