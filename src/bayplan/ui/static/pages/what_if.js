// What if: choose changes of nodes, workloads or the configuration, and see what they would do. The cluster does not
// change.

import { draw, h } from "../dom.js";
import { count, sentence, time } from "../format.js";
import { change, go, to } from "../address.js";
import { get, call } from "../service.js";
import { showNotice } from "../notices.js";
import { dropNote, outdatedNote } from "../outdated.js";
import { chip, choice, copy, perform } from "../parts.js";
import { empty, failure, loading } from "../loading_states.js";
import { title } from "../shell.js";
import { AnswerPart } from "../what_if_answer.js";
import { ChangeForm, WHAT_IF_DRAFT, changeWords } from "../what_if_changes.js";

const SEPARATOR = "\n";

/** @param {import("../main.js").Page} page */
export function open({ place, root, signal }) {
  title("What if");
  root.classList.add("full-height");
  const view = new WhatIfView(root, place.query, signal);
  void view.load();
  return (/** @type {import("../address.js").Place} */ next) => {
    view.query = next.query;
    void view.load();
  };
}

class WhatIfView {
  /** @param {HTMLElement} root @param {URLSearchParams} query @param {AbortSignal} signal */
  constructor(root, query, signal) {
    this.query = query;
    this.signal = signal;
    this.head = h("div", null);
    this.builder = h("div", { class: "stack tight-stack" });
    this.result = h("div", { class: "stack answer-place" });
    this.form = new ChangeForm({ signal, add: (text) => this.add(text) });
    this.answer = new AnswerPart(signal);
    /** @type {Api.WhatIfReport | null} */
    this.report = null;
    /** @type {Api.WhatIfSummary[]} */
    this.kept = [];
    /** Some zones, for the first suggestions. @type {string[]} */
    this.zones = [];
    /** The question that the report answers. */
    this.asked = "";
    this.asking = new AbortController();
    signal.addEventListener("abort", () => this.asking.abort());
    this.outdated = h("div", { own: true });
    root.append(this.head, this.builder, this.outdated, this.result);
  }

  get changes() {
    return (this.query.get("changes") ?? "").split(SEPARATOR).filter(Boolean);
  }

  get config() {
    return this.query.get("config") ? sessionStorage.getItem(WHAT_IF_DRAFT) : null;
  }

  /** @returns {string[]} */
  get reschedule() {
    return (this.query.get("reschedule") ?? "").split(",").filter(Boolean);
  }

  get isEmpty() {
    return !this.changes.length && this.config === null;
  }

  /** @param {string} text */
  add(text) {
    if (this.changes.includes(text)) showNotice("wait", `${changeWords(text)} is there already.`);
    else change({ changes: [...this.changes, text].join(SEPARATOR), kept: "", kind: "" }, { push: true });
  }

  /** @param {string} text */
  remove(text) {
    change({ changes: this.changes.filter((each) => each !== text).join(SEPARATOR), kept: "", kind: "" }, { push: true });
  }

  async load() {
    const kept = this.query.get("kept") ?? "";
    const asked = JSON.stringify([kept, this.changes, this.reschedule, this.config]);
    this.drawBuilder();
    if (asked === this.asked && this.report) {
      this.drawResult();
      return;
    }
    this.asked = asked;
    this.asking.abort();
    this.asking = new AbortController();
    const { signal } = this.asking;
    try {
      this.kept = (await get("/what-if", {}, signal)).items;
      if (!kept && this.isEmpty) {
        this.report = null;
        this.zones = await zonesOf(signal);
      } else {
        if (!this.report) draw(this.result, loading(8));
        this.result.classList.add("dim");
        this.report = kept ? await get("/what-if/{id}", { id: kept }, signal) : await call("POST /what-if", {}, this.request(), signal);
      }
      if (signal.aborted) return;
      this.drawOutdated();
      this.drawResult();
    } catch (problem) {
      if (signal.aborted) return;
      this.report = null;
      this.drawOutdated();
      this.drawHead("What if");
      draw(this.result, failure(problem, () => this.again()));
    } finally {
      if (!signal.aborted) this.result.classList.remove("dim");
    }
  }

