//! The language server as an editor meets it: a real process, real framing, one capability after the other; and what is no
//! message at all.

mod client;

use crate::support::Scene;
use client::Client;
use serde_json::json;

/// A policy that says nothing wrong.
const GOOD: &str = "\
srt 1
use std/system
default read deny
allow read $WORKSPACE
expect deny write $WORKSPACE
";

fn scene() -> Scene {
    Scene::new()
}

#[test]
fn findings_come_as_the_text_changes() {
    let scene = scene();
    let mut client = Client::new(&scene);
    client.open("a.policy", GOOD);
    assert_eq!(client.codes("a.policy", 1), [("later-names".to_owned(), 0); 0]);
    client.change("a.policy", 2, &GOOD.replace("$WORKSPACE\nexpect", "$WORKSPCE\nexpect"));
    let said = client.findings("a.policy", 2);
    assert_eq!(said.len(), 1, "{said:?}");
    assert_eq!(said[0]["code"], "unknown-variable");
    assert_eq!(said[0]["severity"], 1);
    assert_eq!(said[0]["source"], "srt");
    assert_eq!(said[0]["message"], "there is no variable `$WORKSPCE`\nhelp: use `$WORKSPACE`");
    assert_eq!(said[0]["range"]["start"], json!({ "line": 3, "character": 11 }));
    // By ranges: the letter comes back.
    let place = json!({ "line": 3, "character": 18 });
    client.changes("a.policy", 3, json!([{ "range": { "start": place, "end": place }, "text": "A" }]));
    assert!(client.findings("a.policy", 3).is_empty());
    client.notify("textDocument/didClose", json!({ "textDocument": { "uri": client.uri("a.policy") } }));
    client.wait(|said| said["params"]["diagnostics"] == json!([]) && said["params"].get("version").is_none());
    assert_eq!(client.leave(), 0);
}

#[test]
fn positions_are_utf_16_code_units() {
    let scene = scene();
    let mut client = Client::new(&scene);
    let text = |name: &str| format!("srt 1\r\ndefault read deny\r\nallow read [\"/\u{e9}\u{1F600}\", {name}]\r\n");
    client.open("a.policy", &text("$HOMEE"));
    let said = client.findings("a.policy", 1);
    // `[`, the quotes, the slash, a letter of one unit and a picture of two.
    assert_eq!(said[0]["range"]["start"], json!({ "line": 2, "character": 20 }), "{said:?}");
    assert_eq!(said[0]["range"]["end"], json!({ "line": 2, "character": 26 }));
    let letter = json!({ "start": { "line": 2, "character": 25 }, "end": { "line": 2, "character": 26 } });
    client.changes("a.policy", 2, json!([{ "range": letter, "text": "" }]));
    let codes = client.codes("a.policy", 2);
    assert!(codes.iter().all(|(code, _)| code != "unknown-variable" && code != "syntax"), "{codes:?}");
}

#[test]
fn files_that_others_have_open_are_read_as_they_are_there() {
    let scene = scene()
        .file("work/base.policy", "srt 1\nlet unused = /a\n")
        .file("work/c\u{e9} d.policy", "srt 1\nallow read $NOWHERE\n");
    let mut client = Client::new(&scene);
    client.open("a.policy", &GOOD.replace("use std/system", "use std/system\nuse \"base.policy\""));
    let said = client.findings("a.policy", 1);
    assert_eq!(said.len(), 1, "{said:?}");
    assert_eq!(said[0]["code"], "unused-variable");
    // At the `use`, with the place itself beside.
    assert_eq!(said[0]["range"]["start"], json!({ "line": 2, "character": 4 }));
    let beside = &said[0]["relatedInformation"][0]["location"];
    assert_eq!(beside["uri"], client.uri("base.policy").as_str());
    assert_eq!(beside["range"]["start"], json!({ "line": 1, "character": 4 }));
    // Opened and changed there, without being saved: the user is looked at again.
    client.open("base.policy", "srt 1\nallow read /srv/share\n");
    assert!(client.findings("a.policy", 1).is_empty());
    // A used file needs no default of its own while what uses it is open.
    assert!(client.findings("base.policy", 1).is_empty());
    client.change("base.policy", 2, "srt 1\nalow read /srv/share\n");
    let said = client.findings("a.policy", 1);
    assert_eq!(said[0]["code"], "syntax");
    assert_eq!(client.codes("base.policy", 2), [("syntax".to_owned(), 1)]);
    // Closed: the one on disk again.
    client.notify("textDocument/didClose", json!({ "textDocument": { "uri": client.uri("base.policy") } }));
    assert_eq!(client.codes("a.policy", 1), [("unused-variable".to_owned(), 2)]);
    client.change("a.policy", 2, &GOOD.replace("use std/system", "use std/system\nuse \"c\u{e9} d.policy\""));
    let said = client.findings("a.policy", 2);
    let beside = said[0]["relatedInformation"][0]["location"]["uri"].as_str().unwrap();
    assert!(beside.ends_with("/c%C3%A9%20d.policy"), "{beside}");
}

