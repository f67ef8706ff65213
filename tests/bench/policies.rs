//! What a policy costs before anything runs: each stage for a policy of 200 rules and for the embedded default, on a
//! machine described in a string, so that no disk is in it; and a single decision.
//!
//! Budgets: `two_hundred_rules::all` 5 ms; `decision::ten_rules` 1 µs;
//! `decision::million_hosts` 1 ms for its thousand decisions; `compile` 20 ms each.

#![allow(clippy::disallowed_methods, clippy::unwrap_used, clippy::wildcard_imports)]

use divan::{Bencher, black_box};
use sandbox_runtime::backend::bubblewrap::{Needs, lower};
use sandbox_runtime::bind::bind;
use sandbox_runtime::host::{Listing, nominal};
use sandbox_runtime::ir::{Access, BoundPolicy, Decider, Kept, Policy, decide};
use sandbox_runtime::resolve::{Files, Options, STD, Text, resolve};
use sandbox_runtime::sets::host::Name;
use sandbox_runtime::sets::path::AbsPath;
use sandbox_runtime::sets::peer::Protocol;
use sandbox_runtime::source::Sources;
use sandbox_runtime::vocabulary::System;
use std::collections::BTreeMap;
use std::fmt::Write as _;

fn main() {
    divan::main();
    // All of them were run, and not a few that a filter chose.
    if std::env::args().skip(1).all(|argument| argument == "--bench") && std::env::args().len() > 1 {
        analysis::print_growth();
    }
}

struct NoFiles;

impl Files for NoFiles {
    fn read(&self, _: &str) -> std::io::Result<Text> {
        Err(std::io::ErrorKind::NotFound.into())
    }
}

/// Rules of the kinds that people write: trees, globs, hosts.
fn rules(count: usize) -> String {
    let mut text = "srt 1\ndefault read deny\n".to_owned();
    for number in 0..count {
        let _ = match number % 4 {
            0 => writeln!(text, "allow read ~/work/{number}/src"),
            1 => writeln!(text, "allow read $WORKSPACE/{number}/**/*.rs"),
            2 => writeln!(text, "deny read $WORKSPACE/{number}/.env"),
            _ => writeln!(text, "allow connect host{number}.example.com:443"),
        };
    }
    text
}

/// One list, by whatever name.
struct OneList(String);

impl Files for OneList {
    fn read(&self, _: &str) -> std::io::Result<Text> {
        Ok(Text { text: self.0.clone(), writable_by_others: false })
    }
}

/// Everything but a list of hosts.
fn with_list(count: u32) -> Policy {
    let mut list = "# a list\n".to_owned();
    for number in 0..count {
        let _ = writeln!(list, "ads{number}.tracker{}.example", number % 1000);
    }
    let mut sources = Sources::default();
    let text = "srt 1\ndefault read deny\nlet ads = lines(\"ads.txt\")\nallow connect *\ndeny connect $ads\n";
    let given = sources.add("bench.policy", text);
    let options = Options { system: System::Linux, defines: BTreeMap::new() };
    let (policy, diagnostics) = resolve(&[given], &mut sources, &OneList(list), &options);
    assert!(diagnostics.is_empty(), "{diagnostics:?}");
    policy.unwrap()
}

fn resolved(text: &str) -> Policy {
    let mut sources = Sources::default();
    let given = sources.add("bench.policy", text);
    let options = Options { system: System::Linux, defines: BTreeMap::new() };
    let (policy, diagnostics) = resolve(&[given], &mut sources, &NoFiles, &options);
    assert!(diagnostics.iter().all(|said| said.level != sandbox_runtime::diagnostic::Level::Error), "{diagnostics:?}");
    policy.unwrap()
}

fn bound(policy: Policy, host: &Listing) -> BoundPolicy {
    let (policy, diagnostics) = bind(policy, host);
    policy.unwrap_or_else(|| panic!("{diagnostics:?}"))
}

fn default() -> &'static str {
    STD.iter().find(|(name, _)| *name == "default").unwrap().1
}

