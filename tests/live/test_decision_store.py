"""Tests of stored decisions: limits, and errors for decisions that were dropped."""

from __future__ import annotations

import gc
import tracemalloc

import pytest

from bayplan.base.errors import InputError
from bayplan.engine import keyframe
from bayplan.engine.keyframe import Keyframe
from bayplan.engine.records import RecordLevel
from bayplan.framework.status import Code
from bayplan.live import decision_store
from bayplan.live.decision_store import DecisionStore, Retention
from tests.live.hosts import SECOND, Cluster, small_cluster, small_pod


def store_with(cluster: Cluster, retention: Retention) -> DecisionStore:
    store = DecisionStore(RecordLevel.FULL, retention)

    def exchange(scheduler: object) -> None:
        scheduler.records = store  # type: ignore[attr-defined]

    cluster.host.call(exchange)
    cluster.decisions = store
    return store


def decide(cluster: Cluster, count: int, start: int = 0) -> None:
    for number in range(start, start + count):
        cluster.add(small_pod(f"p{number}", cpu="1m"))
        cluster.run()


def test_decisions_are_found_by_number_and_by_pod() -> None:
    cluster = small_cluster()
    cluster.add(small_pod("big", cpu="50"), small_pod("p"))
    cluster.run()
    cluster.pass_seconds(400)
    decisions = cluster.decisions
    assert len(decisions) == 3
    assert [*decisions.numbers_of("default/big")] == [0, 2]
    assert decisions.numbers_of("default/nobody") == ()
    assert [record.pod for record in decisions] == ["default/big", "default/p", "default/big"]
    found = decisions.decision(1)
    assert (found.record.node, found.ties) == ("n0", ("n0", "n1"))
    assert ("NodeResourcesFit", Code.SUCCESS, "", None) in found.pre_filters
    assert ("TaintToleration", Code.SUCCESS) in found.pre_scores
    points = decisions.late_points(1)
    assert points is not None
    assert points.bind == ("DefaultBinder",)
    with pytest.raises(LookupError, match="decision 3 does not exist; 0 to 2 are stored"):
        decisions[3]


def test_records_over_a_limit_are_dropped_oldest_first() -> None:
    cluster = small_cluster()
    store = store_with(cluster, Retention(full=3, summaries=5))
    decide(cluster, 9)
    assert (len(store), store.oldest, store.oldest_full) == (9, 4, 6)
    assert [record.pod for record in store] == [f"default/p{number}" for number in range(4, 9)]
    assert store.numbers_of("default/p3") == ()
    with pytest.raises(LookupError, match="decision 3 was dropped"):
        store[3]
    with pytest.raises(
        LookupError, match=r"the full record of decision 5 of default/p5 was dropped; its summary is still stored"
    ):
        store.decision(5)
    assert store.decision(6).record.node
    assert store.memory()["full"] == 3


def test_full_records_expire_after_their_maximum_age() -> None:
    cluster = small_cluster()
    store = store_with(cluster, Retention(full_age_ns=60 * SECOND))
    decide(cluster, 2)
    cluster.clock.jump(cluster.clock.now_ns() + 61 * SECOND)
    cluster.run()
    assert (store.memory()["full"], store.memory()["summaries"], store.nbytes) == (
        0,
        2,
        2 * decision_store.SUMMARY_BYTES,
    )
    decide(cluster, 1, start=2)
    assert (store.oldest_full, store.memory()["full"]) == (2, 1)


def test_full_records_are_limited_by_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keyframe, "MAX_CHANGED_ROWS", 4)
    cluster = small_cluster(nodes=8)
    store = store_with(cluster, Retention(full_bytes=14_000))
    decide(cluster, 60)
    memory = store.memory()
    assert 0 < memory["full_bytes"] <= 14_000
    assert memory["full"] < 15
    keyframes = {
        id(frame.keyframe): frame.keyframe for number in range(60) if (frame := store.frame(number)) is not None
    }
    assert len(keyframes) == memory["keyframes"] > 1
    assert all(isinstance(frame, Keyframe) and len(frame.rows) <= 5 for frame in keyframes.values())
    before = store.decision(59)
    assert before.total.max() == before.record.total


