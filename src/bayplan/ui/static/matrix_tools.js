// The tools above a matrix: which nodes, which values, hidden filters; and results other than those of filters and scores.

import { valueChoices } from "./annotated.js";
import { draw, h } from "./dom.js";
import { count, counted, cut, sentence } from "./format.js";
import { shortened } from "./names.js";
import { change } from "./address.js";
import { choice } from "./parts.js";
import { pointsPart } from "./pod_tabs.js";
import { refusalNote, refusalSentence, reloadButton } from "./plugin_reload.js";

/**
 * @param {HTMLElement} tools @param {any} data @param {import("./matrix.js").View} view
 * @param {{ usable: boolean, folded: number, reason: string, each: boolean, custom: boolean, typed: (text: string) => void, next: Node | null }} how
 *   usable: whether there are rows; folded: how many filters are; reason: that chooses rows; each: filters are run alone;
 *   custom: there are plugins from files; next: what shows a matrix if there is none
 */
export function drawMatrixTools(tools, data, view, how) {
  const { usable } = how;
  const points = pointsPart(data);
  if (!usable) {
    draw(
      tools,
      h(
        "div",
        { class: "note wait" },
        h("p", null, data.why ? sentence(data.why) : "Nothing was recorded about nodes in this attempt."),
        how.next ? h("div", { class: "row" }, how.next) : null,
      ),
      points,
    );
    return;
  }
  const { fit, failed } = data.counts;
  draw(
    tools,
    h(
      "div",
      { class: "tools" },
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
        ? choice(
            "Values",
            valueChoices(data),
            view.values,
            (values) => change({ values: values === "normalized" ? "" : values }),
          )
        : null,
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
      how.reason
        ? h(
            "span",
            { class: "chip" },
            cut(how.reason, 48),
            h(
              "button",
              {
                type: "button",
                class: "chip-x",
                "aria-label": "Remove the filter",
                onclick: () => change({ reason: "" }),
              },
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
        {
          class: "check",
          title: "The scheduler stops at a node's first failing filter; this runs each filter alone",
        },
        h("input", {
          type: "checkbox",
          checked: how.each,
          onchange: (/** @type {Event} */ event) =>
            change({ each: /** @type {HTMLInputElement} */ (event.target).checked ? "1" : "" }),
        }),
        "run all filters",
      ),
      h("span", { class: "grow" }),
      how.custom ? reloadButton() : null,
      data.tie_set?.length > 1
        ? h(
            "span",
            { class: "faint", title: data.tie_set.join("\n") },
            `★ ${counted(data.tie_set.length, "node")} tie`,
          )
        : data.runner_up
          ? h(
              "span",
              { class: "faint", "data-test": "margin", title: data.runner_up },
              `${count(data.margin)} ahead of `,
              h("span", { class: "name" }, shortened(data.runner_up, 28)),
            )
          : null,
    ),
    points,
    how.custom ? refusalNote(refusalSentence()) : null,
  );
}