macro_rules! stages {
    ($room:ident, $text:expr) => {
        mod $room {
            use super::*;

            #[divan::bench]
            fn parse_and_resolve(bencher: Bencher<'_, '_>) {
                let text = $text;
                bencher.bench(|| resolved(black_box(&text)));
            }

            #[divan::bench]
            fn bind(bencher: Bencher<'_, '_>) {
                let (policy, host) = (resolved(&$text), nominal());
                bencher.with_inputs(|| policy.clone()).bench_values(|policy| bound(policy, &host));
            }

            #[divan::bench]
            fn lower(bencher: Bencher<'_, '_>) {
                let policy = bound(resolved(&$text), &nominal());
                let needs = Needs { errors_alone: true, ..Needs::default() };
                bencher.bench(|| super::lower(black_box(&policy), &needs));
            }

            #[divan::bench]
            fn all(bencher: Bencher<'_, '_>) {
                let (text, host) = ($text, nominal());
                let needs = Needs { errors_alone: true, ..Needs::default() };
                bencher.bench(|| super::lower(&bound(resolved(black_box(&text)), &host), &needs));
            }
        }
    };
}

stages!(two_hundred_rules, rules(200));
stages!(embedded_default, default());

mod decision {
    use super::*;

    fn access() -> Access {
        Access::Read(AbsPath::parse("/home/user/workspace/1/a/b/main.rs").unwrap())
    }

    #[divan::bench]
    fn ten_rules(bencher: Bencher<'_, '_>) {
        let policy = bound(resolved(&rules(10)), &nominal());
        let access = access();
        bencher.bench(|| decide(black_box(&policy), black_box(&access)));
    }

    /// Names that are in a list of a million hosts and names that are not, a thousand of them, as the proxy asks about them.
    #[divan::bench]
    fn million_hosts(bencher: Bencher<'_, '_>) {
        let policy = bound(with_list(1_000_000), &nominal());
        let decider = Kept::new(Policy::clone(&policy));
        let connect = |number: u32| Access::Connect {
            name: Some(Name::parse(&format!("ads{}.tracker{}.example", number * 977, number * 977 % 1000)).unwrap()),
            address: "192.0.2.1".parse().unwrap(),
            port: 443,
            protocol: Protocol::Tcp,
        };
        let accesses: Vec<Access> = (0..1000).map(|number| connect(number * 2)).collect();
        assert!(accesses.iter().any(|access| decider.decide(access).allowed));
        assert!(accesses.iter().any(|access| !decider.decide(access).allowed));
        bencher
            .counter(divan::counter::ItemsCount::new(accesses.len()))
            .bench_local(|| accesses.iter().filter(|access| decider.decide(black_box(access)).allowed).count());
    }

    /// One of many by the same policy.
    #[divan::bench]
    fn two_hundred_rules_compiled(bencher: Bencher<'_, '_>) {
        let policy = bound(resolved(&rules(200)), &nominal());
        let decider = Decider::new(&policy);
        let access = access();
        bencher.bench_local(|| decider.decide(black_box(&access)));
    }
}

/// Questions about whole policies, on policies such as people write: mostly trees below a few roots, some names at any depth,
/// some globs. Budgets: all findings of 200 rules 10 ms, of 1000 100 ms, of 10 000 2 s; the difference of two policies of 1000
/// rules 200 ms.
mod analysis {
    use super::*;
    use sandbox_runtime::analysis::{Budget, Study, changes};
    use sandbox_runtime::lint::{self, Wanted};
    use sandbox_runtime::vocabulary::Verb;

    /// A pseudo-random number below another: the same on every machine (Marsaglia, "Xorshift RNGs").
    struct Numbers(u64);

    impl Numbers {
        fn below(&mut self, most: usize) -> usize {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            usize::try_from(self.0 % most as u64).unwrap()
        }
    }

