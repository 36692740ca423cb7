// Node by plugin: every score and every verdict of one attempt. All rows are here, only those in sight are in the page.

import { beforePaint, draw, h, stamp } from "./dom.js";
import { count, cut, signed } from "./format.js";
import { nodeAddress, to } from "./address.js";
import { bind } from "./keyboard.js";

/**
 * @typedef {{ node: string[], total: (number | null)[], tie: boolean[], plugin: string[], gap: string[], filters: (number | null)[][],
 *   raw: number[][], normalized: number[][], weighted: number[][] }} Columns
 * @typedef {{ number: number, kept: boolean, why?: string, nodes: number, counts: { fit: number, failed: number }, scorers: { name: string, weight: number, scale?: string }[],
 *   filters: string[], statuses: { code: string, plugin: string, reasons: string[] }[], skipped: string[], winner: string, runner_up: string, margin: number | null,
 *   tie_set: string[], rows: Columns, points?: Record<string, any> }} MatrixData
 * @typedef {"raw" | "normalized" | "weighted"} Values
 * @typedef {{ only: string, values: Values, find: string, sort: string, cell: string, folded: boolean }} View
 */

const ROW = 26;
const OVERSCAN = 5;
const NODE_WIDTH = 196;
const TOTAL_WIDTH = 160;
const SCORE_WIDTH = 92;
const FILTER_WIDTH = 92;
const GAP_WIDTH = 420;
const NEAREST = 20;

/** A long name of a plugin, with places where it may break. @param {string} name */
export function breakable(name) {
  return name.replace(/([a-z])([A-Z])/g, "$1\u200b$2");
}

export class Matrix {
  /** @param {{ view: View, onView: (changes: Partial<View>) => void, signal: AbortSignal, failures?: Map<string, string> }} how */
  constructor(how) {
    this.how = how;
    this.view = how.view;
    /** @type {MatrixData | null} */
    this.data = null;
    /** @type {number[]} */
    this.order = [];
    /** @type {{ kind: "score" | "filter", at: number, name: string, left: number, constant: string }[]} */
    this.columns = [];
    /** @type {HTMLElement[]} */
    this.pool = [];
    this.scoreWidth = SCORE_WIDTH;
    this.scoreEnd = 0;
    this.width = 0;
    this.hiddenFilters = 0;
    this.head = h("div", { class: "matrix-head", role: "rowgroup" });
    this.body = h("div", { class: "matrix-body", role: "rowgroup" });
    this.scroller = h(
      "div",
      {
        class: "matrix",
        role: "grid",
        tabindex: 0,
        "aria-label": "Nodes by plugins",
        "data-test": "matrix",
        onscroll: () => beforePaint(this.paint),
        onclick: (/** @type {MouseEvent} */ event) => this.clicked(event),
      },
      this.head,
      this.body,
    );
    this.element = h("div", { class: "matrix-frame", own: true }, this.scroller);
    this.paint = this.paint.bind(this);
    const resized = new ResizeObserver(() => this.resized());
    resized.observe(this.scroller);
    how.signal.addEventListener("abort", () => resized.disconnect());
    const scroll = (/** @type {number} */ rows) => () => {
      this.scroller.scrollTop += rows * ROW;
    };
    bind({ j: scroll(1), k: scroll(-1), ArrowDown: scroll(1), ArrowUp: scroll(-1) }, how.signal);
  }

  resized() {
    const { clientWidth } = this.scroller;
    if (this.data && clientWidth && clientWidth !== this.laidFor) this.arrange();
    else beforePaint(this.paint);
  }

  /** Show an attempt. @param {MatrixData} data */
  show(data) {
    this.data = data;
    this.index = new Map(data.rows.node.map((node, at) => [node, at]));
    this.arrange();
  }

  /** Another filter, sort or kind of values. @param {View} view */
  change(view) {
    this.view = view;
    if (this.data) this.arrange();
  }

