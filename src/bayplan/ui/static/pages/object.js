// One object of any kind: its pods if it is a workload, its YAML, and an editor that keeps the text after a conflict.

import { draw, h } from "../dom.js";
import { count, counted, cut } from "../format.js";
import { shortened } from "../names.js";
import { change, go, podAddress, to } from "../address.js";
import { get, objectPath, send } from "../service.js";
import { onReload, subscribe } from "../stream.js";
import { ask, copy, copyMenu, perform, tabs } from "../parts.js";
import { errorFacts, failure, loading, problemsOf } from "../loading_states.js";
import { Editor, problemList } from "../editor.js";
import { Grid } from "../grid.js";
import { badge, nodeLink } from "../parts.js";
import { bind } from "../keyboard.js";
import { title } from "../shell.js";
import { questionLinks } from "../unblocking.js";
import { workloadMenu } from "../what_if_menu.js";
import { kindAddress, kinds } from "./objects.js";

const WORKLOADS = new Set([
  "Deployment",
  "ReplicaSet",
  "StatefulSet",
  "DaemonSet",
  "Job",
  "CronJob",
  "ReplicationController",
]);

/** @param {import("../main.js").Page} page */
export async function open({ place, root, signal }) {
  draw(root, loading(8));
  const { names } = place;
  title(names.name);
  try {
    const all = await kinds();
    const kind = names.plural
      ? all.find((each) => each.plural === names.plural && each.group === names.group)
      : all.find((each) => each.kind.toLowerCase() === names.kind.toLowerCase());
    if (!kind) throw new Error(`The server has no kind ${names.plural ?? names.kind}`);
    const view = new ObjectView(root, kind, names.namespace === "-" ? "" : names.namespace, names.name, signal);
    view.query = place.query;
    await view.load();
    return (/** @type {import("../address.js").Place} */ next) => {
      view.query = next.query;
      view.drawAll();
    };
  } catch (problem) {
    if (!signal.aborted)
      draw(
        root,
        h("h1", { class: "verdict" }, cut(names.name, 60)),
        failure(problem, () => location.reload()),
        h("a", { class: "button", href: to("objects") }, "All objects"),
      );
    return undefined;
  }
}

/** Leave out managedFields, as kubectl does. @param {string} text */
function readable(text) {
  return text.replace(/^ {2}managedFields:\n(?: {2}- .*\n(?: {3,}.*\n)*)+/m, "");
}

class ObjectView {
  /** @param {HTMLElement} root @param {import("./objects.js").Kind} kind @param {string} namespace @param {string} name @param {AbortSignal} signal */
  constructor(root, kind, namespace, name, signal) {
    this.root = root;
    this.kind = kind;
    this.namespace = namespace;
    this.name = name;
    this.signal = signal;
    this.query = new URLSearchParams();
    this.address = objectPath(kind.group, kind.version, kind.plural, namespace, name);
    this.head = h("div", null);
    this.content = h("div", { class: "tab-content" });
    this.shown = "";
    this.text = "";
    this.standing = "";
    /** The number of its pods, and below, of those that are pending. */
    this.pods = 0;
    this.waiting = 0;
    /** @type {unknown} */
    this.problem = null;
    root.classList.add("full-height");
    onReload(() => void this.load(), signal);
    bind({ e: () => change({ tab: "edit" }), d: () => void this.remove() }, signal);
  }

  async load() {
    this.text = readable(await (await send(this.address, { accept: "application/yaml", signal: this.signal })).text());
    this.root.replaceChildren(this.head, this.content);
    this.shown = "";
    this.drawAll();
    if (WORKLOADS.has(this.kind.kind)) await this.countPods();
  }

