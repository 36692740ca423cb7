// Unblock: what would get a pending pod, or the pending pods of a workload, placed?

import { draw, h } from "../dom.js";
import { change } from "../address.js";
import { apiAddress } from "../service.js";
import { copyMenu } from "../parts.js";
import { title } from "../shell.js";
import { offerTargets, targetField, unblockPart, workloadOf } from "../unblocking.js";

/** @param {import("../main.js").Page} page */
export function open({ place, root, signal }) {
  title("Unblock");
  const head = h("div", null);
  const field = h("div", null);
  const body = h("div", { class: "stack" });
  root.append(head, field, body);
  const show = (/** @type {URLSearchParams} */ query) => {
    const target = query.get("of") ?? "";
    const headline = (/** @type {string} */ words) =>
      draw(
        head,
        h(
          "div",
          { class: "head" },
          h("h1", { class: `verdict${words.length > 130 ? " long" : ""}`, "data-test": "verdict" }, words),
          target ? copyMenu({ json: apiAddress("/unblock", { workload: target }) }) : null,
        ),
      );
    headline(target ? `What would get ${target} placed?` : "What would get a pending pod placed?");
    draw(field, targetField("Unblock", target, (of) => change({ of }, { push: true })));
    if (target) unblockPart(body, target, signal, (answer) => headline(answer.verdict));
    else {
      delete body.dataset.filled;
      const why = "Enter a pending pod (pod/shop/db-0), or a workload with pending pods (deployment/shop/web).";
      offerTargets(body, why, { status: "waiting" }, (pod) => workloadOf(pod) || `pod/${pod.namespace}/${pod.name}`, signal);
    }
  };
  show(place.query);
  return (/** @type {import("../address.js").Place} */ next) => show(next.query);
}
