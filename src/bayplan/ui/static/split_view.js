// Two matrices of one pod side by side: each node is in the same row of both, both scroll together, and cells that
// differ are marked.

import { h } from "./dom.js";
import { Matrix } from "./matrix.js";

/** @typedef {import("./matrix.js").MatrixData} MatrixData */
/** @typedef {import("./matrix.js").View} View */
/** @typedef {{ a: MatrixData, b: MatrixData }} Pair */

/**
 * Give both matrices the nodes of both, in the same order: by the better of a node's ranks in the two runs. So both winners come
 * first, then the runners-up.
 * @param {MatrixData} a @param {MatrixData} b @returns {Pair}
 */
export function alignRows(a, b) {
  /** @type {Map<string, number>} */
  const ranks = new Map();
  for (const { rows } of [a, b])
    for (const [rank, node] of rows.node.entries()) ranks.set(node, Math.min(rank, ranks.get(node) ?? Infinity));
  // Array.sort is stable, so nodes with equal ranks stay in A's order.
  const nodes = [...ranks.keys()].sort((one, other) => Number(ranks.get(one)) - Number(ranks.get(other)));
  return { a: reorderRows(a, nodes), b: reorderRows(b, nodes) };
}

/** @param {MatrixData} data @param {string[]} nodes @returns {MatrixData} */
function reorderRows(data, nodes) {
  const { rows } = data;
  const places = new Map(rows.node.map((node, at) => [node, at]));
  const indexes = nodes.map((node) => places.get(node) ?? -1);
  /** @template T @param {T[]} values @param {T} missing */
  const pick = (values, missing) => indexes.map((at) => (at < 0 ? missing : values[at]));
  return {
    ...data,
    rows: {
      node: nodes,
      total: pick(rows.total, null),
      tie: pick(rows.tie, false),
      plugin: pick(rows.plugin, ""),
      gap: pick(rows.gap, "this node did not exist"),
      pre_filters: pick(rows.pre_filters, []),
      filters: pick(rows.filters, []),
      raw: pick(rows.raw, []),
      normalized: pick(rows.normalized, []),
      weighted: pick(rows.weighted, []),
    },
  };
}

/** Both matrices with only some of the rows. @param {Pair} pair @param {(row: number) => boolean} keepRow @returns {Pair} */
export function filterRows(pair, keepRow) {
  const nodes = pair.a.rows.node.filter((_, row) => keepRow(row));
  return { a: reorderRows(pair.a, nodes), b: reorderRows(pair.b, nodes) };
}

/** Whether the results of the two runs for the node of a row differ. @param {Pair} pair @param {number} row */
export function differs(pair, row) {
  const [one, other] = [pair.a, pair.b].map(({ rows, scorers }) =>
    JSON.stringify([
      rows.plugin[row],
      rows.total[row],
      scorers.map(({ name }, at) => [name, rows.weighted[row]?.[at]]),
    ]),
  );
  return one !== other;
}

/** Score plugins that give all nodes the same number in both runs: they decide nothing. @param {Pair} pair */
export function constantScores({ a, b }) {
  const values = (/** @type {MatrixData} */ data, /** @type {string} */ name) => {
    const at = data.scorers.findIndex((scorer) => scorer.name === name);
    return new Set(data.rows.weighted.filter((_, row) => data.rows.total[row] !== null).map((points) => points[at]));
  };
  const names = new Set([...a.scorers, ...b.scorers].map(({ name }) => name));
  return new Set([...names].filter((name) => new Set([...values(a, name), ...values(b, name)]).size <= 1));
}

/** Filters that rejected a node in either run: both matrices show them. @param {Pair} pair */
function rejecting({ a, b }) {
  const of = (/** @type {string} */ kind, /** @type {string[]} */ names, /** @type {(number | null)[][]} */ rows) =>
    names.filter((_, at) => rows.some((verdicts) => verdicts[at])).map((name) => `${kind} ${name}`);
  return [a, b].flatMap(({ pre_filters, filters, rows }) => [
    ...of("pre", pre_filters, rows.pre_filters),
    ...of("filter", filters, rows.filters),
  ]);
}

export class SplitView {
  /** @param {{ view: View, onView: (changes: Partial<View>) => void, signal: AbortSignal }} how */
  constructor(how) {
    /** @type {Pair | null} */
    this.pair = null;
    this.shown = new Set();
    const one = (/** @type {"a" | "b"} */ side, /** @type {"a" | "b"} */ other) =>
      new Matrix({
        ...how,
        shown: this.shown,
        pair: {
          label: `Nodes by plugins in ${side.toUpperCase()}`,
          side: `in ${other.toUpperCase()}`,
          other: () => this.pair?.[other] ?? null,
          onScroll: (top, left) => this[other].scrollTo(top, left),
        },
      });
    this.a = one("a", "b");
    this.b = one("b", "a");
    this.element = h("div", { class: "split-view", own: true }, this.a.element, this.b.element);
  }

  /** @param {Pair} pair @param {View} view @param {Set<string>} hidden scores to leave out */
  show(pair, view, hidden) {
    this.pair = pair;
    this.shown.clear();
    for (const name of rejecting(pair)) this.shown.add(name);
    for (const side of /** @type {const} */ (["a", "b"])) {
      this[side].view = view;
      this[side].hidden = hidden;
      this[side].show(pair[side]);
    }
  }
}
