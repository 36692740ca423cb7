// A table that has elements only for the visible rows, so that 50,000 rows cost as much as 30. It loads its rows from
// the server in windows. While the pointer or the cursor is in the table, rows keep their places: their content is
// updated, and a button says that the order has changed.

import { beforePaint, draw, h, stamp, token } from "./dom.js";
import { bounded } from "./format.js";
import { NARROW, lettersIn } from "./names.js";
import { bind } from "./keyboard.js";
import { go } from "./address.js";
import { failure } from "./loading_states.js";

/** @typedef {import("./dom.js").Child} Child */
/**
 * @template Row
 * @typedef {{ key: string, title: string, width: string, right?: boolean, sort?: string, hint?: string, minor?: boolean, narrow?: string, below?: boolean,
 *   render: (row: Row, index: number, letters: number) => Child | Child[] }} Column
 * `width` is a CSS grid track; `sort` the key that the server sorts by; `minor` columns are left out on a phone, `narrow` is the
 * width there, and a column with `below` has its text below the others; `letters` is how many characters of a name fit into the column.
 */
/**
 * @template Row
 * @typedef {{ items: Row[], total: number, total_is_exact?: boolean }} Window
 */

const WINDOW = 100;
const OVERSCAN = 6;
const KEPT_WINDOWS = 12;
/** The horizontal space around the text of a cell, in pixels. */
const PADDING = 21;
/** Browsers draw nothing beyond about 16 million pixels. */
const TALLEST = 15_000_000;

/** The scroll position and cursor of each table, by address, restored when the user returns to it. @type {Map<string, { top: number, cursor: number }>} */
const places = new Map();

/** The columns that a phone shows. @template Row @param {Column<Row>[]} columns @returns {Column<Row>[]} */
function onPhone(columns) {
  return columns.filter((column) => !column.minor).map((column) => ({ ...column, width: column.narrow ?? column.width }));
}

/** The sum of the minimum widths of columns, in pixels. @param {{ width: string }[]} columns */
function leastWidth(columns) {
  return columns.reduce((sum, { width }) => sum + Number(/([\d.]+)px/.exec(width)?.[1] ?? 0), 0);
}

/** The height of one line, in pixels. */
function rowHeight() {
  return document.documentElement.dataset.rows === "dense" ? 24 : 30;
}

/** @param {{ right?: boolean, below?: boolean }} column */
function cellClass(column) {
  return `cell${column.right ? " right" : ""}${column.below ? " below" : ""}`;
}

/** @template Row */
export class Grid {
  /**
   * @param {{
   *   label: string, columns: Column<Row>[], load: (offset: number, limit: number, signal: AbortSignal) => Promise<Window<Row>>,
   *   keyOf: (row: Row) => string, hrefOf?: (row: Row) => string, signal: AbortSignal, sort?: string, onSort?: (sort: string) => void,
   *   empty?: () => Node, onTotal?: (total: number, exact: boolean) => void, rowClass?: (row: Row) => string, fill?: boolean,
   *   selected?: Set<string>, onSelect?: () => void, test?: string,
   * }} how
   */
  constructor(how) {
    this.how = how;
    this.columns = innerWidth < NARROW ? onPhone(how.columns) : how.columns.map((each) => ({ ...each, below: false }));
    this.hasTextBelow = this.columns.some((column) => column.below);
    /** How many characters of a name fit, by column. @type {number[]} */
    this.letters = this.columns.map(() => 0);
    this.total = -1;
    this.cursor = -1;
    this.held = false;
    /** @type {Map<number, Row[]>} */
    this.windows = new Map();
    /** @type {Map<number, AbortController>} */
    this.asking = new Map();
    /** @type {HTMLElement[]} */
    this.pool = [];
    /** The data that each row element shows. @type {WeakMap<HTMLElement, { data: Row | undefined, chosen: boolean }>} */
    this.shown = new WeakMap();
    this.generation = 0;
    this.changes = 0;
    /** The scroll position to restore when the number of rows is known. */
    this.top = 0;
    this.rowHeight = rowHeight() + (this.hasTextBelow ? Number.parseFloat(token("below-row")) : 0);
    this.head = h("div", { class: "grid-row grid-head", role: "row", "aria-rowindex": 1 });
    this.body = h("div", { class: "grid-body", role: "rowgroup" });
    this.chip = h("button", {
      type: "button",
      class: "button grid-chip",
      hidden: true,
      onclick: () => this.refresh(true),
      "data-test": "refresh-order",
    });
    this.view = h(
      "div",
      {
        class: `grid${this.hasTextBelow ? " with-text-below" : ""}`,
        role: "grid",
        tabindex: 0,
        "aria-label": how.label,
        "data-test": how.test ?? "grid",
        "aria-colcount": this.columns.length,
        onpointerenter: () => {
          this.held = true;
        },
        onpointerleave: () => this.release(),
        onblur: () => this.release(),
        onscroll: () => this.schedule(),
      },
      h("div", { role: "rowgroup", class: "grid-heads" }, this.head),
      this.body,
    );
    this.nothing = h("div", { class: "grid-nothing", hidden: true });
    const look = `grid-frame${how.fill === false ? "" : " fill"}`;
    const style = { "--row": `${this.rowHeight}px` };
    this.element = h("div", { class: look, own: true, style }, this.view, this.nothing, this.chip);
    this.paint = this.paint.bind(this);
    this.applyWidths();
    const resized = new ResizeObserver(() => this.resized());
    resized.observe(this.view);
    how.signal.addEventListener("abort", () => resized.disconnect());
    const before = places.get(this.address);
    if (before) {
      this.top = before.top;
      this.cursor = before.cursor;
    }
    this.drawHead();
    this.bindKeys();
    this.want(0);
    this.schedule();
  }

