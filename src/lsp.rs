//! The language server: what an editor asks about policies, answered over one stream.
//!
//! One way of data: messages change the open texts; a thread beside looks at the newest of them and says what it found; a
//! request is answered from the text as it is and from what was last found of it. One file a capability, and each a function
//! of a text. Nothing of the language is known here that `syntax`, `resolve`, `check` and `analysis` do not say; files and the
//! environment come from [`Surroundings`], and nothing touches the network.

mod actions;
mod checking;
mod completion;
mod diagnostics;
mod document;
mod folding;
mod formatting;
mod frame;
mod hover;
mod language;
mod names;
mod patience;
mod position;
mod tokens;

use crate::resolve::{Files, Options, is_absolute};
use checking::{Depth, Shared};
use document::Document;
use frame::Incoming;
use lsp_server::{ErrorCode, Message, Notification, Request, Response};
use lsp_types::{
    CodeActionKind, CodeActionOptions, CompletionOptions, DocumentChanges, FoldingRangeProviderCapability,
    HoverProviderCapability, InitializeResult, OneOf, OptionalVersionedTextDocumentIdentifier, PrepareRenameResponse,
    RenameOptions, SemanticTokens, SemanticTokensFullOptions, SemanticTokensOptions, ServerCapabilities, ServerInfo,
    TextDocumentEdit, TextDocumentSyncCapability, TextDocumentSyncKind, TextDocumentSyncOptions, Uri,
    WorkDoneProgressOptions, WorkspaceEdit, notification, request,
};
pub use patience::Patient;
use serde::de::DeserializeOwned;
use std::io::{BufRead, Write};
use std::sync::{Mutex, PoisonError};

/// What a server knows of the machine it stands on.
pub trait Surroundings: Files + Send + Sync {
    /// What lies in a directory, nothing where it cannot be read; `None` where that is not known yet.
    fn entries(&self, directory: &str) -> Option<Vec<Entry>>;

    /// The place that a `~` leads to.
    fn home(&self) -> Option<String>;
}

/// A name in a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub name: String,
    pub is_directory: bool,
}

/// Answers until the client says that it ends, or is gone. Whether it ended as the protocol wants: `shutdown`, then `exit`.
pub fn serve(
    input: &mut dyn BufRead,
    output: Box<dyn Write + Send>,
    around: &dyn Surroundings,
    options: &Options,
) -> bool {
    let output = Outgoing(Mutex::new(output));
    let shared = Shared::default();
    std::thread::scope(|scope| {
        for depth in [Depth::Names, Depth::Whole] {
            let (shared, output) = (&shared, &output);
            scope.spawn(move || shared.work(depth, around, options, output));
        }
        let mut server = Server { shared: &shared, output: &output, around, workspace: None, phase: Phase::Before };
        let orderly = server.converse(input);
        shared.end();
        orderly
    })
}

/// Where messages go, from either thread.
struct Outgoing(Mutex<Box<dyn Write + Send>>);

impl Outgoing {
    fn write(&self, write: impl FnOnce(&mut dyn Write) -> std::io::Result<()>) {
        let mut output = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // A client that is gone is seen where its messages end.
        let _ = write(&mut **output);
    }

    fn send(&self, message: &Message) {
        self.write(|output| frame::write(output, message));
    }

    fn notify<N: notification::Notification>(&self, params: N::Params)
    where
        N::Params: serde::Serialize,
    {
        self.send(&Message::Notification(Notification::new(N::METHOD.to_owned(), params)));
    }
}

/// How far the conversation is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// No `initialize` yet.
    Before,
    Open,
    /// After `shutdown`.
    Ended,
}

struct Server<'a> {
    shared: &'a Shared,
    output: &'a Outgoing,
    around: &'a dyn Surroundings,
    /// The first folder that the client has open.
    workspace: Option<String>,
    phase: Phase,
}

/// An answer, or a sentence why there is none.
type Answer<T> = Result<T, String>;