  /** Show a note when the cluster changes; a kept answer stays as it is. */
  drawOutdated() {
    const isCurrent = this.report && !this.report.id;
    if (!isCurrent) dropNote(this);
    this.outdated.replaceChildren(...(isCurrent ? [outdatedNote(this, () => this.again(), this.signal)] : []));
  }

  again() {
    this.asked = "";
    void this.load();
  }

  request() {
    return { changes: this.changes, config: this.config, reschedule: this.reschedule };
  }

  /** @param {string} words */
  drawHead(words) {
    const { report } = this;
    draw(
      this.head,
      h(
        "div",
        { class: "head" },
        h("h1", { class: `verdict${words.length > 130 ? " long" : ""}`, "data-test": "verdict" }, words),
        ...(report ? this.actions(report) : []),
      ),
    );
  }

  /** @param {Api.WhatIfReport} report */
  actions(report) {
    const button = (/** @type {string} */ text, /** @type {string} */ test, /** @type {() => void} */ onclick, look = "") =>
      h("button", { type: "button", class: `button ${look}`, "data-test": test, onclick, key: test }, text);
    const fork = report.fork ? h("a", { class: "button primary", "data-test": "open-fork", href: to("compare", { a: "now", b: report.fork }) }, "Open fork") : null;
    return [
      fork,
      report.id ? button("Run again", "again", () => this.runAgain(report)) : this.keepForm(),
      button("Download", "download", () => download(report)),
      button("Discard", "discard", () => void this.discard(report), "danger"),
      report.configuration === null ? button("Copy command", "command", () => void copy(commandOf(report), "Command"), "quiet") : null,
    ];
  }

  keepForm() {
    return h(
      "form",
      {
        class: "row",
        key: "keep",
        onsubmit: (/** @type {Event} */ event) => {
          event.preventDefault();
          const field = /** @type {Element} */ (event.currentTarget).querySelector("input");
          void this.keep(field?.value.trim() || this.changes.map(changeWords).join(", ").slice(0, 80));
        },
      },
      h("input", { class: "field", "aria-label": "Name of the fork", placeholder: "name of the fork", maxlength: 80, "data-test": "fork-name" }),
      h("button", { type: "submit", class: "button primary", "data-test": "keep", title: "Keep this answer, and a fork of the changed cluster" }, "Keep"),
    );
  }

  /** @param {string} name */
  async keep(name) {
    await perform("Keep", async () => {
      const report = await call("POST /what-if", {}, { ...this.request(), name, keep: true }, this.signal);
      change({ kept: report.id, changes: "", config: "", reschedule: "" }, { push: true });
      return `Kept as the fork ${name}.`;
    });
  }

  /** @param {Api.WhatIfReport} report */
  runAgain(report) {
    if (report.configuration !== null) sessionStorage.setItem(WHAT_IF_DRAFT, report.configuration);
    go(
      to("what-if", {
        changes: report.changes.filter((each) => each.includes("=")).join(SEPARATOR),
        reschedule: report.reschedule.join(","),
        config: report.configuration === null ? "" : "draft",
      }),
    );
  }

  /** @param {Api.WhatIfReport} report */
  async discard(report) {
    if (report.id) await perform("Discard", async () => void (await call("DELETE /what-if/{id}", { id: report.id })));
    sessionStorage.removeItem(WHAT_IF_DRAFT);
    this.report = null;
    go(to("what-if"));
  }

  drawBuilder() {
    const { changes, reschedule } = this;
    const mode = reschedule.includes("*") ? "*" : reschedule.length ? "these" : "";
    const isKept = Boolean(this.query.get("kept"));
    draw(
      this.builder,
      this.form.element,
      h(
        "div",
        { class: "tools wrapping", hidden: isKept || this.isEmpty, "data-test": "changes" },
        changes.map((text) => chip(changeWords(text), () => this.remove(text), "change")),
        this.config === null ? null : chip("another configuration", () => change({ config: "", kept: "" }, { push: true }), "change"),
      ),
      h(
        "div",
        { class: "tools wrapping", hidden: isKept || this.isEmpty },
        h("span", { class: "tool-label" }, "Schedule"),
        choice(
          "Schedule",
          [
            { value: "", text: "pods without a node", title: "Pending pods, and pods that lose their node" },
            { value: "*", text: "all pods", title: "All pods, from an empty cluster, before and after the changes" },
            { value: "these", text: "some workloads", title: "Pods of some workloads, before and after the changes" },
          ],
          mode,
          (value) => this.chooseReschedule(value),
        ),
        mode === "these" ? this.theseField() : null,
      ),
    );
  }

