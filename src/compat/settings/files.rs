//! `filesystem`: what is read and written, by lists that are only understood together.

use super::{later, name, refuse_at};
use crate::compat::document::{At, Reader, Text};
use crate::compat::path::{self, Spelled};
use crate::compat::{Gravity, Places};
use jsonc_parser::common::Ranged;

const KEYS: &[&str] = &["disabled", "denyRead", "allowRead", "allowWrite", "denyWrite", "allowGitConfig"];

/// What no setting opens for writing, wherever it lies below a place that may be written: names, and what they stand in.
const CLOSED: [(&str, &[&str]); 4] = [
    (
        "",
        &[
            ".gitconfig",
            ".gitmodules",
            ".bashrc",
            ".bash_profile",
            ".zshrc",
            ".zprofile",
            ".profile",
            ".ripgreprc",
            ".mcp.json",
        ],
    ),
    ("", &[".vscode", ".idea"]),
    (".claude/", &["commands", "agents"]),
    (".git/", &["hooks", CONFIG]),
];
/// The one of them that `allowGitConfig` opens.
const CONFIG: &str = "config";

/// The same below a place.
fn closed_below(place: &Spelled, git_config: bool) -> String {
    let targets = CLOSED.iter().map(|(inside, names)| {
        let names: Vec<_> = names.iter().copied().filter(|name| !(git_config && *name == CONFIG)).collect();
        let names = if let [name] = names[..] { name.to_owned() } else { format!("{{{}}}", names.join(",")) };
        place.with(&format!("/**/{inside}{names}"))
    });
    targets.collect::<Vec<_>>().join(", ")
}

/// The one of them that a path asks for.
fn closed_in(path: &Spelled) -> Option<String> {
    let mut names = CLOSED.iter().flat_map(|(inside, names)| names.iter().map(move |name| format!("{inside}{name}")));
    names.find(|name| path.passes(name))
}

/// The lists of paths, each entry with its place.
#[derive(Debug, Default)]
pub struct Lists {
    pub deny_read: Vec<Text>,
    pub allow_read: Vec<Text>,
    pub allow_write: Vec<Text>,
    pub deny_write: Vec<Text>,
    pub git_config: bool,
}

pub fn read<'t>(reader: &mut Reader<'t>, at: &At<'_, 't>, lists: &mut Lists) {
    for (name, at) in reader.members(at, KEYS) {
        match name {
            "denyRead" => lists.deny_read.extend(reader.strings(&at)),
            "allowRead" => lists.allow_read.extend(reader.strings(&at)),
            "allowWrite" => lists.allow_write.extend(reader.strings(&at)),
            "denyWrite" => lists.deny_write.extend(reader.strings(&at)),
            "allowGitConfig" => {
                if reader.boolean(&at) == Some(true) {
                    lists.git_config = true;
                    let place = reader.place(&at.key, at.value.range());
                    reader.state(&place, git_config());
                }
            }
            _ => {
                if reader.boolean(&at) == Some(true) {
                    reader.refuse(
                        &at,
                        "files are never left unguarded here; write `\"allowWrite\": [\"/\"]` for nearly that",
                    );
                }
            }
        }
    }
}

fn deny(reader: &mut Reader<'_>, entry: &Text, path: &Spelled, reads: &[(Text, Spelled)], writes: &[(Text, Spelled)]) {
    // An entry that ends in a separator and has a pattern matches nothing there: refused, as there.
    if entry.text.ends_with('/') && !path.is_literal() {
        let shorter = entry.text.trim_end_matches('/');
        refuse_at(reader, &entry.place, format!("a pattern that ends in `/` matches nothing; write `{shorter}`"));
        return;
    }
    // Of the same path, the allow holds.
    if !path.whole_tree && reads.iter().any(|(_, allow)| allow.same(path)) {
        return;
    }
    // What ends in `/**` is closed name by name there, and nothing below it is opened again.
    let inside = path.whole_tree && reads.iter().chain(writes).any(|(_, allow)| path.may_hold(allow));
    let effect = if inside { "forbid" } else { "deny" };
    reader.state(&entry.place, vec![later(), format!("{effect} read {}", path.target())]);
    if inside {
        let message =
            "nothing below a path that ends in `/**` is opened by another entry; leave that end away to let it";
        reader.say(Gravity::Lost, entry.place.clone(), message);
    }
}

