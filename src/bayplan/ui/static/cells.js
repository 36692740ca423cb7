// The heat map: a canvas with one cell per node, sized so that all cells fit. No state is shown by colour alone: full
// nodes also have a notch, cordoned ones are hatched, and those that are not ready have a cross.

import { resizeForScreen, onResizeOrThemeChange } from "./canvas.js";
import { beforePaint, h, stamp, token } from "./dom.js";
import { count, counted } from "./format.js";

const LARGEST = 22;
const SMALLEST = 6;
const LABEL = 112;
const SMALL_LABEL = 104;
/** The left margin of the labels, so that the focus outline does not touch them. */
const INSET = 4;
const GROUP_GAP = 10;
const CORDONED = 1;
const NOT_READY = 2;
const FULL = 101;
const NOTHING = 255;
const STEPS = 5;

/** @typedef {{ name: string, nodes: string[], cells: number[], flags: number[] }} Group */
/** @typedef {{ x: number, y: number, group: number, at: number }} Spot */

export class Cells {
  /**
   * @param {{ signal: AbortSignal, onSelect: (name: string) => void, onOpen: (name: string) => void, height: () => number, small?: boolean }} how
   */
  constructor(how) {
    this.how = how;
    /** @type {Group[]} */
    this.groups = [];
    /** @type {Map<string, Spot>} */
    this.spots = new Map();
    /** @type {string[][]} */
    this.rows = [];
    /** @type {{ y: number, name: string, size: number }[]} */
    this.labels = [];
    this.cell = LARGEST;
    this.selected = "";
    this.hovered = "";
    /** @type {Map<string, { shade: number | null }> | null} */
    this.fit = null;
    this.canvas = h("canvas", {
      class: "cells-canvas",
      tabindex: 0,
      role: "img",
      "data-test": "cells",
      onpointermove: (/** @type {PointerEvent} */ event) => this.hover(this.at(event), event),
      onpointerleave: () => this.hover("", null),
      onclick: (/** @type {PointerEvent} */ event) => this.choose(this.at(event)),
      ondblclick: (/** @type {PointerEvent} */ event) => {
        const name = this.at(event);
        if (name) how.onOpen(name);
      },
      onkeydown: (/** @type {KeyboardEvent} */ event) => this.key(event),
    });
    this.tip = h("div", { class: "tip", hidden: true });
    this.element = h("div", { class: "cells", own: true }, this.canvas, this.tip);
    this.paint = this.paint.bind(this);
    onResizeOrThemeChange(this.element, () => this.layout(), how.signal);
  }

  /** Show groups of nodes. @param {Group[]} groups */
  show(groups) {
    this.groups = groups;
    this.layout();
  }

  /** Update changed cells. @param {{ names: string[], cells: number[], flags: number[] }} changed */
  update(changed) {
    for (const [index, name] of changed.names.entries()) {
      const spot = this.spots.get(name);
      if (!spot) continue;
      this.groups[spot.group].cells[spot.at] = changed.cells[index];
      this.groups[spot.group].flags[spot.at] = changed.flags[index];
      this.touch(name);
    }
  }

  /** @type {Set<string> | null} the nodes to draw again; null for all */
  #dirty = null;

  /**
   * Colour the cells by whether a pod fits: shade from 0 to 1, null where it does not fit.
   * @param {Map<string, { shade: number | null }> | null} fit
   */
  showFit(fit) {
    this.fit = fit;
    this.repaint();
  }

  repaint() {
    this.#dirty = null;
    beforePaint(this.paint);
  }

  layout() {
    const width = this.element.clientWidth;
    if (!width || !this.groups.length) return;
    const label = this.how.small ? SMALL_LABEL : LABEL;
    const room = this.how.height();
    let cell = LARGEST;
    for (; cell > SMALLEST; cell -= 1) if (this.heightFor(cell, width - label) <= room) break;
    this.cell = cell;
    const columns = Math.max(1, Math.floor((width - label) / cell));
    this.spots.clear();
    this.rows = [];
    this.labels = [];
    let y = 0;
    for (const [group, { nodes, name }] of this.groups.entries()) {
      this.labels.push({ y, name, size: nodes.length });
      for (let at = 0; at < nodes.length; at += columns) this.rows.push(nodes.slice(at, at + columns));
      for (const [at, node] of nodes.entries())
        this.spots.set(node, { x: label + (at % columns) * cell, y: y + Math.floor(at / columns) * cell, group, at });
      y += Math.max(Math.ceil(nodes.length / columns) * cell, 16) + GROUP_GAP;
    }
    const height = Math.max(cell, y - GROUP_GAP + 2);
    resizeForScreen(this.canvas, width, height);
    this.describe();
    this.repaint();
  }

