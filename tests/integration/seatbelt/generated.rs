//! Generated policies and accesses for profiles: Guile's verdicts are those of `decide`, and each profile is proved.

use super::guile::Machine;
use super::{compile, verify};
use sandbox_runtime::ir::{Access, Policy, Subject};
use sandbox_runtime::sets::glob::Piece;
use sandbox_runtime::sets::path::{AbsPath, Pattern, Segment};
use sandbox_runtime::vocabulary::{Reach, Verb};

/// A stream of numbers (splitmix64).
pub struct Dice(pub u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, count: usize) -> usize {
        usize::try_from(self.next() % count as u64).unwrap()
    }

    fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    fn one<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        &list[self.below(list.len())]
    }
}

const NAMES: &[&str] = &["a", "b", ".git", "Src", "x.y", "key", "s", "é", "a-b", "1+1"];
const GLOBS: &[&str] = &["*", "*.y", "a*", "?", "[ab]", "[!a]", "k?y", "x.[a-z]", "*-*"];
/// Those that match no part of where `guile` lays the variables: what is at any depth matches there too, and where a variable
/// lies is not known to a policy that is not bound.
const NARROW: &[&str] = &["*.y", "a*", "[ab]", "k?y", "x.[a-z]"];
const STARTS: &[&str] = &["$WORKSPACE", "$WORKSPACE", "~", "$TMP", "/usr", "/private/etc", "/opt/a", "**"];

fn target(dice: &mut Dice) -> String {
    let mut text = (*dice.one(STARTS)).to_owned();
    let mut deep = usize::from(text == "**");
    let (least, rooted) = (deep, text == "**");
    for _ in 0..least + dice.below(4) {
        let last = text.ends_with("**");
        let segment = match dice.below(8) {
            0 | 1 => dice.one(if rooted { NARROW } else { GLOBS }),
            2 if !last && deep < 2 => {
                deep += 1;
                &"**"
            }
            _ => dice.one(NAMES),
        };
        text = format!("{text}/{segment}");
    }
    match dice.below(6) {
        0 => format!("exact {text}"),
        1 if !text.ends_with("**") => format!("below {text}"),
        _ => text,
    }
}

/// A policy in the language.
pub fn policy(dice: &mut Dice) -> String {
    let mut text = format!("srt 1\ndefault read {}\n", dice.one(&["allow", "deny", "deny"]));
    for _ in 0..2 + dice.below(7) {
        let head = dice.one(&[
            "allow read, write",
            "allow read, write",
            "allow read",
            "allow read",
            "deny read",
            "deny write",
            "deny write",
            "deny read, write",
            "forbid write",
            "forbid read",
            "deny exec",
            "allow read, exec",
            "allow socket",
            "deny socket",
        ]);
        let except = if dice.once_in(5) { format!(" except {}", target(dice)) } else { String::new() };
        text += &format!("{head} {}{except}\n", target(dice));
    }
    if dice.once_in(4) {
        text += "allow mach com.example.*\ndeny mach com.example.b*\nallow mach com.example.bb\n";
    }
    text
}

/// Accesses near what the rules of a policy say.
pub fn accesses(policy: &Policy, count: usize, seed: u64) -> Vec<Access> {
    let mut dice = Dice(seed);
    let patterns: Vec<&Pattern> = policy
        .rules
        .iter()
        .filter_map(|rule| match &rule.subject {
            Subject::Paths(set) => Some(set.include.iter().chain(&set.exclude)),
            _ => None,
        })
        .flatten()
        .collect();
    let mut accesses = Vec::new();
    while accesses.len() < count {
        let services = policy.rules_of(Verb::Mach).next().is_some();
        if services && dice.once_in(8) {
            let names =
                ["com.example.a", "com.example.b", "com.example.bb", "com.example.bbb", "org.example", "com.example."];
            accesses.push(Access::Mach((*dice.one(&names)).to_owned()));
            continue;
        }
        if patterns.is_empty() {
            break;
        }
        let pattern = patterns[dice.below(patterns.len())];
        let path = member(&mut dice, pattern);
        accesses.push(match dice.below(10) {
            0..=3 => Access::Read(path),
            4..=6 => Access::Write(path),
            7 | 8 => Access::Exec(path),
            _ => Access::Socket(path),
        });
    }
    accesses
}

