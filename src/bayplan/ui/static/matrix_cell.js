// One cell of the matrix in full: code, reasons, raw and normalised score, weight, product, and its effect on the
// total.

import { weightText } from "./annotated.js";
import { h } from "./dom.js";
import { breakable, count, signed } from "./format.js";
import { change, nodeAddress, to } from "./address.js";

/** @typedef {import("./matrix.js").MatrixData} MatrixData */

/** A failed status, by its code. @param {string} code */
function coded(code) {
  return h("span", null, "✕ ", breakable(code));
}

/**
 * The result of one plugin for one node, in full.
 * @param {MatrixData} data @param {string} cell node.plugin @param {() => void} close
 */
export function cellPanel(data, cell, close) {
  const split = cell.lastIndexOf(".");
  const node = cell.slice(0, split);
  const plugin = cell.slice(split + 1);
  const at = data.rows.node.indexOf(node);
  if (at < 0) return null;
  return h(
    "aside",
    { class: "panel cell-panel", "data-test": "cell-panel", "aria-label": `${plugin} on ${node}` },
    h(
      "div",
      { class: "row" },
      h("h2", { class: "grow" }, breakable(plugin)),
      h("button", { type: "button", class: "button quiet icon", "aria-label": "Close", onclick: close }, "✕"),
    ),
    h("p", null, h("a", { class: "name", href: nodeAddress(node) }, node)),
    h("dl", { class: "facts" }, preFilterFacts(data, plugin, at), filterFacts(data, plugin, at), scoreFacts(data, plugin, at)),
    h(
      "div",
      { class: "row" },
      h("a", { class: "button", href: nodeAddress(node) }, "Open node"),
      h("a", { class: "button quiet", href: to("config", "effective", { plugin }) }, "Show config"),
      data.rows.total[at] === null
        ? h(
            "button",
            {
              type: "button",
              class: "button quiet",
              "data-test": "node-rules-of",
              onclick: () => change({ tab: "unblock", node, cell: "" }, { push: true }),
            },
            "Show fix",
          )
        : null,
    ),
  );
}

/** @param {string} name @param {Node | string} value */
function fact(name, value) {
  return [h("dt", null, name), h("dd", null, value)];
}

/** @param {MatrixData} data @param {string} plugin @param {number} at */
function preFilterFacts(data, plugin, at) {
  const before = data.pre_filters.indexOf(plugin);
  const left = before < 0 ? undefined : data.rows.pre_filters[at]?.[before];
  if (left === undefined) return [];
  const { code, reasons } = data.statuses[left];
  return [
    ...fact("PreFilter", left ? coded(code) : "✓ passes"),
    ...(left ? reasons : []).flatMap((reason) => fact("Reason", reason)),
  ];
}

/** @param {MatrixData} data @param {string} plugin @param {number} at */
function filterFacts(data, plugin, at) {
  const filter = data.filters.indexOf(plugin);
  if (filter < 0) return [];
  const verdict = data.rows.filters[at]?.[filter];
  const status = verdict === null || verdict === undefined ? null : data.statuses[verdict];
  return [
    ...fact(
      "Filter",
      !status ? "· not run: an earlier filter rejected the node" : verdict === 0 ? "✓ passes" : coded(status.code),
    ),
    ...(verdict ? (status?.reasons ?? []) : []).flatMap((reason) => fact("Reason", reason)),
  ];
}

/** @param {MatrixData} data @param {string} plugin @param {number} at */
function scoreFacts(data, plugin, at) {
  const scorer = data.scorers.findIndex((each) => each.name === plugin);
  const total = data.rows.total[at];
  if (scorer < 0 || total === null) return [];
  const { weight } = data.scorers[scorer];
  const weighted = data.rows.weighted[at]?.[scorer] ?? 0;
  const share = total ? ` (${Math.round((weighted / total) * 100)} %)` : "";
  const best = data.rows.node.indexOf(data.winner);
  const difference = () =>
    h(
      "span",
      null,
      `${signed(weighted - (data.rows.weighted[best]?.[scorer] ?? 0))} to `,
      h("a", { class: "name", href: nodeAddress(data.winner) }, data.winner),
    );
  return [
    ...fact("Raw score", count(data.rows.raw[at]?.[scorer])),
    ...(weight === null ? [] : fact("Normalised", count(data.rows.normalized[at]?.[scorer]))),
    ...fact("Weight", weightText(weight)),
    ...fact("Product", count(weighted)),
    ...fact("Share of total", `${count(weighted)} of ${count(total)}${share}`),
    ...(best >= 0 && best !== at ? fact("Difference", difference()) : []),
  ];
}