impl Server<'_> {
    fn converse(&mut self, input: &mut dyn BufRead) -> bool {
        // A stream that cannot be read is one that has ended.
        while let Some(incoming) = frame::read(input).unwrap_or_default() {
            match incoming {
                Incoming::Rubbish(code, said) => self.output.write(|output| frame::refuse(output, code, &said)),
                Incoming::Message(Message::Request(request)) => {
                    let response = self.request(request);
                    self.output.send(&Message::Response(response));
                }
                Incoming::Message(Message::Notification(one)) if one.method == "exit" => {
                    return self.phase == Phase::Ended;
                }
                Incoming::Message(Message::Notification(one)) => self.notification(one),
                // Nothing is ever asked of the client.
                Incoming::Message(Message::Response(_)) => {}
            }
        }
        false
    }

    fn request(&mut self, asked: Request) -> Response {
        let refuse = |code: ErrorCode, said: &str| Response::new_err(asked.id.clone(), code as i32, said.to_owned());
        match (self.phase, asked.method.as_str()) {
            (Phase::Before, "initialize") => self.initialize(asked),
            (Phase::Before, _) => refuse(ErrorCode::ServerNotInitialized, "the first request is `initialize`"),
            (Phase::Open, "initialize") => refuse(ErrorCode::InvalidRequest, "`initialize` is sent once"),
            (Phase::Open, "shutdown") => {
                self.phase = Phase::Ended;
                Response::new_ok(asked.id, ())
            }
            (Phase::Ended, _) => refuse(ErrorCode::InvalidRequest, "only `exit` is awaited after `shutdown`"),
            (Phase::Open, _) => self.capability(asked),
        }
    }

    fn initialize(&mut self, asked: Request) -> Response {
        // Read loosely: a field that this does not know must not stop it.
        let folder = &asked.params["workspaceFolders"][0]["uri"];
        let root = folder.as_str().or(asked.params["rootUri"].as_str());
        self.workspace = root.map(document::path_of).filter(|path| is_absolute(path));
        self.phase = Phase::Open;
        let result = InitializeResult {
            capabilities: capabilities(),
            server_info: Some(ServerInfo {
                name: "srt".to_owned(),
                version: Some(env!("CARGO_PKG_VERSION").to_owned()),
            }),
        };
        Response::new_ok(asked.id, result)
    }

    fn capability(&self, asked: Request) -> Response {
        match asked.method.as_str() {
            "textDocument/formatting" => self.answer::<request::Formatting>(asked, |server, params| {
                Ok(Some(formatting::edits(&server.document(&params.text_document.uri)?.text)))
            }),
            "textDocument/foldingRange" => self.answer::<request::FoldingRangeRequest>(asked, |server, params| {
                Ok(Some(folding::ranges(&server.document(&params.text_document.uri)?.text)))
            }),
            "textDocument/semanticTokens/full" => {
                self.answer::<request::SemanticTokensFullRequest>(asked, |server, params| {
                    let data = tokens::tokens(&server.document(&params.text_document.uri)?.text);
                    Ok(Some(SemanticTokens { result_id: None, data }.into()))
                })
            }
            "textDocument/hover" => self.answer::<request::HoverRequest>(asked, |server, params| {
                let place = params.text_document_position_params;
                Ok(hover::hover(&server.document(&place.text_document.uri)?, place.position))
            }),
            "textDocument/completion" => self.answer::<request::Completion>(asked, |server, params| {
                let place = params.text_document_position;
                let document = server.document(&place.text_document.uri)?;
                let list = completion::list(&document, place.position, server.around, server.workspace.as_deref());
                Ok(Some(list.into()))
            }),
            "textDocument/codeAction" => self.answer::<request::CodeActionRequest>(asked, |server, params| {
                let document = server.document(&params.text_document.uri)?;
                Ok(Some(actions::actions(&document, params.range, &params.context)))
            }),
            "textDocument/definition" => self.answer::<request::GotoDefinition>(asked, |server, params| {
                let place = params.text_document_position_params;
                let found = names::definition(&server.document(&place.text_document.uri)?, place.position);
                Ok(found.map(Into::into))
            }),
            "textDocument/references" => self.answer::<request::References>(asked, |server, params| {
                let place = params.text_document_position;
                let document = server.document(&place.text_document.uri)?;
                Ok(Some(names::references(&document, place.position, params.context.include_declaration)))
            }),
            "textDocument/prepareRename" => self.answer::<request::PrepareRenameRequest>(asked, |server, place| {
                let range = names::renamed(&server.document(&place.text_document.uri)?.text, place.position)?;
                Ok(Some(PrepareRenameResponse::Range(range)))
            }),
            "textDocument/rename" => self.answer::<request::Rename>(asked, |server, params| {
                let place = params.text_document_position;
                let document = server.document(&place.text_document.uri)?;
                let edits = names::rename(&document.text, place.position, &params.new_name)?;
                let edit = TextDocumentEdit {
                    text_document: OptionalVersionedTextDocumentIdentifier {
                        uri: document.uri,
                        version: Some(document.version),
                    },
                    edits: edits.into_iter().map(OneOf::Left).collect(),
                };
                let document_changes = Some(DocumentChanges::Edits(vec![edit]));
                Ok(Some(WorkspaceEdit { document_changes, ..WorkspaceEdit::default() }))
            }),
            _ => {
                let said = format!("srt does not know `{}`", asked.method);
                Response::new_err(asked.id, ErrorCode::MethodNotFound as i32, said)
            }
        }
    }

    fn notification(&mut self, told: Notification) {
        if self.phase != Phase::Open {
            return;
        }
        match told.method.as_str() {
            "textDocument/didOpen" => self.told::<notification::DidOpenTextDocument>(told, |server, params| {
                let opened = params.text_document;
                let document = Document::new(opened.uri, opened.version, &opened.text);
                let (uri, name) = (document.uri.as_str().to_owned(), document.name.clone());
                server.shared.change(&uri, &name, |documents| drop(documents.insert(uri.clone(), document)));
            }),
            "textDocument/didChange" => self.told::<notification::DidChangeTextDocument>(told, |server, params| {
                let uri = params.text_document.uri;
                server.shared.change(uri.as_str(), &document::path_of(uri.as_str()), |documents| {
                    if let Some(document) = documents.get_mut(uri.as_str()) {
                        document.change(params.text_document.version, params.content_changes);
                    }
                });
            }),
            "textDocument/didClose" => self.told::<notification::DidCloseTextDocument>(told, |server, params| {
                server.close(&params.text_document.uri);
            }),
            "textDocument/didSave" | "workspace/didChangeWatchedFiles" => self.shared.again(),
            // `initialized`, `$/cancelRequest`, `$/setTrace` and the like need nothing done.
            _ => {}
        }
    }

    /// What is said of a text that is not open is nothing.
    fn close(&self, uri: &Uri) {
        let name = document::path_of(uri.as_str());
        self.shared.change(uri.as_str(), &name, |documents| {
            if documents.remove(uri.as_str()).is_some() {
                self.output.notify::<notification::PublishDiagnostics>(lsp_types::PublishDiagnosticsParams {
                    uri: uri.clone(),
                    diagnostics: Vec::new(),
                    version: None,
                });
            }
        });
    }

    /// A notification that cannot be read changes nothing: there is nobody to tell.
    fn told<N: notification::Notification>(&self, told: Notification, act: impl FnOnce(&Self, N::Params))
    where
        N::Params: DeserializeOwned,
    {
        if let Ok(params) = serde_json::from_value(told.params) {
            act(self, params);
        }
    }

    /// Answers a request of one kind.
    fn answer<R: request::Request>(
        &self,
        asked: Request,
        by: impl FnOnce(&Self, R::Params) -> Answer<R::Result>,
    ) -> Response {
        match serde_json::from_value(asked.params) {
            Err(error) => {
                let said = format!("`{}` cannot be read: {error}", asked.method);
                Response::new_err(asked.id, ErrorCode::InvalidParams as i32, said)
            }
            Ok(params) => match by(self, params) {
                Ok(result) => Response::new_ok(asked.id, result),
                Err(said) => Response::new_err(asked.id, ErrorCode::RequestFailed as i32, said),
            },
        }
    }

    /// An open text as it is now.
    fn document(&self, uri: &Uri) -> Answer<Document> {
        let found = self.shared.open().documents.get(uri.as_str()).cloned();
        found.ok_or_else(|| format!("`{}` is not open", uri.as_str()))
    }
}

