// Queue: which pods wait for what? Three tiers and the gated pods, each in queue order.

import { draw, h } from "../dom.js";
import { age, count, counted, eventWords, span } from "../format.js";
import { shortened } from "../names.js";
import { change, podAddress } from "../address.js";
import { apiAddress, get, call } from "../service.js";
import { now, onReload, subscribe } from "../stream.js";
import { copyMenu, perform } from "../parts.js";
import { failure } from "../loading_states.js";
import { Grid } from "../grid.js";
import { until } from "./overview.js";
import { title } from "../shell.js";

/** @typedef {keyof Api.QueueCounts} Tier */

const TIERS = /** @type {const} */ ([
  ["active", "Active", "ready to schedule"],
  ["backoff", "Backoff", "waiting for their backoff to end"],
  ["unschedulable", "Unschedulable", "waiting for an event"],
  ["gated", "Gated", "held by scheduling gates"],
]);
/** @type {Record<Tier, string>} */
const CALM = {
  active: "No pod is about to be scheduled.",
  backoff: "No pod is in backoff.",
  unschedulable: "No pod is unschedulable.",
  gated: "No pod is gated.",
};

/** @param {import("../main.js").Page} page */
export function open({ place, root, signal }) {
  title("Queue");
  root.classList.add("full-height");
  const view = new QueueView(root, tierOf(place.query), signal);
  return (/** @type {import("../address.js").Place} */ next) => {
    view.choose(tierOf(next.query) ?? view.tier ?? "active");
    void view.load();
  };
}

/** The tier named in an address, or null. @param {URLSearchParams} query */
function tierOf(query) {
  return TIERS.find(([key]) => key === query.get("tier"))?.[0] ?? null;
}

/** The first tier that has pods. @param {Api.QueueCounts} counts */
function firstTier(counts) {
  return TIERS.find(([key]) => counts[key])?.[0] ?? "active";
}

class QueueView {
  /** @param {HTMLElement} root @param {Tier | null} tier @param {AbortSignal} signal */
  constructor(root, tier, signal) {
    this.signal = signal;
    this.tier = tier;
    this.head = h("div", null);
    this.tiers = h("div", { class: "tiers" });
    this.list = h("div", { class: "tier-list" });
    /** @type {Grid<Api.QueueRow> | null} */
    this.grid = null;
    root.append(this.head, this.tiers, this.list);
    if (tier) this.choose(tier);
    void this.load();
    subscribe("queue", () => this.refresh(false), signal);
    onReload(() => this.refresh(true), signal);
    const tick = setInterval(() => {
      for (const each of root.querySelectorAll("[data-until]"))
        each.textContent = until(/** @type {HTMLElement} */ (each).dataset.until ?? "");
    }, 250);
    signal.addEventListener("abort", () => clearInterval(tick));
  }

  /** @param {boolean} apply also reorder rows */
  refresh(apply) {
    void this.load();
    this.grid?.refresh(apply);
  }

  async load() {
    try {
      const data = await get("/queue", { tier: this.tier ?? "active", limit: 1 }, this.signal);
      if (this.signal.aborted) return;
      if (!this.tier) this.choose(firstTier(data.counts));
      this.drawHead(data);
      draw(
        this.tiers,
        TIERS.map(([key, text, what]) => this.tierButton(data, key, text, what)),
        histogram(data.histogram),
      );
    } catch (problem) {
      if (this.signal.aborted) return;
      draw(
        this.head,
        h("h1", { class: "verdict" }, "Queue"),
        failure(problem, () => void this.load()),
      );
    }
  }

  /** @param {Tier} tier */
  choose(tier) {
    this.tier = tier;
    this.grid = new Grid({
      label: `${tier} pods`,
      signal: this.signal,
      test: "queue-table",
      keyOf: (row) => `${row.namespace}/${row.name}`,
      hrefOf: (row) => podAddress(row),
      columns: columns(tier),
      load: (offset, limit, asked) => get("/queue", { tier, offset, limit }, asked),
      empty: () => h("div", { class: "empty" }, h("p", null, CALM[tier])),
    });
    this.list.replaceChildren(this.grid.element);
  }

