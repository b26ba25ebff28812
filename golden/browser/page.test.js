// The pages of shunt report in a real browser. SHUNT is the command, CHROMIUM the
// browser, SHOTS the folder for pictures; bin/report without it.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import axe from "axe-core";
import puppeteer from "puppeteer-core";

const shunt = process.env.SHUNT;
const chromium = process.env.CHROMIUM;
assert.ok(shunt && chromium, "SHUNT and CHROMIUM must name the command and the browser");

const root = join(dirname(fileURLToPath(import.meta.url)), "../..");
const shots = process.env.SHOTS ?? join(root, "bin/report");
mkdirSync(shots, { recursive: true });

let browser;
before(async () => {
  browser = await puppeteer.launch({
    executablePath: chromium,
    headless: chromium.includes("headless-shell") ? "shell" : true,
    args: ["--no-sandbox", "--disable-dev-shm-usage", "--force-color-profile=srgb"],
  });
});
after(() => browser?.close());

const hostile = `"><script>alert(1)</script><img src=x onerror=alert(2)>'{{.}}`;

// configuration writes one of n buckets, with all that a policy can have.
function configuration(name, n, engines, change = (b) => b) {
  const list = [];
  for (let i = 0; i < engines; i++) {
    list.push({ id: `prefill-${i}`, url: `http://10.1.${i >> 8}.${i & 255}:30000`, role: "prefill", bootstrap_port: 8998, labels: { zone: `z${i % 3}` } });
    list.push({ id: `decode-${i}`, url: `http://10.2.${i >> 8}.${i & 255}:30000`, role: "decode", labels: { zone: `z${i % 3}` } });
  }
  const buckets = [];
  for (let i = 0; i < n; i++) {
    const max = 256 * (i + 1);
    buckets.push(change({
      id: `bucket-of-${max}-tokens`,
      rank: i,
      limits: { min: Math.max(0, max - 2048), max },
      max_context_tokens: 2 * max,
      ttft_ms: 100 + i,
      // Every policy is another one, so that nothing is shared.
      groups: {
        pd: {
          prefill: {
            worker_ids: [`prefill-${i % engines}`, `prefill-${(i + 1) % engines}`],
            policy: { type: "cache_aware", min_matched_tokens: 256 + i, worker_queue_limit: 16, admission: { max_running_requests: 64, max_inflight_requests: 32 } },
          },
          decode: { policy: { type: "power_of_two", choices: 3, admission: { max_kv_tokens: 1000000 + i } } },
          match_labels: ["zone"],
        },
      },
    }, i));
  }
  const config = {
    version: 1,
    models: [{
      id: "big-model", tokenizer: { path: "tokenizer" }, ttft_slo: "slo_first", buckets,
      discovery: { static: { engines: list } },
    }],
  };
  return write(name, config);
}

function write(name, config) {
  const file = join(shots, name + ".json");
  writeFileSync(file, JSON.stringify(config, null, 1));
  return file;
}

// report makes the page of plans or configurations.
function report(name, ...inputs) {
  const file = join(shots, name + ".html");
  execFileSync(shunt, ["report", ...inputs, "-o", file], { cwd: root, stdio: ["ignore", "ignore", "pipe"] });
  return file;
}

// visit opens a page in a colour scheme. What the page does wrong is in problems.
async function visit(file, scheme, use) {
  const page = await browser.newPage();
  const problems = [];
  page.on("console", (m) => problems.push(`console: ${m.text()}`));
  page.on("pageerror", (e) => problems.push(`error: ${e}`));
  page.on("dialog", (d) => { problems.push(`dialog: ${d.message()}`); d.dismiss(); });
  const url = pathToFileURL(file).href;
  page.on("request", (r) => { if (r.url().split("#")[0] !== url) problems.push(`request: ${r.url()}`); });
  await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }, { name: "prefers-reduced-motion", value: "reduce" }]);
  await page.setViewport({ width: 1280, height: 900 });
  await page.goto(url);
  try {
    await use(page, problems);
    assert.deepEqual(problems, [], file);
  } finally {
    await page.close();
  }
}

// accessible runs the rules of axe, contrast among them.
async function accessible(page, what) {
  await page.evaluate(axe.source);
  const { violations } = await page.evaluate(() => axe.run(document, { resultTypes: ["violations"] }));
  const text = violations.map((v) => `${v.id}: ${v.help}\n${v.nodes.slice(0, 3).map((n) => `  ${n.html.slice(0, 200)}\n  ${n.failureSummary}`).join("\n")}`);
  assert.deepEqual(text, [], what);
}

