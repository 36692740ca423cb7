// Compare: two runs side by side. Which pods differ, by how much, and which plugin's results were the first to differ?

import { draw, h } from "../dom.js";
import { count, decidesOtherwise, signed, time } from "../format.js";
import { shortened } from "../names.js";
import { change, isServer, runPodAddress, to } from "../address.js";
import { get, call } from "../service.js";
import { onReload } from "../stream.js";
import { choice, copyMenu, nodeLink, perform, podOf } from "../parts.js";
import { empty, failure, loading } from "../loading_states.js";
import { Grid } from "../grid.js";
import { title } from "../shell.js";

const AGAIN = 1000;

/** @param {import("../main.js").Page} page */
export function open({ place, root, signal }) {
  title("Compare");
  root.classList.add("full-height");
  const view = new CompareView(root, place.query, signal);
  void view.load();
  onReload(() => void view.load(), signal);
  return (/** @type {import("../address.js").Place} */ next) => {
    view.query = next.query;
    void view.load();
  };
}

class CompareView {
  /** @param {HTMLElement} root @param {URLSearchParams} query @param {AbortSignal} signal */
  constructor(root, query, signal) {
    this.query = query;
    this.signal = signal;
    this.head = h("div", null);
    this.sides = h("div", { class: "stack" });
    this.table = h("div", { class: "table-part" });
    this.shown = "";
    root.append(this.head, this.sides, this.table);
  }

  async load() {
    const a = this.query.get("a") || "now";
    const b = this.query.get("b") ?? "";
    try {
      const forks = (await get("/forks", {}, this.signal)).items;
      if (this.signal.aborted) return;
      const running = forks.some((fork) => fork.id === b && fork.state === "running");
      if (!b || running) {
        this.drawChoice(forks, a, b, running);
        return;
      }
      const asked = this.query.get("kind");
      const data = await get("/compare", { a, b, kind: asked || "moved", limit: 1 }, this.signal);
      if (!this.signal.aborted) this.drawComparison(forks, data, a, b, asked || firstKind(data));
    } catch (problem) {
      if (!this.signal.aborted)
        draw(
          this.head,
          h("h1", { class: "verdict" }, "Compare"),
          failure(problem, () => void this.load()),
        );
    }
  }

  /**
   * Show the choice of runs: there is nothing to compare yet.
   * @param {Api.ForkStatus[]} forks @param {string} a @param {string} b @param {boolean} running
   */
  drawChoice(forks, a, b, running) {
    this.shown = "";
    this.table.replaceChildren();
    const words = running ? `The fork ${b} runs…` : "Compare two runs";
    draw(this.head, h("div", { class: "head" }, h("h1", { class: "verdict", "data-test": "verdict" }, words)));
    draw(this.sides, pickers(forks, a, b), b ? loading(3) : explain(forks));
    if (running) setTimeout(() => !this.signal.aborted && void this.load(), AGAIN);
  }

  /** @param {Api.ForkStatus[]} forks @param {Api.Comparison} data @param {string} a @param {string} b @param {string} kind */
  drawComparison(forks, data, a, b, kind) {
    const { counts } = data;
    draw(
      this.head,
      h(
        "div",
        { class: "head" },
        h("h1", { class: "verdict", "data-test": "verdict" }, data.summary),
        copyMenu({ json: `/bayplan/v1/compare${location.search}` }),
      ),
    );
    const kinds = [
      { value: "moved", text: "moved", count: count(counts.moved) },
      { value: "only_a", text: "only in A", count: count(counts.only_a) },
      { value: "only_b", text: "only in B", count: count(counts.only_b) },
    ];
    draw(
      this.sides,
      pickers(forks, a, b),
      following(data),
      metrics(data),
      h(
        "div",
        { class: "tools" },
        choice("Which pods", kinds, kind, (value) => change({ kind: value })),
      ),
    );
    const key = `${a} ${b} ${kind}`;
    if (key !== this.shown) this.table.replaceChildren(pods(a, b, kind, this.signal).element);
    this.shown = key;
  }
}

/** The kind of differences to show first: moved pods, or the other kinds if no pod moved. @param {Api.Comparison} data */
function firstKind({ counts }) {
  return /** @type {const} */ (["moved", "only_a", "only_b"]).find((kind) => counts[kind]) ?? "moved";
}

