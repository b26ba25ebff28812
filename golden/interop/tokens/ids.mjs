// Writes what the reference library answers: ids.mjs ROOT OUT, where ROOT holds an
// npm installation. For each model OUT/<model>.ids.jsonl gets lines of
// {"set", "text", "ids", "special"}; the second library, which is pure JavaScript, is
// compared on the spot and its disagreements are counted.
import { createRequire } from "node:module";
import { createWriteStream } from "node:fs";
import { join } from "node:path";
import { folder, models, readJSON } from "./models.mjs";
import { everything, mixed } from "./strings.mjs";

const [root, out] = process.argv.slice(2);
const require = createRequire(join(root, "package.json"));
const { Tokenizer } = require("@anush008/tokenizers");
const second = require("@huggingface/tokenizers");

const equal = (a, b) => a.length === b.length && a.every((v, i) => v === b[i]);

for (const model of models) {
	const dir = folder(root, model);
	const file = readJSON(dir, "tokenizer.json");
	const config = readJSON(dir, "tokenizer_config.json");
	const tokenizer = Tokenizer.fromFile(join(dir, "tokenizer.json"));
	const other = new second.Tokenizer(file, config);
	const lines = createWriteStream(join(out, `${model}.ids.jsonl`));
	let agree = 0;
	let total = 0;
	const write = async (set, text) => {
		const ids = (await tokenizer.encode(text, null, { addSpecialTokens: false })).getIds();
		// The special tokens around a text do not depend on it: few are enough.
		const special = text.length < 40 ? (await tokenizer.encode(text, null, { addSpecialTokens: true })).getIds() : undefined;
		lines.write(JSON.stringify({ set, text, ids, special }) + "\n");
		return ids;
	};
	for (const text of mixed(file.added_tokens.map((t) => t.content))) {
		const ids = await write("mixed", text);
		total++;
		if (equal(ids, other.encode(text, { add_special_tokens: false }).ids)) agree++;
	}
	for (const text of everything()) await write("everything", text);
	await new Promise((done) => lines.end(done));
	console.log(`${model}: the two reference libraries agree on ${agree} of ${total} mixed strings`);
}
