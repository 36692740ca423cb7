"""The charts of a report, as Plotly figures in plain data (`data` and `layout`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from bayplan.base.durations import SECOND_NS
from bayplan.reports.intervals import mean_and_margin
from bayplan.reports.run_data import RunData
from bayplan.state.arrays import Floats, Ints

Figure = dict[str, object]
Runs = Mapping[str, Sequence[RunData]]
"""Runs by label; those with the same label differ in their seed."""

COLOURS = ("#2563eb", "#ea580c", "#059669", "#9333ea", "#dc2626", "#0891b2", "#ca8a04", "#4b5563")
POINTS = 240
"""Number of points of a curve over time."""

SLOW_POINTS = 40
"""Number of points of curves that need a pass over all nodes each."""

MAX_HEAT_ROWS = 60
MAX_HEAT_COLUMNS = 80
MAX_BARS = 400
MAX_GROUPS = 12
_SCALES = ((86_400 * 2, 86_400, "days"), (7_200, 3_600, "hours"), (120, 60, "minutes"), (0, 1, "seconds"))


def figure(data: list[dict[str, object]], x: str, y: str, **layout: object) -> Figure:
    """Return a figure with titled axes."""
    return {"data": data, "layout": {"xaxis": {"title": {"text": x}}, "yaxis": {"title": {"text": y}}, **layout}}


class TimeAxis:
    """The common time axis of several runs.

    Args:
        runs: the runs of the report.

    Attributes:
        seconds: the length of the unit in seconds.
        unit: the name of the unit.
    """

    def __init__(self, runs: Runs) -> None:
        self.last_ns = max(run.duration_ns for group in runs.values() for run in group)
        last_s = self.last_ns / SECOND_NS
        self.seconds, self.unit = next((size, name) for least, size, name in _SCALES if last_s >= least)

    @property
    def title(self) -> str:
        """Return the title of the axis."""
        return f"time ({self.unit})"

    def times(self, points: int) -> Ints:
        """Return this number of times from start to end, int64 nanoseconds."""
        return np.linspace(0, self.last_ns, points).astype(np.int64)

    def shown(self, times: Ints) -> list[float]:
        """Return times in the unit of the axis."""
        return [round(each / SECOND_NS / self.seconds, 4) for each in times.tolist()]


def curves(
    runs: Runs, axis: TimeAxis, title: str, value: Callable[[RunData, Ints], Floats], points: int = POINTS
) -> Figure:
    """Return a line for each label: the mean over seeds with its confidence interval as a band."""
    times, data = axis.times(points), list[dict[str, object]]()
    x = axis.shown(times)
    for number, (label, group) in enumerate(runs.items()):
        colour = COLOURS[number % len(COLOURS)]
        mean, margin = mean_and_margin([value(run, times) for run in group])
        if len(group) > 1:
            band = {
                "mode": "lines",
                "line": {"width": 0, "shape": "hv"},
                "showlegend": False,
                "hoverinfo": "skip",
                "legendgroup": label,
            }
            data.append({"type": "scatter", "x": x, "y": _rounded(mean + margin), **band})
            fill = {"fill": "tonexty", "fillcolor": _faint(colour)}
            data.append({"type": "scatter", "x": x, "y": _rounded(mean - margin), **band, **fill})
        line = {"color": colour, "width": 2, "shape": "hv"}
        data.append(
            {
                "type": "scatter",
                "mode": "lines",
                "name": label,
                "legendgroup": label,
                "x": x,
                "y": _rounded(mean),
                "line": line,
            }
        )
    return figure(data, axis.title, title, yaxis={"title": {"text": title}, "rangemode": "tozero"})


def wait_distribution(runs: Runs) -> Figure:
    """Return the cumulative share of pods by waiting time; all seeds of a label together."""
    data: list[dict[str, object]] = []
    for number, (label, group) in enumerate(runs.items()):
        waits = np.sort(np.concatenate([run.waits_s() for run in group]))
        if not len(waits):
            continue
        places = np.unique(np.linspace(0, len(waits) - 1, 400).astype(np.int64))
        share = 100 * (places + 1) / len(waits)
        line = {"color": COLOURS[number % len(COLOURS)], "width": 2, "shape": "hv"}
        data.append(
            {
                "type": "scatter",
                "mode": "lines",
                "name": label,
                "x": _rounded(waits[places]),
                "y": _rounded(share),
                "line": line,
            }
        )
    return figure(data, "waited (seconds)", "pods (%)", yaxis={"title": {"text": "pods (%)"}, "range": [0, 101]})


def waits_by(runs: Runs, what: str, names_of: Callable[[RunData], list[str]]) -> Figure:
    """Return bars of the mean waiting time by a name of the pods, with confidence intervals; the most common names only."""
    groups = {label: [run.waits_by(names_of(run)) for run in group] for label, group in runs.items()}
    sizes: dict[str, int] = {}
    for found in groups.values():
        for waits in found:
            for name, values in waits.items():
                sizes[name] = sizes.get(name, 0) + len(values)
    names = sorted(sorted(sizes, key=lambda name: -sizes[name])[:MAX_GROUPS])
    data = []
    for number, (label, found) in enumerate(groups.items()):
        means = [[float(waits[name].mean()) if name in waits else 0.0 for name in names] for waits in found]
        mean, margin = mean_and_margin(np.array(means))
        data.append(_bars(label, number, names, mean, margin, len(found)))
    return figure(data, what, "waited (seconds, mean)", barmode="group", xaxis=_categories(what))


def rejections(runs: Runs) -> Figure:
    """Return bars with each plugin's share of the rejected nodes."""
    names = sorted({name for group in runs.values() for run in group for name in run.rejections})
    data = []
    for number, (label, group) in enumerate(runs.items()):
        shares = [[100 * run.rejections[name] / max(run.rejections.total(), 1) for name in names] for run in group]
        mean, margin = mean_and_margin(np.array(shares).reshape(len(group), len(names)))
        data.append(_bars(label, number, names, mean, margin, len(group)))
    return figure(data, "plugin", "rejections of nodes (%)", barmode="group", xaxis=_categories("plugin"))


