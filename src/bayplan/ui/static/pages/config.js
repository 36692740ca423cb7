// Configuration: what decides where pods go, and is it valid? The text is left; problems, effective result and
// difference are right. It is applied as a whole or not at all.

import { draw, h } from "../dom.js";
import { count, counted, pointName } from "../format.js";
import { change, go, to } from "../address.js";
import { get, call } from "../service.js";
import { ask, copyMenu, perform, tabs } from "../parts.js";
import { failure, loading, problemsOf } from "../loading_states.js";
import { Editor, problemList } from "../editor.js";
import { title } from "../shell.js";
import { WHAT_IF_DRAFT } from "../what_if_changes.js";

/** @param {import("../main.js").Page} page */
export async function open({ place, root, signal }) {
  title("Configuration");
  draw(root, loading(12));
  let data;
  try {
    data = await get("/config", {}, signal);
  } catch (problem) {
    if (!signal.aborted)
      draw(
        root,
        h("h1", { class: "verdict" }, "Configuration"),
        failure(problem, () => location.reload()),
      );
    return undefined;
  }
  const view = new ConfigView(root, data, signal, place);
  return (/** @type {import("../address.js").Place} */ next) => view.update(next);
}

class ConfigView {
  /** @param {HTMLElement} root @param {Api.Configuration} data @param {AbortSignal} signal @param {import("../address.js").Place} place */
  constructor(root, data, signal, place) {
    this.data = data;
    this.signal = signal;
    this.place = place;
    /** @type {Api.Validation | null} */
    this.checked = null;
    /** @type {unknown} */
    this.problem = null;
    this.checks = 0;
    root.classList.add("full-height");
    this.head = h("div", null);
    this.side = h("section", { class: "panel side-panel", "aria-label": "Details" });
    this.editor = new Editor({
      label: "Scheduler configuration in YAML",
      key: "config",
      text: data.text,
      hint: "No configuration: the defaults apply.\nPress Load default, or type here.",
      onChange: () => void this.validate(),
    });
    root.replaceChildren(this.head, h("div", { class: "split" }, this.editor.element, this.side));
    this.drawAll();
    if (this.editor.changed) void this.validate();
  }

  /** @param {import("../address.js").Place} place */
  update(place) {
    this.place = place;
    this.drawAll();
  }

  get view() {
    return (
      this.place.names.view ??
      this.place.query.get("view") ??
      (this.checked?.problems.length ? "problems" : this.editor.changed ? "difference" : "effective")
    );
  }

  async validate() {
    const mine = ++this.checks;
    const { text } = this.editor;
    this.drawHead(true);
    try {
      const answer = await call("POST /config/validate", {}, text, this.signal);
      if (mine !== this.checks) return;
      this.checked = answer;
      this.problem = null;
      this.editor.mark(answer.problems);
    } catch (problem) {
      if (this.signal.aborted || mine !== this.checks) return;
      this.problem = problem;
    }
    this.drawAll();
  }

  drawAll() {
    this.drawHead(false);
    this.drawSide();
  }

  /** @param {boolean} checking */
  drawHead(checking) {
    const problems = this.checked?.problems ?? [];
    const { changed } = this.editor;
    const words = !changed
      ? "Active configuration"
      : problems.length
        ? `${counted(problems.length, "problem")}, not applied`
        : this.checked
          ? `Valid${this.checked.difference.length ? `, ${counted(this.checked.difference.length, "difference")} from the active configuration` : ", the same as the active configuration"}; not applied yet`
          : "Not checked yet";
    const bad = problems.length > 0 || this.problem !== null;
    draw(
      this.head,
      h(
        "div",
        { class: "head" },
        h(
          "h1",
          { class: "verdict", "data-test": "verdict" },
          words,
          checking ? h("span", { class: "faint" }, " checking…") : null,
        ),
        h(
          "button",
          {
            type: "button",
            class: "button",
            "data-test": "try-fork",
            disabled: !changed || bad,
            onclick: () => void this.fork(),
          },
          "Try in a fork",
        ),
        this.whatIfButton(!changed || bad),
        h(
          "button",
          {
            type: "button",
            class: "button primary",
            "data-test": "apply",
            disabled: !changed || bad || !this.checked,
            title: bad ? "Fix the problems first" : changed ? null : "No changes",
            onclick: () => void this.apply(),
          },
          "Apply",
        ),
        h(
          "button",
          { type: "button", class: "button", "data-test": "revert", disabled: !changed, onclick: () => this.revert() },
          "Revert",
        ),
        h("button", { type: "button", class: "button quiet", onclick: () => void this.takeDefault() }, "Load default"),
        h("a", { class: "button quiet", href: to("plugins") }, "Plugins"),
        copyMenu({ json: "/bayplan/v1/config" }),
      ),
      this.editor.restored
        ? h("p", { class: "faint small" }, "Restored draft. Revert brings back the active configuration.")
        : null,
    );
  }

