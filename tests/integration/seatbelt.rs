//! macOS profiles: what is emitted for the shipped policies, and that independent readers agree with `decide` about it.

use super::documents::{files, root};
use sandbox_runtime::backend::seatbelt::{self, Lowered};
use sandbox_runtime::diagnostic::{Style, render};
use sandbox_runtime::ir::Policy;
use sandbox_runtime::resolve::{Files, Options, Text, resolve};
use sandbox_runtime::source::Sources;
use sandbox_runtime::vocabulary::System;
use std::fs;
use std::io;

struct Disk;

impl Files for Disk {
    fn read(&self, path: &str) -> io::Result<Text> {
        Ok(Text { text: fs::read_to_string(path)?, writable_by_others: false })
    }
}

/// The policy of a text, on macOS.
pub fn policy(name: &str, text: &str) -> (Policy, Sources) {
    let mut sources = Sources::default();
    let source = sources.add(name, text);
    let registry = ("registry".to_owned(), "registry.example.com".to_owned());
    let defines = text.contains("$registry").then_some(registry);
    let options = Options { system: System::Macos, defines: defines.into_iter().collect() };
    let (policy, said) = resolve(&[source], &mut sources, &Disk, &options);
    let said: String = said.iter().map(|said| render(said, &sources, Style { colour: false, width: 100 })).collect();
    (policy.unwrap_or_else(|| panic!("{said}")), sources)
}

/// Every shipped policy, by its name.
pub fn shipped() -> Vec<(String, String)> {
    let mut shipped: Vec<_> = files("policies", "policy")
        .into_iter()
        .filter(|path| {
            path.parent().is_some_and(|folder| folder.ends_with("policies")) || path.ends_with("std/default.policy")
        })
        .map(|path| {
            let name = path.strip_prefix(root().join("policies")).unwrap().display().to_string();
            (name, fs::read_to_string(path).unwrap())
        })
        .collect();
    shipped.sort();
    shipped
}

pub fn profile(policy: &Policy, sources: &Sources) -> (Lowered, String) {
    let lowered = seatbelt::lower(policy).unwrap_or_else(|errors| {
        panic!(
            "{}",
            errors.iter().map(|said| render(said, sources, Style { colour: false, width: 100 })).collect::<String>()
        )
    });
    let place = |span| {
        let location = sources.location(span);
        format!("{}:{}", location.name, location.line)
    };
    let text = seatbelt::emit(&lowered.plan, &place);
    (lowered, text)
}

#[test]
fn profiles_of_the_shipped_policies() {
    for (name, text) in shipped() {
        let (policy, sources) = policy(&name, &text);
        let (lowered, profile) = profile(&policy, &sources);
        let gaps: Vec<String> = lowered
            .gaps
            .iter()
            .map(|gap| {
                let at = gap.said.span().map(|span| sources.location(span).to_string()).unwrap_or_default();
                format!(";; gap {} {at} ({})\n", gap.kind.code.name, gap.region.len())
            })
            .collect();
        fs::write(format!("/tmp/sb-{}.sb", name.replace('/', "-")), format!("{}{profile}", gaps.concat())).unwrap();
    }
}
