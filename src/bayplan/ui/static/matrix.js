// The matrix of nodes by plugins: all scores and verdicts of one attempt. It has the data of all rows, but elements
// only for the visible ones.

import { beforePaint, h, stamp, token } from "./dom.js";
import { count, signed } from "./format.js";
import { putName } from "./names.js";
import { nodeAddress } from "./address.js";
import { bind } from "./keyboard.js";
import { drawHead } from "./matrix_head.js";
import { FULL_SIZES, SPLIT_SIZES, EMPTY_LAYOUT, PHONE_SIZES, layOut } from "./matrix_layout.js";

/**
 * @typedef {Api.MatrixColumns} Columns
 * @typedef {Api.ColumnMatrix} MatrixData
 * @typedef {"raw" | "normalized" | "weighted"} Values
 * @typedef {{ label: string, side: string, other: () => MatrixData | null, onScroll: (top: number, left: number) => void }} PairSide
 *   for one of two matrices with the same nodes in the same rows: its name, the letter of the other one, the other one's data
 * @typedef {{ only: string, values: Values, find: string, sort: string, cell: string, folded: boolean }} View
 */

const ROW = 26;
const OVERSCAN = 5;
const NEAREST = 20;
/** A matrix narrower than this, in pixels, has the sizes for phones. */
const PHONE = 520;

/** The height of a horizontal scroll bar; 0 if scroll bars overlay the content. */
function barHeight() {
  const probe = h("div", { style: { position: "absolute", overflow: "scroll", visibility: "hidden" } });
  document.body.append(probe);
  const height = probe.offsetHeight - probe.clientHeight;
  probe.remove();
  return height;
}

/**
 * Whether a node fits. The only node that fits has no scores: there was nothing to choose.
 * @param {Columns} rows @param {number} row
 */
export function fits(rows, row) {
  return rows.total[row] !== null || (!rows.plugin[row] && !rows.gap[row]);
}

