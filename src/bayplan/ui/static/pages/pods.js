// Pods: which ones? A table of any length, searched and filtered by the server; the address holds all of it.

import { draw, h, later } from "../dom.js";
import { age, amount, bounded, count, counted, cut } from "../format.js";
import { shortened } from "../names.js";
import { change, podAddress, to } from "../address.js";
import { get, objectPath, send } from "../service.js";
import { now, onReturn, subscribe } from "../stream.js";
import { ask, badge, chip, choice, copyMenu, nodeLink, perform, podOf, select } from "../parts.js";
import { empty } from "../states.js";
import { Grid } from "../grid.js";
import { title } from "../shell.js";

const FILTERS = ["q", "status", "reason", "namespace", "node", "priority", "workload"];
const STATUSES = ["waiting", "gated", "placed", "terminating", "finished"];
/** Pods that wait come first. */
const DEFAULT_SORT = "status";
const FEW = 5;

/** What pods of a status do, of one and of several. @type {Record<string, [string, string]>} */
const STANDING = {
  placed: ["has a node", "have a node"],
  waiting: ["waits for a node", "wait for a node"],
  gated: ["is held back by gates", "are held back by gates"],
  terminating: ["is terminating", "are terminating"],
  finished: ["has finished", "have finished"],
};

/** @param {import("../main.js").Page} page */
export function open({ place, root, signal }) {
  title("Pods");
  root.classList.add("full-height");
  const head = h("div", null);
  const tools = h("div", null);
  const actions = h("div", null);
  let query = place.query;
  let total = -1;
  let exact = true;
  /** @type {any} */
  let counts = null;
  /** @type {any} */
  let facets = {};
  const selected = new Set();
  const filter = () =>
    Object.fromEntries(
      FILTERS.map((key) => [
        key === "ns" ? "namespace" : key,
        query.get(key) ?? (key === "namespace" ? query.get("ns") : "") ?? "",
      ]),
    );
  const grid = new Grid({
    label: "Pods",
    signal,
    test: "pod-table",
    keyOf: (row) => `${row.namespace}/${row.name}`,
    hrefOf: (row) => podAddress(row),
    selected,
    onSelect: () => drawActions(),
    sort: query.get("sort") || DEFAULT_SORT,
    onSort: (sort) =>
      change({ sort: sort === DEFAULT_SORT ? "" : sort || (query.get("sort") ? "" : `-${DEFAULT_SORT}`) }),
    columns: columns(selected, () => {
      grid.schedule();
      drawActions();
    }),
    load: (offset, limit, asked) =>
      get("/pods", { ...filter(), sort: query.get("sort") || DEFAULT_SORT, offset, limit, facets: offset === 0 }, asked).then(
        (answer) => {
          if (answer.facets) facets = answer.facets;
          return answer;
        },
      ),
    onTotal: (found, isExact) => {
      total = found;
      exact = isExact;
      drawHead();
      drawTools();
    },
    empty: () => nothing(filter(), counts),
  });
  root.append(head, tools, actions, grid.element);
  const typed = later(60, (/** @type {string} */ text) => change({ q: text }));
  const drawHead = () => {
    const all = counts?.pods;
    // What the headline and the row of statuses say needs no chip.
    const held = Object.entries(filter()).filter(([key, value]) => value && key !== "q" && key !== "status");
    const how = STANDING[query.get("status") ?? ""]?.[total === 1 ? 0 : 1] ?? "";
    const words =
      total < 0
        ? "Pods"
        : total === 0 && all === 0
          ? "No pods yet"
          : all !== undefined && !held.length && !query.get("q") && !query.get("status")
            ? standing(counts)
            : `${bounded(total, exact)}${all && all !== total ? ` of ${count(all)}` : ""} ${total === 1 && (!all || all === 1) ? "pod" : "pods"}${how && ` ${how}`}`;
    draw(
      head,
      h(
        "div",
        { class: "head" },
        h("h1", { class: "verdict", "data-test": "verdict" }, words),
        held.map(([key, value]) =>
          chip(`${key === "reason" ? "" : `${key}: `}${cut(value, 60)}`, () =>
            change({ [key]: "", ns: "" }, { push: true }),
          ),
        ),
        h("span", { class: "grow" }),
        h("a", { class: "button", href: to("new", { kind: "Pod" }) }, "Create pods"),
        copyMenu({
          json: `/bayplan/v1/pods${location.search}`,
          kubectl: `kubectl get pods ${query.get("namespace") ? `-n ${query.get("namespace")}` : "-A"}`,
        }),
      ),
    );
  };
  const drawTools = () => {
    const countOf = (/** @type {string} */ status) =>
      (facets.status ?? []).find((facet) => facet.value === status)?.count;
    draw(
      tools,
      h(
        "div",
        { class: "tools" },
        h("input", {
          type: "search",
          class: "field wide",
          placeholder: "Name contains…",
          "aria-label": "Name contains",
          "data-search": "",
          "data-test": "search-pods",
          value: query.get("q") ?? "",
          oninput: (/** @type {Event} */ event) => typed(/** @type {HTMLInputElement} */ (event.target).value),
        }),
        choice(
          "Status",
          [
            { value: "", text: "all" },
            ...STATUSES.filter(
              (status) =>
                countOf(status) || status === query.get("status") || status === "placed" || status === "waiting",
            ).map((status) => ({
              value: status,
              text: status,
              count: countOf(status) === undefined ? "" : count(countOf(status)),
            })),
          ],
          query.get("status") ?? "",
          (status) => change({ status }, { push: true }),
        ),
        select("reason", facets.reason ?? [], query.get("reason") ?? "", (reason) =>
          change({ reason }, { push: true }),
        ),
        select("namespace", facets.namespace ?? [], filter().namespace, (namespace) =>
          change({ namespace, ns: "" }, { push: true }),
        ),
        select("node", (facets.node ?? []).slice(0, 50), query.get("node") ?? "", (node) =>
          change({ node }, { push: true }),
        ),
      ),
    );
  };
  const drawActions = () =>
    draw(
      actions,
      selected.size
        ? actionBar(
            selected,
            [...selected].filter((key) => grid.find(key)?.status === "waiting"),
            () => {
              selected.clear();
              grid.refresh(true);
              drawActions();
            },
          )
        : null,
    );
  const loadCounts = () =>
    get("/overview", {}, signal).then(
      (data) => {
        counts = data.counts;
        drawHead();
      },
      () => {},
    );
  drawHead();
  drawTools();
  void loadCounts();
  subscribe(
    "pods",
    (data) => {
      counts = data.counts ?? counts;
      grid.refresh();
      drawHead();
    },
    signal,
  );
  onReturn(() => {
    grid.refresh(true);
    void loadCounts();
  }, signal);
  return (/** @type {import("../address.js").Place} */ next) => {
    query = next.query;
    grid.reset(query.get("sort") || DEFAULT_SORT);
    drawHead();
    drawTools();
  };
}

