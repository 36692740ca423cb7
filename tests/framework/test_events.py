"""Events: their names, the pods they concern, and the events for a changed object."""

from __future__ import annotations

import json

import pytest
from msgspec.structs import replace

from bayplan.conformance.cases import read_case_files
from bayplan.framework.events import (
    ACTION_BY_TEXT,
    ASSIGNED_POD_ADD,
    FORCE_ACTIVATE,
    NODE_ADD,
    UNSCHEDULABLE_POD_UPDATE,
    UNSCHEDULABLE_TIMEOUT,
    ActionType,
    ClusterEvent,
    node_update_events,
    object_changes,
    pod_update_events,
    registrations,
)
from bayplan.objects.kinds import convert, decode
from bayplan.objects.node import Node
from bayplan.objects.pod import Pod
from tests.shared import recording

ADD, DELETE, UPDATE, ALL = ActionType.ADD, ActionType.DELETE, ActionType.UPDATE, ActionType.ALL
LABEL, TAINT = ActionType.UPDATE_NODE_LABEL, ActionType.UPDATE_NODE_TAINT


def test_action_values_match_upstream() -> None:
    facts = json.loads(recording("facts.json").read_bytes())
    assert {text: int(action) for text, action in ACTION_BY_TEXT.items()} == facts["actionTypes"]


@pytest.mark.parametrize(
    ("event", "want"),
    [
        pytest.param(NODE_ADD, "NodeAdd", id="resource and action"),
        pytest.param(ClusterEvent("Node", TAINT), "NodeUpdateNodeTaint", id="one kind of update"),
        pytest.param(ClusterEvent("Node", UPDATE), "NodeUpdate", id="any update"),
        pytest.param(UNSCHEDULABLE_TIMEOUT, "UnschedulableTimeout", id="a custom label"),
        pytest.param(ClusterEvent("Node", ADD | DELETE), "Node", id="a combination without a name"),
    ],
)
def test_event_labels_match_upstream(event: ClusterEvent, want: str) -> None:
    assert event.label == want


def test_action_texts_are_in_bit_order() -> None:
    assert (TAINT | ADD | LABEL).texts == ["Add", "UpdateNodeLabel", "UpdateNodeTaint"]


MATCHES = [
    ("the same event", ("Node", ADD), ("Node", ADD), True),
    ("one of the registered actions", ("Node", ADD | DELETE), ("Node", DELETE), True),
    ("another action", ("Node", ADD), ("Node", DELETE), False),
    ("another resource", ("Node", ADD), ("PersistentVolume", ADD), False),
    ("one kind of update where all are registered", ("Node", UPDATE), ("Node", LABEL), True),
    ("the general update where one kind is registered", ("Node", LABEL), ("Node", UPDATE), False),
    ("the general update where it is registered", ("Node", UPDATE), ("Node", UPDATE), True),
    ("the general update where everything is registered", ("Node", ALL), ("Node", UPDATE), True),
    ("a kind of update above the highest registered one", ("Node", ADD | LABEL), ("Node", TAINT), False),
    ("an assigned pod for pods", ("Pod", ADD), ("AssignedPod", ADD), True),
    ("an unscheduled pod for pods", ("Pod", ALL), ("UnschedulablePod", UPDATE), True),
    ("pods for assigned pods", ("AssignedPod", ADD), ("Pod", ADD), False),
    ("a pod for nodes", ("Node", ADD), ("AssignedPod", ADD), False),
    ("any resource, that action", ("*", ADD), ("PersistentVolume", ADD), True),
    ("any resource, another action", ("*", ADD), ("PersistentVolume", DELETE), False),
    ("everything", ("*", ALL), ("AssignedPod", UPDATE), True),
    ("the wildcard for everything", ("*", ALL), ("*", ALL), True),
    ("the wildcard for one resource", ("Node", ALL), ("*", ALL), False),
    ("the wildcard for one action of any resource", ("*", UPDATE), ("*", ALL), False),
]


@pytest.mark.parametrize(
    ("registered", "incoming", "want"), [row[1:] for row in MATCHES], ids=[row[0] for row in MATCHES]
)
def test_a_registration_matches_the_expected_events(
    registered: tuple[str, ActionType], incoming: tuple[str, ActionType], want: bool
) -> None:
    assert ClusterEvent(*registered).matches(ClusterEvent(*incoming)) is want


def test_only_the_event_for_everything_is_a_wildcard() -> None:
    events = [FORCE_ACTIVATE, UNSCHEDULABLE_TIMEOUT, ClusterEvent("*", UPDATE), ClusterEvent("Node", ALL)]
    assert [event.is_wildcard for event in events] == [True, True, False, False]


