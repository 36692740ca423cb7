// Create objects of any kind, from a template or any YAML. The server checks the text while it is edited; errors are
// marked in it.

import { draw, h } from "../dom.js";
import { count, counted } from "../format.js";
import { change, podAddress, to } from "../address.js";
import { get, call } from "../service.js";
import { podOf } from "../parts.js";
import { errorFacts, failure, problemsOf } from "../loading_states.js";
import { Editor, problemList } from "../editor.js";
import { TEMPLATES } from "../templates.js";
import { title } from "../shell.js";

const MAX_SHOWN = 50;
const MAX_COUNT = 10_000;

/** @param {import("../main.js").Page} page */
export async function open({ place, root, signal }) {
  title("Create");
  const { query } = place;
  const kind = query.get("kind") ?? "Pod";
  let template =
    TEMPLATES.find((each) => each.name === query.get("template")) ??
    TEMPLATES.find((each) => each.kind === kind) ??
    TEMPLATES[0];
  let text = template.text;
  const like = query.get("like");
  if (like) text = (await likeText(like, signal)) ?? text;
  const key = like ? `new.${like}` : `new.${template.name}`;
  const view = new CreateView(root, template, text, key, Number(query.get("count")) || 1, Boolean(like), signal);
  return (/** @type {import("../address.js").Place} */ next) => {
    template =
      TEMPLATES.find((each) => each.name === next.query.get("template")) ??
      TEMPLATES.find((each) => each.kind === next.query.get("kind")) ??
      template;
    view.take(template);
  };
}

/** The YAML of an existing pod, as a template for new ones. @param {string} key @param {AbortSignal} signal */
async function likeText(key, signal) {
  try {
    const pod = podOf(key);
    const data = await get("/pods/{namespace}/{name}", pod, signal);
    return asTemplate(data.manifest_text, pod.name);
  } catch {
    return null;
  }
}

/**
 * Leave out fields that the server sets (status, uid, node and more), and add a placeholder for a number to the name.
 * @param {string} text @param {string} name
 */
function asTemplate(text, name) {
  /** @type {string[]} */
  const kept = [];
  let skip = -1;
  for (const line of text.split("\n")) {
    const indent = line.search(/\S/);
    if (skip >= 0 && (indent > skip || (indent === skip && line.trim().startsWith("- ")))) continue;
    skip = -1;
    if (
      /^(status| {2}(uid|resourceVersion|creationTimestamp|generation|managedFields|ownerReferences|selfLink|nodeName|generateName)):/.test(
        line,
      )
    ) {
      skip = indent;
      continue;
    }
    kept.push(line === `  name: ${name}` ? `  name: ${name}-{n}` : line);
  }
  return kept.join("\n");
}

class CreateView {
  /** @param {HTMLElement} root @param {import("../templates.js").Template} template @param {string} text @param {string} key @param {number} amount @param {boolean} like @param {AbortSignal} signal */
  constructor(root, template, text, key, amount, like, signal) {
    this.template = template;
    this.signal = signal;
    this.amount = amount;
    this.like = like;
    /** @type {Api.Applied | null} */
    this.checked = null;
    /** @type {Api.Applied | null} */
    this.result = null;
    /** @type {unknown} */
    this.problem = null;
    this.checks = 0;
    root.classList.add("full-height");
    this.head = h("div", null);
    this.tools = h("div", null);
    this.place = h("div", { class: "editor-place" });
    this.side = h("section", { class: "panel side-panel", "aria-label": "Preview" });
    root.append(this.head, this.tools, h("div", { class: "split" }, this.place, this.side));
    this.makeEditor(key, text);
    const drop = (/** @type {DragEvent} */ event) => this.dropped(event);
    root.addEventListener("dragover", (event) => event.preventDefault());
    root.addEventListener("drop", drop);
  }

  /** @param {string} key @param {string} text */
  makeEditor(key, text) {
    this.editor = new Editor({ label: "Objects in YAML or JSON", key, text, onChange: () => void this.check() });
    this.place.replaceChildren(this.editor.element);
    this.checked = null;
    this.result = null;
    this.drawAll();
    void this.check();
  }

  /** @param {import("../templates.js").Template} template */
  take(template) {
    if (template === this.template) return;
    this.template = template;
    this.makeEditor(`new.${template.name}`, template.text);
  }

