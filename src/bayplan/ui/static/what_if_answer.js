// The answer to a what-if question: pods by kind of difference, numbers before and after, evictions.

import { draw, h } from "./dom.js";
import { count, counted, percent, reasonsIn, signed } from "./format.js";
import { NARROW, hostOf, letterWidth, lettersOf, shortened } from "./names.js";
import { change, podAddress } from "./address.js";
import { Grid } from "./grid.js";
import { choice, nodeLink, podLink, podOf } from "./parts.js";
import { table } from "./capacity.js";
import { assumptionList } from "./unblocking.js";

/** The kinds of differences with their words, worst first. @type {[string, string][]} */
const KINDS = [
  ["waits", "pending"],
  ["gone", "gone"],
  ["moved", "moved"],
  ["placed", "get a node"],
  ["new", "new"],
];
const MAX_EVICTIONS = 50;
/** Columns do not get wider for texts with more characters than this. */
const LONGEST = 60;
/** The horizontal space around the text of a cell, in pixels. */
const CELL_PADDING = 24;
const KIND_WIDTH = 104;
const MIN_POD_WIDTH = 130;
const MIN_WHY_WIDTH = 160;
/** The space beside the table, in pixels, before it is on the page. */
const MEASURES_WIDTH = 390;

/** Shows answers in an element. The table of pods is created again only if it differs. */
export class AnswerPart {
  /** @param {AbortSignal} signal */
  constructor(signal) {
    this.signal = signal;
    this.tools = h("div", null);
    this.table = h("div", { class: "table-part" });
    this.figures = h("div", { class: "stack" });
    this.element = h("div", { class: "answer", own: true }, h("div", { class: "stack answer-pods" }, this.tools, this.table), this.figures);
    this.shown = "";
  }

  /** @param {Api.WhatIfReport} report @param {string} kind of differences; "" for all */
  show(report, kind) {
    const all = report.differences.length;
    const options = KINDS.filter(([key]) => report.counts[key]).map(([key, text]) => ({
      value: key,
      text,
      count: count(report.counts[key]),
    }));
    draw(
      this.tools,
      options.length
        ? h(
            "div",
            { class: "tools" },
            choice("Which pods", [{ value: "", text: "all", count: count(all + report.left_out) }, ...options], kind, (value) =>
              change({ kind: value }),
            ),
          )
        : null,
      report.left_out ? h("p", { class: "faint small" }, `The first ${count(all)} are listed.`) : null,
    );
    const rows = report.differences.filter((row) => !kind || row.kind === kind);
    const shown = JSON.stringify([report.id, report.at, report.changes, report.reschedule, kind, all]);
    const width = this.table.clientWidth || innerWidth - MEASURES_WIDTH;
    if (shown !== this.shown) this.table.replaceChildren(all ? pods(rows, width, this.signal).element : nothing(report));
    this.shown = shown;
    draw(this.figures, warnings(report.warnings), measures(report.measures), evictions(report.evictions), assumptionList(report.assumptions));
  }
}

/** @param {Api.WhatIfReport} report */
function nothing(report) {
  return h("div", { class: "empty panel" }, h("p", null, `No pod differs: all ${counted(report.pods, "pod")} are where they were.`));
}

/** @param {Api.PodDifference[]} rows @param {number} width of the table, in pixels @param {AbortSignal} signal */
function pods(rows, width, signal) {
  const words = new Map(KINDS);
  const isNarrow = innerWidth < NARROW;
  const pixels = (/** @type {number[]} */ lengths) =>
    Math.ceil(Math.max(10, ...lengths.map((each) => Math.min(each, LONGEST))) * letterWidth()) + CELL_PADDING;
  // Widths in proportion to the content, but enough to distinguish nodes: their domain is cut first. Long hosts leave room for the reason.
  const nodes = rows.flatMap((row) => [row.before, row.after]).filter(Boolean);
  const whole = pixels(nodes.map((node) => node.length));
  const spare = (width - MIN_POD_WIDTH - KIND_WIDTH - 2 * MIN_WHY_WIDTH) / 2;
  const host = Math.min(pixels(nodes.map(lettersOf)), Math.max(spare, MIN_POD_WIDTH));
  const pod = pixels(rows.map((row) => row.pod.length));
  const why = pixels(rows.map((row) => whyOf(row).length));
  const isRoomy = isNarrow || 2 * whole + pod + why + KIND_WIDTH <= width;
  const side = (/** @type {"before" | "after"} */ key, /** @type {string} */ text) => ({
    key,
    title: text,
    width: `minmax(${isNarrow ? 120 : host}px, ${isRoomy ? whole : host}fr)`,
    render: (/** @type {Api.PodDifference} */ row, /** @type {number} */ _, /** @type {number} */ letters) =>
      row[key] ? nodeLink(row[key], letters) : h("span", { class: "faint" }, key === "before" && row.kind === "placed" ? "pending" : "–"),
  });
  return new Grid({
    label: "Pods that differ",
    signal,
    test: "what-if-table",
    keyOf: (row) => row.pod,
    hrefOf: (row) => podAddress(podOf(row.pod)),
    columns: [
      {
        key: "pod",
        title: "Pod",
        width: `minmax(${MIN_POD_WIDTH}px, ${pod}fr)`,
        render: (row, _, letters) =>
          row.kind === "new"
            ? h("span", { class: "name", title: row.pod }, shortened(row.pod, letters))
            : podLink(podOf(row.pod), { letters }),
      },
      {
        key: "kind",
        title: "",
        width: isNarrow ? "48px" : `${KIND_WIDTH}px`,
        render: (row) => kindBadge(row.kind, words.get(row.kind) ?? row.kind, isNarrow),
      },
      { ...side("before", "Before"), minor: true },
      side("after", "After"),
      {
        key: "why",
        title: "Why",
        width: `minmax(${MIN_WHY_WIDTH}px, ${why}fr)`,
        below: true,
        render: (row) => {
          const text = [row.plugin, row.reason].filter(Boolean).join(": ");
          return h("span", { class: "clip", title: text }, whyOf(row) || "–");
        },
      },
    ],
    load: async (offset, limit) => ({ items: rows.slice(offset, offset + limit), total: rows.length }),
    empty: () => h("div", { class: "empty" }, h("p", null, "No pods.")),
  });
}

