"""Sections of the report about changing nodes: node groups, autoscaler events, evictions by a descheduler."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from bayplan.reports import charts
from bayplan.reports.charts import Runs, TimeAxis
from bayplan.reports.html_parts import cell, chart_section, table
from bayplan.reports.run_data import RunData
from bayplan.sim.scaling import GroupCost

MAX_EVENTS = 200
"""Maximum number of events listed per run."""

MAX_NAMES = 3
"""Maximum number of nodes named per event; the others are counted."""


def node_sections(runs: Runs, axis: TimeAxis) -> Iterable[str]:
    """Yield sections about nodes that were added or removed, and about evictions by a descheduler."""
    changes = any(run.node_changes() for group in runs.values() for run in group)
    if not changes:
        yield '<h2 id="node-events">Nodes added and removed</h2><p>None after the start.</p>'
    else:
        count = charts.curves(runs, axis, "nodes", RunData.node_count)
        yield chart_section("node-count", "Number of nodes", "", count)
    groups = [name for name in _group_names(runs) if changes]
    for number, name in enumerate(groups if len(groups) > 1 else ()):
        figure = charts.curves(runs, axis, f"nodes of {name}", partial(RunData.node_count, group=name))
        yield chart_section(f"group-{number}", f"Number of nodes: {name}", "", figure)
    if any(run.facts.node_groups for group in runs.values() for run in group):
        yield _costs(runs)
    if any(run.scaling_events is not None for group in runs.values() for run in group):
        yield _scaling_events(runs, axis)
    elif changes:
        yield _node_changes(runs, axis)
    if any(run.descheduled is not None for group in runs.values() for run in group):
        yield from _descheduled(runs, axis)


def _group_names(runs: Runs) -> list[str]:
    found = dict.fromkeys(each.group for group in runs.values() for run in group for each in run.facts.node_groups)
    return list(found)


def _costs(runs: Runs) -> str:
    """Return the table of the costs of node groups by label, as means over seeds."""

    def of(run: RunData, name: str) -> GroupCost | None:
        return next((each for each in run.facts.node_groups if each.group == name), None)

    rows = []
    for label, group in runs.items():
        totals = [0.0] * len(group)
        for name in _group_names(runs):
            found = [each for each in (of(run, name) for run in group) if each is not None]
            if len(found) < len(group):
                continue
            totals = [total + each.cost for total, each in zip(totals, found, strict=True)]
            figures = ([each.nodes for each in found], [each.peak for each in found])
            hours, costs = [each.node_hours for each in found], [each.cost for each in found]
            rows.append([label, name, *(cell(each) for each in figures), cell(hours), cell(costs)])
        if any(run.facts.node_groups for run in group):
            rows.append([label, "all groups", "", "", "", cell(totals)])
    return "<h2>Cost of node groups</h2>" + table(
        "group-costs", ["run", "group", "nodes in all", "at once", "node hours", "cost"], rows
    )


def _scaling_events(runs: Runs, axis: TimeAxis) -> str:
    rows = [
        [
            label,
            axis.text(each["time_ns"] - group[0].result.start_ns),
            each["kind"],
            each["group"],
            _names(each["nodes"]),
            str(len(each["pods"])),
            each["reason"],
        ]
        for label, group in runs.items()
        for each in (group[0].scaling_events or [])[:MAX_EVENTS]
    ]
    text = "First run of each." if rows else "None."
    return f"<h2>Autoscaler events</h2><p>{text}</p>" + table(
        "scaling-events", ["run", axis.title, "event", "group", "nodes", "pods", "reason"], rows
    )


def _node_changes(runs: Runs, axis: TimeAxis) -> str:
    rows = [
        [label, axis.text(time), what, node]
        for label, group in runs.items()
        for time, what, node in group[0].node_changes()[:MAX_EVENTS]
    ]
    return "<h2>Nodes added and removed</h2><p>First run of each.</p>" + table(
        "node-events", ["run", axis.title, "event", "node"], rows
    )


def _descheduled(runs: Runs, axis: TimeAxis) -> Iterable[str]:
    yield chart_section(
        "descheduled", "Evictions by the descheduler", "Pods that it evicted, by plugin.", charts.descheduled(runs)
    )
    rows = [
        [label, axis.text(each["time_ns"] - group[0].result.start_ns), each["pod"], each["node"], each["plugin"]]
        for label, group in runs.items()
        for each in (group[0].descheduled or [])[:MAX_EVENTS]
    ]
    if rows:
        yield table("descheduled-pods", ["run", axis.title, "pod", "from", "plugin"], rows)


def _names(names: list[str]) -> str:
    more = len(names) - MAX_NAMES
    return ", ".join(names[:MAX_NAMES]) + (f" and {more:,} more" if more > 0 else "")