  applyWidths() {
    const inLine = this.columns.filter((column) => !column.below);
    this.view.style.setProperty("--columns", inLine.map((column) => column.width).join(" "));
    this.view.style.setProperty("--least", `${leastWidth(inLine)}px`);
  }

  /** Change the width of a column; not on a phone, which has other widths. @param {string} key @param {string} width */
  setWidth(key, width) {
    const column = this.columns.find((each) => each.key === key);
    if (!column || this.hasTextBelow || column.width === width) return;
    column.width = width;
    this.applyWidths();
    this.resized();
  }

  get address() {
    return `${location.pathname}${location.search} ${this.how.label}`;
  }

  /** Measure the columns. Nothing else does: painting rows uses the widths found here. */
  resized() {
    const letters = [...this.head.children].map((cell) => lettersIn(cell.clientWidth - PADDING));
    if (letters.join() !== this.letters.join()) {
      this.letters = letters;
      this.shown = new WeakMap();
    }
    this.schedule();
  }

  bindKeys() {
    const move = (/** @type {number} */ step) => () => {
      if (this.total <= 0) return false;
      // Without a cursor, begin at the first visible row.
      const from = this.cursor < 0 ? Math.ceil(this.view.scrollTop / this.step()) - 1 : this.cursor;
      this.cursor = Math.max(0, Math.min(this.total - 1, from + step));
      this.reveal(this.cursor);
      this.schedule();
      return true;
    };
    const page = () => Math.max(1, Math.floor(this.view.clientHeight / this.rowHeight) - 2);
    bind(
      {
        j: move(1),
        k: move(-1),
        ArrowDown: move(1),
        ArrowUp: move(-1),
        PageDown: () => move(page())(),
        PageUp: () => move(-page())(),
        Home: () => move(-Infinity)(),
        End: () => move(Infinity)(),
        Enter: () => this.open(),
        x: () => this.toggle(this.cursor),
      },
      this.how.signal,
    );
  }

  open() {
    const row = this.rowAt(this.cursor);
    if (!row || !this.how.hrefOf) return false;
    go(this.how.hrefOf(row));
    return true;
  }

  /** @param {number} index */
  toggle(index) {
    const row = this.rowAt(index);
    const { selected } = this.how;
    if (!row || !selected) return false;
    const key = this.how.keyOf(row);
    if (!selected.delete(key)) selected.add(key);
    this.schedule();
    this.how.onSelect?.();
    return true;
  }

  /** @param {number} index */
  reveal(index) {
    const top = index * this.step();
    const height = this.view.clientHeight - this.rowHeight;
    if (top < this.view.scrollTop) this.view.scrollTop = top;
    else if (top + this.rowHeight > this.view.scrollTop + height) this.view.scrollTop = top + this.rowHeight - height;
  }

