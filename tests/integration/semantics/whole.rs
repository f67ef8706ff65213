//! What a policy permits of a whole finite universe, as sets of its members: the brute force for questions about policies.

use super::brute::{Bits, Effect, Mistake, PORTS, Rule, Verb, What, World};
use std::collections::HashMap;

/// A policy in the terms of the brute force.
#[allow(clippy::struct_field_names)]
#[derive(Debug, Clone, Copy)]
pub struct Rules<'r> {
    pub rules: &'r [Rule],
    pub open_read: bool,
    pub open_env: bool,
}

/// One of each kind of port that [`PORTS`] tells apart.
const SOME: [u16; 5] = [1, 80, 81, 443, 444];

/// The connections of one universe: by name at each address, and by address alone.
#[derive(Debug, Clone)]
pub struct Connections {
    pub port: u16,
    pub udp: bool,
    /// For each address: the names that are permitted there.
    pub named: Vec<Bits>,
    /// The addresses that are permitted without a name.
    pub bare: Bits,
}

impl Bits {
    pub fn none(length: usize) -> Self {
        Self(vec![0; length.div_ceil(64)])
    }

    pub fn all(length: usize) -> Self {
        (0..length).map(|_| true).collect()
    }

    pub fn or(mut self, other: &Self) -> Self {
        self.0.iter_mut().zip(&other.0).for_each(|(a, b)| *a |= b);
        self
    }

    pub fn and(mut self, other: &Self) -> Self {
        self.0.iter_mut().zip(&other.0).for_each(|(a, b)| *a &= b);
        self
    }

    pub fn less(mut self, other: &Self) -> Self {
        self.0.iter_mut().zip(&other.0).for_each(|(a, b)| *a &= !b);
        self
    }

    pub fn members(&self) -> impl Iterator<Item = usize> + '_ {
        let word = |(at, word): (usize, &u64)| {
            let word = *word;
            (0..64).filter(move |bit| word >> bit & 1 == 1).map(move |bit| at * 64 + bit)
        };
        self.0.iter().enumerate().flat_map(word)
    }
}

/// What some rules deny, and what they allow before that.
struct Said {
    denied: Bits,
    allowed: Bits,
}

impl World {
    /// Steps 1 to 3 for every member at once.
    fn said(&self, rules: &[&Rule], length: usize, members: impl Fn(&Rule) -> Bits) -> Said {
        let (mut denied, mut allowed) = (Bits::none(length), Bits::none(length));
        for rule in rules {
            match rule.effect {
                Effect::Allow => allowed = allowed.or(&members(rule)),
                Effect::Forbid => denied = denied.or(&members(rule)),
                Effect::Deny => {
                    let mut left = members(rule);
                    let openers = rules.iter().filter(|allow| allow.effect == Effect::Allow);
                    for opener in openers.filter(|allow| self.more_specific(allow, rule)) {
                        if !self.wrong(Mistake::OpenersAreForgotten) {
                            left = left.less(&members(opener));
                        }
                        if self.wrong(Mistake::OpenersArePermitted) {
                            denied = denied.less(&members(opener));
                        }
                    }
                    denied = denied.or(&left);
                }
            }
        }
        Said { denied, allowed }
    }

    /// The paths that a verb is permitted on.
    pub fn permitted_paths(&self, policy: Rules<'_>, verb: Verb) -> Bits {
        let length = self.paths.len();
        let said = |verb| {
            let rules: Vec<_> = policy.rules.iter().filter(|rule| rule.verb == verb).collect();
            self.said(&rules, length, |rule| self.members_of(&rule.what))
        };
        let open = policy.open_read && !self.wrong(Mistake::DefaultsAreForgotten);
        let default = if open { Bits::all(length) } else { Bits::none(length) };
        let read = said(Verb::Read);
        let forgotten = self.wrong(Mistake::ReadDenialIsForgotten);
        match verb {
            Verb::Write => {
                let own = said(Verb::Write);
                let allowed = own.allowed.less(&own.denied);
                if forgotten { allowed } else { allowed.less(&read.denied) }
            }
            Verb::Exec => {
                let own = said(Verb::Exec);
                let by_default = if self.wrong(Mistake::ExecIsDeniedByDefault) {
                    Bits::none(length)
                } else {
                    default.or(&read.allowed)
                };
                let allowed = own.allowed.or(&by_default).less(&own.denied);
                if forgotten { allowed } else { allowed.less(&read.denied) }
            }
            _ => default.or(&read.allowed).less(&read.denied),
        }
    }

    /// The variables that pass in.
    pub fn permitted_names(&self, policy: Rules<'_>) -> Bits {
        let length = self.names.len();
        let rules: Vec<_> = policy.rules.iter().filter(|rule| rule.verb == Verb::Env).collect();
        let said = self.said(&rules, length, |rule| self.members_of(&rule.what));
        let open = policy.open_env && !self.wrong(Mistake::DefaultsAreForgotten);
        let default = if open { Bits::all(length) } else { Bits::none(length) };
        default.or(&said.allowed).less(&said.denied)
    }

