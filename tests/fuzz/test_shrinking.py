"""Shrinking: parts that do not affect a difference are removed, the others are kept."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest
from fuzz.shrinking import removable, shrink, without
from fuzz.trial import try_cases

from bayplan.conformance.answers import answer
from bayplan.conformance.cases import Json, JsonObject, RecordedCase


def node(name: str, cpu: str) -> JsonObject:
    status: JsonObject = {"allocatable": {"cpu": cpu, "pods": "10"}}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {"a": "b"}}, "status": status}


def pod(name: str) -> JsonObject:
    container: JsonObject = {"name": "c", "resources": {"requests": {"cpu": "1"}}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"containers": [container]}}


CASE: JsonObject = {
    "id": "fuzz/x",
    "family": "fuzz",
    "objects": [node("n1", "4"), node("odd", "8"), node("n3", "4")],
    "pods": [pod("p"), pod("q")],
}


def scheduler_with_one_different_score(cases: Sequence[JsonObject]) -> Iterator[JsonObject]:
    """A scheduler that differs from ours in one score of one node, and refuses cases without nodes."""
    for case in cases:
        body = answer(RecordedCase("cycles", str(case["id"]), "fuzz", "", "", case, {})).body
        cycles = body["cycles"]
        assert isinstance(cycles, list)
        for cycle in cycles:
            assert isinstance(cycle, dict)
            scores = cycle["scores"]
            assert isinstance(scores, dict)
            for reported in scores.values():
                assert isinstance(reported, dict)
                raw = reported["raw"]
                assert isinstance(raw, dict)
                if "odd" in raw:
                    raw["odd"] = -1
        yield {**body, "error": None if case["objects"] else "no nodes"}


def test_shrinking_preserves_only_parts_causing_the_difference() -> None:
    [trial] = try_cases(scheduler_with_one_different_score, [CASE])
    assert trial.parts == {"scores"}
    small = shrink(scheduler_with_one_different_score, trial)
    assert small.parts == {"scores"}
    objects, pods = small.case["objects"], small.case["pods"]
    assert isinstance(objects, list)
    assert isinstance(pods, list)
    assert [item["metadata"] for item in objects if isinstance(item, dict)] == [{"name": "odd"}]
    assert len(pods) == 1


def test_cases_refused_by_the_real_scheduler_have_no_differences() -> None:
    [trial] = try_cases(scheduler_with_one_different_score, [{**CASE, "objects": []}])
    assert trial.refused
    assert trial.differences == ()


@pytest.mark.parametrize(
    ("paths", "want"),
    [
        pytest.param([("a", 0)], {"a": [2, {"b": 3}]}, id="an element"),
        pytest.param([("a", 0), ("a", 1)], {"a": [{"b": 3}]}, id="elements whose places would move"),
        pytest.param([("a", 2), ("a", 2, "b")], {"a": [1, 2]}, id="an object and its content"),
        pytest.param([("a",)], {}, id="a field"),
    ],
)
def test_without_removes_elements_by_path(paths: list[tuple[str | int, ...]], want: Json) -> None:
    case: JsonObject = {"a": [1, 2, {"b": 3}]}
    assert without(case, paths) == want
    assert case == {"a": [1, 2, {"b": 3}]}


def test_names_and_kinds_are_not_removable() -> None:
    paths = list(removable(CASE))
    assert ("objects", 0) in paths
    assert ("objects", 0, "metadata", "labels") in paths
    assert not [path for path in paths if path[-1] in ("id", "kind", "name", "apiVersion")]
    assert ("objects",) not in paths