/// What is offered.
fn capabilities() -> ServerCapabilities {
    ServerCapabilities {
        text_document_sync: Some(TextDocumentSyncCapability::Options(TextDocumentSyncOptions {
            open_close: Some(true),
            change: Some(TextDocumentSyncKind::INCREMENTAL),
            save: Some(lsp_types::TextDocumentSyncSaveOptions::Supported(true)),
            ..TextDocumentSyncOptions::default()
        })),
        document_formatting_provider: Some(OneOf::Left(true)),
        hover_provider: Some(HoverProviderCapability::Simple(true)),
        completion_provider: Some(CompletionOptions {
            trigger_characters: Some(["$", "/", "\"", " "].map(str::to_owned).to_vec()),
            ..CompletionOptions::default()
        }),
        code_action_provider: Some(
            CodeActionOptions {
                code_action_kinds: Some(vec![CodeActionKind::QUICKFIX]),
                ..CodeActionOptions::default()
            }
            .into(),
        ),
        definition_provider: Some(OneOf::Left(true)),
        references_provider: Some(OneOf::Left(true)),
        rename_provider: Some(OneOf::Right(RenameOptions {
            prepare_provider: Some(true),
            work_done_progress_options: WorkDoneProgressOptions::default(),
        })),
        folding_range_provider: Some(FoldingRangeProviderCapability::Simple(true)),
        semantic_tokens_provider: Some(
            SemanticTokensOptions {
                legend: tokens::legend(),
                full: Some(SemanticTokensFullOptions::Bool(true)),
                ..SemanticTokensOptions::default()
            }
            .into(),
        ),
        ..ServerCapabilities::default()
    }
}
