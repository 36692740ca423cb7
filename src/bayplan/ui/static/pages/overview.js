// Overview: is anything wrong, and what? First the headline, then four numbers, then the evidence.

import { draw, h } from "../dom.js";
import { amount, count, percent, reasonsIn, span, time } from "../format.js";
import { go, nodeAddress, to } from "../address.js";
import { get } from "../service.js";
import { now, onReload, subscribe } from "../stream.js";
import { loadPanel, empty } from "../loading_states.js";
import { utilisationPanel } from "../utilisation.js";
import { badge, copyMenu, meter, nodeLink, podLink, tile } from "../parts.js";
import { announceToScreenReader } from "../notices.js";
import { Cells } from "../cells.js";
import { nodeCards } from "../node_cards.js";
import { title } from "../shell.js";
import { WaitingPanel } from "../waiting_panel.js";

/** If the cluster has fewer nodes than this, each is drawn as a card with its pods. */
export const MAX_CARDS = 60;

/** @param {import("../main.js").Page} page */
export function open({ root, signal }) {
  title("");
  const body = h("div", { class: "overview" });
  const cluster = h("section", { class: "cluster", "aria-label": "The cluster" });
  const drawing = {
    root: cluster,
    signal,
    nodes: -1,
    state: "",
    cells: /** @type {Cells | null} */ (null),
    cards: /** @type {(() => void) | null} */ (null),
  };
  root.append(body);
  const waiting = new WaitingPanel(signal, () => void load());
  /** @type {Api.Overview | null} */
  let newest = null;
  const read = async () => {
    const data = newest ?? (await get("/overview", {}, signal));
    waiting.show(data);
    return { data, headline: waiting.summary || data.summary };
  };
  const render = (/** @type {{ data: Api.Overview, headline: string }} */ { data, headline }) => {
    newest = data;
    announceToScreenReader(headline);
    void showCluster(drawing, data);
    return parts(data, headline, cluster, waiting);
  };
  const load = loadPanel(body, read, render, {
    signal,
    lines: 10,
    failed: () => [h("h1", { class: "verdict" }, "The overview can't be shown")],
  });
  const reload = () => {
    newest = null;
    void load();
  };
  void load();
  subscribe(
    "overview",
    (data) => {
      newest = data;
      void load();
    },
    signal,
  );
  onReload(reload, signal);
  const tick = setInterval(() => {
    for (const place of root.querySelectorAll("[data-until]"))
      place.textContent = until(/** @type {HTMLElement} */ (place).dataset.until ?? "");
  }, 500);
  signal.addEventListener("abort", () => clearInterval(tick));
}

/** @param {string} at */
export function until(at) {
  const left = (Date.parse(at) - now()) / 1000;
  return left <= 0 ? "now" : `in ${span(left)}`;
}

/** For an empty cluster: the ways to fill it, instead of zeros. */
function beginnings() {
  return h(
    "section",
    { class: "panel" },
    empty(
      "Fill it from here, or start bayplan up with manifests or a dump: bayplan up PATH",
      h("a", { class: "button primary", href: to("new", { kind: "Node" }) }, "Create nodes"),
      h("a", { class: "button", href: to("new", { kind: "Pod" }) }, "Create pods"),
      h("a", { class: "button", href: to("sources") }, "Import a cluster"),
    ),
  );
}

/** @param {Api.Overview} data @param {string} headline @param {HTMLElement} cluster @param {WaitingPanel} waiting */
function parts(data, headline, cluster, waiting) {
  const { counts } = data;
  const waits = counts.waiting;
  return [
    h(
      "div",
      { class: "head" },
      h("h1", { class: `verdict${headline.length > 130 ? " long" : ""}`, "data-test": "verdict" }, headline),
      waits
        ? h(
            "a",
            { class: "button primary", href: to("pods", { status: "waiting" }), "data-test": "show-waiting" },
            "Show pods",
          )
        : null,
      copyMenu({ json: "/bayplan/v1/overview" }),
    ),
    data.source
      ? h(
          "p",
          { key: "source", class: "faint" },
          h("a", { href: to("sources") }, data.source.summary),
        )
      : null,
    ...data.scheduler.plugins_failed.map((failed) =>
      h(
        "div",
        { class: "note bad", key: failed.plugin },
        h(
          "p",
          null,
          h("span", { class: "strong" }, `✕ Plugin ${failed.plugin} failed: `),
          failed.message,
          " ",
          h("a", { href: to("plugins") }, "Traceback"),
        ),
      ),
    ),
    ...(counts.pods || counts.nodes || counts.finished ? figures(data, cluster, waiting) : [beginnings()]),
  ];
}

