// Starts `srt lsp` and hands it the policies that are open. Everything that is known of the language is known there; colours
// alone, which are wanted before it has started, come from the grammar beside this file.

"use strict";

const vscode = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

const LANGUAGE = "srt-policy";

let client;

function command() {
  const settings = vscode.workspace.getConfiguration("srt");
  const defines = Object.entries(settings.get("defines", {}));
  const args = ["lsp", ...defines.flatMap(([name, value]) => ["--define", `${name}=${value}`])];
  return { command: settings.get("path", "srt"), args };
}

async function start() {
  // The same however it is started: there is no other server to debug.
  client = new LanguageClient(LANGUAGE, "srt", command(), { documentSelector: [{ language: LANGUAGE }] });
  // What keeps it from starting is shown by the client, with the name of the program.
  await client.start();
}

async function stop() {
  const ending = client;
  client = undefined;
  await ending?.stop();
}

async function activate(context) {
  context.subscriptions.push(
    vscode.workspace.onDidChangeConfiguration(async (change) => {
      if (change.affectsConfiguration("srt")) {
        await stop();
        await start();
      }
    }),
  );
  await start();
}

module.exports = { activate, deactivate: stop };