  /** Count the pods of a workload, and the pending ones among them, for the headline. */
  async countPods() {
    const query = { workload: `${this.kind.kind}/${this.name}`, namespace: this.namespace, limit: 1, facets: true };
    const { total, facets } = await get("/pods", query, this.signal);
    const statuses = facets?.status ?? [];
    this.pods = total;
    this.waiting = statuses.find((each) => each.value === "waiting")?.count ?? 0;
    const [first] = statuses;
    const standing =
      statuses.length === 1
        ? `, ${total === 1 ? "" : "all "}${first.value}`
        : statuses
            .map(
              (each, at) =>
                `${at ? ", " : ": "}${count(each.count)} ${each.value}`,
            )
            .join("");
    this.standing = total ? `${counted(total, "pod")}${standing}` : "no pods";
    this.drawAll();
  }

  get tab() {
    return this.query.get("tab") || (WORKLOADS.has(this.kind.kind) ? "pods" : "yaml");
  }

  drawAll() {
    const { kind } = this;
    const list = [WORKLOADS.has(kind.kind) ? ["pods", "Pods"] : null, ["yaml", "YAML"], ["edit", "Edit"]].filter(
      (each) => each !== null,
    );
    const address = (/** @type {string} */ tab) =>
      to("objects", kind.group, kind.version, kind.plural, this.namespace || "-", this.name, { tab });
    draw(
      this.head,
      h(
        "p",
        { class: "crumbs" },
        h("a", { href: to("objects") }, "Objects"),
        " / ",
        h("a", { href: kindAddress(kind) }, kind.kind),
        this.namespace ? ` / ${this.namespace}` : "",
      ),
      h(
        "div",
        { class: "head" },
        h(
          "h1",
          { class: "verdict", "data-test": "verdict", title: this.name },
          `${kind.kind} ${cut(this.name, 80)}${this.standing ? ` has ${this.standing}` : ""}`,
        ),
        ...this.questions(),
        h("button", { type: "button", class: "button danger", onclick: () => void this.remove() }, "Delete"),
        copyMenu({
          json: this.address,
          kubectl: `kubectl get ${kind.plural} ${this.namespace ? `-n ${this.namespace} ` : ""}${this.name} -o yaml`,
        }),
      ),
      tabs(
        "About this object",
        list.map(([key, text]) => ({ key, text, href: address(key) })),
        this.tab,
      ),
    );
    if (this.shown !== this.tab) {
      this.shown = this.tab;
      this.fill();
    }
  }

  /** Links to the questions about a workload. */
  questions() {
    if (!WORKLOADS.has(this.kind.kind) || !this.namespace) return [];
    const target = `${this.kind.kind.toLowerCase()}/${this.namespace}/${this.name}`;
    return [...questionLinks(target, this.waiting > 0), workloadMenu(target, this.pods)];
  }

  fill() {
    if (this.tab === "pods") this.content.replaceChildren(podGrid(this.kind, this.namespace, this.name, this.signal));
    else if (this.tab === "edit") this.edit();
    else
      this.content.replaceChildren(
        h(
          "div",
          { class: "stack" },
          h(
            "div",
            { class: "row" },
            h("button", { type: "button", class: "button", onclick: () => void copy(this.text, "YAML") }, "Copy"),
          ),
          h("pre", { class: "code", tabindex: 0, "data-test": "yaml" }, this.text),
        ),
      );
  }

  edit() {
    const tools = h("div", null);
    const side = h("div", null);
    const editor = new Editor({
      label: "The object in YAML",
      key: this.address,
      text: this.text,
      onChange: () => drawTools(),
    });
    const drawTools = () =>
      draw(
        tools,
        h(
          "div",
          { class: "row" },
          h(
            "button",
            {
              type: "button",
              class: "button primary",
              "data-test": "save",
              disabled: !editor.changed,
              onclick: () => void save(),
            },
            "Save",
          ),
          h(
            "button",
            {
              type: "button",
              class: "button",
              disabled: !editor.changed,
              onclick: () => {
                editor.set(this.text);
                draw(side);
                drawTools();
              },
            },
            "Revert",
          ),
          editor.restored ? h("span", { class: "faint" }, "Restored draft.") : null,
        ),
      );
    const save = async () => {
      try {
        const answer = await send(this.address, {
          method: "PUT",
          body: editor.text,
          type: "application/yaml",
          accept: "application/yaml",
        });
        this.text = readable(await answer.text());
        editor.set(this.text);
        draw(side, h("p", null, badge("placed", "saved")));
      } catch (problem) {
        await this.refused(problem, editor, side);
      }
      drawTools();
    };
    drawTools();
    this.content.replaceChildren(tools, side, editor.element);
  }

