// Small parts that many pages use: badges, bars, tabs, switches, sparklines, menus, questions.

import { h, svg } from "./dom.js";
import { amount, count, cut, percent } from "./format.js";
import { roomy, shortened } from "./names.js";
import { podAddress, nodeAddress } from "./address.js";
import { errorFacts } from "./loading_states.js";
import { showNotice } from "./notices.js";
import { send } from "./service.js";

const GLYPHS = /** @type {Record<string, [string, string]>} */ ({
  placed: ["✓", "ok"],
  scheduled: ["✓", "ok"],
  Success: ["✓", "ok"],
  done: ["✓", "ok"],
  ready: ["✓", "ok"],
  live: ["✓", "ok"],
  following: ["✓", "ok"],
  listing: ["…", "wait"],
  stopped: ["■", "plain"],
  created: ["✓", "ok"],
  waiting: ["…", "wait"],
  waits: ["…", "wait"],
  unschedulable: ["…", "wait"],
  backoff: ["…", "wait"],
  active: ["→", "plain"],
  running: ["…", "wait"],
  gated: ["▮", "plain"],
  terminating: ["↓", "plain"],
  finished: ["■", "plain"],
  deleted: ["−", "plain"],
  error: ["✕", "bad"],
  failed: ["✕", "bad"],
  refused: ["✕", "bad"],
  stale: ["…", "wait"],
});

/** The kubectl word for a status. @param {string} status */
export const statusText = (status) => (status === "waiting" ? "pending" : status);

/** A status with a glyph and a word, so that it is not told by colour alone. @param {string} status @param {string} [words] */
export function badge(status, words = statusText(status)) {
  const [glyph, tone] = GLYPHS[status] ?? ["·", "plain"];
  return h("span", { class: `badge ${tone}` }, h("span", { class: "glyph", "aria-hidden": "true" }, glyph), words);
}

/** A status without room for the word, which only the tooltip and assistive technology have. @param {string} status */
export function glyph(status) {
  const [sign, tone] = GLYPHS[status] ?? ["·", "plain"];
  return h("span", { class: `badge ${tone}`, role: "img", "aria-label": statusText(status), title: statusText(status) }, sign);
}

/**
 * A name in monospace, shortened if it has more characters than fit; the tooltip has all of it.
 * @param {string} name @param {number} [letters]
 */
export function name(name, letters = roomy()) {
  return h("span", { class: "name", title: name.length > letters ? name : null, dir: "ltr" }, shortened(name, letters));
}

/** A link to a pod. @param {{ namespace: string, name: string }} pod @param {{ short?: boolean, letters?: number }} [how] */
export function podLink(pod, how = {}) {
  const text = how.short ? pod.name : `${pod.namespace}/${pod.name}`;
  const address = { href: podAddress(pod), class: "name", title: `${pod.namespace}/${pod.name}` };
  return h("a", address, shortened(text, how.letters ?? roomy()));
}

/** A link to a node, or a dash. @param {string | null | undefined} node @param {number} [letters] */
export function nodeLink(node, letters = roomy()) {
  return node
    ? h("a", { href: nodeAddress(node), class: "name", title: node }, shortened(node, letters))
    : h("span", { class: "faint" }, "–");
}

/** A pod from "namespace/name". @param {string} key */
export function podOf(key) {
  const [namespace, ...rest] = key.split("/");
  return { namespace, name: rest.join("/") };
}

/**
 * A bar with the requested share of a resource. Orange from 98 % on, as on the map.
 * @param {number | null | undefined} share 0 to 1 @param {string} [label] @param {string} [kind]
 */
export function meter(share, label, kind = "") {
  const value = Math.max(0, Math.min(1, share ?? 0));
  const state = value >= 0.98 ? " full" : "";
  return h(
    "span",
    { class: `meter${state} ${kind}`, title: label ?? percent(share) },
    h("span", { class: "meter-fill", style: { width: `${value * 100}%` } }),
  );
}

