"""Answerers: which one answers a case, and what happens if it fails."""

import sys
from collections.abc import Callable, Iterator
from types import ModuleType

import pytest

from bayplan.conformance import answers
from bayplan.conformance.answers import answer
from bayplan.conformance.cases import JsonObject, RecordedCase
from tests.conformance.recorded import placed_cycle, recorded

Answerer = Callable[[JsonObject], object]


@pytest.fixture
def answer_with(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Answerer], None]]:
    """Let a function of the test answer the cycle cases."""

    def install(function: Answerer) -> None:
        module = ModuleType("answerer_of_a_test")
        module.answer = function  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "answerer_of_a_test", module)
        monkeypatch.setitem(answers.ANSWERERS, "cycles", ("answerer_of_a_test", "answer"))
        answers._answerer.cache_clear()

    yield install
    answers._answerer.cache_clear()


def test_answers_are_converted_to_json_values(answer_with: Callable[[Answerer], None]) -> None:
    answer_with(lambda case: {"id": case["id"], "cycles": (1, 2)})
    assert answer(recorded(placed_cycle())).body == {"id": "family/h0001", "cycles": [1, 2]}


def _fails(case: JsonObject) -> JsonObject:
    raise KeyError(f"no node for {case['id']}")


def _recurses(case: JsonObject) -> JsonObject:
    return _recurses(case)


FAILURES: list[tuple[str, Answerer, str]] = [
    ("it raises", _fails, "KeyError: 'no node for family/h0001' (test_answers.py:"),
    ("it never ends", _recurses, "RecursionError: "),
    ("it is not JSON", lambda case: {"id": case["id"], "x": object()}, "TypeError: "),
    ("it is not an object", lambda case: [case["id"]], "not an object with the id"),
    ("it names another case", lambda case: {"id": "x"}, "not an object with the id"),
]


@pytest.mark.parametrize(("function", "want"), [each[1:] for each in FAILURES], ids=[each[0] for each in FAILURES])
def test_an_invalid_answer_is_reported_as_a_failure(
    answer_with: Callable[[Answerer], None], function: Answerer, want: str
) -> None:
    answer_with(function)
    ours = answer(recorded(placed_cycle()))
    assert want in ours.failure
    assert ours.body == {"id": "family/h0001", "failure": ours.failure}


@pytest.mark.parametrize("kind", ["a-kind-of-tomorrow", "cycles"])
def test_an_unsupported_kind_is_reported_as_a_failure(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(answers.ANSWERERS, "cycles", ("bayplan.conformance.module_of_tomorrow", "answer"))
    answers._answerer.cache_clear()
    case = RecordedCase(kind, "x", "x", "", "f:1", {}, {})
    assert answer(case).failure == f"this version of Bayplan can't answer {kind} cases"
    answers._answerer.cache_clear()
