//! Claude Code's `settings.json`: what its permission rules and its `sandbox` part say about files and hosts.
//!
//! Its denies beat every allow, so they become `forbid`; so do its questions, since a run asks nobody. Rules about command
//! lines and tools have no counterpart: a policy speaks of what a command touches, not of how it is called; of a rule that
//! closes something this is said to be looser. Keys that are about neither are passed over.

use super::document::{At, Reader, Text, parse};
use super::domain::{self, Side};
use super::settings::Lists;
use super::{Gravity, Place, Places, Translation, path, quoted, settings};
use crate::vocabulary::is_variable;
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
    let mut edits = Edits::default();
    for (name, at) in reader.properties(&At { key: String::new(), value: &root }) {
        match name {
            "permissions" => permissions(&mut reader, &at, &mut lists, &mut edits),
            "sandbox" => sandbox(&mut reader, &at, &mut lists),
            "env" => environment(&mut reader, &at),
            _ => {}
        }
    }
    edits.state(&mut reader, &lists);
    lists.state(&mut reader, Places::default());
    reader.out
}

/// What is said of edits as a whole, which is known when every rule is read.
#[derive(Default)]
struct Edits {
    /// The rule that lets nothing be edited.
    none: Option<Place>,
    /// The rules that let no notebook be edited.
    no_notebooks: Vec<Place>,
    /// Whether the workspace is edited there without a question.
    unasked: bool,
    /// The mode, where one is named that asks.
    asking: Option<Place>,
}

impl Edits {
    fn state(&self, reader: &mut Reader<'_>, lists: &Lists) {
        for place in &self.no_notebooks {
            // By the ends of their names: that is all that makes a notebook of a file.
            reader.state(place, vec![settings::later(), "forbid write **/*.ipynb".to_owned()]);
        }
        if let Some(place) = &self.none {
            // Whatever else here opens: what is not understood of it is refused where the lists are stated.
            let opened = lists.allow_write.iter().filter_map(|entry| path::read(&entry.text, Places::default()).ok());
            let opened = opened.map(|path| path.target());
            let all: Vec<_> = std::iter::once("$WORKSPACE".to_owned()).chain(opened).collect();
            reader.state(place, vec![settings::later(), format!("forbid write [{}]", all.join(", "))]);
            let message = "a command writes its own temporary directory and the devices, so that those stay open";
            reader.say(Gravity::Looser, place.clone(), message);
        } else if !self.unasked {
            let (place, why) = match &self.asking {
                Some(place) => (place.clone(), "a run asks nobody"),
                None => (
                    Place { key: "permissions.defaultMode".to_owned(), line: 1, column: 1 },
                    "without this key Claude Code asks before it edits, and a run asks nobody",
                ),
            };
            reader.say(Gravity::Looser, place, format!("{why}: the workspace is written without a question"));
        }
    }
}

fn permissions<'t>(reader: &mut Reader<'t>, at: &At<'_, 't>, lists: &mut Lists, edits: &mut Edits) {
    const KEYS: &[&str] =
        &["allow", "ask", "deny", "additionalDirectories", "defaultMode", "disableBypassPermissionsMode"];
    for (name, at) in reader.members(at, KEYS) {
        match name {
            "allow" => {
                for rule in reader.strings(&at) {
                    allow(reader, &rule, lists, edits);
                }
            }
            "deny" => {
                for rule in reader.strings(&at) {
                    deny(reader, &rule, edits);
                }
            }
            "ask" => {
                for rule in reader.strings(&at) {
                    if deny(reader, &rule, edits) {
                        let message = format!("`{}`: a run asks nobody, so that it is denied", rule.text);
                        reader.say(Gravity::Lost, rule.place, message);
                    }
                }
            }
            "additionalDirectories" => lists.allow_write.extend(reader.strings(&at)),
            "defaultMode" => {
                let Some(mode) = reader.string(&at) else { continue };
                match mode.text.as_str() {
                    "plan" => edits.none = Some(mode.place),
                    // As a run does.
                    "acceptEdits" => edits.unasked = true,
                    "bypassPermissions" => {
                        edits.unasked = true;
                        reader.lose(&at, NOBODY);
                    }
                    // One that is not known here may ask.
                    _ => edits.asking = Some(mode.place),
                }
            }
            _ => reader.lose(&at, NOBODY),
        }
    }
}

const NOBODY: &str = "a run asks nobody, so that there are no modes of asking";

/// `Tool(specifier)`, or `Tool` alone; `Tool(*)` and `Tool(**)` are the tool alone. Nothing where the brackets are not a pair.
fn parts(rule: &str) -> Option<(&str, Option<&str>)> {
    let rule = rule.trim();
    let Some((tool, rest)) = rule.split_once('(') else {
        return (!rule.contains(')')).then_some((rule, None));
    };
    let specifier = rest.strip_suffix(')')?.trim();
    Some((tool.trim(), Some(specifier).filter(|specifier| !matches!(*specifier, "*" | "**"))))
}

