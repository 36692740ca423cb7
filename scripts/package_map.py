"""Draw `docs/images/package-map.svg`: the packages by layer, and their imports.

    python scripts/package_map.py [--check] [--source FOLDER] [--out FILE]

Layers are those of the import contracts in `pyproject.toml`. An arrow is an import. An import that follows from others
has no arrow: if a imports b and b imports c, there is no arrow from a to c. Packages that import one another are in one
red frame. The title of a box, which browsers show, lists all of its imports. `--check` writes nothing, and fails if the
file is out of date.
"""

from __future__ import annotations

import argparse
import ast
import sys
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct

FOLDER = Path(__file__).resolve().parents[1]
PICTURE = FOLDER / "docs" / "images" / "package-map.svg"
INSIDE = "apiserver"
"""The package that the second part of the picture shows from the inside."""

ROW, BOX, GAP, MARGIN, HEAD = 66, 30, 16, 24, 34
LETTER = 7.9
STEP = 9
"""Distance between arrows that leave or reach one box."""
STYLE = """
  text { font: 13px ui-monospace, Menlo, Consolas, monospace; fill: #1b2b45; text-anchor: middle; }
  .head { font-weight: bold; text-anchor: start; }
  .box { fill: #eef3fb; stroke: #5b7bb2; }
  .import { fill: none; stroke: #8fa3c4; marker-end: url(#tip); }
  .cycle { fill: #fdeeee; stroke: #c0392b; stroke-dasharray: 4 3; }
"""

Graph = dict[str, set[str]]


class Box(NamedTuple):
    """A package in the picture: the middle of its top edge, and its width."""

    x: float
    y: float
    width: float


class Panel(Struct):
    """One part of the picture: packages in rows, and their imports of one another."""

    head: str
    graph: Graph
    rows: list[list[str]]


def imports(source: Path, container: str) -> Graph:
    """Return the packages of a container and which of them each one imports, types included."""
    root = source / "src" / Path(*container.split("."))
    graph: Graph = {
        path.stem: set()
        for path in sorted(root.iterdir())
        if not path.name.startswith("_") and (path.suffix == ".py" or any(path.glob("*.py")))
    }
    for path in sorted(root.rglob("*.py")):
        name = path.relative_to(root).parts[0].removesuffix(".py")
        if name in graph:
            graph[name] |= {found for found in _imported(path, container) if found in graph and found != name}
    return graph


def _imported(path: Path, container: str) -> Iterable[str]:
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.ImportFrom) and node.module:
            modules = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        else:
            continue
        for module in modules:
            if module.startswith(f"{container}."):
                yield module.removeprefix(f"{container}.").split(".")[0]


def reachable(graph: Mapping[str, set[str]], start: str) -> set[str]:
    """Return the packages that a package imports directly or indirectly."""
    found: set[str] = set()
    waiting = list(graph[start])
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += graph[name]
    return found


def cycles(graph: Graph) -> list[list[str]]:
    """Return the groups of packages that import one another."""
    below = {name: reachable(graph, name) for name in graph}
    groups = {
        tuple(sorted(other for other in graph if other in below[name] and name in below[other])) for name in graph
    }
    return [list(group) for group in sorted(groups) if len(group) > 1]


def needed(graph: Graph) -> list[tuple[str, str]]:
    """Return the imports that don't follow from others. Between packages that import one another, all are returned."""
    below = {name: reachable(graph, name) for name in graph}

    def follows(name: str, target: str, other: str) -> bool:
        """Return whether an import follows from another package's; in a group of mutual imports, the first stays."""
        in_group = other in below[target] and target in below[other]
        return name not in below[other] and target in below[other] and (not in_group or other < target)

    return [
        (name, target)
        for name, targets in graph.items()
        for target in sorted(targets)
        if name in below[target] or not any(follows(name, target, other) for other in targets - {target})
    ]


def rows_by_contract(source: Path, container: str, graph: Graph) -> list[list[str]]:
    """Return the packages in rows: the layers of their contract or, without a contract, rows by depth of imports."""
    settings = tomllib.loads((source / "pyproject.toml").read_text(encoding="utf-8"))
    for contract in settings["tool"]["importlinter"]["contracts"]:
        if contract["type"] == "layers" and contract["containers"] == [container]:
            layers = [[name.strip(" ()") for name in line.split("|")] for line in contract["layers"]]
            return [[name for name in layer if name in graph] for layer in layers]
    group_of = {name: group for group in cycles(graph) for name in group}
    depth: dict[str, int] = {}

    def depth_of(name: str) -> int:
        if name not in depth:
            group = group_of.get(name, [name])
            outside = {target for each in group for target in graph[each]} - set(group)
            depth[name] = 1 + max(map(depth_of, sorted(outside)), default=0)
        return depth[name]

    deepest = max(map(depth_of, graph))
    return [[name for name in graph if depth[name] == level] for level in range(deepest, 0, -1)]