REGISTERED = [
    ("nodes added without their taints: taints are added, always Queue", [(NODE_ADD, True)], True),
    ("nodes added and taints in one event", [(ClusterEvent("Node", ADD | TAINT), True)], False),
    ("nodes added and taints in two events", [(NODE_ADD, True), (ClusterEvent("Node", UPDATE), True)], False),
    ("no nodes added", [(ClusterEvent("Node", LABEL), True), (ASSIGNED_POD_ADD, True)], False),
    ("nothing", [], False),
]


@pytest.mark.parametrize(("events", "want"), [row[1:] for row in REGISTERED], ids=[row[0] for row in REGISTERED])
def test_registrations_of_node_events_add_node_taint_updates(
    events: list[tuple[ClusterEvent, bool]], want: bool
) -> None:
    def hint(pod: Pod, old: object | None, new: object | None) -> bool:
        return False

    own = [(event, hint) for event, _ in events]
    added = [(ClusterEvent("Node", TAINT), "P", None)] if want else []
    assert registrations([("P", own)]) == [*((event, "P", hint) for event, _ in events), *added]


def test_registrations_preserve_the_plugin_order() -> None:
    table = registrations([("Q", [(NODE_ADD, None)]), ("P", [(ASSIGNED_POD_ADD, None)])])
    assert [(event.label, plugin) for event, plugin, _ in table] == [
        ("NodeAdd", "Q"),
        ("NodeUpdateNodeTaint", "Q"),
        ("AssignedPodAdd", "P"),
    ]


def pod(**spec: object) -> Pod:
    status = spec.pop("status", {})
    labels = spec.pop("labels", {})
    containers = [{"name": "c", "resources": {"requests": spec.pop("requests", {})}}]
    document = {
        "metadata": {"name": "p", "labels": labels},
        "spec": {"containers": containers, **spec},
        "status": status,
    }
    return convert(document, Pod)


GATES = [{"name": "g"}]
CLAIM = [{"name": "c", "resourceClaimName": "p-c"}]
POD_UPDATES: list[tuple[str, Pod, Pod, list[str]]] = [
    ("nothing that has a kind", pod(), pod(status={"phase": "Pending"}), ["Update"]),
    ("labels", pod(), pod(labels={"a": "b"}), ["UpdatePodLabel"]),
    ("less of a request", pod(requests={"cpu": "2"}), pod(requests={"cpu": "1500m"}), ["UpdatePodScaleDown"]),
    ("a request less", pod(requests={"cpu": "2"}), pod(), ["UpdatePodScaleDown"]),
    ("the same amount written otherwise", pod(requests={"cpu": "2"}), pod(requests={"cpu": "2000m"}), ["Update"]),
    ("more of a request", pod(requests={"cpu": "1"}), pod(requests={"cpu": "2"}), ["Update"]),
    ("the last gate is gone", pod(schedulingGates=GATES), pod(), ["UpdatePodSchedulingGatesEliminated"]),
    ("one gate of two is gone", pod(schedulingGates=GATES * 2), pod(schedulingGates=GATES), ["Update"]),
    ("a toleration more", pod(), pod(tolerations=[{"key": "k"}]), ["UpdatePodToleration"]),
    ("another toleration instead", pod(tolerations=[{"key": "k"}]), pod(tolerations=[{"key": "l"}]), ["Update"]),
    ("a claim was made", pod(), pod(status={"resourceClaimStatuses": CLAIM}), ["UpdatePodGeneratedResourceClaim"]),
    (
        "a claim for extended resources was made",
        pod(),
        pod(status={"extendedResourceClaimStatus": {"resourceClaimName": "x"}}),
        ["UpdatePodGeneratedResourceClaim"],
    ),
    (
        "everything at once, in upstream's order",
        pod(requests={"cpu": "2"}, schedulingGates=GATES),
        pod(labels={"a": "b"}, tolerations=[{"key": "k"}], status={"resourceClaimStatuses": CLAIM}),
        [
            "UpdatePodLabel",
            "UpdatePodScaleDown",
            "UpdatePodSchedulingGatesEliminated",
            "UpdatePodToleration",
            "UpdatePodGeneratedResourceClaim",
        ],
    ),
]


@pytest.mark.parametrize("node_name", ["", "n1"], ids=["unscheduled", "assigned"])
@pytest.mark.parametrize(("old", "new", "want"), [row[1:] for row in POD_UPDATES], ids=[row[0] for row in POD_UPDATES])
def test_pod_updates_produce_the_expected_events(old: Pod, new: Pod, node_name: str, want: list[str]) -> None:
    new = replace(new, spec=replace(new.spec, node_name=node_name))
    resource = "AssignedPod" if node_name else "UnschedulablePod"
    assert [event.label for event in pod_update_events(old, new)] == [resource + action for action in want]


def node(**parts: object) -> Node:
    metadata = {"name": "n", "labels": parts.pop("labels", {}), "annotations": parts.pop("annotations", {})}
    spec = {key: parts.pop(key) for key in ("taints", "unschedulable") if key in parts}
    return convert({"metadata": metadata, "spec": spec, "status": parts}, Node)