/** @param {Api.Overview} data @param {HTMLElement} cluster @param {WaitingPanel} waiting */
function figures(data, cluster, waiting) {
  const { counts, decisions } = data;
  const cpu = data.utilisation.find((row) => row.resource === "cpu" && !row.zone);
  const waits = counts.waiting;
  return [
    h(
      "div",
      { class: "tiles" },
      tile(
        "Placed",
        count(counts.placed),
        to("pods", { status: "placed" }),
        `of ${count(counts.pods)} pods`,
        "figure-placed",
      ),
      tile(
        "Pending",
        count(waits),
        to("pods", { status: "waiting" }),
        counts.gated ? `and ${count(counts.gated)} gated` : "without a node",
        "figure-waiting",
      ),
      tile(
        "Decisions",
        count(decisions.total),
        to("timeline"),
        `${rate(decisions.per_second)}, 99 % within ${decisions.p99_ms < 10 ? decisions.p99_ms.toFixed(1) : Math.round(decisions.p99_ms)} ms`,
        "figure-decisions",
      ),
      tile(
        "CPU requested",
        percent(cpu?.share),
        to("nodes", { metric: "cpu" }),
        cpu ? `of ${amount("cpu", cpu.allocatable)}; at most ${amount("cpu", cpu.largest_gap)} free on a node` : "",
        "figure-cpu",
      ),
      tile("Nodes", count(counts.nodes), to("nodes"), nodeWords(counts), "figure-nodes"),
    ),
    h(
      "div",
      { class: "columns" },
      h("div", { class: "stack" }, waiting.element, queuePanel(data), utilisationPanel(data), latestPanel(data)),
      h(
        "div",
        { class: "stack" },
        h(
          "section",
          { class: "panel" },
          h(
            "div",
            { class: "row" },
            h("h2", { class: "grow" }, "Nodes"),
            h("a", { href: to("nodes") }, "Show all"),
          ),
          slot(cluster),
        ),
      ),
    ),
  ];
}

/** A place for an element that stays the same while everything around it is drawn again. @param {HTMLElement} element */
function slot(element) {
  const place = h("div", { own: true, key: "slot" });
  if (!element.isConnected) place.append(element);
  return place;
}

/** @param {number} perSecond */
function rate(perSecond) {
  return `${perSecond >= 10 ? count(Math.round(perSecond)) : perSecond.toFixed(1)} a second`;
}

/** @param {Api.ClusterTotals} counts */
function nodeWords(counts) {
  /** @type {[number, string][]} */
  const words = [
    [counts.nodes_full, "full"],
    [counts.nodes_cordoned, "cordoned"],
    [counts.nodes_not_ready, "not ready"],
  ];
  return (
    words
      .filter(([value]) => value)
      .map(([value, word]) => `${count(value)} ${word}`)
      .join(", ") || (counts.nodes ? "all ready" : "none yet")
  );
}

/** @param {Api.Overview} data */
function queuePanel(data) {
  const { queue } = data;
  const figure = (/** @type {keyof Api.QueueCounts} */ tier, /** @type {string} */ label) =>
    h(
      "a",
      { class: "mini", href: to("queue", { tier }), key: tier },
      h("span", { class: "mini-figure" }, count(queue[tier])),
      h("span", { class: "mini-label" }, label),
    );
  return h(
    "section",
    { class: "panel", "aria-label": "Queue" },
    h(
      "div",
      { class: "row" },
      h("h2", { class: "grow" }, "Queue"),
      queue.next_retry_at
        ? h(
            "span",
            { class: "faint" },
            "next attempt ",
            h("span", { "data-until": queue.next_retry_at }, until(queue.next_retry_at)),
          )
        : null,
    ),
    h(
      "div",
      { class: "minis" },
      figure("active", "active"),
      figure("backoff", "in backoff"),
      figure("unschedulable", "unschedulable"),
      figure("gated", "gated"),
      h(
        "span",
        { class: "mini" },
        h("span", { class: "mini-figure" }, count(data.preemptions)),
        h("span", { class: "mini-label" }, "preemptions"),
      ),
      h(
        "span",
        { class: `mini${data.binding_failures ? " bad-text" : ""}` },
        h("span", { class: "mini-figure" }, count(data.binding_failures)),
        h("span", { class: "mini-label" }, "binding failures"),
      ),
    ),
  );
}

