// Pods: which ones? A table of any length that the server searches and filters. The address has the filters.

import { draw, h, debounce } from "../dom.js";
import { age, amount, bounded, count, counted, cut } from "../format.js";
import { NARROW, shortened } from "../names.js";
import { change, podAddress, to } from "../address.js";
import { get, objectPath, call, send } from "../service.js";
import { now, onReload, subscribe } from "../stream.js";
import { ask, badge, chip, choice, copyMenu, glyph, nodeLink, perform, podOf, select, statusText } from "../parts.js";
import { empty } from "../loading_states.js";
import { Grid } from "../grid.js";
import { title } from "../shell.js";

const STATUSES = /** @type {const} */ (["waiting", "gated", "placed", "terminating", "finished"]);
/** Pending pods come first. */
const DEFAULT_SORT = "status";
const FEW = 5;
const NODE_WIDTH = "minmax(130px, 1.4fr)";

/** @typedef {Record<"q" | "status" | "reason" | "namespace" | "node" | "priority" | "workload", string>} Filter */

/** The predicates for pods of each status, in singular and plural. @type {Record<typeof STATUSES[number], [string, string]>} */
const STANDING = {
  placed: ["has a node", "have a node"],
  waiting: ["is pending", "are pending"],
  gated: ["is held back by gates", "are held back by gates"],
  terminating: ["is terminating", "are terminating"],
  finished: ["has finished", "have finished"],
};

/** @param {import("../main.js").Page} page */
export function open({ place, root, signal }) {
  title("Pods");
  root.classList.add("full-height");
  const view = new PodsView(root, place.query, signal);
  return (/** @type {import("../address.js").Place} */ next) => view.update(next.query);
}

class PodsView {
  /** @param {HTMLElement} root @param {URLSearchParams} query @param {AbortSignal} signal */
  constructor(root, query, signal) {
    this.query = query;
    this.signal = signal;
    this.total = -1;
    this.exact = true;
    /** @type {Api.PodTotals | null} */
    this.counts = null;
    /** @type {Partial<Api.PodFacets>} */
    this.facets = {};
    /** @type {Set<string>} */
    this.selected = new Set();
    this.head = h("div", null);
    this.tools = h("div", null);
    this.actions = h("div", null);
    this.typed = debounce(60, (/** @type {string} */ text) => change({ q: text }));
    this.grid = this.makeGrid();
    root.append(this.head, this.tools, this.actions, this.grid.element);
    this.drawHead();
    this.drawTools();
    void this.loadCounts();
    subscribe(
      "pods",
      (data) => {
        this.counts = data.counts;
        this.grid.refresh();
        this.drawHead();
      },
      signal,
    );
    onReload(() => {
      this.grid.refresh(true);
      void this.loadCounts();
    }, signal);
  }

  /** @param {URLSearchParams} query */
  update(query) {
    this.query = query;
    this.grid.reset(this.sort);
    this.drawHead();
    this.drawTools();
  }

  get sort() {
    return this.query.get("sort") || DEFAULT_SORT;
  }

  /** The filter in the address, in the form that the server expects; `ns` is short for `namespace`. @returns {Filter} */
  get filter() {
    const of = (/** @type {string} */ key) => this.query.get(key) ?? "";
    return {
      q: of("q"),
      status: of("status"),
      reason: of("reason"),
      namespace: of("namespace") || of("ns"),
      node: of("node"),
      priority: of("priority"),
      workload: of("workload"),
    };
  }

  async loadCounts() {
    try {
      this.counts = (await get("/overview", {}, this.signal)).counts;
      this.drawHead();
    } catch {
      // The table shows the error; the headline only has no numbers.
    }
  }

