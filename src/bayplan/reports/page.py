"""The report: one HTML file that contains all charts and tables, and needs no network.

Plotly draws the charts in the browser; its script is part of the file (4 MB).
"""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path

from bayplan.analysis.result_directory import open_result
from bayplan.base.durations import SECOND_NS
from bayplan.base.errors import InputError
from bayplan.base.extras import named_extras
from bayplan.base.version import KUBERNETES_VERSION, __version__
from bayplan.reports import charts
from bayplan.reports.charts import Runs, TimeAxis
from bayplan.reports.html_parts import cell, chart_section, table
from bayplan.reports.node_sections import node_sections
from bayplan.reports.run_data import RunData

MAX_RESOURCES = 6

_STYLE = """
:root{color-scheme:light dark;--text:#1f2937;--muted:#4b5563;--line:#e5e7eb;--page:#fff}
@media (prefers-color-scheme:dark){:root{--text:#e5e7eb;--muted:#9ca3af;--line:#374151;--page:#111827}}
body{font:15px/1.5 system-ui,sans-serif;margin:0 auto;max-width:1200px;padding:1rem 1.5rem;color:var(--text);
background:var(--page)}
h1{font-size:1.5rem;margin:.5rem 0}h2{font-size:1.15rem;margin:2rem 0 .25rem;border-top:1px solid var(--line);padding-top:1rem}
h1,h2,p{overflow-wrap:anywhere}p{margin:.25rem 0;color:var(--muted)}
table{border-collapse:collapse;margin:.75rem 0;font-size:.9rem}
th,td{padding:.25rem .75rem;border-bottom:1px solid var(--line);text-align:right;white-space:nowrap}
th:first-child,td:first-child{text-align:left}
.chart{min-height:340px}.scroll{overflow-x:auto}
@media (max-width:600px){body{padding:.75rem}}
"""

_SCRIPT = """
const dark = matchMedia('(prefers-color-scheme: dark)');
function draw() {
  const style = getComputedStyle(document.documentElement);
  const [text, line] = ['--text', '--line'].map((name) => style.getPropertyValue(name));
  for (const element of document.querySelectorAll('.chart')) {
    const figure = JSON.parse(document.getElementById(element.dataset.figure).textContent);
    const narrow = element.clientWidth < 500;
    const layout = Object.assign({margin: {l: narrow ? 50 : 70, r: narrow ? 10 : 20, t: 40, b: 50}, height: 340,
      template: 'none', paper_bgcolor: 'rgba(0,0,0,0)', plot_bgcolor: 'rgba(0,0,0,0)',
      legend: {orientation: 'h', y: 1, yanchor: 'bottom'}}, figure.layout);
    layout.font = {family: 'system-ui, sans-serif', size: 12, color: text};
    for (const name of ['xaxis', 'yaxis']) {
      layout[name] = Object.assign({gridcolor: line, linecolor: line, zerolinecolor: line}, layout[name]);
    }
    Plotly.react(element, figure.data, layout, {responsive: true, displaylogo: false});
  }
}
draw();
dark.addEventListener('change', draw);
document.documentElement.dataset.drawn = 'true';
"""


def read_runs(sources: Sequence[str]) -> dict[str, list[RunData]]:
    """Open result directories, given as ``DIR`` or ``LABEL=DIR``. Those with the same label are runs with different seeds.

    The default label is the name of the directory, with as many of its parents as distinguish it from the others. The
    folder of a sweep stands for its saved results, labelled by their parameters, after the label of the folder if it has one.

    Raises:
        InputError: a folder is not a result directory, or two runs with one label have the same seed.
    """
    runs: dict[str, list[RunData]] = {}
    given = [("", source) if Path(source).is_dir() else _split(source) for source in sources]
    defaults = _distinct_names([folder for label, folder in given if not label])
    for label, folder in given:
        saved = sorted(Path(folder).glob("results/*/seed-*"), key=_seed_of)
        for path in saved:
            name = f"{label} {path.parent.name}".strip()
            runs.setdefault(name, []).append(RunData(open_result(path), name))
        if not saved:
            label = label or defaults[folder]
            runs.setdefault(label, []).append(RunData(open_result(folder), label))
    if not runs:
        raise InputError(
            "report", got="no results", wanted="result directories", hint="bayplan simulate PATH --out DIR"
        )
    for label, group in runs.items():
        seeds = [run.facts.seed for run in group]
        if len(set(seeds)) < len(seeds):
            twice = next(seed for seed in seeds if seeds.count(seed) > 1)
            got, wanted = f"several with seed {twice}", "one run for each seed"
            hint = "a different LABEL=DIR for each configuration"
            raise InputError(f"report: runs labelled {label!r}", got=got, wanted=wanted, hint=hint)
    return runs


def _split(source: str) -> tuple[str, str]:
    """Return label and folder; the label is "" without one."""
    label, equals, folder = source.partition("=")
    return (label, folder) if equals else ("", source)


def _distinct_names(folders: Sequence[str]) -> dict[str, str]:
    """Return the end of each path that distinguishes it from the others."""
    parts = {folder: Path(folder).resolve().parts for folder in folders}
    found = {}
    for folder, own in parts.items():
        others = {each for each in parts.values() if each != own}
        length = 1
        while length < len(own) and any(each[-length:] == own[-length:] for each in others):
            length += 1
        found[folder] = "/".join(own[-length:])
    return found