export class Matrix {
  /** @param {{ view: View, onView: (changes: Partial<View>) => void, signal: AbortSignal, failures?: Map<string, string>, shown?: Set<string>, pair?: PairSide }} how */
  constructor(how) {
    this.how = how;
    this.view = how.view;
    /** @type {MatrixData | null} */
    this.data = null;
    /** @type {number[]} */
    this.order = [];
    /** @type {HTMLElement[]} */
    this.pool = [];
    /** Score plugins whose columns are left out. @type {Set<string>} */
    this.hidden = new Set();
    /** @type {import("./matrix_layout.js").Layout} */
    this.layout = EMPTY_LAYOUT;
    this.rowHeight = ROW;
    this.head = h("div", { class: "matrix-head", role: "rowgroup" });
    this.body = h("div", { class: "matrix-body", role: "rowgroup" });
    this.scroller = h(
      "div",
      {
        class: "matrix",
        role: "grid",
        tabindex: 0,
        "aria-label": how.pair?.label ?? "Nodes by plugins",
        "data-test": "matrix",
        onscroll: () => {
          beforePaint(this.paint);
          how.pair?.onScroll(this.scroller.scrollTop, this.scroller.scrollLeft);
        },
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
      this.scroller.scrollTop += rows * this.rowHeight;
    };
    bind({ j: scroll(1), k: scroll(-1), ArrowDown: scroll(1), ArrowUp: scroll(-1) }, how.signal);
  }

  /** Scroll like the matrix beside this one. @param {number} top @param {number} left */
  scrollTo(top, left) {
    const { scroller } = this;
    if (scroller.scrollTop !== top) scroller.scrollTop = top;
    if (scroller.scrollLeft !== left) scroller.scrollLeft = left;
  }

  resized() {
    const { clientWidth } = this.scroller;
    if (this.data && clientWidth && clientWidth !== this.laidFor) this.arrange();
    else beforePaint(this.paint);
  }

  /** Show the data of an attempt. @param {MatrixData} data */
  show(data) {
    this.data = data;
    this.index = new Map(data.rows.node.map((node, at) => [node, at]));
    this.arrange();
  }

  /** Change the filter, the order or the kind of values. @param {View} view */
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
      const failed = data.rows.plugin[row] !== "";
      if ((only === "fit" && !fits(data.rows, row)) || ((only === "failed" || only === "nearest") && !failed)) continue;
      if (text && !data.rows.node[row].toLowerCase().includes(text)) continue;
      order.push(row);
    }
    this.order = only === "nearest" ? order.slice(0, NEAREST) : order;
    this.laidFor = this.scroller.clientWidth;
    this.arrangeColumns();
    this.sortRows();
    this.drawHead();
    for (const row of this.pool) row.dataset.row = "";
    this.body.style.height = `${this.order.length * this.rowHeight}px`;
    // The frame is not taller than its rows; below them is room for a horizontal scroll bar.
    const bar = this.layout.width > this.scroller.clientWidth ? barHeight() : 0;
    const tall = this.head.offsetHeight + Math.max(this.order.length, 1) * this.rowHeight + bar + 2;
    this.element.style.maxHeight = `${tall}px`;
    this.scroller.setAttribute("aria-rowcount", String(this.order.length + 2));
    if (this.scroller.scrollTop > this.order.length * this.rowHeight) this.scroller.scrollTop = 0;
    beforePaint(this.paint);
  }

  arrangeColumns() {
    const data = /** @type {MatrixData} */ (this.data);
    const isPhone = this.scroller.clientWidth < PHONE;
    this.layout = layOut(data, {
      folded: this.view.folded,
      shown: this.how.shown ?? new Set(),
      hidden: this.hidden,
      room: this.scroller.clientWidth,
      sizes: isPhone ? PHONE_SIZES : this.how.pair ? SPLIT_SIZES : FULL_SIZES,
      // The rows of two matrices must have equal heights.
      isGapBelow: isPhone && !this.how.pair,
    });
    this.rowHeight = ROW + (this.layout.isGapBelow ? Number.parseFloat(token("below-row")) : 0);
    this.body.classList.toggle("with-gap-below", this.layout.isGapBelow);
    this.pool = [];
    this.body.replaceChildren();
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
    drawHead(this.head, /** @type {MatrixData} */ (this.data), this.layout, {
      rows: this.order.length,
      view: this.view,
      failures: this.how.failures,
      onSort: this.how.pair ? null : (sort) => this.how.onView({ sort }),
    });
  }

  paint() {
    if (!this.data || this.how.signal.aborted) return;
    const headHeight = this.head.offsetHeight;
    const top = Math.max(0, this.scroller.scrollTop);
    const first = Math.max(0, Math.floor(top / this.rowHeight) - OVERSCAN);
    const shown = Math.ceil((this.scroller.clientHeight - headHeight) / this.rowHeight) + 2 * OVERSCAN;
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
    const { columns, sizes, scoreEnd, width, isGapBelow } = this.layout;
    const stuck = sizes.node + sizes.total;
    const row = h(
      "div",
      { class: "mrow", role: "row", style: { width: `${width}px` } },
      h(
        "div",
        { class: "mcell stuck", role: "rowheader", style: { left: "0", width: `${sizes.node}px` } },
        h("a", { class: "name" }, ""),
      ),
      h(
        "div",
        {
          class: `mcell right edge${sizes.isTotalStuck ? " stuck" : " loose"}`,
          role: "gridcell",
          style: { left: `${sizes.node}px`, width: `${sizes.total}px` },
        },
        h("span", { class: "faint figure" }, ""),
        h("span", { class: "total" }, ""),
      ),
      columns.map((column, at) =>
        h("div", {
          class: "mcell",
          role: "gridcell",
          "data-column": at,
          style: { left: `${column.left}px`, width: `${column.width}px` },
        }),
      ),
      h("div", {
        class: "gap",
        style: {
          left: isGapBelow ? "12px" : `${stuck + 8}px`,
          width: isGapBelow ? `${this.scroller.clientWidth - 24}px` : `${Math.max(200, scoreEnd - stuck - 16)}px`,
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
    const scored = total !== null;
    const fitting = fits(data.rows, at);
    row.dataset.row = String(index);
    row.dataset.node = node;
    row.setAttribute("aria-rowindex", String(index + 3));
    row.style.transform = `translateY(${index * this.rowHeight}px)`;
    row.className = `mrow${node === data.winner ? " winner" : ""}${node === data.runner_up ? " runner" : ""}${scored ? "" : " failed"}`;
    row.title = scored ? this.difference(at) : "";
    const link = /** @type {HTMLAnchorElement} */ (row.children[0].firstElementChild);
    putName(link, node, this.layout.letters, this.layout.domain);
    link.title = node;
    link.href = nodeAddress(node);
    const [behind, figure] = row.children[1].children;
    behind.textContent = scored && data.winner && node !== data.winner ? this.behind(at) : "";
    // A node without a total that no filter rejected was not evaluated: enough others fit.
    const plugin = data.rows.plugin[at];
    figure.textContent = scored
      ? `${count(total)}${data.rows.tie[at] ? " ★" : ""}`
      : plugin
        ? `✕ ${plugin}`
        : fitting
          ? "✓ fits"
          : "·";
    figure.className = fitting ? "total" : plugin ? "total bad-text" : "total faint";
    for (let column = 0; column < this.layout.columns.length; column += 1)
      this.paintCell(/** @type {HTMLElement} */ (row.children[column + 2]), column, at, scored);
    const gap = /** @type {HTMLElement} */ (row.lastElementChild);
    gap.textContent = scored ? "" : data.rows.gap[at] || (fitting ? "the only node that fits: nothing to score" : "");
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
    const column = this.layout.columns[index];
    const node = data.rows.node[at];
    const chosen = this.view.cell === `${node}.${column.name}` ? " chosen" : "";
    const other = this.otherCell(column, at);
    if (column.kind === "score") {
      const value = data.rows[this.view.values][at]?.[column.at];
      cell.textContent = fits && value !== undefined && value !== null ? count(value) : "";
      cell.className = `mcell right score${chosen}${other ? " differs" : ""}`;
      cell.title = other;
      cell.style.setProperty("--n", fits ? String(((data.rows.normalized[at]?.[column.at] ?? 0) * 100) / (data.max_score ?? 100)) : "0");
      return;
    }
    const verdict = (column.kind === "pre" ? data.rows.pre_filters : data.rows.filters)[at]?.[column.at];
    const failed = verdict !== null && verdict !== undefined && verdict > 0;
    cell.textContent = verdict === null || verdict === undefined ? "·" : failed ? "✕" : "✓";
    cell.className = `mcell mid${failed ? " bad-cell" : verdict === 0 ? " pass" : " faint"}${chosen}${other ? " differs" : ""}`;
    const resultText = failed
      ? (data.statuses[verdict]?.reasons.join("; ") ?? "")
      : verdict === 0
        ? "passes"
        : "not run: an earlier filter had failed";
    cell.title = [resultText, other].filter(Boolean).join("\n");
  }

  /**
   * The content of the same cell in the matrix beside this one, in words; "" if it is the same or there is no such matrix.
   * @param {import("./matrix_layout.js").Column} column @param {number} at
   */
  otherCell(column, at) {
    const { pair } = this.how;
    const other = pair?.other();
    if (!pair || !other) return "";
    const mine = cellText(/** @type {MatrixData} */ (this.data), column.kind, column.name, at, this.view.values);
    const its = cellText(other, column.kind, column.name, at, this.view.values);
    return mine === its ? "" : `${pair.side}: ${its || "nothing"}`;
  }

  /** Which plugins cause the difference in points between a node and the winner. @param {number} at */
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
    this.how.onView({ cell: `${row.dataset.node}.${this.layout.columns[Number(cell.dataset.column)].name}` });
  }
}

/**
 * The content of a cell as a text.
 * @param {MatrixData} data @param {"score" | "pre" | "filter"} kind @param {string} name @param {number} at
 * @param {Values} values
 */
function cellText(data, kind, name, at, values) {
  if (kind === "score") {
    const column = data.scorers.findIndex((scorer) => scorer.name === name);
    return data.rows.total[at] === null || column < 0 ? "" : String(data.rows[values][at]?.[column] ?? "");
  }
  const [names, rows] = kind === "pre" ? [data.pre_filters, data.rows.pre_filters] : [data.filters, data.rows.filters];
  const verdict = rows[at]?.[names.indexOf(name)];
  // A filter that was not run counts as passed.
  return verdict ? "rejects" : "passes";
}

/**
 * The data of only the nodes that failed for a reason; of all nodes if it is "".
 * @param {MatrixData} data @param {string} reason @returns {MatrixData}
 */
export function onlyReason(data, reason) {
  if (!reason) return data;
  const matchesReason = (/** @type {string} */ text) => text.includes(reason) || reason.includes(text);
  const hit = (/** @type {number} */ row) =>
    String(data.rows.gap[row] ?? "").includes(reason) ||
    (data.rows.filters[row] ?? []).some((code) => code && data.statuses[code]?.reasons.some(matchesReason));
  const kept = data.rows.node.map((_, row) => row).filter(hit);
  return { ...data, rows: someRows(data.rows, kept) };
}

/** The columns with some of their rows. @param {Columns} columns @param {number[]} rows @returns {Columns} */
function someRows(columns, rows) {
  const some = /** @type {<T>(values: T[]) => T[]} */ ((values) => rows.map((row) => values[row]));
  return {
    node: some(columns.node),
    total: some(columns.total),
    tie: some(columns.tie),
    plugin: some(columns.plugin),
    gap: some(columns.gap),
    pre_filters: some(columns.pre_filters),
    filters: some(columns.filters),
    raw: some(columns.raw),
    normalized: some(columns.normalized),
    weighted: some(columns.weighted),
  };
}
