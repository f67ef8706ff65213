//! `shell_environment_policy`: which of the caller's variables a command has.
//!
//! Codex goes step by step: what `inherit` says, less the default excludes, less `exclude`, then `set`; and of all that, what
//! `include_only` matches. Rules know no order, so that the steps are read together first. Its patterns take a letter for
//! small or capital, ours do not: they are spelled out, and never so that more passes than there.

use super::{Entry, Reader};
use crate::compat::{Gravity, quoted};
use crate::vocabulary::is_variable;
use std::fmt::Write as _;
use toml::Spanned;
use toml::de::DeValue;

const PART: &str = "shell_environment_policy";
const KEYS: &[&str] =
    &["inherit", "ignore_default_excludes", "exclude", "include_only", "set", "experimental_use_profile"];

/// The variables that `inherit = "core"` lets in.
const CORE: &[&str] = &["HOME", "LOGNAME", "PATH", "SHELL", "USER", "USERNAME", "TMPDIR", "TEMP", "TMP"];

/// What is left out by default.
const SECRETS: &[&str] = &["*KEY*", "*SECRET*", "*TOKEN*"];

/// How many letters of a pattern are spelled in both ways: each doubles the rules, and 64 are enough.
const MOST_LETTERS: usize = 6;
/// More of them the language does not read.
const MOST_STARS: usize = 4;

/// Where something stands: its key, and its byte.
type Spot = (String, usize);

#[derive(Default)]
struct Environment {
    inherit: Option<(Inherit, Spot)>,
    exclude: Vec<(String, Spot)>,
    only: Vec<(String, Spot)>,
    set: Vec<(String, String, Spot)>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Inherit {
    All,
    Core,
    None,
}

pub fn read<'t>(reader: &mut Reader<'t>, part: Option<Entry<'_, 't>>) {
    let mut environment = Environment::default();
    let mut defaults = None;
    for (name, value) in reader.members(PART, part.map(|(_, value)| value), KEYS) {
        let key = format!("{PART}.{name}");
        let at = value.span().start;
        match name.as_str() {
            "inherit" => environment.inherit = inherit(reader, &key, value).map(|inherit| (inherit, (key, at))),
            "ignore_default_excludes" => {
                defaults = reader.boolean(&key, value);
                if defaults == Some(false) {
                    let more = SECRETS.iter().map(|pattern| ((*pattern).to_owned(), (key.clone(), at)));
                    environment.exclude.extend(more);
                }
            }
            "exclude" => environment.exclude.extend(patterns(reader, &key, value)),
            "include_only" => environment.only = patterns(reader, &key, value),
            "set" => environment.set = set(reader, &key, value),
            _ => reader.say(Gravity::Lost, &key, at, "no shell's profile is read"),
        }
    }
    let inherit = environment.inherit.as_ref().map_or(Inherit::All, |(inherit, _)| *inherit);
    if defaults.is_none() && inherit == Inherit::All {
        let at = part.map_or(0, |(key, _)| key.span().start);
        environment.exclude.extend(SECRETS.iter().map(|pattern| ((*pattern).to_owned(), (PART.to_owned(), at))));
        let message = "variables whose names hold KEY, SECRET or TOKEN are left out, as some versions of it do by default; \
                       `ignore_default_excludes = true` lets them in";
        reader.say(Gravity::Lost, PART, at, message);
    }
    environment.state(reader, inherit);
}

impl Environment {
    fn state(&self, reader: &mut Reader<'_>, inherit: Inherit) {
        let closes = match (&self.inherit, self.only.first()) {
            (Some((Inherit::Core | Inherit::None, (key, at))), _) => Some((key.clone(), *at)),
            (_, Some((_, (key, at)))) => Some((key.split('[').next().unwrap_or_default().to_owned(), *at)),
            _ => None,
        };
        if let Some((key, at)) = &closes {
            // What no rule lets in stays outside.
            reader.state(key, *at, vec!["default env deny".to_owned()]);
        }
        match inherit {
            Inherit::None => {}
            Inherit::Core => {
                let kept = CORE.iter().filter(|name| self.kept(name)).copied().collect::<Vec<_>>();
                if let (Some((key, at)), false) = (&closes, kept.is_empty()) {
                    reader.state(key, *at, vec![format!("allow env [{}]", kept.join(", "))]);
                }
            }
            Inherit::All => {
                for (pattern, (key, at)) in &self.only {
                    let (targets, whole) = within(pattern);
                    reader.state(key, *at, vec![format!("allow env {targets}")]);
                    if !whole {
                        let message = "a name keeps its case here: it is let in as it is written, in capitals and in \
                                       small letters";
                        reader.say(Gravity::Lost, key, *at, message);
                    }
                }
            }
        }
        // Where nothing is let in, nothing is left to be taken away.
        for (pattern, (key, at)) in self.exclude.iter().filter(|_| inherit != Inherit::None) {
            let (target, whole) = around(pattern);
            reader.state(key, *at, vec![format!("forbid env {target}")]);
            if !whole {
                let message = format!(
                    "a name keeps its case here, and `{pattern}` is too long for both of each letter: all that begin \
                     so are left out"
                );
                reader.say(Gravity::Lost, key, *at, message);
            }
        }
        for (name, value, (key, at)) in &self.set {
            if self.kept(name) {
                reader.state(key, *at, vec![format!("set {name}={}", quoted(value))]);
            } else {
                let message = format!("`{name}` is not among `include_only`, which takes it away again; add it there");
                reader.say(Gravity::Refused, key, *at, message);
            }
        }
    }

