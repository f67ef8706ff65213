//! What is started: the arguments of `sandbox-exec`, and the command's environment.

use super::super::environment::{alone, reaches_whole_loopback, with_proxy, without_proxies};
use super::super::launch::{Error, Launch};
use super::Tools;
use crate::backend::seatbelt::Profile;
use std::collections::hash_map::RandomState;
use std::ffi::{OsStr, OsString};
use std::hash::{BuildHasher, Hasher};
use std::io;
use std::net::SocketAddr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// By what `sandbox-exec` ends where the profile is good and the program is not there (EX_OSERR, sysexits(3)).
const NOT_STARTED: i32 = 71;

/// A command that is ready to be started.
#[derive(Debug)]
pub struct Command {
    sandbox_exec: PathBuf,
    /// Up to the program.
    options: Vec<OsString>,
    program: PathBuf,
    arguments: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
    directory: PathBuf,
    pub time: Option<u64>,
}

impl Command {
    /// # Errors
    /// Where there is no such program.
    pub fn new(
        tools: &Tools,
        profile: &Profile,
        launch: &Launch,
        proxy: Option<SocketAddr>,
        tag: &str,
    ) -> Result<Self, Error> {
        let mut environment = without_proxies(launch.environment.clone(), &launch.set);
        if let (Some(proxy), Some(rules)) = (proxy, &launch.rules) {
            let loopback = reaches_whole_loopback(&rules.policy);
            environment = with_proxy(&environment, &launch.set, loopback, proxy);
            let own = std::env::current_exe().ok();
            for (name, value) in alone(&environment, &launch.set, &rules.policy, own.as_deref()) {
                environment.retain(|(other, _)| *other != name);
                environment.push((name, value));
            }
        }
        let first = launch.command.first().cloned().unwrap_or_default();
        let path = environment.iter().rev().find(|(name, _)| name == "PATH").map(|(_, value)| value.clone());
        let program = find(&first, &launch.directory, path.as_deref())
            .map_err(|source| Error::Start { command: first.display().to_string(), source })?;
        Ok(Self {
            sandbox_exec: tools.sandbox_exec.clone(),
            options: options(&profile.text, proxy.map(|proxy| proxy.port()), tag),
            program,
            arguments: launch.command.iter().skip(1).cloned().collect(),
            environment,
            directory: launch.directory.clone(),
            time: profile.limits.time,
        })
    }

    /// Lets `sandbox-exec` load the profile, and start nothing: a profile that it does not take is an error of ours, and not how
    /// the command ended.
    ///
    /// # Errors
    /// With what it says.
    pub fn try_profile(&self) -> Result<(), Error> {
        let setup = |source| Error::Setup { act: "load the profile by sandbox-exec".into(), source };
        let nothing = format!("/dev/null/srt-{:016x}", random());
        let mut trial = std::process::Command::new(&self.sandbox_exec);
        let ended = trial.args(&self.options).arg(nothing).env_clear().stdin(Stdio::null()).output().map_err(setup)?;
        if ended.status.code() == Some(NOT_STARTED) {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&ended.stderr);
        let said: String = said.trim().chars().map(|c| if c.is_control() { ' ' } else { c }).take(500).collect();
        Err(setup(io::Error::new(io::ErrorKind::InvalidData, format!("{said} ({})", ended.status))))
    }

    /// As the standard library starts it.
    pub fn started(&self) -> std::process::Command {
        let mut command = std::process::Command::new(&self.sandbox_exec);
        command.args(&self.options).arg(&self.program).args(&self.arguments);
        command.env_clear().envs(self.environment.iter().map(|(name, value)| (name, value)));
        command.current_dir(&self.directory);
        command
    }
}

/// The options of sandbox-exec(1).
fn options(profile: &str, port: Option<u16>, tag: &str) -> Vec<OsString> {
    let mut options: Vec<OsString> = vec!["-D".into(), format!("log.tag={tag}").into()];
    if let Some(port) = port {
        options.extend(["-D".into(), format!("proxy.port={port}").into()]);
    }
    options.extend(["-p".into(), profile.into()]);
    options
}

/// The file that a command's first word names, on the PATH that the command has (execvp(3)). From the root, so that it is no option.
fn find(word: &OsStr, directory: &Path, path: Option<&OsStr>) -> io::Result<PathBuf> {
    if word.is_empty() {
        return Err(io::ErrorKind::NotFound.into());
    }
    if word.as_bytes().contains(&b'/') {
        let file = directory.join(word);
        return file.metadata().map(|_| file);
    }
    let mut failure = io::ErrorKind::NotFound;
    // What execvp(3) looks through where there is none.
    let path = path.unwrap_or(OsStr::new("/usr/bin:/bin"));
    for place in std::env::split_paths(path) {
        let file = directory.join(place).join(word);
        match file.metadata() {
            Ok(found) if found.is_file() && found.permissions().mode() & 0o111 != 0 => return Ok(file),
            Ok(_) => failure = io::ErrorKind::PermissionDenied,
            Err(_) => {}
        }
    }
    Err(failure.into())
}

/// A number that nobody can foresee; the standard library's hashers are seeded by the system.
pub fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_profile_is_given_as_text_with_its_parameters() {
        let words = |port| options("(version 1)\n", port, "srt-1").into_iter().map(|word| word.into_string().unwrap());
        let with: Vec<String> = words(Some(3128)).collect();
        assert_eq!(with, ["-D", "log.tag=srt-1", "-D", "proxy.port=3128", "-p", "(version 1)\n"]);
        assert_eq!(words(None).collect::<Vec<_>>(), ["-D", "log.tag=srt-1", "-p", "(version 1)\n"]);
    }

    #[test]
    fn programs_are_found_as_the_command_would_find_them() {
        let scratch = tempfile::tempdir().unwrap();
        let make = |name: &str, mode: u32| {
            let file = scratch.path().join(name);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(&file, "").unwrap();
            std::fs::set_permissions(&file, PermissionsExt::from_mode(mode)).unwrap();
            file
        };
        let tool = make("b/tool", 0o755);
        make("a/plain", 0o644);
        let path = OsString::from(format!("{0}/a:{0}/b", scratch.path().display()));
        let found = |word: &str| find(OsStr::new(word), scratch.path(), Some(&path)).map_err(|error| error.kind());
        assert_eq!(found("tool"), Ok(tool.clone()));
        assert_eq!(found("b/tool"), Ok(tool));
        assert_eq!(found("plain"), Err(io::ErrorKind::PermissionDenied));
        assert_eq!(found("missing"), Err(io::ErrorKind::NotFound));
        assert_eq!(found(""), Err(io::ErrorKind::NotFound));
    }
}
