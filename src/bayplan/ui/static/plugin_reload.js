// Reloading of plugin files. Until the server accepts them, the page shows why they were refused.

import { h } from "./dom.js";
import { time } from "./format.js";
import { call } from "./service.js";
import { showNotice } from "./notices.js";
import { failure } from "./loading_states.js";
import { now } from "./stream.js";

/** The last error and its time; null after a successful reload. @type {{ problem: unknown, at: string } | null} */
let lastFailure = null;

/** Reload plugin files. @returns {Promise<boolean>} whether the server accepted them */
export async function reloadPlugins() {
  try {
    await call("POST /plugins/reload", {});
    lastFailure = null;
    showNotice("ok", "Plugin files reloaded; pending pods are retried.");
  } catch (problem) {
    lastFailure = { problem, at: new Date(now()).toISOString() };
  }
  dispatchEvent(new CustomEvent("pluginsreloaded"));
  return !lastFailure;
}

/** Call back after every reload of plugin files. @param {() => void} callback @param {AbortSignal} signal */
export function onPluginsReloaded(callback, signal) {
  addEventListener("pluginsreloaded", callback, { signal });
}

/** The Reload button. Pages are notified of the outcome through `onPluginsReloaded`. */
export function reloadButton() {
  return h(
    "button",
    {
      type: "button",
      class: "button",
      "data-test": "reload",
      title: "Reload plugin files and retry pending pods",
      onclick: () => void reloadPlugins(),
    },
    "Reload plugin files",
  );
}

/** A sentence about the last error; "" after a successful reload. */
export function refusalSentence() {
  return lastFailure ? `The plugin files were refused at ${time(lastFailure.at)}; the earlier plugins stay in use` : "";
}

/** The last error as an element, or null. @param {string} [sentence] a text above it */
export function refusalNote(sentence) {
  return lastFailure
    ? h(
        "section",
        { class: "stack tight-stack", "data-test": "plugins-refused", key: "refused" },
        sentence ? h("p", { class: "strong" }, `${sentence}.`) : null,
        failure(lastFailure.problem),
      )
    : null;
}
