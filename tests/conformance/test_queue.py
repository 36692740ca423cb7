"""Queue traces: Bayplan's answers equal the recorded ones, and invalid traces are refused."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bayplan.base.errors import InputError
from bayplan.conformance.cases import JsonObject, RecordedCase, read_case_files
from bayplan.conformance.queue import answer_queue_case
from tests.shared import recording


def recorded_traces(*, default_plugins: bool) -> Iterator[RecordedCase]:
    [traces] = read_case_files([recording("queue", "traces.jsonl.gz")])
    for trace in traces:
        options = trace.case["options"]
        assert isinstance(options, dict)
        if bool(options.get("defaultPlugins")) == default_plugins:
            yield trace


def test_recorded_traces_of_invented_plugins_agree_in_every_step() -> None:
    compared = 0
    for trace in recorded_traces(default_plugins=False):
        assert answer_queue_case(trace.case) == trace.want, trace.id
        compared += 1
    assert compared == 455


def test_recorded_traces_of_the_default_plugins_agree_in_every_step() -> None:
    compared = 0
    for trace in recorded_traces(default_plugins=True):
        assert answer_queue_case(trace.case) == trace.want, trace.id
        compared += 1
    assert compared == 41


def small_trace(*ops: JsonObject) -> JsonObject:
    return {
        "id": "small",
        "pods": {"a": {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c"}], "priority": 3}}},
        "hints": {"P": [{"event": {"resource": "Node", "actions": ["Add"]}, "answer": "Queue"}]},
        "ops": list(ops),
    }


def test_an_answer_contains_the_queue_state_after_each_operation() -> None:
    answer = answer_queue_case(
        small_trace({"op": "add", "pod": "a"}, {"op": "pop"}, {"op": "fail", "pod": "a", "unschedulable": ["P"]})
    )
    start = 1_700_000_000_000_000_000
    record = {
        "pod": "default/a",
        "version": "a",
        "timestamp": start,
        "attempts": 0,
        "unschedulableCount": 0,
        "errorCount": 0,
        "initialAttempt": start,
        "unschedulablePlugins": [],
        "pendingPlugins": [],
        "gatingPlugin": "",
        "flushed": False,
    }
    empty = {
        "now": start,
        "cycle": 0,
        "active": [],
        "backoff": [],
        "errorBackoff": [],
        "unschedulable": [],
        "inFlight": [],
        "nominated": {},
    }
    rejected = {**record, "attempts": 1, "unschedulableCount": 1, "unschedulablePlugins": ["P"]}
    assert answer == {
        "id": "small",
        "error": None,
        "steps": [
            {"result": {}, "state": {**empty, "active": [record]}},
            {
                "result": {"pod": {**record, "attempts": 1}},
                "state": {**empty, "cycle": 1, "inFlight": ["pod default/a"]},
            },
            {
                "result": {"requeued": True, "error": None},
                "state": {**empty, "cycle": 1, "unschedulable": [rejected]},
            },
        ],
    }


@pytest.mark.parametrize(
    ("op", "want"),
    [
        pytest.param({"op": "jump"}, "jump", id="unknown operation"),
        pytest.param({"op": "fail", "pod": "a"}, "the failure of pod a", id="failure of a pod that was not popped"),
        pytest.param({"op": 7}, "Expected `str`", id="not an operation"),
    ],
)
def test_a_malformed_trace_is_refused(op: JsonObject, want: str) -> None:
    with pytest.raises(InputError, match=want):
        answer_queue_case(small_trace(op))
