// Nodes: where is room, and where is none? A heat map of all nodes (cards if there are few), and the same nodes as a
// table.

import { draw, h, debounce } from "../dom.js";
import { amount, bounded, count, counted, resource } from "../format.js";
import { change, go, nodeAddress, to } from "../address.js";
import { get } from "../service.js";
import { onReload, subscribe } from "../stream.js";
import { choice, chip, copyMenu, name, podOf, select } from "../parts.js";
import { empty, failure } from "../loading_states.js";
import { Cells } from "../cells.js";
import { Grid } from "../grid.js";
import { NODE_COLUMNS, mapLegend } from "../node_columns.js";
import { nodeCards } from "../node_cards.js";
import { cordon, removeNode } from "../node_actions.js";
import { title } from "../shell.js";
import { MAX_CARDS } from "./overview.js";

const FILTERS = /** @type {const} */ (["q", "zone", "pool", "label"]);

/** @param {import("../main.js").Page} page */
export function open({ place, root, signal }) {
  title("Nodes");
  const head = h("div", null);
  const tools = h("div", null);
  const map = h("section", { class: "map", "aria-label": "Map of nodes" });
  const chosen = h("div", { class: "chosen" });
  const table = h("section", { class: "table-part", "aria-label": "Table of nodes" });
  root.classList.add("full-height");
  root.append(head, tools, map, chosen, table);
  const view = new View({ head, tools, map, chosen, table, signal });
  view.update(place);
  return (/** @type {import("../address.js").Place} */ next) => view.update(next);
}

class View {
  /** @param {{ head: HTMLElement, tools: HTMLElement, map: HTMLElement, chosen: HTMLElement, table: HTMLElement, signal: AbortSignal }} parts */
  constructor(parts) {
    this.parts = parts;
    this.signal = parts.signal;
    this.query = new URLSearchParams();
    /** @type {Api.Cells | null} */
    this.cellData = null;
    this.total = 0;
    this.exact = true;
    /** @type {Partial<Api.NodeFacets>} */
    this.facets = {};
    /** @type {Api.Overview | null} */
    this.overview = null;
    this.cells = new Cells({
      signal: this.signal,
      height: () => Math.max(160, Math.min(430, innerHeight - 420)),
      onSelect: (node) => change({ sel: node }),
      onOpen: (node) => go(nodeAddress(node)),
    });
    this.ending = new AbortController();
    this.typed = debounce(120, (/** @type {string} */ text) => change({ q: text }));
    this.grid = this.makeGrid();
    parts.table.append(this.grid.element);
    // The map's place is reserved until it is loaded, so that the table does not jump.
    const room = `${Math.max(160, Math.min(430, innerHeight - 420))}px`;
    parts.map.append(h("div", { "data-test": "loading", class: "ghost", style: { height: room } }));
    /** @type {AbortController | null} */
    this.topic = null;
    const refresh = () => {
      this.grid.refresh();
      void this.loadCells();
    };
    onReload(refresh, this.signal);
    const timer = setInterval(() => {
      if (!document.hidden) this.grid.refresh();
    }, 2000);
    this.signal.addEventListener("abort", () => clearInterval(timer));
    void this.loadOverview();
    subscribe(
      "overview",
      (data) => {
        this.overview = data;
        this.drawHead();
      },
      this.signal,
    );
  }

  async loadOverview() {
    try {
      this.overview = await get("/overview", {}, this.signal);
      this.drawHead();
    } catch {
      // The table shows the error; only the headline is missing.
    }
  }

  /** The filter in the address, in the form that the server expects. */
  filter() {
    /** @type {{ [K in typeof FILTERS[number]]?: string }} */
    const filter = {};
    for (const key of FILTERS) if (this.query.get(key)) filter[key] = this.query.get(key) ?? "";
    return filter;
  }

  makeGrid() {
    return new Grid({
      label: "Nodes",
      signal: this.signal,
      test: "node-table",
      keyOf: (row) => row.name,
      hrefOf: (row) => nodeAddress(row.name),
      columns: NODE_COLUMNS,
      load: (offset, limit, signal) =>
        get(
          "/nodes",
          { ...this.filter(), sort: this.query.get("sort") ?? "", offset, limit, facets: offset === 0 },
          signal,
        ).then((answer) => {
          if (answer.facets) {
            this.facets = answer.facets;
            this.drawTools();
          }
          return answer;
        }),
      onSort: (sort) => change({ sort }),
      onTotal: (total, exact) => {
        this.total = total;
        this.exact = exact;
        this.drawTools();
      },
      rowClass: (row) => (row.name === this.query.get("sel") ? "chosen" : ""),
      empty: () => this.nothing(),
    });
  }

  nothing() {
    const filters = Object.entries(this.filter());
    if (!filters.length)
      return empty(
        "No nodes yet: pods will stay pending.",
        h("a", { class: "button primary", href: to("new", { kind: "Node" }) }, "Create nodes"),
        h("a", { class: "button", href: to("sources") }, "Import a cluster"),
        "or start with bayplan up PATH",
      );
    return empty(
      `None of ${count(this.overview?.counts.nodes)} nodes matches ${filters.map(([key, value]) => `${key}=${value}`).join(", ")}.`,
      h("a", { class: "button", href: to("nodes") }, "Clear the filter"),
    );
  }