/** @param {Api.Overview} data */
function latestPanel(data) {
  const { latest } = data;
  return h(
    "section",
    { class: "panel", "aria-label": "Latest decisions" },
    h(
      "div",
      { class: "row" },
      h("h2", { class: "grow" }, "Latest decisions"),
      h("a", { href: to("timeline") }, "Timeline"),
    ),
    latest.length
      ? h(
          "ol",
          { class: "feed" },
          latest
            .slice(0, 8)
            .map((decision) =>
              h(
                "li",
                { key: decision.number },
                h("span", { class: "faint figure" }, time(decision.at)),
                badge(
                  decision.outcome === "scheduled" ? "placed" : decision.outcome === "error" ? "error" : "waiting",
                  "",
                ),
                podLink(decision, { letters: 34 }),
                decision.node
                  ? h(
                      "span",
                      { class: "feed-end" },
                      "→ ",
                      nodeLink(decision.node, 28),
                      decision.margin ? h("span", { class: "faint" }, ` +${count(decision.margin)}`) : null,
                    )
                  : h("span", { class: "feed-end faint", title: decision.message }, reasonsIn(decision.message)),
              ),
            ),
        )
      : h("p", { class: "calm" }, "No decision yet."),
  );
}

/** @param {{ root: HTMLElement, signal: AbortSignal, nodes: number, state: string, cells: Cells | null, cards: (() => void) | null }} drawing @param {Api.Overview} data */
async function showCluster(drawing, data) {
  const { nodes } = data.counts;
  if (!nodes) {
    draw(
      drawing.root,
      empty(
        "No nodes yet: pods will stay pending.",
        h("a", { class: "button primary", href: to("new", { kind: "Node" }) }, "Create nodes"),
        h("a", { class: "button", href: to("sources") }, "Import a cluster"),
        "or start with bayplan up PATH",
      ),
    );
    drawing.nodes = 0;
    return;
  }
  const few = nodes < MAX_CARDS;
  const changedKind = drawing.nodes <= 0 || drawing.nodes < MAX_CARDS !== few;
  // Other changes on a card come with the pods; the cards follow those themselves.
  const state = JSON.stringify(data.counts);
  const changed = state !== drawing.state;
  drawing.state = state;
  drawing.nodes = nodes;
  if (few) {
    if (changedKind || !drawing.cards)
      drawing.cards = nodeCards(drawing.root, { signal: drawing.signal, small: nodes > 12, query: {}, waiting: true });
    else if (changed) drawing.cards();
    return;
  }
  if (!changedKind) return;
  const zones = h("div", { class: "zones" });
  const cells = new Cells({
    signal: drawing.signal,
    small: true,
    height: () => 210,
    onSelect: (name) => go(nodeAddress(name)),
    onOpen: (name) => go(nodeAddress(name)),
  });
  drawing.root.replaceChildren(cells.element, zones);
  let layout = -1;
  const fetchCells = async () => {
    const answer = await get("/nodes/cells", { metric: "cpu", by: "zone" }, drawing.signal).catch(() => null);
    if (!answer) return;
    layout = answer.layout;
    cells.show(answer.groups);
  };
  await fetchCells();
  drawZones(zones, data);
  subscribe(
    "nodes:cpu",
    (changed) =>
      changed.layout !== layout ? void fetchCells() : cells.update(changed),
    drawing.signal,
  );
}

/** @param {HTMLElement} root @param {Api.Overview} data */
function drawZones(root, data) {
  const zones = data.utilisation.filter((row) => row.zone && row.resource === "cpu");
  draw(
    root,
    zones.length > 1
      ? h(
          "div",
          { class: "zone-list" },
          zones.map((row) =>
            h(
              "a",
              { class: "zone", key: row.zone, href: to("nodes", { zone: row.zone }) },
              h("span", null, row.zone),
              meter(row.share),
              h("span", { class: "figure" }, percent(row.share)),
            ),
          ),
        )
      : null,
  );
}
