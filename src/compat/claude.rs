//! Claude Code's `settings.json`: what its permission rules and its `sandbox` part say about files and hosts.
//!
//! Its denies beat every allow, so they become `forbid`. Rules about command lines, tools and questions have no counterpart:
//! a policy speaks of what a command touches, not of how it is called. Keys that are about neither are passed over.

use super::document::{At, Reader, Text, parse};
use super::domain::{self, Side};
use super::settings::Lists;
use super::{Gravity, Places, Translation, path, quoted, settings};
use jsonc_parser::ast::Object;

/// Whether a text looks like such a file.
pub fn is_one(text: &str) -> bool {
    let has = |object: &Object<'_>| object.get("permissions").is_some() || object.get("sandbox").is_some();
    parse(text).is_ok_and(|root| root.as_object().is_some_and(has))
}

/// Translates such a file.
pub fn translate(text: &str) -> Translation {
    let root = match parse(text) {
        Ok(root) => root,
        Err(said) => {
            return Translation { base: settings::BASE.to_owned(), said: vec![said], ..Translation::default() };
        }
    };
    let mut reader = Reader::new(text);
    reader.out.base.push_str(settings::BASE);
    let mut lists = Lists::default();
    // What its shell may write by itself.
    reader.out.base.push_str("\n# Where it is started, its shell writes.\nallow write $WORKSPACE\n");
    let Some(object) = root.as_object() else {
        reader.refuse(&At { key: String::new(), value: &root }, "expected an object, `{ … }`");
        return reader.out;
    };
    for property in &object.properties {
        let at = At { key: property.name.as_str().to_owned(), value: &property.value };
        match property.name.as_str() {
            "permissions" => permissions(&mut reader, &at, &mut lists),
            "sandbox" => sandbox(&mut reader, &at, &mut lists),
            "env" => environment(&mut reader, &at),
            _ => {}
        }
    }
    lists.state(&mut reader, Places::default());
    reader.out
}

fn permissions<'t>(reader: &mut Reader<'t>, at: &At<'_, 't>, lists: &mut Lists) {
    const KEYS: &[&str] =
        &["allow", "ask", "deny", "additionalDirectories", "defaultMode", "disableBypassPermissionsMode"];
    for (name, at) in reader.members(at, KEYS) {
        match name {
            "allow" => {
                for rule in reader.strings(&at) {
                    allow(reader, &rule, lists);
                }
            }
            "deny" => {
                for rule in reader.strings(&at) {
                    deny(reader, &rule);
                }
            }
            "ask" => {
                for rule in reader.strings(&at) {
                    let message = format!("`{}`: a run asks nobody; allow it or leave it denied", rule.text);
                    reader.say(Gravity::Lost, rule.place, message);
                }
            }
            "additionalDirectories" => lists.allow_write.extend(reader.strings(&at)),
            _ => reader.lose(&at, "a run asks nobody, so that there are no modes of asking"),
        }
    }
}

/// `Tool(specifier)`, or `Tool` alone.
fn parts(rule: &str) -> (&str, Option<&str>) {
    match rule.split_once('(') {
        Some((tool, rest)) => (tool, Some(rest.strip_suffix(')').unwrap_or(rest))),
        None => (rule, None),
    }
}

fn allow(reader: &mut Reader<'_>, rule: &Text, lists: &mut Lists) {
    match parts(&rule.text) {
        // Open by default.
        ("Read" | "Grep" | "Glob" | "LS" | "NotebookRead", None) => {}
        ("Read", Some(place)) => {
            if let Some(text) = located(reader, rule, place) {
                lists.allow_read.push(text);
            }
        }
        ("Edit" | "Write" | "MultiEdit" | "NotebookEdit", Some(place)) => {
            if let Some(text) = located(reader, rule, place) {
                lists.allow_write.push(text);
            }
        }
        // The workspace, which is open.
        ("Edit" | "Write" | "MultiEdit" | "NotebookEdit", None) => {}
        ("WebFetch", Some(host)) => connect(reader, rule, host, "allow", Side::Allowed),
        _ => lost(reader, rule),
    }
}

