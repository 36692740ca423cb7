// One pod: why is it on this node, why not on others, and what would change that? The headline is the server's own
// sentence. Below it is the evidence: the matrix of nodes by plugins, what would help, attempts, preemption, events,
// YAML.

import { withKnownValues } from "../annotated.js";
import { draw, h, debounce, stamp } from "../dom.js";
import { count, cut, time } from "../format.js";
import { change, currentPlace, to } from "../address.js";
import { ApiError, apiAddress, get, objectPath, call, send, coalesce } from "../service.js";
import { onReload, subscribe } from "../stream.js";
import { failure, isMissing, loading } from "../loading_states.js";
import { ask, perform, tabs } from "../parts.js";
import { announceToScreenReader } from "../notices.js";
import { bind } from "../keyboard.js";
import { Matrix, onlyReason } from "../matrix.js";
import { cellPanel } from "../matrix_cell.js";
import { drawMatrixTools } from "../matrix_tools.js";
import { onPluginsReloaded } from "../plugin_reload.js";
import { capacityPart } from "../capacity.js";
import { nodeRulesPart } from "../node_rules.js";
import { attemptTable, preemptionPart, yamlPart } from "../pod_tabs.js";
import { podHead } from "../pod_head.js";
import { unblockPart } from "../unblocking.js";
import { eventTable } from "./node.js";
import { title } from "../shell.js";

/** @typedef {import("../matrix.js").View} View */
const TABS = [
  ["matrix", "Matrix"],
  ["unblock", "Unblock"],
  ["capacity", "Capacity"],
  ["attempts", "Attempts"],
  ["preemption", "Preemption"],
  ["events", "Events"],
  ["yaml", "YAML"],
];
const VALUES = /** @type {const} */ (["normalized", "weighted", "raw"]);

/** @param {import("../main.js").Page} page */
export async function open({ place, root, signal }) {
  const view = new PodView(place, root, signal);
  await view.start();
  return (/** @type {import("../address.js").Place} */ next) => view.update(next);
}

class PodView {
  /** @param {import("../address.js").Place} place @param {HTMLElement} root @param {AbortSignal} signal */
  constructor(place, root, signal) {
    this.namespace = place.names.namespace;
    this.name = place.names.name;
    this.query = place.query;
    this.signal = signal;
    this.pod = { namespace: this.namespace, name: this.name };
    title(this.name);
    root.classList.add("full-height");
    this.head = h("div", { class: "stack tight-stack" });
    this.tabBar = h("div", null);
    this.content = h("div", { class: "tab-content" });
    root.append(this.head, this.tabBar, this.content);
    /** @type {Api.PodPage | null} */
    this.data = null;
    /** @type {Api.ColumnMatrix | Api.NoMatrix | null} */
    this.matrixData = null;
    /** @type {unknown} */
    this.matrixProblem = null;
    /** Whether the attempt in the matrix is hypothetical. */
    this.hypothetical = false;
    this.shownMatrix = "";
    this.shownTab = "";
    /** The number of the attempt that the page was drawn for. @type {number | null | undefined} */
    this.newestAttempt = undefined;
    /** Failures by name of the plugin, for the titles of their columns. @type {Map<string, string>} */
    this.failures = new Map();
    /** Names of plugins that are not built in. @type {Set<string>} */
    this.custom = new Set();
    this.typed = debounce(60, (/** @type {string} */ text) => change({ find: text }));
    this.load = coalesce(() => this.fetchPod());
    subscribe(`pod:${this.namespace}/${this.name}`, () => void this.load(), signal);
    onReload(() => void this.load(), signal);
    onPluginsReloaded(() => void this.fetchPlugins(), signal);
    bind(
      {
        "[": () => this.attemptStep(-1),
        "]": () => this.attemptStep(1),
        f: () => this.tab === "matrix" && change({ only: currentPlace().query.get("only") === "failed" ? "" : "failed" }),
        v: () =>
          this.tab === "matrix" && change({ values: VALUES[(VALUES.indexOf(this.view.values) + 1) % VALUES.length] }),
        e: () => change({ tab: "yaml" }, { push: true }),
        d: () => void this.remove(),
      },
      signal,
    );
  }

  /** The name of this pod in questions such as "unblock". */
  get target() {
    return `pod/${this.namespace}/${this.name}`;
  }

  /** Whether the pod has no node, so that it can be unblocked. */
  get waits() {
    return ["waiting", "gated"].includes(this.data?.status ?? "");
  }

  get tab() {
    return this.query.get("tab") || "matrix";
  }