  drawSide() {
    const { view, checked } = this;
    const problems = checked?.problems ?? [];
    const link = (/** @type {string} */ name) => to("config", { view: name });
    draw(
      this.side,
      tabs(
        "About this configuration",
        [
          { key: "problems", text: `Problems${problems.length ? ` ${problems.length}` : ""}`, href: link("problems") },
          { key: "effective", text: "Effective", href: link("effective") },
          { key: "difference", text: "Difference", href: link("difference") },
        ],
        view,
      ),
      this.problem ? failure(this.problem, () => void this.validate()) : null,
      view === "problems"
        ? problems.length
          ? problemList(problems, this.editor)
          : h("p", { class: "calm" }, this.editor.changed && !checked ? "Not checked yet." : "No problems.")
        : view === "difference"
          ? this.difference()
          : effective(
              checked?.extension_points ?? (problems.length ? null : this.data.extension_points),
              this.place.query.get("plugin"),
            ),
    );
  }

  difference() {
    const lines = this.checked?.difference ?? [];
    if (!this.editor.changed) return h("p", { class: "calm" }, "No changes.");
    if (!this.checked || this.checked.problems.length)
      return h("p", { class: "calm" }, "Fix the problems to see the difference.");
    return h(
      "div",
      null,
      lines.length
        ? h(
            "ul",
            { class: "difference", "data-test": "difference" },
            lines.map((line) => h("li", { key: line }, line)),
          )
        : h("p", { class: "calm" }, "No difference."),
      this.checked.effect ? h("p", { class: "faint" }, this.checked.effect) : null,
    );
  }

  async apply() {
    const lines = this.checked?.difference ?? [];
    const sure = await ask({
      title: "Apply this configuration?",
      text: [
        lines.length
          ? h(
              "ul",
              null,
              lines.slice(0, 8).map((line) => h("li", null, line)),
              lines.length > 8 ? h("li", null, `and ${count(lines.length - 8)} more`) : null,
            )
          : "No effective change.",
        this.checked?.effect ? h("p", null, this.checked.effect) : "",
      ],
      yes: "Apply",
    });
    if (!sure) return;
    const { text } = this.editor;
    try {
      await call("PUT /config", {}, text);
    } catch (problem) {
      this.problem = problem;
      this.editor.mark(problemsOf(problem));
      this.drawAll();
      return;
    }
    await perform("Apply", async () => {
      this.data = await get("/config", {}, this.signal);
      return "Configuration applied.";
    });
    this.editor.set(text);
    this.editor.restored = false;
    this.checked = null;
    change({ view: "effective" });
    this.drawAll();
  }

  async fork() {
    await perform("Try in a fork", async () => {
      const fork = await call("POST /forks", {}, { from: "now", config: this.editor.text });
      go(to("compare", { a: "now", b: fork.id }));
      return "The fork is running.";
    });
  }

  /** The button that shows which pods would move under the edited configuration. @param {boolean} disabled */
  whatIfButton(disabled) {
    const ask = () => {
      sessionStorage.setItem(WHAT_IF_DRAFT, this.editor.text);
      go(to("what-if", { config: "draft", reschedule: "*" }));
    };
    return h("button", { type: "button", class: "button", "data-test": "what-if", disabled, onclick: ask }, "What if");
  }

  revert() {
    this.editor.set(this.data.text);
    this.editor.restored = false;
    this.checked = null;
    this.problem = null;
    this.drawAll();
  }

  async takeDefault() {
    await perform("Default", async () => {
      this.editor.area.value = (await get("/config/default", {}, this.signal)).text;
      this.editor.keep();
      this.editor.drawGutter();
      await this.validate();
      return "The default configuration is in the editor, not applied.";
    });
  }
}

/**
 * The plugins that each extension point runs.
 * @param {Api.Configuration["extension_points"] | null} profiles @param {string | null} marked
 */
function effective(profiles, marked) {
  if (!profiles) return h("p", { class: "calm" }, "Fix the problems to see the effective configuration.");
  return h(
    "div",
    { class: "effective", "data-test": "effective" },
    Object.entries(profiles).map(([profile, points]) =>
      h(
        "section",
        { key: profile },
        h("h2", { class: "name" }, profile),
        h(
          "dl",
          null,
          Object.entries(points)
            .filter(([, plugins]) => plugins.length)
            .flatMap(([point, plugins]) => [
              h("dt", null, pointName(point)),
              h(
                "dd",
                null,
                plugins.map((plugin) => {
                  return h(
                    "span",
                    {
                      class: `tag${/default/.test(plugin.from) ? "" : " set"}${plugin.plugin === marked ? " chosen" : ""}`,
                      key: plugin.plugin,
                      title: plugin.from || null,
                    },
                    plugin.plugin,
                    plugin.weight ? h("span", { class: "faint" }, ` ×${plugin.weight}`) : null,
                  );
                }),
              ),
            ]),
        ),
      ),
    ),
  );
}