/**
 * The sources of each side, with their lag: two servers that follow one source differ while one of them lags.
 * @param {Api.Comparison} data
 */
function following(data) {
  const sides = /** @type {const} */ (["a", "b"]).filter((side) => data[side].sources?.length);
  if (!sides.length) return null;
  return h(
    "div",
    { class: "facts-line", "data-test": "following" },
    sides.map((side) =>
      h(
        "span",
        { key: side },
        h("span", { class: "strong" }, `${side.toUpperCase()} `),
        (data[side].sources ?? []).map(sourceWords).join("; "),
      ),
    ),
  );
}

/** @param {Api.SourceFacts} source of this server, or of an older one without a sentence */
function sourceWords(source) {
  return source.summary || `Syncs with ${source.name}`;
}

/** @param {Api.ForkStatus[]} forks @param {string} a @param {string} b */
function pickers(forks, a, b) {
  const pick = (/** @type {"a" | "b"} */ side, /** @type {string} */ chosen) =>
    h(
      "span",
      { class: "row", key: side },
      h("span", { class: `side-letter side-${side}` }, side.toUpperCase()),
      h("input", {
        class: "field wide",
        list: "runs",
        "aria-label": `Run ${side.toUpperCase()}`,
        "data-test": `run-${side}`,
        placeholder: "a fork, or the address of another server",
        value: chosen,
        onchange: (/** @type {Event} */ event) =>
          change({ [side]: /** @type {HTMLInputElement} */ (event.target).value }, { push: true }),
      }),
    );
  return h(
    "div",
    { class: "tools wrapping" },
    pick("a", a),
    pick("b", b),
    h(
      "datalist",
      { id: "runs" },
      h("option", { value: "now" }, "this server, now"),
      forks.map((fork) =>
        h("option", { value: fork.id, key: fork.id }, `fork of ${fork.from}, ${time(fork.created_at)}, ${fork.state}`),
      ),
    ),
    h(
      "button",
      { type: "button", class: "button quiet", onclick: () => change({ a: b, b: a }), title: "Swap A and B" },
      "⇄",
    ),
  );
}

/** @param {Api.ForkStatus[]} forks */
function explain(forks) {
  return h(
    "div",
    { class: "stack" },
    forks.length
      ? h(
          "section",
          { class: "panel" },
          h("h2", null, "Forks"),
          h(
            "table",
            { class: "list" },
            h(
              "tbody",
              null,
              forks.map((fork) =>
                h(
                  "tr",
                  { key: fork.id, class: "linked", onclick: () => change({ b: fork.id }, { push: true }) },
                  h("td", { class: "name" }, fork.id),
                  h("td", null, `of ${fork.from}`),
                  h("td", null, time(fork.created_at)),
                  h("td", null, fork.state),
                  h(
                    "td",
                    { class: "right" },
                    h(
                      "button",
                      {
                        type: "button",
                        class: "button",
                        onclick: (/** @type {Event} */ event) => {
                          event.stopPropagation();
                          change({ b: fork.id }, { push: true });
                        },
                      },
                      "Compare",
                    ),
                  ),
                ),
              ),
            ),
          ),
        )
      : null,
    empty(
      "A fork is a copy of this cluster that continues in virtual time, with another configuration or other objects. Compare it with this cluster, or compare this cluster with another Bayplan server that syncs the same source.",
      h("a", { class: "button primary", href: to("config") }, "Edit configuration"),
      h(
        "button",
        {
          type: "button",
          class: "button",
          "data-test": "fork-now",
          onclick: () =>
            void perform("Fork", async () => {
              const fork = await call("POST /forks", {}, { from: "now" });
              change({ b: fork.id }, { push: true });
              return `Fork ${fork.id} runs.`;
            }),
        },
        "Create fork",
      ),
    ),
  );
}

