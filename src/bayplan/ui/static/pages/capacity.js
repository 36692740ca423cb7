// Capacity: how many more copies of a workload, or of a mix of workloads, would fit?

import { draw, h } from "../dom.js";
import { change } from "../address.js";
import { apiAddress } from "../service.js";
import { copyMenu } from "../parts.js";
import { title } from "../shell.js";
import { capacityPart } from "../capacity.js";
import { offerTargets, targetField, workloadOf } from "../unblocking.js";

/** @param {import("../main.js").Page} page */
export function open({ place, root, signal }) {
  title("Capacity");
  const head = h("div", null);
  const field = h("div", { class: "tools wrapping" });
  const body = h("div", { class: "stack" });
  root.append(head, field, body);
  const show = (/** @type {URLSearchParams} */ query) => {
    const target = query.get("of") ?? "";
    const preempt = query.get("preempt") === "1";
    const headline = (/** @type {string} */ words) =>
      draw(
        head,
        h(
          "div",
          { class: "head" },
          h("h1", { class: `verdict${words.length > 130 ? " long" : ""}`, "data-test": "verdict" }, words),
          target ? copyMenu({ json: apiAddress("/capacity", { workload: target, preempt }) }) : null,
        ),
      );
    headline(target ? `How many more copies of ${target} fit?` : "How many more copies fit?");
    draw(
      field,
      targetField("Calculate", target, (of) => change({ of }, { push: true })),
      h(
        "label",
        { class: "check" },
        h("input", {
          type: "checkbox",
          "data-test": "preempt",
          checked: preempt,
          onchange: () => change({ preempt: preempt ? "" : "1" }),
        }),
        "evict pods of lower priority",
      ),
    );
    if (target) capacityPart(body, { target, preempt }, signal, (answer) => headline(answer.summary));
    else {
      delete body.dataset.filled;
      const why = "Enter a pod (pod/shop/db-0), a workload (deployment/shop/web) or a mix (shop/web=3,shop/db=1).";
      offerTargets(body, why, {}, workloadOf, signal);
    }
  };
  show(place.query);
  return (/** @type {import("../address.js").Place} */ next) => show(next.query);
}
