"""Random cases of the classic scheduler: a seed always gives the same case, and only features of that time occur."""

from __future__ import annotations

from collections import Counter

import msgspec
import pytest
from fuzz.__main__ import MAKERS, PROGRAMS, UNITS
from fuzz.classic import FEATURES, UNKNOWN, UNKNOWN_KINDS, random_classic_case
from fuzz.classic_queue import OPERATIONS, random_classic_queue_case
from fuzz.trial import CLASSIC, CLASSIC_QUEUE

from bayplan.conformance.answers import answer
from bayplan.conformance.cases import JsonObject, RecordedCase

COUNT = 100


@pytest.mark.parametrize("kind", [CLASSIC, CLASSIC_QUEUE])
def test_a_case_depends_only_on_its_seed_and_number(kind: str) -> None:
    make = MAKERS[kind]
    assert make(7, 3) == make(7, 3)
    assert make(7, 4) != make(7, 3)
    assert PROGRAMS[kind].startswith("classic/")
    assert kind in UNITS


def test_the_engine_answers_every_case() -> None:
    for number in range(COUNT):
        ours = _answer("classic", random_classic_case(1, number))
        assert ours["cycles"] is not None or ours["error"]


def test_the_engine_answers_every_trace() -> None:
    for number in range(10):
        case = random_classic_queue_case(1, number)
        steps, operations = _answer("classic-queue", case)["steps"], case["ops"]
        assert isinstance(steps, list)
        assert isinstance(operations, list)
        assert len(steps) == len(operations)


def _answer(kind: str, case: JsonObject) -> JsonObject:
    ours = answer(RecordedCase(kind, str(case["id"]), "fuzz", "", "fuzz", case, {}))
    assert not ours.failure, case["id"]
    return ours.body


def test_cases_cover_all_features_and_use_only_fields_of_the_classic_api() -> None:
    features: Counter[str] = Counter()
    for number in range(COUNT):
        case = random_classic_case(1, number)
        features.update(str(case["note"]).split(", "))
        text = msgspec.json.encode(case).decode()
        assert not [name for name in UNKNOWN if f'"{name}":' in text]
        assert not [kind for kind in UNKNOWN_KINDS if f'"kind":"{kind}"' in text]
        assert "topology.kubernetes.io/zone" not in text
    assert set(FEATURES) <= set(features)


def test_traces_contain_all_operations() -> None:
    seen: set[object] = set()
    for number in range(20):
        operations = random_classic_queue_case(1, number)["ops"]
        assert isinstance(operations, list)
        seen |= {operation["op"] for operation in operations if isinstance(operation, dict)}
    assert seen == {*OPERATIONS, "advance"}
