// Ctrl+K: find objects, pages and actions by a few letters. `p:` searches only pods, `n:` nodes, `w:` workloads.

import { draw, h, debounce } from "./dom.js";
import { go, nodeAddress, podAddress, to } from "./address.js";
import { NARROW, shortened } from "./names.js";
import { get } from "./service.js";

/** @typedef {{ text: string, kind: string, act: () => unknown }} Entry */

/** @type {Entry[]} */
let actions = [];

/** Set the actions that are available on all pages. @param {Entry[]} entries */
export function offer(entries) {
  actions = entries;
}

/** Whether `text` contains the characters of `query` in this order. @param {string} text @param {string} query */
function fuzzy(text, query) {
  let at = 0;
  const low = text.toLowerCase();
  for (const letter of query.toLowerCase()) {
    at = low.indexOf(letter, at) + 1;
    if (!at) return false;
  }
  return true;
}

/** Open the search unless it is open already. */
export function open() {
  if (!document.querySelector("dialog.palette")) new Palette().show();
}

class Palette {
  constructor() {
    /** @type {Entry[]} */
    this.entries = [];
    this.chosen = 0;
    this.asked = 0;
    this.letters = innerWidth < NARROW ? 30 : 60;
    this.list = h("div", { class: "palette-list", role: "listbox", id: "palette-list", "aria-label": "Found" });
    this.field = h("input", {
      class: "field palette-field",
      type: "search",
      placeholder: "Pod, node, page or action…",
      "aria-label": "Search",
      role: "combobox",
      "aria-expanded": "true",
      "aria-controls": "palette-list",
      autocomplete: "off",
      spellcheck: "false",
      "data-test": "palette-field",
    });
    this.dialog = h(
      "dialog",
      { class: "palette", "aria-label": "Search", "data-test": "palette" },
      this.field,
      this.list,
    );
    this.find = debounce(60, () => void this.search());
    this.field.addEventListener("input", () => this.typed());
    this.field.addEventListener("keydown", (event) => this.key(event));
    this.dialog.addEventListener("click", (event) => {
      if (event.target === this.dialog) this.dialog.close();
    });
    this.dialog.addEventListener("close", () => {
      this.asked += 1;
      this.dialog.remove();
    });
  }

  show() {
    document.body.append(this.dialog);
    this.dialog.showModal();
    this.field.focus();
    this.offer(local(""));
  }

  /** @param {Entry[]} entries */
  offer(entries) {
    this.entries = entries;
    this.chosen = 0;
    this.draw();
  }

  draw() {
    const { entries, chosen, field, list } = this;
    draw(
      list,
      entries.length
        ? entries.map((entry, index) => this.line(entry, index))
        : h("p", { class: "faint" }, field.value ? "Nothing found." : "Type a few letters."),
    );
    field.setAttribute("aria-activedescendant", entries.length ? `palette-${chosen}` : "");
    list.children[chosen]?.scrollIntoView?.({ block: "nearest" });
  }

  /** @param {Entry} entry @param {number} index */
  line(entry, index) {
    return h(
      "div",
      {
        class: "palette-entry",
        role: "option",
        id: `palette-${index}`,
        "aria-selected": String(index === this.chosen),
        onclick: () => this.take(index),
        onmousemove: () => {
          if (this.chosen === index) return;
          this.chosen = index;
          this.draw();
        },
      },
      h("span", { class: "grow name" }, shortened(entry.text, this.letters)),
      h("span", { class: "faint small" }, entry.kind),
    );
  }

  /** @param {number} index */
  take(index) {
    const entry = this.entries[index];
    if (!entry) return;
    this.dialog.close();
    void entry.act();
  }

  async search() {
    const mine = ++this.asked;
    const found = await search(this.field.value.trim());
    if (mine === this.asked) this.offer(found);
  }

  typed() {
    // Show local matches at once, and results from the server when they arrive.
    this.asked += 1;
    this.offer(local(this.field.value.trim()));
    this.find();
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      this.chosen = Math.max(0, Math.min(this.entries.length - 1, this.chosen + step));
      this.draw();
    } else if (event.key === "Enter") this.take(this.chosen);
    else if (event.key === "Escape") this.dialog.close();
    else return;
    event.preventDefault();
  }
}

/** @param {string} query @returns {Entry[]} */
function local(query) {
  if (/^[pnw]:/.test(query)) return [];
  return actions.filter((entry) => fuzzy(entry.text, query)).slice(0, query ? 5 : 12);
}

/** @param {string} query @returns {Promise<Entry[]>} */
async function search(query) {
  const kind = /^[pnw]:/.test(query) ? query[0] : "";
  const text = kind ? query.slice(2).trim() : query;
  if (!text) return local(query);
  // Actions that only contain the letters somewhere follow the objects.
  const found = local(query);
  const close = found.filter((entry) => entry.text.toLowerCase().includes(text.toLowerCase()));
  const [pods, nodes] = await Promise.all([
    kind === "n"
      ? []
      : get("/pods", { q: text, limit: kind ? 20 : 8 }).then(
          (answer) => answer.items,
          () => /** @type {Api.PodRow[]} */ ([]),
        ),
    kind && kind !== "n"
      ? []
      : get("/nodes", { q: text, limit: kind ? 20 : 6 }).then(
          (answer) => answer.items,
          () => /** @type {Api.NodeRow[]} */ ([]),
        ),
  ]);
  if (kind === "w") {
    const names = new Set(
      pods.filter((pod) => pod.workload).map((pod) => `${pod.namespace} ${pod.workload}`),
    );
    return [...names].map((name) => {
      const [, namespace, owner, workload] = /^(\S+) (\w+)[ /](?:.*\/)?([^/]+)$/.exec(name) ?? ["", "", "", name];
      return {
        text: name,
        kind: owner,
        act: () => go(to("workloads", owner.toLowerCase(), namespace, workload)),
      };
    });
  }
  return [
    ...close,
    ...nodes.map((node) => ({
      text: node.name,
      kind: "node",
      act: () => go(nodeAddress(node.name)),
    })),
    ...pods.map((pod) => ({
      text: `${pod.namespace}/${pod.name}`,
      kind: `pod · ${pod.status}`,
      act: () => go(podAddress(pod)),
    })),
    ...found.filter((entry) => !close.includes(entry)),
  ];
}
