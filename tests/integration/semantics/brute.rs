//! The brute force: naive recursive matchers over finite universes, in which every set is the list of its members.
//!
//! Nothing of `sets` or `ir` is used. A [`Mistake`] makes one thing wrong on purpose, see the mutants.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

/// What may be wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mistake {
    DeepIsNotEmpty,
    DeepIsOneSegment,
    TreeIsItsNode,
    TreeLacksItsNode,
    BelowHasItsNode,
    StarCrossesSlash,
    StarIsNotEmpty,
    QuestionMayBeEmpty,
    NegatedClassIsPlain,
    VariablesLieOutsideDeep,
    ExceptIsIgnored,
    ExceptIsExact,
    EqualIsMoreSpecific,
    OverlapIsMoreSpecific,
    LongerIsMoreSpecific,
    NothingIsMoreSpecific,
    OneOpenedDenyIsEnough,
    ForbidCanBeOpened,
    ExecIsDeniedByDefault,
    ReadDenialIsForgotten,
    DefaultReadDenialBindsWrites,
    ApexIsBelow,
    BelowIsOneLabel,
    LabelsBySuffix,
    PortsEndEarly,
    PortsStartEarly,
    ProtocolIsForgotten,
    PortsAreNotCompared,
    DenyLacksForms,
    AllowHasForms,
    FormsAreNotCompared,
    GuardIsForgotten,
    PrivateIsSpecial,
    PrivateIsPublic,
    StarOpensPrivate,
    IpRulesDoNotDenyNames,
    IpAllowNeedsNoName,
    EnvironmentIsClosed,
    // Of questions about whole policies.
    OpenersAreForgotten,
    OpenersArePermitted,
    DefaultsAreForgotten,
    LongestForShortest,
    GuardIsNotAsked,
    ProofsSpeakOfPrivate,
    OldAndNewAreSwapped,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    Forbidden,
    Denied,
    Allowed,
    Default,
    ReadDenied,
    Special,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verdict {
    pub allowed: bool,
    pub why: Why,
    /// An allow opened a deny.
    pub reopened: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    Allow,
    Deny,
    Forbid,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    Read,
    Write,
    Exec,
    Connect,
    Env,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    Tree,
    Exact,
    Below,
}

/// `**`, or the text of a segment with `*`, `?` and `[…]` in it.
pub type Segment = &'static str;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathPattern {
    pub variable: bool,
    pub segments: Vec<Segment>,
    pub reach: Reach,
}

/// A path of the universe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Path {
    pub variable: bool,
    pub segments: Vec<&'static str>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostPattern {
    /// `*.`; alone with no label it is `*`.
    pub below: bool,
    pub labels: Vec<&'static str>,
}

/// Canonical.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Address {
    V4(u32),
    V6(u128),
}

/// Indices into the pools of the [`World`].
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum What {
    Paths { include: Vec<usize>, exclude: Vec<usize> },
    Hosts { include: Vec<usize>, exclude: Vec<usize>, ports: usize, tcp: bool, udp: bool },
    Addresses { include: Vec<usize>, exclude: Vec<usize>, ports: usize, tcp: bool, udp: bool },
    Names { include: Vec<usize>, exclude: Vec<usize> },
}

#[derive(Debug, Clone)]
pub struct Rule {
    pub effect: Effect,
    pub verb: Verb,
    pub what: What,
}

#[derive(Debug, Clone, Copy)]
pub enum Access {
    Path { verb: Verb, path: usize },
    Connect { name: Option<usize>, address: usize, port: u16, udp: bool },
    Env { name: usize },
}

/// One segment of each kind that the patterns can tell apart.
const SEGMENTS: [&str; 7] = ["a", "b", "ab", "c", "ac", "acc", "cc"];
const TOKENS: [Segment; 8] = ["a", "b", "ab", "*", "a*", "a?", "[!a]", "**"];
pub const DEPTH: usize = 5;
const LABELS: [&str; 5] = ["a", "b", "ab", "ac", "cc"];
/// The ends of [`PORTS`] and their neighbours.
pub const SOME_PORTS: [u16; 10] = [1, 2, 79, 80, 81, 82, 442, 443, 444, 65535];
pub const PORTS: [&[(u16, u16)]; 7] =
    [&[(1, 65535)], &[(80, 80), (443, 443)], &[(443, 443)], &[(80, 80)], &[(80, 443)], &[(1, 80)], &[(81, 65535)]];
