//! [`Plan`] → the profile's text. The same plan gives the same text; beside each filter stands the rule that it is from.

mod text;

use super::links;
use super::plan::{Clauses, Granted, Parameter, Plan, Withheld};
use crate::ir::Subject;
use crate::sets::name;
use crate::sets::path::PathSet;
use crate::source::Span;
use std::fmt::Write as _;
use text::{filter, name_regex, string};

/// What every program needs.
const BASELINE: &str = include_str!("baseline.sbpl");

/// Changing what is there.
const WRITE: &str = "file-write-data file-write-acl file-write-flags file-write-mode file-write-owner file-write-setugid \
                     file-write-times file-write-xattr file-link";

/// The text of a profile. `place` says where a rule is, as `FILE:LINE`, for the comments.
pub fn emit(plan: &Plan, place: &dyn Fn(Span) -> String) -> String {
    let mut text = String::new();
    let emitter = Emitter { place };
    text.push_str("; A profile for sandbox-exec, made by srt: change the policy, not this file.\n");
    if !plan.parameters.is_empty() {
        text.push_str(";\n; Parameters, each given as -D NAME=VALUE:\n");
    }
    for parameter in &plan.parameters {
        let says = match parameter {
            Parameter::Place(name) => format!("where ${name} is, without links"),
            Parameter::Regex(name) => format!("where ${name} is, as a regular expression"),
            Parameter::Ancestors(name) => format!("each directory above ${name}, as a regular expression"),
            Parameter::LogTag => "a word that the system's log shows with each refusal".to_owned(),
            Parameter::ProxyPort => "the port of the proxy on this machine".to_owned(),
        };
        let _ = writeln!(text, ";   {}: {says}", parameter.name());
    }
    text.push('\n');
    text.push_str(BASELINE);
    emitter.files(&mut text, plan);
    emitter.others(&mut text, plan);
    text
}

struct Emitter<'e> {
    place: &'e dyn Fn(Span) -> String,
}

/// A filter over several lines: what is on each, and its comment.
struct Lines(Vec<(String, Option<String>)>);

impl Lines {
    fn open(&mut self, depth: usize, text: &str) {
        self.noted(depth, text, None);
    }

    fn noted(&mut self, depth: usize, text: &str, comment: Option<String>) {
        self.0.push((format!("{}{text}", "  ".repeat(depth)), comment));
    }

    /// Closes something that was opened.
    fn close(&mut self) {
        if let Some((last, _)) = self.0.last_mut() {
            last.push(')');
        }
    }

    fn text(&self) -> String {
        let line = |(text, comment): &(String, Option<String>)| match comment {
            Some(comment) => format!("{text} ; {comment}\n"),
            None => format!("{text}\n"),
        };
        self.0.iter().map(line).collect()
    }
}

