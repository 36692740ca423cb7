// The menu "What if" of a node or a workload: links to changes to try.

import { h } from "./dom.js";
import { to } from "./address.js";

/** @param {[text: string, change: string][]} entries */
export function whatIfMenu(entries) {
  return h(
    "details",
    { class: "menu", "data-test": "what-if-menu" },
    h("summary", { class: "button" }, "What if"),
    h(
      "div",
      { class: "menu-list" },
      entries.map(([text, change]) => h("a", { key: change, href: to("what-if", { changes: change }) }, text)),
    ),
  );
}

/** @param {string} node */
export function nodeMenu(node) {
  return whatIfMenu([
    ["it is drained", `drain=${node}`],
    ["it is removed", `remove-nodes=${node}`],
    ["it is cordoned", `cordon=${node}`],
    ["there is one more like it", `add-nodes=1:like=${node}`],
  ]);
}

/** @param {string} target @param {number} pods the number of its pods */
export function workloadMenu(target, pods) {
  return whatIfMenu([
    [`it has ${pods * 2 || 1} pods`, `scale=${target}:${pods * 2 || 1}`],
    ["it restarts", `restart=${target}`],
    ["it is deleted", `delete=${target}`],
  ]);
}
