//! What `srt compile` writes: for each target the texts that enforce a policy. Each is proved to be the policy before it is given
//! out, bubblewrap's arguments by way of their plan; the rules are for reading.
//!
//! Nothing here reads or writes files; where a machine is needed, it is in the bound policy.

use super::{Compiled, accepting, shell_config};
use crate::backend::bubblewrap::seccomp::{Architecture, Table, Watch, assemble, entries};
use crate::backend::bubblewrap::{self, Argument, Arguments};
use crate::backend::gap::{Direction, Gap};
use crate::backend::{Target, seatbelt, wfp};
use crate::diagnostic::{Diagnostic, Level, any_error};
use crate::ir::{BoundPolicy, Policy, Subject};
use crate::lint::{self, Wanted};
use crate::sets::peer::Endpoint;
use crate::source::{Sources, Span};
use crate::verify::bubblewrap::Form;
use crate::verify::{self, Fault};
use crate::vocabulary::System;
use std::fmt::Write as _;

/// What can be written; [`Emit::what`] says what each is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Emit {
    Sbpl,
    Bwrap,
    /// As `bwrap --args` reads them.
    BwrapNul,
    BwrapShell,
    /// As the kernel takes it.
    Seccomp,
    SeccompText,
    Wfp,
    Acl,
    Ir,
    /// All of it, for every system: not a text of one target.
    Bundle,
}

impl Emit {
    pub const ALL: [Self; 10] = [
        Self::Sbpl,
        Self::Bwrap,
        Self::BwrapNul,
        Self::BwrapShell,
        Self::Seccomp,
        Self::SeccompText,
        Self::Wfp,
        Self::Acl,
        Self::Ir,
        Self::Bundle,
    ];

    /// The word on the command line.
    pub fn word(self) -> &'static str {
        match self {
            Self::Sbpl => "sbpl",
            Self::Bwrap => "bwrap",
            Self::BwrapNul => "bwrap-nul",
            Self::BwrapShell => "bwrap-shell",
            Self::Seccomp => "seccomp",
            Self::SeccompText => "seccomp-text",
            Self::Wfp => "wfp",
            Self::Acl => "acl",
            Self::Ir => "ir",
            Self::Bundle => "bundle",
        }
    }

    /// What it is, in a line of help.
    pub fn what(self) -> &'static str {
        match self {
            Self::Sbpl => "macOS: the profile for sandbox-exec",
            Self::Bwrap => "Linux, with --host: bubblewrap's arguments, one a line",
            Self::BwrapNul => "Linux, with --host: the same, each ended by NUL",
            Self::BwrapShell => "Linux, with --host: the same, as a command for a shell",
            Self::Seccomp => "Linux: the filter of system calls, as bytes",
            Self::SeccompText => "Linux: the filter of system calls, to be read",
            Self::Wfp => "Windows: the filters of connections, as JSON",
            Self::Acl => "Windows: the entries of access lists, as JSON",
            Self::Ir => "The rules, as YAML",
            Self::Bundle => "A compiled policy, for every system and machine",
        }
    }

    /// The target that it is for; the rules are written for each, a bundle for all.
    pub fn target(self) -> Option<Target> {
        match self {
            Self::Sbpl => Some(Target::Seatbelt),
            Self::Bwrap | Self::BwrapNul | Self::BwrapShell | Self::Seccomp | Self::SeccompText => {
                Some(Target::Bubblewrap)
            }
            Self::Wfp | Self::Acl => Some(Target::Wfp),
            Self::Ir | Self::Bundle => None,
        }
    }

    /// What follows the policy's name in that of a file.
    pub fn suffix(self, system: System) -> String {
        match self {
            Self::Sbpl => "sb".to_owned(),
            Self::Bwrap => "bwrap".to_owned(),
            Self::BwrapNul => "bwrap0".to_owned(),
            Self::BwrapShell => "bwrap.sh".to_owned(),
            Self::Seccomp => "bpf".to_owned(),
            Self::SeccompText => "seccomp".to_owned(),
            Self::Wfp => "wfp.json".to_owned(),
            Self::Acl => "acl.json".to_owned(),
            Self::Ir => format!("{system}.yaml"),
            Self::Bundle => "srtc".to_owned(),
        }
    }

    /// Whether it depends on what exists on a machine.
    pub fn needs_host(self) -> bool {
        matches!(self, Self::Bwrap | Self::BwrapNul | Self::BwrapShell)
    }

    /// What is written for a target when nothing is said.
    pub fn usual(target: Target, host: bool) -> &'static [Self] {
        match target {
            Target::Seatbelt => &[Self::Sbpl],
            Target::Bubblewrap if host => &[Self::BwrapShell, Self::SeccompText],
            Target::Bubblewrap => &[Self::SeccompText],
            Target::Wfp => &[Self::Wfp, Self::Acl],
        }
    }
}

