//! `--allow-read`, `--allow-write`, `--network-allowlist`: each becomes the text of a small policy that goes the same
//! way as a file and is shown under the flag's own spelling.

use super::arguments::PolicyChoice;
use std::path::{Path, PathBuf};

/// A text and the name it is shown under.
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
    choice.policies.is_empty() && !choice.allow_read.is_empty()
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
        texts.push(FlagText {
            name: "--allow-read".to_owned(),
            text: "srt 1\nuse std/system\nuse std/secrets\ndefault read deny\n".to_owned(),
        });
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
            add(flag, path.display().to_string(), format!("allow {verbs} {target}"));
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

/// A path as a quoted target, every character that has a meaning there made literal.
fn target(flag: &str, path: &Path, directory: &Path) -> Result<String, String> {
    let text = path.to_str().ok_or_else(|| format!("{flag}: `{}` is not UTF-8", path.display()))?;
    if text.is_empty() || text.chars().any(char::is_control) {
        return Err(format!("{flag}: `{}` is not a path", text.escape_debug()));
    }
    let path = normalise(&directory.join(text));
    let path = path.to_str().ok_or_else(|| format!("{flag}: `{}` is not UTF-8", path.display()))?;
    let mut quoted = String::from("\"");
    for c in path.chars() {
        if matches!(c, '\\' | '"' | '*' | '?' | '[' | ']' | '{' | '}' | '$' | '~') {
            quoted.push('\\');
        }
        quoted.push(c);
    }
    quoted.push('"');
    Ok(quoted)
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