  /** @param {DragEvent} event */
  async dropped(event) {
    const files = [...(event.dataTransfer?.files ?? [])];
    if (!files.length) return;
    event.preventDefault();
    const texts = await Promise.all(files.map((file) => file.text()));
    if (!this.editor) return;
    this.editor.area.value = texts.join("\n---\n");
    this.editor.keep();
    this.editor.drawGutter();
    void this.check();
  }

  /** The request for the current text. @param {boolean} dry */
  request(dry) {
    const { text = "" } = this.editor ?? {};
    // A count is for texts with a placeholder for the number; other texts are one object. For a check, one copy is
    // enough: the others differ only in their number.
    return { text, dry_run: dry, count: /\{n\}/.test(text) ? (dry ? 1 : this.amount) : undefined };
  }

  /** The number of objects that would be created. */
  wanted() {
    const copies = /\{n\}/.test(this.editor?.text ?? "") ? this.amount : 1;
    return (this.checked?.items.length ?? 0) * copies;
  }

  async check() {
    const mine = ++this.checks;
    this.result = null;
    try {
      const answer = await call("POST /apply", {}, this.request(true));
      if (mine !== this.checks || this.signal.aborted) return;
      this.accept(answer, true);
    } catch (problem) {
      if (mine === this.checks && !this.signal.aborted) this.failed(problem);
    }
  }

  async create() {
    this.checks += 1;
    try {
      const answer = await call("POST /apply", {}, this.request(false));
      this.accept(answer, false);
      if (!answer.refused) sessionStorage.removeItem(`bayplan.draft.${this.editor?.how.key}`);
    } catch (problem) {
      this.failed(problem);
    }
  }

  /** @param {Api.Applied} answer @param {boolean} dry */
  accept(answer, dry) {
    this.problem = null;
    if (dry) this.checked = answer;
    else this.result = answer;
    this.editor?.mark(problemsIn(answer));
    this.drawAll();
  }

  /** @param {unknown} problem */
  failed(problem) {
    this.problem = problem;
    this.checked = null;
    const { where = "", what, problems } = errorFacts(problem);
    const line = Number(/^text:(\d+)/.exec(where)?.[1] ?? 0);
    this.editor?.mark(problems ?? (line ? [{ line, message: what }] : []));
    this.drawAll();
  }

  drawAll() {
    const { checked, result, editor } = this;
    if (!editor) return;
    const refused = (result ?? checked)?.refused ?? 0;
    const many = this.wanted();
    const tooMany = many > MAX_COUNT && many > (checked?.items.length ?? 0);
    const ready = checked && !refused && !tooMany;
    const words = result
      ? `${counted(result.created, "object")} created${result.refused ? `, ${count(result.refused)} refused` : ""}`
      : ready
        ? `Create ${counted(many, "object")}`
        : tooMany && !refused
          ? `${counted(many, "object")} are too many at once: at most ${count(MAX_COUNT)}`
          : checked
            ? `${counted(refused, "object")} would be refused`
            : "Create objects";
    draw(
      this.head,
      h(
        "div",
        { class: "head" },
        h("h1", { class: "verdict", "data-test": "verdict" }, words),
        this.countField(editor),
        ...this.buttons(editor, Boolean(ready)),
      ),
    );
    this.drawTools();
    this.drawSide();
  }

  /** @param {Editor} editor */
  countField(editor) {
    return h(
      "label",
      { class: "check" },
      "count",
      h("input", {
        type: "number",
        class: "field number",
        min: 1,
        max: MAX_COUNT,
        value: String(this.amount),
        "aria-label": "Count",
        "data-test": "count",
        disabled: !/\{n\}/.test(editor.text),
        title: "{n} in the text becomes 1, 2, 3 …",
        oninput: (/** @type {Event} */ event) => this.setAmount(/** @type {HTMLInputElement} */ (event.target)),
      }),
    );
  }

  /** @param {Editor} editor @param {boolean} ready */
  buttons(editor, ready) {
    const reset = () => {
      editor.set(editor.original);
      void this.check();
    };
    return [
      h(
        "button",
        {
          type: "button",
          class: "button primary",
          "data-test": "create",
          disabled: !ready,
          title: ready ? null : "Fix the problems first",
          onclick: () => void this.create(),
        },
        "Create",
      ),
      h("button", { type: "button", class: "button", disabled: !editor.changed, onclick: reset }, "Reset"),
    ];
  }

