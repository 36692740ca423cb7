// One node: where does it have room, which pods are on it, and which did it reject?

import { h } from "../dom.js";
import { age, amount, breakable, count, counted, cut, percent, resource, time } from "../format.js";
import { go, podAddress, to } from "../address.js";
import { apiAddress, get } from "../service.js";
import { now, onReload, subscribe } from "../stream.js";
import { loadPanel, isMissing } from "../loading_states.js";
import { roomy, shortened } from "../names.js";
import { badge, copyMenu, meter, podLink, podOf, tableHead } from "../parts.js";
import { bind } from "../keyboard.js";
import { cordon, drain, removeNode } from "../node_actions.js";
import { title } from "../shell.js";
import { targetOf } from "../unblocking.js";
import { nodeMenu } from "../what_if_menu.js";

/** The maximum number of workloads in the menu "capacity". */
const MAX_TARGETS = 12;
/** The columns of the table of resources: title and class. @type {[string, string][]} */
const RESOURCE_COLUMNS = [
  ["Resource", ""],
  ["Requested", "bar-cell"],
  ["", ""],
  ["Amount", "right minor"],
  ["Free", "right"],
  ["Allocatable", "right"],
];

/** The columns of the table of pods: title and class. @type {[string, string][]} */
const POD_COLUMNS = [
  ["Pod", ""],
  ["CPU", "right"],
  ["Memory", "right"],
  ["Priority", "right"],
  ["Age", "right"],
];

/** The columns of the table of events: title and class. @type {[string, string][]} */
const EVENT_COLUMNS = [
  ["Last seen", "minor"],
  ["Type", ""],
  ["Reason", ""],
  ["Message", ""],
  ["Count", "right minor"],
];

/** @param {import("../main.js").Page} page */
export function open({ place, root, signal }) {
  const { name } = place.names;
  title(name);
  const body = h("div", { class: "stack" });
  root.append(body);
  /** @type {Api.NodePage | null} */
  let node = null;
  /** @type {() => Promise<void>} */
  const load = loadPanel(
    body,
    () => get("/nodes/{name}", { name }, signal),
    (data) => {
      node = data;
      return parts(data, load);
    },
    {
      signal,
      lines: 10,
      failed: (problem) => [
        h("p", { class: "crumbs" }, h("a", { href: to("nodes") }, "Nodes"), ` / ${cut(name, 80)}`),
        h(
          "h1",
          { class: "verdict", "data-test": "verdict" },
          isMissing(problem) ? `There is no node ${cut(name, 60)}` : `${cut(name, 60)} can't be shown`,
        ),
      ],
    },
  );
  void load();
  let waits = 0;
  subscribe(
    "pods",
    () => {
      // At most once in two seconds: this page is for reading, not for watching.
      if (waits) return;
      waits = window.setTimeout(() => {
        waits = 0;
        void load();
      }, 2000);
    },
    signal,
  );
  onReload(load, signal);
  signal.addEventListener("abort", () => clearTimeout(waits));
  bind({ e: () => go(editAddress(name)), d: () => node && void removeNode(name, node.pods.length).then(load) }, signal);
}

/** @param {string} name */
function editAddress(name) {
  return to("objects", "core", "v1", "nodes", "-", name, { tab: "edit" });
}