  arrange() {
    const data = /** @type {MatrixData} */ (this.data);
    const { only, find } = this.view;
    const text = find.toLowerCase();
    /** @type {number[]} */
    const order = [];
    for (let row = 0; row < data.rows.node.length; row += 1) {
      const fits = data.rows.total[row] !== null;
      const failed = !fits && data.rows.plugin[row] !== "";
      if ((only === "fit" && !fits) || ((only === "failed" || only === "nearest") && !failed)) continue;
      if (text && !data.rows.node[row].toLowerCase().includes(text)) continue;
      order.push(row);
    }
    this.order = only === "nearest" ? order.slice(0, NEAREST) : order;
    this.laidFor = this.scroller.clientWidth;
    this.arrangeColumns();
    this.sortRows();
    this.drawHead();
    for (const row of this.pool) row.dataset.row = "";
    this.body.style.height = `${this.order.length * ROW}px`;
    this.scroller.setAttribute("aria-rowcount", String(this.order.length + 2));
    if (this.scroller.scrollTop > this.order.length * ROW) this.scroller.scrollTop = 0;
    beforePaint(this.paint);
  }

  arrangeColumns() {
    const data = /** @type {MatrixData} */ (this.data);
    this.columns = [];
    this.hiddenFilters = 0;
    let left = NODE_WIDTH + TOTAL_WIDTH;
    const scored = data.rows.total.map((total, row) => (total === null ? -1 : row)).filter((row) => row >= 0);
    // Where nothing fits there are no scores, and their room is for what each node lacks.
    for (const [at, scorer] of scored.length ? data.scorers.entries() : []) {
      const values = new Set();
      for (const row of scored) {
        values.add(data.rows.normalized[row]?.[at]);
        if (values.size > 1) break;
      }
      this.columns.push({
        kind: "score",
        at,
        name: scorer.name,
        left,
        constant: values.size === 1 && scored.length > 1 ? String([...values][0]) : "",
      });
      left += SCORE_WIDTH;
    }
    if (!scored.length) left += GAP_WIDTH;
    for (const [at, name] of data.filters.entries()) {
      const none = !data.rows.filters.some((verdicts) => verdicts[at]);
      const all = none && data.rows.filters.every((verdicts) => verdicts[at] === 0);
      if (none && this.view.folded) {
        this.hiddenFilters += 1;
        continue;
      }
      this.columns.push({ kind: "filter", at, name, left, constant: all ? "all pass" : "" });
      left += FILTER_WIDTH;
    }
    this.spread(left);
    this.pool = [];
    this.body.replaceChildren();
  }

  /** Give what is left of the width to the scores, or to the words where there are none. @param {number} needed */
  spread(needed) {
    const scores = this.columns.filter((column) => column.kind === "score").length;
    const spare = Math.max(0, this.scroller.clientWidth - needed);
    this.scoreWidth = SCORE_WIDTH + (scores ? Math.min(48, Math.floor(spare / scores)) : 0);
    let left = NODE_WIDTH + TOTAL_WIDTH;
    for (const column of this.columns) {
      if (column.kind === "score") {
        column.left = left;
        left += this.scoreWidth;
      }
    }
    if (!scores) left += GAP_WIDTH + spare;
    this.scoreEnd = left;
    for (const column of this.columns) {
      if (column.kind === "filter") {
        column.left = left;
        left += FILTER_WIDTH;
      }
    }
    this.width = Math.max(left, this.scroller.clientWidth);
  }

  sortRows() {
    const data = /** @type {MatrixData} */ (this.data);
    const { sort } = this.view;
    if (!sort) return;
    const down = sort.startsWith("-");
    const name = sort.replace(/^-/, "");
    const at = data.scorers.findIndex((scorer) => scorer.name === name);
    const value = (/** @type {number} */ row) => {
      if (name === "node") return data.rows.node[row];
      if (at >= 0)
        return data.rows.total[row] === null ? -Infinity : (data.rows[this.view.values][row]?.[at] ?? -Infinity);
      return data.rows.total[row] ?? -Infinity;
    };
    this.order.sort((a, b) => {
      const [x, y] = [value(a), value(b)];
      return (x < y ? -1 : x > y ? 1 : a - b) * (down ? -1 : 1);
    });
  }

