// One cell of the matrix in full: code, reasons, raw, normalised, weight, product, and what it made of the total.

import { weightText } from "./annotated.js";
import { h } from "./dom.js";
import { breakable, count, signed } from "./format.js";
import { nodeAddress, to } from "./address.js";

/** @typedef {import("./matrix.js").MatrixData} MatrixData */

/** A failure. @param {string} code */
function coded(code) {
  return h("span", null, "✕ ", breakable(code));
}

/**
 * What one plugin said about one node, in full.
 * @param {MatrixData} data @param {string} cell node.plugin @param {() => void} close
 */
export function cellPanel(data, cell, close) {
  const split = cell.lastIndexOf(".");
  const node = cell.slice(0, split);
  const plugin = cell.slice(split + 1);
  const at = data.rows.node.indexOf(node);
  if (at < 0) return null;
  const scorer = data.scorers.findIndex((each) => each.name === plugin);
  const filter = data.filters.indexOf(plugin);
  const verdict = filter < 0 ? null : data.rows.filters[at]?.[filter];
  const before = data.pre_filters.indexOf(plugin);
  const left = before < 0 ? undefined : data.rows.pre_filters[at]?.[before];
  const total = data.rows.total[at];
  const fact = (/** @type {string} */ name, /** @type {Node | string} */ value) => [
    h("dt", null, name),
    h("dd", null, value),
  ];
  const facts = [];
  if (left !== undefined) {
    const { code, reasons } = data.statuses[left];
    facts.push(...fact("PreFilter", left ? coded(code) : "✓ passes"));
    for (const reason of left ? reasons : []) facts.push(...fact("Reason", reason));
  }
  if (filter >= 0) {
    const status = verdict === null || verdict === undefined ? null : data.statuses[verdict];
    facts.push(
      ...fact(
        "Filter",
        !status ? "· not run: an earlier filter rejected the node" : verdict === 0 ? "✓ passes" : coded(status.code),
      ),
    );
    for (const reason of verdict ? (status?.reasons ?? []) : []) facts.push(...fact("Reason", reason));
  }
  if (scorer >= 0 && total !== null) {
    const weighted = data.rows.weighted[at]?.[scorer] ?? 0;
    facts.push(
      ...fact("Raw score", count(data.rows.raw[at]?.[scorer])),
      ...(data.scorers[scorer].weight === null
        ? []
        : fact("Normalised", count(data.rows.normalized[at]?.[scorer]))),
      ...fact("Weight", weightText(data.scorers[scorer].weight)),
      ...fact("Product", count(weighted)),
      ...fact(
        "Share of total",
        `${count(weighted)} of ${count(total)}${total ? ` (${Math.round((weighted / total) * 100)} %)` : ""}`,
      ),
    );
    const best = data.rows.node.indexOf(data.winner);
    if (best >= 0 && best !== at)
      facts.push(
        ...fact(
          "Difference",
          h(
            "span",
            null,
            `${signed(weighted - (data.rows.weighted[best]?.[scorer] ?? 0))} to `,
            h("a", { class: "name", href: nodeAddress(data.winner) }, data.winner),
          ),
        ),
      );
  }
  return h(
    "aside",
    { class: "panel cell-panel", "data-test": "cell-panel", "aria-label": `${plugin} about ${node}` },
    h(
      "div",
      { class: "row" },
      h("h2", { class: "grow" }, breakable(plugin)),
      h("button", { type: "button", class: "button quiet icon", "aria-label": "Close", onclick: close }, "✕"),
    ),
    h("p", null, h("a", { class: "name", href: nodeAddress(node) }, node)),
    h("dl", { class: "facts" }, facts),
    h(
      "div",
      { class: "row" },
      h("a", { class: "button", href: nodeAddress(node) }, "Open node"),
      h("a", { class: "button quiet", href: to("config", "effective", { plugin }) }, "Show config"),
    ),
  );
}