  drawTools() {
    const kinds = [...new Set(TEMPLATES.map((each) => each.kind))];
    const button = (/** @type {import("../templates.js").Template} */ each) =>
      h(
        "button",
        {
          type: "button",
          key: each.name,
          "aria-pressed": String(!this.like && each === this.template),
          title: `${each.kind}: ${each.what}`,
          "data-value": each.name,
          onclick: () => this.choose(each),
        },
        label(each),
      );
    draw(
      this.tools,
      h(
        "div",
        { class: "tools" },
        h("span", { class: "tool-label" }, "template"),
        this.like ? h("span", { class: "chip" }, "like an existing pod") : null,
        kinds.map((kind) =>
          h(
            "span",
            { class: "choice", key: kind, role: "group", "aria-label": kind },
            TEMPLATES.filter((each) => each.kind === kind).map(button),
          ),
        ),
      ),
    );
  }

  /** @param {import("../templates.js").Template} template */
  choose(template) {
    this.like = false;
    change({ kind: template.kind, template: template.name, like: "" });
  }

  /** @param {HTMLInputElement} field */
  setAmount(field) {
    this.amount = Math.max(1, Math.min(MAX_COUNT, Number(field.value) || 1));
    void this.check();
  }

  drawSide() {
    const { problem, editor, result, checked } = this;
    if (!editor) return;
    if (problem) {
      const problems = problemsOf(problem);
      draw(
        this.side,
        h("h2", null, "Refused"),
        failure(problem, null),
        problems.length ? problemList(problems, editor) : null,
      );
      return;
    }
    const answer = result ?? checked;
    if (!answer) {
      draw(
        this.side,
        h("h2", null, "Validation"),
        h("p", { class: "faint" }, "Several documents are separated by a line with ---. Files can be dropped here."),
      );
      return;
    }
    const problems = problemsIn(answer);
    const total = result ? result.items.length : this.wanted();
    const shown = Math.min(answer.items.length, MAX_SHOWN);
    draw(
      this.side,
      h("h2", null, result ? "Created" : "Preview"),
      problems.length ? problemList(problems, editor) : null,
      h(
        "table",
        { class: "list", "data-test": "created" },
        h(
          "tbody",
          null,
          answer.items
            .slice(0, MAX_SHOWN)
            .map((item) =>
              h(
                "tr",
                { key: `${item.index}` },
                h(
                  "td",
                  { class: "tight" },
                  item.action === "refused"
                    ? h("span", { class: "badge bad" }, "✕ refused")
                    : h("span", { class: "badge ok" }, result ? "✓ created" : "✓ valid"),
                ),
                h("td", { class: "tight" }, item.kind),
                h("td", null, objectLink(item, Boolean(result))),
              ),
            ),
        ),
      ),
      total > shown ? h("p", { class: "faint" }, `and ${count(total - shown)} more`) : null,
      result && result.created
        ? h(
            "p",
            { class: "row" },
            h("a", { class: "button", href: to("pods", { sort: "-created_at" }) }, "Newest pods"),
            h("a", { class: "button", href: to("") }, "Overview"),
          )
        : null,
    );
  }
}

/** @param {import("../templates.js").Template} template */
function label(template) {
  return template.name.toLowerCase() === template.kind.toLowerCase() ||
    (template.kind !== "Pod" && template.kind !== "Node")
    ? template.kind
    : `${template.kind}: ${template.name}`;
}

/** The problems of refused objects, with their lines. @param {Api.Applied} answer */
function problemsIn(answer) {
  /** @type {import("../service.js").Problem[]} */
  const found = answer.items
    .filter((item) => item.action === "refused")
    .flatMap(({ problems, line, kind, name, message }) =>
      problems.length ? problems : [{ line, path: `${kind} ${name}`.trim(), message }],
    );
  // Fifty pods from one template have the same problem; it is shown once.
  return [...new Map(found.map((each) => [`${each.line} ${each.message}`, each])).values()];
}

/** @param {Api.AppliedItem} item @param {boolean} exists */
function objectLink(item, exists) {
  const words = `${item.namespace ? `${item.namespace}/` : ""}${item.name}`;
  if (!exists || item.action === "refused") return h("span", { class: "name" }, words);
  if (item.kind === "Pod") return h("a", { class: "name", href: podAddress(item) }, words);
  if (item.kind === "Node") return h("a", { class: "name", href: to("nodes", item.name) }, words);
  return h("span", { class: "name" }, words);
}
