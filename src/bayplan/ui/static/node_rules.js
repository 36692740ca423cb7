// One pod on one node: each rule that rejects the pod there, and the smallest change that would satisfy it.

import { draw, h } from "./dom.js";
import { sentence } from "./format.js";
import { change } from "./address.js";
import { get } from "./service.js";
import { failure, loading } from "./loading_states.js";
import { badge, nodeLink } from "./parts.js";
import { table } from "./capacity.js";

/** @param {HTMLElement} root @param {string} target @param {string} node @param {AbortSignal} signal */
export function nodeRulesPart(root, target, node, signal) {
  const asked = `${target} ${node}`;
  if (root.dataset.filled === asked) return;
  root.dataset.filled = asked;
  draw(root, loading(3));
  const load = async () => {
    try {
      const found = await get("/explain", { workload: target, node }, signal);
      if (signal.aborted || root.dataset.filled !== asked) return;
      draw(root, rules(found.node_detail, node));
    } catch (problem) {
      if (!signal.aborted) draw(root, failure(problem, () => void load()));
    }
  };
  void load();
}

/** @param {Api.NodeDetail | null} detail @param {string} node */
function rules(detail, node) {
  const rejecting = detail?.verdicts.filter((each) => each.code !== "Success") ?? [];
  return h(
    "section",
    { class: "panel", "data-test": "node-rules" },
    h(
      "div",
      { class: "row" },
      h("h2", { class: "grow" }, "Filters of ", nodeLink(node)),
      h("button", { type: "button", class: "button quiet icon", "aria-label": "Close", onclick: () => change({ node: "" }) }, "✕"),
    ),
    detail ? h("p", null, sentence(detail.fate)) : h("p", { class: "calm" }, "No filter was run."),
    rejecting.length
      ? table(
          [["Plugin", ""], ["Reason", ""], ["Smallest change", ""]],
          rejecting.map((each) => [badge("error", each.plugin), each.reasons.join("; "), each.change || "unknown"]),
        )
      : null,
  );
}