  /** @param {unknown} problem @param {Editor} editor @param {HTMLElement} side */
  async refused(problem, editor, side) {
    const problems = problemsOf(problem);
    editor.mark(problems);
    if (errorFacts(problem).status !== 409) {
      draw(side, failure(problem, null), problems.length ? problemList(problems, editor) : null);
      return;
    }
    const theirs = await send(this.address, { accept: "application/yaml" }).then(
      async (answer) => readable(await answer.text()),
      () => "",
    );
    const version = /resourceVersion: (\S+)/.exec(theirs)?.[1];
    draw(
      side,
      h(
        "div",
        { class: "note wait", "data-test": "conflict" },
        h(
          "p",
          { class: "strong" },
          "The object was changed by another client. Your text is in the editor, the new version is below.",
        ),
        h(
          "div",
          { class: "row" },
          h(
            "button",
            {
              type: "button",
              class: "button",
              onclick: () => {
                this.text = theirs;
                editor.set(theirs);
                draw(side);
              },
            },
            "Take theirs",
          ),
          version
            ? h(
                "button",
                {
                  type: "button",
                  class: "button",
                  onclick: () => {
                    editor.area.value = editor.text.replace(/resourceVersion: \S+/, `resourceVersion: ${version}`);
                    editor.keep();
                    draw(side, h("p", null, "Your text is now based on the new version. Save replaces it."));
                  },
                },
                "Keep mine",
              )
            : null,
        ),
        h("pre", { class: "code short" }, theirs),
      ),
    );
  }

  async remove() {
    const more = WORKLOADS.has(this.kind.kind)
      ? "Deletes its pods, too."
      : this.kind.kind === "Namespace"
        ? "Deletes everything in the namespace."
        : "Deletes nothing else.";
    const sure = await ask({
      title: `Delete ${this.kind.kind} ${cut(this.name, 60)}?`,
      text: [more],
      yes: "Delete",
      danger: true,
    });
    if (
      sure &&
      (await perform(`Delete ${this.name}`, async () => {
        await send(this.address, { method: "DELETE" });
      }))
    )
      go(kindAddress(this.kind));
  }
}

/** @param {import("./objects.js").Kind} kind @param {string} namespace @param {string} name @param {AbortSignal} signal */
function podGrid(kind, namespace, name, signal) {
  const grid = new Grid({
    label: "Pods of this workload",
    signal,
    keyOf: (row) => `${row.namespace}/${row.name}`,
    hrefOf: (row) => podAddress(row),
    columns: [
      {
        key: "name",
        title: "Pod",
        width: "minmax(170px, 1.5fr)",
        render: (row, _, letters) =>
          h("a", { class: "name", href: podAddress(row), title: row.name }, shortened(row.name, letters)),
      },
      { key: "status", title: "Status", width: "110px", render: (row) => badge(row.status) },
      { key: "node", title: "Node", width: "minmax(130px, 1.2fr)", render: (row, _, letters) => nodeLink(row.node, letters) },
      {
        key: "why",
        title: "Reason",
        width: "minmax(200px, 2fr)",
        render: (row) => h("span", { class: "clip", title: row.why || null }, row.why || ""),
      },
    ],
    load: (offset, limit, asked) => get("/pods", { workload: `${kind.kind}/${name}`, namespace, offset, limit }, asked),
    empty: () => h("div", { class: "empty" }, h("p", null, "No pods.")),
  });
  subscribe("pods", () => grid.refresh(), signal);
  return grid.element;
}
