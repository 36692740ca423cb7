// How many more copies of a workload fit, and what runs out first, by zone and node pool.

import { draw, h } from "./dom.js";
import { count } from "./format.js";
import { get } from "./service.js";
import { failure, loading } from "./loading_states.js";
import { outdatedNote } from "./outdated.js";
import { nodeLink, podLink, podOf, tableHead } from "./parts.js";
import { assumptionList } from "./unblocking.js";

const MAX_GROUPS = 40;
const MAX_VICTIMS = 40;
/** The columns of the table of groups: title and class. @type {[string, string][]} */
const COLUMNS = [
  ["Zone", ""],
  ["Pool", ""],
  ["Nodes", "right minor"],
  ["Had room", "right minor"],
  ["Copies", "right"],
  ["Have room", "right minor"],
  ["Limited by", ""],
];

/**
 * Load the capacity of a workload once, and show it in an element.
 * @param {HTMLElement} root @param {{ target: string, preempt: boolean }} asked @param {AbortSignal} signal
 * @param {(answer: Api.Capacity) => void} [answered] called with the answer
 */
export function capacityPart(root, { target, preempt }, signal, answered) {
  const key = `capacity ${target} ${preempt}`;
  if (root.dataset.filled === key) return;
  root.dataset.filled = key;
  draw(root, loading(5));
  const load = async () => {
    try {
      const answer = await get("/capacity", { workload: target, preempt }, signal);
      if (signal.aborted || root.dataset.filled !== key) return;
      answered?.(answer);
      draw(root, outdatedNote(root, () => void load(), signal), ...parts(answer, !answered));
    } catch (problem) {
      if (!signal.aborted) draw(root, failure(problem, () => void load()));
    }
  };
  void load();
}

/** @param {Api.Capacity} answer @param {boolean} headed whether to show the sentence here */
function parts(answer, headed) {
  return [
    headed ? h("p", { class: "strong", "data-test": "capacity-sentence" }, answer.summary) : null,
    answer.workloads.length > 1 ? mixPanel(answer.workloads) : null,
    answer.message
      ? h("p", { class: "wrap" }, h("span", { class: "faint" }, "What stops the next copy: "), answer.message)
      : null,
    groupPanel(answer.groups),
    victimPanel(answer.victims),
    assumptionList(answer.assumptions),
  ];
}

/** @param {Api.WorkloadCapacity[]} workloads */
function mixPanel(workloads) {
  return h(
    "section",
    { class: "panel" },
    h("h2", null, "Mix"),
    table(
      [["Workload", ""], ["Per mix", "right"], ["Copies", "right"]],
      workloads.map((each) => [each.workload, h("span", null, count(each.share)), h("span", null, count(each.copies))]),
    ),
  );
}

/** @param {Api.GroupCapacity[]} groups */
function groupPanel(groups) {
  const more = groups.length - MAX_GROUPS;
  return h(
    "section",
    { class: "panel", "data-test": "capacity-groups" },
    h("h2", null, "By zone and pool"),
    table(
      COLUMNS,
      groups.slice(0, MAX_GROUPS).map((group) => [
        group.zone || "–",
        group.pool || "–",
        count(group.nodes),
        count(group.nodes_with_room),
        h("span", { class: group.copies ? "strong" : "faint" }, count(group.copies)),
        count(group.nodes_left),
        h("span", { class: "wrap" }, reasons(group.runs_out)),
      ]),
    ),
    more > 0 ? h("p", { class: "faint small" }, `and ${count(more)} more groups`) : null,
  );
}

/** @param {Record<string, number>} runsOut */
function reasons(runsOut) {
  const words = Object.entries(runsOut).map(([reason, nodes]) => `${reason} (${count(nodes)})`);
  return words.slice(0, 3).join(", ") || "–";
}

/** @param {Api.VictimRow[]} victims */
function victimPanel(victims) {
  if (!victims.length) return null;
  const more = victims.length - MAX_VICTIMS;
  return h(
    "section",
    { class: "panel", "data-test": "victims" },
    h("h2", null, "Evicted pods"),
    table(
      [["Pod", ""], ["Priority", "right minor"], ["From", "minor"], ["Goes to", ""]],
      victims.slice(0, MAX_VICTIMS).map((each) => [
        podLink(podOf(each.pod)),
        count(each.priority),
        nodeLink(each.node, 30),
        each.new_node ? nodeLink(each.new_node, 30) : "(pending)",
      ]),
    ),
    more > 0 ? h("p", { class: "faint small" }, `and ${count(more)} more`) : null,
  );
}

/** @param {[string, string][]} heads titles and classes of the columns @param {(Node | string)[][]} rows */
export function table(heads, rows) {
  return h(
    "table",
    { class: "list" },
    tableHead(heads),
    h(
      "tbody",
      null,
      rows.map((row, at) =>
        h(
          "tr",
          { key: at },
          row.map((cell, column) => {
            const look = heads[column][1];
            return h("td", { class: look.includes("right") ? `${look} figure` : `${look} wrap` }, cell);
          }),
        ),
      ),
    ),
  );
}
