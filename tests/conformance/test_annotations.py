"""Result annotations of recorded scenarios: which values are compared, and which the recording leaves open."""

from __future__ import annotations

import copy
import json
from collections import Counter
from functools import cache
from typing import Any, cast

import pytest

from bayplan.conformance.annotation_values import comparable_annotation_parts
from bayplan.conformance.annotations import answer_annotation_case
from bayplan.conformance.cases import JsonObject
from bayplan.formats.result_annotations import HISTORY, PREFIX, history_of
from tests.recorded_annotations import scenarios

Entry = dict[str, str]


@cache
def answered(name: str) -> JsonObject:
    return answer_annotation_case(copy.deepcopy(scenarios()[name]))


def differing(record: JsonObject, answer: JsonObject) -> list[str]:
    """Return the keys of the values that differ."""
    return [part for part, want, got in comparable_annotation_parts(record, answer) if want != got]


def test_all_recorded_values_except_known_exceptions_are_compared() -> None:
    recorded: Counter[str] = Counter()
    compared: Counter[str] = Counter()
    for name, scenario in scenarios().items():
        for annotations_of_pod in scenario["annotations"].values():
            for entry in history_of(annotations_of_pod):
                recorded.update(key.removeprefix(PREFIX) for key in entry)
        compared.update(part for part, _, _ in comparable_annotation_parts(scenario, answered(name)))
    assert (recorded.total(), compared.total()) == (1087, 1080)
    assert recorded - compared == Counter({"finalscore-result": 6, "postfilter-result": 1})


@pytest.mark.parametrize("name", list(scenarios()))
def test_any_changed_annotation_value_is_a_difference(name: str) -> None:
    """Each value of our attempts of each pod is changed, one key after the other: one entry more, or another node."""
    scenario, attempts = scenarios()[name], cast("dict[str, list[Entry]]", answered(name)["attempts"])
    for pod, found in scenario["annotations"].items():
        record = {**scenario, "annotations": {pod: found}}
        for part in {part for part, _, _ in comparable_annotation_parts(record, answered(name))}:
            changed = []
            for entry in attempts[pod]:
                text = entry[PREFIX + part]
                other = "elsewhere" if part == "selected-node" else json.dumps({**json.loads(text), "x": {}})
                changed.append({**entry, PREFIX + part: other})
            answer = cast("JsonObject", {"id": name, "attempts": {pod: changed}})
            assert set(differing(record, answer)) == {part}, (pod, part)


def record_of(*attempts: Entry, **more: Any) -> JsonObject:
    entries = [{PREFIX + key.replace("_", "-"): text for key, text in attempt.items()} for attempt in attempts]
    return {"config": {}, "annotations": {"p": {HISTORY: json.dumps(entries)}}, **more}


def answer_of(*attempts: Entry) -> JsonObject:
    entries = [{PREFIX + key.replace("_", "-"): text for key, text in attempt.items()} for attempt in attempts]
    return {"id": "x", "attempts": {"p": entries}}  # type: ignore[dict-item]


def rows(**cells: str) -> str:
    return json.dumps({"n1": cells})


WAITS = {"selected_node": "", "filter_result": rows(F="Insufficient cpu")}
PLACED = {"selected_node": "n1", "filter_result": rows(F="passed")}
TWO_PROFILES = {"profiles": [{"schedulerName": "a"}, {"schedulerName": "b"}]}
SCORE_WEIGHTS = {"profiles": [{"plugins": {"score": {"enabled": [{"name": "S", "weight": 5}]}}}]}
MULTI_POINT_WEIGHTS = {"profiles": [{"plugins": {"multiPoint": {"enabled": [{"name": "S", "weight": 5}]}}}]}


