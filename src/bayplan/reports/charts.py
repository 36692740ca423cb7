"""The charts of a report, as Plotly figures in plain data (`data` and `layout`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from bayplan.base.durations import SECOND_NS
from bayplan.reports.intervals import mean_and_margin
from bayplan.reports.run_data import RunData
from bayplan.state.arrays import Floats, Ints

Figure = dict[str, object]
Runs = Mapping[str, Sequence[RunData]]
"""Runs by label. The runs of one label differ only in their seed."""

COLOURS = ("#2563eb", "#ea580c", "#059669", "#9333ea", "#dc2626", "#0891b2", "#ca8a04", "#4b5563")
POINTS = 240
"""Number of points of a curve over time."""

SLOW_POINTS = 40
"""Number of points of a curve that takes one pass over all nodes per point."""

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
        last_ns: the end of the longest run, in nanoseconds since the start.
        seconds: the unit of the axis, in seconds.
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
        """Return this number of times from the start to the end: int64 nanoseconds, equally spaced."""
        return np.linspace(0, self.last_ns, points).astype(np.int64)

    def text(self, time_ns: int) -> str:
        """Format a time since the start in the unit of the axis."""
        return f"{time_ns / SECOND_NS / self.seconds:,.2f}"

    def shown(self, times: Ints) -> list[float]:
        """Convert times to the unit of the axis."""
        return [round(each / SECOND_NS / self.seconds, 4) for each in times.tolist()]


def curves(
    runs: Runs, axis: TimeAxis, title: str, value: Callable[[RunData, Ints], Floats], points: int = POINTS
) -> Figure:
    """Return a figure with a line for each label: the mean over seeds, with its confidence interval as a band."""
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
    """Return the cumulative share of pods by waiting time, on a logarithmic scale from 1 s, over all seeds of a label."""
    data: list[dict[str, object]] = []
    lowest = 100.0
    for number, (label, group) in enumerate(runs.items()):
        waits = np.sort(np.concatenate([run.waits_s() for run in group]))
        if not len(waits):
            continue
        places = np.unique(np.linspace(0, len(waits) - 1, 400).astype(np.int64))
        # Show waits of less than a second as one point.
        places = places[max(int(np.searchsorted(waits[places], 1.0, side="right")) - 1, 0) :]
        share = 100 * (places + 1) / len(waits)
        lowest = min(lowest, float(share[0]))
        line = {"color": COLOURS[number % len(COLOURS)], "width": 2, "shape": "hv"}
        data.append(
            {
                "type": "scatter",
                "mode": "lines",
                "name": label,
                "x": _rounded(np.maximum(waits[places], 1.0)),
                "y": _rounded(share),
                "line": line,
            }
        )
    title = "waited (seconds; 1 stands for less)"
    xaxis = {"title": {"text": title}, "type": "log", "dtick": 1, "minor": {"dtick": "D1"}}
    bottom = 10 * (lowest // 10) - 1
    return figure(data, title, "pods (%)", xaxis=xaxis, yaxis={"title": {"text": "pods (%)"}, "range": [bottom, 101]})


def waits_by(runs: Runs, what: str, names_of: Callable[[RunData], list[str]]) -> Figure | None:
    """Return a bar chart of the mean waiting time, with confidence intervals, for the most common names given by `names_of`.

    None if all pods have the same name: the summary table already has their mean.
    """
    groups = {label: [run.waits_by(names_of(run)) for run in group] for label, group in runs.items()}
    sizes: dict[str, int] = {}
    for found in groups.values():
        for waits in found:
            for name, values in waits.items():
                sizes[name] = sizes.get(name, 0) + len(values)
    if len(sizes) < 2:
        return None
    names = sorted(sorted(sizes, key=lambda name: -sizes[name])[:MAX_GROUPS])
    data = []
    for number, (label, found) in enumerate(groups.items()):
        means = [[float(waits[name].mean()) if name in waits else 0.0 for name in names] for waits in found]
        mean, margin = mean_and_margin(np.array(means))
        data.append(_bars(label, number, names, mean, margin, len(found)))
    return _bar_figure(data, what, "waited (seconds, mean)", names)


def rejections(runs: Runs) -> Figure:
    """Return a bar chart of each plugin's share of the rejected nodes, with confidence intervals."""
    names = sorted({name for group in runs.values() for run in group for name in run.rejections})
    data = []
    for number, (label, group) in enumerate(runs.items()):
        shares = [[100 * run.rejections[name] / max(run.rejections.total(), 1) for name in names] for run in group]
        mean, margin = mean_and_margin(np.array(shares).reshape(len(group), len(names)))
        data.append(_bars(label, number, names, mean, margin, len(group)))
    return _bar_figure(data, "plugin", "rejections of nodes (%)", names)


