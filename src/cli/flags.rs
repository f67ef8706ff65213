//! `--allow-read`, `--allow-write`, `--network-allowlist`: each becomes the text of a small policy that goes the same
//! way as a file and is shown under the flag's own spelling.

use super::arguments::PolicyChoice;
use super::files;
use sandbox_runtime::host::real::{machine_ceiling, spelled};
use sandbox_runtime::sets::path;
use std::path::{Path, PathBuf};

/// What holds beside the flags where they alone make the policy. npm and its kin keep their caches in the home, which is
/// closed: they get a place in the run's own temporary directory.
const CLOSED: &str = "\
srt 1
use std/system
use std/secrets
default read deny
on linux {
  set npm_config_cache=/tmp/npm
}
set npm_config_update_notifier=false
";

/// A text and the name it is shown under.
#[derive(Clone)]
pub struct FlagText {
    pub name: String,
    pub text: String,
}

/// Whether any of the flags was given.
pub fn any(choice: &PolicyChoice) -> bool {
    !(choice.allow_read.is_empty() && choice.allow_write.is_empty() && choice.network_allowlist.is_empty())
}

/// Whether the flags alone make the policy: reads closed but for what programs need.
pub fn closed(choice: &PolicyChoice) -> bool {
    choice.policies.is_empty() && choice.settings.is_none() && !choice.allow_read.is_empty()
}

/// The flags as policy texts. Paths are taken from `directory`, as a shell's are.
///
/// # Errors
/// A sentence for the command line, where a value cannot be one.
pub fn texts(choice: &PolicyChoice, directory: &Path) -> Result<Vec<FlagText>, String> {
    // `deny` wins where several defaults meet, so `allow` adds nothing to what the policy says.
    let default = if closed(choice) { "deny" } else { "allow" };
    let mut texts = Vec::new();
    if closed(choice) {
        texts.push(FlagText { name: "--allow-read".to_owned(), text: CLOSED.to_owned() });
    }
    let mut add = |flag: &str, shown: String, rule: String| {
        texts.push(FlagText {
            name: format!("{flag} {shown}"),
            text: format!("srt 1\ndefault read {default}\n{rule}\n"),
        });
    };
    for (flag, verbs, paths) in
        [("--allow-read", "read", &choice.allow_read), ("--allow-write", "read, write", &choice.allow_write)]
    {
        for path in paths {
            let target = target(flag, path, directory)?;
            let rule = format!("allow {verbs} {target}");
            // A drive is no other system's.
            let rule =
                if target.trim_start_matches('"').starts_with('/') { rule } else { format!("on windows {{ {rule} }}") };
            add(flag, path.display().to_string(), rule);
        }
    }
    for host in &choice.network_allowlist {
        if host.is_empty() || host.contains(['\n', '\r', '#', '"', '\\']) || host.contains(char::is_whitespace) {
            return Err(format!("--network-allowlist: `{host}` is not a host"));
        }
        add("--network-allowlist", host.clone(), format!("allow connect {host}"));
    }
    Ok(texts)
}

/// The policies that this one must be within beyond what it says itself, each as a text that claims so.
///
/// # Errors
/// A sentence for the command line: a path that cannot be written in a policy, or a machine that does not say whether it has
/// a ceiling.
pub fn ceilings(files: &[PathBuf], machine: bool) -> Result<Vec<FlagText>, String> {
    let mut ceilings = Vec::new();
    for path in files {
        let text = path.to_str().map(|_| spelled(path));
        let text = text.filter(|text| !text.contains(['"', '\\']) && !text.chars().any(char::is_control));
        let text = text.ok_or_else(|| format!("--within: `{}` cannot be named in a policy", path.display()))?;
        ceilings.push(ceiling(&text));
    }
    if machine {
        let machine = machine_ceiling();
        match files::is_there(&machine) {
            Ok(true) => ceilings.push(ceiling(&spelled(&machine))),
            Ok(false) => {}
            // Not knowing is not the same as absence.
            Err(error) => return Err(format!("cannot look for `{}`: {error}", machine.display())),
        }
    }
    Ok(ceilings)
}

fn ceiling(path: &str) -> FlagText {
    // `deny` wins where several defaults meet, so `allow` adds nothing to what the policy says.
    FlagText { name: "--within".to_owned(), text: format!("srt 1\ndefault read allow\nwithin \"{path}\"\n") }
}

/// A path as a quoted target, every character that has a meaning there made literal.
fn target(flag: &str, path: &Path, directory: &Path) -> Result<String, String> {
    let text = path.to_str().ok_or_else(|| format!("{flag}: `{}` is not UTF-8", path.display()))?;
    if text.is_empty() || text.chars().any(char::is_control) {
        return Err(format!("{flag}: `{}` is not a path", text.escape_debug()));
    }
    let path = normalise(&directory.join(text));
    // A flag is about this run on this machine: what is not there could not be granted, and the run would go on without.
    if let Err(error) = std::fs::symlink_metadata(&path) {
        return Err(match error.kind() {
            std::io::ErrorKind::NotFound => format!("{flag}: `{text}` does not exist; make it first, or mend the path"),
            _ => format!("{flag}: cannot look at `{text}`: {error}"),
        });
    }
    let path =
        path.to_str().map(|_| spelled(&path)).ok_or_else(|| format!("{flag}: `{}` is not UTF-8", path.display()))?;
    Ok(path::target("", &path))
}

/// The workspace that the command line chooses, if it does: with flags alone it is the first directory they open, so that
/// the run may be started anywhere.
pub fn workspace(choice: &PolicyChoice, directory: &Path) -> Option<PathBuf> {
    if choice.workspace.is_some() || !closed(choice) {
        return choice.workspace.clone();
    }
    let first = normalise(&directory.join(choice.allow_read.first()?));
    if first.is_file() { first.parent().map(Path::to_owned) } else { Some(first) }
}

/// Takes `.` and `..` out as written; links are followed later, by `bind`.
fn normalise(path: &Path) -> PathBuf {
    use std::path::Component;
    let mut normal = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                normal.pop();
            }
            other => normal.push(other),
        }
    }
    normal
}
