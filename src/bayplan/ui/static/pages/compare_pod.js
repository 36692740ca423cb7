// One pod in two runs: its node in each, the first plugin whose results differ, and both matrices side by side.

import { draw, h, debounce } from "../dom.js";
import { count, counted, cut, decidesOtherwise } from "../format.js";
import { change, isServer, runPodAddress, to } from "../address.js";
import { get } from "../service.js";
import { onReload } from "../stream.js";
import { choice, copyMenu } from "../parts.js";
import { failure, loading } from "../loading_states.js";
import { SplitView, alignRows, filterRows, differs, constantScores } from "../split_view.js";
import { fits } from "../matrix.js";
import { title } from "../shell.js";

/** @typedef {import("../matrix.js").View} View */

/** @param {import("../main.js").Page} page */
export function open({ place, root, signal }) {
  const { namespace, name } = place.names;
  title(`Compare ${name}`);
  root.classList.add("full-height");
  const head = h("div", { class: "stack tight-stack" }, loading(2));
  const tools = h("div", null);
  const content = h("div", { class: "tab-content" });
  root.append(head, tools, content);
  let { query } = place;
  /** @type {Api.PodComparison | null} */
  let data = null;
  /** @type {import("../split_view.js").Pair | null} */
  let pair = null;
  /** @type {SplitView | null} */
  let splitView = null;
  const sides = () => ({ a: query.get("a") || "now", b: query.get("b") || "now" });
  const view = () => viewOf(query);
  const typed = debounce(60, (/** @type {string} */ text) => change({ find: text }));

  const show = () => {
    if (!data) return;
    draw(head, ...heading(data, namespace, name, sides()));
    if (!pair) {
      draw(tools, null);
      draw(content, nothingKept("a", data.a.matrix), nothingKept("b", data.b.matrix));
      return;
    }
    const quiet = view().folded ? constantScores(pair) : new Set();
    draw(tools, toolBar(pair, view(), quiet.size, typed));
    if (!splitView) {
      splitView = new SplitView({ view: view(), signal, onView: () => {} });
      content.replaceChildren(sideTitles(data, sides()), splitView.element);
    }
    splitView.show(wantedRows(pair, view()), { ...view(), only: "all", find: "" }, quiet);
  };
  const load = async () => {
    try {
      data = await get("/compare/pods/{namespace}/{name}", { namespace, name, ...sides() }, signal);
      if (signal.aborted) return;
      const [a, b] = [data.a.matrix, data.b.matrix];
      pair = a.form === "columns" && b.form === "columns" ? alignRows(a, b) : null;
      show();
    } catch (problem) {
      if (signal.aborted) return;
      draw(
        head,
        h("p", { class: "crumbs" }, h("a", { href: to("compare", sides()) }, "Compare")),
        h("h1", { class: "verdict" }, `${namespace}/${cut(name, 60)} can't be compared`),
        failure(problem, () => void load()),
      );
    }
  };
  void load();
  onReload(() => void load(), signal);
  return (/** @type {import("../address.js").Place} */ next) => {
    const before = sides();
    query = next.query;
    const now = sides();
    if (before.a !== now.a || before.b !== now.b) void load();
    else show();
  };
}

/** The rows of both matrices that a view shows. @param {import("../split_view.js").Pair} pair @param {View} view */
function wantedRows(pair, { only, find }) {
  const text = find.toLowerCase();
  return filterRows(
    pair,
    (row) =>
      (only !== "differ" || differs(pair, row)) &&
      (only !== "fit" || fits(pair.a.rows, row) || fits(pair.b.rows, row)) &&
      (!text || pair.a.rows.node[row].toLowerCase().includes(text)),
  );
}

/** @param {URLSearchParams} query @returns {View} */
function viewOf(query) {
  const values = query.get("values");
  return {
    only: query.get("only") || "all",
    values: values === "raw" || values === "weighted" ? values : "normalized",
    find: query.get("find") ?? "",
    sort: "",
    cell: "",
    folded: query.get("columns") !== "all",
  };
}

/**
 * The headline: the pod's node in each run, then the plugin that made the difference.
 * @param {Api.PodComparison} data @param {string} namespace @param {string} name @param {{ a: string, b: string }} sides
 */
