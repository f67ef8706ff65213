//! The settings file of `@anthropic-ai/sandbox-runtime`, whose command is called `srt` too.
//!
//! Its precedence is kept where it differs from ours: `allowRead` opens what a `denyRead` that holds it, or is the same,
//! closes, which is how a more specific allow works here but for the same; `denyWrite` and `deniedDomains` beat every allow,
//! which is what `forbid` does. Every key is honoured, or refused with what to write instead; a key that only steers the
//! other program's own machinery is said to be without a counterpart.

mod credentials;
mod files;
mod network;

use super::document::{At, Reader, parse};
use super::{Gravity, Named, Place, Places, Translation};
use crate::compat::quoted;

pub(super) use credentials::read as credentials;
pub(super) use files::{Lists, read as filesystem};
pub(super) use network::read as network;

/// What holds for every such file: reads are open, and closed for writing is everything but the run's own places.
///
/// Not `std/system`: what that opens for reading would open a `denyRead` of `/`.
pub(super) const BASE: &str = "\
srt 1

use std/shell-config

default read allow

allow read, write $TMP
on linux {
  allow read, write /dev/{null,zero,full,random,urandom,tty,ptmx,pts,shm}
  allow read, write /proc
  deny write /proc/{bus,driver,fs,irq,mtrr,pressure,slabinfo,sys,sysrq-trigger,sysvipc,tty}
}
on macos {
  allow read, write /dev/{null,zero,random,urandom,tty,ptmx,fd}
}
";

const KEYS: &[&str] = &[
    "network",
    "filesystem",
    "credentials",
    "ignoreViolations",
    "enableWeakerNestedSandbox",
    "enableWeakerNetworkIsolation",
    "allowAppleEvents",
    "ripgrep",
    "mandatoryDenySearchDepth",
    "allowPty",
    "seccomp",
    "bwrapPath",
    "socatPath",
    "javaAgentJarPath",
    "windows",
    "git",
];

/// Translates a settings file. `own` is where the file itself lies, absolute, where that is known: no command may write it.
pub fn translate(text: &str, places: Places<'_>, own: Option<&str>) -> Translation {
    let root = match parse(text) {
        Ok(root) => root,
        Err(said) => return Translation { base: BASE.to_owned(), said: vec![said], ..Translation::default() },
    };
    let mut reader = Reader::new(text);
    reader.out.base.push_str(BASE);
    let mut lists = Lists::default();
    let at = At { key: String::new(), value: &root };
    for (name, at) in reader.members(&at, KEYS) {
        match name {
            "network" => network(&mut reader, &at),
            "filesystem" => filesystem(&mut reader, &at, &mut lists),
            "credentials" => credentials(&mut reader, &at, &mut lists),
            "git" => git(&mut reader, &at),
            _ => switch(&mut reader, name, &at),
        }
    }
    lists.state(&mut reader, places);
    protect(&mut reader, own);
    reader.out
}

/// The file itself: a command that could write it would choose what the next one may do.
fn protect(reader: &mut Reader<'_>, own: Option<&str>) {
    let Some(own) = own else { return };
    let place = Place { key: "(this file)".to_owned(), line: 1, column: 1 };
    match super::path::Spelled::of(own) {
        Ok(path) => {
            let lines =
                vec![later(), format!("forbid write {} because \"these are the settings themselves\"", path.target())];
            reader.state(&place, lines);
        }
        Err(message) => refuse_at(reader, &place, message),
    }
}

/// Above a denial of a name.
pub(super) fn later() -> String {
    "# lint: allow(later-names) the settings speak of what is there when the command is started".to_owned()
}

/// The switches that stand beside the two large parts.
pub(super) fn switch<'t>(reader: &mut Reader<'t>, name: &str, at: &At<'_, 't>) {
    match name {
        "ignoreViolations" => ignored(reader, at),
        "enableWeakerNestedSandbox" => {
            if reader.boolean(at) == Some(true) {
                reader
                    .lose(at, "nothing is weakened here; `srt doctor` says what a container lacks, and what mends it");
            }
        }
        "enableWeakerNetworkIsolation" => {
            if reader.boolean(at) == Some(true) {
                let place = reader.place(&at.key, jsonc_parser::common::Ranged::range(at.value));
                reader.state(&place, vec!["on macos { allow mach com.apple.trustd.agent }".to_owned()]);
            }
        }
        "allowAppleEvents" => {
            if reader.boolean(at) == Some(true) {
                reader.refuse(
                    at,
                    "this lets a command start programs outside the sandbox, which nothing here does; leave it out",
                );
            }
        }
        "mandatoryDenySearchDepth" => reader.lose(at, "start-up files are closed at every depth here"),
        "allowPty" => {
            if reader.boolean(at) == Some(false) {
                reader.refuse(at, "terminals cannot be closed here; leave it out");
            }
        }
        "bwrapPath" => reader.lose(at, "nothing needs bubblewrap here; `--engine bwrap` takes the one on PATH"),
        "windows" => reader.lose(at, "nothing runs on Windows yet"),
        _ => reader.lose(at, "this program has no part of that kind"),
    }
}

/// Texts that a refusal of some command holds. What of that is a path, for every command, is a place here.
fn ignored<'t>(reader: &mut Reader<'t>, at: &At<'_, 't>) {
    for (command, at) in reader.properties(at) {
        for text in reader.strings(&at) {
            let path = text.text.starts_with('/').then(|| super::path::Spelled::of(&text.text));
            match path {
                Some(Ok(path)) if command == "*" => {
                    reader.state(&text.place, vec![format!("ignore read, write {}", path.target())]);
                }
                _ => reader.say(
                    Gravity::Lost,
                    text.place,
                    "only a path, and for every command (`*`), can be left out of what is told; `--quiet` leaves out all",
                ),
            }
        }
    }
}

fn git<'t>(reader: &mut Reader<'t>, at: &At<'_, 't>) {
    for (_, at) in reader.members(at, &["safeDirectories"]) {
        let directories = reader.strings(&at);
        let Some(first) = directories.first().map(|text| text.place.clone()) else { continue };
        let mut lines = vec![format!("set GIT_CONFIG_COUNT={}", directories.len())];
        for (number, directory) in directories.iter().enumerate() {
            lines.push(format!("set GIT_CONFIG_KEY_{number}=safe.directory"));
            lines.push(format!("set GIT_CONFIG_VALUE_{number}={}", quoted(&directory.text)));
        }
        reader.state(&first, lines);
    }
}

/// A sentence about a place.
pub(super) fn refuse_at(reader: &mut Reader<'_>, place: &Place, message: String) {
    reader.say(Gravity::Refused, place.clone(), message);
}

/// What is closed for writing by its name alone.
pub(super) fn name(reader: &mut Reader<'_>, place: &Place, path: String) {
    reader.out.named.push(Named { place: place.clone(), path });
}
