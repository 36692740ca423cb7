// Reloading of plugin files: shows why they were refused until they are accepted.

import { h } from "./dom.js";
import { time } from "./format.js";
import { put } from "./service.js";
import { announce } from "./notices.js";
import { failure } from "./states.js";
import { now } from "./stream.js";

/** Why the files were refused last, and when; null once they were taken. @type {{ problem: unknown, at: string } | null} */
let refused = null;

/** Have the server read the files again. @returns {Promise<boolean>} whether it took them */
export async function reloadPlugins() {
  try {
    await put("POST /plugins/reload", {});
    refused = null;
    announce("ok", "Plugin files reloaded; waiting pods are retried.");
  } catch (problem) {
    refused = { problem, at: new Date(now()).toISOString() };
  }
  dispatchEvent(new CustomEvent("pluginsread"));
  return !refused;
}

/** Call a function when the files were read again, from wherever that was asked. @param {() => void} call @param {AbortSignal} signal */
export function onPluginsRead(call, signal) {
  addEventListener("pluginsread", call, { signal });
}

/** The button that has the files read again; pages hear of the outcome by `onPluginsRead`. */
export function reloadButton() {
  return h(
    "button",
    {
      type: "button",
      class: "button",
      "data-test": "reload",
      title: "Reload plugin files and retry waiting pods",
      onclick: () => void reloadPlugins(),
    },
    "Reload plugin files",
  );
}

/** That the files were refused, in a sentence; "" once they were taken. */
export function refusalSentence() {
  return refused ? `The plugin files were refused at ${time(refused.at)}; the earlier plugins stay in use` : "";
}

/** Why the files were refused, or null. @param {string} [sentence] that stands over it */
export function refusalNote(sentence) {
  return refused
    ? h(
        "section",
        { class: "stack tight-stack", "data-test": "plugins-refused", key: "refused" },
        sentence ? h("p", { class: "strong" }, `${sentence}.`) : null,
        failure(refused.problem),
      )
    : null;
}
