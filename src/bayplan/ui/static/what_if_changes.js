// The changes that a what-if question can have: their kinds, what each needs, and the form that adds one.

import { draw, h, debounce } from "./dom.js";
import { get } from "./service.js";
import { targetOf } from "./unblocking.js";

/** The key in the tab's storage of the edited configuration that a what-if question tries. */
export const WHAT_IF_DRAFT = "bayplan.what-if.config";

/**
 * The target of a change; the form suggests names for it.
 * @typedef {"nodes" | "zones" | "workloads" | "plugins" | "scorers" | "count"} Subject
 */
/**
 * A kind of change. `subject`: the part before the colon; `value`: an example of the part after the colon, or "" without one.
 * @typedef {{ kind: string, text: string, subject: Subject, value: string, group: string }} Kind
 */
/** @type {Kind[]} */
export const KINDS = [
  { kind: "drain", text: "Drain nodes", subject: "nodes", value: "", group: "Nodes" },
  { kind: "remove-nodes", text: "Remove nodes", subject: "nodes", value: "", group: "Nodes" },
  { kind: "lose-zone", text: "Lose a zone", subject: "zones", value: "", group: "Nodes" },
  { kind: "add-nodes", text: "Add nodes", subject: "count", value: "like=NODE, or cpu=8,memory=32Gi", group: "Nodes" },
  { kind: "cordon", text: "Cordon nodes", subject: "nodes", value: "", group: "Nodes" },
  { kind: "uncordon", text: "Uncordon nodes", subject: "nodes", value: "", group: "Nodes" },
  { kind: "taint", text: "Taint nodes", subject: "nodes", value: "key=value:NoSchedule", group: "Nodes" },
  { kind: "untaint", text: "Untaint nodes", subject: "nodes", value: "key", group: "Nodes" },
  { kind: "resize", text: "Resize nodes", subject: "nodes", value: "cpu=8,memory=32Gi", group: "Nodes" },
  { kind: "scale", text: "Scale a workload", subject: "workloads", value: "10", group: "Workloads" },
  { kind: "restart", text: "Restart a workload", subject: "workloads", value: "", group: "Workloads" },
  { kind: "delete", text: "Delete a workload", subject: "workloads", value: "", group: "Workloads" },
  { kind: "priority", text: "Set a priority", subject: "workloads", value: "1000 or a class", group: "Workloads" },
  { kind: "weight", text: "Change a plugin's weight", subject: "scorers", value: "5", group: "Configuration" },
  { kind: "disable", text: "Disable a plugin", subject: "plugins", value: "", group: "Configuration" },
];
const PLACEHOLDERS = /** @type {Record<Subject, string>} */ ({
  nodes: "a node, pool-a-*, or label:key=value",
  zones: "a zone",
  workloads: "deployment/shop/web",
  plugins: "a plugin",
  scorers: "a score plugin",
  count: "how many",
});
const MAX_OFFERED = 50;

/** A change in words, for a chip. @param {string} change */
export function changeWords(change) {
  const [kind, ...rest] = change.split("=");
  const known = KINDS.find((each) => each.kind === kind);
  if (!known) return change;
  const words = { weight: "Weight", priority: "Priority" }[kind] || known.text.replace(/ (?:a|nodes)\b.*$/, "");
  return `${words} ${rest.join("=")}`;
}

/** The form that adds a change. */
export class ChangeForm {
  /** @param {{ signal: AbortSignal, add: (change: string) => void }} how */
  constructor(how) {
    this.how = how;
    this.kind = KINDS[0];
    this.offered = h("datalist", { id: "offered", own: true });
    this.element = h("form", {
      class: "tools wrapping",
      own: true,
      "data-test": "change-form",
      onsubmit: (/** @type {Event} */ event) => this.submit(event),
    });
    this.typed = debounce(150, (/** @type {string} */ text) => void this.offer(text));
    this.drawForm();
  }