pub const NETWORKS: [&str; 18] = [
    "0.0.0.0/0",
    "10.0.0.0/8",
    "10.0.0.0/9",
    "10.0.0.7",
    "10.0.0.4/30",
    "8.8.8.0/24",
    "8.8.8.8",
    "127.0.0.0/8",
    "127.0.0.1",
    "169.254.169.254",
    "[::]/0",
    "[64:ff9b::]/96",
    // The forms that carry one of the networks above.
    "[64:ff9b::a00:0]/104",
    "[2002:a00::]/24",
    "[2002::]/16",
    "[2001:db8::]/32",
    "[2001:db8::1]",
    "[fd00::]/8",
];
const SOME_V4: [[u8; 4]; 20] = [
    [0, 0, 0, 0],
    [8, 8, 7, 255],
    [8, 8, 8, 0],
    [8, 8, 8, 8],
    [8, 8, 8, 9],
    [8, 8, 9, 0],
    [9, 255, 255, 255],
    [10, 0, 0, 0],
    [10, 0, 0, 3],
    [10, 0, 0, 4],
    [10, 0, 0, 7],
    [10, 0, 0, 8],
    [10, 128, 0, 0],
    [11, 0, 0, 0],
    // What a rule opens that names a host, and no network above.
    [100, 64, 0, 0],
    [127, 0, 0, 1],
    [127, 0, 0, 2],
    [128, 0, 0, 0],
    [169, 254, 169, 254],
    [255, 255, 255, 255],
];
const SOME_V6: [u128; 7] = [
    1,
    0x2001_0db8 << 96,
    (0x2001_0db8 << 96) | 1,
    0x2001_0db9 << 96,
    (0xfd00 << 112) | 1,
    0xfe80 << 112,
    0x2003 << 112,
];
pub const NAME_PATTERNS: [&str; 9] = ["A", "B", "AB", "C", "*", "A*", "*B", "A_*", "*C*"];

/// A set of members of a universe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bits(pub(super) Vec<u64>);

impl FromIterator<bool> for Bits {
    fn from_iter<I: IntoIterator<Item = bool>>(members: I) -> Self {
        let mut words = Vec::new();
        for (index, member) in members.into_iter().enumerate() {
            if index % 64 == 0 {
                words.push(0);
            }
            words[index / 64] |= u64::from(member) << (index % 64);
        }
        Self(words)
    }
}

impl Bits {
    fn inside(&self, other: &Self) -> bool {
        self.0.iter().zip(&other.0).all(|(a, b)| a & !b == 0)
    }

    /// Drops all members from the `count`th on.
    pub fn keep(&mut self, count: usize) {
        for (index, word) in self.0.iter_mut().enumerate() {
            let kept = count.saturating_sub(index * 64).min(64);
            *word &= u64::MAX.checked_shr(64 - u32::try_from(kept).unwrap()).unwrap_or(0);
        }
    }

    fn meets(&self, other: &Self) -> bool {
        self.0.iter().zip(&other.0).any(|(a, b)| a & b != 0)
    }
}

pub struct World {
    pub mistake: Option<Mistake>,
    pub patterns: Vec<PathPattern>,
    pub paths: Vec<Path>,
    pub hosts: Vec<HostPattern>,
    pub host_names: Vec<Vec<&'static str>>,
    pub addresses: Vec<Address>,
    /// Variables of an environment.
    pub names: Vec<String>,
    members: RefCell<HashMap<usize, Rc<Bits>>>,
    /// Those of rules, as they are compared, and how pairs of them came out: the same few are asked for again and again.
    compared: RefCell<HashMap<What, Rc<Bits>>>,
    specific: RefCell<HashMap<(What, What), bool>>,
}

/// So much is remembered of what is asked for again.
const REMEMBERED: usize = 1000;