@pytest.mark.parametrize(
    ("record", "answer", "want"),
    [
        pytest.param(record_of(WAITS), answer_of(WAITS), [], id="the same"),
        pytest.param(
            record_of(WAITS), answer_of(PLACED), ["selected-node", "filter-result"], id="another decision differs"
        ),
        pytest.param(record_of(WAITS), answer_of(), ["selected-node", "filter-result"], id="a recorded attempt too many"),
        pytest.param(record_of(WAITS, WAITS, PLACED), answer_of(WAITS, PLACED), [], id="a repeated recorded attempt"),
        pytest.param(
            record_of(PLACED, WAITS), answer_of(WAITS, PLACED), ["selected-node", "filter-result"],
            id="attempts keep their order",
        ),
        pytest.param(
            record_of({"filter_result": rows(T="node(s) had untolerated taint {a: b}")}),
            answer_of({"filter_result": rows(T="node(s) had untolerated taint(s)")}), [],
            id="a text that has changed since 1.32",
        ),
        pytest.param(
            record_of({"filter_result": rows(T="node(s) had untolerated taint {a: b}")}),
            answer_of({"filter_result": rows(T="node(s) were unschedulable")}), ["filter-result"],
            id="another text",
        ),
        pytest.param(
            record_of({"filter_result": rows(F="didn't satisfy plugin(s) [NodeAffinityWrapped]")}),
            answer_of({"filter_result": rows(F="didn't satisfy plugin(s) [NodeAffinity]")}), [],
            id="the simulator's name of a plugin",
        ),
        pytest.param(
            record_of({"filter_result": rows(F="passed")}),
            answer_of({"filter_result": rows(F="passed", DynamicResources="passed")}), [],
            id="a plugin that 1.32 did not have",
        ),
        pytest.param(
            record_of(PLACED), answer_of({**PLACED, "filter_result": rows(F="passed", G="passed")}), ["filter-result"],
            id="an additional plugin",
        ),
        pytest.param(
            record_of({"score_result": rows(NodeResourcesBalancedAllocation="3", S="1")}),
            answer_of({"score_result": rows(NodeResourcesBalancedAllocation="4", S="1")}), [],
            id="a score by another formula",
        ),
        pytest.param(
            record_of({"score_result": rows(S="1")}), answer_of({"score_result": rows(S="2")}), ["score-result"],
            id="another score",
        ),
        pytest.param(
            record_of({"finalscore_result": rows(S="1")}, config=TWO_PROFILES),
            answer_of({"finalscore_result": rows(S="5")}), [],
            id="weights of a second profile are not shown",
        ),
        pytest.param(
            record_of({"finalscore_result": rows(S="1")}, config=SCORE_WEIGHTS),
            answer_of({"finalscore_result": rows(S="5")}), [],
            id="weights in score.enabled are not shown",
        ),
        pytest.param(
            record_of({"finalscore_result": rows(S="1")}, config=MULTI_POINT_WEIGHTS),
            answer_of({"finalscore_result": rows(S="5")}), ["finalscore-result"],
            id="weights in multiPoint are",
        ),
        pytest.param(
            record_of({**PLACED, "postfilter_result": rows()}, merged_rows=["p"]),
            answer_of({**PLACED, "postfilter_result": "{}"}), [],
            id="rows of an earlier attempt in that of a pod with merged rows",
        ),
        pytest.param(
            record_of({**PLACED, "postfilter_result": rows()}),
            answer_of({**PLACED, "postfilter_result": "{}"}), ["postfilter-result"],
            id="such rows of another pod",
        ),
        pytest.param(
            record_of({**WAITS, "filter_result": rows(F="passed")}), answer_of(WAITS), [],
            id="a row that the dry run of preemption has overwritten",
        ),
        pytest.param(
            record_of(PLACED), answer_of({**PLACED, "filter_result": rows(F="Insufficient cpu")}), ["filter-result"],
            id="the row of the pod's node passes",
        ),
        pytest.param(
            record_of({"prefilter_result": '{"A":["n2","n1"]}'}), answer_of({"prefilter_result": '{"A":["n1","n2"]}'}), [],
            id="names of nodes are a set",
        ),
    ],
)  # fmt: skip
def test_ambiguous_recorded_values_allow_several_answers(
    record: JsonObject, answer: JsonObject, want: list[str]
) -> None:
    assert sorted(differing(record, answer)) == sorted(want)
