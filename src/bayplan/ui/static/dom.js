// Elements from data. Text is always set as text, so names from the cluster can never become markup.

/** @typedef {Node | string | number | null | undefined | false} Child */
/** @typedef {Record<string, unknown>} Properties */

const HANDLERS = Symbol("handlers");
/** @typedef {Element & { [HANDLERS]?: Record<string, (event: Event) => void> }} Handled */

/** @this {Handled} @param {Event} event */
function dispatch(event) {
  const handlers = this[HANDLERS];
  if (handlers && handlers[event.type]) handlers[event.type].call(this, event);
}

/** @param {Handled} element @param {Record<string, (event: Event) => void>} handlers */
function listen(element, handlers) {
  const known = element[HANDLERS] ?? {};
  for (const type of Object.keys(handlers)) if (!known[type]) element.addEventListener(type, dispatch);
  for (const type of Object.keys(known)) if (!handlers[type]) element.removeEventListener(type, dispatch);
  element[HANDLERS] = handlers;
}

/**
 * Make an element. Properties such as `onclick` are listeners; `style` is an object of CSS properties (the content security
 * policy forbids inline style attributes, but not setting styles from scripts); `key` identifies the element when a list is
 * drawn again; `own` means that its children are not patched. Other properties are attributes, left out if false or missing.
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} tag @param {Properties | null} [properties] @param {...(Child | Child[])} children
 * @returns {HTMLElementTagNameMap[K]}
 */
export function h(tag, properties, ...children) {
  const element = document.createElement(tag);
  fill(element, properties ?? {}, children);
  return element;
}

/**
 * Make an SVG element, with the properties of `h`.
 * @param {string} tag @param {Properties} properties @param {...Child} children
 */
export function svg(tag, properties, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  fill(element, properties, children);
  return element;
}

/** @param {Element} element @param {Properties} properties @param {(Child | Child[])[]} children */
function fill(element, properties, children) {
  /** @type {Record<string, (event: Event) => void>} */
  const handlers = {};
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) handlers[name.slice(2)] = /** @type {(event: Event) => void} */ (value);
    else if (name === "style")
      style(/** @type {HTMLElement} */ (element), /** @type {Record<string, string>} */ (value));
    else if (name === "key") element.setAttribute("data-key", String(value));
    else if (name === "own") element.setAttribute("data-own", "");
    else if (name === "value" && "value" in element) element.value = String(value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  if (Object.keys(handlers).length) listen(element, handlers);
  append(element, children);
}

/** @param {HTMLElement} element @param {Record<string, string>} values */
function style(element, values) {
  for (const [name, value] of Object.entries(values)) element.style.setProperty(name, value);
}

/** @param {Element} element @param {(Child | Child[])[]} children */
function append(element, children) {
  for (const child of children) {
    if (Array.isArray(child)) append(element, child);
    else if (child !== null && child !== undefined && child !== false) {
      element.append(typeof child === "number" ? String(child) : child);
    }
  }
}

/**
 * Make the content of `parent` equal to `children`, changing only what differs. Elements stay the same objects, so focus,
 * selection, scroll position and hover are kept.
 * @param {Element} parent @param {...(Child | Child[])} children
 */
export function draw(parent, ...children) {
  const wanted = document.createElement("div");
  append(wanted, children);
  reconcile(parent, wanted);
}

/** @param {Element} parent @param {Element} wanted */
function reconcile(parent, wanted) {
  const keyed = new Map();
  for (const child of parent.children) {
    const key = child.getAttribute("data-key");
    if (key !== null) keyed.set(key, child);
  }
  let at = parent.firstChild;
  for (const next of [...wanted.childNodes]) {
    const key = next instanceof Element ? next.getAttribute("data-key") : null;
    /** @type {ChildNode | null} */
    let match = key !== null ? (keyed.get(key) ?? null) : at;
    if (key === null && match instanceof Element && match.hasAttribute("data-key")) match = null;
    // An element that manages its own children is never matched to a similar one, only to one with the same key.
    if (key === null && next instanceof Element && next.hasAttribute("data-own")) match = null;
    if (match && isSameNode(match, next)) {
      if (match !== at) parent.insertBefore(match, at);
      else at = at.nextSibling;
      patch(match, next);
    } else {
      parent.insertBefore(next, at);
    }
  }
  while (at) {
    const gone = at;
    at = at.nextSibling;
    gone.remove();
  }
}

/** @param {Node} a @param {Node} b */
function isSameNode(a, b) {
  if (a.nodeType !== b.nodeType || a.nodeName !== b.nodeName) return false;
  return !(a instanceof Element && b instanceof Element) || a.getAttribute("data-key") === b.getAttribute("data-key");
}

/** @param {ChildNode} old @param {ChildNode} next */
function patch(old, next) {
  if (!(old instanceof Element && next instanceof Element)) {
    if (old.nodeValue !== next.nodeValue) old.nodeValue = next.nodeValue;
    return;
  }
  if (old === next) return;
  if (next.hasAttribute("data-own") && old.hasAttribute("data-own")) return;
  for (const { name } of [...old.attributes])
    if (!next.hasAttribute(name) && name !== "style" && !(name === "open" && old.nodeName === "DETAILS"))
      old.removeAttribute(name);
  for (const { name, value } of next.attributes) {
    // Styles are set below: the content security policy forbids them as attributes.
    if (name !== "style" && old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
  if (old instanceof HTMLElement && next instanceof HTMLElement && old.style.cssText !== next.style.cssText) {
    old.style.cssText = next.style.cssText;
  }
  const handlers = /** @type {Handled} */ (next)[HANDLERS];
  if (handlers || /** @type {Handled} */ (old)[HANDLERS]) listen(old, handlers ?? {});
  if (old instanceof HTMLInputElement && next instanceof HTMLInputElement) {
    if (old !== document.activeElement && old.value !== next.value) old.value = next.value;
    if (old.type === "checkbox") old.checked = next.hasAttribute("checked");
  }
  reconcile(old, next);
  if (old instanceof HTMLSelectElement && next instanceof HTMLSelectElement && old.value !== next.value)
    old.value = next.value;
}

/** Set the text of an element if it differs. @param {Element} element @param {string} value */
export function write(element, value) {
  if (element.textContent !== value) element.textContent = value;
}

/** @type {Set<() => void>} */
const waiting = new Set();

/** Run a drawing function once before the next frame, however often this is called. @param {() => void} task */
export function beforePaint(task) {
  if (!waiting.size) requestAnimationFrame(flush);
  waiting.add(task);
}

function flush() {
  const tasks = [...waiting];
  waiting.clear();
  for (const task of tasks) task();
}

/**
 * Return a function that runs `task` after no call for `delay` milliseconds.
 * @template {unknown[]} A
 * @param {number} delay @param {(...parts: A) => void} task @returns {(...parts: A) => void}
 */
export function debounce(delay, task) {
  let timer = 0;
  return (...parts) => {
    clearTimeout(timer);
    timer = window.setTimeout(() => task(...parts), delay);
  };
}

/** The value of a token in the current theme, for canvases and heights. @param {string} name */
export function token(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

/** Set a performance mark, and clear the previous one of the same name. @param {string} name @param {unknown} [detail] */
export function stamp(name, detail) {
  performance.clearMarks(name);
  performance.mark(name, { detail });
}