def heat_map(run: RunData, axis: TimeAxis, resource: str) -> Figure:
    """Return the utilization of nodes over time; in large clusters each row is the mean of several nodes."""
    times = axis.times(MAX_HEAT_COLUMNS)
    number, nodes = run.resources.index(resource), run.nodes
    offered = nodes.allocatable[number]
    rows = np.flatnonzero(offered > 0)
    per_row = max(-(-len(rows) // MAX_HEAT_ROWS), 1)
    blocks = [rows[start : start + per_row] for start in range(0, len(rows), per_row)]
    shares = np.full((len(blocks), len(times)), np.nan)
    for place, time in enumerate(times.tolist()):
        used = run.usage_of_nodes(time)[number]
        alive = (nodes.added <= time) & (nodes.removed > time)
        for block, members in enumerate(blocks):
            there = members[alive[members]]
            if len(there):
                shares[block, place] = 100 * used[there].sum() / offered[there].sum()
    names = [_range_of([nodes.names[row] for row in members.tolist()]) for members in blocks]
    cells = [[None if np.isnan(each) else round(each, 1) for each in row] for row in shares.tolist()]
    heat = {
        "type": "heatmap",
        "x": axis.shown(times),
        "y": names,
        "z": cells,
        "zmin": 0,
        "zmax": 100,
        "colorscale": "YlOrRd",
    }
    heat["reversescale"] = True  # Plotly's own scale has the dark end at 0.
    heat["colorbar"] = {"title": {"text": "%"}}
    height = max(240, min(700, 120 + 14 * len(blocks)))
    return figure(
        [heat], axis.title, "", height=height, yaxis={"type": "category", "autorange": "reversed", "automargin": True}
    )


def gantt(run: RunData, axis: TimeAxis) -> Figure:
    """Return the first pods as bars over time: waiting, then running."""
    pods = run.pods
    rows = pods.waited[:MAX_BARS]
    last = run.duration_ns
    bound, ended = np.minimum(pods.bound[rows], last), np.minimum(pods.ended[rows], last)
    left = np.minimum(bound, ended)
    names = [pods.names[row] for row in rows.tolist()]
    on = [run.nodes.names[row] if row >= 0 else "no node" for row in pods.nodes[rows].tolist()]
    waiting = {"name": "waits", "base": axis.shown(pods.arrived[rows]), "x": axis.shown(left - pods.arrived[rows])}
    running = {
        "name": "on its node",
        "base": axis.shown(left),
        "x": axis.shown(np.maximum(ended - left, 0)),
        "text": on,
    }
    shape = {"type": "bar", "orientation": "h", "y": names, "textposition": "none"}
    data: list[dict[str, object]] = [
        {**shape, **waiting, "marker": {"color": "#f59e0b"}},
        {**shape, **running, "marker": {"color": "#2563eb"}, "hovertemplate": "%{y}<br>on %{text}<extra></extra>"},
    ]
    height = max(240, min(1200, 100 + 12 * len(names)))
    yaxis = {"type": "category", "autorange": "reversed", "automargin": True}
    return figure(data, axis.title, "", barmode="overlay", height=height, yaxis=yaxis)


def _bars(label: str, number: int, names: Sequence[str], mean: Floats, margin: Floats, runs: int) -> dict[str, object]:
    bar: dict[str, object] = {"type": "bar", "name": label, "x": list(names), "y": _rounded(mean)}
    bar["marker"] = {"color": COLOURS[number % len(COLOURS)]}
    if runs > 1:
        bar["error_y"] = {"type": "data", "array": _rounded(margin), "visible": True}
    return bar


def _categories(title: str) -> dict[str, object]:
    return {"title": {"text": title}, "type": "category", "automargin": True}


def _rounded(values: Floats) -> list[float]:
    return [round(each, 4) for each in values.tolist()]


def _faint(colour: str) -> str:
    red, green, blue = (int(colour[place : place + 2], 16) for place in (1, 3, 5))
    return f"rgba({red},{green},{blue},0.18)"


def _range_of(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{names[0]} … {names[-1]}"