/// A gap of a policy, in words.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct GapText {
    pub code: &'static str,
    pub direction: Direction,
    pub message: String,
    /// `FILE:LINE`
    pub place: Option<String>,
    pub witness: Option<String>,
}

/// What became of a policy for one target.
#[derive(Debug)]
pub struct Built {
    pub artefacts: Vec<(Emit, Vec<u8>)>,
    /// What is said of the policy, accepted things left out.
    pub diagnostics: Vec<Diagnostic>,
    /// Every gap, accepted or not; of Linux those on the machine that it was bound to.
    pub gaps: Vec<GapText>,
}

impl Built {
    /// No texts, and this to say.
    pub fn nothing(diagnostics: Vec<Diagnostic>) -> Self {
        Self { artefacts: Vec::new(), diagnostics, gaps: Vec::new() }
    }
}

/// What is said where a policy is compiled that is not bound: by lints, and by what lowered it. No texts yet.
fn lowered_to(policy: &Policy, sources: &Sources, lowered: Result<&[Gap], &[Diagnostic]>) -> Built {
    let mut said = lint::elsewhere(policy, Wanted { errors_alone: true, shell_config });
    said.retain(|said| said.level == Level::Error);
    let mut gaps = Vec::new();
    match lowered {
        Ok(found) => {
            gaps.extend(found.iter().map(|gap| gap_text(&gap.said, gap.kind.direction, sources)));
            said.extend(found.iter().map(|gap| gap.said.clone()));
        }
        Err(errors) => said.extend_from_slice(errors),
    }
    Built { artefacts: Vec::new(), diagnostics: accepting(policy, said).0, gaps }
}

/// Builds for macOS, from a policy for that system whose variables may be unbound.
///
/// # Errors
/// When the profile is not the policy: a mistake in this program.
pub fn seatbelt(policy: &Policy, sources: &Sources, wanted: &[Emit]) -> Result<Built, Fault> {
    let lowered = seatbelt::lower(policy);
    let mut built =
        lowered_to(policy, sources, lowered.as_ref().map(|lowered| &lowered.gaps[..]).map_err(|errors| &errors[..]));
    let Some(lowered) = lowered.ok().filter(|_| !any_error(&built.diagnostics)) else { return Ok(built) };
    for emit in wanted {
        let text = match emit {
            Emit::Sbpl => {
                let text = seatbelt::emit(&lowered.plan, &|span| place(span, sources));
                verify::seatbelt::prove(&lowered.policy, &lowered.gaps, &text)?;
                text
            }
            Emit::Ir => rules(policy, sources),
            _ => continue,
        };
        built.artefacts.push((*emit, text.into_bytes()));
    }
    Ok(built)
}