fn git_config() -> Vec<String> {
    vec![
        "# lint: allow(start-up-file) the settings ask for it by `allowGitConfig`".to_owned(),
        "# lint: allow(reopens) that is what it is for".to_owned(),
        "allow read, write [exact $WORKSPACE/**/.git/config, exact $GIT_COMMON_DIR/config]".to_owned(),
    ]
}

impl Lists {
    /// The statements of all lists.
    pub fn state(&self, reader: &mut Reader<'_>, places: Places<'_>) {
        let mut spelled = |list: &[Text]| -> Vec<(Text, Spelled)> {
            let mut all = Vec::new();
            for entry in list {
                match path::read(&entry.text, places) {
                    Ok(path) => all.push((entry.clone(), path)),
                    Err(message) => refuse_at(reader, &entry.place, message),
                }
            }
            all
        };
        let deny_read = spelled(&self.deny_read);
        let allow_read = spelled(&self.allow_read);
        let allow_write = spelled(&self.allow_write);
        let deny_write = spelled(&self.deny_write);
        for (entry, path) in &deny_read {
            deny(reader, entry, path, &allow_read, &allow_write);
        }
        for (entry, path) in &allow_read {
            reader.state(&entry.place, vec![format!("allow read {}", path.target())]);
        }
        for (entry, path) in &allow_write {
            // Names below a place that is a part of another one are closed with that one's.
            let mut before = true;
            let covered = allow_write.iter().any(|(other_entry, other)| {
                before &= other_entry.place != entry.place;
                other.is_literal() && !other.is_broad(places) && other.holds(path) && (before || !other.same(path))
            });
            self.write(reader, entry, path, &deny_read, places, covered);
        }
        for (entry, path) in &deny_write {
            reader.state(&entry.place, vec![later(), format!("forbid write {}", path.target())]);
            // What has a pattern in it is held for what exists, there too.
            if let Some(absolute) = path.absolute().filter(|_| allow_write.iter().any(|(_, open)| open.may_hold(path)))
            {
                name(reader, &entry.place, absolute);
            }
        }
    }

    fn write(
        &self,
        reader: &mut Reader<'_>,
        entry: &Text,
        path: &Spelled,
        denies: &[(Text, Spelled)],
        places: Places<'_>,
        covered: bool,
    ) {
        if let Some(closed) = closed_in(path) {
            let message = format!(
                "`{closed}` stays closed whatever these settings say; `srt import` makes a policy, in which a line can open it"
            );
            refuse_at(reader, &entry.place, message);
            return;
        }
        // Who may write below a place that is closed for reading reads there too.
        let verbs = if denies.iter().any(|(_, deny)| deny.may_hold(path)) { "read, write" } else { "write" };
        let mut lines = vec![format!("allow {verbs} {}", path.target())];
        let start = path.start();
        if path.is_broad(places) {
            let message =
                "start-up files are closed in the workspace and where a home has them, not everywhere below this";
            reader.say(Gravity::Lost, entry.place.clone(), message);
        } else if start.is_broad(places) {
            let message = "this pattern begins at the root or at a home; name the directory in which it begins";
            refuse_at(reader, &entry.place, message.to_owned());
            return;
        } else if !covered {
            lines.push(later());
            lines.push(
                "# lint: allow(moved-directory) a name that is closed is closed wherever it is moved to".to_owned(),
            );
            // From where the pattern begins: its own segments may be such names.
            let names = closed_below(&start, self.git_config);
            lines.push(format!("forbid write [{names}]"));
        }
        reader.state(&entry.place, lines);
    }
}
