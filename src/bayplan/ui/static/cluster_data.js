// Actions on the whole cluster: import, export, snapshots, and reset.

import { draw, h } from "./dom.js";
import { counted, time } from "./format.js";
import { apiAddress, get, call, send } from "./service.js";
import { ask, perform } from "./parts.js";

/** The panel with the buttons for these actions; it loads the list of snapshots itself. @param {AbortSignal} signal */
export function clusterPanel(signal) {
  const place = h("div", { own: true });
  /** @type {Api.SnapshotRow[]} */
  let snapshots = [];
  const show = () => draw(place, ...panel(snapshots, load, signal));
  const load = async () => {
    try {
      snapshots = (await get("/snapshots", {}, signal)).items;
    } catch {
      // Without the list, the buttons still work.
    }
    if (!signal.aborted) show();
  };
  show();
  void load();
  return place;
}

/** @param {Api.SnapshotRow[]} snapshots @param {() => Promise<void>} load @param {AbortSignal} signal */
function panel(snapshots, load, signal) {
  const button = (/** @type {string} */ text, /** @type {string} */ test, /** @type {() => void} */ onclick, look = "") =>
    h("button", { type: "button", class: `button ${look}`, "data-test": test, onclick }, text);
  const file = h("input", {
    type: "file",
    class: "unseen",
    accept: ".json,application/json",
    "aria-label": "File to import",
    tabindex: -1,
    "data-test": "import-file",
    onchange: (/** @type {Event} */ event) => void importFile(/** @type {HTMLInputElement} */ (event.target), signal),
  });
  return [
    h(
      "section",
      { class: "panel", "data-test": "cluster-data" },
      h("h2", null, "This cluster"),
      h(
        "div",
        { class: "tools wrapping" },
        button("Import…", "import", () => file.click()),
        file,
        button("Export", "export", () => void exportCluster()),
        snapshotForm(load),
        h("span", { class: "grow" }),
        button("Reset…", "reset", () => void reset(), "danger"),
      ),
      snapshots.length ? snapshotTable(snapshots, load) : null,
    ),
  ];
}

/** @param {() => Promise<void>} load */
function snapshotForm(load) {
  return h(
    "form",
    {
      class: "row",
      onsubmit: (/** @type {Event} */ event) => {
        event.preventDefault();
        const field = /** @type {HTMLInputElement} */ (/** @type {Element} */ (event.currentTarget).querySelector("input"));
        const name = field.value.trim() || new Date().toISOString().slice(0, 19);
        void perform("Snapshot", async () => {
          await call("POST /snapshots", {}, { name });
          field.value = "";
          return `Snapshot ${name} taken.`;
        }).then(load);
      },
    },
    h("input", { class: "field narrow", "aria-label": "Name of the snapshot", placeholder: "name", "data-test": "snapshot-name" }),
    h("button", { type: "submit", class: "button", "data-test": "snapshot" }, "Snapshot"),
  );
}

/** @param {Api.SnapshotRow[]} snapshots @param {() => Promise<void>} load */
function snapshotTable(snapshots, load) {
  return h(
    "table",
    { class: "list", "data-test": "snapshots" },
    h(
      "tbody",
      null,
      snapshots.map(({ name, taken_at: at }) =>
        h(
          "tr",
          { key: name },
          h("td", { class: "wrap name" }, name),
          h("td", { class: "figure faint minor" }, time(at)),
          h(
            "td",
            null,
            h(
              "div",
              { class: "row end" },
              h("button", { type: "button", class: "button", onclick: () => void restore(name) }, "Restore"),
              h(
                "button",
                {
                  type: "button",
                  class: "button danger",
                  onclick: () =>
                    void perform(`Delete ${name}`, async () => void (await call("DELETE /snapshots/{name}", { name }))).then(load),
                },
                "Delete",
              ),
            ),
          ),
        ),
      ),
    ),
  );
}

/** @param {string} name */
async function restore(name) {
  const sure = await ask({ title: `Restore ${name}?`, text: ["Later changes of the cluster are lost."], yes: "Restore", danger: true });
  if (sure) await perform(`Restore ${name}`, async () => void (await call("POST /snapshots/{name}/restore", { name })));
}

/** Reset the cluster to its state when the server started. */
export async function reset() {
  const sure = await ask({
    title: "Reset the cluster?",
    text: ["It returns to its state when the server started. Later changes are lost; the configuration stays."],
    yes: "Reset",
    danger: true,
  });
  if (sure) await perform("Reset", async () => void (await call("POST /reset", {})));
}

/** Download all objects and the configuration as a file. */
export async function exportCluster() {
  await perform("Export", async () => {
    const blob = await (await send(apiAddress("/export", {}))).blob();
    const address = URL.createObjectURL(blob);
    h("a", { href: address, download: `cluster-${new Date().toISOString().slice(0, 19).replaceAll(":", "-")}.json` }).click();
    setTimeout(() => URL.revokeObjectURL(address), 1000);
  });
}

/** @param {HTMLInputElement} field @param {AbortSignal} signal */
async function importFile(field, signal) {
  const [file] = field.files ?? [];
  if (!file) return;
  field.value = "";
  const replaces = await ask({
    title: `Import ${file.name}?`,
    text: ["Objects with the same names are replaced, all others stay."],
    yes: "Import",
  });
  if (!replaces) return;
  await perform(`Import ${file.name}`, async () => {
    const document = /** @type {{ items?: unknown, configuration?: unknown }} */ (JSON.parse(await file.text()));
    if (!Array.isArray(document.items)) throw new Error(`${file.name} is not a List: it has no items`);
    const body = { items: document.items, ...(typeof document.configuration === "string" ? { configuration: document.configuration } : {}) };
    const answer = await call("POST /import", {}, body, signal);
    return `${counted(answer.total, "object")} imported, ${answer.replaced} replaced.`;
  });
}
