// Node and pod names that are too long for their place, such as those that clouds generate. Left out characters are
// hidden by the style sheet, not removed, so that copying a row and searching in the page still find the whole name.

import { h } from "./dom.js";

/** A name in three parts; the middle one is not shown. @typedef {[head: string, hidden: string, tail: string]} Parts */

const SHORTEST = 6;
/** Windows narrower than this, in pixels, count as phones: tables leave out minor columns. The style sheet has the same number. */
export const NARROW = 600;
/** Windows narrower than this, in pixels, have no room for two whole names side by side. */
const LAPTOP = 1200;

/**
 * Split a name so that the parts shown, with an ellipsis between them, have at most this many characters. First the domain is
 * left out, as it is often the same for all nodes, then the middle of the host, as replicas differ at the end.
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
  // The end is the last word (a replica's random suffix, an instance's number) if it takes at most half of the
  // characters.
  const tail = last <= most / 2 ? Math.max(last, Math.floor(most / 3)) : Math.floor(most / 2);
  return [host.slice(0, most - tail), name.slice(most - tail, host.length - tail), host.slice(host.length - tail)];
}

/** The first label of a DNS name, or the whole name. @param {string} name */
export function hostOf(name) {
  const dot = name.indexOf(".");
  return dot > 0 ? name.slice(0, dot) : name;
}

/** How many characters of a name must be shown to distinguish it: the host and an ellipsis. @param {string} name */
export function lettersOf(name) {
  const host = hostOf(name);
  return host === name ? name.length : host.length + 1;
}

/** The content of an element with the class `name`. @param {string} name @param {number} letters */
export function shortened(name, letters) {
  const [head, hidden, tail] = split(name, letters);
  return hidden ? [head, h("span", { class: "left-out" }, hidden), tail] : [name];
}

/** The name that each element shows. @type {WeakMap<Element, string>} */
const shownNames = new WeakMap();

/**
 * Put a name into an element; nothing happens if the element shows it already.
 * @param {Element} element @param {string} name @param {number} letters @param {string} domain its end, if shown elsewhere
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

/** The width of a character in names, in pixels. All names have the same monospaced font. */
export function letterWidth() {
  if (!letter) {
    const probe = h("span", { class: "name", style: { position: "absolute", visibility: "hidden" } }, "0".repeat(100));
    document.body.append(probe);
    letter = probe.getBoundingClientRect().width / 100 || 7.3;
    probe.remove();
  }
  return letter;
}

/** How many characters of a name fit into a number of pixels. @param {number} pixels */
export function lettersIn(pixels) {
  return Math.max(SHORTEST, Math.floor(pixels / letterWidth()));
}

/** How many characters of a name are shown in text, and in tables whose columns have no fixed width. */
export function roomy() {
  return innerWidth < NARROW ? 34 : innerWidth < LAPTOP ? 30 : 64;
}