/** @param {Api.NodePage} node @param {() => void} again */
function parts(node, again) {
  const first = (/** @type {string} */ name) => ["cpu", "memory"].indexOf(name) + 1 || 9;
  const resources = Object.keys(node.allocatable)
    .filter((name) => node.allocatable[name])
    .sort((a, b) => first(a) - first(b));
  const { pods } = node;
  return [
    h("p", { class: "crumbs" }, h("a", { href: to("nodes") }, "Nodes"), " / ", h("span", { class: "name" }, node.name)),
    h(
      "div",
      { class: "head" },
      h("h1", { class: "verdict", "data-test": "verdict" }, node.summary),
      h(
        "button",
        {
          type: "button",
          class: "button",
          "data-test": "cordon",
          onclick: () => void cordon(node.name, !node.cordoned).then(again),
        },
        node.cordoned ? "Uncordon" : "Cordon",
      ),
      h(
        "button",
        {
          type: "button",
          class: "button",
          "data-test": "drain",
          onclick: () => void drain(node.name, pods.length).then(again),
        },
        "Drain",
      ),
      nodeMenu(node.name),
      capacityMenu(pods),
      h("a", { class: "button", href: editAddress(node.name) }, "Edit"),
      h(
        "button",
        {
          type: "button",
          class: "button danger",
          "data-test": "delete",
          onclick: () => void removeNode(node.name, pods.length).then((gone) => gone && go(to("nodes"))),
        },
        "Delete",
      ),
      copyMenu({ json: apiAddress("/nodes/{name}", { name: node.name }), kubectl: `kubectl describe node ${node.name}` }),
    ),
    factsLine(node),
    h(
      "div",
      { class: "columns" },
      h(
        "div",
        { class: "stack" },
        roomPanel(node, resources),
        rejectedPanel(node),
        labelPanel(node),
        eventPanel(node.events),
      ),
      h("div", { class: "stack" }, podPanel(node, pods)),
    ),
  ];
}

/** @param {Api.NodePage} node */
function factsLine(node) {
  return h(
    "p",
    { class: "facts-line" },
    !node.ready ? badge("error", "not ready") : badge("ready"),
    node.cordoned ? h("span", { class: "badge plain" }, "▨ cordoned") : null,
    node.zone ? h("span", null, "zone ", h("a", { href: to("nodes", { zone: node.zone }) }, node.zone)) : null,
    node.pool ? h("span", null, "pool ", h("a", { href: to("nodes", { pool: node.pool }) }, node.pool)) : null,
    h("span", { class: "faint" }, `created ${age(node.created_at, now())} ago`),
  );
}

/** @param {Api.NodePage} node @param {string[]} resources */
function roomPanel(node, resources) {
  return h(
    "section",
    { class: "panel" },
    h("h2", null, "Resources"),
    h(
      "table",
      { class: "list" },
      tableHead(RESOURCE_COLUMNS),
      h(
        "tbody",
        null,
        resources.map((name) => {
          const asked = node.requested[name] ?? 0;
          const share = asked / node.allocatable[name];
          return h(
            "tr",
            { key: name },
            h("th", { scope: "row" }, resource(name)),
            h("td", { class: "bar-cell" }, meter(share)),
            h("td", { class: "right figure" }, percent(share)),
            h("td", { class: "right figure minor" }, amount(name, asked)),
            h("td", { class: "right figure" }, amount(name, node.free[name])),
            h("td", { class: "right figure" }, amount(name, node.allocatable[name])),
          );
        }),
      ),
    ),
  );
}

/** @param {Api.NodePage} node */
function rejectedPanel(node) {
  const { rejected } = node;
  return h(
    "section",
    { class: "panel" },
    h("h2", null, "Pods that don't fit here"),
    h("p", { class: "faint small" }, "Pending pods, grouped by why they were rejected on this node in their last attempt."),
    rejected.length
      ? h(
          "table",
          { class: "list" },
          h(
            "tbody",
            null,
            rejected.map((row) =>
              h(
                "tr",
                { key: row.text },
                h("td", null, h("a", { href: to("pods", { reason: row.text.split(", ")[0] }) }, row.text)),
                h("td", { class: "right figure" }, counted(row.pods, "pod")),
                h("td", { class: "right" }, unblockLink(row.example, node.name)),
              ),
            ),
          ),
        )
      : node.rejected_missing
        ? null
        : h("p", { class: "calm" }, "No pending pods."),
    node.rejected_missing ? h("p", { class: "faint small" }, `Incomplete: ${node.rejected_missing}`) : null,
  );
}

/** A link to the changes that would let a pending pod run on this node. @param {string} pod @param {string} node */
function unblockLink(pod, node) {
  const address = podAddress(podOf(pod), { tab: "unblock", node });
  return h("a", { href: address, title: pod, "data-test": "unblock" }, "Unblock");
}