/** The head of a table. @param {[string, string][]} columns titles and classes */
export function tableHead(columns) {
  const cells = columns.map(([text, look]) => h("th", { scope: "col", key: text, class: look }, text));
  return h("thead", null, h("tr", null, cells));
}

/** A bar with its amounts beside it. @param {string} resource @param {number} requested @param {number} allocatable */
export function resourceLine(resource, requested, allocatable) {
  const share = allocatable ? requested / allocatable : 0;
  return h(
    "div",
    { class: "resource-line" },
    h("span", { class: "resource-name" }, resource),
    meter(share),
    h("span", { class: "figure" }, `${amount(resource, requested)} of ${amount(resource, allocatable)}`),
  );
}

/**
 * A number with its label and a link to the counted objects.
 * @param {string} label @param {Node | string} figure @param {string} [link] @param {string} [sub] @param {string} [test]
 */
export function tile(label, figure, link, sub, test) {
  const inner = [
    h("span", { class: "tile-label" }, label),
    h("span", { class: "tile-figure", "data-test": test ?? null }, figure),
    h("span", { class: "tile-sub" }, sub ?? " "),
  ];
  return link ? h("a", { class: "tile", href: link }, ...inner) : h("div", { class: "tile" }, ...inner);
}

/**
 * A row of buttons, one of which is chosen.
 * @param {string} label @param {{ value: string, text: string, count?: string, title?: string }[]} options @param {string} chosen @param {(value: string) => void} choose
 */
export function choice(label, options, chosen, choose) {
  return h(
    "div",
    { class: "choice", role: "group", "aria-label": label },
    options.map((option) =>
      h(
        "button",
        {
          type: "button",
          key: option.value,
          "aria-pressed": String(option.value === chosen),
          "data-value": option.value,
          title: option.title ?? null,
          onclick: () => choose(option.value),
        },
        option.text,
        option.count ? h("span", { class: "faint" }, ` ${option.count}`) : null,
      ),
    ),
  );
}

/**
 * Tabs, as links, so that each has an address.
 * @param {string} label @param {{ key: string, text: string, href: string }[]} tabs @param {string} chosen
 */
export function tabs(label, tabs, chosen) {
  return h(
    "nav",
    { class: "tabs", "aria-label": label },
    tabs.map((tab) =>
      h(
        "a",
        {
          href: tab.href,
          key: tab.key,
          "aria-current": tab.key === chosen ? "page" : null,
          "data-test": `tab-${tab.key}`,
        },
        tab.text,
      ),
    ),
  );
}

/** An active filter or change, with a button to remove it. @param {string} text @param {() => void} remove @param {string} what */
export function chip(text, remove, what = "filter") {
  return h(
    "span",
    { class: "chip", key: text },
    text,
    h("button", { type: "button", class: "chip-x", "aria-label": `Remove the ${what} ${text}`, onclick: remove }, "✕"),
  );
}

/**
 * A drop-down list of values with their counts.
 * @param {string} label @param {{ value: string, count?: number }[]} options @param {string} chosen @param {(value: string) => void} choose
 */
export function select(label, options, chosen, choose) {
  const known = options.some((option) => option.value === chosen) || !chosen;
  const all = known ? options : [{ value: chosen }, ...options];
  return h(
    "select",
    {
      class: "field",
      "aria-label": label,
      "data-test": `select-${label}`,
      onchange: (/** @type {Event} */ event) => choose(/** @type {HTMLSelectElement} */ (event.target).value),
    },
    h("option", { value: "", selected: !chosen }, label),
    all.map((option) =>
      h(
        "option",
        { value: option.value, selected: option.value === chosen },
        option.count === undefined ? cut(option.value, 48) : `${cut(option.value, 48)} (${count(option.count)})`,
      ),
    ),
  );
}