def _seed_of(path: Path) -> tuple[str, int]:
    return path.parent.name, int(path.name.removeprefix("seed-"))


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
    resources = _requested_resources(runs)
    for number, resource in enumerate(resources):
        yield chart_section(
            f"utilisation-{number}",
            f"Utilisation over time: {resource}",
            "Requests of the pods on nodes, in percent of the nodes' allocatable amounts.",
            charts.curves(runs, axis, "requested (%)", partial(RunData.utilisation, resource=resource)),
        )
    yield chart_section(
        "queue", "Queue length", "Pending pods.", charts.curves(runs, axis, "pods", RunData.queue_length)
    )
    yield chart_section(
        "waits",
        "Waiting times",
        "Share of the placed pods that waited at most this long.",
        charts.wait_distribution(runs),
    )
    by_priority = charts.waits_by(runs, "priority", lambda run: [str(each) for each in run.pods.priorities.tolist()])
    if by_priority is not None:
        yield chart_section("waits-priority", "Waiting times by priority", "", by_priority)
    by_workload = charts.waits_by(runs, "workload", lambda run: run.pods.workloads)
    if by_workload is not None:
        text = f"The {charts.MAX_GROUPS} workloads with the most pods."
        yield chart_section("waits-workload", "Waiting times by workload", text, by_workload)
    for number, resource in enumerate(resources[:3]):
        yield chart_section(
            f"without-room-{number}",
            f"Idle without room: {resource}",
            "Share of the idle amount on nodes without room for a typical pod. Only amounts count.",
            charts.curves(
                runs,
                axis,
                "without room (% of idle)",
                partial(RunData.idle_without_room, resource=resource),
                charts.SLOW_POINTS,
            ),
        )
    yield chart_section(
        "rejections", "Rejections by plugin", "Share of the rejected nodes in failed attempts.", charts.rejections(runs)
    )
    for number, (label, group) in enumerate(runs.items()):
        if resources and resources[0] in group[0].resources:
            yield chart_section(
                f"nodes-{number}",
                f"Nodes: {label}",
                f"Utilisation of {resources[0]} by node and time, first run.",
                charts.heat_map(group[0], axis, resources[0]),
            )
    yield chart_section(
        "gantt", f"Pods: {first.label}", f"The first {charts.MAX_BARS} pods, first run.", charts.gantt(first, axis)
    )
    yield from node_sections(runs, axis)


def _requested_resources(runs: Runs) -> list[str]:
    """Return the resources that some pod requests and some node offers, at most `MAX_RESOURCES`."""
    found: dict[str, None] = {}
    for group in runs.values():
        for run in group:
            for name, requests in zip(run.resources, run.pods.requests, strict=True):
                if requests.any():
                    found[name] = None
    return list(found)[:MAX_RESOURCES]


def _seeds(runs: Runs) -> str:
    seeds = {label: _ranges([run.facts.seed for run in group]) for label, group in runs.items()}
    if len(set(seeds.values())) == 1 and len(seeds) > 1:
        parts = [f"Seeds {next(iter(seeds.values()))} of each"]
    else:
        parts = [f"{label}: seeds {text}" for label, text in seeds.items()]
    several = any(len(group) > 1 for group in runs.values())
    text = "; ".join(parts) + "."
    return html.escape(text) + (" Bands and error bars are 95 % confidence intervals over seeds." if several else "")


def _ranges(numbers: Sequence[int]) -> str:
    """Format numbers as text, with three or more consecutive numbers as a range: ``1 to 10, 42``."""
    found: list[list[int]] = []
    for number in sorted(numbers):
        if found and number == found[-1][-1] + 1:
            found[-1].append(number)
        else:
            found.append([number])
    return ", ".join(
        f"{each[0]} to {each[-1]}" if len(each) > 2 else ", ".join(str(number) for number in each) for each in found
    )


def _summary(runs: Runs) -> str:
    """Return the table of totals, with one row for each label."""
    columns: dict[str, Callable[[RunData], float | None]] = {
        "pods": lambda run: run.facts.pods.total,
        "placed": lambda run: run.facts.pods.bound,
        "pending at the end": lambda run: run.facts.pods.waiting,
        "mean wait (s)": lambda run: float(run.waits_s().mean()) if len(run.waits_s()) else 0.0,
        "95th percentile (s)": lambda run: run.facts.waits.p95_ns / SECOND_NS,
        "preempted": lambda run: run.facts.pods.evicted,
        **({"descheduled": lambda run: run.facts.descheduled} if _has_descheduler(runs) else {}),
        "node hours": RunData.node_hours,
        "cost": RunData.cost,
    }
    rows = [
        [label, *(cell([value(run) for run in group]) for value in columns.values())] for label, group in runs.items()
    ]
    note = "" if any(run.cost() is not None for group in runs.values() for run in group) else _NO_COST
    return table("summary", ["run", *columns], rows) + note


def _has_descheduler(runs: Runs) -> bool:
    return any(run.descheduled is not None for group in runs.values() for run in group)


_NO_COST = "<p>No cost: not all nodes have the annotation bayplan.io/price (per hour).</p>"