/** A menu of the workloads with the most pods here; each entry opens the capacity page. @param {Api.PodRow[]} pods */
function capacityMenu(pods) {
  /** @type {Map<string, number>} */
  const counts = new Map();
  for (const pod of pods) {
    const target = targetOf(pod.workload, pod.namespace) || `pod/${pod.namespace}/${pod.name}`;
    counts.set(target, (counts.get(target) ?? 0) + 1);
  }
  if (!counts.size) return null;
  const targets = [...counts.keys()].filter((target) => !target.startsWith("daemonset/"));
  targets.sort((a, b) => (counts.get(b) ?? 0) - (counts.get(a) ?? 0));
  return h(
    "details",
    { class: "menu", "data-test": "capacity-menu" },
    h("summary", { class: "button" }, "Capacity"),
    h(
      "div",
      { class: "menu-list" },
      targets
        .slice(0, MAX_TARGETS)
        .map((target) => h("a", { key: target, href: to("capacity", { of: target }) }, `of ${target}`)),
    ),
  );
}

/** @param {Api.NodePage} node */
function labelPanel(node) {
  const labels = Object.entries(node.labels);
  return h(
    "section",
    { class: "panel" },
    h("h2", null, "Taints and labels"),
    node.taints.length
      ? h(
          "p",
          null,
          node.taints.map((taint) => h("span", { class: "tag wait-tag", key: taint }, taint)),
        )
      : h("p", { class: "faint" }, "No taints."),
    h(
      "div",
      { class: "tags" },
      labels.map(([key, value]) =>
        h(
          "a",
          { class: "tag", key, href: to("nodes", { label: `${key}=${value}` }), title: `${key}=${value}` },
          [`${cut(key, 40)}=`, ...shortened(value, 44)],
        ),
      ),
    ),
  );
}

/** @param {Api.EventRow[]} events */
export function eventPanel(events) {
  return h("section", { class: "panel" }, h("h2", null, "Events"), eventTable(events));
}

/** @param {Api.EventRow[]} events */
export function eventTable(events) {
  if (!events.length) return h("p", { class: "calm" }, "No events.");
  return h(
    "table",
    { class: "list events panel", "data-test": "events" },
    tableHead(EVENT_COLUMNS),
    h(
      "tbody",
      null,
      events.map((event, at) =>
        h(
          "tr",
          { key: `${event.reason}${at}` },
          h("td", { class: "figure faint minor" }, time(event.last_at)),
          h(
            "td",
            null,
            event.type === "Warning"
              ? h("span", { class: "badge wait" }, "… Warning")
              : h("span", { class: "faint" }, event.type),
          ),
          h("td", null, breakable(event.reason)),
          h("td", { class: "wrap" }, event.note),
          h("td", { class: "right figure minor" }, count(event.count)),
        ),
      ),
    ),
  );
}

/** @param {Api.NodePage} node @param {Api.PodRow[]} pods */
function podPanel(node, pods) {
  return h(
    "section",
    { class: "panel" },
    h(
      "div",
      { class: "row" },
      h("h2", { class: "grow" }, `Pods (${count(pods.length)})`),
      h("a", { href: to("pods", { node: node.name }) }, "Show list"),
    ),
    pods.length
      ? h(
          "table",
          { class: "list", "data-test": "node-pods" },
          tableHead(POD_COLUMNS),
          h(
            "tbody",
            null,
            pods
              .slice(0, 100)
              .map((pod) =>
                h(
                  "tr",
                  { key: `${pod.namespace}/${pod.name}`, class: "linked", onclick: () => go(podAddress(pod)) },
                  h("td", null, podLink(pod, { letters: Math.min(44, roomy()) })),
                  h("td", { class: "right figure" }, amount("cpu", pod.cpu)),
                  h("td", { class: "right figure" }, amount("memory", pod.memory)),
                  h("td", { class: "right figure" }, count(pod.priority)),
                  h("td", { class: "right figure" }, age(pod.created_at, now())),
                ),
              ),
          ),
        )
      : h("p", { class: "calm" }, "No pods."),
    pods.length > 100
      ? h(
          "p",
          { class: "faint" },
          `The first 100 of ${count(pods.length)}. `,
          h("a", { href: to("pods", { node: node.name }) }, "All of them"),
        )
      : null,
  );
}
