"""The report: one HTML file with all charts and tables in it, which needs no network.

Plotly draws the charts in the browser; its script is part of the file (4 MB).
"""

from __future__ import annotations

import html
import json
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from bayplan.analysis.result_directory import open_result
from bayplan.base.durations import SECOND_NS
from bayplan.base.errors import InputError
from bayplan.base.extras import named_extras
from bayplan.base.version import KUBERNETES_VERSION, __version__
from bayplan.reports import charts
from bayplan.reports.charts import Figure, Runs, TimeAxis
from bayplan.reports.intervals import mean_and_margin
from bayplan.reports.run_data import RunData
from bayplan.state.arrays import Floats

MAX_RESOURCES = 6
MAX_EVENTS = 200

_STYLE = """
body{font:15px/1.5 system-ui,sans-serif;margin:0 auto;max-width:1200px;padding:1rem 1.5rem;color:#1f2937;background:#fff}
h1{font-size:1.5rem;margin:.5rem 0}h2{font-size:1.15rem;margin:2rem 0 .25rem;border-top:1px solid #e5e7eb;padding-top:1rem}
p{margin:.25rem 0;color:#4b5563}table{border-collapse:collapse;margin:.75rem 0;font-size:.9rem}
th,td{padding:.25rem .75rem;border-bottom:1px solid #e5e7eb;text-align:right}th:first-child,td:first-child{text-align:left}
.chart{min-height:340px}.scroll{overflow-x:auto}
"""

_SCRIPT = """
for (const element of document.querySelectorAll('.chart')) {
  const figure = JSON.parse(document.getElementById(element.dataset.figure).textContent);
  const layout = Object.assign({margin: {l: 70, r: 20, t: 40, b: 50}, height: 340, template: 'none',
    legend: {orientation: 'h', y: 1, yanchor: 'bottom'}, font: {family: 'system-ui, sans-serif', size: 12}}, figure.layout);
  Plotly.newPlot(element, figure.data, layout, {responsive: true, displaylogo: false});
}
document.documentElement.dataset.drawn = 'true';
"""


def read_runs(sources: Sequence[str]) -> dict[str, list[RunData]]:
    """Open result directories, given as ``DIR`` or ``LABEL=DIR``; those with one label are runs of different seeds.

    Raises:
        InputError: a folder is not a result.
    """
    runs: dict[str, list[RunData]] = {}
    for source in sources:
        label, equals, folder = source.partition("=")
        if not equals or Path(source).is_dir():
            folder = source
            label = Path(source).name
        runs.setdefault(label, []).append(RunData(open_result(folder), label))
    if not runs:
        raise InputError(
            "report", got="no results", wanted="result directories", hint="bayplan simulate PATH --out DIR"
        )
    return runs


def report_page(runs: Runs, *, title: str = "Bayplan report") -> str:
    """Return the whole report as HTML.

    Raises:
        MissingExtra: Plotly is not installed.
    """
    with named_extras():
        from plotly.offline import get_plotlyjs
    body = "\n".join(_sections(runs))
    script: str = get_plotlyjs()
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head><meta charset="utf-8"><title>{html.escape(title)}</title>'
        '<meta name="viewport" content="width=device-width">'
        f'<link rel="icon" href="data:,"><style>{_STYLE}</style></head>\n<body>\n<h1>{html.escape(title)}</h1>\n{body}\n'
        f"<script>{script}</script>\n<script>{_SCRIPT}</script>\n</body></html>\n"
    )


def _sections(runs: Runs) -> Iterable[str]:
    axis = TimeAxis(runs)
    first = next(iter(runs.values()))[0]
    yield f"<p>Bayplan {__version__}, decisions of kube-scheduler {KUBERNETES_VERSION}. {_seeds(runs)}</p>"
    yield _summary(runs)
    resources = _asked_for(runs)
    for number, resource in enumerate(resources):
        yield _chart(
            f"utilisation-{number}",
            f"Utilisation over time: {resource}",
            "Requests of the pods on nodes, in percent of what the nodes offer.",
            charts.curves(runs, axis, f"{resource} requested (%)", partial(RunData.utilisation, resource=resource)),
        )
    yield _chart(
        "queue", "Queue length", "Pods that wait for a node.", charts.curves(runs, axis, "pods", RunData.queue_length)
    )
    yield _chart(
        "waits",
        "Waiting times",
        "Share of the pods that waited at most so long, of those that got a node.",
        charts.wait_distribution(runs),
    )
    yield _chart(
        "waits-priority",
        "Waiting times by priority",
        "",
        charts.waits_by(runs, "priority", lambda run: [str(each) for each in run.pods.priorities.tolist()]),
    )
    yield _chart(
        "waits-workload",
        "Waiting times by workload",
        f"The {charts.MAX_GROUPS} workloads with the most pods.",
        charts.waits_by(runs, "workload", lambda run: run.pods.workloads),
    )
    for number, resource in enumerate(resources[:3]):
        yield _chart(
            f"fragmentation-{number}",
            f"Fragmentation: {resource}",
            "Share of the idle amount on nodes without room for a typical pod. Only amounts count.",
            charts.curves(
                runs,
                axis,
                "fragments (% of idle)",
                partial(RunData.fragmentation, resource=resource),
                charts.SLOW_POINTS,
            ),
        )
    yield _chart(
        "rejections", "Rejections by plugin", "Share of the rejected nodes in failed attempts.", charts.rejections(runs)
    )
    for number, (label, group) in enumerate(runs.items()):
        if resources and resources[0] in group[0].resources:
            yield _chart(
                f"nodes-{number}",
                f"Nodes: {label}",
                f"Utilisation of {resources[0]} by node and time, first run.",
                charts.heat_map(group[0], axis, resources[0]),
            )
    yield _chart(
        "gantt", f"Pods: {first.label}", f"The first {charts.MAX_BARS} pods, first run.", charts.gantt(first, axis)
    )
    yield _node_events(runs, axis)


