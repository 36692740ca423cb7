// The other tabs of a pod: attempts over time, what would help, preemption, YAML; and results other than those of Filter and Score.

import { draw, h } from "./dom.js";
import { breakable, count, counted, pointName, time } from "./format.js";
import { to } from "./address.js";
import { get, put } from "./service.js";
import { failure, loading } from "./states.js";
import { badge, copy, nodeLink, perform, podLink, podOf } from "./parts.js";

const MAX_NODES_SHOWN = 6;
/** Of the table of attempts, with the class of each. @type {[string, string][]} */
const ATTEMPT_COLUMNS = [
  ["Attempt", ""],
  ["Time", "minor"],
  ["Queue", "minor"],
  ["Woken by", "minor"],
  ["Outcome", ""],
  ["Feasible", "right minor"],
  ["Result", ""],
  ["Change", "minor"],
];

/** @param {any[]} attempts @param {(attempt: number) => void} open */
export function attemptTable(attempts, open) {
  if (!attempts.length) return h("p", { class: "calm" }, "No attempts.");
  return h(
    "table",
    { class: "list wide panel", "data-test": "attempts" },
    h(
      "thead",
      null,
      h(
        "tr",
        null,
        ATTEMPT_COLUMNS.map(([text, look]) => h("th", { scope: "col", key: text, class: look }, text)),
      ),
    ),
    h(
      "tbody",
      null,
      [...attempts]
        .reverse()
        .map((attempt) =>
          h(
            "tr",
            { key: attempt.number, class: "linked", onclick: () => open(attempt.attempt) },
            h(
              "td",
              { class: "figure" },
              h(
                "button",
                { type: "button", class: "as-link", onclick: () => open(attempt.attempt) },
                String(attempt.attempt),
              ),
            ),
            h("td", { class: "figure minor" }, time(attempt.at, true)),
            h("td", { class: "minor" }, attempt.tier ?? "–"),
            h("td", { class: "minor" }, breakable(attempt.woken_by || "–")),
            h(
              "td",
              null,
              badge(
                attempt.outcome === "scheduled" ? "placed" : attempt.outcome === "error" ? "error" : "waiting",
                attempt.outcome,
              ),
            ),
            h(
              "td",
              { class: "right figure minor" },
              `${count(attempt.feasible_nodes)} of ${count(attempt.evaluated_nodes)}`,
            ),
            h(
              "td",
              { class: "wrap" },
              attempt.node
                ? h("span", null, "→ ", nodeLink(attempt.node), attempt.margin ? ` ${count(attempt.margin)} ahead` : "")
                : h("span", { class: "clip-line", title: attempt.message }, attempt.message),
              attempt.nominated_node ? h("span", null, " nominated to ", nodeLink(attempt.nominated_node)) : null,
              attempt.victims?.length ? ` by preempting ${counted(attempt.victims.length, "pod")}` : "",
            ),
            h("td", { class: "wrap faint minor" }, attempt.difference ?? ""),
          ),
        ),
    ),
  );
}

/** @param {HTMLElement} root @param {string} address @param {AbortSignal} signal @param {string} pod */
export function remedyPart(root, address, signal, pod) {
  if (root.dataset.filled) return;
  root.dataset.filled = "help";
  draw(root, loading(5));
  const load = async () => {
    try {
      const data = await get(`${address}/remedies`, {}, signal);
      if (signal.aborted || root.dataset.filled !== "help") return;
      const items = data.items ?? data;
      draw(
        root,
        items.length
          ? h(
              "ol",
              { class: "remedies", "data-test": "remedies" },
              items.map((/** @type {any} */ remedy) => remedyLine(remedy, pod)),
            )
          : h(
              "p",
              { class: "calm" },
              data.why ||
                "No single change helps: every node fails more than one filter, or the pod is placed.",
            ),
      );
    } catch (problem) {
      if (!signal.aborted)
        draw(
          root,
          failure(problem, () => void load()),
        );
    }
  };
  void load();
}

