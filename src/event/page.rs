//! What happened as one HTML page, for a browser: no scripts, nothing that is loaded, and every word of an event escaped.
//!
//! The tree is made of `details`, so that it opens and closes by keyboard and without scripts, and what a colour says stands
//! beside it as a word.

use super::summary::printable;
use super::tree::{Counts, Node, Place, join_path, of_host, of_path, place};
use super::{Event, Kind, Outcome, RuleText, Tally};
use std::collections::BTreeMap;
use std::fmt::Write;

/// So many places are opened at first, from the top.
const OPEN: u64 = 60;

/// A page about what was counted. `missing` is said above it, in sentences of the caller's.
pub fn page(tally: &Tally, missing: &[String]) -> String {
    let mut files = Node::default();
    let mut hosts = Node::default();
    let mut nowhere = Node::default();
    let mut rules: BTreeMap<(&str, u32, &str), Counts> = BTreeMap::new();
    let mut counts = Counts::default();
    for kind in tally.kinds() {
        counts.add(kind);
        match place(&kind.event) {
            Place::Path(path) => files.add(of_path(path), kind),
            Place::Host(host) => hosts.add(of_host(host), kind),
            Place::Nowhere => nowhere.add(Vec::new(), kind),
        }
        if let Some(rule) = rule(&kind.event) {
            rules.entry((&rule.file, rule.line, &rule.text)).or_default().add(kind);
        }
    }
    let mut page = Page(HEAD.to_owned());
    page.totals(tally, counts, missing);
    page.tree("Files", &files.joined(join_path));
    page.tree("Connections", &hosts.joined(|_, host| host.to_owned()));
    if !nowhere.kinds.is_empty() {
        page.put("<section>\n<h2>Other</h2>\n");
        page.kinds(&nowhere.kinds);
        page.put("</section>\n");
    }
    page.rules(&rules);
    page.put("</main>\n</body>\n</html>\n");
    page.0
}

struct Page(String);

impl Page {
    /// Puts in markup of ours.
    fn put(&mut self, markup: &str) {
        self.0.push_str(markup);
    }

    /// Puts in a stranger's words.
    fn text(&mut self, text: &str) {
        for character in printable(text).chars() {
            match character {
                '&' => self.0.push_str("&amp;"),
                '<' => self.0.push_str("&lt;"),
                '>' => self.0.push_str("&gt;"),
                '"' => self.0.push_str("&quot;"),
                '\'' => self.0.push_str("&#39;"),
                _ => self.0.push(character),
            }
        }
    }

    /// The same between two pieces of markup.
    fn wrapped(&mut self, before: &str, text: &str, after: &str) {
        self.put(before);
        self.text(text);
        self.put(after);
    }

    fn totals(&mut self, tally: &Tally, counts: Counts, missing: &[String]) {
        self.put("<header>\n<h1>What was tried</h1>\n<p>");
        self.counts(counts);
        let first = tally.kinds().map(|kind| &*kind.first).min();
        let last = tally.kinds().map(|kind| &*kind.last).max();
        if let (Some(first), Some(last)) = (first, last) {
            self.put(", ");
            self.times(first, last);
        }
        self.put(".</p>\n");
        if tally.kinds().next().is_none() {
            self.put("<p>No event is in the log.</p>\n");
        }
        for sentence in missing {
            self.wrapped("<p>", sentence, "</p>\n");
        }
        self.put(LEGEND);
        self.put("</header>\n<main>\n");
    }

    fn tree(&mut self, title: &str, root: &Node<'_>) {
        if root.children.is_empty() {
            return;
        }
        self.wrapped("<section>\n<h2>", title, "</h2>\n");
        let mut open = OPEN;
        self.children(root, &mut open);
        self.put("</section>\n");
    }

    /// What lies in a place; at most [`tree::DEEPEST`](super::tree) of them one in the other.
    fn children(&mut self, node: &Node<'_>, open: &mut u64) {
        if node.children.is_empty() {
            return;
        }
        self.put("<ul class=\"tree\">\n");
        for (name, child) in &node.children {
            let opened = *open > 0;
            *open = open.saturating_sub(1);
            self.put(if opened { "<li><details open><summary>" } else { "<li><details><summary>" });
            self.wrapped("<code>", name, "</code> <span class=\"counts\">");
            self.counts(child.counts);
            self.put("</span></summary>\n");
            self.kinds(&child.kinds);
            self.children(child, open);
            self.put("</details></li>\n");
        }
        self.put("</ul>\n");
    }

    fn kinds(&mut self, kinds: &[&Kind]) {
        if kinds.is_empty() {
            return;
        }
        self.put("<ul class=\"kinds\">\n");
        for kind in kinds {
            self.put("<li>");
            self.kind(kind);
            self.put("</li>\n");
        }
        self.put("</ul>\n");
    }