    /// The members of a set of paths, hosts, addresses (as they stand) or names.
    pub fn members_of(&self, what: &What) -> Bits {
        let excluded = !self.wrong(Mistake::ExceptIsIgnored);
        match what {
            What::Paths { include, exclude } => self.paths_of(include, exclude),
            What::Hosts { include, exclude, .. } => {
                let has = |name: &Vec<&str>| {
                    include.iter().any(|pattern| self.has_host(*pattern, name))
                        && !(excluded && exclude.iter().any(|pattern| self.has_host(*pattern, name)))
                };
                self.host_names.iter().map(has).collect()
            }
            What::Addresses { .. } => self.addresses_of(what, false),
            What::Names { include, exclude } => {
                let has = |name: &String| {
                    let has = |pattern: &usize| self.glob(super::brute::NAME_PATTERNS[*pattern], name);
                    include.iter().any(has) && !(excluded && exclude.iter().any(has))
                };
                self.names.iter().map(has).collect()
            }
        }
    }

    fn addresses_of(&self, what: &What, forms: bool) -> Bits {
        let What::Addresses { include, exclude, .. } = what else { return Bits::none(self.addresses.len()) };
        let exclude = if self.wrong(Mistake::ExceptIsIgnored) { &[] } else { &exclude[..] };
        self.addresses.iter().map(|own| Self::has_address(include, exclude, *own, forms)).collect()
    }

    pub fn covers(&self, what: &What, port: u16, asked: bool) -> bool {
        match what {
            What::Hosts { ports, tcp, udp, .. } | What::Addresses { ports, tcp, udp, .. } => {
                self.has_port(*ports, port) && self.has_protocol(*tcp, *udp, asked)
            }
            _ => false,
        }
    }

    /// The addresses that are neither special nor private.
    pub fn public(&self) -> Bits {
        let most = u8::from(self.wrong(Mistake::ProofsSpeakOfPrivate));
        self.addresses.iter().map(|address| Self::class(*address) <= most).collect()
    }

    /// The names that an allow has without a `*`.
    fn literal(&self, rule: &Rule) -> Bits {
        let What::Hosts { include, exclude, ports, tcp, udp } = &rule.what else {
            return Bits::none(self.host_names.len());
        };
        let plain = |pattern: &&usize| {
            let one = &self.hosts[**pattern];
            !one.below && one.labels.iter().all(|label| !label.contains('*')) || self.wrong(Mistake::StarOpensPrivate)
        };
        let include = include.iter().filter(plain).copied().collect();
        let (exclude, ports, tcp, udp) = (exclude.clone(), *ports, *tcp, *udp);
        self.members_of(&What::Hosts { include, exclude, ports, tcp, udp })
    }

    /// The connections that are permitted, for one of each kind of port and each protocol.
    pub fn permitted_connections(&self, policy: Rules<'_>) -> Vec<Connections> {
        assert!(PORTS.len() == 7, "each port that these tell apart is in the list of some");
        let mut all = Vec::new();
        let names: HashMap<&What, Bits> =
            policy.rules.iter().map(|rule| (&rule.what, self.members_of(&rule.what))).collect();
        for port in SOME {
            for udp in [false, true] {
                let covering: Vec<&Rule> =
                    policy.rules.iter().filter(|rule| self.covers(&rule.what, port, udp)).collect();
                let (by_address, by_name): (Vec<&Rule>, Vec<&Rule>) =
                    covering.iter().partition(|rule| matches!(rule.what, What::Addresses { .. }));
                let address = self.said(&by_address, self.addresses.len(), |rule| {
                    let forms = match rule.effect {
                        Effect::Allow => self.wrong(Mistake::AllowHasForms),
                        _ => !self.wrong(Mistake::DenyLacksForms),
                    };
                    self.addresses_of(&rule.what, forms)
                });
                let name = self.said(&by_name, self.host_names.len(), |rule| names[&rule.what].clone());
                let names = name.allowed.less(&name.denied);
                let allows = by_name.iter().filter(|rule| rule.effect == Effect::Allow);
                let plain = allows.fold(Bits::none(self.host_names.len()), |all, rule| all.or(&self.literal(rule)));
                let bare = address.allowed.less(&address.denied);
                let (denied, allowed): (Vec<_>, Vec<_>) =
                    (address.denied.members().collect(), bare.members().collect());
                let named = (0..self.addresses.len()).map(|at| {
                    let class = Self::class(self.addresses[at]);
                    if denied.contains(&at) && !self.wrong(Mistake::IpRulesDoNotDenyNames) {
                        Bits::none(self.host_names.len())
                    } else if allowed.contains(&at) || class == 0 || self.wrong(Mistake::GuardIsNotAsked) {
                        names.clone()
                    } else if class == 1 {
                        names.clone().and(&plain)
                    } else {
                        Bits::none(self.host_names.len())
                    }
                });
                all.push(Connections { port, udp, named: named.collect(), bare });
            }
        }
        all
    }
}