def descheduled(runs: Runs) -> Figure:
    """Return a bar chart of the descheduler's evictions by plugin, with confidence intervals."""
    counts = {
        label: [Counter(each["plugin"] for each in run.descheduled or ()) for run in group]
        for label, group in runs.items()
    }
    names = sorted({name for group in counts.values() for count in group for name in count})
    data = []
    for number, (label, group) in enumerate(counts.items()):
        samples = np.array([[count[name] for name in names] for count in group], dtype=np.float64)
        mean, margin = mean_and_margin(samples.reshape(len(group), len(names)))
        data.append(_bars(label, number, names, mean, margin, len(group)))
    return _bar_figure(data, "plugin", "evicted pods", names)


def heat_map(run: RunData, axis: TimeAxis, resource: str) -> Figure:
    """Return a heat map of the utilisation of nodes over time. In large clusters, each row is the mean of several nodes."""
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
    prefix, shown = shortened([nodes.names[row] for row in rows.tolist()])
    names = [_range_of(shown[start : start + per_row]) for start in range(0, len(shown), per_row)]
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
    heat["reversescale"] = True  # Plotly's own scale has its dark end at 0.
    heat["colorbar"] = {"title": {"text": "%"}}
    height = max(240, min(700, 120 + 14 * len(blocks)))
    return figure([heat], axis.title, "", height=height, yaxis=_names_axis(prefix))


def gantt(run: RunData, axis: TimeAxis) -> Figure:
    """Return the first pods as bars over time: waiting, then on their node."""
    pods = run.pods
    rows = pods.waited[:MAX_BARS]
    last = run.duration_ns
    bound, ended = np.minimum(pods.bound[rows], last), np.minimum(pods.ended[rows], last)
    left = np.minimum(bound, ended)
    prefix, names = shortened([pods.names[row] for row in rows.tolist()])
    on = [run.nodes.names[row] if row >= 0 else "no node" for row in pods.nodes[rows].tolist()]
    waiting = {"name": "pending", "base": axis.shown(pods.arrived[rows]), "x": axis.shown(left - pods.arrived[rows])}
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
    return figure(data, axis.title, "", barmode="overlay", height=height, yaxis=_names_axis(prefix))


def _names_axis(prefix: str) -> dict[str, object]:
    """Return an axis of names from top to bottom. Its title is the prefix that all names have in common."""
    title = {"text": f"{prefix}…" if prefix else "", "standoff": 12}
    return {"type": "category", "autorange": "reversed", "automargin": True, "title": title}


def _bars(label: str, number: int, names: Sequence[str], mean: Floats, margin: Floats, runs: int) -> dict[str, object]:
    bar: dict[str, object] = {"type": "bar", "name": label, "x": list(names), "y": _rounded(mean)}
    bar["marker"] = {"color": COLOURS[number % len(COLOURS)]}
    if runs > 1:
        bar["error_y"] = {"type": "data", "array": _rounded(margin), "visible": True}
    return bar


def _bar_figure(data: list[dict[str, object]], x: str, y: str, names: Sequence[str]) -> Figure:
    """Return a figure of grouped bars of limited width."""
    xaxis = {"title": {"text": x}, "type": "category", "automargin": True}
    return figure(data, x, y, barmode="group", bargap=max(0.2, 0.8 - 0.15 * len(names)), xaxis=xaxis)


def shortened(names: Sequence[str]) -> tuple[str, list[str]]:
    """Return the common prefix of names, up to a dash, dot or slash, and the names without this prefix."""
    first, last = min(names, default=""), max(names, default="")
    # The common prefix of the first and last name in sorted order is common to all names.
    shorter = min(len(first), len(last))
    length = next((place for place in range(shorter) if first[place] != last[place]), shorter)
    end = max(first[:length].rfind(each) for each in "-./") + 1
    return first[:end], [name[end:] for name in names]


def _rounded(values: Floats) -> list[float]:
    return [round(each, 4) for each in values.tolist()]


def _faint(colour: str) -> str:
    red, green, blue = (int(colour[place : place + 2], 16) for place in (1, 3, 5))
    return f"rgba({red},{green},{blue},0.18)"


def _range_of(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{names[0]} … {names[-1]}"
