"""Measure how cost grows, and draw docs/images/growth.svg: decisions per second by number of nodes.

    python -m benchmarks.growth_plot --measure            measure, write benchmarks/growth.json, draw
    python -m benchmarks.growth_plot                      draw the series of benchmarks/growth.json
    python -m benchmarks.growth_plot --label "before"     the series that --measure writes [default: now]

The file has one series per label, so that an earlier engine stays in the picture: the series "now" is drawn with solid
lines, all others dashed.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path

import matplotlib as mpl
import msgspec
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from benchmarks.bench_growth import KINDS, NODES, PODS, points
from benchmarks.real_kinds import TITLES

DATA = Path(__file__).with_name("growth.json")
IMAGE = Path(__file__).resolve().parents[1] / "docs" / "images" / "growth.svg"
NOW = "now"
COLORS = {"basic": "#1b6ca8", "spread": "#c0392b", "prefaffinity": "#2e7d32"}

Series = Mapping[str, Mapping[str, float]]
"""Decisions per second by ``kind, all`` or ``kind, sampled``, then by number of nodes."""


def load(path: Path) -> dict[str, dict[str, dict[str, float]]]:
    """Return the series of a file by label; none if the file does not exist."""
    if not path.exists():
        return {}
    return msgspec.json.decode(path.read_bytes(), type=dict[str, dict[str, dict[str, float]]])


def measure(path: Path, label: str, counts: tuple[int, ...] = NODES, pods: int = PODS) -> None:
    """Measure a series and write it point by point; series with other labels stay."""
    for kind, sampled, count, rate, digest in points(counts, pods):
        series = load(path)
        line = series.setdefault(label, {}).setdefault(f"{kind}, {'sampled' if sampled else 'all'}", {})
        line[str(count)] = round(rate)
        path.write_bytes(msgspec.json.format(msgspec.json.encode(series), indent=1) + b"\n")
        print(
            f"{count:>7,} nodes, {TITLES[kind]:<22} {'sampled' if sampled else 'all':<8} {rate:>10,.0f} {digest}",
            flush=True,
        )


def draw(series: Mapping[str, Series], path: Path) -> None:
    """Draw two panels: all nodes scored, and sampled. The same data gives the same bytes."""
    mpl.rcParams["svg.hashsalt"] = "growth"
    mpl.rcParams["svg.fonttype"] = "none"
    mpl.rcParams["font.size"] = 10
    figure = Figure(figsize=(10, 4.2), layout="constrained")
    axes = figure.subplots(1, 2, sharey=True)
    for panel, way, title in zip(axes, ("all", "sampled"), ("all nodes scored", "sampled (default)"), strict=True):
        for label in sorted(series):
            _draw_panel(panel, series[label], way, label)
        panel.set_title(title)
        panel.set_xscale("log")
        panel.set_yscale("log")
        panel.set_xlabel("nodes")
        panel.grid(visible=True, which="major", color="#dddddd")
        for axis in (panel.xaxis, panel.yaxis):
            axis.set_major_formatter(FuncFormatter(lambda value, _position: f"{value:,.0f}"))
    axes[0].set_ylabel("decisions a second, one core")
    axes[0].legend(fontsize=8)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, format="svg", metadata={"Date": None, "Creator": None})
    # The SVG backend writes trailing spaces.
    path.write_text("\n".join(line.rstrip() for line in path.read_text().splitlines()) + "\n")


def _draw_panel(panel: Axes, series: Series, way: str, label: str) -> None:
    for kind in KINDS:
        line = series.get(f"{kind}, {way}", {})
        counts = sorted(map(int, line))
        style = "-" if label == NOW else "--"
        title = TITLES[kind] if label == NOW else f"{TITLES[kind]}, {label}"
        rates = [line[str(count)] for count in counts]
        panel.plot(counts, rates, style, marker="o", markersize=4, color=COLORS[kind], label=title)


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.growth_plot", description="Draw how cost grows.")
    parser.add_argument("--measure", action="store_true", help="measure first; takes minutes")
    parser.add_argument("--label", default=NOW, help=f"series to write [default: {NOW}]")
    parser.add_argument(
        "--nodes", type=int, nargs="+", default=NODES, metavar="N", help="sizes to measure [default: all]"
    )
    options = parser.parse_args()
    if options.measure:
        measure(DATA, options.label, tuple(options.nodes))
    series = load(DATA)
    if not series:
        parser.error(f"{DATA} has no series; run with --measure")
    draw(series, IMAGE)
    print(f"wrote {IMAGE}")


if __name__ == "__main__":
    main()
