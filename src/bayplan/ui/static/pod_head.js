// The head of a pod's page: first the verdict in one sentence, then the facts, then why nodes were rejected.

import { annotationNote } from "./annotated.js";
import { h } from "./dom.js";
import { age, amount, count, eventWords, resource, time } from "./format.js";
import { shortened } from "./names.js";
import { change, to } from "./address.js";
import { now } from "./stream.js";
import { badge, copyMenu, nodeLink } from "./parts.js";

/** A verdict longer than this gets a smaller font; the messages of kube-scheduler can be long. */
const LONG = 130;
const MAX_EVENTS = 3;

/**
 * The header of a pod's page: breadcrumb, verdict, facts, and rejections by plugin.
 * @param {Api.PodPage} data @param {{ namespace: string, name: string, address: string, retry: () => void, remove: () => void }} of
 */
export function podHead(data, of) {
  const { pod } = data;
  const waits = data.status === "waiting";
  return [
    h(
      "p",
      { class: "crumbs" },
      h("a", { href: to("pods") }, "Pods"),
      " / ",
      h("a", { href: to("pods", { namespace: of.namespace }) }, of.namespace),
      h("span", { class: "crumb-end" }, " / ", h("span", { class: "name", title: of.name }, shortened(of.name, 80))),
    ),
    data.deleted
      ? h(
          "div",
          { class: "note wait", "data-test": "gone" },
          "This pod is deleted. Its decisions are still recorded.",
        )
      : null,
    h(
      "div",
      { class: "head" },
      h("h1", { class: `verdict${data.summary.length > LONG ? " long" : ""}`, "data-test": "verdict" }, data.summary),
      waits
        ? h("a", { class: "button", href: to("nodes", { fit: `${of.namespace}/${of.name}` }) }, "Show on nodes")
        : null,
      waits && data.queue
        ? h("button", { type: "button", class: "button", onclick: of.retry }, "Retry now")
        : null,
      data.deleted
        ? null
        : h("button", { type: "button", class: "button danger", "data-test": "delete", onclick: of.remove }, "Delete"),
      copyMenu({
        json: of.address,
        kubectl: `kubectl describe pod -n ${of.namespace} ${of.name}`,
      }),
    ),
    h(
      "p",
      { class: "facts-line" },
      badge(data.status),
      pod.node ? h("span", null, "on ", nodeLink(pod.node)) : null,
      h("span", null, `requests ${requestWords(pod)}`),
      h("span", null, `priority ${count(pod.priority)}${pod.priority_class ? ` (${pod.priority_class})` : ""}`),
      pod.workload ? h("span", null, "of ", workloadLink(pod.workload, of.namespace)) : null,
      pod.scheduler_name && pod.scheduler_name !== "default-scheduler"
        ? h("span", null, `by ${pod.scheduler_name}`)
        : null,
      pod.created_at ? h("span", { class: "faint" }, `created ${age(pod.created_at, now())} ago`) : null,
      queueWords(data.queue),
    ),
    annotationNote(data),
    rejectionLine(data.rejections),
    data.message
      ? h(
          "p",
          { class: "faint small clip-line", title: data.message, "data-test": "message" },
          `Event message: ${data.message}`,
        )
      : null,
  ];
}

/** CPU and memory, and other resources that the pod requests. @param {Api.PodFacts} pod */
function requestWords(pod) {
  const amounts = { cpu: pod.cpu, memory: pod.memory, ...pod.requests };
  return Object.entries(amounts)
    .filter(([name]) => name !== "pods")
    .map(([name, value]) => `${amount(name, value)} ${resource(name)}`)
    .join(", ");
}

/** @param {string} workload @param {string} namespace */
function workloadLink(workload, namespace) {
  const [, kind, owner] = /^(\w+)[ /](?:.*\/)?([^/]+)$/.exec(workload) ?? [];
  return kind
    ? h(
        "a",
        { class: "name", href: to("workloads", kind.toLowerCase(), namespace, owner) },
        shortened(`${kind}/${owner}`, 48),
      )
    : h("span", { class: "name" }, shortened(workload, 48));
}

/** @param {Api.QueueRow | null} queue */
function queueWords(queue) {
  if (!queue) return null;
  return h(
    "span",
    null,
    "in the ",
    h("a", { href: to("queue", { tier: queue.tier }) }, queue.tier),
    " queue",
    queue.retry_at ? `, next attempt at ${time(queue.retry_at)}` : "",
    queue.wakes_on.length
      ? h(
          "span",
          { class: "faint", title: queue.wakes_on.join(", ") },
          `; retried after: ${queue.wakes_on.slice(0, MAX_EVENTS).map(eventWords).join(", ")}${queue.wakes_on.length > MAX_EVENTS ? ` and ${queue.wakes_on.length - MAX_EVENTS} more` : ""}`,
        )
      : null,
  );
}

/** @param {Api.NodesRejected[]} rejections */
function rejectionLine(rejections) {
  if (!rejections.length) return null;
  const rejected = rejections.reduce((sum, each) => sum + each.nodes, 0);
  return h(
    "p",
    { class: "rejections", "data-test": "rejections" },
    h("span", null, `${count(rejected)} rejected: `),
    rejections.slice(0, 6).map((each) =>
      h(
        "button",
        {
          type: "button",
          class: "reason",
          key: `${each.plugin} ${each.text}`,
          title: each.plugin,
          onclick: () => change({ tab: "", only: "failed", sort: "", reason: each.text }),
        },
        h("span", { class: "figure" }, count(each.nodes)),
        ` ${each.text}`,
      ),
    ),
  );
}
