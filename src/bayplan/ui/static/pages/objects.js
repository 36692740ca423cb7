// Objects of any kind, as the Kubernetes API lists them: kinds on the left, a table of one kind on the right.

import { draw, h, debounce } from "../dom.js";
import { count, counted, cut, age } from "../format.js";
import { roomy, shortened } from "../names.js";
import { change, go, to } from "../address.js";
import { objectPath, send } from "../service.js";
import { now } from "../stream.js";
import { empty, failure, loading } from "../loading_states.js";
import { copyMenu } from "../parts.js";
import { title } from "../shell.js";

/** @typedef {{ group: string, version: string, plural: string, kind: string, namespaced: boolean }} Kind */
/**
 * A kind in the discovery of the Kubernetes API.
 * @typedef {{ name: string, kind: string, namespaced: boolean, verbs?: string[] }} ApiResource
 */
/** @typedef {{ name: string, preferredVersion: { version: string } }} ApiGroup */
/** @typedef {{ name: string, namespace?: string, creationTimestamp?: string }} Metadata */
/** @typedef {{ name: string, type?: string, priority?: number, at: number }} Column */
/** @typedef {{ cells: unknown[], object?: { metadata?: Metadata } }} Row */
/** The response to a list request: a table or the objects. @typedef {{ kind: string, metadata?: { continue?: string, remainingItemCount?: number },
 *   columnDefinitions?: Omit<Column, "at">[], rows?: Row[], items?: { metadata: Metadata }[] }} List */

const LIMIT = 200;
const FIRST = [
  "pods",
  "nodes",
  "deployments",
  "statefulsets",
  "daemonsets",
  "replicasets",
  "jobs",
  "cronjobs",
  "services",
  "persistentvolumeclaims",
  "persistentvolumes",
  "storageclasses",
  "priorityclasses",
  "poddisruptionbudgets",
  "namespaces",
  "resourceclaims",
  "resourceslices",
  "deviceclasses",
  "events",
];
const TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io, application/json";

/** @type {Promise<Kind[]> | null} */
let known = null;

/** All kinds that the server has; requested only once. @returns {Promise<Kind[]>} */
export function kinds() {
  known ??= discover().catch((problem) => {
    known = null;
    throw problem;
  });
  return known;
}

/** @param {string} address @returns {Promise<{ resources: ApiResource[] }>} */
async function resourcesAt(address) {
  return /** @type {{ resources: ApiResource[] }} */ (await (await send(address)).json());
}

async function discover() {
  const core = (await resourcesAt("/api/v1")).resources.map((each) => ({ ...each, group: "core", version: "v1" }));
  const { groups = [] } = /** @type {{ groups?: ApiGroup[] }} */ (await (await send("/apis")).json());
  const lists = await Promise.all(
    groups.map(async ({ name, preferredVersion: { version } }) => {
      const { resources } = await resourcesAt(`/apis/${name}/${version}`).catch(() => ({ resources: [] }));
      return resources.map((each) => ({ ...each, group: name, version }));
    }),
  );
  const all = [core, ...lists].flat().filter((each) => !each.name.includes("/") && each.verbs?.includes("list"));
  const rank = (/** @type {string} */ plural) => (FIRST.includes(plural) ? FIRST.indexOf(plural) : FIRST.length);
  return all
    .map((each) => ({
      group: each.group,
      version: each.version,
      plural: each.name,
      kind: each.kind,
      namespaced: each.namespaced,
    }))
    .filter((each) => !(each.plural === "events" && each.group !== "core"))
    .sort((a, b) => rank(a.plural) - rank(b.plural) || a.kind.localeCompare(b.kind));
}

