//! Every shipped policy on Windows: compiled, proved, and what it comes to.

use crate::documents::{files, root};
use sandbox_runtime::backend::gap::Gap;
use sandbox_runtime::backend::wfp::{Lowered, Needs, access_lists, filters, lower};
use sandbox_runtime::compile::artefact::{self, Emit};
use sandbox_runtime::diagnostic::Level;
use sandbox_runtime::ir::Policy;
use sandbox_runtime::resolve::{Files, Options, Text, resolve};
use sandbox_runtime::source::Sources;
use sandbox_runtime::verify::wfp::{prove_access_lists, prove_filters};
use sandbox_runtime::vocabulary::System;
use std::collections::BTreeMap;
use std::io;

/// No shipped policy uses a file.
struct NoFiles;

impl Files for NoFiles {
    fn read(&self, _: &str) -> io::Result<Text> {
        Err(io::ErrorKind::NotFound.into())
    }
}

/// A policy's meaning on Windows.
pub fn resolved(name: &str, text: &str) -> (Policy, Sources) {
    let mut sources = Sources::default();
    let given = sources.add(name, text);
    let defines = text.contains("$registry").then(|| ("registry".to_owned(), "registry.example.com".to_owned()));
    let options = Options { system: System::Windows, defines: defines.into_iter().collect() };
    let (policy, said) = resolve(&[given], &mut sources, &NoFiles, &options);
    (policy.unwrap_or_else(|| panic!("{said:?}")), sources)
}

/// The gaps of a policy by their codes: how many, and the first place of each.
fn summary(gaps: &[Gap], sources: &Sources) -> String {
    let mut kinds: BTreeMap<&str, Vec<&Gap>> = BTreeMap::new();
    for gap in gaps {
        kinds.entry(gap.kind.code.name).or_default().push(gap);
    }
    let line = |(name, gaps): (&str, Vec<&Gap>)| {
        let first = gaps.first().unwrap();
        let place = first.said.span().map(|span| sources.location(span).to_string()).unwrap_or_default();
        let witness = first.said.witness.as_deref().unwrap_or("-");
        format!("{name} {:?} × {}, first {place}: {witness}\n", first.kind.direction, gaps.len())
    };
    kinds.into_iter().map(line).collect()
}

#[test]
fn each_shipped_policy_is_proved() {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(root().join("snapshots/wfp"));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    // A line that is put into a module would move all that follow.
    settings.add_filter(r"(std/[a-z-]+):\d+", "$1");
    for path in files("policies", "policy") {
        let name = path.file_name().unwrap().to_str().unwrap();
        let mut text = std::fs::read_to_string(&path).unwrap();
        if path.parent().unwrap().ends_with("std") && name != "default.policy" {
            // A module is for others to use.
            let module = name.trim_end_matches(".policy");
            text = format!("srt 1\nuse std/{module}\ndefault read deny\nallow read, write $WORKSPACE\n");
        }
        let (policy, sources) = resolved(name, &text);
        let Lowered { plan, gaps, .. } =
            lower(&policy, &Needs::default()).unwrap_or_else(|said| panic!("{name}: {said:#?}"));
        let (filters, lists) = (filters(&plan, &sources), access_lists(&plan, &sources));
        assert_eq!(prove_filters(&policy, &gaps, &Needs::default().proxy_ports, &filters), Ok(()), "{name}");
        assert_eq!(prove_access_lists(&policy, &gaps, &lists), Ok(()), "{name}\n{lists}");
        let name = name.trim_end_matches(".policy");
        if path.parent().unwrap().ends_with("policies") {
            let built = artefact::wfp(&policy, &sources, &[Emit::Wfp, Emit::Acl]).unwrap();
            let stops: Vec<_> = built.diagnostics.iter().filter(|said| said.level == Level::Error).collect();
            assert!(stops.is_empty(), "{name}: {stops:#?}");
            assert_eq!(
                built.artefacts,
                [(Emit::Wfp, filters.clone().into_bytes()), (Emit::Acl, lists.clone().into_bytes())]
            );
            let body = format!("{}\n{filters}\n{lists}", summary(&gaps, &sources));
            settings.bind(|| insta::assert_snapshot!(name, body));
        }
    }
}
