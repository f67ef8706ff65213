//! `srt test --live`: the access of a case, tried by a command in the real sandbox.
//!
//! Only what leaves nothing behind is tried: files are opened and not changed, a name that is made is taken away again, no
//! connection leaves the machine. What is not tried is said.

use super::super::files;
use sandbox_runtime::host::real::is_executable;
use sandbox_runtime::suite::Case;
use sandbox_runtime::vocabulary::{BUILT_IN, System, is_variable};
use std::io::Read as _;
use std::path::{Path, PathBuf};
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
    let probe = match verb {
        "env" => {
            let name = target.strip_prefix('$').unwrap_or(target);
            if !is_variable(name) {
                return Outcome::NotTried("it is no name of a variable");
            }
            Probe { script: ENV, target: name.to_owned(), made: None, set: Some(name) }
        }
        "read" | "write" | "exec" => {
            let Some(path) = place(target) else { return Outcome::NotTried("its place on this machine is not known") };
            match script(verb, Path::new(&path)) {
                Ok((script, made)) => Probe { script, target: path, made, set: None },
                Err(why) => return Outcome::NotTried(why),
            }
        }
        _ => return Outcome::NotTried("nothing is tried that leaves the machine"),
    };
    compare(case, run(case, directory, &probe))
}

/// What tries an access: lines for a shell, which end by saying one of two words, so that nothing else that goes wrong is
/// taken for a refusal. Nothing but the shell itself is started where that can do it.
struct Probe<'a> {
    script: &'static str,
    /// The first argument.
    target: String,
    /// A file that is made by it, which is the second argument.
    made: Option<PathBuf>,
    /// A variable that the caller has.
    set: Option<&'a str>,
}

impl Drop for Probe<'_> {
    /// What it made goes however it ended; in a place of the sandbox's own it is gone already. Nothing was there before, and
    /// what holds something was not made by it.
    fn drop(&mut self) {
        let Some(made) = &self.made else { return };
        if made.symlink_metadata().is_ok_and(|found| found.is_file() && found.len() == 0) {
            let _ = std::fs::remove_file(made);
        }
    }
}

const DONE: &str = "done";
const REFUSED: &str = "refused";

/// Says 1 of a variable that is not there; anything else is that it was not started.
const ENV: &str = "value=$(printenv \"$1\"); case $? in 0) echo done;; 1) echo refused;; esac";
const LIST: &str = "if (for entry in \"$1\"/* \"$1\"/.[!.]* \"$1\"/..?*; do \
     if [ -e \"$entry\" ] || [ -L \"$entry\" ]; then exit 0; fi; done; exit 1); then echo done; else echo refused; fi";
const READ: &str = "if (exec 3< \"$1\"); then echo done; else echo refused; fi";
const APPEND: &str = "if (exec 3>> \"$1\"); then echo done; else echo refused; fi";
const MAKE: &str = "if (set -C; : > \"$2\"); then echo done; else echo refused; fi";
/// With so little memory a program ends by a signal before its first instruction, after the kernel has let it be started:
/// `execve(2)`, of SIGKILL and SIGSEGV "past the point of no return". 126 and 127 are the shell's for what it cannot start.
const EXEC: &str = "(ulimit -v 64 && exec \"$1\") 2>/dev/null; \
     case $? in 126|127) echo refused;; 137|139) echo done;; esac";

/// What tries an access to a path, by what lies there, and what it makes.
fn script(verb: &str, path: &Path) -> Result<(&'static str, Option<PathBuf>), &'static str> {
    let there = files::is_there(path).map_err(|_| "its place cannot be looked at")?;
    let empty = || path.read_dir().is_ok_and(|mut entries| entries.next().is_none());
    let made = match verb {
        "write" if path.is_dir() => Some(path.join(format!(".srt-test-{}", std::process::id()))),
        "write" if !there => Some(path.to_owned()),
        _ => None,
    };
    let script = match verb {
        _ if !there && verb != "write" => return Err("nothing is there"),
        // A closed directory may be shown empty.
        "read" if path.is_dir() && empty() => return Err("an empty directory looks like a closed one"),
        "read" if path.is_dir() => LIST,
        "read" if path.is_file() => READ,
        "write" if path.is_dir() => MAKE,
        "write" if path.is_file() => APPEND,
        "write" if !there && path.parent().is_some_and(Path::is_dir) => MAKE,
        "write" if !there => return Err("the directory it would be made in is not there"),
        "exec" if path.is_file() => {
            startable(path)?;
            EXEC
        }
        _ => return Err("neither a file nor a directory is there"),
    };
    if made.as_deref().is_some_and(|made| there && files::is_there(made).unwrap_or(true)) {
        return Err("what would be made in it is there already");
    }
    Ok((script, made))
}

/// Whether the kernel itself starts a file, for want of a policy: what it cannot, a shell may read as its own script.
fn startable(path: &Path) -> Result<(), &'static str> {
    let start = |path: &Path| {
        let mut start = [0; 4];
        let length = std::fs::File::open(path)?.read(&mut start)?;
        Ok::<_, std::io::Error>(start[..length].to_vec())
    };
    let start = start(path).map_err(|_| "it cannot be looked at")?;
    if !is_executable(path) || !(start.starts_with(b"\x7fELF") || start.starts_with(b"#!")) {
        return Err("it is no program");
    }
    Ok(())
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

/// Whether it could be done, or why nobody knows: the sandbox was not set up, or nothing ran in it.
fn run(case: &Case, directory: &Path, probe: &Probe<'_>) -> Result<bool, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut command = Command::new(program);
    command.args(["run", "--quiet"]);
    for policy in &case.policies {
        command.arg("--policy").arg(directory.join(policy));
    }
    for (name, value) in &case.variables {
        command.arg("--define").arg(format!("{name}={value}"));
    }
    if let Some(name) = probe.set.filter(|name| std::env::var_os(name).is_none()) {
        command.env(name, "tried");
    }
    command.args(["--", "sh", "-c", probe.script, "sh", &probe.target]).args(&probe.made);
    let ended = command.output().map_err(|error| error.to_string())?;
    match String::from_utf8_lossy(&ended.stdout).trim_end() {
        DONE if ended.status.success() => Ok(true),
        REFUSED if ended.status.success() => Ok(false),
        _ => {
            let said = String::from_utf8_lossy(&ended.stderr);
            let why = said.lines().next().unwrap_or("the shell that tries it said nothing");
            Err(why.trim_start_matches("srt: ").to_owned())
        }
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