  /** @returns {View} */
  get view() {
    const { query } = this;
    return {
      only: query.get("only") || "all",
      values: VALUES.find((values) => values === query.get("values")) ?? "normalized",
      find: query.get("find") ?? "",
      sort: query.get("sort") ?? "",
      cell: query.get("cell") ?? "",
      folded: query.get("columns") !== "all",
    };
  }

  async start() {
    draw(this.head, loading(2));
    // In parallel, so that verdict and matrix each appear as soon as they arrive.
    const pod = this.fetchPod();
    if (this.tab === "matrix") void this.fetchMatrix();
    await pod;
    void this.fetchPlugins();
  }

  async fetchPod() {
    try {
      this.data = await get("/pods/{namespace}/{name}", { ...this.pod, run: this.query.get("run") }, this.signal);
      if (this.signal.aborted) return;
      announceToScreenReader(this.data.summary);
      this.drawHead();
      this.drawTabs();
      const newest = this.data.attempts.at(-1)?.attempt ?? null;
      if (this.tab !== "matrix") this.drawContent();
      else if (newest !== this.newestAttempt && this.newestAttempt !== undefined && !this.query.get("attempt")) {
        void this.fetchMatrix();
        if (this.custom.size) void this.fetchPlugins();
      } else if (this.matrixData?.form === "none") this.drawContent();
      this.newestAttempt = newest;
      stamp("verdict painted", this.data.summary);
    } catch (problem) {
      if (this.signal.aborted) return;
      draw(
        this.head,
        h(
          "h1",
          { class: "verdict", "data-test": "verdict" },
          isMissing(problem)
            ? `Pod ${this.namespace}/${cut(this.name, 60)} does not exist`
            : `${this.namespace}/${cut(this.name, 60)} can't be shown`,
        ),
        failure(problem, () => void this.load()),
        h(
          "div",
          { class: "row" },
          h("a", { class: "button", href: to("pods", { q: this.name }) }, "Search pods"),
          h("a", { class: "button", href: to("pods") }, "All pods"),
        ),
      );
    }
  }

  /** Load which plugins failed recently, and which are from files. The matrix does not wait for this. */
  async fetchPlugins() {
    const { items } = await get("/plugins", {}, this.signal).catch(() => ({ items: /** @type {Api.PluginRow[]} */ ([]) }));
    if (this.signal.aborted) return;
    this.failures.clear();
    this.custom.clear();
    for (const plugin of items) {
      const last = plugin.failures.at(-1);
      if (last) this.failures.set(plugin.name, `${last.point}: ${last.exception}`);
      if (plugin.file) this.custom.add(plugin.name);
    }
    if (!this.failures.size && !this.custom.size) return;
    this.matrix?.change(this.view);
    if (this.tab === "matrix" && this.matrixData) this.drawContent();
  }

  async fetchMatrix() {
    const attempt = this.query.get("attempt") || "latest";
    const exhaustive = this.query.get("each") === "1";
    try {
      const data = await get(
        "/pods/{namespace}/{name}/attempts/{attempt}/matrix",
        { ...this.pod, attempt, form: "columns", limit: 10000, exhaustive, run: this.query.get("run") },
        this.signal,
      );
      if (this.signal.aborted || attempt !== (this.query.get("attempt") || "latest")) return;
      const trial = data.form === "none" && data.number < 0 ? await this.fetchTrial() : null;
      if (this.signal.aborted) return;
      this.hypothetical = Boolean(trial);
      this.matrixData = trial ?? (data.form === "rows" ? null : data);
      this.matrixProblem = null;
    } catch (problem) {
      if (this.signal.aborted) return;
      this.matrixData = null;
      this.matrixProblem = problem;
    }
    this.shownMatrix = "";
    if (this.tab === "matrix") this.drawContent();
  }

  /** How a pod without recorded attempts, such as one imported with its node, would be scheduled now; null if that is not known. */
  async fetchTrial() {
    if (this.query.get("run")) return null;
    try {
      const data = await get(
        "/pods/{namespace}/{name}/attempts/{attempt}/matrix",
        { ...this.pod, attempt: "now", form: "columns", limit: 10000 },
        this.signal,
      );
      return data.form === "rows" ? null : data;
    } catch (problem) {
      // Show the failure of a plugin in the hypothetical attempt, but not that the pod can't be tried.
      if (problem instanceof ApiError && problem.status < 500) return null;
      throw problem;
    }
  }

