// The timeline: lanes of what happened, in the order of decisions, on a canvas. Over some thousands of marks a lane is a
// density per pixel. Keys as in Perfetto: w and s closer and farther, a and d earlier and later; a drag measures.

import { sized, whenLooksChange } from "./canvas.js";
import { beforePaint, h, stamp, token } from "./dom.js";
import { count } from "./format.js";

const LABEL = 104;
const LANE = 34;
const TOP = 20;
const NEAREST = 10;
const RIGHT = 8;

/** @typedef {{ key: string, label: string, parts: { key: keyof Api.DensityLanes, tone: string, words: string }[] }} Lane */
/** @type {Lane[]} */
export const LANES = [
  {
    key: "decisions",
    label: "Decisions",
    parts: [
      { key: "scheduled", tone: "ok", words: "scheduled" },
      { key: "waits", tone: "wait", words: "wait" },
      { key: "error", tone: "bad", words: "errors" },
    ],
  },
  { key: "nodes", label: "Node events", parts: [{ key: "nodes", tone: "ink2", words: "node events" }] },
  { key: "preemptions", label: "Preemptions", parts: [{ key: "preemptions", tone: "bad", words: "preemptions" }] },
];

/** @typedef {Api.Density} Density */

export class Lanes {
  /**
   * @param {{ signal: AbortSignal, onRange: (from: number, to: number) => void, onPick: (number: number) => void, onSelect: (from: number, to: number) => void, onOpen: () => void }} how
   */
  constructor(how) {
    this.how = how;
    /** @type {Density | null} */
    this.data = null;
    this.picked = 0;
    /** @type {[number, number] | null} */
    this.selection = null;
    this.from = 0;
    this.to = 0;
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
    whenLooksChange(this.element, () => this.resize(), how.signal);
  }

  /** The oldest decision that is known. */
  get least() {
    return Math.max(0, this.data?.oldest ?? 0);
  }

  /** How many bins to ask for. */
  get bins() {
    return Math.max(50, Math.min(1200, Math.floor((this.element.clientWidth - LABEL) / 2) || 400));
  }

  /** @param {Density} data */
  show(data) {
    this.data = data;
    this.from = data.from;
    this.to = data.to;
    this.canvas.setAttribute(
      "aria-label",
      `Decisions ${count(data.from)} to ${count(data.to)} of ${count(data.newest)}: ${LANES.flatMap(
        (lane) => lane.parts,
      )
        .map((part) => `${count(data.lanes[part.key].reduce((sum, each) => sum + each, 0))} ${part.words}`)
        .join(", ")}`,
    );
    this.resize();
  }

  /** @param {number} picked @param {[number, number] | null} selection */
  pick(picked, selection) {
    this.picked = picked;
    this.selection = selection;
    beforePaint(this.paint);
  }

  resize() {
    const width = this.element.clientWidth;
    if (!width) return;
    const height = TOP + LANES.length * LANE + 6;
    sized(this.canvas, width, height);
    this.width = width;
    beforePaint(this.paint);
  }

  /** @param {number} number */
  x(number) {
    return LABEL + ((number - this.from) / Math.max(1, this.to - this.from + 1)) * ((this.width ?? 0) - LABEL - RIGHT);
  }

  /** @param {MouseEvent} event */
  numberAt(event) {
    const box = this.canvas.getBoundingClientRect();
    const part = (event.clientX - box.left - LABEL) / Math.max(1, box.width - LABEL - RIGHT);
    return Math.max(this.from, Math.min(this.to, Math.floor(this.from + part * (this.to - this.from + 1))));
  }

  paint() {
    const pen = this.canvas.getContext("2d");
    const { data } = this;
    if (!pen || !data || this.how.signal.aborted) return;
    const scale = devicePixelRatio || 1;
    const width = this.width ?? 0;
    const height = TOP + LANES.length * LANE + 6;
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
      ...LANES.flatMap((lane) => lane.parts)
        .filter((part) => lane0(part.key))
        .flatMap((part) => data.lanes[part.key]),
    );
    for (const [index, lane] of LANES.entries()) {
      const base = TOP + (index + 1) * LANE - 4;
      pen.fillStyle = token("ink");
      pen.fillText(lane.label, 0, base - LANE / 2 + 4);
      pen.fillStyle = token("line");
      pen.fillRect(LABEL, base, width - LABEL, 1);
      const stacked = new Array(data.bins).fill(0);
      const top = index === 0 ? most : Math.max(1, ...lane.parts.flatMap((part) => data.lanes[part.key]));
      for (const part of lane.parts) this.bars(pen, data.lanes[part.key], stacked, top, base, part.tone);
    }
    if (this.picked >= this.from && this.picked <= this.to) {
      const middle = (this.x(this.picked) + this.x(this.picked + 1)) / 2;
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
      return LANES[0].parts.some((part) => part.key === key);
    }
  }

  /** @param {CanvasRenderingContext2D} pen @param {number[]} values @param {number[]} stacked @param {number} most @param {number} base @param {string} tone */
  bars(pen, values, stacked, most, base, tone) {
    const width = ((this.width ?? 0) - LABEL - RIGHT) / Math.max(1, values.length);
    const bar = Math.max(1, Math.min(width - (width > 3 ? 1 : 0), 8));
    pen.fillStyle = token(tone);
    for (const [bin, value] of values.entries()) {
      if (!value) continue;
      const height = Math.max(3, (value / most) * (LANE - 12));
      pen.fillRect(LABEL + bin * width + (width - bar) / 2, base - stacked[bin] - height, bar, height);
      stacked[bin] += height + (tone === "bad" ? 0 : 0.5);
    }
  }

  /** @param {CanvasRenderingContext2D} pen @param {number} width */
  axis(pen, width) {
    const size = this.to - this.from + 1;
    const rough = size / Math.max(2, (width - LABEL) / 110);
    const power = 10 ** Math.floor(Math.log10(Math.max(1, rough)));
    const step = Math.max(1, [1, 2, 5, 10].map((each) => each * power).find((each) => each >= rough) ?? power * 10);
    pen.fillStyle = token("ink2");
    pen.fillText("No.", 0, 8);
    for (let at = Math.ceil(this.from / step) * step; at <= this.to; at += step) {
      const x = this.x(at);
      const text = count(at);
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
    if (event.ctrlKey) this.zoom(event.deltaY > 0 ? 1.5 : 1 / 1.5, this.numberAt(event));
    else this.pan(event.deltaY > 0 ? 0.2 : -0.2);
  }

  /** @param {number} factor below 1: closer @param {number} [around] */
  zoom(factor, around) {
    if (!this.data) return;
    const size = this.to - this.from + 1;
    const wanted = Math.max(NEAREST, Math.min(this.data.newest, Math.round(size * factor)));
    const middle =
      around ?? (this.picked >= this.from && this.picked <= this.to ? this.picked : (this.from + this.to) / 2);
    const from = Math.round(middle - ((middle - this.from) / size) * wanted);
    this.range(from, from + wanted - 1);
  }

  /** @param {number} part of what is in sight; below 0: earlier */
  pan(part) {
    const step = Math.round((this.to - this.from + 1) * part);
    this.range(this.from + step, this.to + step);
  }

  /** @param {number} from @param {number} to */
  range(from, to) {
    if (!this.data) return;
    const size = to - from;
    const last = Math.min(this.data.newest, Math.max(to, this.least + size));
    this.how.onRange(Math.max(this.least, last - size), last);
  }
}
