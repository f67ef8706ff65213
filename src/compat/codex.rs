//! OpenAI Codex's `config.toml`: `sandbox_mode`, `sandbox_workspace_write` and `shell_environment_policy`.
//!
//! Keys that are about neither files, nor the network, nor the environment are passed over; those of asking are said to have
//! no counterpart.

mod environment;

use super::document::{no_key, place};
use super::{Gravity, Place, Places, Said, Statement, Translation, path, settings};
use crate::diagnostic::nearest;
use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

/// Translates such a file.
pub fn translate(text: &str) -> Translation {
    let mut reader = Reader { text, out: Translation { base: settings::BASE.to_owned(), ..Translation::default() } };
    match DeTable::parse(text) {
        Ok(table) => reader.file(table.get_ref()),
        Err(error) => {
            let at = error.span().map_or(0, |span| span.start);
            let message = error.message().lines().next().unwrap_or_default().to_owned();
            reader.say(Gravity::Refused, "", at, format!("this is not TOML: {message}"));
        }
    }
    reader.out
}

struct Reader<'t> {
    text: &'t str,
    out: Translation,
}

type Entry<'a, 't> = (&'a Spanned<DeString<'t>>, &'a Spanned<DeValue<'t>>);

impl<'t> Reader<'t> {
    fn say(&mut self, gravity: Gravity, key: &str, at: usize, message: impl Into<String>) {
        let place = place(self.text, key.to_owned(), at);
        self.out.said.push(Said { place, gravity, message: message.into() });
    }

    fn state(&mut self, key: &str, at: usize, lines: Vec<String>) {
        let place: Place = place(self.text, key.to_owned(), at);
        self.out.statements.push(Statement { place, lines });
    }

    fn file(&mut self, table: &DeTable<'t>) {
        let mut mode = ("read-only".to_owned(), 0);
        for (key, value) in table {
            let at = key.span().start;
            match key.get_ref().as_ref() {
                "sandbox_mode" => {
                    if let Some(text) = self.string("sandbox_mode", value) {
                        mode = (text, value.span().start);
                    }
                }
                "approval_policy" => {
                    self.say(Gravity::Lost, "approval_policy", at, "a run asks nobody");
                }
                "permissions" | "default_permissions" => {
                    let key = key.get_ref().to_string();
                    self.say(Gravity::Looser, &key, at, "profiles of permissions are not read; use `sandbox_mode`");
                }
                _ => {}
            }
        }
        let workspace = table.iter().find(|(key, _)| key.get_ref() == "sandbox_workspace_write");
        match mode.0.as_str() {
            "read-only" => {
                if let Some((key, _)) = workspace {
                    let message = "this part holds where `sandbox_mode` is `workspace-write`";
                    self.say(Gravity::Lost, "sandbox_workspace_write", key.span().start, message);
                }
            }
            "workspace-write" => self.workspace(mode.1, workspace),
            "danger-full-access" => {
                let message = "this is no sandbox, and no policy says that; write `workspace-write`";
                self.say(Gravity::Refused, "sandbox_mode", mode.1, message);
            }
            other => {
                let near = nearest(other, ["read-only", "workspace-write", "danger-full-access"]);
                let hint = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
                self.say(Gravity::Refused, "sandbox_mode", mode.1, format!("there is no mode `{other}`{hint}"));
            }
        }
        environment::read(self, table.iter().find(|(key, _)| key.get_ref() == "shell_environment_policy"));
    }