/** @param {any} remedy @param {string} pod */
function remedyLine(remedy, pod) {
  const more = remedy.nodes.length - MAX_NODES_SHOWN;
  return h(
    "li",
    { class: "panel", key: remedy.text },
    h("p", { class: "strong" }, remedy.text),
    h(
      "p",
      null,
      remedy.verified ? badge("placed", "verified") : null,
      " ",
      remedy.nodes.length
        ? [
            "fits on ",
            ...remedy.nodes
              .slice(0, MAX_NODES_SHOWN)
              .flatMap((/** @type {string} */ node, /** @type {number} */ at) => [at ? ", " : "", nodeLink(node)]),
            more > 0 ? ` and ${count(more)} more` : "",
          ]
        : "needs another node",
      h("span", { class: "faint" }, ` · ${remedy.plugin}`),
    ),
    remedy.objects || remedy.config
      ? h(
          "div",
          { class: "row" },
          h("button", { type: "button", class: "button", onclick: () => void tryFork(remedy, pod) }, "Try in a fork"),
        )
      : null,
  );
}

/** @param {any} remedy @param {string} pod */
async function tryFork(remedy, pod) {
  await perform("Try in a fork", async () => {
    const fork = await put("POST", "/forks", { from: "now", objects: remedy.objects, config: remedy.config });
    location.assign(to("compare", { a: "now", b: fork.id, pod }));
  });
}

/** @param {HTMLElement} root @param {string} address @param {AbortSignal} signal */
export function preemptionPart(root, address, signal) {
  if (root.dataset.filled === address) return;
  root.dataset.filled = address;
  draw(root, loading(5));
  const load = async () => {
    try {
      const report = await get(address, {}, signal);
      if (signal.aborted || root.dataset.filled !== address) return;
      draw(
        root,
        report && (report.candidates || report.candidate_count !== undefined)
          ? preemptionReport(report)
          : h("p", { class: "calm" }, "Preemption did not run in this attempt."),
      );
    } catch (problem) {
      if (!signal.aborted)
        draw(
          root,
          failure(problem, () => void load()),
        );
    }
  };
  void load();
}

/** @param {any} report */
function preemptionReport(report) {
  const chosen = report.candidates.find((/** @type {any} */ each) => each.chosen);
  return h(
    "div",
    { class: "stack", "data-test": "preemption" },
    h(
      "p",
      { class: "strong" },
      chosen
        ? `${counted(chosen.victims.length, "pod")} on ${chosen.node} ${chosen.victims.length === 1 ? "makes" : "make"} room, out of ${counted(report.candidate_count, "candidate")}.`
        : report.candidate_count
          ? `${counted(report.candidate_count, "node")} could make room; none was chosen.`
          : "Preemption would not help on any node.",
    ),
    report.candidates.length
      ? h(
          "section",
          { class: "panel" },
          h("h2", null, "Candidates"),
          h(
            "table",
            { class: "list" },
            h(
              "thead",
              null,
              h(
                "tr",
                null,
                ["Node", "Victims", "Budgets violated", "Sum of priorities", "Rejected because"].map((text, at) =>
                  h("th", { scope: "col", key: text, class: at === 2 || at === 3 ? "right minor" : null }, text),
                ),
              ),
            ),
            h(
              "tbody",
              null,
              report.candidates.map((/** @type {any} */ each) =>
                h(
                  "tr",
                  {
                    key: each.node,
                    class: each.chosen ? "winner" : null,
                    "data-test": each.chosen ? "chosen-candidate" : "candidate",
                  },
                  h("td", null, each.chosen ? "★ " : "", nodeLink(each.node)),
                  h(
                    "td",
                    { class: "wrap" },
                    each.victims
                      .map((/** @type {any} */ victim, /** @type {number} */ at) => [
                        at ? ", " : "",
                        podLink(podOf(victim.pod), { letters: 36 }),
                        h("span", { class: "faint" }, ` (${count(victim.priority)})`),
                      ])
                      .flat(),
                  ),
                  h(
                    "td",
                    { class: `right figure minor${each.pdb_violations ? " bad-text" : ""}` },
                    count(each.pdb_violations),
                  ),
                  h("td", { class: "right figure minor" }, count(each.priority_sum)),
                  h(
                    "td",
                    { class: "wrap" },
                    each.chosen ? badge("placed", "chosen") : each.lost_by || "equal; not chosen by the seed",
                  ),
                ),
              ),
            ),
          ),
        )
      : null,
    report.refusals?.length
      ? h(
          "section",
          { class: "panel" },
          h("h2", null, "Infeasible nodes"),
          h(
            "table",
            { class: "list" },
            h(
              "tbody",
              null,
              report.refusals.map((/** @type {any} */ refusal, /** @type {number} */ at) =>
                h(
                  "tr",
                  { key: at },
                  h("td", { class: "tight figure" }, counted(refusal.count, "node")),
                  h("td", { class: "wrap" }, refusal.reasons.join("; ")),
                  h("td", { class: "faint" }, refusal.plugin),
                ),
              ),
            ),
          ),
        )
      : null,
    h(
      "p",
      { class: "faint" },
      [
        report.not_helpful && report.candidate_count ? `Preemption cannot help on ${counted(report.not_helpful, "node")}.` : "",
        report.untried ? `${counted(report.untried, "node")} were not evaluated: there were enough candidates.` : "",
        report.struck_out?.length ? `Rejected by extenders: ${report.struck_out.join(", ")}.` : "",
      ]
        .filter(Boolean)
        .join(" "),
    ),
  );
}

