"""The results of an attempt in the form of kube-scheduler-simulator's annotations, built from a decision.

Keys and formats are the same, but its bugs are not reproduced: weights and extender scores are the actual ones, and the
results of Filter are those of the cycle, not of a later dry run (docs/simulator.md).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from bayplan.base.go_text.durations import format_duration
from bayplan.engine.decision import Decision, Outcome
from bayplan.engine.extenders import ExtenderResult
from bayplan.formats.result_annotations import (
    PASSED,
    SUCCESS,
    ExtenderFilterResult,
    ExtenderResults,
    HostPriority,
    NodeScores,
    NodeTexts,
    PluginTexts,
    SchedulingResults,
)
from bayplan.framework.status import Code
from bayplan.live.decision_store import LatePoints, PointResult

WAIT = "wait"
VICTIM = "preemption victim"


def attempt_results(
    decision: Decision, points: LatePoints, late_results: Sequence[PointResult], *, extended: bool = False
) -> SchedulingResults:
    """Return the content of the annotations of an attempt.

    Args:
        decision: the full record of the attempt.
        points: the plugins after filtering and scoring.
        late_results: the statuses of plugins, except plain success.
        extended: whether extenders are configured, even if none was called.
    """
    scheduled = decision.record.outcome is Outcome.SCHEDULED
    late = (
        _late_texts(points, late_results)
        if scheduled
        else {point: {} for point in ("Reserve", "Permit", "PreBind", "Bind")}
    )
    waits = {it.plugin: it.timeout_ns for it in late_results if it.point == "Permit" and it.status.code is Code.WAIT}
    return SchedulingResults(
        pre_filter_status={it.plugin: _text(it.code, it.message) for it in decision.pre_filters},
        pre_filter={it.plugin: sorted(it.node_names) for it in decision.pre_filters if it.node_names is not None},
        filter=_filter_texts(decision),
        post_filter=_post_filter_texts(decision, points, late_results),
        pre_score={plugin: _text(code, "") for plugin, code in decision.pre_scores},
        score=_scores(decision, weighted=False),
        final_score=_scores(decision, weighted=True),
        reserve=late["Reserve"],
        permit=late["Permit"],
        permit_timeout={plugin: format_duration(waits.get(plugin, 0)) for plugin in late["Permit"]},
        pre_bind=late["PreBind"],
        bind=late["Bind"],
        selected_node=decision.record.node,
        extenders=_extender_results(decision) if extended or decision.extenders else None,
    )


def nodes_by_interest(decision: Decision) -> list[str]:
    """Return the names of all nodes: the chosen or nominated one first, then by total, then by the first filter that failed.

    Higher totals and later filters come first.
    """
    failures = (decision.codes != 0).argmax(axis=0) if len(decision.codes) else decision.total
    order = sorted(
        range(len(decision.names)),
        key=lambda row: (
            decision.names[row] not in (decision.record.node, decision.record.nominated_node),
            -int(decision.total[row]),
            -int(failures[row]),
            row,
        ),
    )
    return [decision.names[row] for row in order]


def _text(code: Code, message: str) -> str:
    return SUCCESS if code is Code.SUCCESS else message


def _filter_texts(decision: Decision) -> NodeTexts:
    """Return the results of the filters for each examined node, up to the first failure."""
    if decision.pre_filter is not None:
        return {}
    plugins = decision.filters[: len(decision.filters) - len(decision.extenders)]
    all_passed = dict.fromkeys(plugins, PASSED)
    found: NodeTexts = {}
    failing = np.count_nonzero(decision.codes[: len(plugins)], axis=0)
    for row in decision.examined.nonzero()[0].tolist():
        if not failing[row] and row not in decision.overrides:
            found[decision.names[row]] = all_passed
            continue
        number, verdict = decision.overrides.get(row, (-1, 0))
        if number < 0:
            number = int(decision.codes[: len(plugins), row].nonzero()[0][0])
            verdict = int(decision.codes[number, row])
        texts: PluginTexts = dict.fromkeys(plugins[:number], PASSED)
        texts[plugins[number]] = decision.statuses[number, verdict].message
        found[decision.names[row]] = texts
    return found


def _post_filter_texts(decision: Decision, points: LatePoints, late_results: Sequence[PointResult]) -> NodeTexts:
    """Return a row for every examined node of an unschedulable pod; the nominated node's row has the plugin that chose it."""
    if decision.record.outcome is not Outcome.UNSCHEDULABLE or not points.post_filter:
        return {}
    if decision.pre_filter is not None:
        return {}
    found: NodeTexts = {decision.names[row]: {} for row in decision.examined.nonzero()[0].tolist()}
    if decision.record.nominated_node in found:
        found[decision.record.nominated_node] = {it.plugin: VICTIM for it in late_results if it.point == "PostFilter"}
    return found