    fn workspace(&mut self, at: usize, part: Option<Entry<'_, 't>>) {
        let key = "sandbox_workspace_write";
        let lines = vec![
            "allow write $WORKSPACE".to_owned(),
            settings::later(),
            format!("forbid write $WORKSPACE/{{.git,.codex,.agents}}{KEPT}"),
        ];
        self.state("sandbox_mode", at, lines);
        let mut network = None;
        let mut slash_tmp = true;
        for (name, value) in self.members(key, part.map(|(_, value)| value), WORKSPACE) {
            let key = format!("{key}.{name}");
            let at = value.span().start;
            match name.as_str() {
                "writable_roots" => self.roots(&key, value),
                "network_access" => {
                    if self.boolean(&key, value) == Some(true) {
                        network = Some(at);
                    }
                }
                "exclude_slash_tmp" => slash_tmp = self.boolean(&key, value) != Some(true),
                _ => {
                    if self.boolean(&key, value) == Some(true) {
                        self.say(
                            Gravity::Lost,
                            &key,
                            at,
                            "the run has a temporary directory of its own, which TMPDIR names",
                        );
                    }
                }
            }
        }
        if slash_tmp {
            let message =
                "`/tmp` is the run's own here and gone with it; write `allow write /tmp` to share the machine's";
            self.say(Gravity::Lost, "sandbox_mode", at, message);
        }
        if let Some(at) = network {
            let lines = vec![
                "# lint: allow(broad-grant) the settings ask for it by `network_access`".to_owned(),
                "allow connect [*:*, 0.0.0.0/0:*, [::]/0:*]".to_owned(),
            ];
            self.state("sandbox_workspace_write.network_access", at, lines);
        }
    }

    fn roots(&mut self, key: &str, value: &Spanned<DeValue<'t>>) {
        for (number, (text, at)) in self.strings(key, value).into_iter().enumerate() {
            let key = format!("{key}[{number}]");
            // No patterns there: every character is itself.
            match path::read(&text, Places::default()) {
                Ok(path) if path.is_literal() => {
                    let lines = vec![
                        format!("allow write {}", path.target()),
                        settings::later(),
                        format!("forbid write {}{KEPT}", path.with("/{.git,.codex,.agents}")),
                    ];
                    self.state(&key, at, lines);
                }
                Ok(_) => self.say(Gravity::Refused, &key, at, "a root is a directory, not a pattern"),
                Err(message) => self.say(Gravity::Refused, &key, at, message),
            }
        }
    }

    /// The members of a table; what is not among `known` is refused.
    fn members<'a>(
        &mut self,
        key: &str,
        value: Option<&'a Spanned<DeValue<'t>>>,
        known: &[&str],
    ) -> Vec<(String, &'a Spanned<DeValue<'t>>)> {
        let Some(value) = value else { return Vec::new() };
        let DeValue::Table(table) = value.get_ref() else {
            self.say(Gravity::Refused, key, value.span().start, "expected a table");
            return Vec::new();
        };
        let mut members = Vec::new();
        for (name, value) in table {
            let word = name.get_ref().as_ref();
            if known.contains(&word) {
                members.push((word.to_owned(), value));
                continue;
            }
            let message = no_key(word, known);
            self.say(Gravity::Refused, &format!("{key}.{word}"), name.span().start, message);
        }
        members
    }

    fn string(&mut self, key: &str, value: &Spanned<DeValue<'t>>) -> Option<String> {
        if let DeValue::String(text) = value.get_ref() {
            return Some(text.to_string());
        }
        self.say(Gravity::Refused, key, value.span().start, "expected a string");
        None
    }

    fn strings(&mut self, key: &str, value: &Spanned<DeValue<'t>>) -> Vec<(String, usize)> {
        let DeValue::Array(array) = value.get_ref() else {
            self.say(Gravity::Refused, key, value.span().start, "expected a list");
            return Vec::new();
        };
        let mut strings = Vec::new();
        for (number, value) in array.iter().enumerate() {
            let text = self.string(&format!("{key}[{number}]"), value);
            strings.extend(text.map(|text| (text, value.span().start)));
        }
        strings
    }

    fn boolean(&mut self, key: &str, value: &Spanned<DeValue<'t>>) -> Option<bool> {
        if let DeValue::Boolean(boolean) = value.get_ref() {
            return Some(*boolean);
        }
        self.say(Gravity::Refused, key, value.span().start, "expected `true` or `false`");
        None
    }
}

/// Why that is closed in every root.
const KEPT: &str = " because \"version control and agents' settings are read alone\"";

const WORKSPACE: &[&str] = &["writable_roots", "network_access", "exclude_tmpdir_env_var", "exclude_slash_tmp"];