  /** @param {import("../address.js").Place} place */
  update(place) {
    const before = this.query;
    this.query = place.query;
    const differs = (/** @type {string} */ key) => (before.get(key) ?? "") !== (place.query.get(key) ?? "");
    if (differs("attempt") || differs("each")) {
      this.matrixData = null;
      this.matrixProblem = null;
      if (this.tab === "matrix") void this.fetchMatrix();
    }
    this.drawHead();
    this.drawTabs();
    this.drawContent();
  }

  /** @param {number} step */
  attemptStep(step) {
    const attempts = this.data?.attempts ?? [];
    const at = attempts.findIndex(
      (attempt) =>
        String(attempt.attempt) === (this.query.get("attempt") || String(attempts.at(-1)?.attempt)),
    );
    const next = attempts[at + step];
    if (next) change({ attempt: at + step === attempts.length - 1 ? "" : next.attempt, cell: "" });
  }

  async remove() {
    const sure = await ask({
      title: `Delete ${this.name}?`,
      text: [
        this.data?.pod.workload
          ? `${this.data.pod.workload} creates a new one.`
          : "Deletes nothing else.",
      ],
      yes: "Delete",
      danger: true,
    });
    if (sure)
      await perform(`Delete ${this.name}`, async () => {
        await send(objectPath("core", "v1", "pods", this.namespace, this.name), { method: "DELETE" });
      });
  }

  /**
   * What to offer if no matrix is recorded: a retry for pods in the queue, a copy for pods with a node.
   * @param {Api.ColumnMatrix | Api.NoMatrix} matrixData
   */
  nextStep(matrixData) {
    if (!this.data || matrixData.form !== "none") return null;
    if (this.data.status === "waiting" && this.data.queue)
      return h("button", { type: "button", class: "button", onclick: () => void this.retry() }, "Retry now");
    if (this.data.pod.node)
      return h("a", { class: "button", href: to("new", { like: `${this.namespace}/${this.name}` }) }, "Create copy");
    return this.data.status === "waiting" ? h("a", { class: "button", href: to("config") }, "Show config") : null;
  }

  async retry() {
    await perform(`Schedule ${this.name} again`, async () => {
      await call("POST /pods/{namespace}/{name}/retry", this.pod);
    });
  }

  drawHead() {
    if (!this.data) return;
    draw(
      this.head,
      ...podHead(this.data, {
        namespace: this.namespace,
        name: this.name,
        address: apiAddress("/pods/{namespace}/{name}", this.pod),
        retry: () => void this.retry(),
        remove: () => void this.remove(),
      }),
    );
    this.drawTabs();
  }

  drawTabs() {
    if (!this.data) return;
    const { attempts, events } = this.data;
    const shown = this.query.get("attempt") || String(attempts.at(-1)?.attempt ?? "");
    const at = attempts.findIndex((attempt) => String(attempt.attempt) === shown);
    const labels = /** @type {Record<string, string>} */ ({
      attempts: attempts.length ? ` ${count(attempts.length)}` : "",
      events: events.length ? ` ${count(events.length)}` : "",
    });
    draw(
      this.tabBar,
      h(
        "div",
        { class: "tab-row" },
        tabs(
          "About this pod",
          TABS.filter(([key]) => key !== "unblock" || this.waits || this.tab === key).map(([key, text]) => ({
            key,
            text: text + (labels[key] ?? ""),
            href: to("pods", this.namespace, this.name, {
              tab: key === "matrix" ? "" : key,
              attempt: this.query.get("attempt"),
              run: this.query.get("run"),
            }),
          })),
          this.tab,
        ),
        h("span", { class: "grow" }),
        attempts.length
          ? h(
              "span",
              { class: "stepper", "data-test": "attempt" },
              h(
                "button",
                {
                  type: "button",
                  class: "button quiet icon",
                  "aria-label": "Previous attempt",
                  title: "Previous attempt ([)",
                  disabled: at <= 0,
                  onclick: () => this.attemptStep(-1),
                },
                "‹",
              ),
              `attempt ${shown} of ${attempts.at(-1)?.attempt} · ${time(attempts[at]?.at)}`,
              h(
                "button",
                {
                  type: "button",
                  class: "button quiet icon",
                  "aria-label": "Next attempt",
                  title: "Next attempt (])",
                  disabled: at < 0 || at >= attempts.length - 1,
                  onclick: () => this.attemptStep(1),
                },
                "›",
              ),
            )
          : null,
      ),
    );
  }