  drawHead() {
    const data = /** @type {MatrixData} */ (this.data);
    const scores = this.columns.filter((column) => column.kind === "score").length;
    const filters = this.columns.length - scores;
    const sorter = (/** @type {string} */ name, /** @type {Node | string} */ text, /** @type {string} */ hint) => {
      const { sort } = this.view;
      const mark = sort === name ? " ▲" : sort === `-${name}` ? " ▼" : "";
      return h(
        "button",
        {
          type: "button",
          class: "sort",
          title: hint,
          onclick: () => this.how.onView({ sort: sort === `-${name}` ? name : `-${name}` }),
        },
        text,
        mark,
      );
    };
    const { winner } = data;
    draw(
      this.head,
      h(
        "div",
        { class: "matrix-groups", role: "row", style: { width: `${this.width}px` } },
        h(
          "div",
          {
            class: "matrix-group stuck",
            role: "columnheader",
            style: { left: "0", width: `${NODE_WIDTH + TOTAL_WIDTH}px` },
          },
          `${count(this.order.length)} of ${count(data.rows.node.length)} nodes`,
        ),
        h(
          "div",
          {
            class: "matrix-group",
            role: "columnheader",
            style: { left: `${NODE_WIDTH + TOTAL_WIDTH}px`, width: `${this.scoreEnd - NODE_WIDTH - TOTAL_WIDTH}px` },
          },
          scores
            ? `Scores, ${this.view.values === "normalized" ? "normalised to 0–100" : this.view.values}`
            : "What it lacks",
        ),
        filters
          ? h(
              "div",
              {
                class: "matrix-group",
                role: "columnheader",
                style: { left: `${this.scoreEnd}px`, width: `${filters * FILTER_WIDTH}px` },
              },
              "Filters",
            )
          : null,
      ),
      h(
        "div",
        {
          class: `matrix-titles${this.columns.some((column) => breakable(column.name).split("\u200b").length > 3) ? " tall" : ""}`,
          role: "row",
          style: { width: `${this.width}px` },
        },
        h(
          "div",
          { class: "mcell title stuck", role: "columnheader", style: { left: "0", width: `${NODE_WIDTH}px` } },
          sorter("node", "Node", "Sort by name"),
        ),
        h(
          "div",
          {
            class: "mcell title stuck right edge",
            role: "columnheader",
            style: { left: `${NODE_WIDTH}px`, width: `${TOTAL_WIDTH}px` },
          },
          scores ? sorter("total", "Total", winner ? `Points behind ${winner}` : "Sort by total") : "First to reject",
        ),
        this.columns.map((column) => {
          const failure = this.how.failures?.get(column.name);
          const weight = column.kind === "score" ? data.scorers[column.at].weight : 0;
          const title = [
            h("span", { class: "plugin-name" }, breakable(column.name)),
            weight ? h("span", { class: "faint" }, ` ×${weight}`) : "",
          ];
          return h(
            "div",
            {
              class: `mcell title ${column.kind === "score" ? "right" : "mid"}`,
              role: "columnheader",
              key: column.kind + column.name,
              "data-test": `column-${column.name}`,
              title: [column.name, column.constant ? `the same for all: ${column.constant}` : "", failure ?? ""]
                .filter(Boolean)
                .join("\n"),
              style: {
                left: `${column.left}px`,
                width: `${column.kind === "score" ? this.scoreWidth : FILTER_WIDTH}px`,
              },
            },
            column.kind === "score"
              ? sorter(column.name, h("span", null, ...title), `Sort by ${column.name}`)
              : h("span", null, ...title),
            failure
              ? h("a", { class: "plugin-failure", href: to("plugins"), title: failure }, "✕ raised")
              : column.constant
                ? h("span", { class: "constant" }, column.kind === "score" ? `all ${column.constant}` : "all pass")
                : null,
          );
        }),
      ),
    );
  }