impl Emitter<'_> {
    fn files(&self, text: &mut String, plan: &Plan) {
        text.push_str("\n; What the policy's rules say of files.\n");
        let kept = self.kept(text, "read-kept", "What no rule denies to read.", &plan.read.withheld);
        let granted = self.granted(text, "read-granted", "What a rule allows to read.", &plan.read);
        let readable: Vec<&str> = granted.into_iter().chain(kept).collect();
        let reads = plan.read.everything || !plan.read.granted.is_empty();
        if reads {
            define(text, "readable", &readable);
            rule(text, "file-read-data file-read-xattr", if readable.is_empty() { None } else { Some("readable") });
        }
        Self::ways(text, plan, reads.then_some(&readable[..]));
        self.runs(text, plan, kept, granted);
        if !plan.write.granted.is_empty() {
            let granted = self.granted(text, "write-granted", "What a rule allows to write.", &plan.write);
            let written = self.kept(text, "write-kept", "What no rule denies to write.", &plan.write.withheld);
            let writable: Vec<&str> = granted.into_iter().chain(written).chain(kept).collect();
            define(text, "writable", &writable);
            rule(text, WRITE, Some("writable"));
            let pinned = self.pinned(text, plan);
            let name = match pinned {
                Some(pinned) => {
                    define(text, "nameable", &["writable", pinned]);
                    "nameable"
                }
                None => "writable",
            };
            rule(text, "file-write-create file-write-unlink", Some(name));
        }
    }

    fn runs(&self, text: &mut String, plan: &Plan, kept: Option<&str>, granted: Option<&str>) {
        let own = &plan.exec;
        let everything = plan.read.everything;
        let runnable = self.granted(text, "exec-granted", "What a rule allows to run.", own);
        let unkept = self.kept(text, "exec-kept", "What no rule denies to run.", &own.withheld);
        let mut parts: Vec<&str> = Vec::new();
        match (runnable, granted) {
            _ if everything => {}
            (Some(own), Some(read)) => {
                let _ = writeln!(
                    text,
                    "\n; What may be read may be run.\n(define exec-or-read (require-any {own} {read}))"
                );
                parts.push("exec-or-read");
            }
            (own, read) => parts.extend(own.or(read)),
        }
        if parts.is_empty() && !everything {
            return;
        }
        parts.extend(unkept);
        parts.extend(kept);
        define(text, "runnable", &parts);
        rule(text, "process-exec* file-map-executable", (!parts.is_empty()).then_some("runnable"));
    }

    /// Looking at what is on the way, and at the links in `/`.
    fn ways(text: &mut String, plan: &Plan, readable: Option<&[&str]>) {
        text.push_str(
            "\n; Existence is not secret: whatever is on the way to something that is allowed can be looked at.\n",
        );
        if plan.read.everything {
            text.push_str("(allow file-read-metadata)\n");
            return;
        }
        let mut lines = Lines(Vec::new());
        lines.open(0, "(allow file-read-metadata");
        for link in links::themselves().include.iter().chain(&plan.ways) {
            lines.open(1, &filter(link));
        }
        for parameter in &plan.parameters {
            if let Parameter::Ancestors(_) = parameter {
                lines.open(1, &format!("(regex (param \"{}\"))", parameter.name()));
            }
        }
        if let Some(readable) = readable {
            lines.open(1, if readable.is_empty() { "(subpath \"/\")" } else { "readable" });
        }
        lines.close();
        text.push_str(&lines.text());
    }

    fn pinned(&self, text: &mut String, plan: &Plan) -> Option<&'static str> {
        if plan.pins.is_empty() {
            return None;
        }
        text.push_str(
            "\n; Directories above what is denied are not made, renamed or removed: else a rename would give it another name.\n",
        );
        let mut lines = Lines(Vec::new());
        lines.open(0, "(define not-pinned");
        lines.open(1, "(require-not");
        lines.open(2, "(require-any");
        for pin in &plan.pins {
            self.set(&mut lines, 3, &pin.set, pin.span);
        }
        for parameter in &plan.parameters {
            if let Parameter::Ancestors(_) = parameter {
                lines.open(3, &format!("(regex (param \"{}\"))", parameter.name()));
            }
        }
        (0..3).for_each(|_| lines.close());
        text.push_str(&lines.text());
        Some("not-pinned")
    }

    /// Defines the union of what is granted; `None` where everything or nothing is.
    fn granted(&self, text: &mut String, name: &'static str, says: &str, clauses: &Clauses) -> Option<&'static str> {
        if clauses.everything || clauses.granted.is_empty() {
            return None;
        }
        let mut lines = Lines(Vec::new());
        lines.open(0, &format!("\n; {says}\n(define {name}"));
        lines.open(1, "(require-any");
        for Granted { set, span } in &clauses.granted {
            self.set(&mut lines, 2, set, Some(*span));
        }
        lines.close();
        lines.close();
        text.push_str(&lines.text());
        Some(name)
    }

    /// Defines what is left by what is withheld; `None` where nothing is.
    fn kept(&self, text: &mut String, name: &'static str, says: &str, withheld: &[Withheld]) -> Option<&'static str> {
        if withheld.is_empty() {
            return None;
        }
        let mut lines = Lines(Vec::new());
        lines.open(0, &format!("\n; {says}\n(define {name}"));
        self.clauses(&mut lines, 1, withheld);
        lines.close();
        text.push_str(&lines.text());
        Some(name)
    }

    /// All of: not this one, or something that opens it.
    fn clauses(&self, lines: &mut Lines, depth: usize, withheld: &[Withheld]) {
        lines.open(depth, "(require-all");
        let plain = |withheld: &&Withheld| withheld.lifted_by.is_empty() && !has_exceptions(&withheld.set);
        if withheld.iter().any(|withheld| plain(&withheld)) {
            lines.open(depth + 1, "(require-not");
            lines.open(depth + 2, "(require-any");
            for withheld in withheld.iter().filter(plain) {
                self.set(lines, depth + 3, &withheld.set, withheld.span);
            }
            lines.close();
            lines.close();
        }
        for withheld in withheld.iter().filter(|withheld| !plain(withheld)) {
            lines.open(depth + 1, "(require-any");
            lines.open(depth + 2, "(require-not");
            lines.open(depth + 3, "(require-any");
            for one in includes(&withheld.set) {
                lines.noted(depth + 4, &one, self.place(withheld.span));
            }
            lines.close();
            lines.close();
            for one in excludes(&withheld.set) {
                lines.open(depth + 2, &one);
            }
            for set in &withheld.lifted_by {
                self.set(lines, depth + 2, set, None);
            }
            lines.close();
        }
        lines.close();
    }

    /// A set as filters of which one must hold.
    fn set(&self, lines: &mut Lines, depth: usize, set: &Subject, span: Option<Span>) {
        if !has_exceptions(set) {
            for one in includes(set) {
                lines.noted(depth, &one, self.place(span));
            }
            return;
        }
        lines.open(depth, "(require-all");
        lines.open(depth + 1, "(require-any");
        for one in includes(set) {
            lines.noted(depth + 2, &one, self.place(span));
        }
        lines.close();
        lines.open(depth + 1, "(require-not");
        lines.open(depth + 2, "(require-any");
        for one in excludes(set) {
            lines.open(depth + 3, &one);
        }
        (0..3).for_each(|_| lines.close());
    }

    /// A comment: a name of a file may hold anything, and a comment ends with its line.
    fn place(&self, span: Option<Span>) -> Option<String> {
        let plain = |char: char| if char.is_control() { '?' } else { char };
        Some((self.place)(span?).chars().map(plain).collect())
    }

    fn others(&self, text: &mut String, plan: &Plan) {
        for (clauses, operation, what) in
            [(&plan.socket, "network-outbound", "Unix sockets."), (&plan.mach, "mach-lookup", "Services.")]
        {
            if clauses.granted.is_empty() {
                continue;
            }
            let mut lines = Lines(Vec::new());
            lines.open(0, &format!("\n; {what}\n(allow {operation}"));
            lines.open(1, "(require-all");
            lines.open(2, "(require-any");
            for Granted { set, span } in &clauses.granted {
                self.set(&mut lines, 3, set, Some(*span));
            }
            lines.close();
            if !clauses.withheld.is_empty() {
                self.clauses(&mut lines, 2, &clauses.withheld);
            }
            lines.close();
            lines.close();
            text.push_str(&lines.text());
        }
        if plan.proxy {
            text.push_str(
                "\n; The proxy, which decides each connection by the policy's rules; nothing else, names included.\n\
                 (allow network-outbound\n  (remote tcp (string-append \"localhost:\" (param \"proxy.port\"))))\n",
            );
        }
    }
}

fn define(text: &mut String, name: &str, parts: &[&str]) {
    let _ = match parts {
        [] => Ok(()),
        [one] => writeln!(text, "\n(define {name} {one})"),
        parts => writeln!(text, "\n(define {name} (require-all {}))", parts.join(" ")),
    };
}

fn rule(text: &mut String, operations: &str, filter: Option<&str>) {
    let _ = match filter {
        Some(filter) => writeln!(text, "(allow {operations}\n  {filter})"),
        None => writeln!(text, "(allow {operations})"),
    };
}

fn has_exceptions(set: &Subject) -> bool {
    match set {
        Subject::Paths(PathSet { exclude, .. }) => !exclude.is_empty(),
        Subject::Names(name::NameSet { exclude, .. }) => !exclude.is_empty(),
        Subject::Peers(_) => false,
    }
}

fn includes(set: &Subject) -> Vec<String> {
    match set {
        Subject::Paths(set) => set.include.iter().map(filter).collect(),
        Subject::Names(set) => set.include.iter().map(service).collect(),
        Subject::Peers(_) => Vec::new(),
    }
}

fn excludes(set: &Subject) -> Vec<String> {
    match set {
        Subject::Paths(set) => set.exclude.iter().map(filter).collect(),
        Subject::Names(set) => set.exclude.iter().map(service).collect(),
        Subject::Peers(_) => Vec::new(),
    }
}

fn service(pattern: &name::Pattern) -> String {
    match pattern {
        name::Pattern::Literal(name) => format!("(global-name {})", string(name)),
        name::Pattern::Glob(glob) => format!("(global-name-regex {})", name_regex(&glob.0)),
    }
}