/** All pods in a sentence: how many there are, and how many of them have no node. @param {any} counts */
function standing(counts) {
  const without = [
    ["waiting", counts.waiting],
    ["gated", counts.gated],
  ]
    .filter(([, pods]) => pods)
    .map(([status, pods]) => `${count(pods)} ${STANDING[status][pods === 1 ? 0 : 1]}`);
  return `${counted(counts.pods, "pod")}${without.length ? `: ${without.join(", ")}` : ", none waits for a node"}`;
}

/** @param {Set<string>} selected @param {() => void} changed @returns {import("../grid.js").Column[]} */
function columns(selected, changed) {
  return [
    {
      key: "pick",
      title: "",
      width: "28px",
      render: (row) => {
        const key = `${row.namespace}/${row.name}`;
        return h("input", {
          type: "checkbox",
          checked: selected.has(key),
          "aria-label": `Select ${key}`,
          onchange: (/** @type {Event} */ event) => {
            if (/** @type {HTMLInputElement} */ (event.target).checked) selected.add(key);
            else selected.delete(key);
            changed();
          },
        });
      },
    },
    {
      key: "name",
      title: "Pod",
      width: "minmax(170px, 1.7fr)",
      sort: "name",
      render: (row, _, letters) =>
        h("a", { class: "name", href: podAddress(row), title: row.name }, shortened(row.name, letters)),
    },
    {
      key: "namespace",
      title: "Namespace",
      width: "minmax(90px, .9fr)",
      sort: "namespace",
      minor: true,
      render: (row) => row.namespace,
    },
    { key: "status", title: "Status", width: "108px", sort: "status", render: (row) => badge(row.status) },
    {
      key: "why",
      title: "Reason",
      hint: "Why it waits, or by how much its node is ahead",
      width: "minmax(190px, 2.1fr)",
      render: (row) => h("span", { class: "clip", title: row.why || null }, row.why || ""),
    },
    {
      key: "node",
      title: "Node",
      width: "minmax(130px, 1.4fr)",
      sort: "node",
      render: (row, _, letters) => nodeLink(row.node, letters),
    },
    { key: "cpu", title: "CPU", width: "64px", right: true, minor: true, sort: "cpu", render: (row) => amount("cpu", row.cpu) },
    {
      key: "memory",
      minor: true,
      title: "Memory",
      width: "76px",
      right: true,
      sort: "memory",
      render: (row) => amount("memory", row.memory),
    },
    {
      key: "priority",
      minor: true,
      title: "Priority",
      width: "84px",
      right: true,
      sort: "priority",
      render: (row) => count(row.priority),
    },
    {
      key: "attempts",
      minor: true,
      title: "Attempts",
      width: "80px",
      right: true,
      sort: "attempts",
      render: (row) => count(row.attempts),
    },
    {
      key: "age",
      title: "Age",
      width: "62px",
      right: true,
      sort: "created_at",
      render: (row) => age(row.created_at, now()),
    },
  ];
}