  /** @param {string} value */
  chooseReschedule(value) {
    const workload = this.changes.map((text) => /^(?:scale|restart|delete|priority)=([^:]+)/.exec(text)?.[1]).find(Boolean);
    change({ reschedule: value === "these" ? (workload ?? "deployment/") : value, kind: "" });
  }

  theseField() {
    return h("input", {
      class: "field target",
      "aria-label": "Workloads to schedule again",
      "data-test": "these",
      spellcheck: "false",
      placeholder: "deployment/shop/web",
      value: this.reschedule.join(","),
      onchange: (/** @type {Event} */ event) =>
        change({ reschedule: /** @type {HTMLInputElement} */ (event.target).value.replace(/\s+/g, ""), kind: "" }),
    });
  }

  drawResult() {
    const { report } = this;
    this.result.classList.remove("dim");
    if (!report) {
      this.drawHead("What if…");
      draw(
        this.result,
        empty(
          "Choose a change: drain nodes, lose a zone, scale a workload, change a plugin's weight. The difference appears here; the cluster stays as it is.",
          ...this.zones.map((zone) =>
            h("button", { type: "button", class: "button", key: zone, onclick: () => this.add(`lose-zone=${zone}`) }, `Lose ${zone}`),
          ),
          h("a", { class: "button", href: to("config") }, "Edit configuration"),
        ),
        keptList(this.kept),
      );
      return;
    }
    this.drawHead(report.id ? `${report.name}: ${report.effect}` : sentence(report.effect));
    this.answer.show(report, this.query.get("kind") ?? "");
    if (this.answer.element.parentElement !== this.result) this.result.replaceChildren(this.answer.element);
  }
}

/** The first zones of the cluster; none if it has only one. @param {AbortSignal} signal */
async function zonesOf(signal) {
  const { facets } = await get("/nodes", { limit: 1, facets: true }, signal);
  const zones = (facets?.zone ?? []).map((each) => each.value).filter(Boolean).sort();
  return zones.length > 1 ? zones.slice(0, 3) : [];
}

/** @param {Api.WhatIfSummary[]} items */
function keptList(items) {
  if (!items.length) return null;
  return h(
    "section",
    { class: "panel", "data-test": "kept" },
    h("h2", null, `Kept ${count(items.length)}`),
    h(
      "table",
      { class: "list" },
      h(
        "tbody",
        null,
        items.map((item) => {
          const address = to("what-if", { kept: item.id });
          return h(
            "tr",
            { key: item.id, class: "linked", onclick: () => go(address) },
            h("td", { class: "wrap" }, h("a", { href: address }, item.name || item.changes.map(changeWords).join(", "))),
            h("td", { class: "wrap minor" }, item.summary),
            h("td", { class: "figure faint" }, time(item.at)),
          );
        }),
      ),
    ),
  );
}

/** @param {Api.WhatIfReport} report */
function download(report) {
  const address = URL.createObjectURL(new Blob([JSON.stringify(report, null, 2)], { type: "application/json" }));
  const name = (report.name || "what-if").replace(/[^\w.-]+/g, "-").slice(0, 60);
  h("a", { href: address, download: `${name}.json` }).click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}

/** The same question as a command. @param {Api.WhatIfReport} report */
function commandOf(report) {
  const again = report.reschedule.map((each) => ` --reschedule ${each === "*" ? "all" : each}`).join("");
  const quoted = report.changes.map((text) => (/^[\w=:/.,@-]+$/.test(text) ? text : `'${text}'`));
  return `bayplan what-if ${quoted.join(" ")} ${location.origin}${again}`;
}
