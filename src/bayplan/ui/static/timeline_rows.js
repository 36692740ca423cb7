// The timeline on a canvas: rows of events, by time or by decision number. Where there are more events than pixels, a
// row shows their density. Keys as in Perfetto: w and s zoom in and out, a and d move left and right; a drag measures.

import { resizeForScreen, onResizeOrThemeChange } from "./canvas.js";
import { beforePaint, h, stamp, token } from "./dom.js";
import { count } from "./format.js";
import { Scale, labelWidth } from "./scales.js";

const LANE = 34;
const TOP = 20;
const RIGHT = 8;

/** @typedef {{ key: string, label: string, parts: { key: keyof Api.DensityLanes, tone: string, words: string }[] }} TimelineRow */
/** @type {TimelineRow[]} */
export const TIMELINE_ROWS = [
  {
    key: "decisions",
    label: "Decisions",
    parts: [
      { key: "scheduled", tone: "ok", words: "scheduled" },
      { key: "waits", tone: "wait", words: "pending" },
      { key: "error", tone: "bad", words: "errors" },
    ],
  },
  { key: "nodes", label: "Node events", parts: [{ key: "nodes", tone: "ink2", words: "node events" }] },
  { key: "preemptions", label: "Preemptions", parts: [{ key: "preemptions", tone: "bad", words: "preemptions" }] },
];

/** @typedef {Api.Density} Density */

export class TimelineRows {
  /**
   * @param {{ signal: AbortSignal, onRange: (from: string | number, to: string | number) => void, onPick: (number: number) => void, onSelect: (from: number, to: number) => void, onOpen: () => void }} how
   */
  constructor(how) {
    this.how = how;
    /** @type {Density | null} */
    this.data = null;
    this.picked = 0;
    /** @type {[number, number] | null} */
    this.selection = null;
    /** @type {Scale | null} */
    this.scale = null;
    /** When the picked decision was made. */
    this.pickedAt = "";
    this.canvas = h("canvas", {
      class: "lanes-canvas",
      tabindex: 0,
      role: "img",
      "aria-label": "Timeline of decisions",
      "data-test": "lanes",
      onpointerdown: (/** @type {PointerEvent} */ event) => this.down(event),
      onwheel: (/** @type {WheelEvent} */ event) => this.wheel(event),
    });
    this.element = h("div", { class: "lanes", own: true }, this.canvas);
    this.paint = this.paint.bind(this);
    onResizeOrThemeChange(this.element, () => this.resize(), how.signal);
  }

  /** The number of the oldest decision that the server still has. */
  get least() {
    return Math.max(0, this.data?.oldest ?? 0);
  }

  /** The first and, below, the last visible decision. */
  get from() {
    return this.data?.from ?? 0;
  }

  get to() {
    return this.data?.to ?? 0;
  }

  /** The number of bins to request. */
  get bins() {
    return Math.max(50, Math.min(1200, Math.floor((this.element.clientWidth - labelWidth()) / 2) || 400));
  }

  /** @param {Density} data @param {import("./scales.js").AxisKind} axis */
  show(data, axis) {
    this.data = data;
    this.scale = new Scale(axis, data);
    this.canvas.setAttribute(
      "aria-label",
      `Decisions ${count(data.from)} to ${count(data.to)} of ${count(data.newest)}: ${TIMELINE_ROWS.flatMap(
        (lane) => lane.parts,
      )
        .map((part) => `${count(data.lanes[part.key].reduce((sum, each) => sum + each, 0))} ${part.words}`)
        .join(", ")}`,
    );
    this.resize();
  }

  /** @param {number} picked @param {string} at when it was made @param {[number, number] | null} selection */
  pick(picked, at, selection) {
    this.picked = picked;
    this.pickedAt = at;
    this.selection = selection;
    beforePaint(this.paint);
  }

