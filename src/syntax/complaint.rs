//! What to say about a statement that does not follow the grammar: what was expected, what was found instead, and the
//! word that was probably meant.

mod scan;

pub(super) use scan::scan;

use super::codes;
use super::fault::Fault;
use super::grammar::{Breach, Rule, noun, read};
use crate::diagnostic::nearest;
use crate::vocabulary::{Effect, LimitKind, System, Verb};
use std::ops::Range;

/// The words that statements start with, and how each is written.
const STATEMENTS: &[(&str, &str)] = &[
    ("srt", "`srt 1`"),
    ("use", "`use std/NAME` or `use \"PATH\"`"),
    ("let", "`let NAME = TARGET` or `let NAME = [TARGET, …]`"),
    ("default", "`default read deny`"),
    ("allow", "`allow VERB TARGET`, as in `allow read $WORKSPACE`"),
    ("deny", "`deny VERB TARGET`, as in `deny read ~/.ssh`"),
    ("forbid", "`forbid VERB TARGET`, as in `forbid write **/.git/hooks`"),
    ("set", "`set NAME=VALUE`, with quotes around a value that holds blanks"),
    ("limit", "`limit memory 4GiB, processes 512`"),
    ("on", "`on linux, macos { … }`"),
    ("within", "`within \"PATH\"`"),
    ("expect", "`expect allow VERB TARGET` or `expect deny VERB TARGET`"),
    ("ignore", "`ignore VERB TARGET`, as in `ignore read ~/.config`"),
    ("assume", "`assume $NAME inside TARGET` or `assume $NAME outside TARGET`"),
];

/// A complaint and the bytes of the region that it is about.
pub(super) struct Complaint {
    pub fault: Fault,
    pub range: Range<usize>,
}

/// The letters that a line starts with.
pub(super) fn first_word(region: &str) -> &str {
    let region = region.trim_start_matches([' ', '\t']);
    &region[..region.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == '-')).unwrap_or(region.len())]
}

pub(super) fn is_statement_word(word: &str) -> bool {
    STATEMENTS.iter().any(|(known, _)| *known == word)
}

fn usage(word: &str) -> Option<&'static str> {
    STATEMENTS.iter().find(|(known, _)| *known == word).map(|(_, usage)| *usage)
}