impl World {
    pub fn new(mistake: Option<Mistake>) -> Self {
        let mut paths = words(&SEGMENTS, DEPTH);
        let below: Vec<_> = words(&SEGMENTS, DEPTH - 1);
        let mut all: Vec<Path> = paths.drain(..).map(|segments| Path { variable: false, segments }).collect();
        all.extend(below.into_iter().map(|segments| Path { variable: true, segments }));
        let host_names = words(&LABELS, 3).into_iter().filter(|labels| !labels.is_empty()).collect();
        let mut addresses = Vec::new();
        for octets in SOME_V4 {
            let v4 = u32::from_be_bytes(octets);
            addresses.push(Address::V4(v4));
            addresses.push(Address::V6((0x0064_ff9b << 96) | u128::from(v4)));
            addresses.push(Address::V6((0x2002 << 112) | u128::from(v4) << 80));
            addresses.push(Address::V6((0x2002 << 112) | u128::from(v4) << 80 | ((1 << 80) - 1)));
        }
        addresses.extend(SOME_V6.map(Address::V6));
        Self {
            mistake,
            patterns: path_pool(),
            paths: all,
            hosts: host_pool(),
            host_names,
            addresses,
            names: words(&["A", "B", "C", "_"], 4).into_iter().skip(1).map(|letters| letters.concat()).collect(),
            members: RefCell::default(),
            compared: RefCell::default(),
            specific: RefCell::default(),
        }
    }

    pub(super) fn wrong(&self, mistake: Mistake) -> bool {
        self.mistake == Some(mistake)
    }

    // Paths.

    pub fn path_text(&self, pattern: usize) -> String {
        let pattern = &self.patterns[pattern];
        let start = if pattern.variable { "$W" } else { "" };
        format!("{:?} {start}/{}", pattern.reach, pattern.segments.join("/"))
    }

    /// Which paths of the universe a pattern matches.
    fn members(&self, pattern: usize) -> Rc<Bits> {
        if let Some(known) = self.members.borrow().get(&pattern) {
            return known.clone();
        }
        let one = &self.patterns[pattern];
        let members: Rc<Bits> =
            Rc::new(self.paths.iter().map(|path| self.matches_path(one, path.variable, &path.segments)).collect());
        self.members.borrow_mut().insert(pattern, members.clone());
        members
    }

    fn matches_path(&self, pattern: &PathPattern, variable: bool, path: &[&str]) -> bool {
        if pattern.variable == variable {
            return self.descend(&pattern.segments, path, pattern.reach);
        }
        if pattern.variable || self.wrong(Mistake::VariablesLieOutsideDeep) {
            return false;
        }
        // The place of the variable is somewhere below the root.
        match pattern.segments.iter().find(|segment| **segment != "**") {
            None => !pattern.segments.is_empty() || pattern.reach != Reach::Exact,
            Some(_) if pattern.segments[0] == "**" => self.descend(&pattern.segments, path, pattern.reach),
            Some(_) => false,
        }
    }

    fn holds(&self, pattern: &PathPattern, path: usize) -> bool {
        let path = &self.paths[path];
        self.matches_path(pattern, path.variable, &path.segments)
    }

    fn descend(&self, pattern: &[Segment], path: &[&str], reach: Reach) -> bool {
        let Some((first, rest)) = pattern.split_first() else {
            return match reach {
                Reach::Tree if self.wrong(Mistake::TreeIsItsNode) => path.is_empty(),
                Reach::Tree if self.wrong(Mistake::TreeLacksItsNode) => !path.is_empty(),
                Reach::Tree => true,
                Reach::Exact => path.is_empty(),
                Reach::Below => !path.is_empty() || self.wrong(Mistake::BelowHasItsNode),
            };
        };
        if *first == "**" {
            let least = usize::from(self.wrong(Mistake::DeepIsNotEmpty));
            let most = if self.wrong(Mistake::DeepIsOneSegment) { 1 } else { path.len() };
            return (least..=most.min(path.len())).any(|taken| self.descend(rest, &path[taken..], reach));
        }
        if self.wrong(Mistake::StarCrossesSlash) && first.contains('*') {
            return (1..=path.len())
                .any(|taken| self.glob(first, &path[..taken].join("/")) && self.descend(rest, &path[taken..], reach));
        }
        path.first().is_some_and(|segment| self.glob(first, segment)) && self.descend(rest, &path[1..], reach)
    }