/// The parts of a rule, or that it is refused.
fn read_parts<'r>(reader: &mut Reader<'_>, rule: &'r Text) -> Option<(&'r str, Option<&'r str>)> {
    let parts = parts(&rule.text);
    if parts.is_none() {
        let message = format!("`{}` is no rule: expected `TOOL` or `TOOL(WHAT)`", rule.text);
        settings::refuse_at(reader, &rule.place, message);
    }
    parts
}

fn allow(reader: &mut Reader<'_>, rule: &Text, lists: &mut Lists, edits: &mut Edits) {
    let Some((tool, place)) = read_parts(reader, rule) else { return };
    match (tool, place) {
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
        ("Edit", None) => edits.unasked = true,
        ("Write" | "MultiEdit" | "NotebookEdit", None) => {}
        ("WebFetch", Some(host)) => connect(reader, rule, host, Side::Allowed),
        _ => without(reader, rule, tool, Gravity::Lost),
    }
}

/// Whether a rule that closes something could be said.
fn deny(reader: &mut Reader<'_>, rule: &Text, edits: &mut Edits) -> bool {
    let Some((tool, place)) = read_parts(reader, rule) else { return true };
    let (verb, place) = match (tool, place) {
        // What closes reading closes the other ways of reading there.
        ("Read" | "Grep" | "Glob" | "LS" | "NotebookRead", Some(place)) => ("read", place),
        ("Edit" | "Write" | "MultiEdit" | "NotebookEdit", Some(place)) => ("write", place),
        ("WebFetch", Some(host)) => {
            connect(reader, rule, host, Side::Denied);
            return true;
        }
        ("Read", None) => {
            reader.state(&rule.place, vec!["forbid read [$WORKSPACE, ~]".to_owned()]);
            let message = format!("`{}`: a command reads what it is made of, so that the system stays open", rule.text);
            reader.say(Gravity::Looser, rule.place.clone(), message);
            return true;
        }
        ("Edit" | "Write" | "MultiEdit", None) => {
            edits.none = Some(rule.place.clone());
            return true;
        }
        ("NotebookEdit", None) => {
            edits.no_notebooks.push(rule.place.clone());
            return true;
        }
        ("WebFetch", None) => {
            // Without ports it is every port.
            reader.state(&rule.place, vec!["forbid connect [*, 0.0.0.0/0, [::]/0]".to_owned()]);
            return true;
        }
        _ => {
            without(reader, rule, tool, Gravity::Looser);
            return false;
        }
    };
    let Some(text) = located(reader, rule, place) else { return true };
    match path::read(&text.text, Places::default()) {
        Ok(path) => reader.state(&rule.place, vec![settings::later(), format!("forbid {verb} {}", path.target())]),
        Err(message) => settings::refuse_at(reader, &rule.place, message),
    }
    true
}

fn without(reader: &mut Reader<'_>, rule: &Text, tool: &str, gravity: Gravity) {
    let message = match tool {
        "Bash" => "a policy does not read command lines; it says what they touch",
        _ => "a policy says what a command touches, not which tool is used",
    };
    reader.say(gravity, rule.place.clone(), format!("`{}`: {message}", rule.text));
}

fn connect(reader: &mut Reader<'_>, rule: &Text, host: &str, side: Side) {
    let targets = match host.strip_prefix("domain:") {
        Some(host) => domain::targets(host, side),
        None => Err("expected `domain:HOST`".to_owned()),
    };
    match targets {
        Ok(targets) => {
            let line = |target: &String| match side {
                // It fetches pages: the ports of those.
                Side::Allowed => format!("allow connect {}", target.trim_end_matches(":*")),
                Side::Denied => format!("forbid connect {target}"),
            };
            reader.state(&rule.place, targets.iter().map(line).collect());
        }
        Err(message) => settings::refuse_at(reader, &rule.place, message),
    }
}

/// The path of a rule, as `path::read` takes it: `//` begins an absolute one, `/` one of the project, and a name without a
/// slash is one at any depth, as for git.
fn located(reader: &mut Reader<'_>, rule: &Text, place: &str) -> Option<Text> {
    // As git has it, these take back, or make a sign an ordinary one.
    if place.starts_with('!') || place.contains('\\') {
        let message =
            format!("`{place}` begins with `!` or holds a `\\`, which mean something else here; name the path itself");
        settings::refuse_at(reader, &rule.place, message);
        return None;
    }
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
    for (name, at) in reader.properties(at) {
        let Some(value) = reader.string(&at) else { continue };
        if is_variable(name) {
            reader.state(&value.place, vec![format!("set {name}={}", quoted(&value.text))]);
        } else {
            settings::refuse_at(reader, &value.place, format!("`{name}` is not the name of a variable"));
        }
    }
}