/// What is wrong with one broken statement.
pub(super) fn about(region: &str) -> Complaint {
    let word = first_word(region);
    if !is_statement_word(word) {
        return not_a_statement(region, word);
    }
    let help = || usage(word).map_or_else(String::new, |usage| format!("write {usage}"));
    let scan = scan(region);
    if let Some(at) = scan.open_quote {
        return Complaint {
            fault: Fault::new(&codes::SYNTAX, "this `\"` is not closed", "write `\"` at the end of the text")
                .label("opened here"),
            range: at..at + 1,
        };
    }
    // With a blank behind it, so that what is missing at the end is missing after the blank.
    let padded = format!("{region} ");
    let breach = match read(Rule::strict, &padded) {
        Err(breach) => breach,
        // A whole statement, with something after it that no line may hold.
        Ok(_) => Breach { at: region.len(), expected: vec![Rule::end], exhausted: false },
    };
    let at = breach.at.min(region.len());
    let rest = &region[at..];
    let found = found(rest);
    let range = at..at + found.len();
    let known = |candidates: &mut dyn Iterator<Item = &'static str>| nearest(found, candidates);
    let expects = |rule: Rule| breach.expected.contains(&rule);
    let expects_end = expects(Rule::end) || expects(Rule::EOI);
    let complain = |message: String, help: String| Complaint {
        fault: Fault::new(&codes::SYNTAX, message, help),
        range: range.clone(),
    };

    if let Some(open) = scan.open_list
        && (at > open || rest.starts_with('['))
        && !(expects(Rule::verb) || expects(Rule::effect) || expects(Rule::answer))
    {
        return Complaint {
            fault: Fault::new(&codes::SYNTAX, "this `[` is not closed", "write `]` after the last of the list")
                .label("opened here"),
            range: open..open + 1,
        };
    }
    if let Some(open) = scan.open_brace
        && open >= at
        && word != "on"
        && region[at..open].chars().all(|c| !c.is_whitespace())
    {
        let alone = region[open + 1..].lines().next().unwrap_or_default().trim().is_empty();
        if alone {
            return complain("a list stands in braces".to_owned(), "write `[` and `]` around a list".to_owned());
        }
        return Complaint {
            fault: Fault::new(&codes::SYNTAX, "this `{` is not closed", "write `}` after the last of its alternatives")
                .label("opened here"),
            range: open..open + 1,
        };
    }
    if rest.starts_with('"') && at > 0 && !region[..at].ends_with([' ', '\t', ',', '[', '=', '\n', '(']) {
        return complain(
            "a quote stands inside a word".to_owned(),
            "quote the whole word, or write `\\\"` for the character itself".to_owned(),
        );
    }
    if rest.starts_with([']', '}']) && scan.stray == Some(at) {
        return complain(format!("this `{found}` closes nothing"), "take it out".to_owned());
    }
    let shown = if !rest.trim_start().is_empty() && rest.starts_with([' ', '\t']) {
        "a blank".to_owned()
    } else if rest.trim_start().is_empty() || rest.starts_with(['\n', '\r']) {
        "the end of the line".to_owned()
    } else {
        format!("`{found}`")
    };
    let expected = expectation(&breach.expected, &region[..at], word);
    let suggestion = if expects(Rule::verb) {
        known(&mut Verb::ALL.iter().map(|verb| verb.word()))
    } else if expects(Rule::answer) {
        known(&mut ["allow", "deny"].into_iter())
    } else if expects(Rule::system) {
        known(&mut System::ALL.iter().map(|system| system.word()))
    } else if expects(Rule::limit_kind) {
        known(&mut LimitKind::ALL.iter().map(|kind| kind.word()))
    } else if expects(Rule::subject) {
        known(&mut ["read", "env"].into_iter())
    } else if expects(Rule::relation) {
        known(&mut ["inside", "outside"].into_iter())
    } else if expects_end {
        known(&mut ["except", "because", "or"].into_iter())
    } else {
        None
    };
    let message = format!("expected {expected}, found {shown}");
    let special = special(&breach, word, found, &region[..at]);
    let Some(near) = suggestion else { return complain(message, special.unwrap_or_else(help)) };
    let complaint = complain(message, meant(near));
    Complaint { fault: complaint.fault.instead(found, near), ..complaint }
}

fn meant(word: &str) -> String {
    format!("did you mean `{word}`?")
}

/// Help for slips that are made often.
fn special(breach: &Breach, word: &str, found: &str, before: &str) -> Option<String> {
    let expects = |rule: Rule| breach.expected.contains(&rule);
    let target = expects(Rule::bare) || expects(Rule::target);
    let end = expects(Rule::end) || expects(Rule::EOI);
    let is_verb = Verb::from_word(found).is_some();
    let is_keyword =
        is_statement_word(found) || is_verb || matches!(found, "except" | "because" | "exact" | "below" | "or");
    let is_rule = matches!(word, "allow" | "deny" | "forbid");
    let help = match word {
        _ if target && is_verb && !before.contains('[') => {
            format!("write `,` between verbs, or `\"{found}\"` for a target of that name")
        }
        _ if target && is_keyword => {
            format!("write the target before `{found}`, or `\"{found}\"` for a target of that name")
        }
        _ if target && found == "]" => "write at least one target in the list".to_owned(),
        _ if expects(Rule::comma) => "write `,` between targets and `]` after the last".to_owned(),
        "default" if expects(Rule::subject) => {
            "write `default read deny`; all other accesses are denied by default, always".to_owned()
        }
        "use" if expects(Rule::string) && !found.is_empty() => {
            format!("write `use \"{found}\"` for a file, or `use std/NAME` for a part of the library")
        }
        "within" if expects(Rule::string) && !found.is_empty() => format!("write `within \"{found}\"`"),
        "set" if expects(Rule::equals) && found.is_empty() => {
            "write `set NAME=VALUE`, without blanks around `=`".to_owned()
        }
        "let" if expects(Rule::equals) && found.starts_with('-') => {
            "write a name of letters, digits and `_`, and `=` after it".to_owned()
        }
        "expect" if found == "forbid" => "write `expect deny`".to_owned(),
        "expect" if found == "because" => "write the reason as a comment".to_owned(),
        "on" if expects(Rule::system) => "write `linux`, `macos` or `windows`".to_owned(),
        "limit" if expects(Rule::limit_kind) => {
            "write `memory`, `processes`, `files`, `filesize`, `cpu` or `time`".to_owned()
        }
        _ if expects(Rule::verb) => {
            "write `read`, `write`, `exec`, `connect`, `listen`, `socket`, `env` or `mach`".to_owned()
        }
        _ if is_rule && expects(Rule::string) => "write the reason in quotes".to_owned(),
        _ if end && is_rule && found == "," => "write several targets as a list, `[A, B]`".to_owned(),
        _ if end && is_rule && found == "\"" => "write `because` before a reason".to_owned(),
        _ if end && is_statement_word(found) => "write one statement a line".to_owned(),
        _ if end && is_rule => "write several targets as a list, `[A, B]`, and a name with blanks in quotes".to_owned(),
        _ => return None,
    };
    Some(help)
}

