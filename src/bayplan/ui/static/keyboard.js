// Keys: `g` and a letter open a page, other letters act on the page. They do not work in fields, and the browser's own
// keys are left alone.

import { go, to } from "./address.js";
import { PAGES, pathOf } from "./pages.js";

/** All keys, as the page "Keys" lists them. The keys of a page work only there. */
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

/** @param {Record<string, (event: KeyboardEvent) => unknown>} keys that work on all pages */
export function bindEverywhere(keys) {
  for (const [key, act] of Object.entries(keys)) everywhere.set(key, act);
}

/** Bind keys while a page or panel is shown. The last bound handler of a key runs first; if it returns false, the next one runs.
 * @param {Record<string, (event: KeyboardEvent) => unknown>} keys @param {AbortSignal} signal */
export function bind(keys, signal) {
  ofPage = [{ keys, signal }, ...ofPage.filter((part) => !part.signal.aborted)];
}

/** Whether keys go to a field. @param {EventTarget | null} target */
export function isTyping(target) {
  return (
    target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName))
  );
}

/** Close the open menu, and focus its button again. Return whether there is one. */
function closeMenu() {
  const menu = document.querySelector("details.menu[open]");
  if (!(menu instanceof HTMLDetailsElement)) return false;
  menu.open = false;
  menu.querySelector("summary")?.focus();
  return true;
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
    if (event.key === "Escape" && closeMenu()) {
      event.preventDefault();
      return;
    }
    const page = Date.now() - prefix < 1500 ? PAGES.find(([, , { key }]) => key === event.key) : undefined;
    if (page) {
      prefix = 0;
      event.preventDefault();
      go(to(pathOf(page[0])));
      return;
    }
    prefix = event.key === "g" ? Date.now() : 0;
    // Space and Enter press the focused element.
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
