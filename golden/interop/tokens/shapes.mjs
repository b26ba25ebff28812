// The conversations that the templates are rendered with: every combination of a
// beginning, some turns and an ending, with and without tools.

const system = { role: "system", content: "You are a helpful assistant.\nBe brief — “très” brief." };
const user = { role: "user", content: "What's the weather in São Paulo? 你好 👩‍👩‍👧‍👦 <b>&amp;</b>" };
const odd = { role: "user", content: "  leading and trailing \n\n" };
const assistant = { role: "assistant", content: "It is sunny.\n" };
const thinking = { role: "assistant", content: "<think>\nLet me think.\n</think>\n\nIt is sunny." };
const reasoned = { role: "assistant", reasoning_content: "\nHm, \"quotes\" and \\slashes\\.\n", content: "It is sunny." };
const call = (args, content) => ({
	role: "assistant",
	content,
	tool_calls: [
		{ id: "c1", type: "function", function: { name: "get_weather", arguments: args } },
		{ id: "c2", type: "function", function: { name: "get_time", arguments: args } },
	],
});
const objectCall = call({ city: "São Paulo", days: 3, nested: { b: [1, 2.5, null, true], a: "<&'\"\u0007\u2028" } }, "");
const stringCall = call('{"city": "São Paulo", "days": 3}', "");
const nullCall = call('{"city": "Paris"}', null);
const one = { role: "assistant", content: null, tool_calls: [{ id: "c9", type: "function", function: { name: "f", arguments: "{}" } }] };
const result = { role: "tool", tool_call_id: "c1", content: '{"temp": 21.5, "unit": "°C"}' };
const second = { role: "tool", tool_call_id: "c2", content: "12:00" };

const tools = [
	{ type: "function", function: { name: "get_weather", description: "Weather\nof a \"city\" <é>", parameters: { type: "object", properties: { city: { type: "string", description: "The city's name" }, days: { type: "integer", minimum: 1 } }, required: ["city"], additionalProperties: false } } },
	{ type: "function", function: { name: "get_time", parameters: { type: "object", properties: {} } } },
];

const begins = { none: [], system: [system], two: [system, { role: "system", content: "Second." }], empty: [{ role: "system", content: "" }] };
const turns = {
	single: [user],
	odd: [odd],
	multi: [user, assistant, odd],
	long: [user, assistant, user, thinking, user, assistant, odd, reasoned, user],
	objects: [user, objectCall, result, second],
	strings: [user, stringCall, result, second, assistant, user],
	nulls: [user, nullCall, result, second],
	one: [user, one, second, user],
	thinking: [user, thinking],
	reasoned: [user, reasoned, user, reasoned],
	answered: [user, objectCall, result, reasoned],
	toolText: [{ role: "user", content: "<tool_response>\nx\n</tool_response>" }, assistant, user],
	nothing: [],
};
const settings = {
	prompt: { add_generation_prompt: true },
	plain: { add_generation_prompt: false },
	tools: { add_generation_prompt: true, tools },
	noThinking: { add_generation_prompt: true, enable_thinking: false },
	thinkingTools: { add_generation_prompt: true, enable_thinking: true, tools },
	noTools: { add_generation_prompt: true, tools: null, documents: null },
};

export function shapes() {
	const out = [];
	for (const [b, first] of Object.entries(begins))
		for (const [t, rest] of Object.entries(turns))
			for (const [s, more] of Object.entries(settings)) out.push({ name: `${b}/${t}/${s}`, vars: { messages: [...first, ...rest], ...more } });
	return out;
}