  drawHead() {
    const { columns } = this;
    const { onSort } = this.how;
    const sort = this.how.sort ?? "";
    draw(
      this.head,
      columns.map((column, at) => {
        const down = sort === `-${column.sort}`;
        const sorted = column.sort && (sort === column.sort || down);
        return h(
          "div",
          {
            class: cellClass(column),
            role: "columnheader",
            "aria-colindex": at + 1,
            title: column.hint ?? null,
            "aria-sort": sorted ? (down ? "descending" : "ascending") : null,
          },
          column.sort && onSort
            ? h(
                "button",
                {
                  type: "button",
                  class: "sort",
                  onclick: () =>
                    onSort(
                      sort === `-${column.sort}`
                        ? /** @type {string} */ (column.sort)
                        : sorted
                          ? ""
                          : `-${column.sort}`,
                    ),
                },
                column.title,
                h("span", { class: "sort-mark", "aria-hidden": "true" }, sorted ? (down ? "▼" : "▲") : ""),
              )
            : column.title,
        );
      }),
    );
  }

  /** Reload all rows from the top, for another order or filter. @param {string} [sort] */
  reset(sort) {
    if (sort !== undefined) this.how.sort = sort;
    this.generation += 1;
    for (const asked of this.asking.values()) asked.abort();
    this.asking.clear();
    this.stale = true;
    this.cursor = -1;
    this.top = 0;
    this.drawHead();
    this.view.scrollTop = 0;
    this.want(0);
  }

  /** Reload the visible rows. @param {boolean} [apply] also reorder rows while the pointer is over the table */
  refresh(apply = false) {
    if (apply) {
      this.held = false;
      this.changes = 0;
      this.chip.hidden = true;
    }
    const [first, last] = this.range();
    for (const at of [...this.windows.keys()])
      if (at * WINDOW > last || (at + 1) * WINDOW <= first) this.windows.delete(at);
    for (let at = Math.floor(first / WINDOW); at * WINDOW < Math.max(last, 1); at += 1) this.ask(at);
  }

  release() {
    if (this.view.matches(":hover")) return;
    this.held = false;
    if (this.changes) this.refresh(true);
  }

  step() {
    return this.total * this.rowHeight > TALLEST ? TALLEST / this.total : this.rowHeight;
  }

  range() {
    const step = this.step();
    const first = Math.max(0, Math.floor(this.view.scrollTop / step) - OVERSCAN);
    const shown = Math.ceil((this.view.clientHeight || 600) / this.rowHeight) + 2 * OVERSCAN;
    return [first, Math.min(this.total < 0 ? 0 : this.total, first + shown)];
  }

  /** @param {number} index */
  rowAt(index) {
    return index < 0 ? undefined : this.windows.get(Math.floor(index / WINDOW))?.[index % WINDOW];
  }

  /** The row with a key, if it is loaded. @param {string} key */
  find(key) {
    for (const rows of this.windows.values()) {
      const row = rows.find((each) => this.how.keyOf(each) === key);
      if (row) return row;
    }
    return undefined;
  }

  /** @param {number} at */
  want(at) {
    if (this.stale || !this.windows.has(at)) this.ask(at);
  }

  /** @param {number} at */
  async ask(at) {
    if (this.asking.has(at) || this.how.signal.aborted) return;
    const asked = new AbortController();
    this.asking.set(at, asked);
    const { generation } = this;
    this.how.signal.addEventListener("abort", () => asked.abort(), { once: true });
    const slow = setTimeout(() => this.element.classList.add("dim"), 300);
    try {
      const answer = await this.how.load(at * WINDOW, WINDOW, asked.signal);
      if (generation === this.generation) this.take(at, answer);
    } catch (problem) {
      if (asked.signal.aborted || generation !== this.generation) return;
      this.nothing.hidden = false;
      draw(
        this.nothing,
        failure(problem, () => {
          this.nothing.hidden = true;
          this.ask(at);
        }),
      );
    } finally {
      clearTimeout(slow);
      this.element.classList.remove("dim");
      if (this.asking.get(at) === asked) this.asking.delete(at);
    }
  }

