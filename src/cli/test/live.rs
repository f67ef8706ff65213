//! `srt test --live`: the access of a case, tried by a command in the real sandbox.
//!
//! Only what leaves nothing behind is tried: files are opened and not changed, a name that is made is taken away again, no
//! connection leaves the machine. What is not tried is said.

use super::super::files;
use sandbox_runtime::suite::Case;
use sandbox_runtime::vocabulary::{BUILT_IN, System};
use std::path::Path;
use std::process::Command;

/// What came of it.
pub enum Outcome {
    /// As the case has it.
    Agrees,
    Differs(String),
    NotTried(&'static str),
}

/// Tries a case; its policies are relative to `directory`.
pub fn attempt(case: &Case, directory: &Path) -> Outcome {
    if case.system != System::Linux || std::env::consts::OS != "linux" {
        return Outcome::NotTried("it is about another system");
    }
    if case.variables.keys().any(|name| BUILT_IN.contains(&name.as_str()) || name.starts_with("env.")) {
        return Outcome::NotTried("its variables are those of another machine");
    }
    let (verb, target) = (case.access.0.as_str(), case.access.1.as_str());
    let path = || place(target);
    let script = match verb {
        "env" => {
            let done = run(case, directory, "test -n \"$(printenv \"$1\")\"", target, Some(target));
            return compare(case, done);
        }
        "read" | "write" | "exec" => {
            let Some(path) = path() else { return Outcome::NotTried("its place on this machine is not known") };
            match script(verb, Path::new(&path)) {
                Ok(script) => (script, path),
                Err(why) => return Outcome::NotTried(why),
            }
        }
        _ => return Outcome::NotTried("nothing is tried that leaves the machine"),
    };
    compare(case, run(case, directory, script.0, &script.1, None))
}

/// What tries an access to a path, by what lies there: it ends well if it could be done.
fn script(verb: &str, path: &Path) -> Result<&'static str, &'static str> {
    let there = files::is_there(path).map_err(|_| "its place cannot be looked at")?;
    let empty = || path.read_dir().is_ok_and(|mut entries| entries.next().is_none());
    Ok(match verb {
        _ if !there && verb != "write" => return Err("nothing is there"),
        // A closed directory may be shown empty.
        "read" if path.is_dir() && empty() => return Err("an empty directory looks like a closed one"),
        "read" if path.is_dir() => "test -n \"$(ls -A -- \"$1\")\"",
        "read" if path.is_file() => "exec 3<\"$1\"",
        "write" if path.is_dir() => "made=$(mktemp -- \"$1/.srt-test-XXXXXXXX\") && rm -- \"$made\"",
        "write" if path.is_file() => "exec 3>>\"$1\"",
        "write" if !there && path.parent().is_some_and(Path::is_dir) => "(set -C; : > \"$1\") && rm -- \"$1\"",
        "write" if !there => return Err("the directory it would be made in is not there"),
        "exec" if path.is_file() => "test -x \"$1\"",
        _ => return Err("neither a file nor a directory is there"),
    })
}

/// The path on this machine.
fn place(target: &str) -> Option<String> {
    let at = |value: Option<String>, rest: &str| Some(format!("{}{rest}", value?));
    if let Some(rest) = target.strip_prefix('~') {
        return at(std::env::var("HOME").ok(), rest);
    }
    if let Some(rest) = target.strip_prefix("$HOME") {
        return at(std::env::var("HOME").ok(), rest);
    }
    if let Some(rest) = target.strip_prefix("$WORKSPACE") {
        let here = std::env::current_dir().ok().and_then(|here| here.to_str().map(str::to_owned));
        return at(here, rest);
    }
    target.starts_with('/').then(|| target.to_owned())
}

/// Whether it could be done, or why the sandbox was not set up.
fn run(case: &Case, directory: &Path, script: &str, target: &str, set: Option<&str>) -> Result<bool, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut command = Command::new(program);
    command.args(["run", "--quiet"]);
    for policy in &case.policies {
        command.arg("--policy").arg(directory.join(policy));
    }
    for (name, value) in &case.variables {
        command.arg("--define").arg(format!("{name}={value}"));
    }
    if let Some(name) = set.filter(|name| std::env::var_os(name).is_none()) {
        command.env(name, "tried");
    }
    let ended = command.args(["--", "sh", "-c", script, "sh", target]).output().map_err(|error| error.to_string())?;
    match ended.status.code() {
        Some(125) => {
            let said = String::from_utf8_lossy(&ended.stderr);
            Err(said.lines().next().unwrap_or("the sandbox could not be set up").trim_start_matches("srt: ").to_owned())
        }
        code => Ok(code == Some(0)),
    }
}

fn compare(case: &Case, done: Result<bool, String>) -> Outcome {
    match done {
        Ok(done) if done == case.allow => Outcome::Agrees,
        Ok(true) => Outcome::Differs("the sandbox lets it happen".to_owned()),
        Ok(false) => Outcome::Differs("the sandbox does not let it happen".to_owned()),
        Err(why) => Outcome::Differs(format!("it could not be tried: {why}")),
    }
}