  paint() {
    if (!this.data || this.how.signal.aborted) return;
    const headHeight = this.head.offsetHeight;
    const top = Math.max(0, this.scroller.scrollTop);
    const first = Math.max(0, Math.floor(top / ROW) - OVERSCAN);
    const shown = Math.ceil((this.scroller.clientHeight - headHeight) / ROW) + 2 * OVERSCAN;
    const last = Math.min(this.order.length, first + Math.max(shown, 10));
    while (this.pool.length < last - first) this.addRow();
    const size = Math.max(1, this.pool.length);
    for (let index = first; index < last; index += 1) this.paintRow(this.pool[index % size], index);
    for (const row of this.pool) {
      const index = Number(row.dataset.row || -1);
      row.hidden = index < first || index >= last;
    }
    stamp("matrix painted");
  }

  addRow() {
    const row = h(
      "div",
      { class: "mrow", role: "row", style: { width: `${this.width}px` } },
      h(
        "div",
        { class: "mcell stuck", role: "rowheader", style: { left: "0", width: `${NODE_WIDTH}px` } },
        h("a", { class: "name" }, ""),
      ),
      h(
        "div",
        {
          class: "mcell stuck right edge",
          role: "gridcell",
          style: { left: `${NODE_WIDTH}px`, width: `${TOTAL_WIDTH}px` },
        },
        h("span", { class: "faint figure" }, ""),
        h("span", { class: "total" }, ""),
      ),
      this.columns.map((column, at) =>
        h("div", {
          class: "mcell",
          role: "gridcell",
          "data-column": at,
          style: { left: `${column.left}px`, width: `${column.kind === "score" ? this.scoreWidth : FILTER_WIDTH}px` },
        }),
      ),
      h("div", {
        class: "gap",
        style: {
          left: `${NODE_WIDTH + TOTAL_WIDTH + 8}px`,
          width: `${Math.max(280, this.scoreEnd - NODE_WIDTH - TOTAL_WIDTH - 16)}px`,
        },
      }),
    );
    this.pool.push(row);
    this.body.append(row);
  }

  /** @param {HTMLElement} row @param {number} index */
  paintRow(row, index) {
    row.hidden = false;
    if (row.dataset.row === String(index)) return;
    const data = /** @type {MatrixData} */ (this.data);
    const at = this.order[index];
    const node = data.rows.node[at];
    const total = data.rows.total[at];
    const fits = total !== null;
    row.dataset.row = String(index);
    row.dataset.node = node;
    row.setAttribute("aria-rowindex", String(index + 3));
    row.style.transform = `translateY(${index * ROW}px)`;
    row.className = `mrow${node === data.winner ? " winner" : ""}${node === data.runner_up ? " runner" : ""}${fits ? "" : " failed"}`;
    row.title = fits ? this.difference(at) : "";
    const link = /** @type {HTMLAnchorElement} */ (row.children[0].firstElementChild);
    link.textContent = cut(node, 26);
    link.title = node;
    link.href = nodeAddress(node);
    const [behind, figure] = row.children[1].children;
    behind.textContent = fits && data.winner && node !== data.winner ? this.behind(at) : "";
    // A node that no filter rejected and that has no total was not looked at: enough others fit.
    const plugin = data.rows.plugin[at];
    figure.textContent = fits ? `${count(total)}${data.rows.tie[at] ? " ★" : ""}` : plugin ? `✕ ${plugin}` : "·";
    figure.className = fits ? "total" : plugin ? "total bad-text" : "total faint";
    for (let column = 0; column < this.columns.length; column += 1)
      this.paintCell(/** @type {HTMLElement} */ (row.children[column + 2]), column, at, fits);
    const gap = /** @type {HTMLElement} */ (row.lastElementChild);
    gap.textContent = fits ? "" : data.rows.gap[at];
    gap.title = gap.textContent;
  }

