// Why pods are pending: root causes, in the order of the command `waiting`; below, the reasons in the scheduler's messages.

import { draw, h } from "./dom.js";
import { count, counted } from "./format.js";
import { to } from "./address.js";
import { get } from "./service.js";
import { podLink, podOf } from "./parts.js";

const MAX_CAUSES = 6;
const MAX_REASONS = 8;
/** The minimum time between two requests for causes: the server needs the scheduler to compute them. */
const PAUSE_MS = 30_000;

/** The panel "Why pods are pending" of the overview. */
export class WaitingPanel {
  /** @param {AbortSignal} signal @param {() => void} judged called when causes have arrived */
  constructor(signal, judged) {
    this.signal = signal;
    this.judged = judged;
    this.element = h("section", { class: "panel", "aria-label": "Why pods are pending", own: true });
    /** @type {Api.WaitingReasons | null} */
    this.causes = null;
    /** @type {Api.Overview | null} */
    this.data = null;
    this.asked = "";
    /** The number of pending and gated pods now, and below, at the request for causes. */
    this.about = "";
    this.askedAbout = "";
    this.askedAt = -PAUSE_MS;
    this.timer = 0;
    signal.addEventListener("abort", () => clearTimeout(this.timer));
  }

  /** @param {Api.Overview} data */
  show(data) {
    this.data = data;
    const waits = data.counts.waiting + data.counts.gated > 0;
    if (!waits) this.causes = null;
    this.drawAll();
    // While these are the same, the causes are the same, too.
    const key = JSON.stringify([data.counts.nodes, data.counts.waiting, data.reasons]);
    this.about = JSON.stringify([data.counts.waiting, data.counts.gated]);
    if (!waits || key === this.asked || this.timer) return;
    const rest = Math.max(0, this.askedAt + PAUSE_MS - performance.now());
    this.timer = window.setTimeout(() => void this.fetchCauses(key), rest);
  }

  /** @param {string} key */
  async fetchCauses(key) {
    this.asked = key;
    this.askedAt = performance.now();
    this.askedAbout = this.about;
    try {
      this.causes = await get("/waiting", {}, this.signal);
    } catch {
      // The reasons in the messages are still shown.
    }
    this.timer = 0;
    if (this.signal.aborted) return;
    this.drawAll();
    this.judged();
  }

  /** The first cause, for the headline; "" if the number of pending pods has changed since the request for causes. */
  get summary() {
    return this.causes && this.about === this.askedAbout ? this.causes.summary : "";
  }

  drawAll() {
    const { data, causes } = this;
    if (!data) return;
    const found = byCause(causes?.items ?? []);
    const rows = found.slice(0, MAX_CAUSES);
    const reasons = data.reasons.toSorted((a, b) => b.pods - a.pods || b.main_pods - a.main_pods).slice(0, MAX_REASONS);
    draw(
      this.element,
      h("h2", null, "Why pods are pending"),
      rows.length ? causeTable(rows) : null,
      found.length > rows.length ? h("p", { class: "faint small" }, `and ${counted(found.length - rows.length, "more cause")}`) : null,
      causes && causes.evaluated < causes.waiting
        ? h("p", { class: "faint small" }, `${count(causes.evaluated)} of ${count(causes.waiting)} pending pods were analysed.`)
        : null,
      reasons.length
        ? h("div", { class: "tags" }, reasons.map(reasonTag))
        : h("p", { class: "calm" }, "No pod is pending."),
    );
  }
}

/**
 * The reasons as causes: a cause for which several filters reject pods is one item.
 * @param {Api.WaitingReason[]} reasons
 */
function byCause(reasons) {
  const summaries = [...new Set(reasons.map((reason) => reason.summary))];
  return summaries.map((summary) => {
    const ofFilters = reasons.filter((reason) => reason.summary === summary);
    const pods = [...new Set(ofFilters.flatMap((reason) => reason.examples))];
    return { summary, filters: ofFilters.map((reason) => reason.plugin), pods };
  });
}

/** @param {ReturnType<typeof byCause>} rows */
function causeTable(rows) {
  return h(
    "table",
    { class: "list", "data-test": "causes" },
    h(
      "thead",
      null,
      h("tr", null, h("th", { scope: "col" }, "Cause"), h("th", { scope: "col", class: "right" }, "Pods")),
    ),
    h(
      "tbody",
      null,
      rows.map((row) =>
        h(
          "tr",
          { key: row.summary },
          h(
            "td",
            { class: "wrap" },
            row.summary,
            h("span", { class: "faint small" }, ` · ${row.filters.join(", ")} · `),
            podLink(podOf(row.pods[0]), { letters: 40 }),
          ),
          h("td", { class: "right figure" }, count(row.pods.length)),
        ),
      ),
    ),
  );
}

/** @param {Api.ReasonRow} reason */
function reasonTag(reason) {
  return h(
    "span",
    { key: reason.text, class: "reason-tag" },
    h("a", { href: to("pods", { reason: reason.text }), "data-test": "reason" }, reason.text),
    h("span", { class: "faint figure" }, ` ${count(reason.pods)}`),
  );
}
