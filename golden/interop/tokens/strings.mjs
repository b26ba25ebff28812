// The strings whose ids are compared: 2,000 mixed ones, and every code point of
// Unicode in contexts in which its class or its normalization shows.
import { random } from "./models.mjs";

const words = "the quick brown fox router prefill decode engine don't it's we'LL they'VE I'm you'd RE're internationalization café naïve Ünïcödé straße ΑΘΗΝΑ Москва תל־אביב القاهرة हिन्दी ไทย 日本語 中文字符 한국어 tokenizer_v2 HTTP/1.1 x86_64 3.14159 1,000,000 0x1F600 snake_case CamelCase kebab-case https://example.com/a?b=c&d=e#f user@example.org".split(" ");
const cjk = "的一是不了人我在有他这中大来上国和说们为子你地出道也时年得就那要下以生会自着去之过家学对可她里后小么心多天而能好都然没日于起还发成事只作当想看文无开手十用主行方又如前所本见经头面公同三已老从动两长知民样现分将外但身些与高意进把法此实回二理美点月明其种声全工己话儿者向情部正名定女问力机给等几很业最间新什打便位因重被走电四第门相次东政海口使教西再平真听世气信北少关并内加化由却代军产入先山五太水万市眼体别处总才场师书比住员九笑性通目华报立马命张活难神数件安表原车白应路期叫死常提感金何更反合放做系计或司利受光王果亲界及今京务制解各任至清物台象记边共风战干接它许八特觉望直服毛林题建南度统色字请交爱让认算论百吃义科怎元社术结六功指思非流每青管夫连远资队跟带花快条院变联言权往展该领传近留红治决周保达办运武半候七必城父强步完革深区即求品士转量空甚众技轻程告江语英基派满式李息写呢识极令黄德收脸钱党倒未持取设始版双历越史商千片容研像找友孩站广改议形委早房音火际则首单据导影失拿网香似斯专石若兵弟谁校读志飞观争究包组造落视济喜离虽坏兴切";
const kana = "あいうえおかきくけこさしすせそたちつてとなにぬねのはひふへほまみむめもやゆよらりるれろわをんゔゕゖ゙゚゛゜ゝゞゟ゠アイウエオカキクケコサシスセソタチツテトヷヸヹヺ・ーヽヾヿ";
const emoji = ["😀", "👩‍👩‍👧‍👦", "🏳️‍🌈", "👍🏽", "🇩🇪🇫🇷", "1️⃣", "❤️‍🔥", "🧑🏿‍💻", "☎︎", "🏴󠁧󠁢󠁥󠁮󠁧󠁿", "🫠", "🪿"];
const controls = ["\u0000", "\u0001", "\u0007", "\b", "\u000b", "\f", "\u001b[31m", "\u007f", "\u0085", "\u00a0", "\u00ad", "\u200b", "\u200d", "\u2028", "\u2029", "\u202e", "\ufeff", "\ufffd", "\u3000", "\ue000", "\u{10ffff}", "\ufffe"];
const spaces = [" ", "  ", "   ", "\t", "\n", "\r\n", "\r", "\n\n", " \n", "\n ", "\t\t", " \t ", "\u00a0", "\u3000", "\u2009", "        ", "\n\n\n   \n"];
const code = [
	"func (r *Reader) Next() (tok Token, err error) {\n\tif r.err != nil {\n\t\treturn tok, r.err\n\t}\n\treturn r.scan(), nil\n}\n",
	"def tokens(xs: list[int]) -> dict[str, int]:\n    return {f'{x:02x}': x**2 for x in xs if x % 3 == 0}\n",
	"<div class=\"a b\" data-x='1'>\n  <!-- c --><p>&nbsp;&lt;x&gt;</p>\n</div>",
	"SELECT a.id, COUNT(*) AS n FROM t1 a LEFT JOIN t2 b ON a.id=b.id WHERE b.x IS NULL GROUP BY 1 HAVING COUNT(*)>=10;",
	"#include <stdio.h>\nint main(void){for(int i=0;i<10;++i)printf(\"%d\\n\",i);return 0;}",
	"const f = async ({a, b = 1, ...rest}) => { await g?.(a ?? `x${b}`); };\n\n\n// end\n",
	"match x { Some(n) if n > 0 => println!(\"{n:?}\"), _ => unreachable!() }",
	"\\documentclass{article}\\begin{document}$\\sum_{i=1}^{n} x_i^2 \\leq \\infty$\\end{document}",
];
const calls = [
	'<tool_call>\n{"name": "get_weather", "arguments": {"city": "São Paulo", "days": 3}}\n</tool_call>',
	'{"type":"function","function":{"name":"search","parameters":{"type":"object","properties":{"q":{"type":"string"}},"required":["q"]}}}',
	"<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>f\n```json\n{}\n```<｜tool▁call▁end｜>",
	'<|python_tag|>{"name": "f", "parameters": {"x": [1, 2, null, true]}}<|eom_id|>',
	"<think>\nLet me see.\n</think>\n\nAnswer",
];