  /** @param {import("../address.js").Place} place */
  update(place) {
    const before = this.query;
    this.query = place.query;
    const differs = (/** @type {readonly string[]} */ keys) =>
      keys.some((key) => (before.get(key) ?? "") !== (place.query.get(key) ?? ""));
    if (!this.started || differs(["metric", "by"])) void this.loadCells();
    if (this.started && differs([...FILTERS, "sort"])) this.grid.reset(place.query.get("sort") ?? "");
    else if (!this.started) {
      this.grid.how.sort = place.query.get("sort") ?? "";
      this.grid.drawHead();
    }
    if (!this.started || differs(FILTERS)) this.filterCells();
    if (!this.started || differs(["fit"])) void this.loadFit();
    if (!this.started || differs(["sel"])) void this.loadChosen();
    this.started = true;
    this.drawHead();
    this.drawTools();
  }

  get metric() {
    return this.query.get("metric") || "cpu";
  }

  async loadCells() {
    const { metric } = this;
    try {
      const data = await get("/nodes/cells", { metric, by: this.query.get("by") || "zone" }, this.signal);
      if (this.signal.aborted || metric !== this.metric) return;
      this.cellData = data;
      this.filterCells();
    } catch (problem) {
      if (!this.signal.aborted)
        draw(
          this.parts.map,
          failure(problem, () => void this.loadCells()),
        );
      return;
    }
    this.topic?.abort();
    this.topic = new AbortController();
    this.signal.addEventListener("abort", () => this.topic?.abort());
    subscribe(
      `nodes:${metric}`,
      (changed) => {
        if (changed.layout !== this.cellData?.layout) void this.loadCells();
        else this.cells.update(changed);
      },
      this.topic.signal,
    );
    this.drawTools();
  }

  get isSmall() {
    return (
      this.cellData &&
      this.cellData.groups.reduce((sum, group) => sum + group.nodes.length, 0) < MAX_CARDS
    );
  }

  /** Apply the filter of the table to the map. */
  filterCells() {
    if (!this.cellData) return;
    if (!this.cellData.groups.length) {
      // The table says that there are no nodes, and what to do.
      this.parts.map.replaceChildren();
      this.parts.map.parentElement?.classList.remove("full-height");
      return;
    }
    this.parts.map.parentElement?.classList.toggle("full-height", !this.isSmall);
    if (this.isSmall) {
      this.ending.abort();
      this.ending = new AbortController();
      this.signal.addEventListener("abort", () => this.ending.abort());
      nodeCards(this.parts.map, {
        signal: this.ending.signal,
        small: this.cellData.groups.length > 6,
        query: this.filter(),
      });
      return;
    }
    if (this.cells.element.parentElement !== this.parts.map) this.parts.map.replaceChildren(this.cells.element);
    const zone = this.query.get("zone");
    const text = (this.query.get("q") ?? "").toLowerCase();
    const groups = this.cellData.groups
      .map((group) => {
        if (!text) return group;
        const kept = group.nodes
          .map((node, at) => (node.toLowerCase().includes(text) ? at : -1))
          .filter((at) => at >= 0);
        return {
          name: group.name,
          nodes: kept.map((at) => group.nodes[at]),
          cells: kept.map((at) => group.cells[at]),
          flags: kept.map((at) => group.flags[at]),
        };
      })
      .filter(
        (group) =>
          group.nodes.length && (!zone || (this.query.get("by") ?? "zone") !== "zone" || group.name === zone),
      );
    this.cells.show(groups);
  }

  /** Load which nodes fit a pod, by its last attempt. */
  async loadFit() {
    const key = this.query.get("fit");
    if (!key) {
      this.fitText = "";
      this.cells.showFit(null);
      this.drawTools();
      return;
    }
    const pod = podOf(key);
    try {
      const data = await get(
        "/pods/{namespace}/{name}/attempts/{attempt}/matrix",
        { ...pod, attempt: "latest", form: "columns", limit: 10000 },
        this.signal,
      );
      if (data.form !== "columns") throw new Error("no matrix");
      const totals = data.rows.total.filter((total) => total !== null);
      const low = Math.min(...totals);
      const range = Math.max(1, Math.max(...totals) - low);
      /** @type {Map<string, { shade: number | null }>} */
      const fit = new Map();
      for (const [at, node] of data.rows.node.entries()) {
        const total = data.rows.total[at];
        if (total !== null) fit.set(node, { shade: (total - low) / range });
        else if (data.rows.plugin[at]) fit.set(node, { shade: null });
      }
      this.cells.showFit(fit);
      this.fitText = `${count(data.counts.fit)} of ${counted(data.rows.node.length, "node")} fit ${key}`;
    } catch {
      this.fitText = `no record of ${key}`;
      this.cells.showFit(null);
    }
    this.drawTools();
  }