/** A line of numbers over time. @param {number[]} values 0 to 1 @param {string} label */
export function sparkline(values, label) {
  const width = 160;
  const height = 32;
  if (values.length < 2) return h("span", { class: "faint small" }, "not enough data yet");
  const step = width / (values.length - 1);
  const points = values.map(
    (value, index) =>
      `${(index * step).toFixed(1)},${(height - 2 - Math.max(0, Math.min(1, value)) * (height - 4)).toFixed(1)}`,
  );
  const drawing = svg("svg", {
    class: "spark",
    viewBox: `0 0 ${width} ${height}`,
    preserveAspectRatio: "none",
    role: "img",
    "aria-label": label,
  });
  drawing.append(svg("polygon", { class: "spark-area", points: `0,${height} ${points.join(" ")} ${width},${height}` }));
  drawing.append(
    svg("polyline", { class: "spark-line", points: points.join(" "), "vector-effect": "non-scaling-stroke" }),
  );
  return drawing;
}

/**
 * Ask for confirmation; resolves to whether the user agrees.
 * @param {{ title: string, text?: (Node | string)[], yes: string, danger?: boolean }} question @returns {Promise<boolean>}
 */
export function ask(question) {
  return new Promise((resolve) => {
    const yes = h(
      "button",
      { class: `button ${question.danger ? "danger" : "primary"}`, value: "yes", "data-test": "yes" },
      question.yes,
    );
    const dialog = h(
      "dialog",
      { class: "question", "data-test": "question", "aria-label": question.title },
      h(
        "form",
        { method: "dialog" },
        h("h2", null, question.title),
        h("div", { class: "question-text" }, ...(question.text ?? [])),
        h("div", { class: "row end" }, h("button", { class: "button", value: "no" }, "Cancel"), yes),
      ),
    );
    dialog.addEventListener("close", () => {
      resolve(dialog.returnValue === "yes");
      dialog.remove();
    });
    document.body.append(dialog);
    dialog.showModal();
    yes.focus();
  });
}

/**
 * Run a task that changes something, and show its outcome as a notice; an error stays until it is dismissed.
 * @param {string} doing what the task does, as in "Cordon node-3" @param {() => Promise<string | void>} task
 */
export async function perform(doing, task) {
  try {
    const message = await task();
    showNotice("ok", message || `${doing}: done.`);
    return true;
  } catch (problem) {
    const facts = errorFacts(problem);
    showNotice("bad", `${doing}: ${facts.what}`, [facts.where, facts.hint].filter(Boolean).join(" · "));
    return false;
  }
}

/** Copy a text, and show a notice. @param {string} text @param {string} what */
export async function copy(text, what) {
  try {
    await navigator.clipboard.writeText(text);
    showNotice("ok", `${what} copied.`);
  } catch {
    showNotice("wait", `The browser does not let the page copy. ${what}:`, text);
  }
}

/**
 * The menu "Copy": the link, and the data and the command if the page has them.
 * @param {{ json?: string, kubectl?: string }} of
 */
export function copyMenu(of) {
  return h(
    "details",
    {
      class: "menu",
      "data-test": "copy-menu",
      onfocusout: (/** @type {FocusEvent} */ event) => {
        const menu = /** @type {HTMLDetailsElement} */ (event.currentTarget);
        if (!(event.relatedTarget instanceof Node) || !menu.contains(event.relatedTarget))
          setTimeout(() => (menu.open = false), 150);
      },
    },
    h("summary", { class: "button quiet" }, "Copy"),
    h(
      "div",
      { class: "menu-list" },
      entry("Link to this view", () => copy(location.href, "Link")),
      of.json
        ? entry("As JSON", async () =>
            copy(JSON.stringify(await (await send(/** @type {string} */ (of.json))).json(), null, 2), "JSON"),
          )
        : null,
      of.json ? h("a", { href: of.json, target: "_blank", rel: "noopener" }, "Open the data") : null,
      of.kubectl ? entry("kubectl command", () => copy(/** @type {string} */ (of.kubectl), "Command")) : null,
    ),
  );

  /** @param {string} text @param {() => unknown} act */
  function entry(text, act) {
    return h(
      "button",
      {
        type: "button",
        onclick: (/** @type {Event} */ event) => {
          const menu = event.currentTarget instanceof Element ? event.currentTarget.closest("details") : null;
          if (menu) menu.open = false;
          void act();
        },
      },
      text,
    );
  }
}
