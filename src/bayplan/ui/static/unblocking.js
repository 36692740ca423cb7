// What would get pending pods placed: suggestions that the scheduler has tried, least risky first. Used by a tab of
// pods and by a page.

import { draw, h } from "./dom.js";
import { count, counted, sentence } from "./format.js";
import { change, to } from "./address.js";
import { get, call } from "./service.js";
import { empty, errorFacts, failure, loading } from "./loading_states.js";
import { outdatedNote } from "./outdated.js";
import { copy, nodeLink, perform, podLink, podOf } from "./parts.js";

/** The maximum number of characters of a name of a fork. */
const MAX_FORK_NAME = 72;
const MAX_PODS_SHOWN = 6;
const MAX_TARGETS = 5;
const UNPROCESSABLE = 422;

/**
 * Load suggestions once, and show them in an element.
 * @param {HTMLElement} root @param {string} target a workload, or pod/NAMESPACE/NAME @param {AbortSignal} signal
 * @param {(answer: Api.Unblocking) => void} [answered] called with the answer
 */
export function unblockPart(root, target, signal, answered) {
  const asked = `unblock ${target}`;
  if (root.dataset.filled === asked) return;
  root.dataset.filled = asked;
  draw(root, loading(5));
  const load = async () => {
    try {
      const answer = await get("/unblock", { workload: target }, signal);
      if (signal.aborted || root.dataset.filled !== asked) return;
      answered?.(answer);
      draw(root, outdatedNote(root, () => void load(), signal), ...suggestionList(answer, !answered));
    } catch (problem) {
      if (signal.aborted) return;
      const facts = errorFacts(problem);
      const placed = facts.status === UNPROCESSABLE && facts.what === "unblock" && facts.got;
      if (placed) draw(root, h("p", { class: "calm", "data-test": "nothing-to-unblock" }, `Nothing to unblock: ${facts.got}.`));
      else draw(root, failure(problem, () => void load()));
    }
  };
  void load();
}

/** The workload of a pod as a target: `deployment/shop/web`; "" without one. @param {Api.PodRow} pod */
export function workloadOf(pod) {
  return pod.workload.replace(" ", "/").toLowerCase();
}

/**
 * Fill an empty page with targets of the cluster to choose from: pending pods, or workloads.
 * @param {HTMLElement} root @param {string} why @param {{ status?: string }} query @param {(pod: Api.PodRow) => string} targetOf
 * @param {AbortSignal} signal
 */
export function offerTargets(root, why, query, targetOf, signal) {
  draw(root, empty(why));
  const load = async () => {
    const { items } = await get("/pods", { ...query, limit: 200 }, signal);
    if (signal.aborted || root.dataset.filled !== undefined) return;
    const targets = [...new Set(items.map(targetOf).filter(Boolean))].slice(0, MAX_TARGETS);
    draw(root, empty(why, ...targets.map((of) => h("button", { type: "button", class: "button", onclick: () => change({ of }, { push: true }) }, of))));
  };
  // If this fails, the page does not change: the user can still fill in the field.
  load().catch(() => {});
}

/** @param {Api.Unblocking} answer @param {boolean} headed whether to show the cause here */
function suggestionList(answer, headed) {
  const { suggestions } = answer;
  return [
    answer.cause && headed ? h("p", { class: "strong", "data-test": "cause" }, sentence(answer.cause.summary)) : null,
    answer.fits && headed ? h("p", { class: "calm" }, sentence(answer.verdict)) : null,
    suggestions.length
      ? h(
          "ol",
          { class: "remedies", "data-test": "suggestions" },
          suggestions.map((each) => suggestionItem(each, answer)),
        )
      : null,
    !suggestions.length && !answer.fits
      ? h("p", { class: "calm" }, "None of the changes that were tried gets the pod placed.")
      : null,
    answer.fits ? null : h("p", { class: "faint small" }, `${counted(answer.trials, "change")} tried in a copy of the cluster.`),
    assumptionList([...answer.limits.map((limit) => `limit: ${limit}`), ...answer.assumptions]),
  ];
}

