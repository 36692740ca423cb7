"""Random cases of the fuzzer, which the engine accepts."""

from __future__ import annotations

from collections import Counter

from fuzz.clusters import random_case
from fuzz.draws import FEATURES

from bayplan.conformance.answers import answer
from bayplan.conformance.cases import JsonObject, RecordedCase

COUNT = 150
KINDS = (
    *(
        "Node",
        "Pod",
        "Namespace",
        "Service",
        "ReplicaSet",
        "StatefulSet",
        "ReplicationController",
        "PodDisruptionBudget",
    ),
    *("StorageClass", "PersistentVolume", "PersistentVolumeClaim", "CSINode", "CSIDriver", "CSIStorageCapacity"),
    *("VolumeAttachment", "DeviceClass", "ResourceSlice", "ResourceClaim", "DeviceTaintRule"),
)


def test_cases_with_different_numbers_differ() -> None:
    assert random_case(7, 4) != random_case(7, 3)


def test_the_engine_accepts_most_cases_and_answers_all() -> None:
    refused = 0
    for number in range(COUNT):
        case = random_case(1, number)
        ours = answer(RecordedCase("cycles", str(case["id"]), "fuzz", "", "fuzz", case, {}))
        assert not ours.failure, case["id"]
        refused += ours.body["error"] is not None
    assert refused < COUNT // 20


def test_cases_cover_all_features_and_kinds() -> None:
    features: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    for number in range(COUNT):
        case = random_case(1, number)
        features.update(str(case["note"]).split(", "))
        objects = case["objects"]
        assert isinstance(objects, list)
        kinds.update(str(item["kind"]) for item in objects if isinstance(item, dict))
    assert set(FEATURES) <= set(features)
    assert set(KINDS) <= set(kinds)


def test_object_names_are_unique_within_a_case() -> None:
    for number in range(COUNT):
        case = random_case(2, number)
        objects, pods = case["objects"], case["pods"]
        assert isinstance(objects, list)
        assert isinstance(pods, list)
        names = Counter(_name(item) for item in (*objects, *pods) if isinstance(item, dict))
        assert not [name for name, count in names.items() if count > 1], case["id"]


def _name(item: JsonObject) -> tuple[str, str, str]:
    metadata = item["metadata"]
    assert isinstance(metadata, dict)
    return str(item["kind"]), str(metadata.get("namespace", "")), str(metadata["name"])