/** @param {Api.Comparison} data */
function metrics(data) {
  const rows = data.metrics;
  const most = Math.max(1e-9, ...rows.map((row) => Math.abs(relative(row))));
  return rows.length
    ? h(
        "section",
        { class: "panel" },
        h(
          "table",
          { class: "list metrics", "data-test": "metrics" },
          h(
            "thead",
            null,
            h(
              "tr",
              null,
              ["Metric", `A ${name(data.a)}`, `B ${name(data.b)}`, "B − A", ""].map((text, at) =>
                h("th", { scope: "col", class: at && at < 4 ? "right" : null, key: at }, text),
              ),
            ),
          ),
          h(
            "tbody",
            null,
            rows.map((row) =>
              h(
                "tr",
                { key: row.name },
                h("th", { scope: "row" }, row.name),
                h("td", { class: "right figure" }, figure(row.a)),
                h("td", { class: "right figure" }, figure(row.b)),
                h(
                  "td",
                  { class: "right figure" },
                  Number.isInteger(row.b - row.a) ? signed(row.b - row.a) : (row.b - row.a).toFixed(2),
                ),
                h(
                  "td",
                  { class: "bar-cell" },
                  h("span", { class: "tally", style: { width: `${(Math.abs(relative(row)) / most) * 100}%` } }),
                ),
              ),
            ),
          ),
        ),
      )
    : null;
}

/** The difference of B, as a share of the larger number. @param {{ a: number, b: number }} row */
function relative(row) {
  return (row.b - row.a) / (Math.max(Math.abs(row.a), Math.abs(row.b)) || 1);
}

/** @param {Api.ComparedRun} side */
function name(side) {
  return side.name || side.id || "";
}

/** @param {number} value */
function figure(value) {
  return Number.isInteger(value) ? count(value) : String(Number(value.toPrecision(4)));
}

/** A text that is cut if it is longer than its column. @param {string} text */
function clipped(text) {
  return h("span", { class: "clip", title: text }, text);
}

/** @param {string} a @param {string} b @param {string} kind @param {AbortSignal} signal */
function pods(a, b, kind, signal) {
  const link = (/** @type {Api.ComparedPod} */ row, /** @type {string} */ side) => runPodAddress(podOf(row.pod), side);
  const both = (/** @type {Api.ComparedPod} */ row) => {
    const { namespace, name } = podOf(row.pod);
    return to("compare", namespace, name, { a, b });
  };
  const side = (/** @type {"a" | "b"} */ letter, /** @type {string} */ which) => {
    const key = /** @type {const} */ (`${letter}_node`);
    return {
      key,
      title: `Node in ${letter.toUpperCase()}`,
      width: "minmax(150px, 1.3fr)",
      narrow: "minmax(104px, 1fr)",
      render: (/** @type {Api.ComparedPod} */ row, /** @type {number} */ _, /** @type {number} */ letters) => {
        if (row[key]) return nodeLink(row[key], letters);
        if (row.missing_in === letter) return h("span", { class: "faint" }, "no such pod");
        return h("a", { href: link(row, which), class: "badge wait" }, "… pending");
      },
    };
  };
  // Of another server, only the nodes of the pods are known, not the results of its plugins.
  const knows = !isServer(a) && !isServer(b);
  const first = {
    key: "first",
    title: "First difference",
    width: "minmax(240px, 1.6fr)",
    below: true,
    render: (/** @type {Api.ComparedPod} */ row) =>
      row.decisive_plugin
        ? clipped(decidesOtherwise(row.decisive_plugin, row.a_node, row.b_node))
        : h("span", { class: "faint" }, "cluster state differs"),
  };
  return new Grid({
    label: "Pods that differ",
    signal,
    test: "compare-table",
    keyOf: (row) => row.pod,
    hrefOf: both,
    columns: [
      {
        key: "pod",
        title: "Pod",
        width: "minmax(200px, 1.6fr)",
        narrow: "minmax(118px, 1.2fr)",
        render: (row, _, letters) =>
          h("a", { class: "name", href: both(row), title: row.pod }, shortened(row.pod, letters)),
      },
      side("a", a),
      side("b", b),
      ...(knows ? [first] : []),
      {
        key: "open",
        title: "Open",
        width: "140px",
        minor: true,
        render: (row) =>
          h(
            "span",
            { class: "row" },
            h("a", { href: both(row) }, "side by side"),
            h("a", { href: link(row, a) }, "A"),
            h("a", { href: link(row, b) }, "B"),
          ),
      },
    ],
    load: (offset, limit, asked) => get("/compare", { a, b, kind, offset, limit }, asked),
    empty: () => h("div", { class: "empty" }, h("p", null, "No pods.")),
  });
}
