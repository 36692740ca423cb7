// A small cluster: each node is a card with bars for its resources and blocks for its pods. Placements are animated.

import { draw, h } from "./dom.js";
import { amount, count, counted, percent, resource } from "./format.js";
import { lettersIn, roomy, shortened } from "./names.js";
import { go, nodeAddress, podAddress, to } from "./address.js";
import { get, coalesce } from "./service.js";
import { subscribe } from "./stream.js";
import { loading, failure, empty } from "./loading_states.js";
import { meter } from "./parts.js";

const SHOWN_FIRST = ["cpu", "memory"];
const LEFT_OUT = new Set(["pods", "ephemeral-storage", "attachable-volumes"]);
const MAX_WAITING = 24;
/** The minimum widths of a card, the gap between two cards, and the space around their text, in pixels. */
const CARD = { wide: 250, small: 210, gap: 10, padding: 24 };

/**
 * Draw the nodes that a query finds as cards, and keep them up to date.
 * @param {HTMLElement} root @param {{ signal: AbortSignal, small: boolean, query: Api.Gets["/nodes"]["parameters"], waiting?: boolean, onCount?: (total: number) => void }} how
 * @returns {() => void} loads and draws the cards again
 */
export function nodeCards(root, how) {
  draw(root, loading(5));
  const known = new Set();
  let first = true;
  /** @type {{ nodes: Api.NodeList, waiting: Api.PodList | null } | null} */
  let shown = null;
  const render = () => {
    if (!shown) return;
    const { nodes, waiting } = shown;
    const letters = lettersIn(cardWidth(root.clientWidth, how.small) - CARD.padding);
    draw(
      root,
      waiting?.items.length ? waitingRow(waiting) : null,
      h(
        "div",
        { class: `cards${how.small ? " small-cards" : ""}`, "data-test": "cards" },
        nodes.items.map((node) => card(node, known, first, letters)),
      ),
    );
    first = false;
  };
  const resized = new ResizeObserver(render);
  resized.observe(root);
  how.signal.addEventListener("abort", () => resized.disconnect());
  const again = coalesce(async () => {
    try {
      const [nodes, waiting] = await Promise.all([
        get("/nodes", { ...how.query, limit: 60, blocks: true }, how.signal),
        how.waiting ? get("/pods", { status: "waiting", limit: MAX_WAITING }, how.signal) : null,
      ]);
      if (how.signal.aborted) return;
      how.onCount?.(nodes.total);
      shown = nodes.items.length ? { nodes, waiting } : null;
      if (shown) render();
      else draw(root, empty("No node matches.", h("a", { class: "button", href: to("nodes") }, "Clear the filter")));
    } catch (problem) {
      if (!how.signal.aborted) draw(root, failure(problem, again));
    }
  });
  void again();
  subscribe("pods", () => void again(), how.signal);
  return again;
}

/** The width that the style sheet gives a card. @param {number} width of all @param {boolean} small */
function cardWidth(width, small) {
  const across = Math.max(1, Math.floor((width + CARD.gap) / ((small ? CARD.small : CARD.wide) + CARD.gap)));
  return (width - CARD.gap * (across - 1)) / across;
}

/** @param {Api.PodList} waiting */
function waitingRow(waiting) {
  const rest = waiting.total - waiting.items.length;
  return h(
    "div",
    { class: "waiting-row", "data-test": "waiting-row" },
    h("span", { class: "badge wait" }, h("span", { "aria-hidden": "true" }, "…"), `${count(waiting.total)} pending`),
    waiting.items.map((pod) =>
      h(
        "a",
        {
          class: "block wait-block",
          key: `${pod.namespace}/${pod.name}`,
          href: podAddress(pod),
          title: `${pod.namespace}/${pod.name}: ${pod.why}`,
        },
        shortened(pod.name, Math.min(40, roomy())),
      ),
    ),
    rest > 0 ? h("a", { href: to("pods", { status: "waiting" }) }, `${count(rest)} more`) : null,
  );
}

