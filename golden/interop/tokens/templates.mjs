// Writes what the reference renderer answers: templates.mjs ROOT OUT, where ROOT
// holds an npm installation. OUT/templates.jsonl gets lines of
// {"model", "name", "vars", "text"}, with "error" instead of the text where the
// renderer fails. OUT/chats.jsonl gets the ids of the renderings that a plain
// request asks for: {"model", "name", "messages", "ids"}.
import { createRequire } from "node:module";
import { createWriteStream } from "node:fs";
import { join } from "node:path";
import { folder, models, readJSON, templates } from "./models.mjs";
import { shapes } from "./shapes.mjs";

const [root, out] = process.argv.slice(2);
const require = createRequire(join(root, "package.json"));
const { Template } = require("@huggingface/jinja");
const { Tokenizer } = require("@anush008/tokenizers");
const lines = createWriteStream(join(out, "templates.jsonl"));
const chats = createWriteStream(join(out, "chats.jsonl"));

for (const model of templates) {
	const config = readJSON(folder(root, model), "tokenizer_config.json");
	const template = new Template(config.chat_template);
	const special = {};
	for (const key of ["bos_token", "eos_token", "pad_token", "unk_token"]) {
		const token = config[key];
		if (token != null) special[key] = token.content ?? token;
	}
	const tokenizer = models.includes(model) && Tokenizer.fromFile(join(folder(root, model), "tokenizer.json"));
	for (const { name, vars } of shapes()) {
		const all = { ...special, ...vars };
		const line = { model, name, vars: all };
		try {
			line.text = template.render(all);
		} catch (err) {
			line.error = String(err);
		}
		lines.write(JSON.stringify(line) + "\n");
		if (tokenizer && name.endsWith("/prompt") && line.text) {
			const ids = (await tokenizer.encode(line.text, null, { addSpecialTokens: false })).getIds();
			chats.write(JSON.stringify({ model, name, messages: vars.messages, ids }) + "\n");
		}
	}
}
lines.end();
chats.end();
