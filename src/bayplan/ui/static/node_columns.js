// The columns of the table of nodes, and the legend of the map.

import { h } from "./dom.js";
import { age, amount, count, percent } from "./format.js";
import { shortened } from "./names.js";
import { nodeAddress } from "./address.js";
import { now } from "./stream.js";
import { meter } from "./parts.js";

/** A bar with the requested share of a resource in percent. @param {string} key @returns {(row: Api.NodeRow) => HTMLElement} */
function bar(key) {
  return (row) => {
    const share = row.shares[key] ?? null;
    return h(
      "span",
      { class: "bar-figure" },
      meter(share, `${amount(key, row.requested[key])} of ${amount(key, row.allocatable[key])}`),
      h("span", { class: "figure" }, percent(share)),
    );
  };
}

/** @param {Api.NodeRow} row */
function state(row) {
  if (!row.ready) return h("span", { class: "badge bad" }, "✕ not ready");
  return row.cordoned
    ? h("span", { class: "badge plain" }, "▨ cordoned")
    : h("span", { class: "badge ok" }, "✓ ready");
}

/** The columns of the table of nodes. @type {import("./grid.js").Column<Api.NodeRow>[]} */
export const NODE_COLUMNS = [
  {
    key: "name",
    title: "Name",
    width: "minmax(150px, 1.8fr)",
    sort: "name",
    render: (row, _, letters) =>
      h("a", { class: "name", href: nodeAddress(row.name), title: row.name }, shortened(row.name, letters)),
  },
  {
    key: "state",
    title: "State",
    width: "110px",
    render: state,
  },
  {
    key: "zone",
    title: "Zone",
    width: "minmax(110px, 1fr)",
    sort: "zone",
    minor: true,
    render: (row, _, letters) => h("span", { class: "name", title: row.zone || null }, shortened(row.zone, letters)),
  },
  {
    key: "pool",
    title: "Pool",
    width: "minmax(80px, 1fr)",
    sort: "pool",
    minor: true,
    render: (row, _, letters) => h("span", { class: "name", title: row.pool || null }, shortened(row.pool, letters)),
  },
  { key: "cpu", title: "CPU requested", width: "136px", sort: "cpu", render: bar("cpu") },
  { key: "memory", title: "Memory requested", width: "136px", sort: "memory", render: bar("memory") },
  { key: "free", title: "Free CPU", width: "80px", right: true, render: (row) => amount("cpu", row.free.cpu) },
  {
    key: "freemem",
    title: "Free memory",
    width: "98px",
    right: true,
    render: (row) => amount("memory", row.free.memory),
  },
  {
    key: "pods",
    title: "Pods",
    width: "88px",
    right: true,
    sort: "pods",
    render: (row) => `${count(row.pods)} / ${count(row.most_pods)}`,
  },
  {
    key: "taints",
    title: "Taints",
    width: "minmax(90px, 1.2fr)",
    render: (row) =>
      h("span", { class: "clip name", title: row.taints.join("\n") || null }, row.taints.join(", ")),
  },
  {
    key: "age",
    title: "Age",
    width: "64px",
    right: true,
    sort: "created_at",
    render: (row) => age(row.created_at, now()),
  },
];

/** @param {boolean} fit */
export function mapLegend(fit) {
  const key = (/** @type {string} */ look, /** @type {string} */ text) =>
    h("span", { class: "key" }, h("span", { class: `key-cell ${look}`, "aria-hidden": "true" }), text);
  if (fit)
    return h(
      "div",
      { class: "legend" },
      key("fit-high", "fits, best"),
      key("fit-low", "fits"),
      key("unfit", "does not fit"),
    );
  return h(
    "div",
    { class: "legend" },
    key("heat0", "0–20 %"),
    key("heat1", "20–40"),
    key("heat2", "40–60"),
    key("heat3", "60–80"),
    key("heat4", "80–98"),
    key("heat-full", "full (98 %+)"),
    key("hatched", "cordoned"),
    key("crossed", "not ready"),
  );
}