// tabbed presses Tab through the whole page and returns what had the focus.
async function tabbed(page, most) {
  const seen = [];
  for (let i = 0; i < most; i++) {
    await page.keyboard.press("Tab");
    const at = await page.evaluate(() => {
      const e = document.activeElement;
      if (!e || e === document.body) return null;
      const box = e.getBoundingClientRect();
      return { tag: e.tagName.toLowerCase(), text: (e.innerText || e.value || e.getAttribute("aria-label") || "").trim().slice(0, 40), visible: box.width > 0 && box.height > 0, outline: getComputedStyle(e).outlineStyle };
    });
    if (at === null) return seen;
    seen.push(at);
  }
  assert.fail(`the focus does not leave the page after ${most} tabs; last at ${JSON.stringify(seen.at(-1))}`);
}

async function everything(name, file, { axeToo = true, full = true } = {}) {
  assert.ok(statSync(file).size < 1_000_000, `${name} has ${statSync(file).size} bytes`);
  for (const scheme of ["light", "dark"]) {
    await visit(file, scheme, async (page) => {
      await page.screenshot({ path: join(shots, `${name}-${scheme}.png`), fullPage: full });
      if (axeToo) {
        await page.evaluate(() => document.getElementById("unfold")?.click());
        await accessible(page, `${name}, ${scheme}`);
      }
    });
  }
  await visit(file, "dark", async (page) => {
    await page.setViewport({ width: 390, height: 844 });
    const wide = await page.evaluate(() => document.documentElement.scrollWidth);
    assert.ok(wide <= 390, `${name} is ${wide} wide on a phone`);
    await page.screenshot({ path: join(shots, `${name}-phone.png`), fullPage: full });
  });
  await visit(file, "dark", async (page) => {
    const pdf = await page.pdf({ format: "A4" });
    assert.ok(pdf.length > 5000);
    writeFileSync(join(shots, `${name}.pdf`), pdf);
    await page.emulateMediaType("print");
    await page.evaluate(() => dispatchEvent(new Event("beforeprint")));
    const folded = await page.evaluate(() => document.querySelectorAll("details:not([open])").length);
    assert.equal(folded, 0, `${name}: folded in print`);
    const back = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    assert.equal(back, "rgb(255, 255, 255)", `${name}: paper is white`);
    await page.setViewport({ width: 800, height: 1100 });
    await page.screenshot({ path: join(shots, `${name}-print.png`), fullPage: full });
  });
}

for (const name of ["plain", "pd-two-buckets", "pd-labels", "cache-aware-pd"]) {
  test(`the example ${name}`, async () => {
    const file = report(name, `examples/${name}/routing.yaml`);
    await everything(name, file);
    await visit(file, "light", async (page) => {
      const seen = await tabbed(page, 400);
      assert.match(seen[0].text, /Skip/);
      assert.deepEqual(seen.filter((s) => !s.visible || s.outline === "none"), []);
      const tags = new Set(seen.map((s) => s.tag));
      for (const tag of ["a", "input", "button", "summary"]) assert.ok(tags.has(tag), `no ${tag} has the focus`);
    });
  });
}

test("the search and the question by keyboard", async () => {
  const file = report("pd-two-buckets", "examples/pd-two-buckets/routing.yaml");
  await visit(file, "light", async (page) => {
    await page.click("#fold");
    await page.keyboard.press("/");
    assert.equal(await page.evaluate(() => document.activeElement.id), "find");
    await page.keyboard.type("long");
    await page.screenshot({ path: join(shots, "search.png") });
    await page.keyboard.press("Enter");
    const at = await page.evaluate(() => {
      const d = document.activeElement.closest("details");
      return { open: d.open, name: d.querySelector("summary > b").textContent };
    });
    assert.deepEqual(at, { open: true, name: "long-context" });
    const ask = async (input, out) => {
      for (const [selector, value] of [[".ask-in", input], [".ask-out", out]]) {
        await page.$eval(selector, (e) => { e.value = ""; });
        await page.focus(selector);
        await page.keyboard.type(value || " ");
      }
      return page.$eval(".answer", (e) => e.innerText);
    };
    const want = (input, peak) => explain(input, peak);
    for (const [input, out] of [[1, ""], [100, "100"], [4096, ""], [4097, ""], [4096, "4096"], [4096, "4097"], [131072, ""], [131073, ""], [200000, "1"]]) {
      const expected = want(input, out === "" ? null : input + Number(out));
      assert.equal(await ask(String(input), out), expected, `${input} and ${out}`);
    }
    await ask("4096", "4097");
    await page.screenshot({ path: join(shots, "question.png") });
  });
});

