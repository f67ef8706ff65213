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
    assert!(client.findings("a.policy", 1).is_empty());
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
    let long = (0..2000).map(|number| format!("allow read /srv/{number}")).collect::<Vec<_>>().join("\n") + "\n";
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
    assert!(before.len() < 100, "{} texts of 200 were looked at", before.len());
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

/// A policy that each capability has something to say about.
const RICH: &str = "\
srt 1
use std/system
use \"base.policy\"
let llm = [api.example.com, api.example.org]

# One,
# and two.
default read deny
allow read, write [
  $WORKSPACE,
  /srv/data,
]
deny read $WORKSPACE/private
allow read $WORKSPACE/private/notes
allow connect $llm
on macos {
  deny connect $llm
}
";

fn rich() -> (Scene, Client) {
    let scene = scene().file("work/base.policy", "srt 1\n").file("work/src/main.rs", "").file("work/.env", "");
    let mut client = Client::new(&scene);
    client.open("a.policy", RICH);
    client.findings("a.policy", 1);
    (scene, client)
}

#[test]
fn hover_says_what_a_word_and_a_rule_mean() {
    let (_scene, mut client) = rich();
    let mut hover = |place| client.at("textDocument/hover", "a.policy", place)["contents"]["value"].clone();
    let mut said = |place| hover(place).as_str().unwrap_or_default().to_owned();
    assert!(said((8, 2)).starts_with("`allow`: permits"));
    assert!(said((8, 13)).starts_with("`write`: creating"));
    assert!(said((1, 6)).starts_with("`std/system`, embedded"));
    assert!(said((3, 5)).contains("let llm = [api.example.com, api.example.org]"));
    let rule = said((14, 16));
    assert!(
        rule.contains("let llm = [")
            && rule.contains("`allow connect $llm`\n- alone decides, for example, `connect api.example."),
        "{rule}"
    );
    let rule = said((13, 12));
    assert!(rule.contains("`$WORKSPACE`: where the run was started"), "{rule}");
    assert!(rule.contains("- opens `deny read $WORKSPACE/private` ("), "{rule}");
    let rule = said((12, 25));
    assert!(
        rule.contains("- not all of it: `") && rule.contains("- opened by `allow read $WORKSPACE/private/notes` ("),
        "{rule}"
    );
    assert_eq!(said((4, 0)), "");
    // A line that is being written: words alone.
    client.change("a.policy", 2, "srt 1\nallow read [$HOME, \n");
    let value = client.at("textDocument/hover", "a.policy", (1, 14))["contents"]["value"].clone();
    assert_eq!(value, "`$HOME`: the home of whoever runs it");
}

