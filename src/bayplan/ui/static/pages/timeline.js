// Timeline: what happened, and when? Rows of decisions and of nodes, by time or by decision number, with pause, step
// and speed.

import { draw, h } from "../dom.js";
import { count, counted, reasonsIn, time } from "../format.js";
import { change, go, podAddress } from "../address.js";
import { get, coalesce } from "../service.js";
import { onReload, subscribe } from "../stream.js";
import { NARROW, roomy } from "../names.js";
import { badge, choice, copyMenu, name, nodeLink, podLink, tableHead } from "../parts.js";
import { empty, failure } from "../loading_states.js";
import { bind } from "../keyboard.js";
import { TIMELINE_ROWS, TimelineRows } from "../timeline_rows.js";
import { NODE_LEGEND, NodeTimeline } from "../node_timeline.js";
import { clockStatus, pause, setSpeed, speeds, step, title } from "../shell.js";

const AROUND = 12;
/** The number of rows of nodes: at first, and below, after "Show more". */
const SOME_NODES = 16;
const MORE_NODES = 60;
/** The status of a pod after a decision; "waiting" for all other outcomes. */
const STATUS_OF_OUTCOME = new Map([
  ["scheduled", "placed"],
  ["error", "error"],
]);
/** The columns of the table of decisions: title and class. @type {[string, string][]} */
const COLUMNS = [
  ["#", "right minor"],
  ["Time", "minor"],
  ["Pod", ""],
  ["Attempt", "right minor"],
  ["Outcome", ""],
  ["Node", ""],
  ["Feasible", "right minor"],
  ["Result", "minor"],
];

/** @param {import("../main.js").Page} page */
export function open({ place, root, signal }) {
  const view = new Timeline(root, signal, place.query);
  void view.load();
  return (/** @type {import("../address.js").Place} */ next) => {
    view.query = next.query;
    void view.load();
  };
}

class Timeline {
  /** @param {HTMLElement} root @param {AbortSignal} signal @param {URLSearchParams} query */
  constructor(root, signal, query) {
    title("Timeline");
    this.signal = signal;
    this.query = query;
    this.head = h("div", null);
    this.tools = h("div", null);
    this.below = h("div", { class: "stack" });
    this.legend = h("div", { class: "legend" });
    /** @type {Api.DecisionSummary[]} */
    this.around = [];
    this.lanes = new TimelineRows({
      signal,
      onRange: (from, to) => change({ from, to }),
      onPick: (number) => change({ at: number, sel: "" }),
      onSelect: (from, to) => change({ sel: `${from}-${to}` }),
      onOpen: () => this.openPicked(),
    });
    this.nodes = new NodeTimeline({ signal });
    this.nodeHead = h("div", null);
    this.nodePart = h("div", { hidden: true }, this.nodeHead, this.nodes.element);
    this.panel = h("section", { class: "panel lanes-panel" }, this.lanes.element, this.legend, this.nodePart);
    root.append(this.head, this.tools, this.panel, this.below);
    this.load = coalesce(() => this.fetchAll());
    subscribe(
      "decisions",
      () => {
        if (this.isLive) void this.load();
      },
      signal,
    );
    subscribe("clock", () => this.drawTools(), signal);
    onReload(() => void this.load(), signal);
    const { lanes } = this;
    bind(
      {
        w: () => lanes.zoom(1 / 1.6),
        s: () => lanes.zoom(1.6),
        a: () => lanes.pan(-0.25),
        d: () => lanes.pan(0.25),
        Enter: () => this.openPicked(),
        ArrowRight: () => this.move(1),
        ArrowLeft: () => this.move(-1),
        j: () => this.move(1),
        k: () => this.move(-1),
        Home: () => lanes.showDecisions(lanes.least, lanes.least + lanes.to - lanes.from),
        End: () => change({ from: "", to: "", at: "" }),
      },
      signal,
    );
  }

  get isLive() {
    return !this.query.get("to");
  }