    pub fn mixed(count: usize) -> String {
        const ROOTS: [&str; 7] = ["/home/u", "/etc", "/var", "/opt", "~", "~/.config", "$WORKSPACE"];
        const NAMES: [&str; 12] =
            ["src", "lib", "bin", "build", "cache", "data", "secrets", "keys", "conf", "app", "api", "web"];
        const DOTS: [&str; 6] = [".env", ".npmrc", ".netrc", "id_rsa", "hooks", "token"];
        let mut numbers = Numbers(42);
        let mut text = "srt 1\ndefault read deny\n".to_owned();
        for number in 0..count {
            let effect = if number % 2 == 0 { "allow" } else { "deny" };
            let root = ROOTS[numbers.below(ROOTS.len())];
            let name = |numbers: &mut Numbers| {
                format!("{}{}", NAMES[numbers.below(NAMES.len())], numbers.below(count / 20 + 1))
            };
            let target = match numbers.below(100) {
                0..70 => {
                    let depth = 1 + numbers.below(4);
                    let names: Vec<_> = (0..depth).map(|_| name(&mut numbers)).collect();
                    format!("{root}/{}", names.join("/"))
                }
                70..76 => format!("$WORKSPACE/**/{}{}", DOTS[numbers.below(DOTS.len())], numbers.below(count)),
                76..80 => format!("{root}/**/{}/*", name(&mut numbers)),
                80..84 => format!("{root}/**/*.ext{}", numbers.below(count / 10 + 1)),
                _ => {
                    let host = format!("{}.example{}.com", name(&mut numbers), numbers.below(count / 10 + 1));
                    let _ = writeln!(text, "{effect} connect {host}:443");
                    continue;
                }
            };
            let verb = if numbers.below(4) == 0 { "read, write" } else { "read" };
            let _ = writeln!(text, "{effect} {verb} {target}");
        }
        text
    }

    fn policy(count: usize) -> BoundPolicy {
        bound(resolved(&mixed(count)), &nominal())
    }

    #[divan::bench(args = [200, 1000, 10_000], sample_count = 5, sample_size = 1)]
    fn findings(bencher: Bencher<'_, '_>, count: usize) {
        let policy = policy(count);
        let wanted = Wanted { errors_alone: false, shell_config: |_| Vec::new() };
        bencher.bench_local(|| lint::run(black_box(&policy), wanted));
    }

    fn seconds(count: usize) -> f64 {
        let policy = policy(count);
        let wanted = Wanted { errors_alone: false, shell_config: |_| Vec::new() };
        let once = |_| {
            let start = std::time::Instant::now();
            black_box(lint::run(black_box(&policy), wanted));
            start.elapsed().as_secs_f64()
        };
        (0..3).map(once).fold(f64::INFINITY, f64::min)
    }

    /// How the time of all findings grows with the rules: as which power of their number. Budget: 1.3.
    pub fn print_growth() {
        let (thousand, ten) = (seconds(1000), seconds(10_000));
        println!(
            "all findings: {:.1} ms for 1000 rules, {:.1} ms for 10000: they grow as the rules to the power of {:.2}",
            thousand * 1e3,
            ten * 1e3,
            (ten / thousand).log10()
        );
    }

    /// How the rules stand to each other, and nothing else.
    #[divan::bench(args = [200, 1000, 10_000], sample_count = 5, sample_size = 1)]
    fn worth_of_each_allow(bencher: Bencher<'_, '_>, count: usize) {
        let policy = policy(count);
        bencher.bench_local(|| {
            let study = Study::new(black_box(&policy));
            let rules = (0..).map(sandbox_runtime::ir::RuleId).zip(&policy.rules);
            let allows = rules.filter(|(_, rule)| rule.effect == sandbox_runtime::vocabulary::Effect::Allow);
            allows.map(|(id, _)| study.worth(id, &mut Budget::new(1_000_000))).collect::<Vec<_>>()
        });
    }

    #[divan::bench(sample_count = 10, sample_size = 1)]
    fn difference_of_1000_rules(bencher: Bencher<'_, '_>) {
        let text = mixed(1000);
        // Every tenth rule is another one.
        let other: String = text
            .lines()
            .enumerate()
            .map(|(number, line)| if number % 10 == 5 { format!("{line}x\n") } else { format!("{line}\n") })
            .collect();
        let (old, new) = (resolved(&text), resolved(&other.replace(":443x", ":444")));
        bencher.bench_local(|| {
            let (old, new) = (Study::new(black_box(&old)), Study::new(black_box(&new)));
            let mut found = Vec::new();
            for verb in Verb::ALL {
                found.push(changes(old.whole(), new.whole(), *verb, &mut Budget::new(200_000_000)));
                found.push(changes(new.whole(), old.whole(), *verb, &mut Budget::new(200_000_000)));
            }
            found
        });
    }
}

