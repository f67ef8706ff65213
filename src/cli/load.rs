//! From what the command line names to a policy: which files, their text, resolved and bound.

use super::arguments::PolicyChoice;
use super::flags::FlagText;
use super::{files, flags, settings};
use sandbox_runtime::bind::bind;
use sandbox_runtime::check::Given;
use sandbox_runtime::compile::archive;
use sandbox_runtime::diagnostic::{Diagnostic, any_error};
use sandbox_runtime::host::Host;
use sandbox_runtime::host::real::{Machine, configuration, spelled};
use sandbox_runtime::ir::{BoundPolicy, Policy};
use sandbox_runtime::resolve::{KEEP_OTHERS_OUT, Options, resolve};
use sandbox_runtime::source::{SourceId, Sources};
use sandbox_runtime::vocabulary::System;
use std::path::{Path, PathBuf};

/// A policy as far as it came, and all that was said on the way.
pub struct Loaded<P> {
    pub sources: Sources,
    pub policy: Option<P>,
    pub diagnostics: Vec<Diagnostic>,
}

/// The system this binary runs on.
pub fn this_system() -> System {
    match std::env::consts::OS {
        "macos" => System::Macos,
        "windows" => System::Windows,
        _ => System::Linux,
    }
}

/// The policy that the flags choose, bound to this machine.
///
/// # Errors
/// A sentence for the command line: a file that cannot be read, a flag that makes no sense.
pub fn bound(choice: &PolicyChoice) -> Result<Loaded<BoundPolicy>, String> {
    bound_within(choice, Vec::new(), bind, None)
}

/// [`bind`], or another that binds a policy to a machine.
pub type Bind = fn(Policy, &dyn Host) -> (Option<BoundPolicy>, Vec<Diagnostic>);

/// As [`bound`], with the claim that it is within some other policies; to carry it out, `bind_grants` is enough. `temporary` is
/// the run's own directory for temporary files, where it was made.
///
/// # Errors
/// As [`bound`].
pub fn bound_within(
    choice: &PolicyChoice,
    ceilings: Vec<FlagText>,
    bind: Bind,
    temporary: Option<&Path>,
) -> Result<Loaded<BoundPolicy>, String> {
    let directory = std::env::current_dir().map_err(|error| format!("cannot tell where this is: {error}"))?;
    if choice.policies.iter().any(|path| archive::is_archive(path)) {
        let loaded = archived(choice, ceilings)?;
        return Ok(bound_by(bind, loaded, &machine_with(choice, &directory, temporary)?));
    }
    let mut sources = Sources::default();
    let mut given = given(choice, &directory, &mut sources)?;
    given.extend(ceilings.into_iter().map(|ceiling| sources.add(ceiling.name, ceiling.text)));
    Ok(bind_given(choice, &machine_with(choice, &directory, temporary)?, &given, sources, bind))
}

fn machine_with(choice: &PolicyChoice, directory: &Path, temporary: Option<&Path>) -> Result<Machine, String> {
    let machine = chosen_machine(choice, directory)?;
    Ok(match temporary {
        Some(place) => machine.with_temporary(place),
        None => machine,
    })
}