    pub(super) fn glob(&self, pattern: &str, text: &str) -> bool {
        let (mut rest, mut tail) = (pattern.chars(), text.chars());
        match rest.next() {
            None => text.is_empty(),
            Some('*') => {
                let rest = rest.as_str();
                let least = usize::from(self.wrong(Mistake::StarIsNotEmpty));
                (least..=text.len()).any(|taken| self.glob(rest, &text[taken..]))
            }
            Some('?') => {
                self.wrong(Mistake::QuestionMayBeEmpty) && self.glob(rest.as_str(), text)
                    || tail.next().is_some() && self.glob(rest.as_str(), tail.as_str())
            }
            Some('[') => {
                // The only class of the pool: `[!a]`.
                let rest = rest.as_str().strip_prefix("!a]").unwrap();
                let plain = self.wrong(Mistake::NegatedClassIsPlain);
                tail.next().is_some_and(|char| (char != 'a') != plain) && self.glob(rest, tail.as_str())
            }
            Some(char) => tail.next() == Some(char) && self.glob(rest.as_str(), tail.as_str()),
        }
    }

    pub(super) fn paths_of(&self, include: &[usize], exclude: &[usize]) -> Bits {
        let mut members = Bits(vec![0; self.paths.len().div_ceil(64)]);
        for pattern in include {
            members.0.iter_mut().zip(&self.members(*pattern).0).for_each(|(member, own)| *member |= own);
        }
        if self.wrong(Mistake::ExceptIsIgnored) {
            return members;
        }
        for pattern in exclude {
            let gone = if self.wrong(Mistake::ExceptIsExact) {
                let exact = PathPattern { reach: Reach::Exact, ..self.patterns[*pattern].clone() };
                Rc::new(
                    self.paths.iter().map(|path| self.matches_path(&exact, path.variable, &path.segments)).collect(),
                )
            } else {
                self.members(*pattern)
            };
            members.0.iter_mut().zip(&gone.0).for_each(|(member, gone)| *member &= !gone);
        }
        members
    }

    pub fn has_path(&self, pattern: usize, path: usize) -> bool {
        self.holds(&self.patterns[pattern], path)
    }

    /// The places of variables exist where a pattern names one: without, sets are compared as they are on every machine.
    fn visible(&self, mut members: Bits, patterns: &[usize]) -> Bits {
        if !patterns.iter().any(|pattern| self.patterns[*pattern].variable) {
            members.keep(self.paths.iter().position(|path| path.variable).unwrap_or(self.paths.len()));
        }
        members
    }

    /// Whether a pattern matches a path of any length.
    pub fn matches(&self, pattern: usize, variable: bool, segments: &[&str]) -> bool {
        self.matches_path(&self.patterns[pattern], variable, segments)
    }

    pub fn paths_inside(&self, a: usize, b: usize) -> bool {
        let visible = |one| self.visible(Bits::clone(&self.members(one)), &[a, b]);
        visible(a).inside(&visible(b))
    }

    pub fn paths_meet(&self, a: usize, b: usize) -> bool {
        let visible = |one| self.visible(Bits::clone(&self.members(one)), &[a, b]);
        visible(a).meets(&visible(b))
    }

    /// Some thousands of pairs, each pattern in many.
    pub fn path_pairs(&self) -> impl Iterator<Item = (usize, usize)> {
        let count = self.patterns.len();
        (0..count).flat_map(move |a| (0..count).skip(a % 7).step_by(7).map(move |b| (a, b)))
    }

    // Hosts and addresses.

    pub(super) fn has_host(&self, pattern: usize, name: &[&str]) -> bool {
        let pattern = &self.hosts[pattern];
        if self.wrong(Mistake::LabelsBySuffix) && pattern.below && !pattern.labels.is_empty() {
            return name.join(".").ends_with(&pattern.labels.join("."));
        }
        let Some(above) = name.len().checked_sub(pattern.labels.len()) else { return false };
        let depth = match (pattern.below, above) {
            (true, 0) => self.wrong(Mistake::ApexIsBelow),
            (true, 1) | (false, 0) => true,
            (true, _) => !self.wrong(Mistake::BelowIsOneLabel),
            (false, _) => false,
        };
        depth && pattern.labels.iter().zip(&name[above..]).all(|(label, own)| self.glob(label, own))
    }

