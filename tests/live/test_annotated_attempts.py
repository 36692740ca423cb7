"""Attempts of other schedulers: the decision records agree with the annotations."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from msgspec.json import Decoder

from bayplan.base.errors import InputError
from bayplan.engine.decision import Decision, Outcome
from bayplan.engine.records import RecordLevel
from bayplan.formats.result_annotations import (
    HISTORY,
    PREFIX,
    ExtenderFilterResult,
    ExtenderResults,
    HostPriority,
    SchedulingResults,
    decode,
    encode,
    history_of,
)
from bayplan.framework.status import Code
from bayplan.live.annotated_attempts import MAX_CELLS, MAX_ORDERED_PLUGINS, annotated_attempt, call_order
from bayplan.live.attempt_results import attempt_results
from bayplan.live.decision_store import DecisionStore, Retention
from tests.recorded_annotations import scenarios

NOT_KEPT = {
    ("inter-pod", "web-early", 1, "postfilter-result"): "rows of an earlier attempt, merged into one that found a node",
    ("preemption-dry-run", "want-high", 0, "filter-result"): "a node that failed reads passed after a dry run",
}
"""Wrong values of the simulator, by scenario, pod, attempt and key; see "Quirks" in conformance/annotations/README.md."""


def store_of(results: SchedulingResults, **options: Any) -> DecisionStore:
    store = DecisionStore(RecordLevel.FULL)
    store.add_annotated(annotated_attempt(results, pod="default/p", attempt=1, time_ns=5, **options))
    return store


def read(results: SchedulingResults, **options: Any) -> Decision:
    return store_of(results, **options).decision(0)


def recorded_attempts() -> Iterator[tuple[str, str, int, dict[str, str]]]:
    for name, scenario in scenarios().items():
        for pod, found in scenario["annotations"].items():
            for number, entry in enumerate(history_of(found)):
                yield name, pod, number, entry


def test_recorded_annotations_round_trip_through_decision_records() -> None:
    """All 1,087 of them, except what the simulator writes wrongly."""
    compared, left_out = 0, set()
    for name, pod, number, entry in recorded_attempts():
        results = decode(entry)
        store = store_of(results)
        extended = results.extenders is not None
        points = store.late_points(0)
        assert points is not None
        again = encode(attempt_results(store.decision(0), points, store.late_results(0), extended=extended))
        assert again.keys() == entry.keys()
        for key, text in entry.items():
            place = (name, pod, number, key.removeprefix(PREFIX))
            if place in NOT_KEPT:
                left_out.add(place)
                continue
            assert again[key] == text, place
            compared += 1
    assert compared == 1085
    assert left_out == {*NOT_KEPT}


def test_the_last_recorded_attempt_matches_the_node_of_the_pod() -> None:
    """The last attempt chose the pod's node; its total is the highest if the annotations contain the weights."""
    for name, scenario in scenarios().items():
        for pod, found in scenario["annotations"].items():
            if HISTORY not in found:
                continue
            attempt = annotated_attempt(decode(found), pod=f"default/{pod}", attempt=1, time_ns=0)
            node = scenario["nodeName"].get(pod) or ""
            assert attempt.record.node == node
            assert attempt.record.outcome is (Outcome.SCHEDULED if node else Outcome.UNSCHEDULABLE)
            if node:
                other_weights = name in ("weights-score-decides",)
                assert bool(attempt.record.ties) != (other_weights and attempt.record.feasible_nodes > 1), (name, pod)


def test_filter_order_is_derived_from_failures() -> None:
    """Z ran before A, because Z passed on a node that A rejected; B did not run there. By name the order would be A, B, Z."""
    rows = {"n1": {"A": "no", "Z": "passed"}, "n2": {"A": "passed", "B": "no", "Z": "passed"}}
    assert call_order(rows) == ["Z", "A", "B"]


@pytest.mark.parametrize(
    ("rows", "want"),
    [
        pytest.param({}, [], id="no node was filtered"),
        pytest.param(
            {"n": {"NodeAffinity": "passed", "Custom": "passed", "NodeName": "passed"}},
            ["NodeName", "NodeAffinity", "Custom"],
            id="without failures the default profile decides, then names",
        ),
        pytest.param(
            {"n1": {"A": "no", "B": "passed"}, "n2": {"A": "passed", "B": "no"}},
            ["A", "B"],
            id="rows of several attempts contradict each other",
        ),
        pytest.param(
            {f"n{number}": {f"P{number:03}": "no"} for number in range(MAX_ORDERED_PLUGINS + 1)},
            [f"P{number:03}" for number in range(MAX_ORDERED_PLUGINS + 1)],
            id="more plugins than any profile has",
        ),
    ],
)
def test_filter_order_falls_back_to_the_default_profile_and_names(
    rows: dict[str, dict[str, str]], want: list[str]
) -> None:
    assert call_order(rows) == want


