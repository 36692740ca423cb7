// Queue: what waits for what? Three tiers and the gated pods, each list in queue order.

import { draw, h } from "../dom.js";
import { age, count, counted, span } from "../format.js";
import { shortened } from "../names.js";
import { change, podAddress } from "../address.js";
import { get, put } from "../service.js";
import { now, onReturn, subscribe } from "../stream.js";
import { copyMenu, perform } from "../parts.js";
import { failure } from "../states.js";
import { Grid } from "../grid.js";
import { until } from "./overview.js";
import { title } from "../shell.js";

const TIERS = [
  ["active", "Active", "next to schedule"],
  ["backoff", "Backoff", "retried after a pause"],
  ["unschedulable", "Unschedulable", "wait for an event"],
  ["gated", "Gated", "held by gates"],
];
const CALM = /** @type {Record<string, string>} */ ({
  active: "No pod is about to be scheduled.",
  backoff: "No pod is in backoff.",
  unschedulable: "No pod is unschedulable.",
  gated: "No pod is gated.",
});

/** @param {import("../main.js").Page} page */
export function open({ place, root, signal }) {
  title("Queue");
  root.classList.add("full-height");
  const head = h("div", null);
  const tiers = h("div", { class: "tiers" });
  const list = h("div", { class: "tier-list" });
  root.append(head, tiers, list);
  /** @type {any} */
  let data = null;
  let tier = place.query.get("tier") || "";
  /** @type {Grid | null} */
  let grid = null;
  const load = async () => {
    try {
      data = await get("/queue", { tier: tier || "active", limit: 1 }, signal);
      if (signal.aborted) return;
      if (!tier) choose(first(data.counts));
      drawAll();
    } catch (problem) {
      if (!signal.aborted) draw(head, h("h1", { class: "verdict" }, "Queue"), failure(problem, load));
    }
  };
  const first = (counts) => TIERS.map(([key]) => key).find((key) => counts[key]) ?? "active";
  /** @param {string} chosen */
  const choose = (chosen) => {
    tier = chosen;
    grid = new Grid({
      label: `${tier} pods`,
      signal,
      test: "queue-table",
      keyOf: (row) => `${row.namespace}/${row.name}`,
      hrefOf: (row) => podAddress(row),
      columns: columns(tier),
      load: (offset, limit, asked) => get("/queue", { tier, offset, limit }, asked),
      empty: () => h("div", { class: "empty" }, h("p", null, CALM[tier] ?? "Nothing here.")),
    });
    list.replaceChildren(grid.element);
  };
  const drawAll = () => {
    draw(
      head,
      h(
        "div",
        { class: "head" },
        h(
          "h1",
          { class: "verdict", "data-test": "verdict" },
          data.sentence ?? TIERS.map(([key]) => `${count(data.counts[key])} ${key}`).join(", "),
        ),
        h(
          "button",
          {
            type: "button",
            class: "button",
            "data-test": "flush",
            title: "Move all unschedulable pods to the active queue",
            onclick: () =>
              void perform("Flush", async () => {
                await put("POST", "/queue/flush");
                void load();
              }),
          },
          "Flush",
        ),
        copyMenu({ json: `/bayplan/v1/queue?tier=${tier}` }),
      ),
    );
    draw(
      tiers,
      TIERS.map(([key, text, what]) =>
        h(
          "button",
          {
            type: "button",
            class: `tier${key === tier ? " chosen" : ""}`,
            key,
            "aria-pressed": String(key === tier),
            "data-test": `tier-${key}`,
            onclick: () => change({ tier: key }),
          },
          h("span", { class: "tile-label" }, text),
          h("span", { class: "tile-figure" }, count(data.counts[key])),
          h(
            "span",
            { class: "tile-sub" },
            key === "backoff" && data.next_retry_at
              ? h("span", null, "next attempt ", h("span", { "data-until": data.next_retry_at }, until(data.next_retry_at)))
              : what,
          ),
        ),
      ),
      histogram(data.histogram),
    );
  };
  if (tier) choose(tier);
  void load();
  subscribe(
    "queue",
    () => {
      void load();
      grid?.refresh();
    },
    signal,
  );
  onReturn(() => {
    void load();
    grid?.refresh(true);
  }, signal);
  const tick = setInterval(() => {
    for (const each of root.querySelectorAll("[data-until]"))
      each.textContent = until(/** @type {HTMLElement} */ (each).dataset.until ?? "");
  }, 250);
  signal.addEventListener("abort", () => clearInterval(tick));
  return (/** @type {import("../address.js").Place} */ next) => {
    choose(next.query.get("tier") || tier || "active");
    void load();
  };
}

