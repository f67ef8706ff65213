//! `srt compile`: what enforces a policy on each system, written down, on any system; each text proved before it is written.

use super::arguments::{Compile, TargetName};
use super::{files, load, output, status};
use sandbox_runtime::backend::Target;
use sandbox_runtime::backend::bubblewrap::{NOT_GRANTED, Needs};
use sandbox_runtime::check::Nominal;
use sandbox_runtime::compile::archive::{self, Part};
use sandbox_runtime::compile::artefact::{self, Built, Emit};
use sandbox_runtime::diagnostic::{Diagnostic, Level, any_error};
use sandbox_runtime::ir::Policy;
use sandbox_runtime::source::{SourceId, Sources};
use sandbox_runtime::vocabulary::System;
use similar::TextDiff;
use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};

pub fn compile(compile: &Compile) -> u8 {
    if let Err(message) = apart(compile) {
        output::complain(message);
        return status::USAGE;
    }
    let mut worst = 0;
    for file in &compile.files {
        let code = match one(compile, file) {
            Ok(code) => code,
            Err(message) => {
                output::complain(message);
                status::USAGE
            }
        };
        worst = worst.max(code);
    }
    worst
}

/// That no file is written twice.
fn apart(compile: &Compile) -> Result<(), String> {
    if is_archive(compile) && compile.files.len() > 1 {
        return Err("a compiled policy is made of one file: `include` the others in it".to_owned());
    }
    let mut stems = BTreeMap::new();
    for file in compile.files.iter().filter(|_| compile.output.is_some()) {
        if let Some(other) = stems.insert(stem(file), file) {
            return Err(format!(
                "`{}` and `{}` would be written to files of the same names: give each a directory of its own",
                other.display(),
                file.display()
            ));
        }
    }
    Ok(())
}

fn is_archive(compile: &Compile) -> bool {
    compile.output.as_deref().is_some_and(archive::is_archive) || compile.emit.contains(&Emit::Bundle)
}

fn stem(file: &Path) -> String {
    file.file_stem().map_or_else(|| "policy".to_owned(), |stem| stem.to_string_lossy().into_owned())
}

/// Compiles one policy.
fn one(compile: &Compile, file: &Path) -> Result<u8, String> {
    let mut sources = Sources::default();
    let given = [load::add(file, &mut sources)?];
    let stem = stem(file);
    if is_archive(compile) {
        return archive(compile, &given, sources, &stem);
    }
    let targets = targets(compile)?;
    let mut written: Vec<(String, Vec<u8>)> = Vec::new();
    let mut failed = false;
    for target in targets {
        let wanted = wanted(compile, target);
        if wanted.is_empty() {
            continue;
        }
        let (built, _, texts) = build(compile, &given, sources.clone(), target, &wanted)?;
        output::print_diagnostics(&built.diagnostics, &texts, Level::Note);
        failed |= any_error(&built.diagnostics);
        let system = target.system();
        written.extend(
            built.artefacts.into_iter().map(|(emit, bytes)| (format!("{stem}.{}", emit.suffix(system)), bytes)),
        );
    }
    if failed {
        output::complain(format_args!("`{}` is not compiled: nothing is written", file.display()));
        return Ok(status::FINDINGS);
    }
    deliver(compile, written)
}

/// Writes what was compiled, or with `--check` compares it with what is there.
fn deliver(compile: &Compile, mut written: Vec<(String, Vec<u8>)>) -> Result<u8, String> {
    let place = compile.output.as_deref().filter(|place| *place != Path::new("-"));
    let Some(place) = place else {
        if compile.check {
            return Err("--check compares with a file: name it with `-o`".to_owned());
        }
        return match (written.pop(), written.is_empty()) {
            (Some((_, bytes)), true) => {
                // A closed pipe is how readers say that they have enough.
                let _ = std::io::stdout().write_all(&bytes);
                Ok(0)
            }
            (None, _) => Err("there is nothing to emit: see `srt compile --help`".to_owned()),
            (Some(_), false) => {
                Err("several texts: name a directory with `-o DIR`, or choose one with --target and --emit".to_owned())
            }
        };
    };
    let single = written.len() == 1 && compile.files.len() == 1 && !place.is_dir();
    let files: Vec<(PathBuf, Vec<u8>)> = written
        .into_iter()
        .map(|(name, bytes)| (if single { place.to_owned() } else { place.join(name) }, bytes))
        .collect();
    put(compile.check, &files, if single { None } else { Some(place) })
}