  async fetchAll() {
    const { query, lanes } = this;
    try {
      const data = await get("/decisions/density", { ...this.span(), axis: this.axis, bins: lanes.bins }, this.signal);
      if (this.signal.aborted) return;
      this.data = data;
      if (data.newest < 0) {
        this.panel.hidden = true;
        draw(
          this.head,
          h("h1", { class: "verdict" }, "No decisions yet"),
          empty(
            "Decisions appear here as pods are scheduled.",
            h("a", { class: "button primary", href: "/ui/new?kind=Pod" }, "Create pods"),
          ),
        );
        return;
      }
      this.panel.hidden = false;
      const at = query.get("at") ? Number(query.get("at")) : data.newest;
      const near = await get(
        "/decisions",
        { after: at > AROUND ? at - AROUND - 1 : "", before: at + AROUND + 1, limit: 2 * AROUND + 1 },
        this.signal,
      );
      if (this.signal.aborted) return;
      this.around = near.items;
      this.oldest = near.oldest;
      this.picked = this.around.find((each) => each.number === at) ?? this.around.at(-1);
      lanes.show(data, this.axis);
      lanes.pick(this.picked?.number ?? at, this.picked?.at ?? "", this.selection());
      this.drawAll();
      await this.fetchNodes(data);
    } catch (problem) {
      if (!this.signal.aborted)
        draw(
          this.head,
          h("h1", { class: "verdict" }, "Timeline"),
          failure(problem, () => void this.load()),
        );
    }
  }

  /** @returns {import("../scales.js").AxisKind} */
  get axis() {
    return this.query.get("axis") === "number" ? "number" : "time";
  }

  /** The visible range, as parameters for the server. */
  span() {
    const [from, to] = [this.query.get("from"), this.query.get("to")];
    return this.axis === "time" ? { from_at: from, to_at: to } : { from, to };
  }

  /** Load the rows of nodes; on an axis of decisions there are none. @param {Api.Density} data */
  async fetchNodes(data) {
    this.nodePart.hidden = this.axis !== "time";
    if (this.nodePart.hidden) return;
    const limit = this.query.get("nodes") === "more" ? MORE_NODES : SOME_NODES;
    // Times have whole milliseconds here: the end is rounded up, so that it includes the last event.
    const end = new Date(Date.parse(data.to_at) + 1).toISOString();
    const found = await get("/nodes/lanes", { from_at: data.from_at, to_at: end, bins: this.nodes.bins, limit }, this.signal);
    if (this.signal.aborted) return;
    this.nodes.show(found);
    this.drawNodeHead(found);
  }

  /** @param {Api.NodeLanes} found */
  drawNodeHead(found) {
    const rest = found.total - found.items.length;
    draw(
      this.nodeHead,
      h(
        "div",
        { class: "legend" },
        h("h2", null, "Nodes"),
        NODE_LEGEND.map(([tone, text]) =>
          h("span", { class: "key", key: tone }, h("span", { class: `key-cell tone-${tone}`, "aria-hidden": "true" }), text),
        ),
        h("span", { class: "grow" }),
        rest > 0 ? h("span", null, `the ${count(found.items.length)} with the most changes of ${count(found.total)}`) : null,
        rest > 0 && found.items.length < MORE_NODES
          ? h("button", { type: "button", class: "button quiet", onclick: () => change({ nodes: "more" }) }, "Show more")
          : null,
      ),
    );
  }

  /** @returns {[number, number] | null} */
  selection() {
    const parts = (this.query.get("sel") ?? "").split("-").map(Number);
    return parts.length === 2 && parts.every((part) => part >= 0) ? [parts[0], parts[1]] : null;
  }

  /** @param {number} by */
  move(by) {
    const { lanes } = this;
    const number = Math.max(lanes.least, Math.min(this.data?.newest ?? 0, (this.picked?.number ?? 0) + by));
    const half = Math.round((lanes.to - lanes.from) / 2);
    const outside = number < lanes.from || number > lanes.to;
    const range = this.axis === "number" ? { from: Math.max(lanes.least, number - half), to: number + half } : { from: "", to: "" };
    change({ at: number, sel: "", ...(outside ? range : {}) });
  }

  openPicked() {
    if (this.picked) go(podAddress(this.picked, { attempt: String(this.picked.attempt) }));
  }