def picture(source: Path) -> str:
    """Return the picture (SVG) of a source tree."""
    panels = []
    for container, head in (("bayplan", "bayplan"), (f"bayplan.{INSIDE}", f"inside bayplan.{INSIDE}")):
        graph = imports(source, container)
        rows = rows_by_contract(source, container, graph)
        known = {name for row in rows for name in row}
        panels.append(Panel(head, {name: graph[name] & known for name in graph if name in known}, rows))
    width = max(_row_width(row) for panel in panels for row in panel.rows) + 2 * MARGIN
    parts, top = [], 0.0
    for panel in panels:
        parts.append(_panel(panel, width, top))
        top += HEAD + ROW * len(panel.rows) + MARGIN
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {top:.0f}" role="img"'
        f' aria-label="Packages of bayplan by layer, with their imports">\n<style>{STYLE}</style>\n'
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0 0L8 4L0 8z" fill="#8fa3c4"/></marker></defs>\n'
        f'<rect width="100%" height="100%" fill="#fff"/>\n{"".join(parts)}</svg>\n'
    )


def _width_of(name: str) -> float:
    return len(name) * LETTER + 22


def _row_width(row: list[str]) -> float:
    return sum(map(_width_of, row)) + GAP * (len(row) - 1)


def _panel(panel: Panel, width: float, top: float) -> str:
    boxes: dict[str, Box] = {}
    for number, row in enumerate(panel.rows):
        left = (width - _row_width(row)) / 2
        for name in row:
            boxes[name] = Box(left + _width_of(name) / 2, top + HEAD + number * ROW, _width_of(name))
            left += _width_of(name) + GAP
    parts = [f'<text class="head" x="{MARGIN}" y="{top + 22:.0f}">{panel.head}</text>\n']
    for group in cycles(panel.graph):
        parts.append(_frame([boxes[name] for name in group]))
    parts += _arrows(boxes, needed(panel.graph))
    for name, box in boxes.items():
        listed = ", ".join(sorted(panel.graph[name])) or "nothing"
        parts.append(
            f'<g><title>{name} imports {listed}</title><rect class="box" x="{box.x - box.width / 2:.1f}" y="{box.y:.0f}"'
            f' width="{box.width:.1f}" height="{BOX}" rx="5"/><text x="{box.x:.1f}" y="{box.y + 20:.0f}">{name}</text></g>\n'
        )
    return "".join(parts)


def _frame(boxes: list[Box]) -> str:
    left, right = min(box.x - box.width / 2 for box in boxes) - 6, max(box.x + box.width / 2 for box in boxes) + 6
    upper, lower = min(box.y for box in boxes) - 8, max(box.y for box in boxes) + BOX + 8
    return f'<rect class="cycle" x="{left:.1f}" y="{upper:.0f}" width="{right - left:.1f}" height="{lower - upper:.0f}" rx="8"/>\n'


def _arrows(boxes: Mapping[str, Box], pairs: list[tuple[str, str]]) -> list[str]:
    """Return the arrows: spaced where several leave or reach one box, and bent around the rows in between."""
    found = []
    for number, (name, target) in enumerate(pairs):
        starts = sorted((other for each, other in pairs if each == name), key=lambda other: boxes[other].x)
        ends = sorted((each for each, other in pairs if other == target), key=lambda each: boxes[each].x)
        start, end = boxes[name], boxes[target]
        x1 = start.x + (starts.index(target) - (len(starts) - 1) / 2) * STEP
        x2 = end.x + (ends.index(name) - (len(ends) - 1) / 2) * STEP
        if start.y == end.y:
            found.append(_curve(x1, start.y + BOX, x2, end.y + BOX, 0, start.y + BOX + 18))
            continue
        y1, y2 = (start.y + BOX, end.y) if start.y < end.y else (start.y, end.y + BOX)
        rows = abs(end.y - start.y) / ROW
        aside = 0.0 if rows < 2 or abs(x1 - x2) > start.width else (30 + 14 * rows) * (1 if number % 2 else -1)
        found.append(_curve(x1, y1, x2, y2, aside, (y1 + y2) / 2))
    return found


def _curve(x1: float, y1: float, x2: float, y2: float, aside: float, middle: float) -> str:
    path = f"M{x1:.1f} {y1:.0f}C{x1 + aside:.1f} {middle:.0f} {x2 + aside:.1f} {middle:.0f} {x2:.1f} {y2:.0f}"
    return f'<path class="import" d="{path}"/>\n'


def main() -> int:
    """Write the picture, or check it; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="fail if the picture is not what the source gives")
    parser.add_argument("--source", type=Path, default=FOLDER, help="the repository to draw")
    parser.add_argument("--out", type=Path, default=PICTURE, help="the picture to write")
    options = parser.parse_args()
    text = picture(options.source)
    if not options.check:
        options.out.write_text(text, encoding="utf-8")
        return 0
    if options.out.read_text(encoding="utf-8") == text:
        return 0
    sys.stderr.write(f"{options.out.name} is out of date: run python scripts/package_map.py\n")
    return 1


if __name__ == "__main__":
    sys.exit(main())