fn deny(reader: &mut Reader<'_>, rule: &Text) {
    let (verb, place) = match parts(&rule.text) {
        ("Read", Some(place)) => ("read", place),
        ("Edit" | "Write" | "MultiEdit" | "NotebookEdit", Some(place)) => ("write", place),
        ("WebFetch", Some(host)) => return connect(reader, rule, host, "forbid", Side::Denied),
        ("Edit" | "Write", None) => {
            reader.state(&rule.place, vec!["forbid write $WORKSPACE".to_owned()]);
            return;
        }
        ("WebFetch", None) => {
            reader.state(&rule.place, vec!["forbid connect [*, 0.0.0.0/0, [::]/0]".to_owned()]);
            return;
        }
        _ => return lost(reader, rule),
    };
    let Some(text) = located(reader, rule, place) else { return };
    match path::read(&text.text, Places::default()) {
        Ok(path) => reader.state(&rule.place, vec![settings::later(), format!("forbid {verb} {}", path.target())]),
        Err(message) => settings::refuse_at(reader, &rule.place, message),
    }
}

fn lost(reader: &mut Reader<'_>, rule: &Text) {
    let message = match parts(&rule.text).0 {
        "Bash" => "a policy does not read command lines; it says what they touch",
        _ => "a policy says what a command touches, not which tool is used",
    };
    reader.say(Gravity::Lost, rule.place.clone(), format!("`{}`: {message}", rule.text));
}

fn connect(reader: &mut Reader<'_>, rule: &Text, host: &str, effect: &str, side: Side) {
    let targets = match host.strip_prefix("domain:") {
        Some(host) => domain::targets(host, side),
        None => Err("expected `domain:HOST`".to_owned()),
    };
    match targets {
        Ok(targets) => {
            // It fetches pages: the ports of those.
            let line = |target: &String| format!("{effect} connect {}", target.trim_end_matches(":*"));
            reader.state(&rule.place, targets.iter().map(line).collect());
        }
        Err(message) => settings::refuse_at(reader, &rule.place, message),
    }
}

/// The path of a rule, as `path::read` takes it: `//` begins an absolute one, `/` one of the project, and a name without a
/// slash is one at any depth, as for git.
fn located(reader: &mut Reader<'_>, rule: &Text, place: &str) -> Option<Text> {
    let text = if let Some(rest) = place.strip_prefix("//") {
        format!("/{rest}")
    } else if let Some(rest) = place.strip_prefix('/') {
        rest.to_owned()
    } else if place.starts_with('~') || place.starts_with("./") || place.trim_end_matches('/').contains('/') {
        place.to_owned()
    } else if place.is_empty() {
        settings::refuse_at(reader, &rule.place, "this rule names no path".to_owned());
        return None;
    } else if place == "." || place == ".." || place == "**" || place == "*" {
        place.to_owned()
    } else {
        format!("**/{place}")
    };
    let text = if text.is_empty() { ".".to_owned() } else { text };
    Some(Text { place: rule.place.clone(), text })
}

fn sandbox<'t>(reader: &mut Reader<'t>, at: &At<'_, 't>, lists: &mut Lists) {
    const KEYS: &[&str] = &[
        "enabled",
        "autoAllowBashIfSandboxed",
        "excludedCommands",
        "allowUnsandboxedCommands",
        "network",
        "filesystem",
        "credentials",
        "ignoreViolations",
        "enableWeakerNestedSandbox",
        "enableWeakerNetworkIsolation",
        "failIfUnavailable",
    ];
    for (name, at) in reader.members(at, KEYS) {
        match name {
            "network" => settings::network(reader, &at),
            "filesystem" => settings::filesystem(reader, &at, lists),
            "credentials" => settings::credentials(reader, &at, lists),
            "excludedCommands" => reader.lose(&at, "what runs without a sandbox is started without `srt`"),
            "ignoreViolations" | "enableWeakerNestedSandbox" | "enableWeakerNetworkIsolation" => {
                settings::switch(reader, name, &at);
            }
            _ => {
                // Whether there is a sandbox is not the policy's to say.
                reader.boolean(&at);
            }
        }
    }
}

fn environment<'t>(reader: &mut Reader<'t>, at: &At<'_, 't>) {
    let Some(object) = reader.object(at) else { return };
    for property in &object.properties {
        let name = property.name.as_str();
        let at = At { key: format!("{}.{name}", at.key), value: &property.value };
        let Some(value) = reader.string(&at) else { continue };
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if name.is_empty() || !name.chars().all(plain) || name.starts_with(|c: char| c.is_ascii_digit()) {
            settings::refuse_at(reader, &value.place, format!("`{name}` is not the name of a variable"));
        } else {
            reader.state(&value.place, vec![format!("set {name}={}", quoted(&value.text))]);
        }
    }
}
