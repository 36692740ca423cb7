"""Compare two runs: the pods that differ, and the first plugin that decided differently."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from bayplan.analysis.cluster_sentences import comparison_sentence
from bayplan.engine.decision import Decision
from bayplan.http_api.contract.matrix import Matrix, RowMatrix
from bayplan.http_api.contract.runs import (
    ComparedFigure,
    ComparedRun,
    Comparison,
    ComparisonCounts,
    FirstPlugin,
    PodDifference,
)

KINDS = ("moved", "only_a", "only_b")


class Said(Protocol):
    """The plugin results of one decision."""

    def rejection(self, node: str) -> tuple[str, str] | None:
        """Return the plugin that rejected a node, and its reason; None if no plugin did or the node did not exist."""
        ...

    def points(self, node: str) -> Mapping[str, int] | None:
        """Return the weighted points of a node by scorer; None if the node did not exist."""
        ...


class DecisionSaid:
    """Plugin results from the full record.

    Args:
        decision: the record.
    """

    def __init__(self, decision: Decision) -> None:
        self._decision = decision

    def _row(self, node: str) -> int | None:
        names = self._decision.names
        return names.index(node) if node in names else None

    def rejection(self, node: str) -> tuple[str, str] | None:
        """See `Said`."""
        row, decision = self._row(node), self._decision
        status = None if row is None else decision.first_failure(row)
        if row is None or status is None:
            return None
        return decision.rejecting_plugin(row), status.message or status.code.text

    def points(self, node: str) -> Mapping[str, int] | None:
        """See `Said`."""
        row, decision = self._row(node), self._decision
        if row is None:
            return None
        normalized: list[int] = decision.normalized[:, row].tolist()
        products = (points * weight for points, weight in zip(normalized, decision.weights, strict=True))
        return dict(zip(decision.scorers, products, strict=True))


class MatrixSaid:
    """Plugin results from another server's matrix in columns. Nodes beyond its last row are unknown.

    Args:
        matrix: in the format of this API.

    Raises:
        ValueError: it is in rows, or its columns have different lengths.
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
        """See `Said`."""
        row, rows = self._rows.get(node), self._columns
        return None if row is None or not rows.plugin[row] else (rows.plugin[row], rows.gap[row])

    def points(self, node: str) -> Mapping[str, int] | None:
        """See `Said`."""
        row = self._rows.get(node)
        if row is None:
            return None
        points = self._columns.weighted[row]
        return {name: value for name, value in zip(self._scorers, points, strict=True) if value is not None}


@dataclass(frozen=True, kw_only=True)
class Side:
    """One of the runs.

    Attributes:
        facts: a description of the run, including its name.
        nodes: the node of each pod by ``namespace/name``, "" if it waits.
        said: returns the plugin results of the decision that placed a pod, or of its last one; None if this server has no
            record.
    """

    facts: ComparedRun
    nodes: Mapping[str, str]
    said: Callable[[str], Said | None] = lambda pod: None


@dataclass(frozen=True)
class Difference:
    """A pod whose node differs.

    Attributes:
        pod: ``namespace/name``. kind: one of `KINDS`; ``only_a`` if only a placed it, or it exists only there.
        a_node, b_node: its node on each side, or "".
    """

    pod: str
    kind: str
    a_node: str
    b_node: str


def differences(a: Side, b: Side) -> tuple[list[Difference], int]:
    """Return the pods that differ, by name, and the number of pods on either side. A pod that exists on one side only differs."""
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
        found.append(Difference(pod, kind, a_node or "", b_node or ""))
    return sorted(found, key=lambda each: each.pod), len(pods)


def comparison_document(a: Side, b: Side, kind: str, offset: int, limit: int) -> Comparison:
    """Return how two runs differ, with one page of the pods.

    Args:
        a, b: the runs. kind: one of `KINDS`, or "" for all. offset, limit: of the page.
    """
    found, pods = differences(a, b)
    counts = {each: sum(one.kind == each for one in found) for each in KINDS}
    wanted = [each for each in found if kind in ("", each.kind)]
    used = [len({node for node in side.nodes.values() if node}) for side in (a, b)]
    placed = [sum(bool(node) for node in side.nodes.values()) for side in (a, b)]
    return Comparison(
        sentence=comparison_sentence(
            a=a.facts.name,
            b=b.facts.name,
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
            ComparedFigure(name="placed", a=placed[0], b=placed[1]),
            ComparedFigure(name="waiting", a=len(a.nodes) - placed[0], b=len(b.nodes) - placed[1]),
            ComparedFigure(name="nodes_used", a=used[0], b=used[1]),
        ],
        items=[_row(a, b, each) for each in wanted[offset : offset + limit]],
        total=len(wanted),
        total_is_exact=True,
        offset=offset,
        limit=limit,
    )


def _row(a: Side, b: Side, difference: Difference) -> PodDifference:
    first = first_plugin(a.said(difference.pod), b.said(difference.pod), difference.a_node, difference.b_node)
    return PodDifference(
        pod=difference.pod,
        kind=difference.kind,
        a_node=difference.a_node,
        b_node=difference.b_node,
        first_plugin=first,
    )


def first_plugin(a: Said | None, b: Said | None, a_node: str, b_node: str) -> FirstPlugin | None:
    """Return the first plugin that decided differently about two nodes; None if that is unknown.

    A filter that rejected the other side's node comes first, with its reason. Otherwise it is the first scorer, in the order of
    the profile, whose preference for one node over the other (in weighted points) differs between the sides.
    """
    if a is None or b is None:
        return None
    for node, said, side in ((b_node, a, "a"), (a_node, b, "b")):
        rejection = said.rejection(node)
        if rejection is not None:
            plugin, reason = rejection
            return FirstPlugin(name=plugin, a=reason if side == "a" else None, b=reason if side == "b" else None)
    in_a, in_b = (_preferences(said, a_node, b_node) for said in (a, b))
    for name in dict.fromkeys((*in_a, *in_b)):
        if in_a.get(name, 0) != in_b.get(name, 0):
            return FirstPlugin(name=name, a=in_a.get(name, 0), b=in_b.get(name, 0))
    return None


def _preferences(said: Said, a_node: str, b_node: str) -> dict[str, int]:
    """Return by how many points each scorer preferred one node to the other."""
    a_points, b_points = said.points(a_node), said.points(b_node)
    if a_points is None or b_points is None:
        return {}
    return {name: points - b_points.get(name, 0) for name, points in a_points.items()}