    pub fn host_has(&self, pattern: usize, name: usize) -> bool {
        self.has_host(pattern, &self.host_names[name])
    }

    pub fn hosts_inside(&self, a: usize, b: usize) -> bool {
        self.host_names.iter().all(|name| !self.has_host(a, name) || self.has_host(b, name))
    }

    pub fn has_name(&self, pattern: usize, name: usize) -> bool {
        self.glob(NAME_PATTERNS[pattern], &self.names[name])
    }

    pub fn has_network(network: usize, address: Address) -> bool {
        let text = NETWORKS[network].replace(['[', ']'], "");
        let (base, length) = text.split_once('/').map_or((&text[..], None), |(base, length)| (base, Some(length)));
        match (base.parse::<std::net::IpAddr>().unwrap(), address) {
            (std::net::IpAddr::V4(base), Address::V4(own)) => {
                let length: u32 = length.map_or(32, |length| length.parse().unwrap());
                (u32::from(base) ^ own).leading_zeros() >= length
            }
            (std::net::IpAddr::V6(base), Address::V6(own)) => {
                let length: u32 = length.map_or(128, |length| length.parse().unwrap());
                (u128::from(base) ^ own).leading_zeros() >= length
            }
            _ => false,
        }
    }

    pub(super) fn has_port(&self, ports: usize, port: u16) -> bool {
        PORTS[ports].iter().any(|&(low, high)| {
            let low = if self.wrong(Mistake::PortsStartEarly) { low - 1 } else { low };
            let high = if self.wrong(Mistake::PortsEndEarly) && high > low { high - 1 } else { high };
            (low..=high).contains(&port)
        })
    }

    pub(super) fn has_protocol(&self, tcp: bool, udp: bool, asked: bool) -> bool {
        self.wrong(Mistake::ProtocolIsForgotten) || if asked { udp } else { tcp }
    }

    /// The IPv4 address that an IPv6 one carries.
    fn carried(address: Address) -> Option<Address> {
        let Address::V6(bits) = address else { return None };
        let low = |bits: u128| Address::V4(u32::try_from(bits & 0xffff_ffff).unwrap());
        if bits >> 32 == 0x0064_ff9b << 64 {
            return Some(low(bits));
        }
        (bits >> 112 == 0x2002).then(|| low(bits >> 80))
    }

    pub(super) fn has_address(include: &[usize], exclude: &[usize], address: Address, forms: bool) -> bool {
        let has = |address| {
            include.iter().any(|network| Self::has_network(*network, address))
                && !exclude.iter().any(|network| Self::has_network(*network, address))
        };
        has(address) || forms && Self::carried(address).is_some_and(has)
    }

    /// 0 public, 1 private, 2 special.
    pub(super) fn class(address: Address) -> u8 {
        match address {
            Address::V4(v4) => match v4.to_be_bytes() {
                [0 | 127 | 224.., ..] | [169, 254, ..] | [192, 0, 0, _] => 2,
                [10, ..] | [192, 168, ..] | [172, 16..=31, ..] | [100, 64..=127, ..] => 1,
                _ => 0,
            },
            Address::V6(bits) => {
                let own = match bits >> 112 {
                    0 if bits <= 1 => 2,
                    0xfe80..=0xfeff | 0xff00.. => 2,
                    0xfc00..=0xfdff => 1,
                    _ => 0,
                };
                own.max(Self::carried(address).map_or(0, Self::class))
            }
        }
    }

    /// How narrow patterns of a pool look: only a hint for whoever generates cases.
    pub fn path_narrowness(&self, pattern: usize) -> usize {
        let pattern = &self.patterns[pattern];
        let plain = pattern.segments.iter().filter(|segment| !segment.contains(['*', '?', '[']));
        2 * plain.count() + pattern.segments.len() + usize::from(pattern.reach != Reach::Tree)
    }

    pub fn host_narrowness(&self, pattern: usize) -> usize {
        2 * self.hosts[pattern].labels.len() + usize::from(!self.hosts[pattern].below)
    }

    // Rules.

