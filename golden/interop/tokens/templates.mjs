// Writes what the reference renderer answers: templates.mjs ROOT OUT, where ROOT
// holds an npm installation. OUT/templates.jsonl gets lines of
// {"model", "name", "vars", "text"}, with "error" instead of the text where the
// renderer fails.
import { createRequire } from "node:module";
import { createWriteStream } from "node:fs";
import { join } from "node:path";
import { folder, readJSON, templates } from "./models.mjs";
import { shapes } from "./shapes.mjs";

const [root, out] = process.argv.slice(2);
const { Template } = createRequire(join(root, "package.json"))("@huggingface/jinja");
const lines = createWriteStream(join(out, "templates.jsonl"));

for (const model of templates) {
	const config = readJSON(folder(root, model), "tokenizer_config.json");
	const template = new Template(config.chat_template);
	const special = {};
	for (const key of ["bos_token", "eos_token", "pad_token", "unk_token"]) {
		const token = config[key];
		if (token != null) special[key] = token.content ?? token;
	}
	for (const { name, vars } of shapes()) {
		const all = { ...special, ...vars };
		const line = { model, name, vars: all };
		try {
			line.text = template.render(all);
		} catch (err) {
			line.error = String(err);
		}
		lines.write(JSON.stringify(line) + "\n");
	}
}
lines.end();