/**
 * Why a pod differs. Node names are shortened to their hosts, as all nodes of a cluster usually have the same domain.
 * @param {Api.PodDifference} row
 */
function whyOf(row) {
  const text = [row.plugin, row.reason].filter(Boolean).join(": ");
  return [row.before, row.after].filter(Boolean).reduce((words, node) => words.replaceAll(node, hostOf(node)), reasonsIn(text));
}

/** @param {string} kind @param {string} words @param {boolean} isShort show only the glyph */
function kindBadge(kind, words, isShort) {
  const looks = /** @type {Record<string, [string, string]>} */ ({
    waits: ["wait", "…"],
    gone: ["bad", "−"],
    moved: ["plain", "→"],
    placed: ["ok", "✓"],
    new: ["plain", "+"],
  });
  const [tone, glyph] = looks[kind] ?? ["plain", "·"];
  if (isShort) return h("span", { class: `badge ${tone}`, role: "img", "aria-label": words, title: words }, glyph);
  return h("span", { class: `badge ${tone}` }, h("span", { class: "glyph", "aria-hidden": "true" }, glyph), words);
}

/** @param {string[]} lines */
function warnings(lines) {
  if (!lines.length) return null;
  return h(
    "section",
    { class: "panel", "data-test": "warnings" },
    h("h2", null, counted(lines.length, "warning")),
    h(
      "ul",
      { class: "difference" },
      lines.map((line) => h("li", { key: line }, line)),
    ),
  );
}

/** @param {Api.Measure[]} figures */
function measures(figures) {
  const share = (/** @type {string} */ name) => / (?:requested|fragmented)$/.test(name);
  const text = (/** @type {Api.Measure} */ each, /** @type {number} */ value) =>
    share(each.name) ? percent(value) : count(value);
  return h(
    "section",
    { class: "panel", "data-test": "measures" },
    h("h2", null, "Before and after"),
    table(
      [["", ""], ["Before", "right"], ["After", "right"], ["Change", "right"]],
      figures.map((each) => {
        // The difference of the rounded numbers, so that the row does not contradict itself.
        const difference = share(each.name)
          ? Math.round(each.after * 100) - Math.round(each.before * 100)
          : each.after - each.before;
        return [
          each.name,
          text(each, each.before),
          h("span", { class: difference ? "strong" : null }, text(each, each.after)),
          difference ? `${signed(difference)}${share(each.name) ? " pp" : ""}` : h("span", { class: "faint" }, "–"),
        ];
      }),
    ),
  );
}

/** @param {Api.Eviction[]} rows */
function evictions(rows) {
  if (!rows.length) return null;
  return h(
    "section",
    { class: "panel" },
    h("h2", null, counted(rows.length, "eviction")),
    table(
      [["Pod", ""], ["Priority", "right minor"], ["For", ""]],
      rows.slice(0, MAX_EVICTIONS).map((each) => [
        podLink(podOf(each.pod), { letters: 30 }),
        count(each.priority),
        h("span", { class: "name" }, shortened(each.preemptor, 30)),
      ]),
    ),
    rows.length > MAX_EVICTIONS ? h("p", { class: "faint small" }, `and ${count(rows.length - MAX_EVICTIONS)} more`) : null,
  );
}
