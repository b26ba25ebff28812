"use strict";
(() => {
	const all = (selector, from = document) => Array.from(from.querySelectorAll(selector));
	const make = (tag, text, className) => {
		const e = document.createElement(tag);
		e.textContent = text;
		if (className) e.className = className;
		return e;
	};

	const nameOf = (place) => place.dataset.find ?? place.querySelector("summary > b").textContent;

	// Going somewhere unfolds what it is in.
	const reveal = (place) => {
		for (let e = place; e; e = e.parentElement) if (e instanceof HTMLDetailsElement) e.open = true;
	};
	const go = (anchor) => {
		const place = document.getElementById(anchor);
		if (!place) return;
		reveal(place);
		if (location.hash === "#" + anchor) place.scrollIntoView();
		else location.hash = anchor;
		const target = place instanceof HTMLDetailsElement ? place.querySelector("summary") : place;
		target.focus({ preventScroll: true });
	};
	const followHash = () => {
		const place = location.hash && document.getElementById(location.hash.slice(1));
		if (place) reveal(place);
	};
	addEventListener("hashchange", followHash);
	followHash();
	document.addEventListener("click", (event) => {
		const link = event.target.closest('a[href^="#"]:not(.skip)');
		const row = event.target.closest("[data-go]");
		if (link && link.hash.length > 1) {
			event.preventDefault();
			go(link.hash.slice(1));
		} else if (row) {
			go(row.dataset.go);
		}
	});

	// Folding.
	const folds = all("details");
	const toolbar = document.querySelector(".toolbar");
	if (toolbar) toolbar.hidden = false;
	document.getElementById("unfold")?.addEventListener("click", () => folds.forEach((d) => { d.open = true; }));
	document.getElementById("fold")?.addEventListener("click", () => folds.forEach((d) => { d.open = false; }));
	let folded = [];
	addEventListener("beforeprint", () => {
		folded = folds.filter((d) => !d.open);
		folded.forEach((d) => { d.open = true; });
	});
	addEventListener("afterprint", () => folded.forEach((d) => { d.open = false; }));

	// The search is a combobox: typing lists places, arrows choose, Enter goes.
	const find = document.getElementById("find");
	const found = document.getElementById("found");
	if (find) {
		const places = all("[data-find], .bucket").map((e) => {
			const name = nameOf(e);
			return { id: e.id, name, kind: e.dataset.kind ?? "bucket", key: name.toLowerCase() };
		});
		let chosen = -1;
		const close = () => {
			found.hidden = true;
			found.replaceChildren();
			chosen = -1;
			find.setAttribute("aria-expanded", "false");
			find.removeAttribute("aria-activedescendant");
		};
		const choose = (i) => {
			const items = all("li", found);
			if (items.length === 0) return;
			chosen = (i + items.length) % items.length;
			items.forEach((item, j) => item.setAttribute("aria-selected", String(j === chosen)));
			items[chosen].scrollIntoView({ block: "nearest" });
			find.setAttribute("aria-activedescendant", items[chosen].id);
		};
		const list = () => {
			const words = find.value.trim().toLowerCase();
			close();
			if (!words) return;
			const at = (p) => p.key.indexOf(words);
			const hits = places.filter((p) => at(p) >= 0).sort((a, b) => at(a) - at(b) || a.key.length - b.key.length).slice(0, 12);
			for (const [i, p] of hits.entries()) {
				const item = make("li", "");
				item.append(make("span", p.kind, "kindof"), p.name);
				item.id = "found" + i;
				item.role = "option";
				item.dataset.go = p.id;
				item.setAttribute("aria-selected", "false");
				found.append(item);
			}
			if (hits.length === 0) return;
			found.hidden = false;
			find.setAttribute("aria-expanded", "true");
			choose(0);
		};
		find.addEventListener("input", list);
		find.addEventListener("keydown", (event) => {
			if (event.key === "ArrowDown" || event.key === "ArrowUp") {
				event.preventDefault();
				choose(chosen + (event.key === "ArrowDown" ? 1 : -1));
			} else if (event.key === "Enter" && chosen >= 0) {
				event.preventDefault();
				const anchor = all("li", found)[chosen].dataset.go;
				close();
				go(anchor);
			} else if (event.key === "Escape") {
				find.value = "";
				close();
			}
		});
		found.addEventListener("mousedown", (event) => {
			const item = event.target.closest("li");
			if (!item) return;
			event.preventDefault();
			close();
			go(item.dataset.go);
		});
		find.addEventListener("blur", close);
		document.addEventListener("keydown", (event) => {
			const typing = event.target instanceof HTMLInputElement;
			if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) {
				event.preventDefault();
				find.focus();
				find.select();
			}
		});
	}

	// What a request of a length tries: the rule of the router for one model.
	for (const form of all(".ask")) {
		const model = form.closest("section");
		const drawing = model.querySelector(".bands");
		const buckets = all(".bucket", model);
		const rows = all(".row", drawing);
		const [peakLine, inLine] = all(".asked", drawing);
		const answer = form.querySelector(".answer");
		const number = (selector) => {
			const text = form.querySelector(selector).value.replace(/[\s,_]/g, "");
			return /^[0-9]{1,15}$/.test(text) ? Number(text) : null;
		};
		const { left, first, right, low, high } = Object.fromEntries(Object.entries(drawing.dataset).map(([k, v]) => [k, Number(v)]));
		const place = (n) => {
			if (n <= low) return left + ((first - left) * n) / low;
			return Math.min(first + (Math.log2(n / low) / Math.log2(high / low)) * (right - first), right);
		};
		const mark = (line, n) => {
			line.classList.toggle("on", n !== null);
			if (n === null) return;
			line.setAttribute("x1", place(n));
			line.setAttribute("x2", place(n));
		};
		const most = (text) => (text === "" ? Infinity : Number(text));
		const ask = () => {
			const input = number(".ask-in");
			const out = number(".ask-out");
			const peak = input !== null && out !== null ? input + out : null;
			mark(inLine, input);
			mark(peakLine, peak);
			answer.replaceChildren();
			answer.classList.remove("bad");
			if (input === null) {
				answer.textContent = "…";
				rows.forEach((r) => r.classList.remove("out"));
				return;
			}
			let count = 0;
			buckets.forEach((b, i) => {
				const fits = Number(b.dataset.min) <= input && input <= most(b.dataset.max) && (peak ?? input) <= most(b.dataset.context);
				rows[i].classList.toggle("out", !fits);
				if (!fits) return;
				if (count < 6) {
					if (count > 0) answer.append(" → ");
					const link = make("a", nameOf(b));
					link.href = "#" + b.id;
					answer.append(link);
				}
				count++;
			});
			if (count > 6) answer.append(` and ${count - 6} more`);
			if (count === 0) {
				answer.textContent = "no bucket";
				answer.classList.add("bad");
			}
		};
		form.addEventListener("input", ask);
		form.addEventListener("submit", (event) => event.preventDefault());
		form.hidden = false;
	}
})();