  resize() {
    const width = this.element.clientWidth;
    if (!width) return;
    const height = TOP + TIMELINE_ROWS.length * LANE + 6;
    resizeForScreen(this.canvas, width, height);
    this.width = width;
    beforePaint(this.paint);
  }

  /** The pixel of a position. @param {number} part from 0 to 1 */
  pixel(part) {
    const label = labelWidth();
    return label + part * ((this.width ?? 0) - label - RIGHT);
  }

  /** The pixel where a decision begins. @param {number} number */
  x(number) {
    return this.pixel(this.scale?.partOf(number) ?? 0);
  }

  /** The pixel of the picked decision. */
  pickedX() {
    const { scale } = this;
    if (scale?.kind === "time" && this.pickedAt) return this.pixel(scale.part(Date.parse(this.pickedAt)));
    return (this.x(this.picked) + this.x(this.picked + 1)) / 2;
  }

  /** @param {MouseEvent} event */
  partAt(event) {
    const box = this.canvas.getBoundingClientRect();
    const label = labelWidth();
    return Math.max(0, Math.min(1, (event.clientX - box.left - label) / Math.max(1, box.width - label - RIGHT)));
  }

  /** @param {MouseEvent} event */
  numberAt(event) {
    return this.scale?.numberAt(this.partAt(event)) ?? 0;
  }

  paint() {
    const pen = this.canvas.getContext("2d");
    const { data } = this;
    if (!pen || !data || this.how.signal.aborted) return;
    const scale = devicePixelRatio || 1;
    const width = this.width ?? 0;
    const height = TOP + TIMELINE_ROWS.length * LANE + 6;
    pen.setTransform(scale, 0, 0, scale, 0, 0);
    pen.clearRect(0, 0, width, height);
    pen.font = "12px system-ui, sans-serif";
    pen.textBaseline = "middle";
    if (this.selection) {
      pen.fillStyle = token("select");
      pen.fillRect(
        this.x(this.selection[0]),
        TOP,
        Math.max(2, this.x(this.selection[1] + 1) - this.x(this.selection[0])),
        height - TOP,
      );
    }
    this.axis(pen, width);
    const most = Math.max(
      1,
      ...TIMELINE_ROWS.flatMap((lane) => lane.parts)
        .filter((part) => lane0(part.key))
        .flatMap((part) => data.lanes[part.key]),
    );
    for (const [index, lane] of TIMELINE_ROWS.entries()) {
      const base = TOP + (index + 1) * LANE - 4;
      pen.fillStyle = token("ink");
      pen.fillText(lane.label, 0, base - LANE / 2 + 4);
      pen.fillStyle = token("line");
      pen.fillRect(labelWidth(), base, width - labelWidth(), 1);
      const stacked = new Array(data.bins).fill(0);
      const top = index === 0 ? most : Math.max(1, ...lane.parts.flatMap((part) => data.lanes[part.key]));
      for (const part of lane.parts) this.bars(pen, data.lanes[part.key], stacked, top, base, part.tone);
    }
    if (this.picked >= this.from && this.picked <= this.to) {
      const middle = this.pickedX();
      pen.fillStyle = token("accent");
      pen.fillRect(Math.round(middle) - 1, TOP - 6, 2, height - TOP + 6);
      pen.beginPath();
      pen.moveTo(middle - 5, TOP - 8);
      pen.lineTo(middle + 5, TOP - 8);
      pen.lineTo(middle, TOP - 1);
      pen.fill();
    }
    stamp("lanes painted");

    /** @param {string} key */
    function lane0(key) {
      return TIMELINE_ROWS[0].parts.some((part) => part.key === key);
    }
  }