/// Builds for Windows, from a policy for that system whose variables may be unbound.
///
/// # Errors
/// When a text is not the policy: a mistake in this program.
pub fn wfp(policy: &Policy, sources: &Sources, wanted: &[Emit]) -> Result<Built, Fault> {
    let needs = wfp::Needs::default();
    let lowered = wfp::lower(policy, &needs);
    let mut built =
        lowered_to(policy, sources, lowered.as_ref().map(|lowered| &lowered.gaps[..]).map_err(|errors| &errors[..]));
    let Some(lowered) = lowered.ok().filter(|_| !any_error(&built.diagnostics)) else { return Ok(built) };
    for emit in wanted {
        let text = match emit {
            Emit::Wfp => {
                let text = wfp::filters(&lowered.plan, sources);
                verify::wfp::prove_filters(policy, &lowered.gaps, &needs.proxy_ports, &text)?;
                text
            }
            Emit::Acl => {
                let text = wfp::access_lists(&lowered.plan, sources);
                verify::wfp::prove_access_lists(policy, &lowered.gaps, &text)?;
                text
            }
            Emit::Ir => rules(policy, sources),
            _ => continue,
        };
        built.artefacts.push((*emit, text.into_bytes()));
    }
    Ok(built)
}

/// Builds for Linux what does not depend on a machine, from a policy for that system.
///
/// # Errors
/// When the filter is not what it says it closes: a mistake in this program.
pub fn bubblewrap_unbound(policy: &Policy, sources: &Sources, wanted: &[Emit]) -> Result<Vec<(Emit, Vec<u8>)>, Fault> {
    // Whoever loads it has nobody who listens.
    let filter = Table { nest: false, notified: false, watch: Watch::Nothing, performed: Watch::Nothing, runs: false };
    if wanted.iter().any(|emit| matches!(emit, Emit::Seccomp | Emit::SeccompText)) {
        verify::seccomp::prove(&filter, &bpf(&filter))?;
    }
    let built = wanted.iter().filter_map(|emit| {
        let bytes = match emit {
            Emit::Seccomp => bpf(&filter),
            Emit::SeccompText => listing(&filter).into_bytes(),
            Emit::Ir => rules(policy, sources).into_bytes(),
            _ => return None,
        };
        Some((*emit, bytes))
    });
    Ok(built.collect())
}

/// Builds for Linux from a policy that is bound to a machine.
///
/// # Errors
/// A sentence where bubblewrap cannot be told all of it, or where a text is not the plan, or the plan not the policy: a mistake in this program.
pub fn bubblewrap(
    policy: &BoundPolicy,
    sources: &Sources,
    wanted: &[Emit],
    needs: &bubblewrap::Needs,
) -> Result<Built, String> {
    let compiled = planned(policy, needs)?;
    let mut built = Built::nothing(compiled.diagnostics);
    built.gaps = gap_texts(&compiled.gaps, sources);
    let Some(plan) = compiled.plan else { return Ok(built) };
    built.artefacts = bubblewrap_unbound(policy, sources, wanted).map_err(|fault| mistake(&fault))?;
    for emit in wanted.iter().filter(|emit| emit.needs_host()) {
        let arguments = bubblewrap::arguments(&plan).map_err(|error| error.to_string())?;
        let (form, bytes) = match emit {
            Emit::Bwrap => (Form::Lines, lines(&arguments)),
            Emit::BwrapNul => (Form::Nul, nul(&arguments)?),
            _ => (Form::Shell, shell(&arguments)?),
        };
        verify::bubblewrap::prove(&plan, form, &bytes).map_err(|fault| mistake(&fault))?;
        built.artefacts.push((*emit, bytes));
    }
    Ok(built)
}

/// The findings and the plan of a policy that is bound to a machine; the plan, with what is said of it, is the policy.
///
/// # Errors
/// A sentence where it is not: a mistake in this program.
pub fn planned(policy: &BoundPolicy, needs: &bubblewrap::Needs) -> Result<Compiled, String> {
    let compiled = super::compile(policy, needs);
    if let Some(plan) = &compiled.plan {
        verify::bubblewrap::policy::prove(policy, plan, &compiled.gaps).map_err(|fault| mistake(&fault))?;
    }
    Ok(compiled)
}

/// What is said where an artefact is not its policy.
pub fn mistake(fault: &Fault) -> String {
    format!("this is a mistake in srt, please report it: {fault}; nothing is written")
}