SCORED = SchedulingResults(
    filter={"n1": {"F": "passed"}, "n2": {"F": "passed"}, "n3": {"F": "full, and cordoned"}, "gone": {"F": "passed"}},
    score={"n1": {"S": 5, "T": -3}, "n2": {"S": 9, "T": 0}},
    final_score={"n1": {"S": 50, "T": 0}, "n2": {"S": 90, "T": 200}},
    selected_node="n2",
    bind={"DefaultBinder": "success"},
)


def test_annotations_yield_scores_totals_and_the_chosen_node() -> None:
    decision = read(SCORED)
    record = decision.record
    assert (record.node, record.total, record.ties, record.feasible_nodes) == ("n2", 290, 1, 2)
    assert decision.scorers == ("S", "T")
    rows = {name: row for row, name in enumerate(decision.names)}
    assert decision.raw[:, rows["n1"]].tolist() == [5, -3]
    assert decision.weighted[:, rows["n2"]].tolist() == [90, 200]
    assert decision.total[rows["n3"]] == -1
    failure = decision.first_failure(rows["n3"])
    assert failure is not None
    assert (failure.plugin, failure.message, failure.code) == ("F", "full, and cordoned", Code.UNSCHEDULABLE)


def test_nodes_from_an_earlier_attempt_are_not_evaluated() -> None:
    decision = read(SCORED)
    assert not decision.examined[decision.names.index("gone")]
    assert decision.record.evaluated_nodes == 3


def test_cluster_nodes_without_a_result_are_not_evaluated() -> None:
    decision = read(SCORED, nodes=("n0", "n1", "n2", "n3"))
    assert decision.names[0] == "n0"
    assert decision.allowed[0]
    assert not decision.examined[0]
    assert decision.record.evaluated_nodes == 3


def test_nodes_excluded_by_pre_filter_have_their_own_status() -> None:
    results = SchedulingResults(
        pre_filter_status={"NodeAffinity": "success", "VolumeZone": ""},
        pre_filter={"NodeAffinity": ["n1"]},
        filter={"n1": {"NodeName": "passed"}},
        selected_node="n1",
    )
    decision = read(results, nodes=("n1", "n2"))
    failure = decision.first_failure(1)
    assert failure is not None
    assert failure.message == "node(s) didn't satisfy plugin(s) [NodeAffinity]"
    assert [(each.plugin, each.code) for each in decision.pre_filters] == [
        ("NodeAffinity", Code.SUCCESS),
        ("VolumeZone", Code.SKIP),
    ]


def test_a_failed_pre_filter_plugin_ends_the_attempt() -> None:
    results = SchedulingResults(pre_filter_status={"A": "success", "B": "no such claim", "C": ""})
    decision = read(results, nodes=("n1", "n2"))
    assert decision.pre_filter is not None
    assert (decision.pre_filter.plugin, decision.pre_filter.message) == ("B", "no such claim")
    assert decision.record.message == "0/2 nodes are available: no such claim."
    assert [each.plugin for each in decision.pre_filters] == ["A", "C", "B"]


@pytest.mark.parametrize(
    ("message", "want"),
    [
        pytest.param("", "0/2 nodes are available: 1 Insufficient memory, 2 Insufficient cpu.", id="put together"),
        pytest.param("0/2 nodes are available: 2 x.", "0/2 nodes are available: 2 x.", id="the pod's condition has it"),
    ],
)
def test_an_unschedulable_attempt_has_the_condition_message_or_a_computed_one(message: str, want: str) -> None:
    results = SchedulingResults(
        filter={"n1": {"F": "Insufficient cpu, Insufficient memory"}, "n2": {"F": "Insufficient cpu"}},
        post_filter={"n1": {"DefaultPreemption": "preemption victim"}, "n2": {}},
    )
    decision = read(results, message=message)
    assert (decision.record.message, decision.record.nominated_node) == (want, "n1")


def test_a_node_that_passes_only_in_a_preemption_dry_run_is_infeasible() -> None:
    results = SchedulingResults(
        filter={"n1": {"F": "passed"}, "n2": {"F": "Insufficient cpu"}}, post_filter={"n1": {}, "n2": {}}
    )
    decision = read(results)
    failure = decision.first_failure(decision.names.index("n1"))
    assert failure is not None
    assert "dry run of preemption" in failure.message
    assert decision.record.feasible_nodes == 0
    assert not decision.feasible.any()


def test_chosen_node_can_differ_from_best_total_when_weights_are_unknown() -> None:
    """By the totals computed without weights, another node is the best."""
    results = SchedulingResults(
        filter={"n1": {"F": "passed"}, "n2": {"F": "passed"}},
        score={"n1": {"S": 1}, "n2": {"S": 2}},
        final_score={"n1": {"S": 10}, "n2": {"S": 20}},
        selected_node="n1",
    )
    assert (read(results).record.ties, read(results).ties) == (0, ("n2",))


