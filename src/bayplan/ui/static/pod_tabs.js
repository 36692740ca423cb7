// The other tabs of a pod: attempts over time, preemption, YAML; and the results of extension points other than Filter
// and Score.

import { draw, h } from "./dom.js";
import { breakable, count, counted, pointName, time } from "./format.js";
import { to } from "./address.js";
import { get } from "./service.js";
import { failure, loading } from "./loading_states.js";
import { badge, copy, nodeLink, podLink, podOf, tableHead } from "./parts.js";

/** The columns of the table of attempts: title and class. @type {[string, string][]} */
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

/** @param {Api.AttemptSummary[]} attempts @param {(attempt: number) => void} open */
export function attemptTable(attempts, open) {
  if (!attempts.length) return h("p", { class: "calm" }, "No attempts.");
  return h(
    "table",
    { class: "list wide panel", "data-test": "attempts" },
    tableHead(ATTEMPT_COLUMNS),
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
              attempt.victims.length ? ` by preempting ${counted(attempt.victims.length, "pod")}` : "",
            ),
            h("td", { class: "wrap faint minor" }, attempt.difference),
          ),
        ),
    ),
  );
}

/** @typedef {{ namespace: string, name: string }} PodName */

/** @param {HTMLElement} root @param {PodName & { attempt: string, run: string | null }} of @param {AbortSignal} signal */
export function preemptionPart(root, of, signal) {
  const asked = `preemption ${of.attempt}`;
  if (root.dataset.filled === asked) return;
  root.dataset.filled = asked;
  draw(root, loading(5));
  const load = async () => {
    try {
      const report = await get("/pods/{namespace}/{name}/attempts/{attempt}/preemption", of, signal);
      if (signal.aborted || root.dataset.filled !== asked) return;
      draw(
        root,
        report
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

/** @param {Api.PreemptionReport} report */
function preemptionReport(report) {
  const chosen = report.candidates.find((each) => each.chosen);
  const words = chosen
    ? `${counted(chosen.victims.length, "pod")} on ${chosen.node} ${chosen.victims.length === 1 ? "makes" : "make"} room, out of ${counted(report.candidate_count, "candidate")}.`
    : report.candidate_count
      ? `${counted(report.candidate_count, "node")} could make room; none was chosen.`
      : "Preemption would not help on any node.";
  const rest = [
    report.not_helpful && (report.candidate_count || report.refusals.length)
      ? `Preemption cannot help on ${counted(report.not_helpful, "node")}.`
      : "",
    report.untried ? `${counted(report.untried, "node")} were not evaluated: there were enough candidates.` : "",
    report.struck_out.length ? `Rejected by extenders: ${report.struck_out.join(", ")}.` : "",
  ];
  return h(
    "div",
    { class: "stack", "data-test": "preemption" },
    h("p", { class: "strong" }, words),
    report.candidates.length ? candidatePanel(report.candidates) : null,
    report.refusals.length ? refusalPanel(report.refusals) : null,
    h("p", { class: "faint" }, rest.filter(Boolean).join(" ")),
  );
}

/** The columns of the table of candidates: title and class. @type {[string, string][]} */
const CANDIDATE_COLUMNS = [
  ["Node", ""],
  ["Victims", ""],
  ["Budgets violated", "right minor"],
  ["Sum of priorities", "right minor"],
  ["Rejected because", ""],
];

/** @param {Api.CandidateReport[]} candidates */
function candidatePanel(candidates) {
  return h(
    "section",
    { class: "panel" },
    h("h2", null, "Candidates"),
    h(
      "table",
      { class: "list" },
      tableHead(CANDIDATE_COLUMNS),
      h("tbody", null, candidates.map(candidateRow)),
    ),
  );
}

/** @param {Api.CandidateReport} candidate */
function candidateRow({ node, chosen, victims, pdb_violations: violated, priority_sum: sum, lost_by: lost }) {
  return h(
    "tr",
    { key: node, class: chosen ? "winner" : null, "data-test": chosen ? "chosen-candidate" : "candidate" },
    h("td", null, chosen ? "★ " : "", nodeLink(node)),
    h(
      "td",
      { class: "wrap" },
      victims.flatMap((victim, at) => [
        at ? ", " : "",
        podLink(podOf(victim.pod), { letters: 36 }),
        h("span", { class: "faint" }, ` (${count(victim.priority)})`),
      ]),
    ),
    h("td", { class: `right figure minor${violated ? " bad-text" : ""}` }, count(violated)),
    h("td", { class: "right figure minor" }, count(sum)),
    h("td", { class: "wrap" }, chosen ? badge("placed", "chosen") : lost || "a tie, broken at random"),
  );
}

/** @param {Api.PreemptionRefusal[]} refusals */
function refusalPanel(refusals) {
  return h(
    "section",
    { class: "panel" },
    h("h2", null, "Infeasible nodes"),
    h(
      "table",
      { class: "list" },
      h(
        "tbody",
        null,
        refusals.map((refusal, at) =>
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
  );
}

/** @param {HTMLElement} root @param {Api.PodPage} data @param {string} namespace @param {string} podName */
export function yamlPart(root, data, namespace, podName) {
  const text = data.manifest_text;
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

/**
 * The results of other extension points, such as PreFilter node lists, PreEnqueue gates and binding.
 * @param {Api.ColumnMatrix | Api.NoMatrix} data
 */
export function pointsPart(data) {
  if (data.form === "none") return null;
  /** @type {[point: string, plugin: string, words: string, title?: string][]} */
  const lines = [];
  const { pre_filter: preFilter, pre_score: preScore, extenders, ...late } = data.points;
  const status = (/** @type {string} */ code) => (code === "Success" || code === "Skip" ? "" : code);
  // If the matrix has rows, it has columns for the results of PreFilter plugins.
  for (const result of data.pre_filters.length ? [] : preFilter) {
    const remaining = result.nodes === null ? "" : `leaves ${counted(result.nodes, "node")}`;
    lines.push(["pre_filter", result.plugin, joined(status(result.status), remaining, result.message)]);
  }
  for (const result of preScore) lines.push(["pre_score", result.plugin, status(result.status)]);
  for (const result of extenders) lines.push(["extenders", result.extender, result.filter_error]);
  for (const [point, answers] of Object.entries(late))
    for (const result of answers) lines.push([point, result.plugin, joined(status(result.status), result.message)]);
  const visibleLines = lines.filter(([, , words]) => words);
  if (data.skipped.length)
    visibleLines.push(["", `${counted(data.skipped.length, "plugin")} with nothing to check for this pod`, "", data.skipped.join("\n")]);
  if (data.counts.not_evaluated)
    visibleLines.push(["", `${counted(data.counts.not_evaluated, "node")} not examined`, ""]);
  return pointLines(visibleLines);
}

/** @param {...string} words */
function joined(...words) {
  return words.filter(Boolean).join(" · ");
}

/** @param {[point: string, plugin: string, words: string, title?: string][]} lines */
function pointLines(lines) {
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