/// Something in a pattern, or beside it.
fn member(dice: &mut Dice, pattern: &Pattern) -> AbsPath {
    let mut path = AbsPath { start: pattern.start.clone(), segments: Vec::new() };
    for segment in &pattern.segments {
        match segment {
            Segment::AnyDepth => {
                for _ in 0..dice.below(3) {
                    path = path.join(dice.one(NAMES));
                }
            }
            Segment::Literal(name) => path = path.join(&**name),
            Segment::Glob(glob) => {
                let mut name = Vec::new();
                for piece in &*glob.0 {
                    match piece {
                        Piece::Text(text) => name.extend(text),
                        Piece::AnyRun => name.extend(dice.one(&["", "a", "é", ".x"]).bytes()),
                        Piece::AnyChar => name.extend(dice.one(&["a", "é", "\u{20ac}", "\u{1f600}", "."]).bytes()),
                        Piece::Class { ranges, .. } => {
                            let (low, high) = *dice.one(ranges);
                            let chars = [low, high, 'a', 'Z', 'é'];
                            name.extend(dice.one(&chars).to_string().bytes());
                        }
                    }
                }
                let name = if name.is_empty() || name == b"." || name == b".." { b"q".to_vec() } else { name };
                path = path.join(name);
            }
        }
    }
    match dice.below(8) {
        0 => path = path.parent().unwrap_or(path),
        1 if pattern.reach != Reach::Exact => {
            path = path.join(dice.one(NAMES));
        }
        2 => {
            path = path.join(dice.one(NAMES));
            path = path.join(dice.one(NAMES));
        }
        3 => {
            if let (Some(parent), Some(name)) = (path.parent(), path.name()) {
                path = parent.join([name, b"x"].concat());
            }
        }
        4 | 5 => {
            // The same in other letters.
            let other = |name: &[u8]| {
                let text = String::from_utf8(name.to_vec()).unwrap();
                let swapped: String = text
                    .chars()
                    .map(|char| match char {
                        's' => '\u{17f}',
                        'k' => '\u{212a}',
                        char if char.is_lowercase() => char.to_uppercase().next().unwrap(),
                        char => char.to_lowercase().next().unwrap(),
                    })
                    .collect();
                swapped.into_bytes()
            };
            let at = dice.below(path.segments.len().max(1));
            if let Some(segment) = path.segments.get_mut(at) {
                *segment = other(segment).into();
            }
        }
        _ => {}
    }
    path
}

/// How many verdicts are asked for: `make test-long` sets PROPTEST_CASES to far more than the usual 256.
fn verdicts() -> usize {
    match std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse::<usize>().ok()) {
        Some(cases) if cases >= 20_000 => 110_000,
        _ => 5_000,
    }
}

#[test]
#[cfg_attr(windows, ignore = "asks Guile, which Wine cannot start")]
fn generated_profiles_do_what_decide_says() {
    let Some(mut machine) = Machine::new() else { return };
    let wanted = verdicts();
    let (mut seed, mut refused, mut proved) = (0_u64, 0, 0);
    let mut asked = 0;
    while asked < wanted {
        seed += 1;
        let text = policy(&mut Dice(seed));
        let Ok(compiled) = compile("generated", &text) else {
            refused += 1;
            continue;
        };
        let proof = verify::seatbelt::prove(&compiled.lowered.policy, &compiled.lowered.gaps, &compiled.profile);
        assert_eq!(proof, Ok(()), "{text}\n{}", compiled.profile);
        proved += 1;
        let accesses = accesses(&compiled.lowered.policy, 40, seed);
        asked += accesses.len() * 2;
        machine.ask(&format!("seed {seed}\n{text}"), &compiled, accesses);
    }
    let reached = machine.compare();
    eprintln!("{reached:?}, {proved} profiles, {refused} texts refused");
    assert!(reached.verdicts >= wanted && refused < proved * 2, "{reached:?}, {proved} profiles, {refused} refused");
    assert!(reached.allowed * 5 >= reached.verdicts, "{reached:?}");
    assert!((reached.verdicts - reached.allowed) * 5 >= reached.verdicts, "{reached:?}");
    assert!(reached.by_gap * 300 >= reached.verdicts, "{reached:?}");
}
