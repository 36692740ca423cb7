// Sources: which clusters does this server follow, and how far behind are they?

import { draw, h } from "../dom.js";
import { count, span } from "../format.js";
import { get } from "../service.js";
import { onReload } from "../stream.js";
import { badge, copyMenu, tile } from "../parts.js";
import { empty, failure, loading } from "../loading_states.js";
import { clusterPanel } from "../cluster_data.js";
import { title } from "../shell.js";

const AGAIN = 1000;

/** @param {import("../main.js").Page} page */
export function open({ root: sheet, signal }) {
  title("Sources");
  const root = h("div", { class: "stack" });
  sheet.append(root, clusterPanel(signal));
  draw(root, h("h1", { class: "verdict" }, "Sources"), loading(4));
  const load = async () => {
    try {
      const data = await get("/sources", {}, signal);
      if (!signal.aborted) show(root, data.items);
    } catch (problem) {
      if (!signal.aborted) draw(root, h("h1", { class: "verdict" }, "Sources"), failure(problem, load));
    }
  };
  void load();
  onReload(load, signal);
  const timer = setInterval(() => {
    if (!document.hidden) void load();
  }, AGAIN);
  signal.addEventListener("abort", () => clearInterval(timer));
}

/** @param {HTMLElement} root @param {Api.SourceRow[]} items */
function show(root, items) {
  const words = items.length ? items.map((item) => item.summary).join("; ") : "No sources";
  draw(
    root,
    h(
      "div",
      { class: "head" },
      h("h1", { class: "verdict", "data-test": "verdict" }, words),
      copyMenu({ json: "/bayplan/v1/sources" }),
    ),
    items.length ? items.map(sourcePanel) : beginnings(),
  );
}

/** @param {Api.SourceRow} item */
function sourcePanel(item) {
  const policies = Object.entries(item.policies);
  return h(
    "section",
    { class: "panel", key: item.name },
    h("div", { class: "row" }, h("h2", { class: "grow name" }, item.name), badge(item.state)),
    h(
      "dl",
      { class: "facts" },
      fact("Kind", item.kind),
      item.address === item.name ? [] : fact("Address", item.address),
      fact("Position", item.position),
      fact("Lag", item.kind === "sync" && item.state === "following" ? span(item.lag_seconds) : null),
      fact("Message", item.message),
    ),
    policies.length
      ? h(
          "div",
          null,
          h("h3", null, "Policies"),
          h(
            "dl",
            { class: "facts" },
            policies.flatMap(([key, value]) => fact(key, value)),
          ),
        )
      : null,
    item.left_out.length
      ? h(
          "div",
          null,
          h("h3", null, "Skipped kinds"),
          h(
            "ul",
            { class: "difference" },
            item.left_out.map((line) => h("li", { key: line }, line)),
          ),
        )
      : null,
    tally(item.counts),
  );
}

/** Without a source: how to add one. */
function beginnings() {
  return h(
    "div",
    { class: "stack" },
    empty("Import a cluster or a dump, sync with a cluster, or replay a recording."),
    h(
      "section",
      { class: "panel" },
      h("h2", null, "From a shell"),
      h(
        "dl",
        { class: "facts" },
        fact("Import", h("code", null, "bayplan import --from KUBECONFIG")),
        fact("Sync", h("code", null, "bayplan sync --from KUBECONFIG")),
        fact("Record", h("code", null, "bayplan record FILE")),
        fact("Replay", h("code", null, "bayplan replay FILE")),
      ),
    ),
  );
}

/** @type {[keyof Api.SourceCounts, string][]} */
const COUNTS = [
  ["created", "Created"],
  ["updated", "Updated"],
  ["deleted", "Deleted"],
  ["waiting", "Pending"],
];

/** The counts of the session so far. @param {Api.SourceCounts} counts */
function tally(counts) {
  return h(
    "div",
    { class: "tiles fitting" },
    COUNTS.map(([key, text]) => tile(text, count(counts[key]))),
  );
}

/** @param {string} name @param {unknown} value */
function fact(name, value) {
  return value === null || value === undefined || value === ""
    ? []
    : [h("dt", null, name), h("dd", null, value instanceof Node ? value : String(value))];
}
