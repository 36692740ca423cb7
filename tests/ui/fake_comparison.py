"""One pod in two runs of the fake cluster; in the second one, NodeResourcesFit prefers full nodes."""

from __future__ import annotations

from msgspec.structs import replace

from bayplan.answers.decisive_plugin import DecisivePlugin
from bayplan.http_api.contract.matrix import ColumnMatrix, MatrixColumns
from bayplan.http_api.contract.runs import ComparedMatrix, PodComparison
from tests.ui.fake_cluster import FakeCluster
from tests.ui.fake_matrix import SCORERS, matrix

FIT = [name for name, _ in SCORERS].index("NodeResourcesFit")


def pod_comparison(cluster: FakeCluster, namespace: str, name: str) -> PodComparison | None:
    """Return the pod's matrices in both runs, and the plugin that made the difference; None if there is no such pod."""
    ours = matrix(cluster, namespace, name)
    if ours is None:
        return None
    theirs = _packed(ours)
    return PodComparison(
        pod=f"{namespace}/{name}",
        a_node=ours.winner,
        b_node=theirs.winner,
        decisive_plugin=DecisivePlugin(name="NodeResourcesFit", a=12, b=-31) if ours.winner != theirs.winner else None,
        a=ComparedMatrix(name="now", matrix=ours),
        b=ComparedMatrix(name="packed", matrix=theirs),
    )


def _packed(ours: ColumnMatrix) -> ColumnMatrix:
    """Return the matrix with 100 minus each score of NodeResourcesFit, and the rows sorted by the new totals."""
    rows = ours.rows
    points = [None if point is None else 100 - point for point in (row[FIT] for row in rows.normalized)]
    raw, normalized, weighted = (
        [[*row[:FIT], point, *row[FIT + 1 :]] for row, point in zip(column, points, strict=True)]
        for column in (rows.raw, rows.normalized, rows.weighted)
    )
    total = [
        None if old is None else sum(each or 0 for each in row) for old, row in zip(rows.total, weighted, strict=True)
    ]
    order = sorted(range(len(rows.node)), key=lambda at: (-(total[at] or -1), rows.node[at]))
    packed = MatrixColumns(
        node=[rows.node[at] for at in order],
        total=[total[at] for at in order],
        tie=[bool(ours.winner) and at == 0 for at in range(len(order))],
        plugin=[rows.plugin[at] for at in order],
        gap=[rows.gap[at] for at in order],
        pre_filters=[rows.pre_filters[at] for at in order],
        filters=[rows.filters[at] for at in order],
        raw=[raw[at] for at in order],
        normalized=[normalized[at] for at in order],
        weighted=[weighted[at] for at in order],
    )
    if not ours.winner:
        return replace(ours, rows=packed)
    return replace(ours, rows=packed, winner=packed.node[0], runner_up=packed.node[1], tie_set=packed.node[:1])
