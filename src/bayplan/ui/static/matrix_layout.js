// The columns of a matrix and their order: scores, then PreFilter plugins, then filters.

import { count } from "./format.js";
import { hostOf, letterWidth, lettersIn, lettersOf } from "./names.js";

/** @typedef {import("./matrix.js").MatrixData} MatrixData */
/**
 * @typedef {{ node: number, total: number, score: number, verdict: number, gap: number, spare: number, isTotalStuck: boolean }} Sizes
 *   widths in pixels; `node` is the minimum width of node names; isTotalStuck: whether totals stay visible while scrolling sideways
 */
/** @typedef {{ kind: "score" | "pre" | "filter", at: number, name: string, left: number, width: number, constant: string }} Column */
/**
 * @typedef {{ columns: Column[], sizes: Sizes, scores: number, pre: number, filters: number, scoreEnd: number, width: number, folded: number,
 *   letters: number, domain: string, isGapBelow: boolean }} Layout
 *   the number of columns of each kind; where the scores (or the words instead) end; the total width; how many filters are hidden;
 *   how many characters of a node name fit; the domain that all nodes share and that is not shown, or "";
 *   isGapBelow: whether the gap of a node stands below its row instead
 */

/** The sizes of a single matrix. @type {Sizes} */
export const FULL_SIZES = { node: 196, total: 158, score: 92, verdict: 92, gap: 420, spare: 48, isTotalStuck: true };

/** The sizes of two matrices side by side. @type {Sizes} */
export const SPLIT_SIZES = { node: 132, total: 104, score: 80, verdict: 92, gap: 260, spare: 30, isTotalStuck: true };

/** The sizes on a phone. @type {Sizes} */
export const PHONE_SIZES = { node: 132, total: 128, score: 76, verdict: 92, gap: 300, spare: 30, isTotalStuck: false };

/** The layout before there is data. @type {Layout} */
export const EMPTY_LAYOUT = {
  columns: [],
  sizes: FULL_SIZES,
  scores: 0,
  pre: 0,
  filters: 0,
  scoreEnd: 0,
  width: 0,
  folded: 0,
  letters: 0,
  domain: "",
  isGapBelow: false,
};

/** The minimum width of plugin names that are shown instead of totals if there are no scores. */
const REJECTED_BY = 144;
/** The minimum width of totals on a phone. */
const NARROW_TOTAL = 108;
/** The horizontal space around the text of a cell. */
const PADDING = 21;
/** The share of the width that node names may always take, even if other columns need it. */
const NAMES_PART = 0.22;
/** Enough for the title of that column. */
const MIN_NAME_WIDTH_PX = 96;

/**
 * @param {MatrixData} data
 * @param {{ folded: boolean, shown: Set<string>, hidden: Set<string>, room: number, sizes: Sizes, isGapBelow: boolean }} how folded: leave
 *   out filters that rejected no node, except those in `shown` (by name, or by kind and name); hidden: scores to leave out; room: the width,
 *   in pixels; isGapBelow: whether gaps of nodes stand below rows if there are no scores
 * @returns {Layout}
 */
export function layOut(data, how) {
  const sizes = { ...how.sizes };
  const scores = scoreColumns(data).filter(({ name }) => !how.hidden.has(name));
  const pre = verdictColumns("pre", data.pre_filters, data.rows.pre_filters, how);
  const filters = verdictColumns("filter", data.filters, data.rows.filters, how);
  const verdicts = [...pre, ...filters];
  // If no node fits, the gap of each node is shown where the scores would be, or below its row.
  const isGapBelow = how.isGapBelow && !scores.length;
  if (isGapBelow) sizes.gap = 0;
  const middle = scores.length ? scores.length * sizes.score : sizes.gap;
  if (!scores.length) sizes.total = rejectedByWidth(data.rows.plugin, sizes);
  else if (!sizes.isTotalStuck) sizes.total = Math.max(NARROW_TOTAL, totalWidth(data.rows.total));
  const rest = sizes.total + middle + verdicts.length * sizes.verdict;
  const { names, domain } = nameWidths(data.rows.node, how.room, how.room - rest);
  sizes.node = Math.max(MIN_NAME_WIDTH_PX, Math.min(sizes.node, names.short), names.width);
  const room = Math.max(0, how.room - sizes.node - rest);
  const width = sizes.score + (scores.length ? Math.min(sizes.spare, Math.floor(room / scores.length)) : 0);
  let left = sizes.node + sizes.total;
  for (const column of scores) {
    column.left = left;
    column.width = width;
    left += width;
  }
  if (!scores.length) left += sizes.gap + room;
  const scoreEnd = left;
  for (const column of verdicts) {
    column.left = left;
    column.width = sizes.verdict;
    left += sizes.verdict;
  }
  return {
    columns: [...scores, ...verdicts],
    sizes,
    scores: scores.length,
    pre: pre.length,
    filters: filters.length,
    scoreEnd,
    width: Math.max(left, how.room),
    folded: data.pre_filters.length + data.filters.length - verdicts.length,
    letters: lettersIn(sizes.node - PADDING),
    domain,
    isGapBelow,
  };
}