/** @param {Record<string, string>} filter @param {any} counts */
function nothing(filter, counts) {
  const held = Object.entries(filter).filter(([, value]) => value);
  if (!held.length)
    return empty(
      "No pods yet.",
      h("a", { class: "button primary", href: to("new", { kind: "Pod" }) }, "Create pods"),
      h("a", { class: "button", href: to("sources") }, "Import a cluster"),
      "or start with bayplan up PATH",
    );
  const all = counts?.pods;
  return empty(
    `None of ${all ? count(all) : "the"} pods matches ${held.map(([key, value]) => `${key === "q" ? "the name" : key} “${cut(value, 40)}”`).join(" and ")}.`,
    ...held.map(([key, value]) =>
      h(
        "button",
        {
          type: "button",
          class: "button",
          onclick: () => change({ [key]: "", ...(key === "namespace" ? { ns: "" } : {}) }),
        },
        `Clear ${key === "q" ? "the name" : `${key}=${cut(value, 24)}`}`,
      ),
    ),
  );
}

/** @param {Set<string>} selected @param {string[]} waiting those that can be scheduled again @param {() => void} done */
function actionBar(selected, waiting, done) {
  const keys = [...selected];
  const remove = async () => {
    const sure = await ask({
      title: `Delete ${counted(keys.length, "pod")}?`,
      text: [
        h(
          "p",
          { class: "name" },
          keys.slice(0, FEW).join(", "),
          keys.length > FEW ? ` and ${keys.length - FEW} more` : "",
        ),
        "Controllers create new pods.",
      ],
      yes: "Delete",
      danger: true,
    });
    if (
      sure &&
      (await perform(`Delete ${counted(keys.length, "pod")}`, () =>
        eachPod(keys, (pod) => send(objectPath("core", "v1", "pods", pod.namespace, pod.name), { method: "DELETE" })),
      ))
    )
      done();
  };
  const retry = async () => {
    if (
      await perform(`Schedule ${counted(waiting.length, "pod")} again`, () =>
        eachPod(waiting, (pod) =>
          send(`/bayplan/v1/pods/${encodeURIComponent(pod.namespace)}/${encodeURIComponent(pod.name)}/retry`, {
            method: "POST",
          }),
        ),
      )
    )
      done();
  };
  return h(
    "div",
    { class: "panel row action-bar", role: "toolbar", "aria-label": "Selected pods", "data-test": "action-bar" },
    h("span", { class: "strong" }, `${count(keys.length)} selected`),
    h(
      "button",
      {
        type: "button",
        class: "button",
        disabled: !waiting.length,
        title: waiting.length ? null : "Only waiting pods can be scheduled again",
        onclick: () => void retry(),
      },
      "Schedule again",
    ),
    keys.length === 1 ? h("a", { class: "button", href: to("nodes", { fit: keys[0] }) }, "Show on map") : null,
    keys.length === 1
      ? h("a", { class: "button", href: to("new", { like: keys[0], count: 50 }) }, "Create 50 copies")
      : null,
    h("button", { type: "button", class: "button danger", onclick: () => void remove() }, "Delete"),
    h("span", { class: "grow" }),
    h("button", { type: "button", class: "button quiet", onclick: done }, "Clear"),
  );
}

/** @param {string[]} keys @param {(pod: { namespace: string, name: string }) => Promise<unknown>} act */
async function eachPod(keys, act) {
  for (const key of keys) await act(podOf(key));
}
