// Notices of completed actions and of errors in the background, below the bar. A success disappears by itself, an error
// stays until it is dismissed.

import { h } from "./dom.js";

const SHOWN_FOR = 5000;

/** @param {"ok" | "wait" | "bad"} tone @param {string} text @param {string} [more] */
export function showNotice(tone, text, more) {
  const container = document.getElementById("notices");
  if (!container) return;
  const line = h(
    "div",
    { class: `notice ${tone}`, "data-test": `notice-${tone}` },
    h("span", { "aria-hidden": "true" }, { ok: "✓", wait: "…", bad: "✕" }[tone]),
    h("span", { class: "grow" }, text, more ? h("span", { class: "notice-more" }, more) : null),
    h("button", { type: "button", class: "chip-x", "aria-label": "Dismiss", onclick: () => line.remove() }, "✕"),
  );
  container.append(line);
  while (container.children.length > 3) container.firstElementChild?.remove();
  if (tone === "ok") setTimeout(() => line.remove(), SHOWN_FOR);
}

let lastAnnouncedAt = 0;
/** Announce a changed verdict to screen readers, at most every ten seconds. @param {string} text */
export function announceToScreenReader(text) {
  const region = document.getElementById("announcements");
  if (!region || region.textContent === text || Date.now() - lastAnnouncedAt < 10_000) return;
  lastAnnouncedAt = Date.now();
  region.textContent = text;
}
