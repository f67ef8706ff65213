//! Settings of MCP clients: servers that are programs start under `srt`, and everything else in the file stays byte for byte.
//!
//! Claude Desktop, Claude Code and Cursor keep servers under `mcpServers`; VS Code under `servers`, or under `mcp.servers` in
//! its own settings. A server that is reached by a URL starts nothing.

use super::Said;
use super::document::{parse, place};
use jsonc_parser::ast::{Array, Object, StringLit, Value};
use jsonc_parser::common::Ranged;
use std::ops::Range;

/// A text after its edits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edited {
    pub text: String,
    /// The servers that were changed.
    pub changed: Vec<String>,
    /// Those that were not, and why.
    pub passed: Vec<(String, &'static str)>,
}

/// Makes servers start by `program` and the arguments `before`, which end in `--`. Where `only` is given, that server alone.
///
/// # Errors
/// One sentence: no such file, or no such server in it.
pub fn wrap(text: &str, only: Option<&str>, program: &str, before: &[String]) -> Result<Edited, Said> {
    edit(text, only, |server| match server.wrapped() {
        Some(_) => Err("it starts under srt already"),
        None => Ok(server.wrap(text, program, before)),
    })
}

/// Takes that away again.
///
/// # Errors
/// As [`wrap`].
pub fn unwrap(text: &str, only: Option<&str>) -> Result<Edited, Said> {
    edit(text, only, |server| server.unwrap(text).ok_or("it does not start under srt"))
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
    change: impl Fn(&Server<'_, '_>) -> Result<Edits, &'static str>,
) -> Result<Edited, Said> {
    let refuse = |at: usize, key: &str, message: String| Said {
        place: place(text, key.to_owned(), at),
        gravity: super::Gravity::Refused,
        message,
    };
    let root = parse(text)?;
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
            Err(why) => edited.passed.push((name.to_owned(), why)),
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

fn server<'v, 't>(value: &'v Value<'t>) -> Result<Server<'v, 't>, &'static str> {
    let object = value.as_object().ok_or("it is no object")?;
    let Some(command) = object.get("command") else { return Err("it starts no program") };
    let command = command.value.as_string_lit().ok_or("its `command` is no string")?;
    let args = match object.get("args") {
        None => None,
        Some(args) => {
            let args = args.value.as_array().ok_or("its `args` are no list")?;
            if !args.elements.iter().all(|element| element.as_string_lit().is_some()) {
                return Err("its `args` are not all strings");
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

    /// Where in the arguments the server's own command stands, if it starts under srt.
    fn wrapped(&self) -> Option<usize> {
        let program = self.command.value.rsplit(['/', '\\']).next().unwrap_or_default();
        let arguments = self.arguments();
        if !matches!(program, "srt" | "srt.exe") || arguments.first() != Some(&"run") {
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
        let at = self.wrapped()?;
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
