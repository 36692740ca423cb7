"""Compare the placements of two runs: the pods that differ, and the first plugin that decided differently."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from bayplan.analysis.cluster_sentences import comparison_sentence
from bayplan.answers.decisive_plugin import PluginOutput, decisive_plugin
from bayplan.http_api.contract.matrix import Matrix, RowMatrix
from bayplan.http_api.contract.runs import ComparedFigure, ComparedPod, ComparedRun, Comparison, ComparisonCounts

KINDS = ("moved", "only_a", "only_b")


class MatrixOutput:
    """Plugin results from the matrix of another server. Nodes beyond the matrix's last row are unknown.

    Args:
        matrix: the matrix in the format of this API.

    Raises:
        ValueError: the matrix consists of rows, or its columns have different lengths.
    """

    def __init__(self, matrix: Matrix) -> None:
        if isinstance(matrix, RowMatrix):
            raise ValueError("a matrix in rows")
        columns = matrix.rows
        if len({len(column) for column in (columns.node, columns.plugin, columns.gap, columns.weighted)}) > 1:
            raise ValueError("columns of different lengths")
        if any(len(points) != len(matrix.scorers) for points in columns.weighted):
            raise ValueError("more or fewer points than scorers")
        self._rows = {name: row for row, name in enumerate(columns.node)}
        self._columns = columns
        self._scorers = [each.name for each in matrix.scorers]

    def rejection(self, node: str) -> tuple[str, str] | None:
        """Return the plugin that rejected a node, and its reason; None if no plugin did, or if the node is unknown."""
        row, rows = self._rows.get(node), self._columns
        return None if row is None or not rows.plugin[row] else (rows.plugin[row], rows.gap[row])

    def points(self, node: str) -> Mapping[str, int] | None:
        """Return a node's weighted score by score plugin; None if the node is unknown."""
        row = self._rows.get(node)
        if row is None:
            return None
        points = self._columns.weighted[row]
        return {name: value for name, value in zip(self._scorers, points, strict=True) if value is not None}


@dataclass(frozen=True, kw_only=True)
class Side:
    """One of two compared runs.

    Attributes:
        facts: a description of the run, including its name.
        nodes: the node of each pod by ``namespace/name``; "" if the pod is pending.
        output: returns the plugin results of the last decision about a pod; None if this server has no full record of
            it.
    """

    facts: ComparedRun
    nodes: Mapping[str, str]
    output: Callable[[str], PluginOutput | None] = lambda pod: None


@dataclass(frozen=True)
class Difference:
    """A pod whose node differs.

    Attributes:
        pod: ``namespace/name``.
        kind: one of `KINDS`. ``only_a``: only run a placed the pod, or it exists only in run a.
        a_node, b_node: the node of the pod in each run, or "".
        missing_in: ``a`` or ``b`` if the pod exists only in the other run, else "".
    """

    pod: str
    kind: str
    a_node: str
    b_node: str
    missing_in: str


def differences(a: Side, b: Side) -> tuple[list[Difference], int]:
    """Return the pods that differ, sorted by name, and the number of pods in either run.

    A pod that exists in only one run differs.
    """
    found = []
    pods = {**a.nodes, **b.nodes}
    for pod in pods:
        a_node, b_node = a.nodes.get(pod), b.nodes.get(pod)
        if a_node == b_node:
            continue
        if b_node is None or (a_node and not b_node):
            kind = "only_a"
        else:
            kind = "moved" if a_node and b_node else "only_b"
        missing_in = "a" if a_node is None else "b" if b_node is None else ""
        found.append(Difference(pod, kind, a_node or "", b_node or "", missing_in))
    return sorted(found, key=lambda each: each.pod), len(pods)


def comparison_document(a: Side, b: Side, kind: str, offset: int, limit: int) -> Comparison:
    """Return how two runs differ, with one page of the differing pods.

    Args:
        a, b: the runs.
        kind: one of `KINDS`, or "" for all.
        offset, limit: the offset and limit of the page.
    """
    found, pods = differences(a, b)
    counts = {each: sum(one.kind == each for one in found) for each in KINDS}
    wanted = [each for each in found if kind in ("", each.kind)]
    used = [len({node for node in side.nodes.values() if node}) for side in (a, b)]
    placed = [sum(bool(node) for node in side.nodes.values()) for side in (a, b)]
    return Comparison(
        summary=comparison_sentence(
            a=_name(a.facts),
            b=_name(b.facts),
            pods=pods,
            moved=counts["moved"],
            only_a=counts["only_a"],
            only_b=counts["only_b"],
            nodes_a=used[0],
            nodes_b=used[1],
        ),
        a=a.facts,
        b=b.facts,
        counts=ComparisonCounts(pods=pods, **counts),
        metrics=[
            ComparedFigure(name="pods placed", a=placed[0], b=placed[1]),
            ComparedFigure(name="pods pending", a=len(a.nodes) - placed[0], b=len(b.nodes) - placed[1]),
            ComparedFigure(name="nodes with pods", a=used[0], b=used[1]),
        ],
        items=[_row(a, b, each) for each in wanted[offset : offset + limit]],
        total=len(wanted),
        total_is_exact=True,
        offset=offset,
        limit=limit,
    )


def _name(run: ComparedRun) -> str:
    """Return the name of a run for a sentence; that of a fork is quoted, because it may have several words."""
    return f'"{run.name}"' if " " in run.name and run.kind == "fork" else run.name


def _row(a: Side, b: Side, difference: Difference) -> ComparedPod:
    decisive = decisive_plugin(a.output(difference.pod), b.output(difference.pod), difference.a_node, difference.b_node)
    return ComparedPod(
        pod=difference.pod,
        kind=difference.kind,
        a_node=difference.a_node,
        b_node=difference.b_node,
        missing_in=difference.missing_in,
        decisive_plugin=decisive,
    )