/// What stands at the place, up to the next blank.
fn found(rest: &str) -> &str {
    let word = rest.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == '-')).unwrap_or(rest.len());
    let next = rest[word..].chars().next();
    if word > 0 && next.is_none_or(|c| c.is_whitespace() || ",]}[{".contains(c)) {
        return &rest[..word];
    }
    if let Some(first) = rest.chars().next()
        && ",]}[{=\"".contains(first)
    {
        return &rest[..first.len_utf8()];
    }
    &rest[..rest.find(|c: char| c.is_whitespace() || ",]}".contains(c)).unwrap_or(rest.len())]
}

/// The nouns of the rules that could have followed, joined; what a verb takes where it is known.
fn expectation(rules: &[Rule], before: &str, word: &str) -> String {
    let verb = before
        .split([' ', '\t', ',', '\n'])
        .filter_map(Verb::from_word)
        .next_back()
        .filter(|_| matches!(word, "allow" | "deny" | "forbid" | "expect" | "ignore"));
    let mut nouns: Vec<&str> = Vec::new();
    for rule in rules {
        // Where a target can stand, the words that can stand before or inside one say nothing more.
        if matches!(rule, Rule::reach | Rule::string | Rule::list | Rule::v6)
            && rules.iter().any(|rule| matches!(rule, Rule::bare | Rule::target))
        {
            continue;
        }
        let noun = match (rule, verb) {
            (Rule::target | Rule::bare, Some(verb)) => Some(verb.kind().expected()),
            (Rule::target | Rule::bare, None) if word == "assume" => Some("a path"),
            _ => noun(*rule),
        };
        if let Some(noun) = noun
            && !nouns.contains(&noun)
        {
            nouns.push(noun);
        }
    }
    match nouns.split_last() {
        None => "a statement".to_owned(),
        Some((only, [])) => (*only).to_owned(),
        Some((last, front)) => format!("{} or {last}", front.join(", ")),
    }
}

/// The first word is none that a statement starts with.
fn not_a_statement(region: &str, word: &str) -> Complaint {
    let shown = if word.is_empty() { found(region) } else { word };
    let line = region.lines().next().unwrap_or_default();
    let range = 0..shown.len().min(line.len());
    let words = STATEMENTS.iter().map(|(word, _)| *word).chain(["except", "because"]);
    let mut near = None;
    let (message, help) = if let Some(verb) = Verb::from_word(word) {
        let effects = Effect::ALL.iter().map(|effect| format!("`{effect} {verb}`")).collect::<Vec<_>>().join(", ");
        (format!("expected an effect before the verb `{verb}`"), format!("write one of {effects}"))
    } else if matches!(word, "except" | "because") {
        (format!("`{word}` stands below no rule"), "write it at the end of a rule, or on the line below one".to_owned())
    } else if shown == "}" {
        ("expected the end of the line after `}`".to_owned(), "write what follows on a line of its own".to_owned())
    } else if shown == "]" {
        ("this `]` closes nothing".to_owned(), "take it out".to_owned())
    } else {
        near = nearest(word, words);
        let help = if let Some(near) = near {
            meant(near)
        } else {
            let all = STATEMENTS.iter().map(|(word, _)| format!("`{word}`")).collect::<Vec<_>>().join(", ");
            format!("start the line with one of {all}")
        };
        (format!("expected a statement, found `{shown}`"), help)
    };
    let fault = Fault::new(&codes::SYNTAX, message, help);
    let fault = match near {
        Some(near) => fault.instead(word, near),
        None => fault,
    };
    Complaint { fault, range }
}