  /** @returns {Grid<Api.PodRow>} */
  makeGrid() {
    return new Grid({
      label: "Pods",
      signal: this.signal,
      test: "pod-table",
      keyOf: (row) => `${row.namespace}/${row.name}`,
      hrefOf: (row) => podAddress(row),
      selected: this.selected,
      onSelect: () => this.drawActions(),
      sort: this.sort,
      onSort: (sort) =>
        change({ sort: sort === DEFAULT_SORT ? "" : sort || (this.query.get("sort") ? "" : `-${DEFAULT_SORT}`) }),
      columns: columns(this.selected, () => {
        this.grid.schedule();
        this.drawActions();
      }),
      load: async (offset, limit, asked) => {
        const wanted = { ...this.filter, sort: this.sort, offset, limit, facets: offset === 0 };
        const answer = await get("/pods", wanted, asked);
        if (answer.facets) this.facets = answer.facets;
        // Without nodes, the reasons get the room.
        if (answer.facets) this.grid.setWidth("node", answer.facets.node.length ? NODE_WIDTH : "64px");
        return answer;
      },
      onTotal: (found, isExact) => {
        this.total = found;
        this.exact = isExact;
        this.drawHead();
        this.drawTools();
      },
      empty: () => nothing(this.filter, this.counts),
    });
  }

  /** The filters that are shown as chips: all but the search text and the status. */
  get held() {
    return Object.entries(this.filter).filter(([key, value]) => value && key !== "q" && key !== "status");
  }

  /** The headline. */
  get words() {
    const { total, exact, counts, query } = this;
    if (total < 0) return "Pods";
    const all = counts?.pods;
    if (total === 0 && all === 0) return "No pods yet";
    if (counts && !this.held.length && !query.get("q") && !query.get("status")) return standing(counts);
    const status = STATUSES.find((each) => each === query.get("status"));
    const how = status ? ` ${STANDING[status][total === 1 ? 0 : 1]}` : "";
    const noun = total === 1 && (!all || all === 1) ? "pod" : "pods";
    return `${bounded(total, exact)}${all && all !== total ? ` of ${count(all)}` : ""} ${noun}${how}`;
  }

  drawHead() {
    const { query } = this;
    draw(
      this.head,
      h(
        "div",
        { class: "head" },
        h("h1", { class: "verdict", "data-test": "verdict" }, this.words),
        this.held.map(([key, value]) =>
          chip(`${key === "reason" ? "" : `${key}: `}${cut(value, 60)}`, () =>
            change({ [key]: "", ns: "" }, { push: true }),
          ),
        ),
        h("span", { class: "grow" }),
        h("a", { class: "button", href: to("new", { kind: "Pod" }) }, "Create pods"),
        copyMenu({
          json: `/bayplan/v1/pods${location.search}`,
          kubectl: `kubectl get pods ${query.get("namespace") ? `-n ${query.get("namespace")}` : "-A"}`,
        }),
      ),
    );
  }

  drawTools() {
    const { query, facets, filter } = this;
    const push = { push: true };
    draw(
      this.tools,
      h(
        "div",
        { class: "tools" },
        h("input", {
          type: "search",
          class: "field wide",
          placeholder: "Name contains…",
          "aria-label": "Name contains",
          "data-search": "",
          "data-test": "search-pods",
          value: query.get("q") ?? "",
          oninput: (/** @type {Event} */ event) => this.typed(/** @type {HTMLInputElement} */ (event.target).value),
        }),
        this.statusChoice(),
        select("reason", facets.reason ?? [], filter.reason, (reason) => change({ reason }, push)),
        select("namespace", facets.namespace ?? [], filter.namespace, (namespace) =>
          change({ namespace, ns: "" }, push),
        ),
        select("node", (facets.node ?? []).slice(0, 50), filter.node, (node) => change({ node }, push)),
      ),
    );
  }

  statusChoice() {
    const chosen = this.query.get("status") ?? "";
    const countOf = (/** @type {string} */ status) => this.facets.status?.find(({ value }) => value === status)?.count;
    const shown = STATUSES.filter(
      (status) => countOf(status) || status === chosen || status === "placed" || status === "waiting",
    );
    return choice(
      "Status",
      [
        { value: "", text: "all" },
        ...shown.map((status) => ({
          value: status,
          text: statusText(status),
          count: countOf(status) === undefined ? "" : count(countOf(status)),
        })),
      ],
      chosen,
      (status) => change({ status }, { push: true }),
    );
  }

