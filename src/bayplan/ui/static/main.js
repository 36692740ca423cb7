// The entry point: opens the page of each address (pages are modules that are loaded when first needed), binds the
// keys, and connects to the server.

import { draw, h, stamp } from "./dom.js";
import { go, currentPlace, start as startAddresses, to } from "./address.js";
import { PAGES, pathOf } from "./pages.js";
import { copy } from "./parts.js";
import { trackPending, clearPrefetched } from "./service.js";
import { failure, empty } from "./loading_states.js";
import * as keyboard from "./keyboard.js";
import * as palette from "./palette.js";
import { reloadPlugins } from "./plugin_reload.js";
import * as shell from "./shell.js";
import * as stream from "./stream.js";

/** @typedef {import("./address.js").Place} Place */
/**
 * The arguments of a page, which draws into `root`. `signal` aborts when the user leaves the page.
 * @typedef {{ place: Place, root: HTMLElement, signal: AbortSignal }} Page
 */
/**
 * The exports of a page's module. `open` draws the page, and may return a function to call when only the query changes.
 * @typedef {{ open: (page: Page) => void | ((place: Place) => void) | Promise<void | ((place: Place) => void)> }} PageModule
 */

const root = /** @type {HTMLElement} */ (document.getElementById("page"));
let ending = new AbortController();
let shownPath = "";
/** @type {void | ((place: Place) => void)} */
let update;
/** The scroll position of each path, restored when the user returns to it. @type {Map<string, number>} */
const scrolls = new Map();

/** @param {Place} place */
async function open(place) {
  if (place.path === shownPath && update) {
    update(place);
    return;
  }
  if (shownPath) {
    scrolls.set(shownPath, window.scrollY);
    clearPrefetched();
  }
  shownPath = place.path;
  ending.abort();
  ending = new AbortController();
  const { signal } = ending;
  update = undefined;
  shell.shown(place.page);
  trackPending(1);
  try {
    if (place.page === "nowhere") throw new Error("nowhere");
    const module = /** @type {PageModule} */ (await import(`./pages/${place.page}.js`));
    if (signal.aborted) return;
    const fresh = h("div", { class: `sheet sheet-${place.page}` });
    root.replaceChildren(fresh);
    window.scrollTo(0, 0);
    const updates = await module.open({ place, root: fresh, signal });
    if (signal.aborted) return;
    update = updates;
    // The query changed while the page was loading.
    if (update && currentPlace().query.toString() !== place.query.toString()) update(currentPlace());
    const scroll = scrolls.get(place.path);
    if (scroll) window.scrollTo(0, scroll);
    stamp("page ready", place.page);
  } catch (problem) {
    if (signal.aborted) return;
    if (place.page === "nowhere")
      draw(
        root,
        h(
          "div",
          { class: "sheet" },
          h("h1", { class: "verdict" }, "Page not found"),
          empty(`Nothing is at ${place.path}.`, h("a", { class: "button", href: to("") }, "Overview")),
        ),
      );
    else
      draw(
        root,
        h(
          "div",
          { class: "sheet" },
          h("h1", { class: "verdict" }, "This page could not be shown"),
          failure(problem, () => location.reload()),
        ),
      );
  } finally {
    trackPending(-1);
  }
}

function focusSearch() {
  const field = /** @type {HTMLElement | null} */ (root.querySelector("[data-search]"));
  if (!field) palette.open();
  else field.focus();
}

keyboard.bindEverywhere({
  palette: () => palette.open(),
  "/": focusSearch,
  "?": () => go(to("keys")),
  t: () => shell.nextTheme(),
  y: () => copy(location.href, "Link"),
  c: () => go(to("new")),
  u: () => history.back(),
  Escape: () => history.back(),
  " ": () => shell.pause(),
  ".": () => shell.step("decision"),
  "<": () => shell.faster(-1),
  ">": () => shell.faster(1),
});
palette.offer([
  ...PAGES.flatMap(([pattern, , { text }]) =>
    text ? [{ text, kind: "page", act: () => go(to(pathOf(pattern))) }] : [],
  ),
  { text: "Create objects", kind: "action", act: () => go(to("new")) },
  { text: "Pending pods", kind: "action", act: () => go(to("pods", { status: "waiting" })) },
  { text: "Pause or resume", kind: "action", act: () => shell.pause() },
  { text: "Step one decision", kind: "action", act: () => shell.step("decision") },
  { text: "Reload plugin files", kind: "action", act: async () => (await reloadPlugins()) || go(to("plugins")) },
  { text: "Next theme", kind: "action", act: () => shell.nextTheme() },
]);
document.documentElement.dataset.idle = "true";
shell.start(() => palette.open());
keyboard.start();
startAddresses((place) => void open(place));
stream.start();