/// The rules of a compiled policy for this system.
fn archived(choice: &PolicyChoice, ceilings: Vec<FlagText>) -> Result<Loaded<Policy>, String> {
    let [path] = &choice.policies[..] else {
        return Err("a compiled policy stands alone: compile the union instead".to_owned());
    };
    if flags::any(choice) {
        return Err("a compiled policy takes no rules from flags: leave them out".to_owned());
    }
    let shown = path.display();
    let text = files::read(path).map_err(|error| format!("cannot read the policy `{shown}`: {error}"))?;
    if text.writable_by_others {
        return Err(format!("refusing the policy `{shown}`: someone else may write it, or put another in its place"));
    }
    let (mut policy, mut sources) = archive::read(&text.text, this_system())
        .map_err(|error| format!("cannot use the compiled policy `{shown}`: {error}"))?;
    policy.files = vec![shown.to_string()];
    let mut diagnostics = Vec::new();
    if !ceilings.is_empty() {
        let given: Vec<_> = ceilings.into_iter().map(|ceiling| sources.add(ceiling.name, ceiling.text)).collect();
        let loaded = resolved(&given, sources, &choice.defines, this_system());
        sources = loaded.sources;
        diagnostics = loaded.diagnostics;
        match loaded.policy {
            Some(claims) => policy.withins.extend(claims.withins),
            None if any_error(&diagnostics) => {}
            None => return Err("cannot read what the policy must be within".to_owned()),
        }
    }
    Ok(Loaded { sources, policy: Some(policy), diagnostics })
}

/// The same policy with one more rule, if that can be bound too; what is said of it is dropped.
pub fn bound_with(choice: &PolicyChoice, rule: &str) -> Option<BoundPolicy> {
    let directory = std::env::current_dir().ok()?;
    let mut sources = Sources::default();
    let mut given = given(choice, &directory, &mut sources).ok()?;
    // `deny` wins where several defaults meet, so `allow` adds nothing to what the policy says.
    given.push(sources.add("the suggested rule", format!("srt 1\ndefault read allow\n{rule}\n")));
    let loaded = bind_given(choice, &chosen_machine(choice, &directory).ok()?, &given, sources, bind);
    if any_error(&loaded.diagnostics) { None } else { loaded.policy }
}

fn bind_given(
    choice: &PolicyChoice,
    machine: &Machine,
    given: &[SourceId],
    sources: Sources,
    bind: Bind,
) -> Loaded<BoundPolicy> {
    bound_by(bind, resolved(given, sources, &choice.defines, this_system()), machine)
}

/// This machine as `bind` sees it, with the workspace that the command line chooses.
///
/// # Errors
/// A sentence for the command line.
pub fn chosen_machine(choice: &PolicyChoice, directory: &Path) -> Result<Machine, String> {
    machine(flags::workspace(choice, directory).as_deref(), &choice.defines, directory)
}

/// This machine as `bind` sees it.
///
/// # Errors
/// A sentence for the command line.
pub fn machine(workspace: Option<&Path>, defines: &[(String, String)], directory: &Path) -> Result<Machine, String> {
    let workspace = match workspace {
        Some(workspace) => directory.join(workspace),
        None => directory.to_owned(),
    };
    // The real place: what a policy says of `$WORKSPACE` is about the tree, not about the link that led there.
    let workspace = std::fs::canonicalize(&workspace)
        .map_err(|error| format!("cannot use `{}` as the workspace: {error}", workspace.display()))?;
    Machine::look(Some(&workspace), defines.iter().cloned().collect())
        .map_err(|error| format!("cannot look at this machine: {error}"))
}

/// Binds what was resolved; says nothing more where that already failed.
///
/// Where findings are wanted, `observe` is the next step.
pub fn bind_to(loaded: Loaded<Policy>, host: &dyn Host) -> Loaded<BoundPolicy> {
    bound_by(bind, loaded, host)
}

fn bound_by(bind: Bind, loaded: Loaded<Policy>, host: &dyn Host) -> Loaded<BoundPolicy> {
    let Loaded { sources, policy, mut diagnostics } = loaded;
    let policy = match policy {
        Some(policy) if !any_error(&diagnostics) => {
            let (bound, said) = bind(policy, host);
            diagnostics.extend(said);
            bound
        }
        _ => None,
    };
    Loaded { sources, policy, diagnostics }
}

/// Resolves the given sources for one system.
pub fn resolved(
    given: &[SourceId],
    mut sources: Sources,
    defines: &[(String, String)],
    system: System,
) -> Loaded<Policy> {
    let options = Options { system, defines: defines.iter().cloned().collect() };
    let (policy, diagnostics) = resolve(given, &mut sources, &files::Disk, &options);
    Loaded { sources, policy, diagnostics }
}

