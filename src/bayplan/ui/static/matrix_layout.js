// Which columns a matrix has and where they stand: scores, then what PreFilter plugins said, then filters.

/** @typedef {import("./matrix.js").MatrixData} MatrixData */
/** @typedef {{ node: number, total: number, score: number, verdict: number, gap: number, spare: number }} Sizes widths, in pixels */
/** @typedef {{ kind: "score" | "pre" | "filter", at: number, name: string, left: number, width: number, constant: string }} Column */
/**
 * @typedef {{ columns: Column[], sizes: Sizes, scores: number, pre: number, filters: number, scoreEnd: number, width: number, folded: number }} Layout
 *   how many columns there are of each kind; where scores, or the words in their place, end; the width of all; how many filters are folded
 */

/** Of a matrix that has the page for itself. @type {Sizes} */
export const ALONE = { node: 196, total: 160, score: 92, verdict: 92, gap: 420, spare: 48 };

/** Of two that share it. @type {Sizes} */
export const BESIDE = { node: 132, total: 104, score: 78, verdict: 78, gap: 300, spare: 30 };

/**
 * @param {MatrixData} data
 * @param {{ folded: boolean, shown: Set<string>, hidden: Set<string>, room: number, sizes: Sizes }} how folded: without filters that
 *   rejected no node, but for those that are to be shown, by name, or by kind and name; hidden: scores that are left out; room: that there is, in pixels
 * @returns {Layout}
 */
export function layOut(data, how) {
  const { sizes } = how;
  const scores = scoreColumns(data).filter(({ name }) => !how.hidden.has(name));
  const pre = verdictColumns("pre", data.pre_filters, data.rows.pre_filters, how);
  const filters = verdictColumns("filter", data.filters, data.rows.filters, how);
  const verdicts = [...pre, ...filters];
  // Where nothing fits there are no scores, and their room is for what each node lacks.
  const middle = scores.length ? scores.length * sizes.score : sizes.gap;
  const room = Math.max(0, how.room - sizes.node - sizes.total - middle - verdicts.length * sizes.verdict);
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
  };
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
