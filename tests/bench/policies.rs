//! What a policy costs before anything runs: each stage for a policy of 200 rules and for the embedded default, on a
//! machine described in a string, so that no disk is in it; and a single decision.
//!
//! Budgets: `two_hundred_rules::all` 5 ms; `decision::ten_rules` 1 µs.

#![allow(clippy::unwrap_used, clippy::wildcard_imports)]

use divan::{Bencher, black_box};
use sandbox_runtime::backend::bubblewrap::{Needs, lower};
use sandbox_runtime::bind::bind;
use sandbox_runtime::host::{Listing, nominal};
use sandbox_runtime::ir::{Access, BoundPolicy, Decider, Policy, decide};
use sandbox_runtime::resolve::{Files, Options, STD, Text, resolve};
use sandbox_runtime::sets::path::AbsPath;
use sandbox_runtime::source::Sources;
use sandbox_runtime::vocabulary::System;
use std::collections::BTreeMap;
use std::fmt::Write as _;

fn main() {
    divan::main();
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

    /// One of many by the same policy.
    #[divan::bench]
    fn two_hundred_rules_compiled(bencher: Bencher<'_, '_>) {
        let policy = bound(resolved(&rules(200)), &nominal());
        let decider = Decider::new(&policy);
        let access = access();
        bencher.bench_local(|| decider.decide(black_box(&access)));
    }
}