def taint(**fields: str) -> list[dict[str, str]]:
    return [{"key": "k", "effect": "NoSchedule", **fields}]


def ready(**fields: str) -> list[dict[str, str]]:
    return [{"type": "Ready", "status": "True", **fields}]


NODE_UPDATES: list[tuple[str, Node, Node, list[str]]] = [
    ("nothing", node(), node(), []),
    ("cordoned", node(), node(unschedulable=True), []),
    ("uncordoned", node(unschedulable=True), node(), ["UpdateNodeTaint"]),
    ("allocatable", node(allocatable={"cpu": "1"}), node(allocatable={"cpu": "2"}), ["UpdateNodeAllocatable"]),
    ("allocatable, less", node(allocatable={"cpu": "2"}), node(allocatable={}), ["UpdateNodeAllocatable"]),
    ("allocatable, written otherwise", node(allocatable={"cpu": "1"}), node(allocatable={"cpu": "1000m"}), []),
    ("capacity only", node(capacity={"cpu": "1"}), node(capacity={"cpu": "2"}), []),
    ("labels", node(labels={"a": "b"}), node(), ["UpdateNodeLabel"]),
    ("taints", node(), node(taints=taint()), ["UpdateNodeTaint"]),
    (
        "taints in another order",
        node(taints=taint() + taint(key="l")),
        node(taints=taint(key="l") + taint()),
        ["UpdateNodeTaint"],
    ),
    (
        "the time of a taint, written otherwise",
        node(taints=taint(timeAdded="2026-01-01T01:00:00+01:00")),
        node(taints=taint(timeAdded="2026-01-01T00:00:00Z")),
        [],
    ),
    ("a condition", node(conditions=ready()), node(conditions=ready(status="False")), ["UpdateNodeCondition"]),
    ("a condition's heartbeat", node(conditions=ready()), node(conditions=ready(message="still")), []),
    ("annotations", node(), node(annotations={"a": "b"}), ["UpdateNodeAnnotation"]),
    ("declared features", node(), node(declaredFeatures=["f"]), ["UpdateNodeDeclaredFeature"]),
    (
        "everything at once, in upstream's order",
        node(unschedulable=True),
        node(
            allocatable={"cpu": "1"},
            labels={"a": "b"},
            taints=taint(),
            conditions=ready(),
            annotations={"a": "b"},
            declaredFeatures=["f"],
        ),
        [
            "UpdateNodeTaint",
            "UpdateNodeAllocatable",
            "UpdateNodeLabel",
            "UpdateNodeTaint",
            "UpdateNodeCondition",
            "UpdateNodeAnnotation",
            "UpdateNodeDeclaredFeature",
        ],
    ),
]


@pytest.mark.parametrize(
    ("old", "new", "want"), [row[1:] for row in NODE_UPDATES], ids=[row[0] for row in NODE_UPDATES]
)
def test_node_updates_produce_the_expected_events(old: Node, new: Node, want: list[str]) -> None:
    assert [event.label for event in node_update_events(old, new)] == [f"Node{action}" for action in want]


def test_declared_feature_changes_produce_no_event_if_the_gate_is_off() -> None:
    assert node_update_events(node(), node(declaredFeatures=["f"]), declared_features=False) == []


def test_kinds_without_registered_events_emit_no_cluster_event() -> None:
    namespace = decode({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}})
    assert object_changes(None, namespace) == []


def test_a_registered_label_update_does_not_match_a_general_update() -> None:
    assert not ClusterEvent("Pod", ActionType.UPDATE_POD_LABEL).matches(UNSCHEDULABLE_POD_UPDATE)


def actions_text(actions: ActionType) -> list[str]:
    """Return the actions as recorded: All and Update whole, the rest one by one."""
    if actions == ALL:
        return ["All"]
    if actions & UPDATE == UPDATE:
        return [*actions_text(actions & ~UPDATE), "Update"]
    return actions.texts


def test_object_changes_match_the_recorded_events_of_the_scheduler() -> None:
    """All object changes in recorded hint tables: the events in order, and the maximum priority of the pods they move."""
    [recorded] = read_case_files([recording("hints", "tables.jsonl.gz")])
    compared = 0
    for each in recorded:
        case, want = json.loads(json.dumps(each.case)), json.loads(json.dumps(each.want))
        if "old" not in case or "event" in case:
            continue
        gates = case.get("featureGates") or {}
        changes = object_changes(
            decode(case["old"]) if case["old"] else None,
            decode(case["new"]) if case["new"] else None,
            gang_scheduling=gates.get("GangScheduling", False),
        )
        got = [(change.event.resource, actions_text(change.event.actions), change.max_priority) for change in changes]
        delivered = [
            (e["event"]["resource"], e["event"]["actions"], e.get("maxPriority")) for e in want.get("events", [])
        ]
        assert got == delivered, each.id
        compared += 1
    assert compared > 1000