  /** @param {number} at @param {Window<Row>} answer */
  take(at, answer) {
    if (this.stale) this.windows.clear();
    const before = this.stale ? undefined : this.windows.get(at);
    this.stale = false;
    this.windows.set(at, this.held && before ? this.inPlace(before, answer.items) : answer.items);
    for (const kept of this.windows.keys()) {
      if (this.windows.size <= KEPT_WINDOWS) break;
      if (kept !== at) this.windows.delete(kept);
    }
    const total = this.held && before ? Math.max(this.total, at * WINDOW + before.length) : answer.total;
    if (total !== this.total) {
      this.total = total;
      this.view.setAttribute("aria-rowcount", String(total + 1));
      this.element.style.setProperty("--rows", String(Math.max(4, total)));
      const height = `${Math.min(total * this.rowHeight, TALLEST)}px`;
      if (this.body.style.height !== height) this.body.style.height = height;
      if (this.top) this.view.scrollTop = this.top;
      this.top = 0;
    }
    this.how.onTotal?.(answer.total, answer.total_is_exact ?? true);
    const none = answer.total === 0;
    this.nothing.hidden = !none;
    if (none && this.how.empty) draw(this.nothing, this.how.empty());
    this.schedule();
  }

  /** Keep row order while the pointer is over the table. @param {Row[]} before @param {Row[]} after */
  inPlace(before, after) {
    const { keyOf } = this.how;
    const fresh = new Map(after.map((row) => [keyOf(row), row]));
    const moved = before.filter((row, index) => !after[index] || keyOf(after[index]) !== keyOf(row)).length;
    this.changes = moved;
    this.chip.hidden = !moved;
    this.chip.textContent = `${bounded(moved)} ${moved === 1 ? "change" : "changes"}, refresh order`;
    return before.map((row) => fresh.get(keyOf(row)) ?? row);
  }

  schedule() {
    beforePaint(this.paint);
  }

  paint() {
    if (this.how.signal.aborted) return;
    const [first, last] = this.range();
    const step = this.step();
    if (this.total >= 0) places.set(this.address, { top: this.view.scrollTop, cursor: this.cursor });
    const wanted = last - first;
    while (this.pool.length < wanted) {
      const row = h(
        "div",
        { class: "grid-row", role: "row" },
        this.columns.map((column, at) =>
          h("div", { class: cellClass(column), role: "gridcell", "aria-colindex": at + 1 }),
        ),
      );
      row.addEventListener("click", (event) => this.clicked(row, event));
      this.pool.push(row);
      this.body.append(row);
    }
    // A row element keeps its index while it is visible, so that scrolling paints only the rows that come in.
    const size = Math.max(this.pool.length, 1);
    for (let index = first; index < last; index += 1) this.paintRow(this.pool[index % size], index, step);
    for (const row of this.pool) {
      const index = Number(row.dataset.index ?? -1);
      if (index < first || index >= last) row.hidden = true;
    }
    for (let at = Math.floor(first / WINDOW); at * WINDOW < last; at += 1) this.want(at);
    stamp("grid painted");
  }

  /** @param {HTMLElement} row @param {number} index @param {number} step */
  paintRow(row, index, step) {
    const data = this.rowAt(index);
    row.hidden = false;
    if (row.dataset.index !== String(index)) {
      row.dataset.index = String(index);
      row.setAttribute("aria-rowindex", String(index + 2));
    }
    const place = `translateY(${Math.round(index * step)}px)`;
    if (row.style.transform !== place) row.style.transform = place;
    const key = data ? this.how.keyOf(data) : "";
    const chosen = this.how.selected?.has(key) ?? false;
    const look = `grid-row${index === this.cursor ? " cursor" : ""}${chosen ? " chosen" : ""}${data ? ` ${this.how.rowClass?.(data) ?? ""}` : " pending"}`;
    if (row.className !== look) row.className = look;
    const shown = this.shown.get(row);
    if (shown && shown.data === data && !chosen && !shown.chosen) return;
    this.shown.set(row, { data, chosen });
    for (const [at, column] of this.columns.entries()) {
      const cell = row.children[at];
      const content = data ? column.render(data, index, this.letters[at]) : "";
      if (typeof content === "string" && cell.childElementCount === 0) {
        if (cell.textContent !== content) cell.textContent = content;
      } else draw(cell, content);
    }
  }

  /** @param {HTMLElement} row @param {Event} event */
  clicked(row, event) {
    if (event.target instanceof Element && event.target.closest("a, button, input, label")) return;
    if (String(getSelection() ?? "")) return;
    this.cursor = Number(row.dataset.index);
    this.schedule();
    this.open();
  }
}
