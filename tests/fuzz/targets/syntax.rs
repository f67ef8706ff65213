//! Any text parses to a tree and diagnostics, all inside the text; what formats, formats to itself.

#![no_main]

use libfuzzer_sys::fuzz_target;
use sandbox_runtime::source::Sources;
use sandbox_runtime::syntax;

fuzz_target!(|text: &str| {
    let mut sources = Sources::default();
    let source = sources.add("fuzz.policy", text);
    let (_, diagnostics) = syntax::parse(&sources, source);
    for label in diagnostics.iter().flat_map(|diagnostic| &diagnostic.labels) {
        let _ = sources.slice(label.span);
        let _ = sources.location(label.span);
    }
    let Ok(once) = syntax::format(&sources, source) else { return };
    let source = sources.add("once.policy", once.clone());
    let twice = syntax::format(&sources, source).expect("formatting breaks no text");
    assert_eq!(once, twice);
});