def _scores(decision: Decision, *, weighted: bool) -> NodeScores:
    plugins = len(decision.scorers) - sum(it.scores is not None for it in decision.extenders)
    if not plugins or decision.record.outcome is not Outcome.SCHEDULED:
        return {}
    values = (decision.weighted if weighted else decision.raw)[:plugins]
    names = decision.scorers[:plugins]
    rows = decision.feasible.nonzero()[0].tolist()
    columns = values[:, rows].T.tolist()
    return {
        decision.names[row]: dict(zip(names, column, strict=True)) for row, column in zip(rows, columns, strict=True)
    }


def late_answers(
    points: LatePoints, late_results: Sequence[PointResult]
) -> Iterator[tuple[str, str, PointResult | None]]:
    """Yield the plugins that were called after a node was chosen, in order, up to the first that rejected the pod.

    Args:
        points: the plugins of the profile.
        late_results: the statuses of plugins, except plain success.

    Yields:
        Extension point, plugin, and its status; None for plain success.
    """
    plugins = {"Reserve": points.reserve, "Permit": points.permit, "PreBind": points.pre_bind, "Bind": points.bind[:1]}
    for point, names in plugins.items():
        by_plugin = {it.plugin: it for it in reversed(late_results) if it.point == point}
        if point == "Bind" and by_plugin:
            names = tuple(by_plugin)
        for name in names:
            it = by_plugin.get(name)
            yield point, name, it
            if it is not None and not it.status.ok and it.status.code is not Code.WAIT:
                return
        if any(it.status.code.rejects or it.status.code is Code.ERROR for it in by_plugin.values()):
            # The pod was rejected while it waited at Permit.
            return


def _late_texts(points: LatePoints, late_results: Sequence[PointResult]) -> dict[str, PluginTexts]:
    """Return the texts of the plugins that were called after a node was chosen, by extension point."""
    found: dict[str, PluginTexts] = {point: {} for point in ("Reserve", "Permit", "PreBind", "Bind")}
    for point, name, it in late_answers(points, late_results):
        if it is None or it.status.ok:
            found[point][name] = SUCCESS
        else:
            found[point][name] = WAIT if it.status.code is Code.WAIT else it.status.message
    return found


def _extender_results(decision: Decision) -> ExtenderResults:
    asked = [it for it in decision.extenders if it.asked]
    scored = [it for it in decision.extenders if it.scores is not None]
    names = decision.names
    return ExtenderResults(
        filter={it.name: _extender_filter(it, names) for it in asked},
        prioritize={
            it.name: [HostPriority(names[row], score * it.scale * it.weight) for row, score in it.scores or ()]
            for it in scored
        },
    )


def _extender_filter(result: ExtenderResult, names: Sequence[str]) -> ExtenderFilterResult:
    """Return an extender's response with names of nodes, even if it was called with node objects."""
    refused = dict(result.refused)
    failed: dict[str, str] = {}
    unresolvable: dict[str, str] = {}
    for name, status in (*((names[row], status) for row, status in result.refused), *result.unknown):
        into = unresolvable if status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE else failed
        into[name] = status.message
    return ExtenderFilterResult(
        node_names=[names[row] for row in result.asked if row not in refused],
        failed_nodes=failed,
        failed_and_unresolvable_nodes=unresolvable,
        error=result.filter_error,
    )
