// The tools above a matrix: filters for nodes, kinds of values, hidden filters; and the results of other extension
// points.

import { valueChoices } from "./annotated.js";
import { draw, h } from "./dom.js";
import { count, counted, cut, sentence } from "./format.js";
import { shortened } from "./names.js";
import { change } from "./address.js";
import { choice } from "./parts.js";
import { pointsPart } from "./pod_tabs.js";
import { refusalNote, refusalSentence, reloadButton } from "./plugin_reload.js";

/**
 * @typedef {{ folded: number, reason: string, each: boolean, custom: boolean, hypothetical: boolean, typed: (text: string) => void, next: Node | null }} How
 *   folded: how many filters are hidden; reason: the one that selects rows; each: filters run alone; custom: some plugins are from files;
 *   hypothetical: the attempt is hypothetical; next: shown instead if there is no matrix
 */
/**
 * @param {HTMLElement} tools @param {Api.ColumnMatrix | Api.NoMatrix} data @param {import("./matrix.js").View} view @param {How} how
 */
export function drawMatrixTools(tools, data, view, how) {
  if (data.form === "none" || !data.rows.node.length) {
    const why = data.form === "none" ? sentence(data.why) : "Nothing was recorded about nodes in this attempt.";
    const next = how.next ? h("div", { class: "row" }, how.next) : null;
    draw(tools, h("div", { class: "note wait" }, h("p", null, why), next), pointsPart(data));
    return;
  }
  draw(
    tools,
    how.hypothetical
      ? h("p", { class: "note wait", "data-test": "hypothetical" }, "No attempt is recorded. This is how the pod would be scheduled now.")
      : null,
    h(
      "div",
      { class: "tools" },
      ...choices(data, view),
      h("input", {
        type: "search",
        class: "field",
        placeholder: "Find node…",
        "aria-label": "Find node",
        "data-search": "",
        "data-test": "find-node",
        value: view.find,
        oninput: (/** @type {Event} */ event) => how.typed(/** @type {HTMLInputElement} */ (event.target).value),
      }),
      ...filters(view, how),
      h("span", { class: "grow" }),
      how.custom ? reloadButton() : null,
      ending(data),
    ),
    pointsPart(data),
    how.custom ? refusalNote(refusalSentence()) : null,
  );
}

/** The choices of nodes and of values. @param {Api.ColumnMatrix} data @param {import("./matrix.js").View} view */
function choices(data, view) {
  const { fit, failed } = data.counts;
  return [
    choice(
      "Show",
      [
        { value: "all", text: "all", count: count(data.rows.node.length) },
        { value: "fit", text: "fit", count: count(fit) },
        { value: "failed", text: "failed", count: count(failed) },
        ...(failed > 20 ? [{ value: "nearest", text: "nearest 20" }] : []),
      ],
      view.only,
      (only) => change({ only: only === "all" ? "" : only }),
    ),
    data.scorers.length && fit
      ? choice("Values", valueChoices(data), view.values, (values) =>
          change({ values: values === "normalized" ? "" : values }),
        )
      : null,
  ];
}

/** The controls that leave out rows or columns, or run filters alone. @param {import("./matrix.js").View} view @param {How} how */
function filters(view, how) {
  return [
    how.reason
      ? h(
          "span",
          { class: "chip" },
          cut(how.reason, 48),
          h(
            "button",
            { type: "button", class: "chip-x", "aria-label": "Remove the filter", onclick: () => change({ reason: "" }) },
            "✕",
          ),
        )
      : null,
    how.folded || !view.folded
      ? h(
          "button",
          { type: "button", class: "button quiet", onclick: () => change({ columns: view.folded ? "all" : "" }) },
          view.folded ? `Show ${counted(how.folded, "passing filter")}` : "Hide passing filters",
        )
      : null,
    h(
      "label",
      { class: "check", title: "The scheduler stops at a node's first failing filter; this runs each filter alone" },
      h("input", {
        type: "checkbox",
        checked: how.each,
        onchange: (/** @type {Event} */ event) =>
          change({ each: /** @type {HTMLInputElement} */ (event.target).checked ? "1" : "" }),
      }),
      "run all filters",
    ),
  ];
}

/** The margin of the winner, or a tie. @param {Api.ColumnMatrix} data */
function ending(data) {
  if (data.tie_set.length > 1)
    return h(
      "span",
      { class: "faint", title: data.tie_set.join("\n") },
      `★ ${counted(data.tie_set.length, "node")} tie`,
    );
  if (!data.runner_up) return null;
  return h(
    "span",
    { class: "faint", "data-test": "margin", title: data.runner_up },
    `${count(data.margin)} ahead of `,
    h("span", { class: "name" }, shortened(data.runner_up, 28)),
  );
}
