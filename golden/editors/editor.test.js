// The language server that VS Code and Neovim use for YAML, with the schema that
// shunt publishes. SHUNT is the command.
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";

const shunt = process.env.SHUNT;
assert.ok(shunt, "SHUNT must name the command");

const here = dirname(fileURLToPath(import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "shunt-editors-"));
const modeline = "# yaml-language-server: $schema=config.schema.json\n";

// Server speaks the protocol of language servers with a child process.
class Server {
  constructor() {
    this.child = spawn(process.execPath, [join(here, "node_modules/yaml-language-server/bin/yaml-language-server"), "--stdio"]);
    this.input = Buffer.alloc(0);
    this.next = 1;
    this.answers = new Map();
    this.published = new Map();
    this.child.stdout.on("data", (data) => this.receive(data));
  }
  receive(data) {
    this.input = Buffer.concat([this.input, data]);
    for (;;) {
      const head = this.input.indexOf("\r\n\r\n");
      if (head < 0) return;
      const length = Number(/Content-Length: (\d+)/i.exec(this.input.toString("latin1", 0, head))[1]);
      if (this.input.length < head + 4 + length) return;
      const message = JSON.parse(this.input.toString("utf8", head + 4, head + 4 + length));
      this.input = this.input.subarray(head + 4 + length);
      this.handle(message);
    }
  }
  handle(m) {
    if (m.method === "textDocument/publishDiagnostics") {
      this.published.get(m.params.uri)?.(m.params.diagnostics);
    } else if (m.method && m.id !== undefined) {
      // Settings: without schemas from the network, only the modeline counts.
      const settings = { validate: true, hover: true, completion: true, schemaStore: { enable: false } };
      const result = m.method === "workspace/configuration" ? m.params.items.map((i) => (i.section === "yaml" ? settings : {})) : null;
      this.send({ id: m.id, result });
    } else if (m.id !== undefined) {
      this.answers.get(m.id)?.(m);
    }
  }
  send(message) {
    const body = JSON.stringify({ jsonrpc: "2.0", ...message });
    this.child.stdin.write(`Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
  }
  ask(method, params) {
    const id = this.next++;
    this.send({ id, method, params });
    return new Promise((resolve, reject) =>
      this.answers.set(id, (m) => (m.error ? reject(new Error(JSON.stringify(m.error))) : resolve(m.result))));
  }
  tell(method, params) {
    this.send({ method, params });
  }
  // open gives the diagnostics of a text.
  open(name, text) {
    const uri = pathToFileURL(join(folder, name)).href;
    writeFileSync(join(folder, name), text);
    const done = new Promise((resolve) => this.published.set(uri, resolve));
    this.tell("textDocument/didOpen", { textDocument: { uri, languageId: "yaml", version: 1, text } });
    return done;
  }
  async complete(name, text) {
    const at = text.indexOf("‸");
    const before = text.slice(0, at).split("\n");
    await this.open(name, text.replace("‸", ""));
    const position = { line: before.length - 1, character: before.at(-1).length };
    const uri = pathToFileURL(join(folder, name)).href;
    const list = await this.ask("textDocument/completion", { textDocument: { uri }, position });
    return list.items.map((i) => i.label);
  }
}

let server;
before(async () => {
  writeFileSync(join(folder, "config.schema.json"), execFileSync(shunt, ["schema"]));
  server = new Server();
  await server.ask("initialize", { processId: process.pid, rootUri: pathToFileURL(folder).href, capabilities: { workspace: { configuration: true } } });
  server.tell("initialized", {});
});
after(() => {
  server.child.kill();
  rmSync(folder, { recursive: true });
});

test("examples have no diagnostics", async () => {
  for (const name of ["plain", "pd-two-buckets", "pd-labels", "cache-aware-pd"]) {
    const text = readFileSync(join(here, `../../examples/${name}/routing.yaml`), "utf8");
    assert.deepEqual(await server.open(`${name}.yaml`, modeline + text), [], name);
  }
});

test("mistakes of shape are marked at their place", async () => {
  const text = modeline + `version: 1
server: {listen: 30000, max_bodi: 1MiB, log: {level: loud}}
models:
  - id: m
    discovery:
      static:
        engines:
          - {id: a, url: "ftp://x", role: plane}
    buckets:
      - id: b
        groups:
          plain:
            policy: {type: round_robin, choices: 3}
`;
  const found = (await server.open("bad.yaml", text)).map((d) => `${d.range.start.line + 1}: ${d.message}`);
  const want = [/^3: .*string/, /^3: .*max_bodi.*not allowed/, /^3: .*"debug"/, /^9: .*a URL such as/, /^9: .*"plain"/, /^14: .*choices.*not allowed/];
  for (const w of want) assert.ok(found.some((f) => w.test(f)), `${w} in\n${found.join("\n")}`);
  assert.equal(found.length, want.length, found.join("\n"));
});

test("a missing field is marked", async () => {
  const found = await server.open("missing.yaml", modeline + "version: 1\nmodels:\n  - id: m\n");
  assert.match(found.map((d) => d.message).join("\n"), /Missing property "discovery"/);
});

test("fields, words and the tuning of a policy are completed", async () => {
  const top = await server.complete("top.yaml", modeline + "version: 1\n‸\n");
  for (const name of ["server", "models", "state"]) assert.ok(top.includes(name), top.join());
  const head = "version: 1\nmodels:\n  - id: m\n    discovery: {static: {engines: []}}\n    buckets:\n      - id: b\n        groups:\n          plain:\n            policy:\n";
  const types = await server.complete("types.yaml", modeline + head + "              type: ‸\n");
  for (const name of ["cache_aware", "power_of_two", "sticky"]) assert.ok(types.includes(name), types.join());
  const tuning = await server.complete("tuning.yaml", modeline + head + "              type: power_of_two\n              ‸\n");
  assert.ok(tuning.includes("choices") && tuning.includes("admission"), tuning.join());
  assert.ok(!tuning.includes("min_matched_tokens"), tuning.join());
});

test("a field is explained, with its default", async () => {
  const text = modeline + "version: 1\nserver: {max_body: 1MiB}\nmodels: []\n";
  await server.open("hover.yaml", text);
  const uri = pathToFileURL(join(folder, "hover.yaml")).href;
  const hover = await server.ask("textDocument/hover", { textDocument: { uri }, position: { line: 2, character: 12 } });
  const value = hover.contents.value ?? hover.contents;
  assert.match(value, /largest request body/);
  assert.match(value, /Default: 32MiB\./);
});