/// A policy as it is shipped, for a system.
fn shipped(name: &str, system: System) -> (Policy, Sources) {
    let path = format!("{}/policies/{name}.policy", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).unwrap();
    let mut sources = Sources::default();
    let given = sources.add(name, text);
    let defines = [("registry".to_owned(), "registry.example.com".to_owned())];
    let options = Options { system, defines: defines.into() };
    let policy = resolve(&[given], &mut sources, &NoFiles, &options).0.unwrap();
    (policy, sources)
}

/// What `srt compile` makes of each policy as it is shipped: lowered, looked through for faults, written, read back and proved.
/// Budget: 20 ms each.
mod compile {
    use super::*;
    use sandbox_runtime::backend::Target;
    use sandbox_runtime::compile::artefact::{self, Emit};

    const SHIPPED: [&str; 7] = [
        "coding-agent",
        "git-over-ssh",
        "locked-down",
        "mcp-file-server",
        "npm-install-ci",
        "python-database",
        "std/default",
    ];

    #[divan::bench(args = SHIPPED)]
    fn linux(bencher: Bencher<'_, '_>, name: &str) {
        let (policy, sources) = shipped(name, System::Linux);
        let policy = bound(policy, &nominal());
        let wanted = Emit::usual(Target::Bubblewrap, true);
        bencher.bench_local(|| artefact::bubblewrap(&policy, &sources, wanted, &Needs::default()).unwrap());
    }

    #[divan::bench(args = SHIPPED)]
    fn macos(bencher: Bencher<'_, '_>, name: &str) {
        let (policy, sources) = shipped(name, System::Macos);
        bencher.bench_local(|| artefact::seatbelt(&policy, &sources, Emit::usual(Target::Seatbelt, false)).unwrap());
    }

    #[divan::bench(args = SHIPPED)]
    fn windows(bencher: Bencher<'_, '_>, name: &str) {
        let (policy, sources) = shipped(name, System::Windows);
        bencher.bench_local(|| artefact::wfp(&policy, &sources, Emit::usual(Target::Wfp, false)).unwrap());
    }
}

/// The same for macOS and Windows in its two halves: what is written of a policy, and what it takes to read that back and prove it.
mod halves {
    use super::*;
    use sandbox_runtime::backend::{seatbelt, wfp};
    use sandbox_runtime::verify;
    use sandbox_runtime::verify::wfp::{prove_access_lists, prove_filters};

    const LARGEST: [&str; 2] = ["coding-agent", "std/default"];

    #[divan::bench(args = LARGEST)]
    fn macos_written(bencher: Bencher<'_, '_>, name: &str) {
        let (policy, _) = shipped(name, System::Macos);
        bencher.bench_local(|| seatbelt::emit(&seatbelt::lower(&policy).unwrap().plan, &|_| String::new()));
    }

    #[divan::bench(args = LARGEST)]
    fn macos_proved(bencher: Bencher<'_, '_>, name: &str) {
        let lowered = seatbelt::lower(&shipped(name, System::Macos).0).unwrap();
        let text = seatbelt::emit(&lowered.plan, &|_| String::new());
        bencher.bench_local(|| verify::seatbelt::prove(&lowered.policy, &lowered.gaps, &text).unwrap());
    }

    #[divan::bench(args = LARGEST)]
    fn windows_written(bencher: Bencher<'_, '_>, name: &str) {
        let (policy, sources) = shipped(name, System::Windows);
        bencher.bench_local(|| {
            let wfp::Lowered { plan, .. } = wfp::lower(&policy, &wfp::Needs::default()).unwrap();
            (wfp::filters(&plan, &sources), wfp::access_lists(&plan, &sources))
        });
    }

    #[divan::bench(args = LARGEST)]
    fn windows_proved(bencher: Bencher<'_, '_>, name: &str) {
        let (policy, sources) = shipped(name, System::Windows);
        let needs = wfp::Needs::default();
        let wfp::Lowered { plan, gaps, .. } = wfp::lower(&policy, &needs).unwrap();
        let (filters, lists) = (wfp::filters(&plan, &sources), wfp::access_lists(&plan, &sources));
        bencher.bench_local(|| {
            prove_filters(&policy, &gaps, &needs.proxy_ports, &filters).unwrap();
            prove_access_lists(&policy, &gaps, &lists).unwrap();
        });
    }
}