  drawAll() {
    const { data, picked } = this;
    draw(
      this.head,
      picked
        ? h(
            "p",
            { class: "crumbs figure", key: "number", "data-test": "decision-number" },
            `Decision ${count(picked.number)} at ${time(picked.at, true)}${newestWords(picked.number, data?.newest ?? 0)}`,
          )
        : null,
      h(
        "div",
        { class: "head", key: "head" },
        h(
          "h1",
          { class: "verdict", "data-test": "verdict" },
          picked ? (picked.text || words(picked)) : `${count((data?.newest ?? -1) + 1)} decisions`,
        ),
        picked
          ? h(
              "button",
              {
                type: "button",
                class: "button primary",
                "data-test": "open-decision",
                onclick: () => this.openPicked(),
              },
              "Open",
            )
          : null,
        copyMenu({ json: `/bayplan/v1/decisions?limit=100` }),
      ),
    );
    this.drawTools();
    draw(this.legend, ...legend(TIMELINE_ROWS));
    draw(this.below, this.measured(), this.table());
  }

  drawTools() {
    draw(
      this.tools,
      h("div", { class: "tools" }, this.followChoice(), this.axisChoice(), ...this.clockTools(), h("span", { class: "grow" }), ...this.zoomTools()),
      this.oldest && this.data && this.oldest > this.data.from
        ? h("p", { class: "faint small" }, `Before decision ${count(this.oldest)}: summaries only.`)
        : null,
    );
  }

  followChoice() {
    return choice(
      "Follow",
      [
        { value: "live", text: "live" },
        { value: "pinned", text: "pinned" },
      ],
      this.isLive ? "live" : "pinned",
      (value) =>
        change(
          value === "live"
            ? { from: "", to: "", at: "", sel: "" }
            : { ...this.pinned(), at: this.picked?.number ?? "" },
        ),
    );
  }

  /** The visible range as keys of the address. */
  pinned() {
    const { data } = this;
    if (!data) return {};
    return this.axis === "time" ? { from: data.from_at, to: data.to_at } : { from: data.from, to: data.to };
  }

  axisChoice() {
    return choice(
      "Axis",
      [
        { value: "time", text: "time" },
        { value: "number", text: "decisions", title: "Each decision has the same width" },
      ],
      this.axis,
      (value) => change({ axis: value === "time" ? "" : value, from: "", to: "", sel: "" }),
    );
  }

  /** The controls for pause, steps and speed. */
  clockTools() {
    const clock = clockStatus();
    const paused = clock?.paused ?? false;
    const button = (
      /** @type {string} */ text,
      /** @type {boolean} */ disabled,
      /** @type {string | null} */ title,
      /** @type {string | null} */ test,
      /** @type {() => void} */ onclick,
    ) => h("button", { type: "button", class: "button", "data-test": test, disabled, title, onclick }, text);
    const why = paused ? null : "Step works while paused";
    return [
      button(paused ? "▶ Resume" : "❚❚ Pause", !clock, null, "timeline-pause", () => void pause()),
      button("Step decision", !paused, why, "timeline-step", () => void step("decision")),
      button("Step event", !paused, why, null, () => void step("event")),
      h(
        "label",
        { class: "check" },
        "speed",
        h(
          "select",
          {
            class: "field",
            "aria-label": "Speed",
            disabled: !clock,
            onchange: (/** @type {Event} */ event) =>
              void setSpeed(Number(/** @type {HTMLSelectElement} */ (event.target).value)),
          },
          speeds().map((speed) => h("option", { value: String(speed), selected: clock?.speed === speed }, `×${speed}`)),
        ),
      ),
    ];
  }

  zoomTools() {
    const { lanes } = this;
    const button = (/** @type {string} */ text, /** @type {string} */ title, /** @type {() => void} */ onclick) =>
      h("button", { type: "button", class: "button quiet", title, onclick }, text);
    return [
      button("← Earlier", "Earlier (a)", () => lanes.pan(-0.5)),
      button("Zoom in", "Zoom in (w)", () => lanes.zoom(1 / 2)),
      button("Zoom out", "Zoom out (s)", () => lanes.zoom(2)),
      button("Later →", "Later (d)", () => lanes.pan(0.5)),
    ];
  }