  drawActions() {
    const { selected, grid } = this;
    const waiting = [...selected].filter((key) => grid.find(key)?.status === "waiting");
    const done = () => {
      selected.clear();
      grid.refresh(true);
      this.drawActions();
    };
    draw(this.actions, selected.size ? actionBar(selected, waiting, done) : null);
  }
}

/** A sentence about all pods: how many there are, and how many of them have no node. @param {Api.PodTotals} counts */
function standing(counts) {
  const without = /** @type {const} */ (["waiting", "gated"])
    .filter((status) => counts[status])
    .map((status) => `${count(counts[status])} ${STANDING[status][counts[status] === 1 ? 0 : 1]}`);
  return `${counted(counts.pods, "pod")}${without.length ? `: ${without.join(", ")}` : ", none is pending"}`;
}

/**
 * @param {Set<string>} selected @param {() => void} changed
 * @returns {import("../grid.js").Column<Api.PodRow>[]}
 */
function columns(selected, changed) {
  /** @type {import("../grid.js").Column<Api.PodRow>} */
  const pick = {
    key: "pick",
    title: "",
    width: "28px",
    render: (row) => {
      const key = `${row.namespace}/${row.name}`;
      return h("input", {
        type: "checkbox",
        checked: selected.has(key),
        "aria-label": `Select ${key}`,
        onchange: (/** @type {Event} */ event) => {
          if (/** @type {HTMLInputElement} */ (event.target).checked) selected.add(key);
          else selected.delete(key);
          changed();
        },
      });
    },
  };
  return [pick, ...COLUMNS.map((column) => (column.key === "why" ? { ...column, render: reason } : column))];
}

/** Why a pod waits, or how its node compared with the runner-up. @param {Api.PodRow} row @param {number} _ @param {number} letters */
function reason(row, _, letters) {
  const node = row.runner_up;
  const lead = row.why.slice(0, row.why.length - node.length);
  return h(
    "span",
    { class: "clip", title: row.why || null },
    node ? [lead, h("span", { class: "name" }, shortened(node, letters - lead.length))] : row.why,
  );
}

/** @type {import("../grid.js").Column<Api.PodRow>[]} */
const COLUMNS = [
  {
    key: "name",
    title: "Pod",
    width: "minmax(170px, 1.7fr)",
    narrow: "minmax(118px, 1.4fr)",
    sort: "name",
    render: (row, _, letters) =>
      h("a", { class: "name", href: podAddress(row), title: row.name }, shortened(row.name, letters)),
  },
  {
    key: "namespace",
    title: "Namespace",
    width: "minmax(90px, .9fr)",
    sort: "namespace",
    minor: true,
    render: (row) => row.namespace,
  },
  {
    key: "status",
    title: "Status",
    width: "108px",
    narrow: "46px",
    sort: "status",
    render: (row) => (innerWidth < NARROW ? glyph(row.status) : badge(row.status)),
  },
  {
    key: "why",
    title: "Reason",
    hint: "Why it is pending, or by how much its node is ahead",
    width: "minmax(190px, 2.1fr)",
    below: true,
    render: (row) => row.why,
  },
  {
    key: "node",
    title: "Node",
    width: NODE_WIDTH,
    narrow: "minmax(112px, 1fr)",
    sort: "node",
    render: (row, _, letters) => nodeLink(row.node, letters),
  },
  { key: "cpu", title: "CPU", width: "64px", right: true, minor: true, sort: "cpu", render: (row) => amount("cpu", row.cpu) },
  {
    key: "memory",
    minor: true,
    title: "Memory",
    width: "76px",
    right: true,
    sort: "memory",
    render: (row) => amount("memory", row.memory),
  },
  {
    key: "priority",
    minor: true,
    title: "Priority",
    width: "84px",
    right: true,
    sort: "priority",
    render: (row) => count(row.priority),
  },
  {
    key: "attempts",
    minor: true,
    title: "Attempts",
    width: "90px",
    right: true,
    sort: "attempts",
    render: (row) => count(row.attempts),
  },
  {
    key: "age",
    minor: true,
    title: "Age",
    width: "62px",
    right: true,
    sort: "created_at",
    render: (row) => age(row.created_at, now()),
  },
];