/** @param {Api.Suggestion} each @param {Api.Unblocking} answer */
function suggestionItem(each, answer) {
  return h(
    "li",
    { class: "panel", key: each.text },
    h("div", { class: "row suggestion-head" }, h("span", { class: "strong grow wrap" }, each.text), h("span", { class: "badge plain" }, each.kind)),
    h(
      "p",
      { class: "wrap" },
      each.node
        ? [podLink(podOf(answer.waiting[0]), { letters: 40 }), " goes to ", nodeLink(each.node)]
        : "another pod of the workload gets a node",
      each.waiting > 1 ? `; ${count(each.placed)} of ${counted(each.waiting, "pod")} ${each.placed === 1 ? "gets" : "get"} a node` : "",
      h("span", { class: "faint" }, ` · ${each.risk}`),
    ),
    podLine("moves ", each.moved.map((place) => [podLink(podOf(place.pod), { letters: 36 }), " to ", nodeLink(place.node)])),
    podLine("left without a node: ", each.evicted.map((pod) => [podLink(podOf(pod), { letters: 36 })])),
    each.commands.length ? h("pre", { class: "code short", tabindex: 0 }, each.commands.join("\n")) : null,
    h(
      "div",
      { class: "row" },
      each.objects.length || each.deleted.length
        ? h("button", { type: "button", class: "button", "data-test": "try", onclick: () => void tryFork(each) }, "Try in a fork")
        : null,
      each.commands.length
        ? h("button", { type: "button", class: "button", onclick: () => void copy(each.commands.join("\n"), "Command") }, "Copy command")
        : null,
    ),
  );
}

/** @param {string} words @param {import("./dom.js").Child[][]} parts */
function podLine(words, parts) {
  if (!parts.length) return null;
  const more = parts.length - MAX_PODS_SHOWN;
  return h(
    "p",
    { class: "wrap" },
    words,
    parts.slice(0, MAX_PODS_SHOWN).flatMap((part, at) => [at ? ", " : "", ...part]),
    more > 0 ? ` and ${count(more)} more` : "",
  );
}

/** A change as the name of a fork: without the amounts in brackets at its end, and cut after a word. @param {string} text */
function forkName(text) {
  const words = text.replace(/ \([^()]*\)$/, "");
  return words.length <= MAX_FORK_NAME ? words : `${words.slice(0, MAX_FORK_NAME).replace(/ \S*$/, "")} …`;
}

/** @param {Api.Suggestion} suggestion */
async function tryFork(suggestion) {
  await perform("Try in a fork", async () => {
    const fork = await call("POST /forks", {}, {
      from: "now",
      name: forkName(suggestion.text),
      objects: suggestion.objects,
      delete: suggestion.deleted.map((key) => ({ kind: "Pod", ...podOf(key) })),
    });
    location.assign(to("compare", { a: "now", b: fork.id }));
  });
}

/** A collapsed list of assumptions. @param {string[]} lines */
export function assumptionList(lines) {
  if (!lines.length) return null;
  return h(
    "details",
    { class: "assumptions", "data-test": "assumptions" },
    h("summary", null, counted(lines.length, "assumption")),
    h(
      "ul",
      { class: "difference" },
      lines.map((line) => h("li", { key: line }, line)),
    ),
  );
}

/** The name of a workload in questions, from "Deployment shop/web". @param {string} workload @param {string} namespace */
export function targetOf(workload, namespace) {
  const [, kind, owner] = /^(\w+)[ /](?:.*\/)?([^/]+)$/.exec(workload) ?? [];
  return kind ? `${kind.toLowerCase()}/${namespace}/${owner}` : "";
}

/** A form to choose another workload. @param {string} label @param {string} target @param {(target: string) => void} ask */
export function targetField(label, target, ask) {
  return h(
    "form",
    {
      class: "tools wrapping",
      onsubmit: (/** @type {Event} */ event) => {
        event.preventDefault();
        const field = /** @type {Element} */ (event.currentTarget).querySelector("input");
        if (field?.value.trim()) ask(field.value.trim());
      },
    },
    h("label", { class: "check", for: "target" }, "Workload or pod"),
    h("input", {
      id: "target",
      class: "field target",
      "data-test": "target",
      "data-search": true,
      spellcheck: "false",
      placeholder: "deployment/shop/web, pod/shop/db-0",
      value: target,
    }),
    h("button", { type: "submit", class: "button primary" }, label),
  );
}

/** Links to the questions about a workload or pod. @param {string} target @param {boolean} waits */
export function questionLinks(target, waits) {
  return [
    waits ? h("a", { class: "button", "data-test": "unblock", href: to("unblock", { of: target }) }, "Unblock") : null,
    h("a", { class: "button", "data-test": "capacity", href: to("capacity", { of: target }) }, "Capacity"),
  ];
}
