"""Random queue traces and configuration texts, which the engine accepts."""

from __future__ import annotations

from collections import Counter

import pytest
from fuzz.config_texts import random_config_case
from fuzz.queue_traces import OPERATIONS, random_queue_case
from fuzz.trial import CONFIG, QUEUE, tells_nothing, try_cases

from bayplan.conformance.answers import answer
from bayplan.conformance.cases import JsonObject, RecordedCase


def test_traces_contain_every_operation_and_replay_in_our_queue() -> None:
    operations: Counter[str] = Counter()
    for number in range(120):
        case = random_queue_case(1, number)
        ops = case["ops"]
        assert isinstance(ops, list)
        operations.update(str(op["op"]) for op in ops if isinstance(op, dict))
        # Only the real queue determines which pod these operations concern. All others can be replayed without it.
        case["ops"] = [op for op in ops if isinstance(op, dict) and op["op"] not in ("failAny", "doneAny")]
        ours = answer(RecordedCase(QUEUE, str(case["id"]), "fuzz", "", "fuzz", case, {}))
        assert not ours.failure, ours.failure
    assert set(operations) >= set(OPERATIONS) - {"raw", "close"}


def test_configuration_texts_reach_every_stage_and_are_all_answered() -> None:
    stages: Counter[object] = Counter()
    for number in range(150):
        case = random_config_case(1, number)
        ours = answer(RecordedCase(CONFIG, str(case["id"]), "fuzz", "", "fuzz", case, {}))
        assert not ours.failure, ours.failure
        stages[ours.body["stage"]] += 1
    assert set(stages) >= {None, "decode", "validation", "build"}
    assert stages[None] > 15


@pytest.mark.parametrize(
    ("kind", "reported", "want"),
    [
        pytest.param(QUEUE, {"unstable": True}, True, id="a trace whose outcome depends on the order of a map"),
        pytest.param(QUEUE, {"error": "panic"}, True, id="a trace that makes the real queue panic"),
        pytest.param(QUEUE, {"steps": []}, False, id="a trace that was answered"),
        pytest.param(CONFIG, {"stage": "decode", "error": "no"}, False, id="a configuration that is refused"),
        pytest.param(CONFIG, {"stage": "featureGates", "error": "no"}, True, id="gates that can't be set"),
        pytest.param(CONFIG, {"stage": "validation", "unstable": True}, True, id="errors in the order of a map"),
    ],
)
def test_an_inconclusive_answer_is_not_compared(kind: str, reported: JsonObject, want: bool) -> None:
    assert tells_nothing(kind, reported) is want


def test_a_trial_is_compared_by_the_rules_of_its_kind() -> None:
    case = random_config_case(1, 0)
    recorded = answer(RecordedCase(CONFIG, str(case["id"]), "fuzz", "", "fuzz", case, {})).body
    [same] = try_cases(lambda cases: iter([recorded]), [case], CONFIG)
    [other] = try_cases(lambda cases: iter([{**recorded, "stage": "elsewhere"}]), [case], CONFIG)
    assert (same.differences, {each.part for each in other.differences}) == ((), {"stage"})