  /** @param {number} cell @param {number} width */
  heightFor(cell, width) {
    const columns = Math.max(1, Math.floor(width / cell));
    return this.groups.reduce(
      (sum, group) => sum + Math.max(Math.ceil(group.nodes.length / columns) * cell, 16) + GROUP_GAP,
      0,
    );
  }

  describe() {
    let full = 0;
    let cordoned = 0;
    let bad = 0;
    for (const group of this.groups) {
      for (const [at, value] of group.cells.entries()) {
        full += Number(value === FULL);
        cordoned += Number((group.flags[at] & CORDONED) > 0);
        bad += Number((group.flags[at] & NOT_READY) > 0);
      }
    }
    this.canvas.setAttribute(
      "aria-label",
      `Heat map of ${counted(this.spots.size, "node")} in ${counted(this.groups.length, "group")}: ${full} full, ${cordoned} cordoned, ${bad} not ready. Arrow keys choose a node. The table below has the same nodes.`,
    );
  }

  colours() {
    return {
      heat: Array.from({ length: STEPS }, (_, step) => token(`heat${step}`)),
      full: token("full"),
      notch: token("panel"),
      ink: token("ink"),
      faint: token("ink2"),
      bad: token("bad"),
      accent: token("accent"),
      line: token("line"),
      score: token("score"),
    };
  }

