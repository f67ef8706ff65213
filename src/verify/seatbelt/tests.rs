// The shipped policies are files.
#![allow(clippy::unwrap_used, clippy::disallowed_methods)]

use super::*;
use crate::backend::seatbelt::{Lowered, emit, lower};
use crate::resolve::{Options, resolve, tests::Texts};
use crate::source::Sources;
use crate::vocabulary::System;

/// A policy's lowered form and its profile.
pub(super) fn profile(text: &str) -> (Lowered, String) {
    let mut sources = Sources::default();
    let given = sources.add("given", text);
    let options = Options { system: System::Macos, defines: BTreeMap::new() };
    let (policy, said) = resolve(&[given], &mut sources, &Texts(&[]), &options);
    let policy = policy.unwrap_or_else(|| panic!("{said:?}"));
    let lowered = lower(&policy).unwrap_or_else(|errors| panic!("{errors:?}"));
    let text = emit(&lowered.plan, &|span| sources.location(span).to_string());
    (lowered, text)
}

#[test]
fn the_shipped_policies_are_what_their_profiles_say() {
    let shipped = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/policies")).unwrap();
    let mut texts: Vec<_> = shipped.map(|entry| entry.unwrap().path()).filter(|path| path.is_file()).collect();
    texts.push(concat!(env!("CARGO_MANIFEST_DIR"), "/policies/std/default.policy").into());
    texts.sort();
    for path in texts {
        let text = std::fs::read_to_string(&path).unwrap();
        let start = std::time::Instant::now();
        let (lowered, profile) = profile(&text);
        let lowered_in = start.elapsed();
        let proof = prove(&lowered.policy, &lowered.gaps, &profile);
        eprintln!("{}: {lowered_in:?} {:?} {}", path.display(), start.elapsed(), profile.len());
        assert_eq!(proof, Ok(()), "{}", path.display());
    }
}