function kinds(specials) {
	return {
		prose: (r) => Array.from({ length: 1 + r.below(30) }, () => r.one(words)).join(r.one([" ", " ", " ", "  ", ", ", "\n"])),
		code: (r) => r.one(code) + r.one(spaces) + r.one(code).slice(r.below(20)),
		cjk: (r) => Array.from({ length: 1 + r.below(80) }, () => r.one([r.one([...cjk]), r.one([...cjk]), r.one([...kana]), r.one(["，", "。", "「", "」", "1", "23", "456", "7890", " ", "A"])])).join(""),
		emoji: (r) => Array.from({ length: 1 + r.below(20) }, () => r.one([r.one(emoji), r.one(words), " "])).join(""),
		forms: (r) => Array.from({ length: 1 + r.below(12) }, () => r.one(words).normalize(r.one(["NFC", "NFD", "NFKC", "NFKD"]))).join(" ") + r.one(["가각힣".normalize("NFD"), "e\u0301\u0323", "a\u0323\u0301", "\u0958\u0929\u0344\u1e9b\u0323", "ậ".normalize("NFD"), "Å Å Å".normalize("NFD"), "\u1100\u1161\u11a8\u11a8"]),
		marks: (r) => "x" + Array.from({ length: 1 + r.below(60) }, () => String.fromCodePoint(r.one([0x300, 0x301, 0x316, 0x323, 0x327, 0x334, 0x345, 0x5b0, 0x64b, 0x94d, 0x3099, 0xe48, 0xf71, 0xf72, 0x1d165, 0x11357]))).join("") + "y",
		runs: (r) => r.one(["a", " ", "\n", "=", "=-", "ab", "!", "0", "12", "的", "\r\n", "\t", ".", "é", "😀", "'s", "_", " a", "  \n"]).repeat(1 + r.below(r.one([20, 200, 2000]))),
		specials: (r) => Array.from({ length: 1 + r.below(15) }, () => r.one([r.one(specials), r.one(specials), r.one(specials).slice(0, -1), r.one(specials).slice(1), "<", "<<", "<|", "|>", r.one(words), " ", "\n"])).join(""),
		calls: (r) => r.one(calls) + r.one(spaces) + r.one(calls),
		controls: (r) => Array.from({ length: 1 + r.below(20) }, () => r.one([r.one(controls), r.one(words), r.one(spaces)])).join(""),
		spaces: (r) => Array.from({ length: 1 + r.below(20) }, () => r.one([r.one(spaces), r.one(spaces), r.one(words), "x", "1", "."])).join(""),
		contractions: (r) => Array.from({ length: 1 + r.below(10) }, () => r.one(["it", "X", "é", "1", "", "的", "!"]) + r.one(["'", "’", "''", "'"]) + r.one(["s", "S", "t", "re", "RE", "rE", "ve", "m", "ll", "LL", "d", "ſ", "x", "lx", "é"])).join(r.one(["", " "])),
		digits: (r) => Array.from({ length: 1 + r.below(10) }, () => r.one(["1234567890".slice(0, 1 + r.below(10)), "٣٤٥", "१२३४", "½¾", "Ⅷ", "²³", "①②③④", "𝟘𝟙𝟚", "1,234.56", "1e-9"])).join(r.one(["", " ", "a", "-"])),
		bmp: (r) => Array.from({ length: 1 + r.below(60) }, () => point(r, 0x10000)).join(""),
		astral: (r) => Array.from({ length: 1 + r.below(60) }, () => r.one([point(r, 0x20000), point(r, 0x110000), point(r, 0x3000), " ", "a"])).join(""),
		ascii: (r) => Array.from({ length: 1 + r.below(120) }, () => String.fromCharCode(r.below(128))).join(""),
	};
}

function point(r, below) {
	let c = r.below(below);
	if (c >= 0xd800 && c < 0xe000) c -= 0x3000;
	return String.fromCodePoint(c);
}

export function mixed(specials) {
	const r = random(20261130);
	const make = Object.values(kinds(specials));
	const out = ["", " ", "\n", "a", "<", "'", "\u0301"];
	while (out.length < 2000) {
		const s = out.length % 10 === 0 ? make[out.length % make.length](r) + r.one(make)(r) + r.one(make)(r) : make[out.length % make.length](r);
		if (s.isWellFormed?.() ?? !/[\ud800-\udfff]/u.test(s)) out.push(s);
	}
	return out;
}

// Every code point of the planes in use, 256 to a string, and a few of the rest.
export function everything() {
	const out = [];
	for (let from = 0; from < 0x110000; from += 256) {
		const inUse = from < 0x33480 || (from >= 0xe0000 && from < 0xe0200);
		if ((!inUse && from % 0x10000 !== 0) || (from >= 0xd800 && from < 0xe000)) continue;
		let s = "";
		for (let c = from; c < from + 256; c++) {
			const x = String.fromCodePoint(c);
			s += `a${x}b ${x}c1${x}2\u0301${x}\u0323.${x}${x}\n`;
		}
		out.push(s);
	}
	return out;
}

// A conversation-like text without repeats: mostly prose and code, some CJK.
export function workload(bytes) {
	const r = random(42);
	const make = kinds(["<|im_end|>"]);
	const weighted = [make.prose, make.prose, make.prose, make.code, make.code, make.calls, make.cjk, make.digits, make.contractions, make.emoji];
	const invent = () => Array.from({ length: 3 + r.below(9) }, () => r.one([..."etaoinshrdlucmfwypvbgk"])).join("");
	let out = "";
	while (out.length < bytes) out += r.one(weighted)(r) + " " + invent() + " " + invent() + "\n";
	return out.slice(0, bytes).toWellFormed?.() ?? out.slice(0, bytes).replace(/[\ud800-\udbff]$/, "");
}