/** @param {import("../main.js").Page} page */
export async function open({ place, root, signal }) {
  title("Objects");
  draw(root, loading(8));
  /** @type {Kind[]} */
  let all;
  try {
    all = await kinds();
  } catch (problem) {
    if (!signal.aborted)
      draw(
        root,
        h("h1", { class: "verdict" }, "Objects"),
        failure(problem, () => location.reload()),
      );
    return undefined;
  }
  const { group, version, plural } = place.names;
  const kind =
    all.find((each) => each.plural === plural && each.group === group && each.version === version) ??
    all.find((each) => each.plural === (plural ?? "deployments")) ??
    all[0];
  const nav = h(
    "nav",
    { class: "panel kinds", "aria-label": "Kinds" },
    all.map((each) =>
      h(
        "a",
        {
          href: kindAddress(each),
          key: each.group + each.plural,
          "aria-current": each === kind ? "page" : null,
          title: `${each.plural}.${each.group}/${each.version}`,
        },
        each.kind,
      ),
    ),
  );
  const head = h("div", null);
  const table = h("div", { class: "object-table" });
  root.replaceChildren(head, h("div", { class: "kinds-split" }, nav, table));
  let { query } = place;
  const load = () => list(kind, query, head, table, signal);
  void load();
  return (/** @type {import("../address.js").Place} */ next) => {
    query = next.query;
    void load();
  };
}

/** @param {Kind} kind */
export function kindAddress(kind) {
  return to("objects", kind.group, kind.version, kind.plural);
}

/** @param {Kind} kind @param {URLSearchParams} query @param {HTMLElement} head @param {HTMLElement} table @param {AbortSignal} signal */
async function list(kind, query, head, table, signal) {
  drawHead(head, kind, query, kind.kind);
  if (!table.firstElementChild) draw(table, loading(6));
  try {
    const answer = await listed(kind, query.get("after"), signal);
    if (signal.aborted) return;
    const text = (query.get("q") ?? "").toLowerCase();
    const { columns, rows } = tableOf(answer);
    const found = rows.filter((row) => holds(row, text));
    const more = answer.metadata?.remainingItemCount ?? 0;
    const matching = text ? `, ${count(found.length)} of the loaded ones match` : "";
    drawHead(head, kind, query, `${counted(rows.length + more, kind.kind, plural(kind.kind))}${matching}`);
    if (!found.length) draw(table, nothing(kind, text, rows.length));
    else draw(table, objectTable(kind, columns, found), nextLine(kind, answer, more));
  } catch (problem) {
    if (!signal.aborted)
      draw(
        table,
        failure(problem, () => void list(kind, query, head, table, signal)),
      );
  }
}

/** @param {Kind} kind @param {string | null} after the continue token, or null for the start @param {AbortSignal} signal */
async function listed(kind, after, signal) {
  const next = after ? `&continue=${encodeURIComponent(after)}` : "";
  const address = `${objectPath(kind.group, kind.version, kind.plural)}?limit=${LIMIT}${next}`;
  return /** @type {List} */ (await (await send(address, { accept: TABLE, signal })).json());
}

/** Whether a row shows a text. @param {Row} row @param {string} text in lower case */
function holds(row, text) {
  return (
    !text ||
    JSON.stringify(row.cells).toLowerCase().includes(text) ||
    Boolean(row.object?.metadata?.namespace?.includes(text))
  );
}

/** @param {HTMLElement} head @param {Kind} kind @param {URLSearchParams} query @param {string} words */
function drawHead(head, kind, query, words) {
  const typed = debounce(200, (/** @type {string} */ text) => change({ q: text, after: "" }));
  draw(
    head,
    h(
      "div",
      { class: "head" },
      h("h1", { class: "verdict", "data-test": "verdict" }, words),
      h("input", {
        type: "search",
        class: "field",
        placeholder: "Filter what is shown…",
        "aria-label": "Filter",
        "data-search": "",
        value: query.get("q") ?? "",
        oninput: (/** @type {Event} */ event) => typed(/** @type {HTMLInputElement} */ (event.target).value),
      }),
      h("a", { class: "button", href: to("new", { kind: kind.kind }) }, "Create"),
      copyMenu({
        json: objectPath(kind.group, kind.version, kind.plural),
        kubectl: `kubectl get ${kind.plural}${kind.namespaced ? " -A" : ""}`,
      }),
    ),
  );
}