fn put(check: bool, files: &[(PathBuf, Vec<u8>)], directory: Option<&Path>) -> Result<u8, String> {
    if check {
        let mut drifted = false;
        for (file, bytes) in files {
            drifted |= drift(file, bytes)?;
        }
        return Ok(if drifted { status::FINDINGS } else { 0 });
    }
    if let Some(directory) = directory {
        std::fs::create_dir_all(directory)
            .map_err(|error| format!("cannot make `{}`: {error}", directory.display()))?;
    }
    for (file, bytes) in files {
        files::replace(file, bytes).map_err(|error| format!("cannot write `{}`: {error}", file.display()))?;
    }
    Ok(0)
}

/// Whether a file is not what was compiled; says so.
fn drift(file: &Path, bytes: &[u8]) -> Result<bool, String> {
    let there = match std::fs::read(file) {
        Ok(there) => there,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            output::complain(format_args!("`{}` is not there: compile the policy and check it in", file.display()));
            return Ok(true);
        }
        Err(error) => return Err(format!("cannot read `{}`: {error}", file.display())),
    };
    if there == bytes {
        return Ok(false);
    }
    output::complain(format_args!("`{}` is not what the policy compiles to: compile it again", file.display()));
    if let (Ok(old), Ok(new)) = (std::str::from_utf8(&there), std::str::from_utf8(bytes)) {
        let diff = TextDiff::from_lines(old, new);
        let name = file.display().to_string();
        let text = diff.unified_diff().context_radius(1).header(&name, "compiled").to_string();
        let _ = std::io::stdout().write_all(text.as_bytes());
    }
    Ok(true)
}

fn targets(compile: &Compile) -> Result<Vec<Target>, String> {
    let named = match compile.target {
        Some(TargetName::Linux) => vec![Target::Bubblewrap],
        Some(TargetName::Macos) => vec![Target::Seatbelt],
        Some(TargetName::Windows) => vec![Target::Wfp],
        Some(TargetName::All) => Target::ALL.to_vec(),
        None if compile.emit.is_empty() => Target::ALL.to_vec(),
        None => {
            let mut of: Vec<Target> = compile.emit.iter().filter_map(|emit| emit.target()).collect();
            of.sort_unstable();
            of.dedup();
            if of.is_empty() { Target::ALL.to_vec() } else { of }
        }
    };
    for emit in &compile.emit {
        if emit.target().is_some_and(|target| !named.contains(&target)) {
            return Err(format!("`{}` is not for this target", emit.word()));
        }
        if emit.needs_host() && !compile.host {
            return Err(format!("`{}` depends on what exists: give --host, on a Linux machine", emit.word()));
        }
    }
    if compile.host && load::this_system() != System::Linux {
        return Err("--host is for Linux, where mounts depend on what exists".to_owned());
    }
    Ok(named)
}

fn wanted(compile: &Compile, target: Target) -> Vec<Emit> {
    if compile.emit.is_empty() {
        return Emit::usual(target, compile.host).to_vec();
    }
    let mut wanted = compile.emit.clone();
    wanted.retain(|emit| emit.target().is_none_or(|of| of == target));
    wanted.sort_unstable();
    wanted.dedup();
    wanted
}