    fn kind(&mut self, kind: &Kind) {
        let (operation, outcome, port) = match &kind.event {
            Event::Violation(it) => (&*it.operation, it.outcome, it.port),
            Event::Connection(it) => (&*it.operation, it.outcome, it.port),
            Event::Limit(it) => {
                self.put("<span class=\"outcome refused\">ended</span> ");
                self.wrapped("<b>limit ", it.limit.word(), "</b> ");
                return self.times(&kind.first, &kind.last);
            }
            Event::Dropped { .. } => return,
        };
        let class = match outcome {
            Outcome::Refused => "refused",
            Outcome::Predicted => "predicted",
            Outcome::Allowed => "allowed",
        };
        // Writing into a string does not fail.
        let _ = write!(self.0, "<span class=\"outcome {class}\">{class}</span> {} × ", kind.count);
        self.wrapped("<b>", operation, "</b>");
        if let Some(port) = port {
            let _ = write!(self.0, " port {port}");
        }
        self.put(" ");
        self.times(&kind.first, &kind.last);
        if !kind.by.is_empty() {
            let by: Vec<&str> = kind.by.iter().map(String::as_str).collect();
            self.wrapped(", by <code>", &by.join(", "), "</code>");
        }
        if kind.sent > 0 || kind.received > 0 {
            let _ = write!(self.0, ", {} bytes sent, {} received", kind.sent, kind.received);
        }
        if let Some(rule) = rule(&kind.event) {
            self.put("<br>by ");
            self.rule(&rule.file, rule.line, &rule.text);
        }
        if let Event::Violation(violation) = &kind.event {
            let said = [
                ("<br>because ", &violation.because, ""),
                ("<br>address <code>", &violation.address, "</code>"),
                ("<br>", &violation.detail, ""),
                ("<br>to allow: <code>", &violation.remedy, "</code>"),
            ];
            for (before, text, after) in said {
                if let Some(text) = text {
                    self.wrapped(before, text, after);
                }
            }
        }
    }

    fn rules(&mut self, rules: &BTreeMap<(&str, u32, &str), Counts>) {
        if rules.is_empty() {
            return;
        }
        self.put("<section>\n<h2>Rules</h2>\n<table>\n<thead><tr><th scope=\"col\">rule</th>");
        self.put("<th scope=\"col\">refused</th><th scope=\"col\">predicted</th><th scope=\"col\">allowed</th></tr></thead>\n");
        self.put("<tbody>\n");
        for ((file, line, text), counts) in rules {
            self.put("<tr><th scope=\"row\">");
            self.rule(file, *line, text);
            let Counts { refused, predicted, allowed } = counts;
            // Writing into a string does not fail.
            let _ = writeln!(self.0, "</th><td>{refused}</td><td>{predicted}</td><td>{allowed}</td></tr>");
        }
        self.put("</tbody>\n</table>\n</section>\n");
    }

    fn rule(&mut self, file: &str, line: u32, text: &str) {
        self.wrapped("<code>", &format!("{file}:{line}"), "</code> ");
        self.wrapped("<code>", text, "</code>");
    }

    fn counts(&mut self, counts: Counts) {
        let Counts { refused, predicted, allowed } = counts;
        let words = [(refused, "refused"), (predicted, "predicted"), (allowed, "allowed")];
        let mut some: Vec<String> =
            words.iter().filter(|(count, _)| *count > 0).map(|(count, word)| format!("{count} {word}")).collect();
        if some.is_empty() {
            some.push("nothing".to_owned());
        }
        self.put(&some.join(", "));
    }

    fn times(&mut self, first: &str, last: &str) {
        if first == last {
            self.time("at ", first);
        } else {
            self.time("between ", first);
            self.time(" and ", last);
        }
    }

    fn time(&mut self, before: &str, time: &str) {
        self.put(before);
        self.wrapped("<time datetime=\"", time, "\">");
        self.wrapped("", &time.replacen('T', " ", 1).replace('Z', " UTC"), "</time>");
    }
}

fn rule(event: &Event) -> Option<&RuleText> {
    match event {
        Event::Violation(violation) => violation.rule.as_ref(),
        Event::Connection(connection) => connection.rule.as_ref(),
        Event::Limit(_) | Event::Dropped { .. } => None,
    }
}

const LEGEND: &str = "<p class=\"legend\"><span class=\"outcome refused\">refused</span> it did not happen. \
<span class=\"outcome predicted\">predicted</span> the policy refuses it, and the kernel decided afterwards. \
<span class=\"outcome allowed\">allowed</span> a connection that a rule allows; of files, what was allowed is not told.</p>\n";