  paint() {
    const pen = this.canvas.getContext("2d");
    if (!pen || !this.groups.length || this.how.signal.aborted) return;
    const scale = devicePixelRatio || 1;
    pen.setTransform(scale, 0, 0, scale, 0, 0);
    const colours = this.colours();
    if (this.#dirty) {
      for (const name of this.#dirty) this.paintCell(pen, name, colours);
    } else {
      pen.clearRect(0, 0, this.canvas.width, this.canvas.height);
      pen.textBaseline = "top";
      for (const { y, name, size } of this.labels) {
        pen.font = "12px system-ui, sans-serif";
        pen.fillStyle = colours.ink;
        const shown = name || "no value";
        pen.fillText(fitting(pen, shown, (this.how.small ? SMALL_LABEL : LABEL) - 2 * INSET), INSET, y + 1);
        pen.fillStyle = colours.faint;
        if (!this.how.small) pen.fillText(count(size), INSET, y + 16);
      }
      for (const name of this.spots.keys()) this.paintCell(pen, name, colours);
    }
    this.#dirty = new Set();
    stamp("cells painted");
  }

  /** @param {CanvasRenderingContext2D} pen @param {string} name @param {ReturnType<Cells["colours"]>} colours */
  paintCell(pen, name, colours) {
    const spot = this.spots.get(name);
    if (!spot) return;
    const group = this.groups[spot.group];
    const value = group.cells[spot.at];
    const flags = group.flags[spot.at];
    const gap = this.cell > 8 ? 1.5 : 1;
    const size = this.cell - gap;
    const { x, y } = spot;
    pen.clearRect(x - 0.5, y - 0.5, this.cell, this.cell);
    const fit = this.fit?.get(name);
    if (this.fit) {
      pen.fillStyle =
        fit && fit.shade !== null ? colours.score.replace("{n}", String(0.18 + 0.7 * fit.shade)) : colours.heat[0];
    } else
      pen.fillStyle =
        value === FULL
          ? colours.full
          : value === NOTHING
            ? colours.notch
            : colours.heat[Math.min(STEPS - 1, Math.floor(value / 20))];
    pen.fillRect(x, y, size, size);
    pen.lineWidth = 1;
    if (fit && fit.shade === null) this.cross(pen, x, y, size, colours.faint);
    if (!this.fit && value === NOTHING) {
      pen.strokeStyle = colours.line;
      pen.strokeRect(x + 0.5, y + 0.5, size - 1, size - 1);
    }
    if (!this.fit && value === FULL) {
      // Full nodes also have a notch, so that they differ not only in colour.
      pen.fillStyle = colours.notch;
      const notch = Math.max(2, size / 3);
      pen.beginPath();
      pen.moveTo(x + size - notch, y);
      pen.lineTo(x + size, y);
      pen.lineTo(x + size, y + notch);
      pen.fill();
    }
    if (flags & CORDONED) this.hatch(pen, x, y, size, colours.ink);
    if (flags & NOT_READY) {
      this.cross(pen, x, y, size, colours.bad);
      pen.strokeStyle = colours.bad;
      pen.strokeRect(x + 0.5, y + 0.5, size - 1, size - 1);
    }
    if (name === this.selected || name === this.hovered) {
      pen.strokeStyle = name === this.selected ? colours.accent : colours.ink;
      pen.lineWidth = 2;
      pen.strokeRect(x + 0.5, y + 0.5, size - 1, size - 1);
    }
  }

  /** @param {CanvasRenderingContext2D} pen @param {number} x @param {number} y @param {number} size @param {string} colour */
  hatch(pen, x, y, size, colour) {
    pen.strokeStyle = colour;
    pen.beginPath();
    for (let at = 3; at < 2 * size; at += 4) {
      pen.moveTo(x + Math.min(at, size), y + Math.max(0, at - size));
      pen.lineTo(x + Math.max(0, at - size), y + Math.min(at, size));
    }
    pen.stroke();
  }

  /** @param {CanvasRenderingContext2D} pen @param {number} x @param {number} y @param {number} size @param {string} colour */
  cross(pen, x, y, size, colour) {
    pen.strokeStyle = colour;
    pen.beginPath();
    pen.moveTo(x + 1.5, y + 1.5);
    pen.lineTo(x + size - 1.5, y + size - 1.5);
    pen.moveTo(x + size - 1.5, y + 1.5);
    pen.lineTo(x + 1.5, y + size - 1.5);
    pen.stroke();
  }

  /** The node under the pointer; "" if there is none. @param {MouseEvent} event */
  at(event) {
    const box = this.canvas.getBoundingClientRect();
    const x = event.clientX - box.left;
    const y = event.clientY - box.top;
    for (const row of this.rows) {
      const first = /** @type {Spot} */ (this.spots.get(row[0]));
      if (y < first.y || y >= first.y + this.cell) continue;
      return row[Math.floor((x - first.x) / this.cell)] ?? "";
    }
    return "";
  }

  /** @param {string} name @param {PointerEvent | null} event */
  hover(name, event) {
    if (name !== this.hovered) {
      this.touch(this.hovered, name);
      this.hovered = name;
      this.canvas.style.cursor = name ? "pointer" : "";
    }
    this.tip.hidden = !name;
    if (!name || !event) return;
    this.tip.textContent = this.tooltipText(name);
    const box = this.element.getBoundingClientRect();
    const left = event.clientX - box.left;
    this.tip.style.left = `${Math.max(0, Math.min(left + 12, box.width - this.tip.offsetWidth))}px`;
    this.tip.style.top = `${event.clientY - box.top + 16}px`;
  }

  /** @param {string} name */
  tooltipText(name) {
    const spot = /** @type {Spot} */ (this.spots.get(name));
    const group = this.groups[spot.group];
    const value = group.cells[spot.at];
    const flags = group.flags[spot.at];
    const verdict = this.fit?.get(name);
    const fit = !this.fit ? "" : !verdict ? " · not evaluated" : verdict.shade === null ? " · does not fit" : " · fits";
    return `${name} · ${value === FULL ? "full" : value === NOTHING ? "has none of it" : `${value} %`}${flags & CORDONED ? " · cordoned" : ""}${flags & NOT_READY ? " · not ready" : ""}${fit}`;
  }

  /** Draw the cells of some nodes again. @param {...string} names */
  touch(...names) {
    if (this.#dirty) for (const name of names) this.#dirty.add(name);
    beforePaint(this.paint);
  }

  /** @param {string} name */
  choose(name) {
    if (!name) return;
    this.select(name);
    this.how.onSelect(name);
  }

  /** @param {string} name */
  select(name) {
    this.touch(this.selected, name);
    this.selected = name;
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const spot = this.spots.get(this.selected);
    if (event.key === "Enter" && this.selected) this.how.onOpen(this.selected);
    else if (/^Arrow/.test(event.key)) {
      if (!spot) this.choose(this.rows[0]?.[0] ?? "");
      else {
        const row = this.rows.findIndex((names) => names.includes(this.selected));
        const column = this.rows[row].indexOf(this.selected);
        const [down, right] = { ArrowDown: [1, 0], ArrowUp: [-1, 0], ArrowRight: [0, 1], ArrowLeft: [0, -1] }[
          event.key
        ] ?? [0, 0];
        const next = this.rows[Math.max(0, Math.min(this.rows.length - 1, row + down))];
        this.choose(next[Math.max(0, Math.min(next.length - 1, column + right))]);
      }
    } else return;
    event.preventDefault();
    event.stopPropagation();
  }
}

/** A text without its middle, if it is wider than `room`: zones and pools differ at the end. @param {CanvasRenderingContext2D} pen @param {string} text @param {number} room */
function fitting(pen, text, room) {
  let shown = text;
  for (let kept = text.length - 1; kept > 3 && pen.measureText(shown).width > room; kept -= 1) {
    const tail = Math.ceil(kept / 2);
    shown = `${text.slice(0, kept - tail)}…${text.slice(-tail)}`;
  }
  return shown;
}