def bytes_per_decision(*, full: int, unlike: bool) -> tuple[float, float]:
    """Return how much memory grows with each decision about a pod, and how much of it the store counts."""
    cluster = small_cluster(nodes=8)
    store = store_with(cluster, Retention(full=full, summaries=full))

    def decide_more(numbers: range) -> tuple[int, int]:
        for number in numbers:
            cluster.add(small_pod(f"p{number}", cpu=f"{100_000 + number * unlike}m"))
            cluster.run()
        gc.collect()
        return tracemalloc.get_traced_memory()[0], store.nbytes

    tracemalloc.start()
    try:
        before, counted_before = decide_more(range(40))
        after, counted = decide_more(range(40, 240))
    finally:
        tracemalloc.stop()
    return (after - before) / 200, (counted - counted_before) / 200


@pytest.mark.parametrize(
    "unlike", [pytest.param(False, id="pods of one template"), pytest.param(True, id="unlike pods")]
)
def test_counted_bytes_match_the_memory_of_full_records(unlike: bool) -> None:
    """A run with a small limit shows how much memory pods, queue and attempts take. Small records are counted double."""
    without, counted_without = bytes_per_decision(full=10, unlike=unlike)
    whole, counted = bytes_per_decision(full=1000, unlike=unlike)
    assert counted_without == 0
    assert 0.8 < counted / (whole - without) < 2.5, (counted, whole - without)


@pytest.mark.parametrize(
    ("level", "want"),
    [
        pytest.param(RecordLevel.OFF, (3, 0, 0), id="nothing is kept but the digest"),
        pytest.param(RecordLevel.SUMMARY, (3, 3, 0), id="summaries"),
        pytest.param(RecordLevel.FULL, (3, 3, 3), id="everything"),
    ],
)
def test_record_level_selects_what_is_stored(level: RecordLevel, want: tuple[int, int, int]) -> None:
    cluster = small_cluster(level=level)
    decide(cluster, 3)
    store = cluster.decisions
    assert (len(store), store.memory()["summaries"], store.memory()["full"]) == want
    assert len([*store]) == want[1]
    full = small_cluster()
    decide(full, 3)
    assert store.digest() == full.decisions.digest()


def test_the_record_level_can_be_changed_at_runtime() -> None:
    cluster = small_cluster(level=RecordLevel.OFF)
    decide(cluster, 2)
    cluster.decisions.level = RecordLevel.FULL
    decide(cluster, 2, start=2)
    assert (cluster.decisions.oldest, cluster.decisions.oldest_full) == (2, 2)
    assert [record.pod for record in cluster.decisions] == ["default/p2", "default/p3"]
    cluster.decisions.level = RecordLevel.SUMMARY
    decide(cluster, 1, start=4)
    with pytest.raises(LookupError, match="was not recorded at this record level"):
        cluster.decisions.decision(4)


def test_only_unsuccessful_late_plugin_results_are_stored() -> None:
    cluster = small_cluster()
    cluster.refuses.add("default/p")
    cluster.add(small_pod("p"), small_pod("q"))
    cluster.run()
    said = [cluster.decisions.late_results(number) for number in cluster.decisions.numbers_of("default/p")]
    assert [(it.point, it.plugin, it.status.message) for it in said[0]] == [
        ("Bind", "DefaultBinder", "the cluster refuses it")
    ]
    assert cluster.decisions.late_results(cluster.decisions.numbers_of("default/q")[0]) == ()


@pytest.mark.parametrize("limits", [{"summaries": 0}, {"full": -1}, {"full_bytes": -1}])
def test_invalid_retention_limits_are_refused(limits: dict[str, int]) -> None:
    with pytest.raises(InputError, match="retention"):
        Retention(**limits)