/// Builds for one target; the policy, before it is bound, and the texts, beside it.
fn build(
    compile: &Compile,
    given: &[SourceId],
    sources: Sources,
    target: Target,
    wanted: &[Emit],
) -> Result<(Built, Option<Policy>, Sources), String> {
    let loaded = load::resolved(given, sources, &compile.defines, target.system());
    let Some(policy) = loaded.policy.filter(|_| !any_error(&loaded.diagnostics)) else {
        return Ok((Built::nothing(loaded.diagnostics), None, loaded.sources));
    };
    let sources = loaded.sources;
    let mut built = match target {
        Target::Seatbelt => artefact::seatbelt(&policy, &sources, wanted).map_err(|fault| artefact::mistake(&fault))?,
        Target::Bubblewrap => linux(compile, &policy, &sources, wanted)?,
        Target::Wfp => artefact::wfp(&policy, &sources, wanted).map_err(|fault| artefact::mistake(&fault))?,
    };
    built.diagnostics.extend(loaded.diagnostics);
    Ok((built, Some(policy), sources))
}

/// On this machine, or on the nominal one for what stops a compile on any.
fn linux(compile: &Compile, policy: &Policy, sources: &Sources, wanted: &[Emit]) -> Result<Built, String> {
    let loaded = load::Loaded { sources: sources.clone(), policy: Some(policy.clone()), diagnostics: Vec::new() };
    let bound = if compile.host {
        let directory = std::env::current_dir().map_err(|error| format!("cannot tell where this is: {error}"))?;
        load::bind_to(loaded, &load::machine(compile.workspace.as_deref(), &compile.defines, &directory)?)
    } else {
        load::bind_to(loaded, &Nominal::of(policy))
    };
    let mut diagnostics: Vec<Diagnostic> = bound.diagnostics;
    let Some(bound) = bound.policy.filter(|_| !any_error(&diagnostics)) else {
        return Ok(Built::nothing(diagnostics));
    };
    let mut built = if compile.host {
        artefact::bubblewrap(&bound, sources, wanted, &Needs::default())?
    } else {
        let mut compiled = artefact::planned(&bound, &Needs::default())?;
        compiled.diagnostics.retain(|said| said.level == Level::Error);
        // What is there and what is not is known on a machine alone.
        compiled.gaps.retain(|said| said.code != &NOT_GRANTED);
        Built {
            artefacts: artefact::bubblewrap_unbound(policy, sources, wanted)
                .map_err(|fault| artefact::mistake(&fault))?,
            diagnostics: compiled.diagnostics,
            gaps: artefact::gap_texts(&compiled.gaps, sources),
        }
    };
    diagnostics.append(&mut built.diagnostics);
    built.diagnostics = diagnostics;
    Ok(built)
}

/// Writes a compiled policy, for every system.
fn archive(compile: &Compile, given: &[SourceId], mut sources: Sources, stem: &str) -> Result<u8, String> {
    let alone = compile.emit.iter().all(|emit| *emit == Emit::Bundle);
    if compile.host || !alone || !matches!(compile.target, None | Some(TargetName::All)) {
        return Err(
            "a compiled policy is for every system and machine: leave --target, --host and other texts out".to_owned()
        );
    }
    let mut compiled: Vec<(Policy, Built, Target)> = Vec::new();
    let mut failed = false;
    for target in Target::ALL {
        let usual = Emit::usual(target, false);
        let (built, policy, texts) = build(compile, given, sources, target, usual)?;
        sources = texts;
        output::print_diagnostics(&built.diagnostics, &sources, Level::Error);
        failed |= any_error(&built.diagnostics);
        compiled.extend(policy.map(|policy| (policy, built, target)));
    }
    if failed || compiled.len() != Target::ALL.len() {
        output::complain("nothing is written");
        return Ok(status::FINDINGS);
    }
    let parts: Vec<Part<'_>> = compiled
        .iter()
        .map(|(policy, built, _)| Part {
            policy,
            artefacts: built
                .artefacts
                .iter()
                .map(|(emit, bytes)| (emit.word(), String::from_utf8_lossy(bytes).into_owned()))
                .collect(),
            gaps: built.gaps.clone(),
        })
        .collect();
    let text =
        archive::write(&parts, &sources).map_err(|error| format!("cannot write the compiled policy: {error}"))?;
    deliver(compile, vec![(format!("{stem}.{}", Emit::Bundle.suffix(System::Linux)), text.into_bytes())])
}
