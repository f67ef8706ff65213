//! `network`: which hosts are reached.

use super::refuse_at;
use crate::compat::document::{At, Reader, Text};
use crate::compat::domain::{self, Side};
use crate::compat::{Places, path, quoted};
use crate::diagnostic::nearest;

const KEYS: &[&str] = &[
    "allowedDomains",
    "deniedDomains",
    "deniedDomainReasons",
    "strictAllowlist",
    "deniedResolvedAddresses",
    "allowUnixSockets",
    "allowAllUnixSockets",
    "allowLocalBinding",
    "allowMachLookup",
    "httpProxyPort",
    "socksProxyPort",
    "mitmProxy",
    "filterRequest",
    "tlsTerminate",
    "parentProxy",
];

pub fn read<'t>(reader: &mut Reader<'t>, at: &At<'_, 't>) {
    let mut denied = Vec::new();
    let mut reasons = Vec::new();
    for (name, at) in reader.members(at, KEYS) {
        match name {
            "allowedDomains" => allowed(reader, &at),
            "deniedDomains" => denied = reader.strings(&at),
            "deniedDomainReasons" => reasons = texts(reader, &at),
            "strictAllowlist" => {
                // Nobody is asked, so that every list is strict.
                reader.boolean(&at);
            }
            "deniedResolvedAddresses" => resolved(reader, &at),
            "allowUnixSockets" => sockets(reader, &at),
            "allowAllUnixSockets" => {
                if reader.boolean(&at) == Some(true) {
                    reader.refuse(
                        &at,
                        "this would open container engines and agents; name the sockets in `allowUnixSockets`",
                    );
                }
            }
            "allowLocalBinding" => {
                if reader.boolean(&at) == Some(true) {
                    let message =
                        "to bind a port needs no permission here; `allow listen 127.0.0.1:PORT` lets others reach it";
                    reader.lose(&at, message);
                }
            }
            "allowMachLookup" => mach(reader, &at),
            "httpProxyPort" | "socksProxyPort" => {
                reader.refuse(&at, "the proxy that decides is this program's own; leave it out, and allow the hosts");
            }
            "mitmProxy" | "filterRequest" | "tlsTerminate" => {
                reader.refuse(&at, "nothing here looks into TLS; leave it out, and allow or deny hosts");
            }
            _ => reader.refuse(
                &at,
                "`HTTPS_PROXY`, `HTTP_PROXY` and `NO_PROXY` say which proxy connections go through; leave it out",
            ),
        }
    }
    denials(reader, &denied, &reasons);
}

fn allowed<'t>(reader: &mut Reader<'t>, at: &At<'_, 't>) {
    for entry in reader.strings(at) {
        match domain::targets(&entry.text, Side::Allowed) {
            Ok(targets) => {
                let lines = targets.iter().map(|target| format!("allow connect {target}")).collect();
                reader.state(&entry.place, lines);
            }
            Err(message) => refuse_at(reader, &entry.place, message),
        }
    }
}

/// The strings of an object, by their names.
fn texts<'t>(reader: &mut Reader<'t>, at: &At<'_, 't>) -> Vec<(String, Text)> {
    let mut texts = Vec::new();
    for (name, found) in reader.properties(at) {
        let found = At { key: format!("{}[{name:?}]", at.key), ..found };
        texts.extend(reader.string(&found).map(|text| (name.to_owned(), text)));
    }
    texts
}

fn denials(reader: &mut Reader<'_>, denied: &[Text], reasons: &[(String, Text)]) {
    for entry in denied {
        let because = reasons.iter().find(|(name, _)| *name == entry.text);
        let because = because.map(|(_, text)| format!(" because {}", quoted(&text.text))).unwrap_or_default();
        match domain::targets(&entry.text, Side::Denied) {
            Ok(targets) => {
                let lines = targets.iter().map(|target| format!("forbid connect {target}{because}")).collect();
                reader.state(&entry.place, lines);
            }
            Err(message) => refuse_at(reader, &entry.place, message),
        }
    }
    for (name, text) in reasons {
        if !denied.iter().any(|entry| entry.text == *name) {
            let near = nearest(name, denied.iter().map(|entry| entry.text.as_str()));
            let hint = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
            refuse_at(reader, &text.place, format!("`{name}` is no entry of `deniedDomains`{hint}"));
        }
    }
}

fn resolved<'t>(reader: &mut Reader<'t>, at: &At<'_, 't>) {
    for entry in reader.strings(at) {
        match domain::range(&entry.text) {
            // An address that `allowedDomains` lists by itself is more specific, and so stays open.
            Ok(target) => reader.state(&entry.place, vec![format!("deny connect {target}")]),
            Err(message) => refuse_at(reader, &entry.place, message),
        }
    }
}

fn sockets<'t>(reader: &mut Reader<'t>, at: &At<'_, 't>) {
    for entry in reader.strings(at) {
        match path::read(&entry.text, Places::default()) {
            Ok(path) => {
                let lines = vec![
                    "# lint: allow(control-socket) the settings ask for it by `allowUnixSockets`".to_owned(),
                    format!("allow socket {}", path.target()),
                ];
                reader.state(&entry.place, lines);
            }
            Err(message) => refuse_at(reader, &entry.place, message),
        }
    }
}

fn mach<'t>(reader: &mut Reader<'t>, at: &At<'_, 't>) {
    for entry in reader.strings(at) {
        let plain = |c: char| c.is_ascii_alphanumeric() || ".-_".contains(c);
        if entry.text.ends_with('*') {
            refuse_at(reader, &entry.place, format!("`{}` is many services; name each in full", entry.text));
        } else if entry.text.is_empty() || !entry.text.chars().all(plain) {
            refuse_at(reader, &entry.place, format!("`{}` is not the name of a service", entry.text));
        } else {
            reader.state(&entry.place, vec![format!("on macos {{ allow mach {} }}", entry.text)]);
        }
    }
}