/// The embedded module that a path is the name of, where no such file is in the way.
fn module(path: &Path) -> Option<&str> {
    let name = path.to_str().filter(|_| !path.exists())?;
    name.strip_prefix("std/").and_then(sandbox_runtime::resolve::std_text).and(Some(name))
}

/// One file's text.
///
/// # Errors
/// A sentence for the command line.
pub fn text(path: &Path) -> Result<Given, String> {
    if let Some(module) = module(path) {
        return Err(format!(
            "`{module}` is a module inside srt, not a file: `srt explain {module}` shows it, `use {module}` uses it"
        ));
    }
    if path.is_dir() {
        return Err(format!("`{0}` is a directory: name the policies in it, as in `{0}/*.policy`", path.display()));
    }
    let text = files::read(path).map_err(|error| format!("cannot read the policy `{}`: {error}", path.display()))?;
    if text.writable_by_others {
        return Err(format!(
            "refusing the policy `{0}`: someone else may write it, or put another in its place; \
             read what it says, then {KEEP_OTHERS_OUT} it and on the directory it is in",
            path.display()
        ));
    }
    Ok(Given { name: spelled(path), text: text.text })
}

/// Adds one file's text.
///
/// # Errors
/// A sentence for the command line.
pub fn add(path: &Path, sources: &mut Sources) -> Result<SourceId, String> {
    let given = text(path)?;
    Ok(sources.add(given.name, given.text))
}

/// The policy that the flags choose, not bound.
///
/// # Errors
/// A sentence for the command line.
pub fn chosen(choice: &PolicyChoice, directory: &Path) -> Result<Loaded<Policy>, String> {
    if choice.policies.iter().any(|path| archive::is_archive(path)) {
        return archived(choice, Vec::new());
    }
    let mut sources = Sources::default();
    let given = given(choice, directory, &mut sources)?;
    Ok(resolved(&given, sources, &choice.defines, this_system()))
}

fn given(choice: &PolicyChoice, directory: &Path, sources: &mut Sources) -> Result<Vec<SourceId>, String> {
    let mut given = Vec::new();
    for path in &choice.policies {
        given.push(add(path, sources)?);
    }
    if let Some(path) = &choice.settings {
        let texts = settings::texts(path, directory)?;
        given.extend(texts.into_iter().map(|text| text.add_to(sources)));
    }
    if given.is_empty() && !flags::closed(choice) {
        given.extend(default_policy(directory, sources)?);
    }
    if flags::any(choice) {
        given.extend(flags::texts(choice, directory)?.into_iter().map(|flag| sources.add(flag.name, flag.text)));
    }
    Ok(given)
}

/// The user's own default, else the settings that the npm package would use, else the embedded one.
fn default_policy(directory: &Path, sources: &mut Sources) -> Result<Vec<SourceId>, String> {
    // Not knowing is not the same as absence: the user's policy may be stricter than ours.
    let there =
        |path: &Path| files::is_there(path).map_err(|error| format!("cannot look for `{}`: {error}", path.display()));
    if let Some(path) = user_default()
        && there(&path)?
    {
        return Ok(vec![add(&path, sources)?]);
    }
    if let Some(path) = settings::of_home()
        && there(&path)?
    {
        let texts = settings::texts(&path, directory)?;
        return Ok(texts.into_iter().map(|text| text.add_to(sources)).collect());
    }
    Ok(vec![sources.add("std/default", std_default())])
}

/// `srt/default.policy` where the user's programs keep their settings.
fn user_default() -> Option<PathBuf> {
    Some(configuration()?.join("srt/default.policy"))
}

/// The embedded default.
fn std_default() -> &'static str {
    let found = sandbox_runtime::resolve::STD.iter().find(|(name, _)| *name == "default");
    found.map(|(_, text)| *text).unwrap_or_default()
}