/** @param {HTMLElement} root @param {any} data @param {string} namespace @param {string} podName */
export function yamlPart(root, data, namespace, podName) {
  const text = data.manifest_text ?? (data.manifest ? JSON.stringify(data.manifest, null, 2) : "");
  draw(
    root,
    h(
      "div",
      { class: "stack" },
      h(
        "div",
        { class: "row" },
        h("button", { type: "button", class: "button", onclick: () => void copy(text, "YAML") }, "Copy"),
        data.deleted
          ? null
          : h(
              "a",
              { class: "button", href: to("objects", "core", "v1", "pods", namespace, podName, { tab: "edit" }) },
              "Edit",
            ),
        h("a", { class: "button", href: to("new", { like: `${namespace}/${podName}` }) }, "Create copy"),
      ),
      text
        ? h("pre", { class: "code", tabindex: 0, "data-test": "yaml" }, text)
        : h("p", { class: "calm" }, "The manifest is not recorded."),
    ),
  );
}

/** What was said at the other extension points: who narrowed the nodes, who held the pod back, what binding said. @param {any} data */
export function pointsPart(data) {
  const points = data.points ?? {};
  const lines = [];
  for (const [point, said] of Object.entries(points)) {
    // PreFilter results are columns if the matrix has rows.
    if (point === "pre_filter" && data.pre_filters?.length) continue;
    const entries = Array.isArray(said) ? said : said ? [said] : [];
    for (const entry of entries) {
      if (typeof entry === "string") lines.push([point, entry, ""]);
      else if (entry && typeof entry === "object") {
        const words = [
          entry.status && entry.status !== "Success" && entry.status !== "Skip" ? entry.status : "",
          entry.nodes !== undefined && entry.nodes !== null
            ? `leaves ${typeof entry.nodes === "number" ? counted(entry.nodes, "node") : Array.isArray(entry.nodes) ? counted(entry.nodes.length, "node") : String(entry.nodes)}`
            : "",
          (entry.reasons ?? []).join("; "),
          entry.message ?? "",
          entry.filter_error ?? "",
        ]
          .filter(Boolean)
          .join(" · ");
        if (words) lines.push([point, entry.plugin ?? entry.extender ?? "", words]);
      }
    }
  }
  if (data.skipped?.length)
    lines.push(["", `${counted(data.skipped.length, "plugin")} skipped`, "", data.skipped.join("\n")]);
  if (data.counts?.not_looked_at) {
    lines.push(["", `${counted(data.counts.not_looked_at, "node")} not evaluated: enough nodes fit`, ""]);
  }
  if (!lines.length) return null;
  return h(
    "p",
    { class: "points", "data-test": "points" },
    lines.map(([point, plugin, words, title], at) =>
      h(
        "span",
        { key: at, title: title ?? null, class: point ? null : "faint" },
        point ? h("span", { class: "faint" }, `${pointName(point)}: `) : null,
        [plugin, words].filter(Boolean).join(" "),
      ),
    ),
  );
}
