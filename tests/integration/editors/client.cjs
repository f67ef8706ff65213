// The extension without its editor: `client.cjs EXTENSION SRT FILE` activates it with an editor that has one setting, where `srt`
// is, carries out what it asks its client library for, and prints what the server says of a file. The messages go through the
// protocol library that the editor has.

"use strict";

const fs = require("node:fs");
const path = require("node:path");
const { spawn } = require("node:child_process");
const Module = require("node:module");
const { pathToFileURL } = require("node:url");

const [extension, srt, file] = process.argv.slice(2);
const load = Module.createRequire(path.join(extension, "package.json"));
const rpc = load("vscode-jsonrpc/node");

const settings = { path: srt, defines: { registry: "registry.example" } };
const vscode = {
  workspace: {
    getConfiguration: () => ({ get: (key, otherwise) => settings[key] ?? otherwise }),
    onDidChangeConfiguration: () => ({ dispose() {} }),
  },
};

const said = {};

class LanguageClient {
  constructor(id, name, server, options) {
    Object.assign(said, { id, name, server, selector: options.documentSelector });
  }

  async start() {
    this.process = spawn(said.server.command, said.server.args, { stdio: ["pipe", "pipe", "inherit"] });
    this.ended = new Promise((resolve) => this.process.on("exit", resolve));
    this.connection = rpc.createMessageConnection(
      new rpc.StreamMessageReader(this.process.stdout),
      new rpc.StreamMessageWriter(this.process.stdin),
    );
    const findings = new Promise((resolve) => this.connection.onNotification("textDocument/publishDiagnostics", resolve));
    this.connection.listen();
    const hello = await this.connection.sendRequest("initialize", { processId: null, rootUri: null, capabilities: {} });
    said.capabilities = Object.keys(hello.capabilities);
    await this.connection.sendNotification("initialized", {});
    const textDocument = {
      uri: pathToFileURL(file).href,
      languageId: said.selector[0].language,
      version: 1,
      text: fs.readFileSync(file, "utf8"),
    };
    await this.connection.sendNotification("textDocument/didOpen", { textDocument });
    said.findings = (await findings).diagnostics.map(({ code, range }) => [code, range.start.line]);
  }

  async stop() {
    await this.connection.sendRequest("shutdown");
    await this.connection.sendNotification("exit");
    said.status = await this.ended;
    this.connection.dispose();
  }
}

const whole = Module._load;
Module._load = (name, ...rest) => {
  if (name === "vscode") return vscode;
  if (name === "vscode-languageclient/node") return { LanguageClient };
  return whole(name, ...rest);
};

async function main() {
  const { activate, deactivate } = load("./extension.js");
  const subscriptions = [];
  await activate({ subscriptions });
  await deactivate();
  process.stdout.write(JSON.stringify({ ...said, subscriptions: subscriptions.length }));
}

main();
