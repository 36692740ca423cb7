// The axis of the timeline: decisions by number or by time. It maps values to positions and says where ticks are.

import { count } from "./format.js";

/** @typedef {"time" | "number"} AxisKind */

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
/** Distances between ticks on the time axis, in milliseconds. */
const TIME_STEPS = [
  1, 2, 5, 10, 20, 50, 100, 200, 500, SECOND, 2 * SECOND, 5 * SECOND, 10 * SECOND, 15 * SECOND, 30 * SECOND, MINUTE,
  2 * MINUTE, 5 * MINUTE, 10 * MINUTE, 15 * MINUTE, 30 * MINUTE, HOUR, 2 * HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR, DAY,
  2 * DAY, 7 * DAY, 30 * DAY,
];
/** The shortest ranges that can be shown, in decisions and in milliseconds. */
const SHORTEST = { number: 10, time: 20 };
const NARROW_WINDOW = 600;

/** The width of the names of rows, in pixels. It has room for node names. */
export function labelWidth() {
  return innerWidth < NARROW_WINDOW ? 126 : 190;
}

/** The visible range, in decision numbers or in milliseconds since 1970. */
export class Scale {
  /** @param {AxisKind} kind @param {Api.Density} data */
  constructor(kind, data) {
    this.kind = kind;
    this.data = data;
    this.from = kind === "time" ? Date.parse(data.from_at) : data.from;
    this.to = kind === "time" ? Date.parse(data.to_at) : data.to;
  }

  /** The length of the visible range. */
  get size() {
    return Math.max(1, this.to - this.from + (this.kind === "number" ? 1 : 0));
  }

  get shortest() {
    return SHORTEST[this.kind];
  }

  /** The position of a value in the range, from 0 to 1. @param {number} value */
  part(value) {
    return (value - this.from) / this.size;
  }

  /** The position where a decision begins, from 0 to 1. @param {number} number */
  partOf(number) {
    if (this.kind === "number") return this.part(number);
    const { numbers } = this.data;
    let bin = numbers.findIndex((first) => first > number) - 1;
    if (bin < -1) bin = number > this.data.to ? numbers.length : numbers.length - 1;
    return Math.max(0, bin) / Math.max(1, numbers.length);
  }

  /** The number of the decision at a position. @param {number} part from 0 to 1 */
  numberAt(part) {
    const { data } = this;
    const at =
      this.kind === "number"
        ? Math.floor(this.from + part * this.size)
        : data.numbers[Math.max(0, Math.min(data.numbers.length - 1, Math.floor(part * data.numbers.length)))];
    return Math.max(data.from, Math.min(data.to, at));
  }

  /** The ticks with their labels. @param {number} most how many have room @returns {{ part: number, text: string }[]} */
  ticks(most) {
    const rough = this.size / Math.max(1, most);
    const step = this.kind === "time" ? timeStep(rough) : numberStep(rough);
    const found = [];
    for (let at = Math.ceil(this.from / step) * step; at <= this.to; at += step)
      found.push({ part: this.part(at), text: this.kind === "time" ? timeText(at, step) : count(at) });
    return found;
  }

  /** A value of this axis as it is written in an address. @param {number} value */
  written(value) {
    return this.kind === "time" ? new Date(Math.round(value)).toISOString() : Math.round(value);
  }
}

/** @param {number} rough */
function timeStep(rough) {
  return TIME_STEPS.find((step) => step >= rough) ?? Math.ceil(rough / (30 * DAY)) * 30 * DAY;
}

/** @param {number} rough */
function numberStep(rough) {
  const power = 10 ** Math.floor(Math.log10(Math.max(1, rough)));
  return Math.max(1, [1, 2, 5, 10].map((each) => each * power).find((each) => each >= rough) ?? power * 10);
}

/** @param {number} at @param {number} step */
function timeText(at, step) {
  const text = new Date(at).toISOString();
  if (step >= DAY) return text.slice(5, 10);
  if (step >= MINUTE) return at % DAY ? text.slice(11, 16) : text.slice(5, 10);
  return step >= SECOND ? text.slice(11, 19) : text.slice(14, 23);
}