  drawContent() {
    const { tab, data } = this;
    if (tab !== this.shownTab) {
      this.content.replaceChildren();
      this.shownMatrix = "";
      this.shownTab = tab;
      delete this.content.dataset.filled;
    }
    if (tab === "matrix") this.drawMatrix();
    else if (!data) draw(this.content, loading(8));
    else if (tab === "attempts")
      draw(
        this.content,
        attemptTable(data.attempts, (attempt) => change({ tab: "", attempt }, { push: true })),
      );
    else if (tab === "events") draw(this.content, eventTable(data.events));
    else if (tab === "unblock") this.drawHelp();
    else if (tab === "capacity") capacityPart(this.content, { target: this.target, preempt: false }, this.signal);
    else if (tab === "preemption")
      preemptionPart(
        this.content,
        { ...this.pod, attempt: this.query.get("attempt") || "latest", run: this.query.get("run") },
        this.signal,
      );
    else if (tab === "yaml") yamlPart(this.content, data, this.namespace, this.name);
    else
      draw(
        this.content,
        h("p", null, "There is no such tab. ", h("a", { href: to("pods", this.namespace, this.name) }, "Matrix")),
      );
  }

  drawHelp() {
    const node = this.query.get("node") ?? "";
    if (!this.help || !this.help.suggestions.isConnected) {
      this.help = { rules: h("div", null), suggestions: h("div", { class: "stack" }) };
      this.content.replaceChildren(this.help.rules, this.help.suggestions);
    }
    if (node) nodeRulesPart(this.help.rules, this.target, node, this.signal);
    else {
      this.help.rules.replaceChildren();
      delete this.help.rules.dataset.filled;
    }
    const why = this.whyNotUnblocked();
    if (why) draw(this.help.suggestions, h("p", { class: "calm", "data-test": "nothing-to-unblock" }, why));
    else unblockPart(this.help.suggestions, this.target, this.signal);
  }

  /** Why this pod can't be unblocked; "" if it can. */
  whyNotUnblocked() {
    const { data } = this;
    if (!data || this.query.get("run")) return "Suggestions are available for the current cluster only.";
    if (data.attempts.at(-1)?.annotated) return `${data.pod.scheduler_name} scheduled this pod, and Bayplan can't run its plugins.`;
    if (data.deleted) return "This pod is deleted.";
    return data.status === "waiting" || data.status === "gated" ? "" : `Nothing to unblock: the pod is ${data.status}.`;
  }

  drawMatrix() {
    if (this.matrixProblem && !this.data) {
      // The pod could not be loaded; the error is shown above.
      this.content.replaceChildren();
      return;
    }
    if (this.matrixProblem) {
      draw(
        this.content,
        failure(this.matrixProblem, () => void this.fetchMatrix()),
      );
      return;
    }
    const { matrixData } = this;
    if (!matrixData) {
      if (!this.data || this.data.attempts.length) draw(this.content, loading(10));
      if (this.shownMatrix !== "asked") {
        this.shownMatrix = "asked";
        void this.fetchMatrix();
      }
      return;
    }
    const view = matrixData.form === "columns" ? withKnownValues(this.view, matrixData) : this.view;
    if (!this.matrix || !this.matrix.element.isConnected) {
      this.matrix = new Matrix({
        view,
        signal: this.signal,
        onView: (changes) =>
          change(Object.fromEntries(Object.entries(changes).map(([key, value]) => [key, String(value)]))),
        failures: this.failures,
        // The user may be working on these plugins, so they are never hidden.
        shown: this.custom,
      });
      this.tools = h("div", null);
      this.side = h("div", { class: "side" });
      this.content.replaceChildren(this.tools, h("div", { class: "matrix-row" }, this.matrix.element, this.side));
      this.shownMatrix = "";
    }
    const usable = matrixData.form === "columns" && matrixData.rows.node.length ? matrixData : null;
    this.matrix.element.hidden = !usable;
    if (usable) {
      const shown = JSON.stringify([matrixData.number, view, this.query.get("reason")]);
      if (shown !== this.shownMatrix) {
        this.matrix.view = view;
        const data = onlyReason(usable, this.query.get("reason") ?? "");
        this.matrix.show(data);
        this.shownMatrix = shown;
      }
    }
    drawMatrixTools(/** @type {HTMLElement} */ (this.tools), matrixData, view, {
      folded: this.matrix.layout.folded,
      reason: this.query.get("reason") ?? "",
      each: this.query.get("each") === "1",
      custom: this.custom.size > 0,
      typed: this.typed,
      next: this.nextStep(matrixData),
      hypothetical: this.hypothetical,
    });
    const panel = usable && view.cell ? cellPanel(usable, view.cell, () => change({ cell: "" })) : null;
    draw(/** @type {HTMLElement} */ (this.side), panel);
    stamp("matrix ready", matrixData.number);
  }
}
