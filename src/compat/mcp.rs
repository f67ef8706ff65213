//! Settings of MCP clients: servers that are programs start under `srt`, and everything else in the file stays byte for byte.
//!
//! Claude Desktop, Claude Code and Cursor keep servers under `mcpServers`; VS Code under `servers`, or under `mcp.servers` in
//! its own settings. A server that is reached by a URL starts nothing.

use super::Said;
use super::document::{parse, place};
use jsonc_parser::ast::{Array, Object, ObjectProp, StringLit, Value};
use jsonc_parser::common::Ranged;
use std::collections::HashSet;
use std::ops::Range;

/// A text after its edits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edited {
    pub text: String,
    /// The servers that were changed.
    pub changed: Vec<String>,
    /// Those that were not.
    pub passed: Vec<Passed>,
}

/// A server that stays as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Passed {
    pub server: String,
    pub why: &'static str,
    /// It is not as was asked for.
    pub failed: bool,
}

/// Why a server stays as it is.
enum Stays {
    /// Nothing is to be done.
    Fine(&'static str),
    Failed(&'static str),
}

/// Makes servers start by `program` and the arguments `before`, which end in `--`. Where `only` is given, that server alone.
///
/// # Errors
/// One sentence: no such file, or no such server in it.
pub fn wrap(text: &str, only: Option<&str>, program: &str, before: &[String]) -> Result<Edited, Said> {
    edit(text, only, |server| {
        if server.is_srt() {
            return Err(Stays::Fine("it starts under srt already"));
        }
        Ok(server.wrap(text, program, before))
    })
}

/// Takes that away again.
///
/// # Errors
/// As [`wrap`].
pub fn unwrap(text: &str, only: Option<&str>) -> Result<Edited, Said> {
    edit(text, only, |server| {
        if !server.is_srt() {
            return Err(Stays::Fine("it does not start under srt"));
        }
        server.unwrap(text).ok_or(Stays::Failed("its `args` do not say `run … --` before a command"))
    })
}

type Edits = Vec<(Range<usize>, String)>;

/// A server that is a program.
struct Server<'v, 't> {
    command: &'v StringLit<'t>,
    args: Option<&'v Array<'t>>,
}

fn edit(
    text: &str,
    only: Option<&str>,
    change: impl Fn(&Server<'_, '_>) -> Result<Edits, Stays>,
) -> Result<Edited, Said> {
    let refuse = |at: usize, key: &str, message: String| Said {
        place: place(text, key.to_owned(), at),
        gravity: super::Gravity::Refused,
        message,
    };
    let root = parse(text)?;
    // What stands there twice is read by each client as it likes: which one starts is not known.
    if let Some(property) = root.as_object().and_then(twice) {
        let name = property.name.as_str();
        return Err(refuse(property.range.start, name, "this key stands here twice; leave one of them".to_owned()));
    }
    let servers = root.as_object().and_then(servers);
    let Some((key, servers)) = servers else {
        let message = "there are no servers here: neither `mcpServers`, nor `servers`, nor `mcp.servers`";
        return Err(refuse(0, "", message.to_owned()));
    };
    if let Some(only) = only.filter(|only| servers.get(only).is_none()) {
        let names: Vec<_> = servers.properties.iter().map(|property| property.name.as_str()).collect();
        let near = crate::diagnostic::nearest(only, names.iter().copied());
        let hint = near
            .map_or_else(|| format!("; there are {}", names.join(", ")), |near| format!("; did you mean `{near}`?"));
        return Err(refuse(servers.range.start, key, format!("there is no server `{only}`{hint}")));
    }
    let mut edits = Edits::new();
    let mut edited = Edited { text: String::new(), changed: Vec::new(), passed: Vec::new() };
    for property in &servers.properties {
        let name = property.name.as_str();
        if only.is_some_and(|only| only != name) {
            continue;
        }
        let done = match server(&property.value) {
            Ok(server) => change(&server),
            Err(why) => Err(why),
        };
        match done {
            Ok(more) => {
                edits.extend(more);
                edited.changed.push(name.to_owned());
            }
            Err(stays) => {
                let (why, failed) = match stays {
                    Stays::Fine(why) => (why, false),
                    Stays::Failed(why) => (why, true),
                };
                edited.passed.push(Passed { server: name.to_owned(), why, failed });
            }
        }
    }
    edits.sort_by_key(|(range, _)| range.start);
    let mut at = 0;
    for (range, new) in edits {
        edited.text.push_str(&text[at..range.start]);
        edited.text.push_str(&new);
        at = range.end;
    }
    edited.text.push_str(&text[at..]);
    Ok(edited)
}

/// The object of all servers, and its key.
fn servers<'v, 't>(root: &'v Object<'t>) -> Option<(&'static str, &'v Object<'t>)> {
    let nested = || root.get_object("mcp").and_then(|mcp| mcp.get_object("servers"));
    let found = root.get_object("mcpServers").map(|found| ("mcpServers", found));
    let found = found.or_else(|| root.get_object("servers").map(|found| ("servers", found)));
    found.or_else(|| nested().map(|found| ("mcp.servers", found)))
}

/// A key that stands twice among the servers, in one of them, or on the way to them.
fn twice<'v, 't>(whole: &'v Object<'t>) -> Option<&'v ObjectProp<'t>> {
    let way = |name: &str| ["mcpServers", "servers", "mcp"].contains(&name);
    let found = repeated(whole, way).or_else(|| repeated(whole.get_object("mcp")?, way));
    let inside = |server: &'v ObjectProp<'t>| repeated(server.value.as_object()?, |_| true);
    found.or_else(|| {
        let (_, servers) = servers(whole)?;
        repeated(servers, |_| true).or_else(|| servers.properties.iter().find_map(inside))
    })
}

/// The first that repeats a key, of those that count.
fn repeated<'v, 't>(object: &'v Object<'t>, counts: impl Fn(&str) -> bool) -> Option<&'v ObjectProp<'t>> {
    let mut seen = HashSet::new();
    object.properties.iter().find(|property| counts(property.name.as_str()) && !seen.insert(property.name.as_str()))
}

fn server<'v, 't>(value: &'v Value<'t>) -> Result<Server<'v, 't>, Stays> {
    let object = value.as_object().ok_or(Stays::Failed("it is no object"))?;
    let Some(command) = object.get("command") else {
        let far = ["url", "serverUrl", "httpUrl"].iter().any(|key| object.get(key).is_some());
        return Err(if far { Stays::Fine("it starts no program") } else { Stays::Failed("it has no `command`") });
    };
    let command = command.value.as_string_lit().ok_or(Stays::Failed("its `command` is no string"))?;
    let args = match object.get("args") {
        None => None,
        Some(args) => {
            let args = args.value.as_array().ok_or(Stays::Failed("its `args` are no list"))?;
            if !args.elements.iter().all(|element| element.as_string_lit().is_some()) {
                return Err(Stays::Failed("its `args` are not all strings"));
            }
            Some(args)
        }
    };
    Ok(Server { command, args })
}

impl Server<'_, '_> {
    fn arguments(&self) -> Vec<&str> {
        let elements = self.args.into_iter().flat_map(|args| &args.elements);
        elements.filter_map(|element| Some(&*element.as_string_lit()?.value)).collect()
    }

    /// Whether it starts under srt, however that is written.
    fn is_srt(&self) -> bool {
        let program = self.command.value.rsplit(['/', '\\']).next().unwrap_or_default();
        ["srt", "srt.exe", "srt.cmd"].iter().any(|name| program.eq_ignore_ascii_case(name))
    }

    /// Where in the arguments the server's own command stands, as [`wrap`] writes it.
    fn own(&self) -> Option<usize> {
        let arguments = self.arguments();
        if arguments.first() != Some(&"run") {
            return None;
        }
        let end = arguments.iter().position(|argument| *argument == "--")?;
        (end + 1 < arguments.len()).then_some(end + 1)
    }

    fn wrap(&self, text: &str, program: &str, before: &[String]) -> Edits {
        let new: Vec<String> =
            before.iter().map(|argument| json(argument)).chain([text[range(self.command)].to_owned()]).collect();
        let mut edits = vec![(range(self.command), json(program))];
        match self.args.map(|args| (args, args.elements.first())) {
            Some((_, Some(first))) => {
                let at = first.range().start;
                // Each on its own line where they are.
                let start = text[..at].trim_end().len();
                let blank = if text[start..at].contains('\n') { &text[start..at] } else { " " };
                let inserted = new.join(&format!(",{blank}")) + "," + blank;
                edits.push((at..at, inserted));
            }
            Some((args, None)) => edits.push((range(args), format!("[{}]", new.join(", ")))),
            None => {
                let at = self.command.range.end;
                let key = text[..self.command.range.start].rfind("\"command\"").unwrap_or(at);
                let start = text[..key].trim_end().len();
                let blank = if text[start..key].contains('\n') { &text[start..key] } else { " " };
                edits.push((at..at, format!(",{blank}\"args\": [{}]", new.join(", "))));
            }
        }
        edits
    }

    fn unwrap(&self, text: &str) -> Option<Edits> {
        let at = self.own()?;
        let args = self.args?;
        let own = args.elements[at].as_string_lit()?;
        let command = (range(self.command), text[range(own)].to_owned());
        let kept = match args.elements.get(at + 1) {
            Some(next) => args.elements[0].range().start..next.range().start,
            None => args.range.start + 1..args.range.end - 1,
        };
        Some(vec![command, (kept, String::new())])
    }
}

fn range(of: &impl Ranged) -> Range<usize> {
    let range = of.range();
    range.start..range.end
}

fn json(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