/**
 * @param {Api.NodeRow} node @param {Set<string>} known the pods drawn before; others are shown as new @param {boolean} first
 * @param {number} letters how many characters fit in a line
 */
function card(node, known, first, letters) {
  const resources = Object.keys(node.allocatable)
    .filter((name) => node.allocatable[name] && !LEFT_OUT.has(name) && !name.startsWith("hugepages-"))
    .sort((a, b) => place(a) - place(b))
    .slice(0, 3);
  const marks = [
    !node.ready ? h("span", { class: "badge bad" }, "✕ not ready") : null,
    node.cordoned ? h("span", { class: "badge plain" }, "▨ cordoned") : null,
  ];
  const taints = node.taints.filter(
    (taint) => !taint.startsWith("node.kubernetes.io/unschedulable"),
  );
  const blocks = node.blocks ?? [];
  // The blocks are as wide as the pods' shares of the resource of which most is requested; the empty part is free.
  const by = share(node, "memory") > share(node, "cpu") ? "memory" : "cpu";
  return h(
    "article",
    {
      class: `card${node.cordoned ? " cordoned" : ""}`,
      key: node.name,
      "data-test": "node-card",
      onclick: (/** @type {Event} */ event) => {
        if (!(event.target instanceof Element && event.target.closest("a"))) go(nodeAddress(node.name));
      },
    },
    h(
      "div",
      { class: "card-head" },
      h("a", { class: "name strong", href: nodeAddress(node.name), title: node.name }, shortened(node.name, letters)),
    ),
    resources.map((name) => {
      const asked = node.requested[name] ?? 0;
      return h(
        "div",
        { class: "card-line", key: name },
        h("span", { class: "small" }, resource(name)),
        meter(asked / node.allocatable[name]),
        h("span", { class: "small figure right" }, `${amount(name, asked)} / ${amount(name, node.allocatable[name])}`),
      );
    }),
    h(
      "div",
      { class: "blocks", key: "blocks" },
      blocks.map((pod) => {
        const fresh = !first && !known.has(`${pod.namespace}/${pod.name}${node.name}`);
        known.add(`${pod.namespace}/${pod.name}${node.name}`);
        return block(node, pod, by, fresh, letters);
      }),
    ),
    h(
      "div",
      { class: "card-foot faint small", key: "foot" },
      ...marks,
      h("span", null, [node.zone, node.pods ? counted(node.pods, "pod") : "no pods"].filter(Boolean).join(" · ")),
      taints.length ? h("span", { title: taints.join("\n") }, ` · taint ${taints.join(", ")}`) : null,
    ),
  );
}

/** @param {Api.NodeRow} node @param {Api.NodeBlock} pod @param {"cpu" | "memory"} by @param {boolean} fresh @param {number} letters how many characters fit into the card */
function block(node, pod, by, fresh, letters) {
  const key = `${pod.namespace}/${pod.name}`;
  const part = pod[by] / (node.allocatable[by] || 1);
  return h(
    "a",
    {
      class: `block${fresh ? " fresh" : ""}`,
      key,
      href: podAddress(pod),
      style: { width: `${Math.min(100, part * 100)}%` },
      title: `${key}: ${amount("cpu", pod.cpu)} CPU, ${amount("memory", pod.memory)}, ${percent(part)} of the node’s ${resource(by)}`,
      "aria-label": key,
    },
    // One character for the space around the name.
    h("span", { class: "block-name" }, shortened(pod.name, Math.floor(letters * Math.min(1, part)) - 1)),
  );
}

/** @param {Api.NodeRow} node @param {string} name */
function share(node, name) {
  return (node.requested[name] ?? 0) / (node.allocatable[name] || 1);
}

/** @param {string} name */
function place(name) {
  const at = SHOWN_FIRST.indexOf(name);
  return at < 0 ? 9 : at;
}
