// The requested share of the nodes' allocatable amounts: one row per resource, and its course over the last minutes.

import { h } from "./dom.js";
import { amount, percent, resource, span } from "./format.js";
import { meter, sparkline } from "./parts.js";

/** @param {Api.Overview} data */
export function utilisationPanel({ utilisation, utilisation_history: history }) {
  const whole = utilisation.filter((row) => !row.zone && row.allocatable);
  return h(
    "section",
    { class: "panel", "aria-label": "Utilisation" },
    h("h2", null, "Utilisation"),
    whole.length ? resourceTable(whole) : h("p", { class: "calm" }, "No nodes yet."),
    whole.length && history.length > 1 ? h("div", { class: "sparks" }, spark("cpu", history), spark("memory", history)) : null,
  );
}

/** @param {Api.UsageRow[]} rows */
function resourceTable(rows) {
  return h(
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
            title: "The largest free amount on one node. Amounts scattered over nodes don't fit a large pod",
          },
          "Largest free",
        ),
      ),
    ),
    h(
      "tbody",
      null,
      rows.map((row) =>
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
  );
}

/** @param {"cpu" | "memory"} name @param {Api.UsagePoint[]} history oldest first */
function spark(name, history) {
  const newest = history[history.length - 1];
  const seconds = (Date.parse(newest.at) - Date.parse(history[0].at)) / 1000;
  return h(
    "figure",
    { key: name },
    h("figcaption", null, `${resource(name)}, last ${span(seconds)}`),
    sparkline(
      history.map((each) => each[name]),
      `${resource(name)} over time, now ${percent(newest[name])}`,
    ),
  );
}
