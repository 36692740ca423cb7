"""ResourceSlices in requests: selectors and the amounts that a device's capacity allows."""

from __future__ import annotations

import time

import pytest

from tests.apiserver.client import Client, Document

_SLICES = "/apis/resource.k8s.io/v1/resourceslices"


def test_a_slice_has_no_namespace_to_select() -> None:
    answer = Client().get(f"{_SLICES}?fieldSelector=metadata.namespace=")
    want = "field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: metadata.namespace"
    assert (answer.status, answer.at("message")) == (400, want)


@pytest.mark.parametrize(
    ("values", "want"),
    [
        pytest.param(["1", "2"], [], id="different amounts"),
        pytest.param(["1", "1"], [("[1]", 'Duplicate value: "1"')], id="an amount twice"),
        pytest.param(["500m", "600m"], [("[1]", 'Duplicate value: "1"')], id="amounts that are equal when rounded up"),
        pytest.param(
            [str(number) for number in range(1, 12)],
            [
                ("", "Too many: 11: must have at most 10 items"),
                ("", 'Invalid value: "1": default value is not valid according to the requestPolicy'),
            ],
            id="more than ten",
        ),
    ],
)
def test_the_amounts_that_a_policy_allows_are_a_set(values: list[str], want: list[tuple[str, str]]) -> None:
    policy: Document = {"default": values[0], "validValues": values}
    capacity: Document = {"memory": {"value": "20", "requestPolicy": policy}}
    device: Document = {"name": "a", "allowMultipleAllocations": True, "capacity": capacity}
    pool: Document = {"name": "p", "generation": 1, "resourceSliceCount": 1}
    spec: Document = {"driver": "d.io", "nodeName": "n", "pool": pool, "devices": [device]}

    answer = Client().post(_SLICES, {"metadata": {"name": "s"}, "spec": spec})
    path = "spec.devices[0].capacity[memory].requestPolicy.validValues"
    found = answer.at("details.causes") or []
    assert isinstance(found, list)
    assert [(each["field"], each["message"]) for each in found] == [(path + place, text) for place, text in want]


_LABEL = "name part must consist of alphanumeric characters"


@pytest.mark.parametrize(
    ("conditions", "failures", "want"),
    [
        pytest.param(["a"], ["b"], [], id="different conditions"),
        pytest.param(["a", "a"], ["b"], [("bindingConditions[1]", 'Duplicate value: "a"')], id="a condition twice"),
        pytest.param(
            ["a"],
            ["a"],
            [("bindingFailureConditions[0]", 'Invalid value: "a": bindingFailureConditions must not overlap')],
            id="a condition in both lists",
        ),
        pytest.param(
            ["-"],
            [],
            [
                ("bindingConditions[0]", f'Invalid value: "-": {_LABEL}'),
                ("bindingFailureConditions", "Invalid value: []: bindingFailureConditions are required"),
            ],
            id="an invalid condition without failures",
        ),
        pytest.param(
            ["a", "b", "c", "d", "-"],
            ["e"],
            [("bindingConditions", "Too many: 5: must have at most 4 items")],
            id="more than four",
        ),
    ],
)
def test_conditions_of_a_binding_are_distinct(
    conditions: list[str], failures: list[str], want: list[tuple[str, str]]
) -> None:
    device: Document = {"name": "a", "bindingConditions": conditions, "bindingFailureConditions": failures}
    pool: Document = {"name": "p", "generation": 1, "resourceSliceCount": 1}
    spec: Document = {"driver": "d.io", "nodeName": "n", "pool": pool, "devices": [device]}

    found = Client().post(_SLICES, {"metadata": {"name": "s"}, "spec": spec}).at("details.causes") or []
    assert isinstance(found, list)
    assert [each["field"].removeprefix("spec.devices[0].") for each in found] == [field for field, _ in want]
    for each, (_, text) in zip(found, want, strict=True):
        assert each["message"].startswith(text)


def test_conditions_of_a_binding_are_compared_in_linear_time() -> None:
    names = [f"c{index}" for index in range(30_000)]
    device: Document = {
        "name": "a",
        "bindingConditions": names,
        "bindingFailureConditions": [f"{name}-" for name in names],
    }
    pool: Document = {"name": "p", "generation": 1, "resourceSliceCount": 1}
    spec: Document = {"driver": "d.io", "nodeName": "n", "pool": pool, "devices": [device]}

    start = time.process_time()
    answer = Client().post(_SLICES, {"metadata": {"name": "s"}, "spec": spec})

    assert answer.status == 422
    assert time.process_time() - start < 5
