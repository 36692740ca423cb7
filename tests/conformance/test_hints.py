"""Hint cases: a case's event reaches the plugins of its profile, in its cluster."""

from __future__ import annotations

import pytest

from bayplan.base.errors import InputError
from bayplan.conformance.cases import Json, JsonObject
from bayplan.conformance.hints import answer_hint_case
from tests.conformance.recorded import at


def node(name: str, **labels: str) -> JsonObject:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": dict[str, Json](labels)}}


def pod(name: str, **spec: Json) -> JsonObject:
    containers: Json = [{"name": "c", "image": "i"}]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"containers": containers, **spec}}


def asked(plugin: str, *, old: JsonObject | None = None, new: JsonObject | None = None, **more: Json) -> JsonObject:
    of: JsonObject = pod("p", nodeSelector={"disk": "ssd"})
    return {"id": "small", "plugin": plugin, "pod": of, "old": old, "new": new, **more}


ADDED_AFFINITY: JsonObject = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "profiles": [
        {
            "pluginConfig": [
                {
                    "name": "NodeAffinity",
                    "args": {
                        "addedAffinity": {
                            "requiredDuringSchedulingIgnoredDuringExecution": {
                                "nodeSelectorTerms": [
                                    {"matchExpressions": [{"key": "pool", "operator": "In", "values": ["x"]}]}
                                ]
                            }
                        }
                    },
                }
            ]
        }
    ],
}
"""A profile in which pods may run on nodes of pool x only."""

CASES: list[tuple[str, JsonObject, list[tuple[str, str]]]] = [
    ("the node that was missing is added", asked("NodeAffinity", new=node("n", disk="ssd")), [("Add", "Queue")]),
    ("another node is added", asked("NodeAffinity", new=node("n", disk="hdd")), [("Add", "Skip")]),
    (
        "a change of labels alone makes one event",
        asked("NodeAffinity", old=node("n"), new=node("n", disk="ssd")),
        [("UpdateNodeLabel", "Queue")],
    ),
    ("nothing that matters changed", asked("NodeAffinity", old=node("n"), new=node("n")), []),
    ("a plugin that registered nothing of the kind", asked("NodeName", old=node("n")), [("Delete", "NotRegistered")]),
    ("a registration without a hint always queues", asked("NodeName", new=node("n")), [("Add", "Queue")]),
    (
        "the configuration of the case counts",
        asked("NodeAffinity", new=node("n", disk="ssd"), config=ADDED_AFFINITY),
        [("Add", "Skip")],
    ),
    (
        "the event that the case names, instead of the one that its objects make",
        asked("NodeAffinity", new=node("n"), event={"resource": "Node", "actions": ["Delete"]}),
        [("Delete", "NotRegistered")],
    ),
]


@pytest.mark.parametrize(("case", "want"), [each[1:] for each in CASES], ids=[each[0] for each in CASES])
def test_an_answer_lists_each_event_with_the_plugin_response(case: JsonObject, want: list[tuple[str, str]]) -> None:
    events = answer_hint_case(case)["events"]
    assert isinstance(events, list)
    assert [(at(event, "event", "actions", 0), at(event, "answer")) for event in events] == want


def test_a_hint_with_an_unexpected_object_type_returns_an_error_and_queues() -> None:
    wrong = asked("NodeAffinity", old=pod("q"), new=node("n"), event={"resource": "Node", "actions": ["Add"]})
    answer = answer_hint_case(wrong)
    assert at(answer, "events", 0, "answer") == "Queue"
    assert at(answer, "events", 0, "hints", 0, "error")


def test_a_deleted_nomination_only_affects_pods_of_at_most_its_priority() -> None:
    nominated: JsonObject = {**pod("q", priority=7), "status": {"nominatedNodeName": "n"}}
    answer = answer_hint_case(asked("NodeResourcesFit", old=nominated))
    assert at(answer, "events", 0, "maxPriority") == 7
    assert at(answer, "events", 0, "event") == {"resource": "AssignedPod", "actions": ["Delete"]}


def test_the_list_contains_all_plugins_that_can_reject_a_pod() -> None:
    plugins = answer_hint_case({"id": "all", "list": True})["plugins"]
    assert isinstance(plugins, dict)
    assert plugins["NodeName"] == [{"resource": "Node", "actions": ["Add"], "function": False}]
    assert "ImageLocality" not in plugins


@pytest.mark.parametrize(
    ("case", "want"),
    [
        pytest.param(asked("NoSuchPlugin"), "NoSuchPlugin", id="a plugin that does not exist"),
        pytest.param({"id": "x", "plugin": 3}, "Expected `str`", id="not a hint case"),
    ],
)
def test_an_invalid_hint_case_is_refused(case: JsonObject, want: str) -> None:
    with pytest.raises(InputError, match=want):
        answer_hint_case(case)