const HEAD: &str = r#"<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>srt: what was tried</title>
<style>
:root { color-scheme: light dark; --text: #1b1f24; --back: #ffffff; --line: #d0d7de; --dim: #57606a;
  --refused: #a40e26; --predicted: #7a4b00; --allowed: #116329; }
@media (prefers-color-scheme: dark) {
  :root { --text: #e6edf3; --back: #0d1117; --line: #3d444d; --dim: #9198a1;
    --refused: #ff8182; --predicted: #e3b341; --allowed: #56d364; }
}
body { margin: 0 auto; max-width: 70rem; padding: 1rem 1.25rem 3rem; font: 1rem/1.5 system-ui, sans-serif;
  color: var(--text); background: var(--back); }
h1 { font-size: 1.5rem; margin: 0.5rem 0; }
h2 { font-size: 1.15rem; margin: 1.75rem 0 0.5rem; border-bottom: 1px solid var(--line); }
code { font: 0.9em ui-monospace, monospace; overflow-wrap: anywhere; }
ul { list-style: none; margin: 0; padding: 0; }
ul ul { padding-left: 1.25rem; border-left: 1px solid var(--line); margin-left: 0.3rem; }
summary { cursor: pointer; padding: 0.1rem 0.25rem; }
summary:focus-visible { outline: 2px solid currentColor; outline-offset: 1px; }
.counts, .legend { color: var(--dim); font-size: 0.9rem; }
.kinds li { padding: 0.2rem 0 0.2rem 0.25rem; font-size: 0.9rem; }
.outcome { border: 1px solid currentColor; border-radius: 0.6rem; padding: 0 0.45rem; font-size: 0.85em; }
.refused { color: var(--refused); } .predicted { color: var(--predicted); } .allowed { color: var(--allowed); }
table { border-collapse: collapse; width: 100%; }
th, td { border-bottom: 1px solid var(--line); padding: 0.25rem 0.5rem; text-align: right; font-weight: normal; }
thead th { font-weight: 600; }
th:first-child { text-align: left; }
</style>
</head>
<body>
"#;

#[cfg(test)]
mod tests {
    use super::super::tests::refused;
    use super::super::{Connection, Violation};
    use super::*;

    fn example() -> Tally {
        let mut tally = Tally::new(100);
        for path in ["/home/you/project/deploy/run", "/home/you/project/deploy/run", "/etc/<x>&\"'\u{202e}\u{1b}"] {
            tally.add(Event::Violation(Violation {
                timestamp: "2026-01-02T03:04:05.006Z".into(),
                comm: Some("<script>".into()),
                path: Some(path.into()),
                outcome: Outcome::Predicted,
                rule: Some(RuleText { file: "a<b.policy".into(), line: 3, text: "deny write </code>".into() }),
                because: Some("<img src=x onerror=alert(1)>".into()),
                ..Violation::refused("write")
            }));
        }
        tally.add(Event::Violation(refused("evil.test", 80)));
        tally.add(Event::Violation(Violation { detail: Some("too much".into()), ..Violation::refused("resolve") }));
        tally.add(Event::Connection(Connection {
            timestamp: "2026-01-02T03:04:06.006Z".into(),
            host: Some("api.example.com".into()),
            port: Some(443),
            sent: Some(3),
            received: Some(4),
            ..Connection::allowed("connect")
        }));
        tally
    }

    #[test]
    fn a_strangers_words_are_no_markup() {
        let text = page(&example(), &["<b>".into()]);
        for markup in ["<script", "<img", "<x>", "a<b", "<b>.", "\u{1b}", "\u{202e}"] {
            assert!(!text.contains(markup), "{markup}");
        }
        for shown in ["&lt;script&gt;", "deny write &lt;/code&gt;", "/etc/&lt;x&gt;&amp;&quot;&#39;", r"\u{202e}\u{1b}"]
        {
            // The directory is a place of its own.
            assert!(text.contains(shown.strip_prefix("/etc/").unwrap_or(shown)), "{shown}: {text}");
        }
    }

    #[test]
    fn nothing_is_loaded_and_nothing_runs() {
        let text = page(&example(), &[]);
        assert!(text.contains("default-src 'none'"));
        for word in ["http://", "https://", "src=\"", "href=\"", "url(", "@import", "javascript:"] {
            assert!(!text.contains(word), "{word}");
        }
    }

    /// What is opened is closed, in order.
    #[test]
    fn the_markup_is_whole() {
        let deep: Vec<String> = (0..300).map(|n| format!("/{}", format!("{n}/").repeat(100))).collect();
        let mut tally = example();
        for path in deep {
            tally.add(Event::Violation(Violation { path: Some(path), ..Violation::refused("read") }));
        }
        let text = page(&tally, &[]);
        let mut open: Vec<&str> = Vec::new();
        for piece in text.split('<').skip(1) {
            let tag = piece.split('>').next().unwrap_or_default();
            let name = tag.split([' ', '\n']).next().unwrap_or_default();
            match name {
                "!DOCTYPE" | "meta" | "br" => {}
                _ if name.starts_with('/') => assert_eq!(open.pop(), name.strip_prefix('/'), "{tag}"),
                _ => open.push(name),
            }
        }
        assert!(open.is_empty(), "{open:?}");
    }
}