/// `FILE:LINE TARGET`, for a comment.
fn place(span: Span, sources: &Sources) -> String {
    let target: String = sources.slice(span).split_whitespace().collect::<Vec<_>>().join(" ");
    format!("{} {target}", sources.location(span))
}

/// The gaps of Linux, in words.
pub fn gap_texts(gaps: &[Diagnostic], sources: &Sources) -> Vec<GapText> {
    let kinds = Target::Bubblewrap.gaps();
    let direction = |said: &Diagnostic| kinds.iter().find(|kind| kind.code == said.code).map(|kind| kind.direction);
    gaps.iter().filter_map(|said| Some(gap_text(said, direction(said)?, sources))).collect()
}

fn gap_text(said: &Diagnostic, direction: Direction, sources: &Sources) -> GapText {
    GapText {
        code: said.code.name,
        direction,
        message: said.message.clone(),
        place: said.span().map(|span| sources.location(span).to_string()),
        witness: said.witness.clone(),
    }
}

/// The rules as YAML: one a line, in their order.
fn rules(policy: &Policy, sources: &Sources) -> String {
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    let mut text = format!("system: {}\ndefault_read: {}\n", policy.system, policy.default_read.value);
    if let Some(default) = &policy.default_env {
        let _ = writeln!(text, "default_env: {}", default.value);
    }
    text.push_str("rules:\n");
    for rule in &policy.rules {
        let (include, exclude) = targets(&rule.subject);
        let list = |targets: &[String]| targets.iter().map(|target| quoted(target)).collect::<Vec<_>>().join(", ");
        let _ = write!(text, "  - {{effect: {}, verb: {}, targets: [{}]", rule.effect, rule.verb, list(&include));
        if !exclude.is_empty() {
            let _ = write!(text, ", except: [{}]", list(&exclude));
        }
        let _ = write!(text, ", from: {}", quoted(&sources.location(rule.span).to_string()));
        if let Some(because) = &rule.because {
            let _ = write!(text, ", because: {}", quoted(because));
        }
        text.push_str("}\n");
    }
    if !policy.set.is_empty() {
        text.push_str("set:\n");
        for (name, setting) in &policy.set {
            let _ = writeln!(text, "  {}: {}", quoted(name), quoted(&setting.value));
        }
    }
    if !policy.limits.is_empty() {
        text.push_str("limits:\n");
        for (kind, limit) in &policy.limits {
            let _ = writeln!(text, "  {kind}: {}", limit.value);
        }
    }
    text
}

fn targets(subject: &Subject) -> (Vec<String>, Vec<String>) {
    fn all<T: ToString>(list: &[T]) -> Vec<String> {
        list.iter().map(ToString::to_string).collect()
    }
    match subject {
        Subject::Paths(set) => (all(&set.include), all(&set.exclude)),
        Subject::Names(set) => (all(&set.include), all(&set.exclude)),
        Subject::Peers(set) => {
            let (include, exclude) = match &set.endpoint {
                Endpoint::Hosts(hosts) => (all(&hosts.include), all(&hosts.exclude)),
                Endpoint::Addresses(addresses) => (vec![addresses.to_string()], Vec::new()),
            };
            let udp = if set.udp { "/udp" } else { "" };
            let with = |target: String| format!("{target} : {}{udp}", set.ports);
            (include.into_iter().map(with).collect(), exclude)
        }
    }
}

/// Bytes of `struct sock_filter`, little-endian; the program of this machine's architecture is the caller's to choose, so both
/// stand here, `x86_64` first, each after its length as a 32-bit number.
pub fn bpf(table: &Table) -> Vec<u8> {
    let mut bytes = Vec::new();
    for architecture in [Architecture::X86_64, Architecture::Aarch64] {
        let program = assemble(&entries(table), architecture);
        bytes.extend(u32::try_from(program.len()).unwrap_or(u32::MAX).to_le_bytes());
        for instruction in program {
            bytes.extend(instruction.code.to_le_bytes());
            bytes.extend([instruction.jt, instruction.jf]);
            bytes.extend(instruction.k.to_le_bytes());
        }
    }
    bytes
}