    fn rule_matches(&self, rule: &Rule, access: &Access) -> bool {
        let excluded = !self.wrong(Mistake::ExceptIsIgnored);
        match (&rule.what, access) {
            (What::Paths { include, exclude }, Access::Path { path, .. }) => {
                let gone = |pattern: &usize| {
                    if self.wrong(Mistake::ExceptIsExact) {
                        let exact = PathPattern { reach: Reach::Exact, ..self.patterns[*pattern].clone() };
                        return self.holds(&exact, *path);
                    }
                    self.holds(&self.patterns[*pattern], *path)
                };
                include.iter().any(|pattern| self.holds(&self.patterns[*pattern], *path))
                    && !(excluded && exclude.iter().any(gone))
            }
            (
                What::Hosts { include, exclude, ports, tcp, udp },
                Access::Connect { name: Some(name), port, udp: asked, .. },
            ) => {
                let name = &self.host_names[*name];
                include.iter().any(|pattern| self.has_host(*pattern, name))
                    && !(excluded && exclude.iter().any(|pattern| self.has_host(*pattern, name)))
                    && self.has_port(*ports, *port)
                    && self.has_protocol(*tcp, *udp, *asked)
            }
            (
                What::Addresses { include, exclude, ports, tcp, udp },
                Access::Connect { address, port, udp: asked, .. },
            ) => {
                let forms = match rule.effect {
                    Effect::Allow => self.wrong(Mistake::AllowHasForms),
                    Effect::Deny | Effect::Forbid => !self.wrong(Mistake::DenyLacksForms),
                };
                let exclude = if excluded { &exclude[..] } else { &[] };
                Self::has_address(include, exclude, self.addresses[*address], forms)
                    && self.has_port(*ports, *port)
                    && self.has_protocol(*tcp, *udp, *asked)
            }
            (What::Names { include, exclude }, Access::Env { name }) => {
                let has = |pattern: &usize| self.glob(NAME_PATTERNS[*pattern], &self.names[*name]);
                include.iter().any(has) && !(excluded && exclude.iter().any(has))
            }
            _ => false,
        }
    }

    /// Every member of a rule's set, as the verb compares sets.
    fn all_members(&self, rule: &Rule) -> Bits {
        let excluded = !self.wrong(Mistake::ExceptIsIgnored);
        let product = |hosts: Vec<bool>, ports: usize, tcp: bool, udp: bool| {
            let mut cells = Vec::new();
            for port in SOME_PORTS {
                for asked in [false, true] {
                    let port = self.wrong(Mistake::PortsAreNotCompared) || self.has_port(ports, port);
                    cells.push(port && self.has_protocol(tcp, udp, asked));
                }
            }
            hosts.into_iter().flat_map(|host| cells.iter().map(move |cell| host && *cell)).collect()
        };
        match &rule.what {
            What::Paths { include, exclude } => self.paths_of(include, exclude),
            What::Hosts { include, exclude, ports, tcp, udp } => {
                let has = |name: &Vec<&str>| {
                    include.iter().any(|pattern| self.has_host(*pattern, name))
                        && !(excluded && exclude.iter().any(|pattern| self.has_host(*pattern, name)))
                };
                let mut hosts: Vec<bool> = self.host_names.iter().map(has).collect();
                hosts.resize(hosts.len() + self.addresses.len(), false);
                product(hosts, *ports, *tcp, *udp)
            }
            What::Addresses { include, exclude, ports, tcp, udp } => {
                let exclude = if excluded { &exclude[..] } else { &[] };
                let forms = !self.wrong(Mistake::FormsAreNotCompared);
                let mut hosts = vec![false; self.host_names.len()];
                hosts.extend(self.addresses.iter().map(|own| Self::has_address(include, exclude, *own, forms)));
                product(hosts, *ports, *tcp, *udp)
            }
            What::Names { include, exclude } => self
                .names
                .iter()
                .map(|name| {
                    let has = |pattern: &usize| self.glob(NAME_PATTERNS[*pattern], name);
                    include.iter().any(has) && !(excluded && exclude.iter().any(has))
                })
                .collect(),
        }
    }