/** @param {string} tier @returns {import("../grid.js").Column[]} */
function columns(tier) {
  const pod = {
    key: "pod",
    title: "Pod",
    width: "minmax(220px, 1.6fr)",
    render: (row, /** @type {number} */ _, /** @type {number} */ letters) =>
      h(
        "a",
        { class: "name", href: podAddress(row), title: `${row.namespace}/${row.name}` },
        shortened(`${row.namespace}/${row.name}`, letters),
      ),
  };
  const position = {
    key: "position",
    title: "#",
    width: "64px",
    right: true,
    render: (row, /** @type {number} */ index) => count(row.position ?? index + 1),
  };
  const priority = {
    key: "priority",
    title: "Priority",
    width: "92px",
    right: true,
    render: (row) => count(row.priority),
  };
  const tries = {
    key: "attempts",
    title: "Attempts",
    width: "80px",
    right: true,
    render: (row) => count(row.attempts),
  };
  const waits = {
    key: "since",
    title: "Waiting",
    width: "84px",
    right: true,
    render: (row) => age(row.since, now()),
  };
  const retry = {
    key: "retry",
    title: "Next attempt",
    width: "110px",
    right: true,
    render: (row) =>
      row.retry_at ? h("span", { "data-until": row.retry_at }, until(row.retry_at)) : "–",
  };
  const by = {
    key: "by",
    title: tier === "gated" ? "Gated by" : "Rejected by",
    width: "minmax(150px, 1fr)",
    render: (row) =>
      h(
        "span",
        { class: "clip", title: (row.rejected_by ?? []).join(", ") },
        (row.rejected_by ?? []).join(", ") || "–",
      ),
  };
  const wakes = {
    key: "wakes",
    title: "Wakes on",
    width: "minmax(200px, 1.6fr)",
    render: (row) =>
      h("span", { class: "clip", title: (row.wakes_on ?? []).join("\n") }, (row.wakes_on ?? []).join(", ") || "–"),
  };
  if (tier === "active") return [position, pod, priority, tries, waits];
  if (tier === "backoff") return [position, pod, retry, priority, tries, by, waits];
  if (tier === "gated") return [pod, by, priority, waits];
  return [pod, by, wakes, priority, tries, waits];
}

/** @param {any} data */
function histogram(data) {
  if (!data?.pods?.some((/** @type {number} */ each) => each)) return null;
  const most = Math.max(...data.pods);
  const label = (/** @type {number} */ at) =>
    data.seconds[at] === undefined || data.seconds[at] === null ? "longer" : `up to ${span(data.seconds[at])}`;
  return h(
    "figure",
    { class: "histogram tier", "aria-label": "How long pods have waited" },
    h("figcaption", { class: "tile-label" }, "Waiting time"),
    h(
      "div",
      {
        class: "bars",
        role: "img",
        "aria-label": data.pods
          .map((/** @type {number} */ pods, /** @type {number} */ at) => `${label(at)}: ${counted(pods, "pod")}`)
          .join(", "),
      },
      data.pods.map((/** @type {number} */ pods, /** @type {number} */ at) =>
        h("span", {
          class: "bar-column",
          key: at,
          title: `${label(at)}: ${counted(pods, "pod")}`,
          style: { height: `${pods ? Math.max(6, (pods / most) * 100) : 0}%` },
        }),
      ),
    ),
    h(
      "div",
      { class: "tile-sub row" },
      h("span", { class: "grow" }, data.seconds.length ? `${span(data.seconds[0])}` : ""),
      h(
        "span",
        null,
        `${span(data.seconds.filter((/** @type {number | null} */ each) => each !== null).at(-1))} and more`,
      ),
    ),
  );
}
