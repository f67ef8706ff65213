//! Code actions: the remedies of findings that need no thought.
//!
//! Offered of the text that was checked, and of its own findings alone: one in a file that it uses is mended there.

use super::diagnostics;
use super::document::Document;
use super::position::Lines;
use crate::fix::Remedies;
use lsp_types::{
    CodeAction, CodeActionContext, CodeActionKind, CodeActionOrCommand, DocumentChanges, OneOf,
    OptionalVersionedTextDocumentIdentifier, Range, TextDocumentEdit, TextEdit, WorkspaceEdit,
};

/// The remedies of what is said at a range.
pub(super) fn actions(document: &Document, range: Range, context: &CodeActionContext) -> Vec<CodeActionOrCommand> {
    // A kind stands for those below it as well: `quickfix.x` is not what is offered here, but the root is.
    let only = context.only.as_deref();
    let wanted = only.is_none_or(|kinds| kinds.iter().any(|kind| matches!(kind.as_str(), "" | "quickfix")));
    let Some(found) = document.shown().filter(|_| wanted) else { return Vec::new() };
    let lines = Lines::of(&found.text);
    let asked = lines.bytes(range);
    let sources = &found.checked.sources;
    let mut remedies = Remedies::new(sources);
    let mut actions = Vec::new();
    for said in &found.checked.diagnostics {
        let Some(span) = said.span().filter(|span| sources.get(span.source).name() == document.name) else { continue };
        let place = span.range();
        if place.start > asked.end || asked.start > place.end {
            continue;
        }
        let Some(remedy) = remedies.of(said) else { continue };
        let edits = remedy.edits.into_iter();
        let edits = edits.map(|edit| OneOf::Left(TextEdit::new(lines.range(edit.span.range()), edit.text)));
        let text_document =
            OptionalVersionedTextDocumentIdentifier { uri: document.uri.clone(), version: Some(document.version) };
        let edit = TextDocumentEdit { text_document, edits: edits.collect() };
        actions.push(CodeActionOrCommand::CodeAction(CodeAction {
            title: remedy.title,
            kind: Some(CodeActionKind::QUICKFIX),
            diagnostics: Some(vec![diagnostics::of(said, found, document)]),
            edit: Some(WorkspaceEdit {
                document_changes: Some(DocumentChanges::Edits(vec![edit])),
                ..WorkspaceEdit::default()
            }),
            is_preferred: Some(true),
            ..CodeAction::default()
        }));
    }
    actions
}
