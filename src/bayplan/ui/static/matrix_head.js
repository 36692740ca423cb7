// The head of a matrix: groups of columns, and for each plugin a title with its weight, a value that all nodes share,
// and failures.

import { draw, h } from "./dom.js";
import { breakable, count } from "./format.js";
import { to } from "./address.js";

/** @typedef {import("./matrix.js").MatrixData} MatrixData */
/** @typedef {import("./matrix_layout.js").Layout} Layout */
/** @typedef {import("./matrix_layout.js").Column} Column */
/**
 * @typedef {{ rows: number, view: import("./matrix.js").View, failures?: Map<string, string>, onSort: ((sort: string) => void) | null }} How
 *   rows: how many are shown; failures: of plugins, by name; onSort: null if the order of rows is fixed
 */

/** @param {HTMLElement} head @param {MatrixData} data @param {Layout} layout @param {How} how */
export function drawHead(head, data, layout, how) {
  const { sizes, columns } = layout;
  const stuck = sizes.node + sizes.total;
  const middle = layout.scores
    ? `Scores, ${how.view.values === "normalized" ? `normalised to 0–${data.max_score ?? 100}` : how.view.values}`
    : "Why not";
  const isTall = columns.some((column) => breakable(column.name).length > 5);
  draw(
    head,
    h(
      "div",
      { class: "matrix-groups", role: "row", style: { width: `${layout.width}px` } },
      h(
        "div",
        {
          class: "matrix-group stuck",
          role: "columnheader",
          style: { left: "0", width: `${sizes.isTotalStuck ? stuck : sizes.node}px` },
        },
        `${count(how.rows)} of ${count(data.rows.node.length)} nodes`,
      ),
      layout.isGapBelow ? null : group(middle, stuck, layout.scoreEnd - stuck),
      layout.pre ? group("PreFilter", layout.scoreEnd, layout.pre * sizes.verdict) : null,
      layout.filters
        ? group("Filters", layout.scoreEnd + layout.pre * sizes.verdict, layout.filters * sizes.verdict)
        : null,
    ),
    h(
      "div",
      { class: `matrix-titles${isTall ? " tall" : ""}`, role: "row", style: { width: `${layout.width}px` } },
      h(
        "div",
        { class: "mcell title stuck", role: "columnheader", style: { left: "0", width: `${sizes.node}px` } },
        sorter("node", "Node", "Sort by name", how),
        layout.domain ? h("span", { class: "domain", title: layout.domain }, layout.domain) : null,
      ),
      h(
        "div",
        {
          class: `mcell title right edge${sizes.isTotalStuck ? " stuck" : " loose"}`,
          role: "columnheader",
          style: { left: `${sizes.node}px`, width: `${sizes.total}px` },
        },
        layout.scores
          ? sorter("total", "Total", data.winner ? `Points behind ${data.winner}` : "Sort by total", how)
          : "Rejected by",
      ),
      columns.map((column) => title(column, data, how)),
    ),
  );
}

/** The title of a group of columns. @param {string} text @param {number} left @param {number} width */
function group(text, left, width) {
  return h(
    "div",
    { class: "matrix-group", role: "columnheader", key: text, style: { left: `${left}px`, width: `${width}px` } },
    text,
  );
}

/** @param {string} name @param {Node | string} text @param {string} hint @param {How} how */
function sorter(name, text, hint, how) {
  const { onSort } = how;
  if (!onSort) return text;
  const { sort } = how.view;
  const mark = sort === name ? " ▲" : sort === `-${name}` ? " ▼" : "";
  return h(
    "button",
    { type: "button", class: "sort", title: hint, onclick: () => onSort(sort === `-${name}` ? name : `-${name}`) },
    text,
    mark,
  );
}

/** @param {Column} column @param {MatrixData} data @param {How} how */
function title(column, data, how) {
  const { kind, name, constant } = column;
  const failure = how.failures?.get(name);
  const weight = kind === "score" ? data.scorers[column.at].weight : 0;
  const words = [
    h("span", { class: "plugin-name" }, breakable(name)),
    weight ? h("span", { class: "faint" }, ` ×${weight}`) : "",
  ];
  return h(
    "div",
    {
      class: `mcell title ${kind === "score" ? "right" : "mid"}`,
      role: "columnheader",
      key: kind + name,
      "data-test": `${kind === "pre" ? "pre-filter" : "column"}-${name}`,
      title: [name, constant ? `the same for all: ${constant}` : "", failure ?? ""].filter(Boolean).join("\n"),
      style: { left: `${column.left}px`, width: `${column.width}px` },
    },
    kind === "score" ? sorter(name, h("span", null, ...words), `Sort by ${name}`, how) : h("span", null, ...words),
    failure
      ? h("a", { class: "plugin-failure", href: to("plugins"), title: failure }, "✕ raised")
      : constant
        ? h("span", { class: "constant" }, kind === "score" ? `all ${constant}` : "all pass")
        : null,
  );
}
