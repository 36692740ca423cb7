"""The sentences that pages about clusters, nodes, queues and comparisons begin with."""

from __future__ import annotations

import pytest

from bayplan.analysis.cluster_sentences import (
    CommonCause,
    cluster_sentence,
    comparison_sentence,
    node_sentence,
    queue_sentence,
    source_sentence,
)
from bayplan.analysis.reasons import ReasonCount

GI = 1 << 30


@pytest.mark.parametrize(
    ("pods", "waiting", "gated", "nodes", "reasons", "want"),
    [
        pytest.param(0, 0, 0, 0, [], "The cluster is empty: there are no nodes and no pods", id="an empty cluster"),
        pytest.param(3, 3, 0, 0, [], "There are no nodes, so none of 3 pods can be placed", id="no nodes"),
        pytest.param(0, 0, 0, 5, [], "5 nodes, and no pods", id="no pods"),
        pytest.param(1, 0, 0, 5, [], "The only pod has its node", id="one scheduled pod"),
        pytest.param(12, 0, 0, 5, [], "All 12 pods have their nodes", id="all placed"),
        pytest.param(
            12,
            0,
            2,
            5,
            [],
            "All 10 pods have their nodes; 2 more are held back by gates",
            id="gated pods are listed separately",
        ),
        pytest.param(2, 0, 2, 5, [], "No pod has a node; 2 are held back by gates", id="gated pods only"),
        pytest.param(9, 1, 0, 5, [], "1 of 9 pods is pending, not tried yet", id="one pending pod without an attempt"),
        pytest.param(
            50_000,
            1469,
            0,
            5000,
            [ReasonCount("Insufficient cpu", 1400, 1012), ReasonCount("node(s) were unschedulable", 1469, 0)],
            "1,469 of 50,000 pods are pending, 1,012 mainly for lack of cpu",
            id="most pods wait for CPU",
        ),
        pytest.param(
            9,
            2,
            1,
            5,
            [ReasonCount("node(s) were unschedulable", 2, 2)],
            "2 of 9 pods are pending, all because node(s) were unschedulable; 1 more is held back by gates",
            id="all pods wait for one reason",
        ),
        pytest.param(
            9,
            1,
            0,
            5,
            [ReasonCount("Insufficient cpu", 1, 1)],
            "1 of 9 pods is pending for lack of cpu",
            id="one pod waits for CPU",
        ),
        pytest.param(
            9,
            2,
            0,
            5,
            [ReasonCount("Insufficient a/b", 2, 2)],
            "2 of 9 pods are pending, all for lack of a/b",
            id="a resource that no node has",
        ),
    ],
)
def test_cluster_sentence_summarises_the_cluster(
    pods: int, waiting: int, gated: int, nodes: int, reasons: list[ReasonCount], want: str
) -> None:
    sentence = cluster_sentence(pods=pods, waiting=waiting, gated=gated, nodes=nodes, reasons=reasons)
    assert sentence == want


@pytest.mark.parametrize(
    ("waiting", "of_cause", "want"),
    [
        pytest.param(1, 1, "1 of 9 pods is pending: no room", id="one"),
        pytest.param(3, 1, "3 of 9 pods are pending; the first reason: no room", id="each pod for a different reason"),
        pytest.param(3, 2, "3 of 9 pods are pending; 2 for the same reason: no room", id="two pods for one reason"),
        pytest.param(3, 3, "3 of 9 pods are pending; all for the same reason: no room", id="all pods for one reason"),
    ],
)
def test_a_root_cause_takes_precedence_over_message_reasons(waiting: int, of_cause: int, want: str) -> None:
    cause, reasons = CommonCause("no room", of_cause), [ReasonCount("Insufficient cpu", 3, 3)]
    assert cluster_sentence(pods=9, waiting=waiting, gated=0, nodes=5, reasons=reasons, cause=cause) == want


