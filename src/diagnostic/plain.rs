//! Diagnostics as plain sentences, each on a line of its own, as a screen reader reads them: nothing is drawn, underlined or
//! coloured, and a place is said in words.

use super::{Diagnostic, render::visible};
use crate::source::Sources;

/// One diagnostic in sentences: what and where, the words at each place, the access that shows it, and what to do. `name` is
/// the file it is about, where it has no place.
pub fn plain(diagnostic: &Diagnostic, sources: &Sources, name: &str) -> String {
    let place = |span| {
        let at = sources.location(span);
        // A flag has no lines.
        if at.name.starts_with("--") { at.name } else { format!("{}, line {}, column {}", at.name, at.line, at.column) }
    };
    let at = diagnostic.span().map_or_else(|| name.to_owned(), place);
    let mut sentences = vec![format!(
        "{} {} in {at}: {}.",
        diagnostic.level.word(),
        diagnostic.code.name,
        visible(&diagnostic.message)
    )];
    for (number, label) in diagnostic.labels.iter().enumerate().filter(|(_, label)| !label.text.is_empty()) {
        let there = if number == 0 { "there".to_owned() } else { format!("in {}", place(label.span)) };
        sentences.push(format!("{there}: {}.", visible(&label.text)));
    }
    sentences.extend(diagnostic.witness.iter().map(|witness| format!("for example: {}.", visible(witness))));
    // Some ask.
    let end = |text: &str| if text.ends_with('?') { "" } else { "." };
    sentences.extend(diagnostic.help.iter().map(|help| format!("help: {}{}", visible(help), end(help))));
    // One finding is one line, whatever is quoted in it.
    let words: Vec<_> = sentences.iter().flat_map(|sentence| sentence.split_whitespace()).collect();
    words.join(" ") + "\n"
}