/** The width of the names of plugins that rejected nodes. @param {string[]} plugins @param {Sizes} sizes */
function rejectedByWidth(plugins, sizes) {
  // On a phone, the reason next to the name matters more.
  if (!sizes.isTotalStuck && sizes.gap) return NARROW_TOTAL;
  const least = Math.max(sizes.total, REJECTED_BY);
  const letters = plugins.reduce((longest, plugin) => Math.max(longest, plugin.length), 0);
  return Math.max(least, Math.ceil((letters + 2) * letterWidth()) + PADDING);
}

/**
 * The width of totals with their difference to the winner; those of the classic scheduler have six digits.
 * @param {(number | null)[]} totals
 */
function totalWidth(totals) {
  const scored = totals.filter((total) => total !== null).map(Number);
  const [most, least] = [Math.max(...scored), Math.min(...scored)];
  return Math.ceil((count(most).length + count(most - least).length + 3) * letterWidth()) + PADDING;
}

/**
 * The width of the column of names: whole names if no other column needs the room, else host names without a common domain.
 * @param {string[]} nodes @param {number} room the width of the matrix @param {number} spare what other columns leave of it
 */
function nameWidths(nodes, room, spare) {
  let [whole, short] = [0, 0];
  const domains = new Set();
  for (const node of nodes) {
    whole = Math.max(whole, node.length);
    short = Math.max(short, lettersOf(node));
    domains.add(node.slice(hostOf(node).length));
  }
  const pixels = (/** @type {number} */ letters) => Math.ceil(letters * letterWidth()) + PADDING;
  const names = { short: pixels(short), width: pixels(whole) };
  if (names.width <= spare) return { names, domain: "" };
  const domain = domains.size === 1 ? String([...domains][0]) : "";
  // A domain that all nodes share is shown once, in the head, so that scores have more room.
  names.width = Math.min(domain ? names.short : names.width, Math.max(spare, room * NAMES_PART));
  return { names, domain };
}

/** @param {MatrixData} data @returns {Column[]} */
function scoreColumns(data) {
  const scored = data.rows.total.map((total, row) => (total === null ? -1 : row)).filter((row) => row >= 0);
  if (!scored.length) return [];
  return data.scorers.map(({ name }, at) => {
    const values = new Set();
    for (const row of scored) {
      values.add(data.rows.normalized[row]?.[at]);
      if (values.size > 1) break;
    }
    const constant = values.size === 1 && scored.length > 1 ? String([...values][0]) : "";
    return { kind: "score", at, name, left: 0, width: 0, constant };
  });
}

/**
 * @param {"pre" | "filter"} kind @param {string[]} names @param {(number | null)[][]} rows
 * @param {{ folded: boolean, shown: Set<string> }} how @returns {Column[]}
 */
function verdictColumns(kind, names, rows, how) {
  /** @type {Column[]} */
  const found = [];
  for (const [at, name] of names.entries()) {
    const none = !rows.some((verdicts) => verdicts?.[at]);
    if (none && how.folded && !how.shown.has(name) && !how.shown.has(`${kind} ${name}`)) continue;
    const all = none && rows.every((verdicts) => verdicts?.[at] === 0);
    found.push({ kind, at, name, left: 0, width: 0, constant: all ? "all pass" : "" });
  }
  return found;
}
