// Notices of completed actions and of errors in the background: one line under the bar. Success disappears by itself,
// an error stays until it is dismissed.

import { h } from "./dom.js";

const SHOWN_FOR = 5000;

/** @param {"ok" | "wait" | "bad"} tone @param {string} text @param {string} [more] */
export function announce(tone, text, more) {
  const place = document.getElementById("notices");
  if (!place) return;
  const line = h(
    "div",
    { class: `notice ${tone}`, "data-test": `notice-${tone}` },
    h("span", { "aria-hidden": "true" }, { ok: "✓", wait: "…", bad: "✕" }[tone]),
    h("span", { class: "grow" }, text, more ? h("span", { class: "notice-more" }, more) : null),
    h("button", { type: "button", class: "chip-x", "aria-label": "Dismiss", onclick: () => line.remove() }, "✕"),
  );
  place.append(line);
  while (place.children.length > 3) place.firstElementChild?.remove();
  if (tone === "ok") setTimeout(() => line.remove(), SHOWN_FOR);
}

let lastSaid = 0;
/** Say a change of the verdict to a screen reader, at most every ten seconds. @param {string} text */
export function say(text) {
  const place = document.getElementById("said");
  if (!place || place.textContent === text || Date.now() - lastSaid < 10_000) return;
  lastSaid = Date.now();
  place.textContent = text;
}