def test_without_score_plugins_all_feasible_nodes_tie() -> None:
    results = SchedulingResults(filter={"n1": {"F": "passed"}, "n2": {"F": "passed"}}, selected_node="n2")
    record = read(results).record
    assert (record.feasible_nodes, record.ties, record.total) == (2, 2, 0)


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(
            ExtenderFilterResult(node_names=["n1"], failed_nodes={"n2": "no licence"}, error=""), id="with node names"
        ),
        pytest.param(
            Decoder(ExtenderFilterResult).decode(
                b'{"Nodes": {"items": [{"metadata": {"name": "n1"}}]}, "FailedAndUnresolvableNodes": {"n2": "no licence"}}'
            ),
            id="with whole nodes",
        ),
    ],
)
def test_extender_results_become_filters_and_rejections(answer: ExtenderFilterResult) -> None:
    results = SchedulingResults(
        filter={"n1": {"F": "passed"}, "n2": {"F": "passed"}, "n3": {"F": "Insufficient cpu"}},
        selected_node="n1",
        extenders=ExtenderResults(filter={"http://e": answer}, prioritize={"http://e": [HostPriority("n1", 40)]}),
    )
    decision = read(results)
    assert decision.filters == ("F", "http://e")
    assert [decision.feasible[decision.names.index(name)] for name in ("n1", "n2", "n3")] == [True, False, False]
    assert decision.rejecting_plugin(decision.names.index("n2")) == "http://e"
    (said,) = decision.extenders
    assert [decision.names[row] for row in said.asked] == ["n1", "n2"]


@pytest.mark.parametrize(
    "late",
    [
        pytest.param(SchedulingResults(permit={"P": "not today"}), id="Permit refuses"),
        pytest.param(SchedulingResults(reserve={"V": "success"}, bind={"B": "not today"}), id="Bind fails"),
    ],
)
def test_a_pod_rejected_after_its_placement_has_a_second_record(late: SchedulingResults) -> None:
    store = store_of(replace(late, filter={"n1": {"F": "passed"}}, selected_node="n1"))
    assert [(store[number].outcome, store[number].message) for number in store.numbers_of("default/p")] == [
        (Outcome.SCHEDULED, ""),
        (Outcome.UNSCHEDULABLE, "not today"),
    ]
    assert all(store.is_annotated(number) for number in (0, 1))


def test_a_permit_wait_is_not_recorded_as_a_rejection() -> None:
    results = SchedulingResults(filter={"n1": {"F": "passed"}}, selected_node="n1", permit={"P": "wait"})
    store = store_of(results)
    assert len(store) == 1
    assert [(each.plugin, each.status.code) for each in store.late_results(0)] == [("P", Code.WAIT)]


# The store.


def test_annotated_attempts_do_not_change_the_digest() -> None:
    assert store_of(SCORED).digest() == DecisionStore(RecordLevel.FULL).digest()


@pytest.mark.parametrize(
    ("level", "summaries", "full"),
    [
        pytest.param(RecordLevel.OFF, 0, 0, id="off"),
        pytest.param(RecordLevel.SUMMARY, 1, 0, id="summary"),
        pytest.param(RecordLevel.FULL, 1, 1, id="full"),
    ],
)
def test_record_level_applies_to_annotated_attempts(level: RecordLevel, summaries: int, full: int) -> None:
    store = DecisionStore(level)
    store.add_annotated(annotated_attempt(SCORED, pod="default/p", attempt=1, time_ns=0))
    assert (store.memory()["summaries"], store.memory()["full"]) == (summaries, full)
    assert len(store) == 1


def test_retention_limits_apply_to_annotated_attempts() -> None:
    store = DecisionStore(RecordLevel.FULL, Retention(summaries=2, full=1))
    for number in range(4):
        store.add_annotated(annotated_attempt(SCORED, pod="default/p", attempt=number + 1, time_ns=number))
    assert list(store.numbers_of("default/p")) == [2, 3]
    assert (store.memory()["full"], store.oldest_full) == (1, 3)
    assert not store.is_annotated(1)
    store.expire(0)
    size = store.memory()["full_bytes"]
    assert 0 < size < 10_000


# Hostile annotations.


def test_annotations_with_too_many_cells_are_refused() -> None:
    many = SchedulingResults(filter={f"n{number}": {f"P{number}": "passed"} for number in range(2000)})
    assert len(many.filter) ** 2 > MAX_CELLS
    with pytest.raises(InputError, match="result annotations: expected at most 1,000,000, got 4,000,000 results"):
        read(many)


def test_thousands_of_different_reasons_are_read_quickly() -> None:
    """As many as fit into 256 KiB; a linear search among the previous reasons would take seconds."""
    many = SchedulingResults(filter={f"n{number}": {"F": f"reason {number}"} for number in range(8000)})
    decision = read(many)
    assert decision.record.evaluated_nodes == 8000
    assert len(decision.statuses) == 8000
