// The only list of pages: their addresses, their modules, and their names in the bar, in the search and in the list of
// keys.

/**
 * The names of a page: `menu` in the bar, `text` elsewhere. `key` opens it after g. `under` is the module of the page whose
 * entry in the bar is marked while this page is open.
 * @typedef {{ menu?: string, text?: string, key?: string, under?: string }} Naming
 */

/**
 * Patterns of addresses below /ui, each with its module below pages/. The first pattern that matches is used.
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

/** The path of a page's address below /ui; "" for the overview. @param {string} pattern */
export const pathOf = (pattern) => pattern.slice(1);

/** The module of the page whose entry in the bar is marked for a page. @param {string} module */
export function entryOf(module) {
  return PAGES.find(([, each, { under }]) => each === module && under)?.[2].under ?? module;
}