    /// Whether `include_only` keeps a name.
    fn kept(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|(pattern, _)| matches(pattern, name))
    }
}

fn inherit<'t>(reader: &mut Reader<'t>, key: &str, value: &Spanned<DeValue<'t>>) -> Option<Inherit> {
    match reader.string(key, value)?.as_str() {
        "all" => Some(Inherit::All),
        "core" => Some(Inherit::Core),
        "none" => Some(Inherit::None),
        other => {
            let message = format!("there is no `{other}`; write `all`, `core` or `none`");
            reader.say(Gravity::Refused, key, value.span().start, message);
            None
        }
    }
}

fn patterns<'t>(reader: &mut Reader<'t>, key: &str, value: &Spanned<DeValue<'t>>) -> Vec<(String, Spot)> {
    let mut patterns = Vec::new();
    for (number, (mut text, at)) in reader.strings(key, value).into_iter().enumerate() {
        let key = format!("{key}[{number}]");
        while text.contains("**") {
            text = text.replace("**", "*");
        }
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '*';
        if text.is_empty() || !text.chars().all(plain) {
            let message = format!("`{text}` is not the name of a variable; `*` stands for any characters");
            reader.say(Gravity::Refused, &key, at, message);
        } else if text.matches('*').count() > MOST_STARS {
            reader.say(Gravity::Refused, &key, at, format!("`{text}` has more than {MOST_STARS} `*`"));
        } else {
            patterns.push((text, (key, at)));
        }
    }
    patterns
}

fn set<'t>(reader: &mut Reader<'t>, key: &str, value: &Spanned<DeValue<'t>>) -> Vec<(String, String, Spot)> {
    let DeValue::Table(table) = value.get_ref() else {
        reader.say(Gravity::Refused, key, value.span().start, "expected a table");
        return Vec::new();
    };
    let mut set = Vec::new();
    for (name, value) in table {
        let key = format!("{key}.{}", name.get_ref());
        let at = name.span().start;
        let Some(text) = reader.string(&key, value) else { continue };
        if is_variable(name.get_ref()) {
            set.push((name.get_ref().to_string(), text, (key, at)));
        } else {
            let message = format!("`{}` is not the name of a variable", name.get_ref());
            reader.say(Gravity::Refused, &key, at, message);
        }
    }
    set
}

/// Whether a pattern matches a name, small letters and capitals alike.
fn matches(pattern: &str, name: &str) -> bool {
    let (pattern, name) = (pattern.as_bytes(), name.as_bytes());
    // Where the last `*` stands, and what it has taken.
    let (mut at, mut taken, mut star) = (0, 0, None);
    while taken < name.len() {
        match pattern.get(at) {
            Some(b'*') => {
                star = Some((at, taken));
                at += 1;
            }
            Some(byte) if byte.eq_ignore_ascii_case(&name[taken]) => {
                at += 1;
                taken += 1;
            }
            _ => match &mut star {
                Some((before, end)) => {
                    *end += 1;
                    (at, taken) = (*before + 1, *end);
                }
                None => return false,
            },
        }
    }
    pattern[at..].iter().all(|byte| *byte == b'*')
}

/// A target that holds whatever the pattern matches, and whether it holds nothing else.
fn around(pattern: &str) -> (String, bool) {
    let mut target = String::new();
    let mut letters = 0;
    for c in pattern.chars() {
        if c.is_ascii_alphabetic() {
            letters += 1;
            if letters > MOST_LETTERS {
                if !target.ends_with('*') {
                    target.push('*');
                }
                return (target, false);
            }
            let _ = write!(target, "{{{},{}}}", c.to_ascii_uppercase(), c.to_ascii_lowercase());
        } else {
            target.push(c);
        }
    }
    (target, true)
}

/// Targets that hold nothing but what the pattern matches, and whether they hold all of it.
fn within(pattern: &str) -> (String, bool) {
    if let (target, true) = around(pattern) {
        return (target, true);
    }
    let mut all = vec![pattern.to_owned(), pattern.to_ascii_uppercase(), pattern.to_ascii_lowercase()];
    all.dedup();
    (format!("[{}]", all.join(", ")), false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_take_letters_for_small_or_capital() {
        for (pattern, name, matched) in [
            ("AWS_*", "aws_key", true),
            ("*key*", "MY_KEY", true),
            ("*key*", "KEY", true),
            ("*a*b", "xaabab", true),
            ("*a*b", "xaaba", false),
            ("PATH", "PATHS", false),
            ("PATH", "PAT", false),
            ("*", "", true),
        ] {
            assert_eq!(matches(pattern, name), matched, "{pattern} {name}");
        }
    }

    #[test]
    fn what_is_closed_is_never_less_and_what_is_opened_never_more() {
        assert_eq!(around("aB_*"), ("{A,a}{B,b}_*".to_owned(), true));
        assert_eq!(around("GITHUB_TOKEN"), ("{G,g}{I,i}{T,t}{H,h}{U,u}{B,b}_*".to_owned(), false));
        assert_eq!(around("A1B2C3D4E5F6*G"), ("{A,a}1{B,b}2{C,c}3{D,d}4{E,e}5{F,f}6*".to_owned(), false));
        assert_eq!(within("Path"), ("{P,p}{A,a}{T,t}{H,h}".to_owned(), true));
        assert_eq!(within("GITHUB_X"), ("[GITHUB_X, github_x]".to_owned(), false));
    }
}
