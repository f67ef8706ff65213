//! macOS profiles: what is emitted for the shipped policies, and that readers which share nothing with the emitter agree with
//! `decide` about it: the library's own (`verify`), Guile carrying the profile out, and stock TinyScheme loading it.

mod generated;
mod guile;
mod mutants;

use super::documents::{files, root};
use guile::Machine;
use sandbox_runtime::backend::gap::Direction;
use sandbox_runtime::backend::seatbelt::{self, Lowered};
use sandbox_runtime::diagnostic::{Style, render};
use sandbox_runtime::ir::Policy;
use sandbox_runtime::resolve::{Files, Options, Text, resolve};
use sandbox_runtime::source::Sources;
use sandbox_runtime::verify;
use sandbox_runtime::vocabulary::System;
use std::fs;
use std::io;
use std::path::Path;

struct Disk;

impl Files for Disk {
    fn read(&self, path: &str) -> io::Result<Text> {
        Ok(Text { text: fs::read_to_string(path)?, writable_by_others: false })
    }
}

/// A policy, what it is lowered to, and its profile.
pub struct Compiled {
    pub policy: Policy,
    pub sources: Sources,
    pub lowered: Lowered,
    pub profile: String,
}

/// Why a text is no policy for macOS.
pub fn compile(name: &str, text: &str) -> Result<Compiled, String> {
    let mut sources = Sources::default();
    let source = sources.add(name, text);
    let registry = ("registry".to_owned(), "registry.example.com".to_owned());
    let defines = text.contains("$registry").then_some(registry);
    let options = Options { system: System::Macos, defines: defines.into_iter().collect() };
    let (policy, said) = resolve(&[source], &mut sources, &Disk, &options);
    let show = |said: &[sandbox_runtime::diagnostic::Diagnostic]| -> String {
        said.iter().map(|said| render(said, &sources, Style { colour: false, width: 100 })).collect()
    };
    let policy = policy.ok_or_else(|| show(&said))?;
    let lowered = seatbelt::lower(&policy).map_err(|errors| show(&errors))?;
    let profile = seatbelt::emit(&lowered.plan, &|span| sources.location(span).to_string());
    Ok(Compiled { policy, sources, lowered, profile })
}

/// Every shipped policy, by its name.
fn shipped() -> Vec<(String, String)> {
    let whole = |path: &Path| path.parent().is_some_and(|folder| folder.ends_with("policies"));
    let shipped =
        files("policies", "policy").into_iter().filter(|path| whole(path) || path.ends_with("std/default.policy"));
    shipped
        .map(|path| {
            let name = path.strip_prefix(root().join("policies")).unwrap().display().to_string().replace('\\', "/");
            (name, fs::read_to_string(path).unwrap())
        })
        .collect()
}

#[test]
fn the_shipped_policies_are_proved_and_their_profiles_are_these() {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(root().join("snapshots/seatbelt"));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    for (name, text) in shipped() {
        let compiled = compile(&name, &text).unwrap();
        let Compiled { lowered, profile, sources, .. } = &compiled;
        assert_eq!(verify::seatbelt::prove(&lowered.policy, &lowered.gaps, profile), Ok(()), "{name}");
        let mut whole = format!(";; {} gaps:\n", lowered.gaps.len());
        for gap in &lowered.gaps {
            let at = gap.said.span().map(|span| sources.location(span).to_string()).unwrap_or_default();
            let witness = gap.said.witness.as_deref().unwrap_or("-");
            let way = format!("{:?}", gap.kind.direction).to_lowercase();
            whole += &format!(";; {way} {} {at}: {} sets; {witness}\n", gap.kind.code.name, gap.region.len());
            let accepted = compiled.policy.suppressions.iter().any(|suppression| {
                suppression.code == gap.kind.code.name && gap.said.span().is_some_and(|span| suppression.covers(span))
            });
            assert!(gap.kind.direction != Direction::Looser || accepted, "{name}: {} at {at}", gap.kind.code.name);
        }
        let again = compile(&name, &text).unwrap();
        assert_eq!(again.profile, *profile, "{name}: twice the same");
        settings.bind(|| insta::assert_snapshot!(name.replace('/', "-"), whole + profile));
    }
}

#[test]
#[cfg_attr(windows, ignore = "asks TinyScheme, which Wine cannot start")]
fn stock_tinyscheme_loads_the_profiles() {
    let Some(program) = guile::found("tinyscheme") else { return };
    let shim = fs::read_to_string(root().join("tests/integration/seatbelt/dialect.scm")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in shipped().into_iter().filter(|(name, _)| name.starts_with("coding") || name.contains("default"))
    {
        let profile = compile(&name, &text).unwrap().profile;
        let file = folder.path().join("profile.scm");
        fs::write(&file, format!("{shim}{profile}\n(display \"loaded\")\n")).unwrap();
        let out = std::process::Command::new(&program).arg(&file).stdin(std::process::Stdio::null()).output().unwrap();
        let said = String::from_utf8_lossy(&out.stdout);
        assert!(said.contains("loaded") && !said.contains("Error"), "{name}: {said}");
    }
}

#[test]
#[cfg_attr(windows, ignore = "asks Guile, which Wine cannot start")]
fn the_shipped_profiles_do_what_decide_says() {
    let Some(mut machine) = Machine::new() else { return };
    for (name, text) in shipped() {
        let compiled = compile(&name, &text).unwrap();
        let accesses = generated::accesses(&compiled.lowered.policy, 60, 7);
        machine.ask(&name, &compiled, accesses);
    }
    let reached = machine.compare();
    assert!(reached.verdicts >= 400, "{reached:?}");
}

/// The links that every macOS has, by name and by what they lead to: the one thing in which the profile is compared with the
/// policy after it was rewritten.
#[test]
#[cfg_attr(windows, ignore = "asks Guile, which Wine cannot start")]
fn the_systems_own_links() {
    let Some(mut machine) = Machine::new() else { return };
    let text = "srt 1\ndefault read allow\ndeny read /etc/secret\nallow read, write /var/spool/x\ndeny write /private/var/spool/x/y\n";
    let compiled = compile("links", text).unwrap();
    assert_eq!(verify::seatbelt::prove(&compiled.lowered.policy, &compiled.lowered.gaps, &compiled.profile), Ok(()));
    for (operation, object, allowed) in [
        ("file-read-data", "/private/etc/secret", false),
        ("file-read-data", "/etc/secret", false),
        ("file-read-data", "/private/etc/other", true),
        ("file-write-data", "/private/var/spool/x/z", true),
        ("file-write-data", "/private/var/spool/x/y", false),
        ("file-write-data", "/var/spool/x/z", false),
        ("file-read-metadata", "/etc", true),
        ("file-write-unlink", "/private/var/spool/x", false),
        ("file-write-create", "/private/var/spool/x/z", true),
        ("network-outbound", "remote:localhost:80", false),
        ("process-info-pidinfo", "other", false),
        ("nvram-get", "other", false),
        ("iokit-get-properties", "other", false),
        ("process-fork", "other", true),
        ("system-socket", "other", false),
    ] {
        machine.question("links", &compiled, operation, object, allowed);
    }
    machine.compare();
}