    pub(super) fn more_specific(&self, a: &Rule, d: &Rule) -> bool {
        if self.wrong(Mistake::NothingIsMoreSpecific) {
            return false;
        }
        if self.wrong(Mistake::LongerIsMoreSpecific) {
            return self.length(a) > self.length(d);
        }
        let pair = (a.what.clone(), d.what.clone());
        if let Some(known) = self.specific.borrow().get(&pair) {
            return *known;
        }
        let specific = self.compare(a, d);
        let mut known = self.specific.borrow_mut();
        if known.len() > REMEMBERED {
            known.clear();
        }
        known.insert(pair, specific);
        specific
    }

    fn compare(&self, a: &Rule, d: &Rule) -> bool {
        let (own, whole) = (self.remembered(a), self.remembered(d));
        let (a, d) = match (&a.what, &d.what) {
            (What::Paths { include, exclude }, What::Paths { include: more, exclude: less }) => {
                let named = [&include[..], exclude, more, less].concat();
                let visible = |members: &Bits| Rc::new(self.visible(members.clone(), &named));
                (visible(&own), visible(&whole))
            }
            _ => (own, whole),
        };
        if self.wrong(Mistake::OverlapIsMoreSpecific) {
            return a.meets(&d);
        }
        a.inside(&d) && (a != d || self.wrong(Mistake::EqualIsMoreSpecific))
    }

    fn remembered(&self, rule: &Rule) -> Rc<Bits> {
        if let Some(known) = self.compared.borrow().get(&rule.what) {
            return Rc::clone(known);
        }
        let members = Rc::new(self.all_members(rule));
        let mut known = self.compared.borrow_mut();
        if known.len() > REMEMBERED {
            known.clear();
        }
        known.insert(rule.what.clone(), Rc::clone(&members));
        members
    }

    fn length(&self, rule: &Rule) -> usize {
        match &rule.what {
            What::Paths { include, .. } => include.iter().map(|one| self.path_text(*one).len()).max(),
            What::Hosts { include, .. } => include.iter().map(|one| self.hosts[*one].labels.join(".").len()).max(),
            What::Addresses { include, .. } => include.iter().map(|one| NETWORKS[*one].len()).max(),
            What::Names { include, .. } => include.iter().map(|one| NAME_PATTERNS[*one].len()).max(),
        }
        .unwrap_or(0)
    }

    /// Steps 1 to 3.
    fn steps(&self, matching: &[&Rule]) -> Option<Verdict> {
        let of = |effect| matching.iter().copied().filter(move |rule| rule.effect == effect);
        let opened = |rule: &Rule| of(Effect::Allow).any(|allow| self.more_specific(allow, rule));
        let denied = |why| Some(Verdict { allowed: false, why, reopened: false });
        let mut forbids = of(Effect::Forbid);
        if forbids.any(|rule| !(self.wrong(Mistake::ForbidCanBeOpened) && opened(rule))) {
            return denied(Why::Forbidden);
        }
        let denies: Vec<_> = of(Effect::Deny).collect();
        let closed = if self.wrong(Mistake::OneOpenedDenyIsEnough) {
            !denies.is_empty() && !denies.iter().any(|rule| opened(rule))
        } else {
            !denies.iter().all(|rule| opened(rule))
        };
        if closed {
            return denied(Why::Denied);
        }
        of(Effect::Allow).next()?;
        Some(Verdict { allowed: true, why: Why::Allowed, reopened: !denies.is_empty() })
    }

