//! Choices that a seed makes, the same on every machine, and the policies it makes them for.

use super::tree::NODES;

/// splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
pub struct Chance(u64);

impl Chance {
    pub fn new(seed: u64) -> Chance {
        Chance(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound as u64).unwrap()
    }

    pub fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }

    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }

    pub fn shuffle<T>(&mut self, list: &mut [T]) {
        for at in (1..list.len()).rev() {
            list.swap(at, self.below(at + 1));
        }
    }
}

/// Patterns below the tree that no node's own name makes.
const GLOBS: [&str; 18] = [
    "w/**/f",
    "w/**/*.pem",
    "w/**/hooks",
    "w/**/p",
    "w/*/d",
    "w/*/e",
    "w/[ab]",
    "w/[!a]/f",
    "w/?/f",
    "w/a/**/x",
    "w/b/*",
    "w/.*",
    "w/.git/*",
    "**/d",
    "o/*",
    "w/**/l",
    "w/*/n*",
    "w/a/d/**/f",
];

/// Names that do not exist, and ones that lead through a link.
const ODD: [&str; 8] = ["w/n", "w/a/n", "w/a/d/n.pem", "w/h/x", "w/n/hooks", "w/l", "w/b/l/f", "o/n"];

fn target(chance: &mut Chance, base: &str) -> String {
    let path = match chance.below(10) {
        0..=5 => chance.pick(&NODES).0,
        6 => *chance.pick(&ODD),
        _ => *chance.pick(&GLOBS),
    };
    let reach = *chance.pick(&["", "", "", "", "", "exact ", "exact ", "below "]);
    format!("{reach}{base}/{path}")
}

fn rule(chance: &mut Chance, base: &str) -> String {
    let effect = *chance.pick(&["allow", "allow", "deny", "deny", "deny", "forbid"]);
    let verbs = *chance.pick(&["read", "write", "write", "exec", "exec", "read, write", "read, write", "write, exec"]);
    let except = if chance.one_in(6) { format!(" except {}", target(chance, base)) } else { String::new() };
    // Few nodes are programs, and most rules about running should be about one.
    if verbs.contains("exec") && chance.one_in(2) {
        let programs = *chance.pick(&["w/a/p", "w/b/p", "w/**/p", "w/.git/hooks", "w/a", "w/b", "w"]);
        return format!("{effect} {verbs} {base}/{programs}{except}");
    }
    format!("{effect} {verbs} {}{except}", target(chance, base))
}

/// The lines of a policy about a tree: what every program needs, a base, and some rules.
pub fn policy(chance: &mut Chance, base: &str) -> Vec<String> {
    let mut lines: Vec<String> = ["srt 1", "use std/system"].map(String::from).to_vec();
    let bases: [&[&str]; 6] = [
        &["default read allow", "allow write BASE/w"],
        &["default read allow", "allow write BASE"],
        &["default read deny", "allow read, write BASE/w"],
        &["default read deny", "allow read BASE", "allow write BASE/w"],
        &["default read deny", "allow read, write [BASE/w/a, BASE/w/.git, BASE/o]"],
        &["default read deny", "allow read BASE/w", "allow write BASE/w/b"],
    ];
    lines.extend(chance.pick(&bases).iter().map(|line| line.replace("BASE", base)));
    for _ in 0..=chance.below(6) {
        lines.push(rule(chance, base));
    }
    lines
}