/** @param {Filter} filter @param {Api.PodTotals | null} counts */
function nothing(filter, counts) {
  const held = Object.entries(filter).filter(([, value]) => value);
  if (!held.length)
    return empty(
      "No pods yet.",
      h("a", { class: "button primary", href: to("new", { kind: "Pod" }) }, "Create pods"),
      h("a", { class: "button", href: to("sources") }, "Import a cluster"),
      "or start with bayplan up PATH",
    );
  const all = counts?.pods;
  return empty(
    `None of ${all ? count(all) : "the"} pods matches ${held.map(([key, value]) => `${key === "q" ? "the name" : key} “${cut(value, 40)}”`).join(" and ")}.`,
    ...held.map(([key, value]) =>
      h(
        "button",
        {
          type: "button",
          class: "button",
          onclick: () => change({ [key]: "", ...(key === "namespace" ? { ns: "" } : {}) }),
        },
        `Clear ${key === "q" ? "the name" : `${key}=${cut(value, 24)}`}`,
      ),
    ),
  );
}

/** @param {Set<string>} selected @param {string[]} waiting those of them that can be retried @param {() => void} done */
function actionBar(selected, waiting, done) {
  const keys = [...selected];
  const remove = async () => {
    const sure = await ask({
      title: `Delete ${counted(keys.length, "pod")}?`,
      text: [
        h(
          "p",
          { class: "name" },
          keys.slice(0, FEW).join(", "),
          keys.length > FEW ? ` and ${keys.length - FEW} more` : "",
        ),
        "Controllers create new pods.",
      ],
      yes: "Delete",
      danger: true,
    });
    if (
      sure &&
      (await perform(`Delete ${counted(keys.length, "pod")}`, () =>
        eachPod(keys, (pod) => send(objectPath("core", "v1", "pods", pod.namespace, pod.name), { method: "DELETE" })),
      ))
    )
      done();
  };
  const retry = async () => {
    if (
      await perform(`Schedule ${counted(waiting.length, "pod")} again`, () =>
        eachPod(waiting, (pod) =>
          call("POST /pods/{namespace}/{name}/retry", pod),
        ),
      )
    )
      done();
  };
  return h(
    "div",
    { class: "panel row action-bar", role: "toolbar", "aria-label": "Selected pods", "data-test": "action-bar" },
    h("span", { class: "strong" }, `${count(keys.length)} selected`),
    h(
      "button",
      {
        type: "button",
        class: "button",
        disabled: !waiting.length,
        title: waiting.length ? null : "Only pending pods can be scheduled again",
        onclick: () => void retry(),
      },
      "Retry now",
    ),
    keys.length === 1 ? h("a", { class: "button", href: to("nodes", { fit: keys[0] }) }, "Show on nodes") : null,
    keys.length === 1
      ? h("a", { class: "button", href: to("new", { like: keys[0], count: 50 }) }, "Create 50 copies")
      : null,
    h("button", { type: "button", class: "button danger", onclick: () => void remove() }, "Delete"),
    h("span", { class: "grow" }),
    h("button", { type: "button", class: "button quiet", onclick: done }, "Clear"),
  );
}

/** @param {string[]} keys @param {(pod: { namespace: string, name: string }) => Promise<unknown>} act */
async function eachPod(keys, act) {
  for (const key of keys) await act(podOf(key));
}