fn listing(table: &Table) -> String {
    let mut text = String::from("# Each call that is closed, and why; then the programs.\n");
    for entry in entries(table) {
        let _ = writeln!(text, "# {entry} -- {}", entry.reason);
    }
    for (architecture, name) in [(Architecture::X86_64, "x86_64"), (Architecture::Aarch64, "aarch64")] {
        let _ = writeln!(text, "{name}:");
        for (at, step) in assemble(&entries(table), architecture).iter().enumerate() {
            let after = |jump: u8| at + 1 + usize::from(jump);
            let line = match step.code {
                0x20 => format!("ld [{}]", step.k),
                0x54 => format!("and #{:#x}", step.k),
                0x15 => format!("jeq #{:#x}, l{}, l{}", step.k, after(step.jt), after(step.jf)),
                0x35 => format!("jge #{:#x}, l{}, l{}", step.k, after(step.jt), after(step.jf)),
                0x06 => format!("ret #{:#010x}", step.k),
                other => format!(".word {other:#x}, {}, {}, {:#x}", step.jt, step.jf, step.k),
            };
            let _ = writeln!(text, "l{at}: {line}");
        }
    }
    text
}

/// One argument a line; one that is not plain is quoted as for a shell, and what a descriptor is to give stands as text.
fn lines(arguments: &Arguments) -> Vec<u8> {
    let mut text = Vec::new();
    for argument in &arguments.list {
        match argument {
            Argument::Text(word) => text.extend(quoted(word)),
            Argument::Data(data) => {
                text.extend(b"<<");
                text.extend(quoted(data));
            }
        }
        text.push(b'\n');
    }
    text
}

/// Each ended by NUL, as `bwrap --args` reads them: so nothing that a descriptor has to give, for which there is no number.
fn nul(arguments: &Arguments) -> Result<Vec<u8>, String> {
    let mut text = Vec::new();
    for argument in &arguments.list {
        let Argument::Text(word) = argument else {
            return Err("bwrap-nul: a file of this plan comes from a descriptor: use bwrap-shell".to_owned());
        };
        text.extend(word);
        text.push(0);
    }
    Ok(text)
}

/// `bwrap … -- "$@"`, an option a line; what descriptors are to give are here-documents after it.
fn shell(arguments: &Arguments) -> Result<Vec<u8>, String> {
    let mut text = b"#!/bin/sh\n# The mounts and namespaces alone: the filter of system calls, Landlock and the proxy are srt's.\n".to_vec();
    text.extend(b"exec bwrap");
    let (mut openings, mut bodies) = (Vec::new(), Vec::new());
    let mut next = 3;
    for argument in &arguments.list {
        match argument {
            Argument::Text(word) => {
                text.extend(if word.starts_with(b"--") { &b" \\\n  "[..] } else { b" " });
                text.extend(quoted(word));
            }
            // POSIX shells know descriptors of one figure, and a here-document ends a line.
            Argument::Data(data) if next > 9 || !data.ends_with(b"\n") => {
                return Err("bwrap-shell: this plan cannot be written for a shell: use bwrap".to_owned());
            }
            Argument::Data(data) => {
                text.extend(format!(" {next}").bytes());
                openings.extend(format!(" {next}<<'END_OF_{next}'").bytes());
                bodies.extend(data);
                bodies.extend(format!("END_OF_{next}\n").bytes());
                next += 1;
            }
        }
    }
    text.extend(b" \\\n  -- \"$@\"");
    text.extend(openings);
    text.push(b'\n');
    text.extend(bodies);
    Ok(text)
}

fn quoted(word: &[u8]) -> Vec<u8> {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_./=:,@+%".contains(byte);
    if !word.is_empty() && word.iter().all(plain) {
        return word.to_vec();
    }
    let mut quoted = b"'".to_vec();
    for byte in word {
        if *byte == b'\'' { quoted.extend(b"'\\''") } else { quoted.push(*byte) }
    }
    quoted.push(b'\'');
    quoted
}