@pytest.mark.parametrize(
    ("ready", "cordoned", "pods", "full_by", "named_by", "want"),
    [
        pytest.param(True, False, 3, [], 0, "n has 3 pods: 1 of 4 cpu free", id="an ordinary node"),
        pytest.param(True, False, 0, [], 0, "n is empty: 1 of 4 cpu free", id="an empty node"),
        pytest.param(False, True, 3, [], 0, "n is not ready, cordoned: 1 of 4 cpu free", id="a node out of service"),
        pytest.param(
            True,
            False,
            3,
            ["memory", "pods"],
            14,
            "n is full by memory and pods: 1 of 4 cpu free; 14 pending pods were rejected here",
            id="a full node that rejected pods",
        ),
    ],
)
def test_node_sentence_summarises_a_node(
    ready: bool, cordoned: bool, pods: int, full_by: list[str], named_by: int, want: str
) -> None:
    sentence = node_sentence(
        name="n",
        ready=ready,
        cordoned=cordoned,
        pods=pods,
        full_by=full_by,
        free=[("cpu", 1000, 4000), ("memory", 3 * GI, 4 * GI)],
        named_by=named_by,
    )
    assert sentence == want


@pytest.mark.parametrize(
    ("counts", "retry_ns", "want"),
    [
        pytest.param({}, None, "No pod is pending", id="an empty queue"),
        pytest.param({"active": 3}, None, "3 pods are pending: 3 active", id="pods ready to be scheduled"),
        pytest.param(
            {"backoff": 220, "unschedulable": 1237, "gated": 5},
            1_200_000_000,
            "1,462 pods are pending: 220 in backoff, next retry in 1.2 s (batch/job-3); 1,237 unschedulable; 5 gated",
            id="all tiers",
        ),
        pytest.param(
            {"backoff": 1},
            -5,
            "1 pod is pending: 1 in backoff, next retry in 0 s (batch/job-3)",
            id="an overdue attempt",
        ),
    ],
)
def test_queue_sentence_summarises_the_queue(counts: dict[str, int], retry_ns: int | None, want: str) -> None:
    assert queue_sentence(counts, next_retry_in_ns=retry_ns, next_pod="batch/job-3") == want


@pytest.mark.parametrize(
    ("moved", "only_a", "only_b", "nodes_b", "want"),
    [
        pytest.param(0, 0, 0, 9, "A and B place all 50 pods on the same nodes", id="no difference"),
        pytest.param(1, 0, 0, 9, "1 of 50 pods differs: 1 on another node", id="one pod moved"),
        pytest.param(0, 0, 4, 9, "4 of 50 pods differ: 4 placed only by B", id="pods without differences are omitted"),
        pytest.param(
            3,
            2,
            1,
            8,
            "6 of 50 pods differ: 3 on another node, 2 placed only by A, 1 placed only by B; B uses 1 node fewer",
            id="all kinds of differences",
        ),
    ],
)
def test_comparison_sentence_summarises_the_differences(
    moved: int, only_a: int, only_b: int, nodes_b: int, want: str
) -> None:
    sentence = comparison_sentence(
        a="A", b="B", pods=50, moved=moved, only_a=only_a, only_b=only_b, nodes_a=9, nodes_b=nodes_b
    )
    assert sentence == want


@pytest.mark.parametrize(
    ("kind", "state", "lag", "want"),
    [
        pytest.param("sync", "listing", 0, "Reads x", id="a cluster is being listed"),
        pytest.param(
            "sync", "following", 0, "Syncs with x, less than a second behind", id="a cluster is followed closely"
        ),
        pytest.param("sync", "following", 75, "Syncs with x, 1 min 15 s behind", id="a cluster is followed with a lag"),
        pytest.param("sync", "stopped", 0, "Synced with x; now stopped", id="a session was ended"),
        pytest.param("import", "listing", 0, "Imports x", id="an import begins"),
        pytest.param("import", "following", 0, "Imports x", id="an import is under way"),
        pytest.param("import", "done", 0, "Imported x", id="an import is done"),
        pytest.param("import", "stopped", 0, "Imported x in part: the session was stopped", id="an import was ended"),
        pytest.param("replay", "following", 2, "Replays x, 2 s behind", id="a recording is replayed"),
        pytest.param("replay", "done", 0, "Replayed x", id="a recording was replayed"),
    ],
)
def test_source_sentence_describes_the_sync_state(kind: str, state: str, lag: int, want: str) -> None:
    assert source_sentence(name="x", kind=kind, state=state, lag_seconds=lag) == want
