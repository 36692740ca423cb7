// A text area with line numbers, marks at the lines with problems, and a Tab key that indents. The text is kept in
// this browser tab until it is applied or reverted, so that no error loses it.

import { draw, h, debounce } from "./dom.js";

/** @typedef {{ line?: number, message: string }} Mark */

const KEEP = "bayplan.draft.";
const PAUSE = 200;

export class Editor {
  /**
   * @param {{ label: string, key: string, text: string, onChange: (text: string) => void, rows?: number, fresh?: boolean, hint?: string }} how
   *   key: the name of the draft in the storage. fresh: start from `text` even if there is a draft. onChange: called after a pause.
   */
  constructor(how) {
    this.how = how;
    this.original = how.text;
    const draft = how.fresh ? null : sessionStorage.getItem(KEEP + how.key);
    this.restored = draft !== null && draft !== how.text;
    /** @type {Mark[]} */
    this.marks = [];
    this.drawn = "";
    this.gutter = h("div", { class: "editor-gutter", "aria-hidden": "true" });
    const changed = debounce(PAUSE, () => how.onChange(this.text));
    this.area = h("textarea", {
      class: "editor-text",
      spellcheck: "false",
      autocomplete: "off",
      autocapitalize: "off",
      wrap: "off",
      "aria-label": how.label,
      "data-test": "editor",
      value: draft ?? how.text,
      placeholder: how.hint ?? null,
      oninput: () => {
        this.keep();
        this.drawGutter();
        changed();
      },
      onscroll: () => this.follow(),
      onkeydown: (/** @type {KeyboardEvent} */ event) => this.key(event),
    });
    this.element = h(
      "div",
      { class: "editor", own: true, style: { "--lines": String(how.rows ?? 24) } },
      this.gutter,
      this.area,
    );
    this.drawGutter();
  }

  get text() {
    return this.area.value;
  }

  /** Whether the text differs from the original one. */
  get changed() {
    return this.text !== this.original;
  }

  keep() {
    try {
      if (this.changed) sessionStorage.setItem(KEEP + this.how.key, this.text);
      else sessionStorage.removeItem(KEEP + this.how.key);
    } catch {
      // The text exceeds the storage quota; it stays in the field.
    }
  }

  /** Replace the text and its original, after applying or reverting. @param {string} text */
  set(text) {
    this.original = text;
    this.area.value = text;
    this.keep();
    this.mark([]);
  }

  /** Show problems at their lines. @param {Mark[]} marks */
  mark(marks) {
    this.marks = marks;
    this.area.setAttribute("aria-invalid", String(marks.length > 0));
    this.drawGutter();
  }

  drawGutter() {
    const lines = this.text.split("\n").length;
    const at = new Map(this.marks.filter((mark) => mark.line).map((mark) => [mark.line, mark.message]));
    const state = `${lines} ${JSON.stringify([...at])}`;
    if (state === this.drawn) return;
    this.drawn = state;
    draw(
      this.gutter,
      h(
        "div",
        { class: "editor-lines" },
        Array.from({ length: lines }, (_, index) => {
          const message = at.get(index + 1);
          return h(
            "div",
            { class: message ? "bad" : null, title: message ?? null },
            message ? h("span", { class: "editor-mark" }, "✕") : null,
            String(index + 1),
          );
        }),
      ),
    );
    this.follow();
  }

  follow() {
    const lines = /** @type {HTMLElement | null} */ (this.gutter.firstElementChild);
    if (lines) lines.style.transform = `translateY(${-this.area.scrollTop}px)`;
  }

  /** Select a line and scroll to it. @param {number} line from 1 */
  show(line) {
    const lines = this.text.split("\n");
    const start = lines.slice(0, line - 1).reduce((sum, each) => sum + each.length + 1, 0);
    this.area.focus();
    this.area.setSelectionRange(start, start + (lines[line - 1]?.length ?? 0));
    const height = Number.parseFloat(getComputedStyle(this.area).lineHeight) || 18;
    this.area.scrollTop = Math.max(0, (line - 6) * height);
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    if (event.key !== "Tab" || event.ctrlKey || event.altKey || event.metaKey) return;
    // Shift+Tab leaves the field, so that keyboard users are not trapped in it.
    if (event.shiftKey) return;
    event.preventDefault();
    this.area.setRangeText("  ", this.area.selectionStart, this.area.selectionEnd, "end");
    this.area.dispatchEvent(new Event("input"));
  }
}

/**
 * The list of problems; a click on one selects its line in the editor.
 * @param {import("./service.js").Problem[]} problems @param {Editor} editor
 */
export function problemList(problems, editor) {
  return h(
    "ul",
    { class: "problems", "data-test": "problems" },
    problems.map((problem) => {
      const where = [problem.line ? `line ${problem.line}` : "", problem.path ?? ""].filter(Boolean).join(", ");
      return h(
        "li",
        null,
        h(
          "button",
          { type: "button", class: "problem", onclick: () => problem.line && editor.show(problem.line) },
          h("span", { class: "problem-where" }, "✕ ", where || "text"),
          h("span", null, problem.message),
          problem.hint ? h("span", { class: "faint" }, `try: ${problem.hint}`) : null,
        ),
      );
    }),
  );
}