  /** @param {number} at */
  behind(at) {
    const data = /** @type {MatrixData} */ (this.data);
    const best = this.index?.get(data.winner);
    const top = best === undefined ? null : data.rows.total[best];
    const mine = data.rows.total[at];
    return top === null || mine === null || top === mine ? "" : signed(mine - top);
  }

  /** @param {HTMLElement} cell @param {number} index @param {number} at @param {boolean} fits */
  paintCell(cell, index, at, fits) {
    const data = /** @type {MatrixData} */ (this.data);
    const column = this.columns[index];
    const node = data.rows.node[at];
    const chosen = this.view.cell === `${node}.${column.name}` ? " chosen" : "";
    if (column.kind === "score") {
      const value = data.rows[this.view.values][at]?.[column.at];
      cell.textContent = fits && value !== undefined && value !== null ? count(value) : "";
      cell.className = `mcell right score${chosen}`;
      cell.style.setProperty("--n", fits ? String(data.rows.normalized[at]?.[column.at] ?? 0) : "0");
      return;
    }
    const verdict = data.rows.filters[at]?.[column.at];
    const failed = verdict !== null && verdict !== undefined && verdict > 0;
    cell.textContent = verdict === null || verdict === undefined ? "·" : failed ? "✕" : "✓";
    cell.className = `mcell mid${failed ? " bad-cell" : verdict === 0 ? " pass" : " faint"}${chosen}`;
    cell.title = failed
      ? (data.statuses[verdict]?.reasons.join("; ") ?? "")
      : verdict === 0
        ? "passes"
        : "not run: an earlier filter had failed";
  }

  /** Where the points between a node and the winner come from. @param {number} at */
  difference(at) {
    const data = /** @type {MatrixData} */ (this.data);
    const best = this.index?.get(data.winner);
    if (best === undefined || best === at) return "";
    const parts = data.scorers
      .map((scorer, column) => [
        scorer.name,
        (data.rows.weighted[at]?.[column] ?? 0) - (data.rows.weighted[best]?.[column] ?? 0),
      ])
      .filter(([, points]) => points)
      .sort((a, b) => Math.abs(Number(b[1])) - Math.abs(Number(a[1])));
    return parts.length
      ? `Against ${data.winner}: ${parts.map(([name, points]) => `${name} ${signed(Number(points))}`).join(", ")}`
      : "";
  }

  /** @param {MouseEvent} event */
  clicked(event) {
    const cell = event.target instanceof Element ? event.target.closest("[data-column]") : null;
    const row = cell?.closest("[data-node]");
    if (!(cell instanceof HTMLElement) || !(row instanceof HTMLElement)) return;
    this.how.onView({ cell: `${row.dataset.node}.${this.columns[Number(cell.dataset.column)].name}` });
  }
}

/**
 * Only the nodes that failed for a reason; all of them where it is "".
 * @param {MatrixData} data @param {string} reason @returns {MatrixData}
 */
export function onlyReason(data, reason) {
  if (!reason) return data;
  const says = (/** @type {string} */ text) => text.includes(reason) || reason.includes(text);
  const hit = (/** @type {number} */ row) =>
    String(data.rows.gap[row] ?? "").includes(reason) ||
    (data.rows.filters[row] ?? []).some((code) => code && data.statuses[code]?.reasons.some(says));
  const kept = data.rows.node.map((_, row) => row).filter(hit);
  const rows = Object.fromEntries(
    Object.entries(data.rows).map(([key, values]) => [key, kept.map((row) => /** @type {any[]} */ (values)[row])]),
  );
  return { ...data, rows: /** @type {Columns} */ (rows) };
}