/** @param {Kind} kind @param {string} text that no row contains @param {number} shown the number of searched rows */
function nothing(kind, text, shown) {
  return text
    ? empty(
        `None of the ${count(shown)} shown matches “${cut(text, 40)}”.`,
        h("button", { type: "button", class: "button", onclick: () => change({ q: "" }) }, "Clear"),
      )
    : empty(
        `There is no ${kind.kind}.`,
        h("a", { class: "button primary", href: to("new", { kind: kind.kind }) }, "Create objects"),
      );
}

/** @param {Kind} kind @param {Column[]} columns @param {Row[]} rows */
function objectTable(kind, columns, rows) {
  return h(
    "table",
    { class: "list panel wide", "data-test": "objects" },
    h(
      "thead",
      null,
      h(
        "tr",
        null,
        kind.namespaced ? h("th", { scope: "col" }, "Namespace") : null,
        columns.map((column) => h("th", { scope: "col", key: column.name }, column.name)),
      ),
    ),
    h(
      "tbody",
      null,
      rows.map((row) => objectRow(kind, row, columns)),
    ),
  );
}

/** @param {Kind} kind @param {List} answer @param {number} more how many rows follow */
function nextLine(kind, answer, more) {
  const after = answer.metadata?.continue;
  if (!after) return null;
  return h(
    "p",
    { class: "row" },
    h("a", { class: "button", href: to("objects", kind.group, kind.version, kind.plural, { after }) }, `Next ${LIMIT}`),
    h("span", { class: "faint" }, more ? `${count(more)} more` : ""),
  );
}

/** @param {string} kind */
function plural(kind) {
  return /s$/.test(kind) ? `${kind}es` : /[^aeo]y$/.test(kind) ? `${kind.slice(0, -1)}ies` : `${kind}s`;
}

/**
 * A list as a table. If the server does not support tables, it has only names.
 * @param {List} list @returns {{ columns: Column[], rows: Row[] }}
 */
function tableOf(list) {
  if (list.kind === "Table") {
    const columns = (list.columnDefinitions ?? []).map((column, at) => ({ ...column, at }));
    return { columns: columns.filter((column) => !column.priority), rows: list.rows ?? [] };
  }
  return {
    columns: [
      { name: "Name", at: 0 },
      { name: "Age", at: 1 },
    ],
    rows: (list.items ?? []).map((item) => ({
      cells: [item.metadata.name, age(item.metadata.creationTimestamp, now())],
      object: item,
    })),
  };
}

/** @param {Kind} kind @param {Row} row @param {Column[]} columns */
function objectRow(kind, row, columns) {
  const meta = row.object?.metadata ?? { name: "", namespace: undefined };
  const address = objectAddress(kind, meta.namespace, meta.name);
  return h(
    "tr",
    {
      key: `${meta.namespace}/${meta.name}`,
      class: "linked",
      onclick: (/** @type {Event} */ event) => {
        if (!(event.target instanceof Element && event.target.closest("a"))) go(address);
      },
    },
    kind.namespaced ? h("td", null, meta.namespace) : null,
    columns.map((column, at) =>
      h(
        "td",
        { key: column.name, class: column.type === "integer" || column.type === "number" ? "figure" : null },
        at === 0
          ? h(
              "a",
              { class: "name", href: address, title: meta.name },
              shortened(String(row.cells[column.at] ?? meta.name), roomy()),
            )
          : cut(String(row.cells[column.at] ?? ""), 60),
      ),
    ),
  );
}

/** @param {Kind} kind @param {string | undefined} namespace @param {string} name */
function objectAddress(kind, namespace, name) {
  if (kind.group === "core" && kind.plural === "pods") return to("pods", namespace ?? "", name);
  if (kind.group === "core" && kind.plural === "nodes") return to("nodes", name);
  return to("objects", kind.group, kind.version, kind.plural, namespace || "-", name);
}