  async loadChosen() {
    const node = this.query.get("sel");
    if (!node) {
      draw(this.parts.chosen);
      return;
    }
    this.cells.select(node);
    this.grid.schedule();
    try {
      const answer = await get("/nodes", { q: node, limit: 5 }, this.signal);
      const row = answer.items.find((item) => item.name === node);
      draw(this.parts.chosen, row ? this.chosenLine(row) : h("p", { class: "faint" }, `${node} is gone.`));
    } catch (problem) {
      if (!this.signal.aborted)
        draw(
          this.parts.chosen,
          failure(problem, () => void this.loadChosen()),
        );
    }
  }

  /** @param {Api.NodeRow} row */
  chosenLine(row) {
    const words = [
      `cpu ${amount("cpu", row.requested.cpu)} of ${amount("cpu", row.allocatable.cpu)}`,
      `memory ${amount("memory", row.requested.memory)} of ${amount("memory", row.allocatable.memory)}`,
      counted(row.pods, "pod"),
      row.taints.length ? `taints ${row.taints.join(", ")}` : "no taints",
    ];
    const again = () => void this.loadChosen();
    return h(
      "div",
      { class: "panel row", "data-test": "chosen-node" },
      name(row.name),
      h("span", { class: "grow" }, words.join(" · ")),
      h("a", { class: "button", href: nodeAddress(row.name) }, "Open"),
      h(
        "button",
        { type: "button", class: "button", onclick: () => void cordon(row.name, !row.cordoned).then(again) },
        row.cordoned ? "Uncordon" : "Cordon",
      ),
      h("a", { class: "button", href: to("objects", "core", "v1", "nodes", "-", row.name, { tab: "edit" }) }, "Edit"),
      h(
        "button",
        { type: "button", class: "button danger", onclick: () => void removeNode(row.name, row.pods).then(again) },
        "Delete",
      ),
      h(
        "button",
        { type: "button", class: "button quiet icon", "aria-label": "Close", onclick: () => change({ sel: "" }) },
        "✕",
      ),
    );
  }

  drawHead() {
    const counts = this.overview?.counts;
    const words = counts
      ? [
          counts.nodes ? counted(counts.nodes, "node") : "No nodes yet",
          .../** @type {[number, string][]} */ ([
            [counts.nodes_full, "full"],
            [counts.nodes_empty, "empty"],
            [counts.nodes_cordoned, "cordoned"],
            [counts.nodes_not_ready, "not ready"],
          ])
            .filter(([value]) => value)
            .map(([value, word]) => `${count(value)} ${word}`),
        ]
      : ["Nodes"];
    draw(
      this.parts.head,
      h(
        "div",
        { class: "head" },
        h("h1", { class: "verdict", "data-test": "verdict" }, words.join(", ")),
        h("a", { class: "button", href: to("new", { kind: "Node" }) }, "Add nodes"),
        copyMenu({ json: `/bayplan/v1/nodes${location.search}`, kubectl: "kubectl get nodes" }),
      ),
    );
  }

  drawTools() {
    const { query } = this;
    const metrics = this.cellData?.metrics ?? ["cpu", "memory", "pods"];
    const by = query.get("by") || "zone";
    const few = this.isSmall;
    const { zone, pool } = this.facets;
    draw(
      this.parts.tools,
      h(
        "div",
        { class: "tools" },
        h("input", {
          type: "search",
          class: "field",
          placeholder: "Name contains…",
          "aria-label": "Name contains",
          "data-search": "",
          "data-test": "search-nodes",
          value: query.get("q") ?? "",
          oninput: (/** @type {Event} */ event) => this.typed(/** @type {HTMLInputElement} */ (event.target).value),
        }),
        zone && zone.length > 1
          ? select("zone", zone, query.get("zone") ?? "", (value) => change({ zone: value }))
          : null,
        pool && pool.length > 1
          ? select("pool", pool, query.get("pool") ?? "", (value) => change({ pool: value }))
          : null,
        h("input", {
          class: "field narrow",
          placeholder: "label=value",
          "aria-label": "Label",
          value: query.get("label") ?? "",
          onchange: (/** @type {Event} */ event) =>
            change({ label: /** @type {HTMLInputElement} */ (event.target).value }),
        }),
        query.get("fit") ? chip(`fit ${query.get("fit")}: ${this.fitText || "…"}`, () => change({ fit: "" })) : null,
        h("span", { class: "grow" }),
        few ? null : h("span", { class: "tool-label" }, "by"),
        few
          ? null
          : choice(
              "Group by",
              [
                { value: "zone", text: "zone" },
                { value: "pool", text: "pool" },
              ],
              by,
              (value) => change({ by: value === "zone" ? "" : value }),
            ),
        few ? null : h("span", { class: "tool-label" }, "colour"),
        few
          ? null
          : choice(
              "Colour by",
              metrics.slice(0, 5).map((metric) => ({ value: metric, text: resource(metric) })),
              this.metric,
              (value) => change({ metric: value === "cpu" ? "" : value }),
            ),
        h("span", { class: "faint figure" }, `${bounded(this.total, this.exact)} shown`),
      ),
      few || !this.cellData ? null : mapLegend(Boolean(query.get("fit"))),
    );
  }
}
