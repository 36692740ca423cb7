// Ctrl+K: objects, pages and actions by a few letters. `p:` asks for pods only, `n:` for nodes, `w:` for workloads.

import { draw, h, later } from "./dom.js";
import { go, nodeAddress, podAddress, to } from "./address.js";
import { NARROW, shortened } from "./names.js";
import { get } from "./service.js";

/** @typedef {{ text: string, kind: string, act: () => unknown }} Entry */

/** @type {Entry[]} */
let actions = [];

/** Say what can be done from everywhere. @param {Entry[]} entries */
export function offer(entries) {
  actions = entries;
}

/** Whether the letters of `query` stand in `text` in this order. @param {string} text @param {string} query */
function fuzzy(text, query) {
  let at = 0;
  const low = text.toLowerCase();
  for (const letter of query.toLowerCase()) {
    at = low.indexOf(letter, at) + 1;
    if (!at) return false;
  }
  return true;
}

export function open() {
  if (document.querySelector("dialog.palette")) return;
  /** @type {Entry[]} */
  let entries = [];
  let chosen = 0;
  let asked = 0;
  const letters = innerWidth < NARROW ? 30 : 60;
  const list = h("div", { class: "palette-list", role: "listbox", id: "palette-list", "aria-label": "Found" });
  const field = h("input", {
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
  const dialog = h("dialog", { class: "palette", "aria-label": "Search", "data-test": "palette" }, field, list);
  const show = () => {
    draw(
      list,
      entries.length
        ? entries.map((entry, index) =>
            h(
              "div",
              {
                class: "palette-entry",
                role: "option",
                id: `palette-${index}`,
                "aria-selected": String(index === chosen),
                onclick: () => take(index),
                onmousemove: () => {
                  if (chosen !== index) {
                    chosen = index;
                    show();
                  }
                },
              },
              h("span", { class: "grow name" }, shortened(entry.text, letters)),
              h("span", { class: "faint small" }, entry.kind),
            ),
          )
        : h("p", { class: "faint" }, field.value ? "Nothing found." : "Type a few letters."),
    );
    field.setAttribute("aria-activedescendant", entries.length ? `palette-${chosen}` : "");
    list.children[chosen]?.scrollIntoView?.({ block: "nearest" });
  };
  const take = (/** @type {number} */ index) => {
    const entry = entries[index];
    if (!entry) return;
    dialog.close();
    void entry.act();
  };
  const find = later(60, async () => {
    const query = field.value.trim();
    const mine = ++asked;
    const found = await search(query);
    if (mine !== asked) return;
    entries = found;
    chosen = 0;
    show();
  });
  field.addEventListener("input", () => {
    // What is known here is shown at once; what has to be asked for follows.
    entries = local(field.value.trim());
    chosen = 0;
    asked += 1;
    show();
    find();
  });
  field.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      chosen = Math.max(0, Math.min(entries.length - 1, chosen + step));
      show();
    } else if (event.key === "Enter") take(chosen);
    else if (event.key === "Escape") dialog.close();
    else return;
    event.preventDefault();
  });
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) dialog.close();
  });
  dialog.addEventListener("close", () => {
    asked += 1;
    dialog.remove();
  });
  document.body.append(dialog);
  dialog.showModal();
  field.focus();
  entries = local("");
  show();
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
      pods.map((pod) => pod.workload && `${pod.namespace} ${pod.workload}`).filter(Boolean),
    );
    return [...names].map((name) => {
      const [, namespace, owner, workload] = /^(\S+) (\w+)[ /](?:.*\/)?([^/]+)$/.exec(String(name)) ?? [
        "",
        "",
        "",
        String(name),
      ];
      return {
        text: String(name),
        kind: owner,
        act: () => go(to("workloads", owner.toLowerCase(), namespace, workload)),
      };
    });
  }
  return [
    ...local(query),
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
  ];
}
