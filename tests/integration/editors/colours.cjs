// What the grammar says of each character of some files: `colours.cjs EXTENSION FILES…` prints, for each file, for each line, the
// tokens as [start, end, innermost scope], offsets in UTF-16 units. The tokeniser is the one that the editor has.

"use strict";

const fs = require("node:fs");
const path = require("node:path");
const { createRequire } = require("node:module");

const [extension, ...files] = process.argv.slice(2);
const load = createRequire(path.join(extension, "package.json"));
const oniguruma = load("vscode-oniguruma");
const { INITIAL, Registry, parseRawGrammar } = load("vscode-textmate");

const { contributes } = JSON.parse(fs.readFileSync(path.join(extension, "package.json"), "utf8"));
const [{ scopeName, path: place }] = contributes.grammars;
const grammarFile = path.join(extension, place);
const wasm = fs.readFileSync(path.join(path.dirname(load.resolve("vscode-oniguruma")), "onig.wasm"));

async function main() {
  await oniguruma.loadWASM(wasm);
  const registry = new Registry({
    onigLib: Promise.resolve({
      createOnigScanner: (patterns) => new oniguruma.OnigScanner(patterns),
      createOnigString: (text) => new oniguruma.OnigString(text),
    }),
    loadGrammar: async (scope) =>
      scope === scopeName ? parseRawGrammar(fs.readFileSync(grammarFile, "utf8"), grammarFile) : null,
  });
  const grammar = await registry.loadGrammar(scopeName);
  const all = files.map((file) => {
    let state = INITIAL;
    return fs.readFileSync(file, "utf8").split("\n").map((line) => {
      const { tokens, ruleStack } = grammar.tokenizeLine(line, state);
      state = ruleStack;
      return tokens.map(({ startIndex, endIndex, scopes }) => [startIndex, endIndex, scopes.at(-1)]);
    });
  });
  process.stdout.write(JSON.stringify(all));
}

main();