    pub fn decide(&self, rules: &[Rule], open_read: bool, open_env: bool, access: &Access) -> Verdict {
        let default = |allowed| Verdict { allowed, why: Why::Default, reopened: false };
        let by = |verb: Verb, filter: &dyn Fn(&Rule) -> bool| {
            let all = rules.iter().filter(|rule| rule.verb == verb && filter(rule) && self.rule_matches(rule, access));
            all.collect::<Vec<_>>()
        };
        let any = |verb| self.steps(&by(verb, &|_| true));
        match access {
            Access::Path { verb, .. } => {
                let read = any(Verb::Read).unwrap_or(default(open_read));
                let own = match verb {
                    Verb::Read => return read,
                    Verb::Write => any(Verb::Write).unwrap_or(default(false)),
                    _ if self.wrong(Mistake::ExecIsDeniedByDefault) => any(Verb::Exec).unwrap_or(default(false)),
                    _ => any(Verb::Exec)
                        .unwrap_or(default(read.allowed || matches!(read.why, Why::Forbidden | Why::Denied))),
                };
                let binding = match read.why {
                    Why::Forbidden | Why::Denied => !self.wrong(Mistake::ReadDenialIsForgotten),
                    _ => self.wrong(Mistake::DefaultReadDenialBindsWrites) && !read.allowed,
                };
                if (own.allowed) && binding {
                    return Verdict { allowed: false, why: Why::ReadDenied, reopened: false };
                }
                own
            }
            Access::Env { .. } => {
                any(Verb::Env).unwrap_or(default(open_env && !self.wrong(Mistake::EnvironmentIsClosed)))
            }
            Access::Connect { name, address, .. } => {
                let is_address = |rule: &Rule| matches!(rule.what, What::Addresses { .. });
                let by_address = self.steps(&by(Verb::Connect, &is_address)).unwrap_or(default(false));
                let Some(name) = *name else { return by_address };
                let denied = matches!(by_address.why, Why::Forbidden | Why::Denied);
                if denied && !self.wrong(Mistake::IpRulesDoNotDenyNames) {
                    return by_address;
                }
                if by_address.allowed && self.wrong(Mistake::IpAllowNeedsNoName) {
                    return by_address;
                }
                let named = by(Verb::Connect, &|rule| !is_address(rule));
                let by_name = self.steps(&named).unwrap_or(default(false));
                if !by_name.allowed || by_address.allowed {
                    return by_name;
                }
                let plain = named.iter().any(|rule| {
                    let What::Hosts { include, .. } = &rule.what else { return false };
                    rule.effect == Effect::Allow
                        && include.iter().any(|pattern| {
                            let one = &self.hosts[*pattern];
                            let literal = !one.below && one.labels.iter().all(|label| !label.contains('*'));
                            (literal || self.wrong(Mistake::StarOpensPrivate)) && self.host_has(*pattern, name)
                        })
                });
                let refused = match Self::class(self.addresses[*address]) {
                    _ if self.wrong(Mistake::GuardIsForgotten) => false,
                    0 => false,
                    1 if self.wrong(Mistake::PrivateIsPublic) => false,
                    1 => !plain || self.wrong(Mistake::PrivateIsSpecial),
                    _ => true,
                };
                if refused { Verdict { allowed: false, why: Why::Special, reopened: false } } else { by_name }
            }
        }
    }
}

/// All words of up to `most` of the letters, the empty one first.
fn words(letters: &[&'static str], most: usize) -> Vec<Vec<&'static str>> {
    let mut all = vec![Vec::new()];
    let mut from = 0;
    for _ in 0..most {
        let to = all.len();
        for index in from..to {
            for letter in letters {
                let mut word = all[index].clone();
                word.push(*letter);
                all.push(word);
            }
        }
        from = to;
    }
    all
}

/// Every pattern of up to one segment, and a spread of the longer ones.
fn path_pool() -> Vec<PathPattern> {
    let mut pool = Vec::new();
    for (index, segments) in words(&TOKENS, 3).into_iter().enumerate() {
        let reaches: &[Reach] = match segments.len() {
            0 | 1 => &[Reach::Tree, Reach::Exact, Reach::Below],
            2 if index % 2 == 0 => &[Reach::Tree, Reach::Exact],
            3 if index % 9 == 4 => &[Reach::Tree],
            3 if index % 23 == 7 => &[Reach::Exact],
            3 if index % 31 == 5 => &[Reach::Below],
            _ => continue,
        };
        for reach in reaches {
            pool.push(PathPattern { variable: false, segments: segments.clone(), reach: *reach });
            if segments.len() < 3 && index % 3 == 0 {
                pool.push(PathPattern { variable: true, segments: segments.clone(), reach: *reach });
            }
        }
    }
    pool
}

fn host_pool() -> Vec<HostPattern> {
    let mut pool = vec![HostPattern { below: true, labels: Vec::new() }];
    for labels in words(&["a", "b", "ab", "a*"], 2) {
        if !labels.is_empty() {
            pool.extend([false, true].map(|below| HostPattern { below, labels: labels.clone() }));
        }
    }
    pool
}
