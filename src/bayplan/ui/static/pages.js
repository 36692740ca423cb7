// The pages: their addresses, the modules that show them, and their names in the bar, the search and the keys. No other list has them.

/**
 * How a page is called: `menu` in the bar, `text` elsewhere; `key` opens it after g; `under` is the module of the page whose entry in
 * the bar stands for it.
 * @typedef {{ menu?: string, text?: string, key?: string, under?: string }} Naming
 */

/**
 * Patterns of addresses below the page's root, each with the module under pages/ that shows it; the first that matches counts.
 * @type {[pattern: string, module: string, naming: Naming][]}
 */
export const PAGES = [
  ["/", "overview", { menu: "Overview", text: "Overview", key: "o" }],
  ["/nodes", "nodes", { menu: "Nodes", text: "Nodes", key: "n" }],
  ["/nodes/:name", "node", { under: "nodes" }],
  ["/pods", "pods", { menu: "Pods", text: "Pods", key: "p" }],
  ["/pods/:namespace/:name", "pod", { under: "pods" }],
  ["/queue", "queue", { menu: "Queue", text: "Queue", key: "q" }],
  ["/timeline", "timeline", { menu: "Timeline", text: "Timeline", key: "t" }],
  ["/what-if", "what_if", { menu: "What if", text: "What if", key: "w" }],
  ["/unblock", "unblock", { menu: "Unblock", text: "Unblock", key: "u" }],
  ["/capacity", "capacity", { menu: "Capacity", text: "Capacity" }],
  ["/config", "config", { menu: "Config", text: "Configuration", key: "c" }],
  ["/config/:view", "config", {}],
  ["/plugins", "plugins", { text: "Plugins", under: "config" }],
  ["/compare", "compare", { menu: "Compare", text: "Compare", key: "x" }],
  ["/compare/:namespace/:name", "compare_pod", { under: "compare" }],
  ["/objects", "objects", { menu: "Objects", text: "Objects" }],
  ["/objects/:group/:version/:plural", "objects", {}],
  ["/objects/:group/:version/:plural/:namespace/:name", "object", { under: "objects" }],
  ["/workloads", "objects", {}],
  ["/workloads/:kind/:namespace/:name", "object", { under: "objects" }],
  ["/new", "create", { under: "objects" }],
  ["/sources", "sources", { menu: "Sources", text: "Sources" }],
  ["/settings", "settings", { text: "Settings" }],
  ["/keys", "keys", { text: "Keys" }],
];

/** The part of a page's address behind the root: "" for the overview. @param {string} pattern */
export const pathOf = (pattern) => pattern.slice(1);

/** The module of the entry in the bar that stands for a page. @param {string} module */
export function entryOf(module) {
  return PAGES.find(([, each, { under }]) => each === module && under)?.[2].under ?? module;
}
