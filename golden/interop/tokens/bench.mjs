// Times the reference library: bench.mjs ROOT OUT. The texts are written to
// OUT/bench-<bytes>.txt and the speeds to OUT/bench.json, for the benchmarks of this
// package.
import { createRequire } from "node:module";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { folder, models } from "./models.mjs";
import { workload } from "./strings.mjs";

const [root, out] = process.argv.slice(2);
const { Tokenizer } = createRequire(join(root, "package.json"))("@anush008/tokenizers");

const texts = [4 << 10, 40 << 10, 400 << 10].map((bytes) => {
	const text = workload(bytes);
	writeFileSync(join(out, `bench-${bytes}.txt`), text);
	return { bytes, text };
});

const speeds = {};
for (const model of models) {
	const tokenizer = Tokenizer.fromFile(join(folder(root, model), "tokenizer.json"));
	for (const { bytes, text } of texts) {
		let best = Infinity;
		let count = 0;
		const until = performance.now() + 2000;
		while (performance.now() < until) {
			const start = performance.now();
			const encoding = await tokenizer.encode(text, null, { addSpecialTokens: false });
			best = Math.min(best, performance.now() - start);
			count = encoding.getLength();
		}
		const speed = Buffer.byteLength(text) / best / 1000;
		speeds[`${model}/${bytes}`] = speed;
		console.log(`reference ${model} ${bytes}: ${count} tokens, best ${best.toFixed(2)} ms, ${speed.toFixed(1)} MB/s`);
	}
}
writeFileSync(join(out, "bench.json"), JSON.stringify(speeds));
