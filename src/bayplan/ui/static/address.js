// Addresses of the pages. Filters, sort order, tab, attempt and time are part of the address, so that it can be shared
// as a link.

import { stamp } from "./dom.js";
import { PAGES } from "./pages.js";

export const BASE = "/ui";

/**
 * A parsed address: the page, the names in its path, and the query.
 * @typedef {{ page: string, names: Record<string, string>, query: URLSearchParams, path: string }} Place
 */

/** Parse an address. @param {{ pathname: string, search: string }} url @returns {Place} */
export function parse(url) {
  const path = url.pathname.replace(/^\/ui/, "").replace(/\/+$/, "") || "/";
  const parts = path.split("/");
  const query = new URLSearchParams(url.search);
  for (const [pattern, page] of PAGES) {
    const names = match(pattern.split("/"), parts);
    if (names) return { page, names, query, path };
  }
  return { page: "nowhere", names: {}, query, path };
}

/** @param {string[]} pattern @param {string[]} parts @returns {Record<string, string> | null} */
function match(pattern, parts) {
  if (pattern.length !== parts.length) return null;
  /** @type {Record<string, string>} */
  const names = {};
  for (const [index, word] of pattern.entries()) {
    if (word.startsWith(":")) {
      try {
        names[word.slice(1)] = decodeURIComponent(parts[index]);
      } catch {
        return null;
      }
    } else if (word !== parts[index]) return null;
  }
  return names;
}

/**
 * Return the address of a page, as in `to("pods", ns, name, { tab: "yaml" })`. Empty values are left out.
 * @param {string} page @param {...(string | Record<string, string | number | null | undefined | false>)} parts
 */
export function to(page, ...parts) {
  const query = new URLSearchParams();
  let path = `${BASE}/${page}`;
  for (const part of parts) {
    if (typeof part === "string") path += `/${encodeURIComponent(part)}`;
    else {
      for (const [name, value] of Object.entries(part)) {
        if (value !== null && value !== undefined && value !== false && value !== "") query.set(name, String(value));
      }
    }
  }
  const text = query.toString();
  return text ? `${path}?${text}` : path;
}

/** The address of a pod's page. @param {{ namespace: string, name: string }} pod @param {Record<string, string>} [query] */
export const podAddress = (pod, query = {}) => to("pods", pod.namespace, pod.name, query);

/** Whether a compared run is on another server; such a run is named by a URL. @param {string} run */
export const isServer = (run) => /^https?:\/\//.test(run);

/**
 * The address of a pod's page in a run: now, a fork, or another server.
 * @param {{ namespace: string, name: string }} pod @param {string} run
 */
export function runPodAddress(pod, run) {
  if (isServer(run)) {
    // A proxy may serve the other server below a path.
    const { origin, pathname } = new URL(run);
    return origin + pathname.replace(/\/+$/, "") + podAddress(pod);
  }
  return podAddress(pod, run === "now" ? {} : { run });
}

/** The address of a node's page. @param {string} name */
export const nodeAddress = (name) => to("nodes", name);

/** @type {(place: Place) => void} */
let follow = () => {};
let current = parse(location);

/** The current place. */
export function currentPlace() {
  return current;
}

/**
 * Open the place of a clicked link, or of the back and forward buttons.
 * @param {(place: Place) => void} open called with each place
 */
export function start(open) {
  follow = open;
  addEventListener("popstate", arrive);
  document.addEventListener("click", (event) => {
    const link = event.target instanceof Element ? event.target.closest("a[href]") : null;
    if (!(link instanceof HTMLAnchorElement) || link.target || link.hasAttribute("download")) return;
    if (event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey)
      return;
    if (
      link.origin !== location.origin ||
      !/^\/ui(\/|$)/.test(link.pathname) ||
      link.getAttribute("href")?.startsWith("#")
    )
      return;
    event.preventDefault();
    go(link.href);
  });
  arrive();
}

function arrive() {
  current = parse(location);
  follow(current);
}

/** Go to an address, with a new history entry. @param {string} address */
export function go(address) {
  stamp("go", address);
  if (new URL(address, location.href).href !== location.href) history.pushState(null, "", address);
  arrive();
}

/**
 * Change the query of the current place; null, false or "" removes a key.
 * @param {Record<string, string | number | null | undefined | boolean>} changes
 * @param {{ push?: boolean, silent?: boolean }} [how] push: add a history entry; silent: do not notify the page
 */
export function change(changes, how = {}) {
  const query = new URLSearchParams(current.query);
  for (const [name, value] of Object.entries(changes)) {
    if (value === null || value === undefined || value === "" || value === false) query.delete(name);
    else query.set(name, String(value));
  }
  const text = query.toString();
  const address = location.pathname + (text ? `?${text}` : "");
  if (address === location.pathname + location.search) return;
  if (how.push) history.pushState(null, "", address);
  else history.replaceState(history.state, "", address);
  if (how.silent) current = parse(location);
  else arrive();
}