  /** @param {Api.QueueList} data */
  drawHead(data) {
    const flush = () =>
      perform("Retry all", async () => {
        await call("POST /queue/flush", {});
        void this.load();
      });
    draw(
      this.head,
      h(
        "div",
        { class: "head" },
        h("h1", { class: "verdict", "data-test": "verdict" }, data.summary),
        h(
          "button",
          {
            type: "button",
            class: "button",
            "data-test": "flush",
            title: "Retry all pods in backoff and all unschedulable pods now",
            onclick: () => void flush(),
          },
          "Retry all",
        ),
        copyMenu({ json: apiAddress("/queue", { tier: this.tier }) }),
      ),
    );
  }

  /** @param {Api.QueueList} data @param {Tier} key @param {string} text @param {string} what */
  tierButton(data, key, text, what) {
    const next = data.next_retry_at;
    return h(
      "button",
      {
        type: "button",
        class: `tier${key === this.tier ? " chosen" : ""}`,
        key,
        "aria-pressed": String(key === this.tier),
        "data-test": `tier-${key}`,
        onclick: () => change({ tier: key }),
      },
      h("span", { class: "tile-label" }, text),
      h("span", { class: "tile-figure" }, count(data.counts[key])),
      h(
        "span",
        { class: "tile-sub" },
        key === "backoff" && next
          ? h("span", null, "next attempt ", h("span", { "data-until": next }, until(next)))
          : what,
      ),
    );
  }
}

/** @param {Tier} tier @returns {import("../grid.js").Column<Api.QueueRow>[]} */
function columns(tier) {
  const { position, pod, retry, priority, tries, by, wakes, waits } = COLUMNS;
  if (tier === "active") return [position, pod, priority, tries, waits];
  if (tier === "backoff") return [position, pod, retry, priority, tries, by, waits];
  if (tier === "gated") return [pod, { ...by, title: "Gated by" }, priority, waits];
  return [pod, by, wakes, priority, tries, waits];
}

/** @satisfies {Record<string, import("../grid.js").Column<Api.QueueRow>>} */
const COLUMNS = {
  pod: {
    key: "pod",
    title: "Pod",
    width: "minmax(220px, 1.6fr)",
    narrow: "minmax(150px, 1.6fr)",
    render: (row, _, letters) =>
      h(
        "a",
        { class: "name", href: podAddress(row), title: `${row.namespace}/${row.name}` },
        shortened(`${row.namespace}/${row.name}`, letters),
      ),
  },
  position: { key: "position", minor: true, title: "#", width: "64px", right: true, render: (row) => count(row.position + 1) },
  priority: { key: "priority", minor: true, title: "Priority", width: "92px", right: true, render: (row) => count(row.priority) },
  tries: { key: "attempts", minor: true, title: "Attempts", width: "80px", right: true, render: (row) => count(row.attempts) },
  waits: { key: "since", title: "Waiting", width: "84px", right: true, render: (row) => age(row.since, now()) },
  retry: {
    key: "retry",
    title: "Next attempt",
    width: "110px",
    right: true,
    render: (row) => (row.retry_at ? h("span", { "data-until": row.retry_at }, until(row.retry_at)) : "–"),
  },
  by: {
    key: "by",
    title: "Rejected by",
    width: "minmax(150px, 1fr)",
    below: true,
    render: (row) => listed(row.rejected_by, ", "),
  },
  wakes: {
    key: "wakes",
    title: "Retried after",
    minor: true,
    width: "minmax(200px, 1.6fr)",
    render: (row) => listed(row.wakes_on.map(eventWords), "\n"),
  },
};

/** Words in one line; the tooltip has all of them. @param {string[]} words @param {string} between */
function listed(words, between) {
  return h("span", { class: "clip", title: words.join(between) }, words.join(", ") || "–");
}

/** @param {Api.WaitHistogram} data */
function histogram(data) {
  if (!data.pods.some((each) => each)) return null;
  const most = Math.max(...data.pods);
  const label = (/** @type {number} */ at) =>
    data.seconds[at] === undefined ? "longer" : `up to ${span(data.seconds[at])}`;
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
          .map((pods, at) => `${label(at)}: ${counted(pods, "pod")}`)
          .join(", "),
      },
      data.pods.map((pods, at) =>
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
      h("span", { class: "grow" }, span(data.seconds[0])),
      h(
        "span",
        null,
        `${span(data.seconds.at(-1))} and more`,
      ),
    ),
  );
}