function heading(data, namespace, name, sides) {
  const { a_node: a, b_node: b, decisive_plugin: first } = data;
  const open = (/** @type {"a" | "b"} */ side) =>
    h(
      "a",
      { class: "button", href: runPodAddress({ namespace, name }, sides[side]), key: side },
      `Open in ${side.toUpperCase()}`,
    );
  return [
    h(
      "p",
      { class: "crumbs" },
      h("a", { href: to("compare", sides) }, "Compare"),
      " / ",
      h("span", { class: "name", title: name }, `${namespace}/${cut(name, 80)}`),
    ),
    h(
      "div",
      { class: "head" },
      h("h1", { class: "verdict", "data-test": "verdict" }, `${namespace}/${name} ${whereInBoth(a, b)}`),
      open("a"),
      open("b"),
      copyMenu({ json: `/bayplan/v1/compare/pods/${namespace}/${name}${location.search}` }),
    ),
    h("p", { "data-test": "first-plugin" }, reason(first, a, b)),
  ];
}

/** The nodes of the pod in both runs, "" if it is pending. @param {string} a @param {string} b */
function whereInBoth(a, b) {
  const where = (/** @type {string} */ node) => (node ? `runs on ${node}` : "is pending");
  if (a === b) return `${where(a)} in both`;
  return a && b ? `runs on ${a} in A, on ${b} in B` : `${where(a)} in A, ${where(b)} in B`;
}

/** @param {Api.DecisivePlugin | null} first @param {string} a @param {string} b */
function reason(first, a, b) {
  if (first) return `First difference: ${decidesOtherwise(first, a, b)}`;
  return a === b
    ? ""
    : "No plugin differs: the clusters were different before, or the tie was broken differently.";
}

/** @param {string} side @param {Api.PodComparison["a"]["matrix"]} matrix */
function nothingKept(side, matrix) {
  return matrix.form !== "none"
    ? null
    : h(
        "div",
        { class: "note wait", key: side },
        `There is no matrix of ${side.toUpperCase()}: ${matrix.why || "nothing was recorded"}.`,
      );
}

/** @param {string} side the key of a run in the address */
function nameOfSide(side) {
  if (side === "now") return "this server";
  return isServer(side) ? side : `fork ${side}`;
}

/** @param {Api.PodComparison} data @param {{ a: string, b: string }} sides */
function sideTitles(data, sides) {
  return h(
    "div",
    { class: "split-titles" },
    /** @type {const} */ (["a", "b"]).map((side) =>
      h(
        "p",
        { class: "row", key: side },
        h("span", { class: `side-letter side-${side}` }, side.toUpperCase()),
        h(
          "span",
          { class: "clip", title: sentenceOf(data[side].matrix) },
          nameOfSide(sides[side]),
        ),
      ),
    ),
  );
}

/**
 * @param {import("../split_view.js").Pair} pair @param {View} view @param {number} quiet the number of scores left out
 * @param {(text: string) => void} typed
 */
function toolBar(pair, view, quiet, typed) {
  const rows = pair.a.rows.node.map((_, row) => row);
  const fit = rows.filter((row) => fits(pair.a.rows, row) || fits(pair.b.rows, row));
  return h(
    "div",
    { class: "tools" },
    choice(
      "Show",
      [
        { value: "all", text: "all", count: count(rows.length) },
        { value: "differ", text: "differ", count: count(rows.filter((row) => differs(pair, row)).length) },
        { value: "fit", text: "fit in either", count: count(fit.length) },
      ],
      view.only,
      (only) => change({ only: only === "all" ? "" : only }),
    ),
    choice(
      "Values",
      [
        { value: "normalized", text: "normalised" },
        { value: "weighted", text: "weighted" },
        { value: "raw", text: "raw" },
      ],
      view.values,
      (values) => change({ values: values === "normalized" ? "" : values }),
    ),
    h("input", {
      type: "search",
      class: "field",
      placeholder: "Find node…",
      "aria-label": "Find node",
      "data-search": "",
      value: view.find,
      oninput: (/** @type {Event} */ event) => typed(/** @type {HTMLInputElement} */ (event.target).value),
    }),
    quiet || !view.folded
      ? h(
          "button",
          { type: "button", class: "button quiet", onclick: () => change({ columns: view.folded ? "all" : "" }) },
          view.folded ? `Show ${counted(quiet, "equal score")}` : "Hide equal scores",
        )
      : null,
  );
}

/** @param {Api.PodComparison["a"]["matrix"]} matrix */
function sentenceOf(matrix) {
  return matrix.form === "none" ? null : matrix.summary;
}
