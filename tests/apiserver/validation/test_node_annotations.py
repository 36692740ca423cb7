"""The annotations of nodes that once held taints, and the controllers whose pods a node avoids."""

from __future__ import annotations

import json

import pytest

from tests.apiserver.client import Client

PREFIX = "scheduler.alpha.kubernetes.io/"
TAINTS = f"{PREFIX}taints"
AVOID = f"{PREFIX}preferAvoidPods"
DEEP = "[" * 5000 + "]" * 5000


def problems(name: str, text: str) -> list[str]:
    """Return the causes for an annotation of a new node, without the part that all share."""
    answer = Client().post("/api/v1/nodes", {"metadata": {"name": "n", "annotations": {name: text}}})
    if answer.status == 201:
        return []
    assert answer.status == 422, answer.body
    causes = answer.at("details.causes")
    assert isinstance(causes, list)
    return [f"{each['field'].removeprefix('metadata.annotations')}: {each['message']}" for each in causes]


def unmarshal(text: str) -> list[str]:
    return [f': Invalid value: "{TAINTS}": {text}']


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("[]", [], id="none"),
        pytest.param("null", [], id="null"),
        pytest.param('[{"key":"a","EFFECT":"NoSchedule","x":1}]', [], id="a taint, names in any case"),
        pytest.param(f'[{{"key":"a","effect":"NoExecute","x":{DEEP}}}]', [], id="a deeply nested unknown field"),
        pytest.param("5", unmarshal("json: cannot unmarshal number into Go value of type []core.Taint"), id="a number"),
        pytest.param(
            "{}", unmarshal("json: cannot unmarshal object into Go value of type []core.Taint"), id="an object"
        ),
        pytest.param(
            "[5]", unmarshal("json: cannot unmarshal number into Go value of type core.Taint"), id="a list of numbers"
        ),
        pytest.param(
            '[{"effect":true}]',
            unmarshal("json: cannot unmarshal bool into Go struct field Taint.Effect of type core.TaintEffect"),
            id="a field of another type",
        ),
        pytest.param(
            '[{"key":1,"timeAdded":"x"}]',
            unmarshal('parsing time "x" as "2006-01-02T15:04:05Z07:00": cannot parse "x" as "2006"'),
            id="a time stops the decoder",
        ),
        pytest.param("[", unmarshal("unexpected end of JSON input"), id="no JSON"),
        pytest.param(
            '[{"key":"a","effect":"Nope"}]',
            [
                f'.{TAINTS}[0].effect: Unsupported value: "Nope": '
                'supported values: "NoSchedule", "PreferNoSchedule", "NoExecute"'
            ],
            id="an invalid taint",
        ),
        pytest.param(
            '[{"key":"a","effect":"NoExecute"},{"key":"a","effect":"NoExecute"}]',
            [
                f'.{TAINTS}[1]: Duplicate value: {{"Key":"a","Value":"","Effect":"NoExecute","TimeAdded":null}}: '
                "taints must be unique by key and effect pair"
            ],
            id="a repeated taint",
        ),
    ],
)
def test_taints_in_an_annotation_are_decoded_and_checked(text: str, want: list[str]) -> None:
    assert problems(TAINTS, text) == want


def avoid(text: str) -> list[str]:
    return [f'.AvoidPods: Invalid value: "{AVOID}": {text}']


OWNER = {"kind": "ReplicaSet", "uid": "u"}
ENTRIES = "v1.PreferAvoidPodsEntry"


@pytest.mark.parametrize(
    ("value", "want"),
    [
        pytest.param({}, [], id="none"),
        pytest.param(
            {"preferAvoidPods": [{"podSignature": {"podController": {**OWNER, "controller": True}}}]}, [], id="one"
        ),
        pytest.param(
            {"preferAvoidPods": [{"podSignature": {"podController": {**OWNER, "controller": False}}}]},
            [f".{AVOID}[0].PodSignature.PodController.Controller: Invalid value: false: must point to a controller"],
            id="no controller",
        ),
        pytest.param(
            {"preferAvoidPods": [{}, None]},
            [f".{AVOID}[0].PodSignature: Required value", f".{AVOID}[1].PodSignature: Required value"],
            id="no owner",
        ),
        pytest.param(
            {"preferAvoidPods": [5]},
            avoid(
                "json: cannot unmarshal number into Go struct field AvoidPods.preferAvoidPods "
                "of type v1.PreferAvoidPodsEntry"
            ),
            id="a list of numbers",
        ),
        pytest.param(
            {"preferAvoidPods": 5},
            avoid(
                "json: cannot unmarshal number into Go struct field AvoidPods.preferAvoidPods "
                "of type []v1.PreferAvoidPodsEntry"
            ),
            id="a number instead of a list",
        ),
        pytest.param(
            {"preferAvoidPods": [{"podSignature": {"podController": {"uid": {}}}}]},
            avoid(
                "json: cannot unmarshal object into Go struct field "
                "OwnerReference.preferAvoidPods.podSignature.podController.uid of type types.UID"
            ),
            id="a field of another type",
        ),
    ],
)
def test_avoided_pods_in_an_annotation_are_decoded_and_checked(value: object, want: list[str]) -> None:
    assert problems(AVOID, json.dumps(value)) == want


@pytest.mark.parametrize("other", ["9" * 5000, DEEP], ids=["a long number", "deep nesting"])
def test_unknown_fields_of_avoided_pods_hold_any_json(other: str) -> None:
    assert problems(AVOID, f'{{"x":{other}}}') == []
    assert problems(AVOID, other)[0].startswith(f'.AvoidPods: Invalid value: "{AVOID}": json: cannot unmarshal')