def _asked_for(runs: Runs) -> list[str]:
    """Return the resources that some pod asks for and some node offers."""
    found: dict[str, None] = {}
    for group in runs.values():
        for run in group:
            for name, requests in zip(run.resources, run.pods.requests, strict=True):
                if requests.any():
                    found[name] = None
    return list(found)[:MAX_RESOURCES]


def _seeds(runs: Runs) -> str:
    parts = [f"{label}: seeds {', '.join(str(run.facts.seed) for run in group)}" for label, group in runs.items()]
    several = any(len(group) > 1 for group in runs.values())
    text = "; ".join(parts) + "."
    return html.escape(text) + (" Bands and error bars are 95 % confidence intervals over seeds." if several else "")


def _summary(runs: Runs) -> str:
    """Return the table of totals, a row for each label."""
    columns: dict[str, Callable[[RunData], float | None]] = {
        "pods": lambda run: run.facts.pods.total,
        "placed": lambda run: run.facts.pods.bound,
        "waiting at the end": lambda run: run.facts.pods.waiting,
        "mean wait (s)": lambda run: float(run.waits_s().mean()) if len(run.waits_s()) else 0.0,
        "95th percentile (s)": lambda run: run.facts.waits.p95_ns / SECOND_NS,
        "evictions": lambda run: run.facts.pods.evicted,
        "node hours": RunData.node_hours,
        "cost": RunData.cost,
    }
    head = "".join(f"<th>{html.escape(name)}</th>" for name in ("run", *columns))
    rows = []
    for label, group in runs.items():
        cells = [f"<td>{html.escape(label)}</td>"]
        for value in columns.values():
            found = [value(run) for run in group]
            samples = np.array([[np.nan if each is None else float(each)] for each in found])
            cells.append(f"<td>{_cell(samples)}</td>")
        rows.append(f"<tr>{''.join(cells)}</tr>")
    note = "" if any(run.cost() is not None for group in runs.values() for run in group) else _NO_COST
    return f'<div class="scroll"><table id="summary"><tr>{head}</tr>{"".join(rows)}</table></div>{note}'


_NO_COST = "<p>No cost: not all nodes have the annotation bayplan.io/price (per hour).</p>"


def _cell(samples: Floats) -> str:
    if np.isnan(samples).any():
        return "none"
    mean, margin = mean_and_margin(samples)
    text = f"{mean[0]:,.0f}" if mean[0] == int(mean[0]) and not margin[0] else f"{mean[0]:,.1f}"
    return text if len(samples) < 2 or not margin[0] else f"{text} ± {margin[0]:,.1f}"


def _node_events(runs: Runs, axis: TimeAxis) -> str:
    rows = [
        f"<tr><td>{html.escape(label)}</td><td>{time / SECOND_NS / axis.seconds:,.2f}</td>"
        f"<td>{what}</td><td>{html.escape(node)}</td></tr>"
        for label, group in runs.items()
        for time, what, node in group[0].node_changes()[:MAX_EVENTS]
    ]
    if not rows:
        return '<h2 id="node-events">Nodes added and removed</h2><p>None after the start.</p>'
    nodes = _chart(
        "node-count",
        "Nodes added and removed",
        "First run of each.",
        charts.curves(runs, axis, "nodes", RunData.node_count),
    )
    head = f"<tr><th>run</th><th>{axis.title}</th><th>event</th><th>node</th></tr>"
    return f'{nodes}<div class="scroll"><table id="node-events">{head}{"".join(rows)}</table></div>'


def _chart(name: str, title: str, text: str, figure: Figure) -> str:
    data = json.dumps(figure, allow_nan=False, separators=(",", ":")).replace("</", "<\\/")
    note = f"<p>{html.escape(text)}</p>" if text else ""
    return (
        f'<h2>{html.escape(title)}</h2>{note}<div class="chart" id="{name}" data-figure="{name}-data"></div>'
        f'<script type="application/json" id="{name}-data">{data}</script>'
    )