  /** @param {CanvasRenderingContext2D} pen @param {number[]} values @param {number[]} stacked @param {number} most @param {number} base @param {string} tone */
  bars(pen, values, stacked, most, base, tone) {
    const label = labelWidth();
    const width = ((this.width ?? 0) - label - RIGHT) / Math.max(1, values.length);
    const bar = Math.max(1, Math.min(width - (width > 3 ? 1 : 0), 8));
    pen.fillStyle = token(tone);
    for (const [bin, value] of values.entries()) {
      if (!value) continue;
      const height = Math.max(3, (value / most) * (LANE - 12));
      pen.fillRect(label + bin * width + (width - bar) / 2, base - stacked[bin] - height, bar, height);
      stacked[bin] += height + (tone === "bad" ? 0 : 0.5);
    }
  }

  /** @param {CanvasRenderingContext2D} pen @param {number} width */
  axis(pen, width) {
    const { scale } = this;
    if (!scale) return;
    pen.fillStyle = token("ink2");
    pen.fillText(scale.kind === "time" ? "UTC" : "No.", 0, 8);
    for (const { part, text } of scale.ticks((width - labelWidth()) / 110)) {
      const x = this.pixel(part);
      if (x + pen.measureText(text).width > width) break;
      pen.fillText(text, x + 3, 8);
      pen.fillRect(x, 2, 1, 12);
    }
  }

  /** @param {PointerEvent} event */
  down(event) {
    if (!this.data || event.button) return;
    const start = this.numberAt(event);
    const begin = event.clientX;
    let moved = false;
    const move = (/** @type {PointerEvent} */ next) => {
      moved ||= Math.abs(next.clientX - begin) > 4;
      if (!moved) return;
      const end = this.numberAt(next);
      this.selection = [Math.min(start, end), Math.max(start, end)];
      beforePaint(this.paint);
    };
    const up = () => {
      this.canvas.removeEventListener("pointermove", move);
      if (moved && this.selection) this.how.onSelect(...this.selection);
      else this.how.onPick(start);
    };
    this.canvas.setPointerCapture(event.pointerId);
    this.canvas.addEventListener("pointermove", move);
    this.canvas.addEventListener("pointerup", up, { once: true });
  }

  /** @param {WheelEvent} event */
  wheel(event) {
    if (!event.ctrlKey && !event.shiftKey) return;
    event.preventDefault();
    if (event.ctrlKey) this.zoom(event.deltaY > 0 ? 1.5 : 1 / 1.5, this.partAt(event));
    else this.pan(event.deltaY > 0 ? 0.2 : -0.2);
  }

  /** @param {number} factor below 1: closer @param {number} [around] a position, from 0 to 1 */
  zoom(factor, around) {
    const { scale } = this;
    if (!scale) return;
    const wanted = Math.max(scale.shortest, scale.size * factor);
    const inSight = this.picked >= this.from && this.picked <= this.to;
    const label = labelWidth();
    const picked = (this.pickedX() - label) / Math.max(1, (this.width ?? 0) - label - RIGHT);
    const middle = around ?? (inSight ? picked : 0.5);
    const from = scale.from + middle * (scale.size - wanted);
    this.range(from, from + wanted - (scale.kind === "number" ? 1 : 0));
  }

  /** @param {number} part a share of the visible range; negative: earlier */
  pan(part) {
    const { scale } = this;
    if (!scale) return;
    const step = scale.size * part;
    this.range(scale.from + step, scale.to + step);
  }

  /** Show a range of the axis. @param {number} from @param {number} to in its values */
  range(from, to) {
    const { data, scale } = this;
    if (!data || !scale) return;
    if (scale.kind === "time") {
      this.how.onRange(scale.written(from), scale.written(to));
      return;
    }
    const size = to - from;
    const last = Math.min(data.newest, Math.max(to, this.least + size));
    this.how.onRange(scale.written(Math.max(this.least, last - size)), scale.written(last));
  }

  /** Show a range of decisions. @param {number} first @param {number} last */
  showDecisions(first, last) {
    const { scale } = this;
    if (!scale) return;
    if (scale.kind === "number") this.range(first, last);
    else this.range(scale.from + scale.partOf(first) * scale.size, scale.from + scale.partOf(last + 1) * scale.size);
  }
}