// explain is what the router itself tries, from the plan.
function explain(input, peak) {
  const plan = join(shots, "two.plan.json");
  if (!existsSync(plan)) execFileSync(shunt, ["compile", "examples/pd-two-buckets/routing.yaml", "-o", plan], { cwd: root });
  const model = JSON.parse(readFileSync(plan, "utf8")).body.models[0];
  const breakpoint = model.breakpoints.findLast((b) => b.from <= input);
  const names = breakpoint.runs.flatMap(([first, last]) => model.buckets.slice(first, last + 1))
    .filter((b) => b.max_context_tokens === undefined || (peak ?? input) <= b.max_context_tokens).map((b) => b.id);
  return names.join(" → ") || "no bucket";
}

test("a plan of 500 buckets", async () => {
  const config = configuration("large", 500, 64);
  const file = report("large", config);
  await everything("large", file, { axeToo: false, full: false });
  await visit(file, "light", async (page) => {
    await page.keyboard.press("/");
    await page.keyboard.type("bucket-of-64000");
    await page.keyboard.press("Enter");
    assert.equal(await page.evaluate(() => document.activeElement.closest("details").querySelector("summary > b").textContent), "bucket-of-64000-tokens");
    await page.screenshot({ path: join(shots, "large-bucket.png") });
  });
});

test("names that attack the page", async () => {
  const config = write("hostile", {
    version: 1,
    models: [{
      id: hostile,
      discovery: { static: { engines: [{ id: hostile, url: "http://10.0.0.1:1", role: "plain", labels: { [hostile]: hostile } }, { id: "javascript:alert(3)", url: "http://10.0.0.2:1", role: "plain" }] } },
      buckets: [{ id: hostile, groups: { plain: { labels: { [hostile]: hostile } } } }, { id: "x".repeat(3000), groups: { plain: { worker_ids: [] } } }, { id: "</style></script>&#x3c;", limits: { min: 5 }, groups: { plain: {} } }],
    }],
  });
  const file = report("hostile", config);
  await everything("hostile", file);
  await visit(file, "light", async (page) => {
    assert.equal(await page.evaluate(() => document.querySelectorAll("script").length), 1);
    assert.equal(await page.evaluate(() => document.querySelectorAll("img").length), 0);
    await page.keyboard.press("/");
    await page.keyboard.type("script");
    await page.keyboard.press("Enter");
  });
});

test("the policy of the page forbids what is not its own", async () => {
  const file = report("plain", "examples/plain/routing.yaml");
  const attacked = join(shots, "attacked.html");
  writeFileSync(attacked, readFileSync(file, "utf8").replace("</main>", `<img src="http://127.0.0.1:9/x.png"><script>window.attacked = true</script></main>`));
  await visit(attacked, "light", async (page, problems) => {
    assert.equal(await page.evaluate(() => window.attacked), undefined);
    assert.equal(problems.filter((p) => p.includes("Content Security Policy")).length, 2, problems.join("\n"));
    problems.length = 0;
  });
});

test("a page without its script has everything", async () => {
  const file = report("cache-aware-pd", "examples/cache-aware-pd/routing.yaml");
  const page = await browser.newPage();
  await page.setJavaScriptEnabled(false);
  await page.goto(pathToFileURL(file).href);
  const text = await page.$eval("main", (e) => e.textContent);
  for (const word of ["worker_queue_limit", "max_running_requests", "session_aware", "10.0.0.12", "Prefix", "default"]) assert.ok(text.toLowerCase().includes(word.toLowerCase()), word);
  await page.close();
});

test("the comparison of two plans", async () => {
  const one = configuration("before", 8, 4);
  const two = configuration("after", 8, 4, (b, i) => {
    if (i === 3) b.limits.max += 256;
    if (i === 7) b.limits.max -= 100;
    if (i === 5) b.groups.pd.decode.policy.choices = 4;
    return b;
  });
  await everything("difference", report("difference", one, two));
  await everything("same", report("same", one, one));
  await everything("large-difference", report("large-difference", configuration("large", 500, 64), configuration("large-after", 500, 64, (b, i) => {
    b.max_context_tokens += i % 2;
    return b;
  })), { axeToo: false, full: false });
});