  drawForm() {
    const { kind } = this;
    const groups = [...new Set(KINDS.map((each) => each.group))];
    draw(
      this.element,
      h(
        "select",
        {
          class: "field",
          "aria-label": "Change",
          "data-test": "change-kind",
          onchange: (/** @type {Event} */ event) => this.choose(/** @type {HTMLSelectElement} */ (event.target).value),
        },
        groups.map((group) =>
          h(
            "optgroup",
            { label: group, key: group },
            KINDS.filter((each) => each.group === group).map((each) =>
              h("option", { value: each.kind, selected: each === kind, key: each.kind }, each.text),
            ),
          ),
        ),
      ),
      h("input", {
        class: "field target",
        "aria-label": "Target",
        "data-test": "change-target",
        "data-search": true,
        list: "offered",
        spellcheck: "false",
        autocomplete: "off",
        placeholder: PLACEHOLDERS[kind.subject],
        onfocus: () => void this.offer(this.target?.value ?? ""),
        oninput: () => this.typed(this.target?.value ?? ""),
      }),
      kind.value
        ? h("input", {
            class: "field",
            "aria-label": "Value",
            "data-test": "change-value",
            spellcheck: "false",
            autocomplete: "off",
            placeholder: kind.value,
          })
        : null,
      h("button", { type: "submit", class: "button primary", "data-test": "add-change" }, "Add"),
      this.offered,
    );
  }

  /** @returns {HTMLInputElement | null} */
  get target() {
    return this.element.querySelector("[data-test=change-target]");
  }

  /** @param {string} name */
  choose(name) {
    const before = this.kind;
    this.kind = KINDS.find((each) => each.kind === name) ?? this.kind;
    if (this.target && before.subject !== this.kind.subject) this.target.value = "";
    this.offered.replaceChildren();
    this.drawForm();
  }

  /** @param {Event} event */
  submit(event) {
    event.preventDefault();
    const target = this.target?.value.trim() ?? "";
    const field = /** @type {HTMLInputElement | null} */ (this.element.querySelector("[data-test=change-value]"));
    const value = field?.value.trim() ?? "";
    if (!target) {
      this.target?.focus();
      return;
    }
    if (field && !value) {
      field.focus();
      return;
    }
    this.how.add(`${this.kind.kind}=${target}${value ? `:${value}` : ""}`);
    if (this.target) this.target.value = "";
    if (field) field.value = "";
  }

  /** Suggest names for a text being typed. @param {string} text */
  async offer(text) {
    const { kind } = this;
    try {
      const names = await offers(kind.subject, text, this.how.signal);
      if (this.how.signal.aborted || kind !== this.kind) return;
      draw(this.offered, ...names.slice(0, MAX_OFFERED).map((value) => h("option", { value, key: value })));
    } catch {
      // Without suggestions, the user can still type a name.
    }
  }
}

/** @param {Subject} subject @param {string} text @param {AbortSignal} signal @returns {Promise<string[]>} */
async function offers(subject, text, signal) {
  if (subject === "nodes") {
    const { items } = await get("/nodes", { q: text, limit: MAX_OFFERED }, signal);
    return items.map((node) => node.name);
  }
  if (subject === "zones") {
    const { facets } = await get("/nodes", { limit: 1, facets: true }, signal);
    return (facets?.zone ?? []).map((zone) => zone.value).filter(Boolean);
  }
  if (subject === "workloads") {
    const words = text.split("/").at(-1) ?? "";
    const { items } = await get("/pods", { q: words, limit: 200 }, signal);
    return [...new Set(items.map((pod) => targetOf(pod.workload, pod.namespace) || `pod/${pod.namespace}/${pod.name}`))];
  }
  if (subject === "count") return [];
  const { items } = await get("/plugins", {}, signal);
  return items
    .filter((plugin) => (subject === "scorers" ? plugin.enabled.includes("score") : plugin.enabled.length))
    .map((plugin) => plugin.name);
}