  measured() {
    const selection = this.selection();
    if (!selection || !this.data) return null;
    const { data } = this;
    const end = (/** @type {number} */ bin) => data.numbers[bin + 1] ?? data.to + 1;
    const sums = TIMELINE_ROWS.flatMap((lane) => lane.parts)
      .map((part) => {
        const values = data.lanes[part.key];
        const sum = values.reduce(
          (total, value, bin) =>
            total +
            (end(bin) > selection[0] && data.numbers[bin] <= selection[1] ? value : 0),
          0,
        );
        return sum ? `${count(sum)} ${part.words}` : "";
      })
      .filter(Boolean);
    return h(
      "div",
      { class: "panel row", "data-test": "measured" },
      h(
        "span",
        { class: "grow" },
        `Decisions ${count(selection[0])} to ${count(selection[1])} (${counted(selection[1] - selection[0] + 1, "decision")}): ${sums.join(", ") || "nothing"}`,
      ),
      h(
        "button",
        { type: "button", class: "button", onclick: () => this.lanes.showDecisions(selection[0], selection[1]) },
        "Zoom in",
      ),
      h(
        "button",
        { type: "button", class: "button quiet icon", "aria-label": "Close", onclick: () => change({ sel: "" }) },
        "✕",
      ),
    );
  }

  table() {
    return h(
      "section",
      { class: "panel" },
      h("h2", null, "Nearby decisions"),
      h(
        "table",
        { class: "list", "data-test": "around" },
        tableHead(COLUMNS),
        h(
          "tbody",
          null,
          this.around.map((each) =>
            h(
              "tr",
              {
                key: each.number,
                class: `linked${each.number === this.picked?.number ? " chosen" : ""}`,
                onclick: () => change({ at: each.number }),
                ondblclick: () => go(podAddress(each, { attempt: String(each.attempt) })),
              },
              h("td", { class: "right figure minor" }, count(each.number)),
              h("td", { class: "figure faint minor" }, time(each.at, true)),
              h("td", null, podLink(each, { short: innerWidth < NARROW, letters: Math.min(44, roomy()) })),
              h("td", { class: "right figure minor" }, count(each.attempt)),
              h(
                "td",
                null,
                badge(STATUS_OF_OUTCOME.get(each.outcome) ?? "waiting", each.outcome),
              ),
              h("td", null, nodeLink(each.node, Math.min(44, roomy()))),
              h("td", { class: "right figure minor" }, count(each.feasible_nodes)),
              h(
                "td",
                { class: "minor" },
                h(
                  "span",
                  { class: "clip-line", title: each.message || null },
                  why(each),
                ),
              ),
            ),
          ),
        ),
      ),
    );
  }
}

/** @param {Api.DecisionSummary} decision */
function words(decision) {
  const result = decision.node ? `→ ${decision.node}` : `${decision.outcome}: ${decision.message}`;
  return `${decision.namespace}/${decision.name} ${result}`;
}

/** How a decision relates to the newest one. @param {number} number @param {number} newest */
function newestWords(number, newest) {
  return newest > number ? `; the newest is ${count(newest)}` : ", the newest";
}

/** Why the node was chosen, or no node was. @param {Api.DecisionSummary} decision */
function why(decision) {
  if (!decision.node) return reasonsIn(decision.message);
  if (decision.margin) return [`${count(decision.margin)} ahead of `, name(decision.runner_up || "the next", 28)];
  return decision.ties > 1 ? `one of ${count(decision.ties)} equal nodes` : "";
}

/** @param {import("../timeline_rows.js").TimelineRow[]} lanes */
function legend(lanes) {
  return [
    lanes
      .flatMap((lane) => lane.parts)
      .map((part) =>
        h(
          "span",
          { class: "key", key: part.key },
          h("span", { class: `key-cell tone-${part.tone}`, "aria-hidden": "true" }),
          part.words,
        ),
      ),
    h("span", { class: "grow" }),
    h("span", null, "w/s: zoom · a/d: move · drag: measure · Enter: open"),
  ];
}
