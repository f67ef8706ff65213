//! A scripted client: a real `srt lsp`, real framing, and a limit on how long anything is waited for.

// A script reads best with its messages in place.
#![allow(clippy::needless_pass_by_value)]

use crate::support::Scene;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// How long an answer may take before a test fails: far more than any takes.
const PATIENCE: Duration = Duration::from_secs(60);

pub struct Client {
    process: Child,
    input: Option<ChildStdin>,
    said: Receiver<Value>,
    /// What came while something else was waited for.
    kept: Vec<Value>,
    last: i64,
    pub root: String,
}

impl Client {
    /// A server in a scene's workspace, greeted.
    pub fn new(scene: &Scene) -> Self {
        let mut client = Self::silent(scene);
        let root = format!("file://{}", client.root);
        client.request("initialize", json!({ "processId": null, "rootUri": root, "capabilities": {} }));
        client.notify("initialized", json!({}));
        client
    }

    /// A server that nobody has spoken to.
    pub fn silent(scene: &Scene) -> Self {
        let mut command = scene.srt(["lsp"]);
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let input = process.stdin.take();
        let mut output = BufReader::new(process.stdout.take().unwrap());
        let (sender, said) = channel();
        std::thread::spawn(move || {
            while let Some(message) = read(&mut output) {
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        // As an address has it: with slashes, and one before a drive.
        let root = scene.workspace().display().to_string().replace('\\', "/");
        let root = if root.starts_with('/') { root } else { format!("/{root}") };
        Client { process, input, said, kept: Vec::new(), last: 0, root }
    }

    pub fn uri(&self, file: &str) -> String {
        format!("file://{}/{file}", self.root)
    }

    /// Bytes as they are.
    pub fn raw(&mut self, bytes: &[u8]) {
        let input = self.input.as_mut().unwrap();
        input.write_all(bytes).unwrap();
        input.flush().unwrap();
    }

    pub fn send(&mut self, message: &Value) {
        let body = message.to_string();
        self.raw(format!("Content-Length: {}\r\n\r\n{body}", body.len()).as_bytes());
    }

    pub fn notify(&mut self, method: &str, params: Value) {
        self.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params }));
    }

    /// The whole response.
    pub fn respond(&mut self, method: &str, params: Value) -> Value {
        self.last += 1;
        let id = self.last;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        self.wait(|message| message["id"] == id)
    }

    /// The result of a request that must have one.
    pub fn request(&mut self, method: &str, params: Value) -> Value {
        let response = self.respond(method, params);
        assert!(response.get("error").is_none(), "{method}: {response}");
        response["result"].clone()
    }

    /// A request about a place in a file.
    pub fn at(&mut self, method: &str, file: &str, (line, character): (u32, u32)) -> Value {
        let params = json!({
            "textDocument": { "uri": self.uri(file) },
            "position": { "line": line, "character": character },
        });
        self.request(method, params)
    }

    /// The first message, kept or new, that is wanted.
    pub fn wait(&mut self, wanted: impl Fn(&Value) -> bool) -> Value {
        if let Some(at) = self.kept.iter().position(&wanted) {
            return self.kept.remove(at);
        }
        loop {
            let message = self.said.recv_timeout(PATIENCE).expect("the server says nothing");
            if wanted(&message) {
                return message;
            }
            self.kept.push(message);
        }
    }

    /// All that has been said of a file so far, oldest first, and is no longer kept.
    pub fn drain(&mut self, file: &str) -> Vec<Value> {
        let uri = self.uri(file);
        self.kept.extend(self.said.try_iter());
        let (wanted, kept) = std::mem::take(&mut self.kept).into_iter().partition(|message| {
            message["params"]["uri"] == uri.as_str() && message["params"]["diagnostics"].is_array()
        });
        self.kept = kept;
        wanted
    }

    pub fn open(&mut self, file: &str, text: &str) {
        let document = json!({ "uri": self.uri(file), "languageId": "srt-policy", "version": 1, "text": text });
        self.notify("textDocument/didOpen", json!({ "textDocument": document }));
    }

    /// The whole text anew.
    pub fn change(&mut self, file: &str, version: i32, text: &str) {
        self.changes(file, version, json!([{ "text": text }]));
    }

    pub fn changes(&mut self, file: &str, version: i32, changes: Value) {
        let document = json!({ "uri": self.uri(file), "version": version });
        self.notify("textDocument/didChange", json!({ "textDocument": document, "contentChanges": changes }));
    }

    /// What is said of a version of a file.
    pub fn findings(&mut self, file: &str, version: i32) -> Vec<Value> {
        let uri = self.uri(file);
        let said = self.wait(|message| {
            message["method"] == "textDocument/publishDiagnostics"
                && message["params"]["uri"] == uri.as_str()
                && message["params"]["version"] == version
        });
        said["params"]["diagnostics"].as_array().unwrap().clone()
    }

    /// The codes of what is said of a version of a file, each with its line.
    pub fn codes(&mut self, file: &str, version: i32) -> Vec<(String, u64)> {
        let code = |said: &Value| {
            (said["code"].as_str().unwrap().to_owned(), said["range"]["start"]["line"].as_u64().unwrap())
        };
        self.findings(file, version).iter().map(code).collect()
    }

    /// Ends as the protocol wants; the status.
    pub fn leave(mut self) -> i32 {
        self.request("shutdown", Value::Null);
        self.notify("exit", Value::Null);
        self.ended()
    }

    /// Closes the stream, and waits for the end.
    pub fn ended(&mut self) -> i32 {
        drop(self.input.take());
        self.process.wait().unwrap().code().unwrap()
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // Gone already, where the test went well.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn read(output: &mut impl BufRead) -> Option<Value> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        if output.read_line(&mut line).ok()? == 0 {
            return None;
        }
        let line = line.trim_end();
        if line.is_empty() {
            break;
        }
        if let Some(number) = line.strip_prefix("Content-Length: ") {
            length = number.parse().unwrap();
        }
    }
    let mut body = vec![0; length];
    output.read_exact(&mut body).ok()?;
    Some(serde_json::from_slice(&body).expect("the server sends JSON"))
}
