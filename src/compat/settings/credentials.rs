//! `credentials`: files and variables that stay outside. Nothing here puts a stand-in in a secret's place.

use super::Lists;
use super::refuse_at;
use crate::compat::document::{At, Reader, Text};
use crate::vocabulary::is_variable;

const KEYS: &[&str] = &["files", "envVars", "allowPlaintextInject", "awsPairs", "sigv4"];
/// What an entry may have beside its name and mode; without meaning where the mode is `deny`.
const FILE: &[&str] =
    &["path", "mode", "extract", "onExtractNoMatch", "decode", "maskClaims", "maskDuplicates", "injectHosts"];
const VARIABLE: &[&str] = &["name", "mode", "extract", "onExtractNoMatch", "decode", "maskClaims", "injectHosts"];

pub fn read<'t>(reader: &mut Reader<'t>, at: &At<'_, 't>, lists: &mut Lists) {
    for (name, at) in reader.members(at, KEYS) {
        match name {
            "files" => {
                for entry in reader.elements(&at) {
                    lists.deny_read.extend(denied(reader, &entry, "path", FILE));
                }
            }
            "envVars" => {
                for entry in reader.elements(&at) {
                    let Some(variable) = denied(reader, &entry, "name", VARIABLE) else { continue };
                    if is_variable(&variable.text) {
                        reader.state(&variable.place, vec![format!("forbid env {}", variable.text)]);
                    } else {
                        let message = format!("`{}` is not the name of a variable", variable.text);
                        refuse_at(reader, &variable.place, message);
                    }
                }
            }
            "allowPlaintextInject" => {
                if reader.boolean(&at) == Some(true) {
                    reader.refuse(&at, "no credential is put into requests here; leave it out");
                }
            }
            _ => reader.refuse(&at, "no request is signed anew here; leave it out"),
        }
    }
}

/// The entry's path or name, if its mode is one that is known here.
fn denied<'t>(reader: &mut Reader<'t>, at: &At<'_, 't>, named: &str, keys: &[&str]) -> Option<Text> {
    let mut found = None;
    let mut mode = None;
    for (name, at) in reader.members(at, keys) {
        if name == named {
            found = reader.string(&at);
        } else if name == "mode" {
            mode = reader.string(&at);
        }
    }
    let (Some(found), Some(mode)) = (found, mode) else {
        reader.refuse(at, format!("expected `{named}` and `mode`"));
        return None;
    };
    match mode.text.as_str() {
        "deny" => Some(found),
        "mask" => {
            let message = "no stand-in is put in a credential's place here; write `\"mode\": \"deny\"`".to_owned();
            refuse_at(reader, &mode.place, message);
            None
        }
        other => {
            refuse_at(reader, &mode.place, format!("there is no mode `{other}`; write `\"deny\"`"));
            None
        }
    }
}
