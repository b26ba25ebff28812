// The official OpenAI client for JavaScript against a running router.
// SHUNT_URL and SHUNT_MODEL say where it is and what it serves.
import assert from "node:assert/strict";
import { test } from "node:test";
import OpenAI from "openai";

const url = process.env.SHUNT_URL;
const model = process.env.SHUNT_MODEL;
assert.ok(url && model, "SHUNT_URL and SHUNT_MODEL must be set");

const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: "none", maxRetries: 0, timeout: 30_000 });
const messages = [{ role: "user", content: "Say something." }];

// buffered returns the complete answer to the common prompt.
async function buffered() {
  return client.chat.completions.create({ model, messages, max_tokens: 10 });
}

test("the models list has the model", async () => {
  const ids = [];
  for await (const m of client.models.list()) ids.push(m.id);
  assert.ok(ids.includes(model), `${model} is not among ${ids}`);
});

test("a buffered chat is complete", async () => {
  const answer = await buffered();
  const [choice] = answer.choices;
  assert.equal(choice.message.role, "assistant");
  assert.equal(choice.message.content.trim().split(/\s+/).length, 10);
  assert.equal(choice.finish_reason, "length");
  assert.equal(answer.usage.completion_tokens, 10);
  assert.equal(answer.usage.total_tokens, answer.usage.prompt_tokens + 10);
});

test("a streamed chat says the same, token by token, and ends", async () => {
  const stream = await client.chat.completions.create({
    model,
    messages,
    max_tokens: 10,
    stream: true,
    stream_options: { include_usage: true },
  });
  let content = "";
  let tokens = 0;
  let usage = null;
  const finishes = [];
  for await (const chunk of stream) {
    for (const choice of chunk.choices) {
      if (choice.delta.content) tokens++;
      content += choice.delta.content ?? "";
      if (choice.finish_reason) finishes.push(choice.finish_reason);
    }
    if (chunk.usage) usage = chunk.usage;
  }
  assert.equal(tokens, 10);
  assert.deepEqual(finishes, ["length"]);
  assert.equal(usage.completion_tokens, 10);
  assert.equal(content, (await buffered()).choices[0].message.content);
});

test("a stream that is left early does not disturb the next request", async () => {
  const stream = await client.chat.completions.create({ model, messages, stream: true });
  for await (const chunk of stream) {
    assert.ok(chunk.id);
    break;
  }
  assert.equal((await buffered()).usage.completion_tokens, 10);
});

test("an unknown model is a NotFoundError", async () => {
  await assert.rejects(client.chat.completions.create({ model: "no-such-model", messages }), (error) => {
    assert.ok(error instanceof OpenAI.NotFoundError, `${error}`);
    assert.equal(error.status, 404);
    assert.equal(error.code, "model_not_found");
    assert.equal(error.type, "invalid_request_error");
    return true;
  });
});

test("a chat that fits no bucket is a BadRequestError, streamed or not", async () => {
  const long = [{ role: "user", content: "lorem ".repeat(150_000) }];
  for (const stream of [false, true]) {
    await assert.rejects(client.chat.completions.create({ model, messages: long, stream }), (error) => {
      assert.ok(error instanceof OpenAI.BadRequestError, `${error}`);
      assert.equal(error.status, 400);
      assert.equal(error.code, "bad_request");
      assert.match(error.message, /no bucket/);
      return true;
    });
  }
});
