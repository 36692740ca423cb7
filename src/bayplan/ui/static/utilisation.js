// How much of what nodes offer is requested: a line a resource, and how that was in the last minutes.

import { h } from "./dom.js";
import { amount, percent, resource, span } from "./format.js";
import { meter, sparkline } from "./parts.js";

/** @param {Api.Overview} data */
export function utilisationPanel(data) {
  const whole = data.utilisation.filter((row) => !row.zone && row.allocatable);
  const history = data.utilisation_history;
  const newest = history[history.length - 1];
  return h(
    "section",
    { class: "panel", "aria-label": "Utilisation" },
    h("h2", null, "Utilisation"),
    whole.length
      ? h(
          "table",
          { class: "list" },
          h(
            "thead",
            null,
            h(
              "tr",
              null,
              h("th", { scope: "col" }, "Resource"),
              h("th", { scope: "col", class: "bar-cell" }, "Requested"),
              h("th", { scope: "col", class: "right" }, "Share"),
              h("th", { scope: "col", class: "right" }, "Allocatable"),
              h(
                "th",
                {
                  scope: "col",
                  class: "right",
                  title: "The largest free amount on one node: what is free in crumbs is not room",
                },
                "Largest free",
              ),
            ),
          ),
          h(
            "tbody",
            null,
            whole.map((row) =>
              h(
                "tr",
                { key: row.resource },
                h("th", { scope: "row" }, resource(row.resource)),
                h("td", { class: "bar-cell" }, meter(row.share)),
                h("td", { class: "right figure" }, percent(row.share)),
                h("td", { class: "right figure" }, amount(row.resource, row.allocatable)),
                h("td", { class: "right figure" }, amount(row.resource, row.largest_gap)),
              ),
            ),
          ),
        )
      : h("p", { class: "calm" }, "No nodes yet."),
    whole.length && history.length > 1
      ? h(
          "div",
          { class: "sparks" },
          /** @type {const} */ (["cpu", "memory"]).map((name) =>
            h(
              "figure",
              { key: name },
              h(
                "figcaption",
                null,
                `${resource(name)}, last ${span((Date.parse(newest.at) - Date.parse(history[0].at)) / 1000)}`,
              ),
              sparkline(
                history.map((each) => each[name]),
                `${resource(name)} over time, now ${percent(newest[name])}`,
              ),
            ),
          ),
        )
      : null,
  );
}
