//! A real MCP server from npm, started as a client's file says after `srt mcp wrap`: it serves what the policy opens, and though it
//! is told to serve a whole home, nothing else.

use crate::support::{Scene, output, skip, users};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

const SERVER: &str = "@modelcontextprotocol/server-filesystem";
const VERSION: &str = "2026.8.31";

/// Installs the server into a folder; says why not where it cannot be had.
fn install(folder: &Path) -> Result<(), String> {
    let package = format!("{SERVER}@{VERSION}");
    let mut npm = Command::new("npm");
    npm.args(["install", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error", &package]);
    if Command::new("npm").arg("--version").output().is_err() {
        return Err("npm is not installed".to_owned());
    }
    let ended = output(npm.current_dir(folder));
    let unreached = ["ENOTFOUND", "ECONNREFUSED", "ETIMEDOUT", "EAI_AGAIN"];
    if ended.code != 0 && unreached.iter().any(|code| ended.stderr.contains(code)) {
        return Err("the registry that npm names is not reached from here".to_owned());
    }
    ended.ok();
    Ok(())
}

/// What the server of a client's file answers to calls of its tools: whether it was an error, and the text.
fn calls(scene: &Scene, calls: &[(&str, Value)]) -> Vec<(bool, String)> {
    let file = std::fs::read_to_string(scene.workspace().join(".mcp.json")).unwrap();
    let server = serde_json::from_str::<Value>(&file).unwrap()["mcpServers"]["files"].clone();
    assert_eq!(server["command"], "srt");
    let arguments: Vec<String> = serde_json::from_value(server["args"].clone()).unwrap();
    let mut started = scene.srt(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = started.stdin.take().unwrap();
    let mut lines = BufReader::new(started.stdout.take().unwrap()).lines();
    let mut ask = |number: usize, method: &str, params: Value| -> Value {
        let message = json!({ "jsonrpc": "2.0", "id": number, "method": method, "params": params });
        writeln!(input, "{message}").unwrap();
        loop {
            let line = lines.next().expect("the server ended").unwrap();
            let said: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("no message: {line}"));
            if said["id"] == number {
                return said;
            }
        }
    };
    let client = json!({ "name": "test", "version": "1" });
    let hello = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client });
    let said = ask(1, "initialize", hello);
    assert!(said["result"]["serverInfo"]["name"].is_string(), "{said}");
    let tools = ask(2, "tools/list", json!({}));
    assert!(tools["result"]["tools"].as_array().unwrap().len() > 5, "{tools}");
    let mut answers = Vec::new();
    for (number, (tool, arguments)) in calls.iter().enumerate() {
        let said = ask(number + 3, "tools/call", json!({ "name": tool, "arguments": arguments }));
        let result = &said["result"];
        let text = result["content"][0]["text"].as_str().unwrap_or_default().to_owned();
        answers.push((result["isError"] == true || said["error"].is_object(), text));
    }
    drop(input);
    assert!(started.wait().unwrap().success());
    answers
}

#[test]
fn a_file_server_from_npm_serves_what_its_policy_opens() {
    let installed = Scene::new();
    if let Err(why) = install(installed.home()) {
        return skip("an MCP server from npm", &why);
    }
    for user in users() {
        let scene = Scene::new();
        // More than the policy opens.
        let served = [scene.workspace(), scene.home().to_owned()].map(|folder| folder.display().to_string());
        let client = json!({ "mcpServers": { "files": {
            "command": "node",
            "args": [&format!("node_modules/{SERVER}/dist/index.js"), &served[0], &served[1]],
        } } });
        let scene = scene
            .by(user)
            .file("work/notes.md", "a note\n")
            .file("work/.env", "KEY=secret\n")
            .file("diary", "a secret\n")
            .folder("work/output")
            .file("work/.mcp.json", &client.to_string())
            .file("files.policy", include_str!("../../policies/mcp-file-server.policy"));
        let mut copy = Command::new("cp");
        output(copy.arg("-r").arg(installed.home().join("node_modules")).arg(scene.workspace())).ok();
        output(&mut scene.srt(["mcp", "wrap", ".mcp.json", "--policy", "../files.policy"])).ok();
        let at = |path: &str| scene.workspace().join(path).display().to_string();
        let write = |path: &str| ("write_file", json!({ "path": at(path), "content": "written" }));
        let read = |path: &str| ("read_text_file", json!({ "path": at(path) }));
        let asked = [
            read("notes.md"),
            write("output/report.md"),
            write("notes.md"),
            read(".env"),
            read("../diary"),
            write("../x"),
        ];
        let answers = calls(&scene, &asked);
        let failed: Vec<bool> = answers.iter().map(|(failed, _)| *failed).collect();
        assert_eq!(failed, [false, false, true, true, true, true], "{user:?}: {answers:#?}");
        assert_eq!(answers[0].1, "a note\n");
        let there = |path: &str| std::fs::read_to_string(scene.workspace().join(path)).ok();
        assert_eq!(there("output/report.md").as_deref(), Some("written"));
        assert_eq!((there("notes.md").as_deref(), there("../x")), (Some("a note\n"), None));
        assert!(answers[2..].iter().all(|(_, text)| !text.contains("secret")), "{answers:#?}");
    }
}
