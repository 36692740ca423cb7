// Names that are longer than their place: node and pod names as clouds generate them. What is left out is hidden by the style
// sheet, not removed, so that copying a row and searching in the page still find the whole name.

import { h } from "./dom.js";

/** A name in three parts: the middle one is not shown. @typedef {[head: string, hidden: string, tail: string]} Parts */

const SHORTEST = 6;
/** Windows narrower than this, in pixels, are phones: tables leave out minor columns. The style sheet has the same figure. */
export const NARROW = 600;
/** Windows narrower than this, in pixels, have no room for two whole names in a row. */
const LAPTOP = 1200;

/**
 * Split a name so that the parts shown, with an ellipsis between them, have at most this many letters. A domain is left out
 * first, as it is the same for all nodes of a cluster; then the middle, as replicas differ at the end.
 * @param {string} name @param {number} letters @returns {Parts}
 */
export function split(name, letters) {
  if (name.length <= letters) return [name, "", ""];
  const most = Math.max(SHORTEST, Math.floor(letters)) - 1;
  const host = hostOf(name);
  if (host !== name && host.length <= most) {
    return [host, name.slice(host.length), ""];
  }
  const last = host.length - host.lastIndexOf("-");
  // The last word alone (a replica's random letters, an instance's number) if it fits, with half of the room left for the start.
  const tail = last <= most / 2 ? Math.max(last, Math.floor(most / 3)) : Math.floor(most / 2);
  return [host.slice(0, most - tail), name.slice(most - tail, host.length - tail), host.slice(host.length - tail)];
}

/** The first label of a DNS name, or the whole name. @param {string} name */
export function hostOf(name) {
  const dot = name.indexOf(".");
  return dot > 0 ? name.slice(0, dot) : name;
}

/** How many letters a name needs at least to be told apart: its host and an ellipsis. @param {string} name */
export function lettersOf(name) {
  const host = hostOf(name);
  return host === name ? name.length : host.length + 1;
}

/** The content of an element with class `name`. @param {string} name @param {number} letters */
export function shortened(name, letters) {
  const [head, hidden, tail] = split(name, letters);
  return hidden ? [head, h("span", { class: "left-out" }, hidden), tail] : [name];
}

/** What names elements show. @type {WeakMap<Element, string>} */
const shownNames = new WeakMap();

/**
 * Put a name into an element that is used again, touching it only if it changes.
 * @param {Element} element @param {string} name @param {number} letters @param {string} domain that is shown elsewhere, for all names
 */
export function putName(element, name, letters, domain) {
  const shown = `${letters} ${domain} ${name}`;
  if (shownNames.get(element) === shown) return;
  shownNames.set(element, shown);
  const host = name.slice(0, name.length - domain.length);
  const known = domain ? h("span", { class: "left-out known" }, domain) : "";
  element.replaceChildren(...shortened(host, letters), known);
}

let letter = 0;

/** The width of a letter in names, in pixels: they are set in one monospaced font. */
export function letterWidth() {
  if (!letter) {
    const probe = h("span", { class: "name", style: { position: "absolute", visibility: "hidden" } }, "0".repeat(100));
    document.body.append(probe);
    letter = probe.getBoundingClientRect().width / 100 || 7.3;
    probe.remove();
  }
  return letter;
}

/** How many letters of a name fit into so many pixels. @param {number} pixels */
export function lettersIn(pixels) {
  return Math.max(SHORTEST, Math.floor(pixels / letterWidth()));
}

/** How many letters a name may have in text and in tables without columns of their own: what leaves room for the rest. */
export function roomy() {
  return innerWidth < NARROW ? 34 : innerWidth < LAPTOP ? 30 : 64;
}