#[test]
fn of_many_edits_the_last_is_what_is_looked_at() {
    let scene = scene();
    let mut client = Client::new(&scene);
    let long: String = (0..2000).map(|number| format!("allow read /srv/{number}\n")).collect();
    client.open("a.policy", &format!("{GOOD}{long}"));
    for version in 2..200 {
        client.change("a.policy", version, &format!("{GOOD}{long}allow read $X{version}\n"));
    }
    // An answer in between, while the text is looked at.
    let response = client.respond("shutdown/not", json!({}));
    assert_eq!(response["error"]["code"], -32601);
    client.change("a.policy", 200, &format!("{GOOD}allow read $X200\n"));
    let said = client.findings("a.policy", 200);
    assert_eq!(said[0]["message"].as_str().unwrap().lines().next(), Some("there is no variable `$X200`"));
    let before = client.drain("a.policy");
    assert!(before.len() < 50, "{} texts of 200 were looked at", before.len());
    let versions: Vec<_> = before.iter().map(|said| said["params"]["version"].as_i64().unwrap()).collect();
    assert!(versions.is_sorted(), "{versions:?}");
}

#[test]
fn rubbish_is_refused_and_the_next_message_read() {
    let scene = scene();
    let mut client = Client::silent(&scene);
    // Before anything else.
    assert_eq!(client.respond("textDocument/hover", json!({}))["error"]["code"], -32002);
    client.notify("textDocument/didOpen", json!({ "textDocument": 3 }));
    client.request("initialize", json!({ "capabilities": { "none": [1, { "x": null }] }, "rootUri": 7 }));
    assert_eq!(client.respond("initialize", json!({ "capabilities": {} }))["error"]["code"], -32600);
    for (bytes, code) in [
        ("Content-Length: 9\r\n\r\n{\"id\": 1, ", -32700),
        ("Content-Length: 4\r\n\r\nnull", -32600),
        ("Content-Length: 2\r\n\r\n[]", -32600),
        ("Content-Length: 3\r\n\r\n\u{e9}}", -32700),
        ("Content-Length: -5\r\n\r\n", -32700),
        ("Content-Length: 999999999999999\r\n\r\n", -32700),
        ("Content-Length: many\r\n\r\n", -32700),
        ("hello\r\n\r\n", -32700),
        ("Content-Length: 5\r\n\r\n{\"jsonrpc\":\"2.0\",\"method\":\"x\"}", -32700),
    ] {
        client.raw(bytes.as_bytes());
        // The rest of a body that was longer than it said ends at the next header.
        let answer = client.respond("no/such", json!({}));
        assert_eq!(answer["error"]["code"], -32601, "{bytes}");
        let refusal = client.wait(|said| said.get("id").is_some_and(serde_json::Value::is_null));
        assert_eq!(refusal["error"]["code"], code, "{bytes}");
    }
    // Parameters of another shape, texts that are not open, and positions that are nowhere.
    client.notify(
        "textDocument/didChange",
        json!({ "textDocument": { "uri": "file:///none", "version": 2 }, "contentChanges": [{ "text": "" }] }),
    );
    client.notify("textDocument/didChange", json!([1, 2]));
    client.notify("no/such", json!({}));
    client.open("a.policy", GOOD);
    assert!(client.findings("a.policy", 1).is_empty());
    let far = json!({ "line": 4_000_000_000_u32, "character": 4_000_000_000_u32 });
    let start = json!({ "line": 0, "character": 0 });
    client.changes("a.policy", 2, json!([{ "range": { "start": far, "end": start }, "text": "allow read $NONE\n" }]));
    assert_eq!(client.codes("a.policy", 2), [("unknown-variable".to_owned(), 5)]);
    assert_eq!(client.leave(), 0);
}

#[test]
fn the_end_of_the_stream_is_the_end() {
    let scene = scene();
    let mut client = Client::new(&scene);
    client.raw(b"Content-Length: 50\r\n\r\n{}");
    assert_eq!(client.ended(), 1);
    let mut client = Client::new(&scene);
    client.notify("exit", json!(null));
    assert_eq!(client.ended(), 1);
}

#[test]
fn a_text_is_laid_out_as_fmt_does() {
    let scene = scene();
    let mut client = Client::new(&scene);
    client.open("a.policy", "srt 1\ndefault read deny\nallow   read /\u{e9}\n# end\n");
    let asked = json!({ "textDocument": { "uri": client.uri("a.policy") }, "options": { "tabSize": 8, "insertSpaces": false } });
    let edits = client.request("textDocument/formatting", asked.clone());
    let range = json!({ "start": { "line": 2, "character": 0 }, "end": { "line": 3, "character": 0 } });
    assert_eq!(edits, json!([{ "range": range, "newText": "allow read /\u{e9}\n" }]));
    client.change("a.policy", 2, "srt 1\nallow   reed /a\n");
    assert_eq!(client.request("textDocument/formatting", asked), json!([]));
    let other = json!({ "textDocument": { "uri": client.uri("none.policy") }, "options": { "tabSize": 8, "insertSpaces": false } });
    assert_eq!(client.respond("textDocument/formatting", other)["error"]["code"], -32803);
    assert_eq!(client.respond("textDocument/formatting", json!([]))["error"]["code"], -32602);
}
