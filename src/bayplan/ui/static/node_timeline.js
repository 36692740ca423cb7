// A row for each node over time: how many pods run on it, and when pods come and leave. A click opens the node.

import { resizeForScreen, onResizeOrThemeChange } from "./canvas.js";
import { beforePaint, h, stamp, token } from "./dom.js";
import { counted } from "./format.js";
import { go, nodeAddress } from "./address.js";
import { letterWidth, split } from "./names.js";
import { labelWidth } from "./scales.js";

const LANE = 22;
const RIGHT = 8;
const MARK = 5;
/** The meaning of the marks. @type {[tone: string, words: string][]} */
export const NODE_LEGEND = [
  ["heat2", "running"],
  ["ok", "placed"],
  ["bad", "gone"],
];

export class NodeTimeline {
  /** @param {{ signal: AbortSignal }} how */
  constructor(how) {
    this.how = how;
    /** @type {Api.NodeLanes | null} */
    this.data = null;
    this.cursor = -1;
    this.canvas = h("canvas", {
      class: "lanes-canvas node-lanes-canvas",
      tabindex: 0,
      role: "img",
      "aria-label": "Pods on nodes over time",
      "data-test": "node-lanes",
      onclick: (/** @type {MouseEvent} */ event) => this.open(this.laneAt(event)),
      onpointermove: (/** @type {PointerEvent} */ event) => this.point(event),
      onkeydown: (/** @type {KeyboardEvent} */ event) => this.key(event),
    });
    this.element = h("div", { class: "lanes", own: true }, this.canvas);
    this.paint = this.paint.bind(this);
    onResizeOrThemeChange(this.element, () => this.resize(), how.signal);
  }

  /** The number of bins to request. */
  get bins() {
    return Math.max(40, Math.min(600, Math.floor((this.element.clientWidth - labelWidth()) / 3) || 200));
  }

  /** @param {Api.NodeLanes} data */
  show(data) {
    this.data = data;
    const sum = (/** @type {number[]} */ values) => values.reduce((total, value) => total + value, 0);
    const placed = data.items.reduce((total, lane) => total + sum(lane.placed), 0);
    const left = data.items.reduce((total, lane) => total + sum(lane.left), 0);
    this.canvas.setAttribute(
      "aria-label",
      `${counted(data.items.length, "node")}: ${counted(placed, "pod")} placed, ${counted(left, "pod")} gone. Arrows choose a node, Enter opens it.`,
    );
    this.resize();
  }

  resize() {
    const width = this.element.clientWidth;
    if (!width || !this.data) return;
    resizeForScreen(this.canvas, width, this.data.items.length * LANE + 4);
    this.width = width;
    beforePaint(this.paint);
  }

  /** @param {MouseEvent} event */
  laneAt(event) {
    return Math.floor((event.clientY - this.canvas.getBoundingClientRect().top) / LANE);
  }

  /** @param {number} lane */
  open(lane) {
    const found = this.data?.items[lane];
    if (found) go(nodeAddress(found.node));
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const last = (this.data?.items.length ?? 0) - 1;
    if (event.key === "Enter") this.open(this.cursor);
    else if (event.key === "ArrowDown") this.cursor = Math.min(last, this.cursor + 1);
    else if (event.key === "ArrowUp") this.cursor = Math.max(0, this.cursor - 1);
    else return;
    event.preventDefault();
    event.stopPropagation();
    beforePaint(this.paint);
  }

  /** Show a tooltip for the position under the pointer. @param {PointerEvent} event */
  point(event) {
    const lane = this.laneAt(event);
    const found = this.data?.items[lane];
    if (!found || !this.data) return;
    const box = this.canvas.getBoundingClientRect();
    const label = labelWidth();
    const part = (event.clientX - box.left - label) / Math.max(1, box.width - label - RIGHT);
    const bin = Math.floor(part * this.data.bins);
    const running = found.running[bin];
    this.canvas.title =
      running === undefined
        ? found.node
        : `${found.node}: ${counted(running, "pod")}, ${found.placed[bin]} placed, ${found.left[bin]} gone`;
    if (lane !== this.cursor) {
      this.cursor = lane;
      beforePaint(this.paint);
    }
  }

  paint() {
    const pen = this.canvas.getContext("2d");
    const { data } = this;
    if (!pen || !data || this.how.signal.aborted) return;
    const scale = devicePixelRatio || 1;
    const width = this.width ?? 0;
    pen.setTransform(scale, 0, 0, scale, 0, 0);
    pen.clearRect(0, 0, width, data.items.length * LANE + 4);
    const most = Math.max(1, ...data.items.flatMap((lane) => lane.running));
    for (const [index, lane] of data.items.entries()) this.lane(pen, lane, index, most);
    stamp("node lanes painted");
  }

  /** @param {CanvasRenderingContext2D} pen @param {Api.NodeLane} lane @param {number} index @param {number} most */
  lane(pen, lane, index, most) {
    const label = labelWidth();
    const width = this.width ?? 0;
    const base = (index + 1) * LANE - 3;
    if (index === this.cursor) {
      pen.fillStyle = token("hover");
      pen.fillRect(0, index * LANE, width, LANE);
    }
    const [head, hidden, tail] = split(lane.node, Math.floor((label - 12) / letterWidth()));
    pen.font = `12px ${token("mono")}`;
    pen.textBaseline = "middle";
    pen.fillStyle = token("ink");
    pen.fillText(hidden ? `${head}…${tail}` : head, 0, base - LANE / 2 + 4);
    pen.fillStyle = token("line");
    pen.fillRect(label, base, width - label, 1);
    const step = (width - label - RIGHT) / Math.max(1, lane.running.length);
    pen.fillStyle = token("heat2");
    for (let bin = 0; bin < lane.running.length; ) {
      const value = lane.running[bin];
      // Equal neighbours are drawn as one bar, because several would have seams between them.
      let end = bin + 1;
      while (end < lane.running.length && lane.running[end] === value) end += 1;
      const height = Math.max(1, (value / most) * (LANE - MARK - 4));
      if (value) pen.fillRect(label + bin * step, base - height, (end - bin) * step, height);
      bin = end;
    }
    this.marks(pen, lane.placed, "ok", base, step);
    this.marks(pen, lane.left, "bad", base, step);
  }

  /** @param {CanvasRenderingContext2D} pen @param {number[]} values @param {string} tone @param {number} base @param {number} step */
  marks(pen, values, tone, base, step) {
    const label = labelWidth();
    pen.fillStyle = token(tone);
    for (const [bin, value] of values.entries()) {
      if (!value) continue;
      const top = tone === "ok" ? base - LANE + 4 : base - MARK + 1;
      pen.fillRect(Math.round(label + bin * step), top, Math.max(2, Math.min(4, step)), MARK);
    }
  }
}
