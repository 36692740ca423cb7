// Keys: `g` then a letter for pages, letters for what a page can do. Never inside a field, never what belongs to the browser.

import { go, to } from "./address.js";
import { PAGES, pathOf } from "./pages.js";

/** All keys, as the page "Keys" lists them. A page's own ones work where it offers them. */
export const KEYS = /** @type {[string, string, string][]} */ ([
  ["Everywhere", "/", "search on this page"],
  ["Everywhere", "Ctrl+K", "find an object, a page or an action (p: pods, n: nodes, w: workloads)"],
  ...PAGES.filter(([, , { key }]) => key).map(([, , { key, text }]) => ["Everywhere", `g ${key}`, text?.toLowerCase() ?? ""]),
  ["Everywhere", "y", "copy the link to this view"],
  ["Everywhere", "t", "theme: system, light, dark"],
  ["Everywhere", "c", "create objects"],
  ["Everywhere", "?", "this list"],
  ["Clock", "Space", "pause and resume"],
  ["Clock", ".", "step: one decision"],
  ["Clock", "< >", "slower, faster"],
  ["Tables", "j k ↓ ↑", "next and previous row"],
  ["Tables", "Enter", "open"],
  ["Tables", "Esc u", "back, keeping the filter"],
  ["A pod", "[ ]", "previous and next attempt"],
  ["A pod", "f", "failed nodes only"],
  ["A pod", "v", "raw, normalised, weighted"],
  ["An object", "e", "edit"],
  ["An object", "d", "delete (asks first)"],
  ["Timeline", "w s", "zoom in and out"],
  ["Timeline", "a d", "earlier, later"],
  ["Timeline", "Enter", "open the decision"],
]);

/** @type {Map<string, (event: KeyboardEvent) => unknown>} */
const everywhere = new Map();
/** @type {{ keys: Record<string, (event: KeyboardEvent) => unknown>, signal: AbortSignal }[]} */
let ofPage = [];
let prefix = 0;

/** @param {Record<string, (event: KeyboardEvent) => unknown>} keys of the whole page */
export function bindEverywhere(keys) {
  for (const [key, act] of Object.entries(keys)) everywhere.set(key, act);
}

/** Bind keys while a page or panel is shown. The most recently bound handler of a key runs first. A handler that returns false passes it on.
 * @param {Record<string, (event: KeyboardEvent) => unknown>} keys @param {AbortSignal} signal */
export function bind(keys, signal) {
  ofPage = [{ keys, signal }, ...ofPage.filter((part) => !part.signal.aborted)];
}

/** Whether what is typed belongs to a field. @param {EventTarget | null} target */
export function isTyping(target) {
  return (
    target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName))
  );
}

export function start() {
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented) return;
    if (event.key.toLowerCase() === "k" && (event.ctrlKey || event.metaKey) && !event.shiftKey && !event.altKey) {
      event.preventDefault();
      everywhere.get("palette")?.(event);
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (isTyping(event.target)) {
      if (event.key === "Escape") /** @type {HTMLElement} */ (event.target).blur();
      return;
    }
    if (document.querySelector("dialog[open]")) return;
    const page = Date.now() - prefix < 1500 ? PAGES.find(([, , { key }]) => key === event.key) : undefined;
    if (page) {
      prefix = 0;
      event.preventDefault();
      go(to(pathOf(page[0])));
      return;
    }
    prefix = event.key === "g" ? Date.now() : 0;
    // Space and Enter press what has the focus.
    const presses = event.target instanceof HTMLElement && /^(BUTTON|A|SUMMARY)$/.test(event.target.tagName);
    if (presses && (event.key === " " || event.key === "Enter")) return;
    for (const part of ofPage) {
      const act = !part.signal.aborted && part.keys[event.key];
      if (act && act(event) !== false) {
        event.preventDefault();
        return;
      }
    }
    const act = everywhere.get(event.key);
    if (act && act(event) !== false) event.preventDefault();
  });
}
