//! Colour, width, and printing diagnostics.

use sandbox_runtime::diagnostic::{Diagnostic, Level, Style, plain, render, to_json};
use sandbox_runtime::source::Sources;
use std::io::{IsTerminal, Write};

/// How text on standard error may look: colour only on a terminal, and not where NO_COLOR says so (no-color.org);
/// CLICOLOR_FORCE asks for it all the same.
pub fn style() -> Style {
    Style { colour: colour(std::io::stderr().is_terminal()), width: width() }
}

/// The same for standard output.
pub fn stdout_colour() -> bool {
    colour(std::io::stdout().is_terminal())
}

fn colour(terminal: bool) -> bool {
    let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let zero = |name: &str| std::env::var_os(name).is_some_and(|value| value == "0");
    if set("NO_COLOR") {
        return false;
    }
    if set("CLICOLOR_FORCE") && !zero("CLICOLOR_FORCE") {
        return true;
    }
    terminal && !zero("CLICOLOR") && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

fn width() -> usize {
    let columns = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    columns.unwrap_or(100).clamp(40, 200)
}

/// Prints diagnostics of at least `least` to standard error, the gravest last, so that it is what one sees.
pub fn print_diagnostics(diagnostics: &[Diagnostic], sources: &Sources, least: Level) {
    let mut shown: Vec<_> = diagnostics.iter().filter(|d| d.level >= least).collect();
    shown.sort_by_key(|d| (d.level, d.span()));
    let style = style();
    for diagnostic in shown {
        tell(&format!("{}\n", render(diagnostic, sources, style)));
    }
}

/// The same in sentences, in the order of the text, for whom each is read out.
pub fn print_plain(diagnostics: &[Diagnostic], sources: &Sources, name: &str) {
    let mut shown: Vec<_> = diagnostics.iter().collect();
    shown.sort_by_key(|diagnostic| diagnostic.span());
    for diagnostic in shown {
        tell(&plain(diagnostic, sources, name));
    }
}

/// Diagnostics as a JSON array.
pub fn json(diagnostics: &[Diagnostic], sources: &Sources) -> serde_json::Value {
    diagnostics.iter().map(|d| to_json(d, sources)).collect()
}

/// Prints a line to standard error in the form of all of srt's own messages.
pub fn complain(message: impl std::fmt::Display) {
    tell(&format!("srt: {}\n", without_numbers(&message.to_string())));
}

/// The text without the ` (os error 2)` that errors of the system carry: the words before it say the same.
pub fn without_numbers(message: &str) -> String {
    let mut parts = message.split(" (os error ");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let rest = part.trim_start_matches(|c: char| c.is_ascii_digit());
        text.push_str(rest.strip_prefix(')').unwrap_or(rest));
    }
    text
}

/// Prints to standard error; a reader that went away is no error, and what is told there is no reason to end.
pub fn tell(text: &str) {
    let _ = std::io::stderr().write_all(text.as_bytes());
}

/// Prints to standard output; a reader that went away is no error.
pub fn print(text: &str) {
    // A closed pipe (`| head`) is how readers say that they have enough.
    let _ = std::io::stdout().write_all(text.as_bytes());
}

/// Prints JSON to standard output.
pub fn print_json(value: &serde_json::Value) {
    print(&format!("{value}\n"));
}

/// A count and its noun: `1 error`, `2 errors`.
pub fn count(number: usize, noun: &str) -> String {
    count_u64(number as u64, noun)
}

/// The same for a wider number.
pub fn count_u64(number: u64, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}
