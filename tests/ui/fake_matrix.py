"""The matrix of a pod's latest attempt in the fake cluster, in columns."""

from __future__ import annotations

from typing import NamedTuple

from bayplan.http_api.contract.matrix import (
    ColumnMatrix,
    MatrixColumns,
    MatrixCounts,
    MatrixPoints,
    MatrixScorer,
    MatrixStatus,
    PreFilterAnswer,
)
from tests.ui.fake_cluster import REASONS, FakeCluster

SCORERS = (
    ("TaintToleration", 3),
    ("NodeAffinity", 2),
    ("NodeResourcesFit", 1),
    ("PodTopologySpread", 2),
    ("InterPodAffinity", 2),
    ("NodeResourcesBalancedAllocation", 1),
    ("ImageLocality", 1),
)
FILTERS = (
    "NodeUnschedulable",
    "NodeName",
    "TaintToleration",
    "NodeAffinity",
    "NodePorts",
    "NodeResourcesFit",
    "VolumeRestrictions",
    "NodeVolumeLimits",
    "VolumeBinding",
    "VolumeZone",
    "PodTopologySpread",
    "InterPodAffinity",
    "DynamicResources",
)
GAPS = ("", "lacks 0.8 cpu (requests 4, 3.2 free)", "untolerated taint gpu=:NoSchedule", REASONS[2][1])


class _Row(NamedTuple):
    node: str
    total: int | None
    code: int
    filters: list[int | None]
    normal: list[int | None]
    weighted: list[int | None]


def matrix(cluster: FakeCluster, namespace: str, name: str) -> ColumnMatrix | None:
    """Return the matrix of a pod, or None if there is no such pod."""
    number = cluster.by_key.get(f"{namespace}/{name}")
    if number is None:
        return None
    waits = cluster.pods[number].node < 0
    rows = sorted(
        (_row(cluster, number, at) for at in range(len(cluster.nodes))),
        key=lambda row: (1 if row.total is None else -row.total, row.node),
    )
    fit = sum(row.total is not None for row in rows)
    statuses = _statuses()
    return ColumnMatrix(
        number=number,
        attempt=cluster.pods[number].attempts,
        summary=f"{namespace}/{name} waits" if waits else f"{namespace}/{name} runs on {rows[0].node}",
        max_score=100,
        total=len(rows),
        total_is_exact=True,
        offset=0,
        limit=10_000,
        record_level="full",
        nodes=len(rows),
        counts=MatrixCounts(fit=fit, failed=len(rows) - fit, not_evaluated=0),
        scorers=[MatrixScorer(name=scorer, weight=weight, scale=None) for scorer, weight in SCORERS],
        pre_filters=[],
        filters=list(FILTERS),
        statuses=statuses,
        skipped=["NodePorts", "VolumeBinding", "DynamicResources"],
        winner="" if waits else rows[0].node,
        runner_up="" if waits else rows[1].node,
        margin=None if waits else (rows[0].total or 0) - (rows[1].total or 0),
        tie_set=[] if waits else [rows[0].node],
        points=MatrixPoints(
            pre_filter=[PreFilterAnswer(plugin="NodeAffinity", status="Success", message="", nodes=len(rows))],
            pre_score=[],
            extenders=[],
        ),
        rows=MatrixColumns(
            node=[row.node for row in rows],
            total=[row.total for row in rows],
            tie=[not waits and at == 0 for at in range(len(rows))],
            plugin=[statuses[row.code].plugin for row in rows],
            gap=[GAPS[row.code] for row in rows],
            pre_filters=[[] for _ in rows],
            filters=[row.filters for row in rows],
            raw=[row.normal for row in rows],
            normalized=[row.normal for row in rows],
            weighted=[row.weighted for row in rows],
        ),
    )


def _statuses() -> list[MatrixStatus]:
    rejecting = [
        MatrixStatus(index=at, code="Unschedulable", plugin=plugin, reasons=[text])
        for at, (plugin, text) in enumerate(REASONS, start=1)
    ]
    return [MatrixStatus(index=0, code="Success", plugin="", reasons=[]), *rejecting]


def _row(cluster: FakeCluster, number: int, at: int) -> _Row:
    home = cluster.pods[number].node
    name = cluster.nodes[at].name
    if home < 0 or (at % 3 == 2 and at != home):
        place, code = (5, 2, 3)[at % 3], 1 + at % 3
        verdicts: list[int | None] = [0] * place
        verdicts += [code, *[None] * (len(FILTERS) - place - 1)]
        none: list[int | None] = [None] * len(SCORERS)
        return _Row(name, None, code, verdicts, none, none)
    normal = [100, 0, (at * 37 + number) % 101, (at * 11) % 101, 0, 50 + at % 50, at % 7]
    if at == home:
        normal = [100, 100, 88, 96, 100, 74, 6]
    weighted = [value * weight for value, (_, weight) in zip(normal, SCORERS, strict=True)]
    return _Row(name, sum(weighted), 0, [0] * len(FILTERS), [*normal], [*weighted])