#[test]
fn completion_offers_what_may_stand_there() {
    let (_scene, mut client) = rich();
    let mut version = 1;
    let mut offered = |line: &str| {
        version += 1;
        let text = format!("srt 1\nlet llm = a.b\n{line}");
        client.change("a.policy", version, &text);
        let column = u32::try_from(line.encode_utf16().count()).unwrap();
        let items = client.at("textDocument/completion", "a.policy", (2, column));
        assert_eq!(items["isIncomplete"], false);
        items["items"]
            .as_array()
            .unwrap()
            .iter()
            .map(|item| item["label"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(offered("for"), ["forbid"]);
    assert!(offered("").contains(&"expect".to_owned()));
    assert_eq!(offered("allow w"), ["write"]);
    assert_eq!(offered("allow read, ex"), ["exec"]);
    assert_eq!(offered("allow read $WO"), ["$WORKSPACE"]);
    assert_eq!(offered("allow read [\"/\u{e9}\u{1F600}\", $l"), ["$llm"]);
    assert_eq!(offered("allow connect "), ["$llm"]);
    assert_eq!(offered("use std/sh"), ["std/shell-config"]);
    assert_eq!(offered("use \"b"), ["base.policy"]);
    assert_eq!(offered("default "), ["read", "env"]);
    assert_eq!(offered("on li"), ["linux"]);
    assert_eq!(offered("limit mem"), ["memory"]);
    assert_eq!(offered("allow read $WORKSPACE/s"), ["src"]);
    assert_eq!(offered("allow read $WORKSPACE/src/"), ["main.rs"]);
    assert_eq!(offered("allow read ~/wo"), ["work"]);
    assert_eq!(offered("allow read /a b"), ["because"]);
    assert_eq!(offered("# allow "), [""; 0]);
    assert_eq!(offered("allow connect $WORKSPACE/"), [""; 0]);
}

#[test]
fn names_lead_to_where_they_are_defined_and_can_be_changed() {
    let (_scene, mut client) = rich();
    let found = client.at("textDocument/definition", "a.policy", (14, 17));
    assert_eq!(found["range"]["start"], json!({ "line": 3, "character": 4 }));
    let found = client.at("textDocument/definition", "a.policy", (2, 8));
    assert_eq!(found["uri"], client.uri("base.policy").as_str());
    assert!(client.at("textDocument/definition", "a.policy", (9, 5)).is_null());
    let uri = client.uri("a.policy");
    let place = json!({ "line": 16, "character": 16 });
    let asked = json!({ "textDocument": { "uri": uri }, "position": place, "context": { "includeDeclaration": true } });
    assert_eq!(client.request("textDocument/references", asked).as_array().unwrap().len(), 3);
    let range = client.at("textDocument/prepareRename", "a.policy", (16, 16));
    assert_eq!(range["end"], json!({ "line": 16, "character": 19 }));
    let rename = |name: &str| json!({ "textDocument": { "uri": uri }, "position": place, "newName": name });
    let edit = client.request("textDocument/rename", rename("models"));
    let edits = edit["documentChanges"][0]["edits"].as_array().unwrap();
    let lines: Vec<_> = edits.iter().map(|edit| edit["range"]["start"]["line"].as_u64().unwrap()).collect();
    assert_eq!(lines, [3, 14, 16]);
    assert!(edits.iter().all(|edit| edit["newText"] == "models"));
    for name in ["HOME", "9", "a-b", ""] {
        assert_eq!(client.respond("textDocument/rename", rename(name))["error"]["code"], -32803, "{name}");
    }
    let built_in = json!({ "textDocument": { "uri": uri }, "position": { "line": 9, "character": 5 } });
    assert_eq!(client.respond("textDocument/prepareRename", built_in)["error"]["code"], -32803);
}

#[test]
fn remedies_are_offered_where_the_finding_is() {
    let scene = scene();
    let mut client = Client::new(&scene);
    let wrong = GOOD.replace("allow read", "alow read");
    client.open("a.policy", &format!("# \u{1F600}\n{wrong}"));
    let said = client.findings("a.policy", 1);
    let ask = |client: &mut Client, line: u32, character: u32, only: serde_json::Value| {
        let place = json!({ "line": line, "character": character });
        let context = json!({ "diagnostics": [], "only": only });
        client.request(
            "textDocument/codeAction",
            json!({ "textDocument": { "uri": client.uri("a.policy") },
                "range": { "start": place, "end": place }, "context": context }),
        )
    };
    let found = ask(&mut client, 4, 2, json!(null));
    assert_eq!(found.as_array().unwrap().len(), 1, "{found}");
    assert_eq!(found[0]["title"], "write `allow` instead of `alow`");
    assert_eq!(found[0]["kind"], "quickfix");
    assert_eq!(found[0]["diagnostics"], json!([said[0]]));
    let edit = &found[0]["edit"]["documentChanges"][0];
    assert_eq!(edit["textDocument"], json!({ "uri": client.uri("a.policy"), "version": 1 }));
    client.changes("a.policy", 2, json!([{ "range": edit["edits"][0]["range"], "text": edit["edits"][0]["newText"] }]));
    assert!(client.findings("a.policy", 2).is_empty());
    assert_eq!(ask(&mut client, 4, 2, json!(null)), json!([]));
    // A rule that is for nothing, with its line.
    client.change("a.policy", 3, &format!("{GOOD}allow read /usr/share/doc\n"));
    client.findings("a.policy", 3);
    assert_eq!(ask(&mut client, 5, 14, json!(["refactor"])), json!([]));
    assert_eq!(ask(&mut client, 3, 14, json!(["quickfix"])), json!([]));
    let found = ask(&mut client, 5, 14, json!(["quickfix"]));
    let edit = &found[0]["edit"]["documentChanges"][0]["edits"][0];
    assert_eq!(found[0]["title"], "take this rule out");
    let whole = json!({ "start": { "line": 5, "character": 0 }, "end": { "line": 6, "character": 0 } });
    assert_eq!((&edit["range"], &edit["newText"]), (&whole, &json!("")));
}

#[test]
fn folds_and_colours_need_no_text_without_faults() {
    let (_scene, mut client) = rich();
    let asked = json!({ "textDocument": { "uri": client.uri("a.policy") } });
    let folds = |said: &serde_json::Value| {
        let fold = |fold: &serde_json::Value| (fold["startLine"].as_u64().unwrap(), fold["endLine"].as_u64().unwrap());
        said.as_array().unwrap().iter().map(fold).collect::<Vec<_>>()
    };
    assert_eq!(folds(&client.request("textDocument/foldingRange", asked.clone())), [(5, 6), (8, 11), (15, 17)]);
    let colours = |said: &serde_json::Value| {
        let data: Vec<u64> = said["data"].as_array().unwrap().iter().map(|number| number.as_u64().unwrap()).collect();
        data.chunks(5).map(|one| (one[0], one[1], one[2], one[3])).collect::<Vec<_>>()
    };
    // Keyword 0, verb 1, variable 2, string 3: with a picture of two units before.
    let text = "allow read [/\u{1F600}, $HOME/x,\nbroken (\n";
    client.change("a.policy", 2, text);
    let found = colours(&client.request("textDocument/semanticTokens/full", asked.clone()));
    assert_eq!(found[..5], [(0, 0, 5, 0), (0, 6, 4, 1), (0, 6, 3, 3), (0, 5, 5, 2), (0, 5, 2, 3)]);
    client.change("a.policy", 3, &RICH.replace("allow read, write [", "alow read, write ["));
    assert!(folds(&client.request("textDocument/foldingRange", asked)).contains(&(15, 17)));
}
