"""Effects of events on the pods of the scheduling queue: those in flight, unschedulable and gated ones."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from bayplan.conformance.cross_topology import assigned_pod_added, assigned_pod_updated
from bayplan.engine.queue import SchedulingQueue
from bayplan.framework.events import (
    ASSIGNED_POD_ADD,
    ASSIGNED_POD_DELETE,
    FORCE_ACTIVATE,
    NODE_ADD,
    ActionType,
    ClusterEvent,
    EventResource,
    ObjectChange,
    Registration,
)
from bayplan.objects.kinds import convert
from bayplan.objects.pod import Pod
from tests.engine.queue_pods import (
    NODE_LABEL,
    P_WAITS_FOR_NODES,
    PROFILE,
    SECOND,
    P,
    Q,
    gate,
    gated,
    places,
    pod,
    popped,
    queue_of,
    rejected,
)

TO_N1 = "n1"


# Events while a pod is in flight.

SKIPS: Registration = (ASSIGNED_POD_ADD, "P", lambda pod, old, new: False)
IN_FLIGHT: list[tuple[str, list[ClusterEvent], str, str, str]] = [
    ("nothing happened", [], "P", "", "unschedulable"),
    ("nothing that anybody waits for", [NODE_LABEL], "P", "", "unschedulable"),
    ("something that the hint finds useless", [ASSIGNED_POD_ADD], "P", "", "unschedulable"),
    ("what its plugin waits for", [ASSIGNED_POD_ADD, NODE_ADD], "P", "", "backoff"),
    ("what another plugin waits for", [NODE_ADD], "Q", "", "unschedulable"),
    ("what it is pending for", [NODE_ADD], "", "P", "active"),
    ("what it is pending for, and rejected by as well", [NODE_ADD], "P", "P", "active"),
    ("what it was rejected by, then what it is pending for", [NODE_ADD, ASSIGNED_POD_DELETE], "P", "Q", "active"),
    ("an error", [], "", "", "backoff"),
]


@pytest.mark.parametrize(
    ("events", "plugins", "pending", "want"), [row[1:] for row in IN_FLIGHT], ids=[row[0] for row in IN_FLIGHT]
)
def test_events_since_the_pop_decide_the_tier_of_a_failed_pod(
    events: list[ClusterEvent], plugins: str, pending: str, want: str
) -> None:
    queue, known = queue_of(P_WAITS_FOR_NODES, SKIPS, (ASSIGNED_POD_DELETE, "Q", None))
    known["default/a"] = pod("a")
    queue.add(pod("a"), 0)
    queued = popped(queue)
    for event in events:
        queue.move_all(event, None, None, 1)
    queue.fail(queued, 2, unschedulable_plugins=frozenset(plugins), pending_plugins=frozenset(pending))
    assert places(queue) == {want: "a"}
    assert queue.in_flight() == []


def test_activating_a_pod_in_flight_affects_only_that_pod() -> None:
    queue, known = queue_of()
    known["default/a"], known["default/b"] = pod("a"), pod("b")
    queue.add(pod("a"), 0)
    queue.add(pod("b"), 1)
    a, b = popped(queue), popped(queue)
    assert queue.activate([pod("a"), pod("nobody")], 2) == 0
    queue.fail(b, 3, unschedulable_plugins=P)
    queue.fail(a, 3, unschedulable_plugins=P)
    assert places(queue) == {"backoff": "a", "unschedulable": "b"}


def test_updates_of_a_pod_in_flight_are_recorded_as_events() -> None:
    queue, _ = queue_of()
    queue.add(pod("a"), 0)
    popped(queue)
    queue.update(pod("a"), pod("a", x="1", tolerations=1), 1)
    labels = [each.event.label for each in queue.in_flight() if isinstance(each, ObjectChange)]
    assert labels == ["UnschedulablePodUpdatePodLabel", "UnschedulablePodUpdatePodToleration"]


# Events and unschedulable pods.


def test_an_event_does_nothing_if_no_pod_waits_for_any() -> None:
    queue, _ = queue_of(P_WAITS_FOR_NODES)
    queue.add(pod("a"), 0)
    assert queue.move_all(NODE_ADD, None, None, 0) == 0
    assert places(queue) == {"active": "a"}
    popped(queue)
    assert queue.move_all(NODE_ADD, None, None, 0) == 0
    assert sum(isinstance(each, ObjectChange) for each in queue._in_flight) == 1


def test_an_event_moves_only_pods_whose_plugin_registered_it() -> None:
    queue, known = queue_of(P_WAITS_FOR_NODES, (ASSIGNED_POD_ADD, "Q", None))
    for name in "abc":
        known[f"default/{name}"] = pod(name)
        queue.add(pod(name), 0)
    for plugins in (P, Q, P | Q):
        queue.fail(popped(queue), 0, unschedulable_plugins=plugins)
    assert queue.move_all(NODE_LABEL, None, None, 5 * SECOND) == 0
    assert queue.move_all(NODE_ADD, None, None, 5 * SECOND, lambda pod: pod.metadata.name != "a") == 1
    assert places(queue) == {"active": "c", "unschedulable": "ab"}
    assert queue.move_all(FORCE_ACTIVATE, None, None, 5 * SECOND) == 2


def test_hints_are_called_only_for_pods_that_their_plugin_rejected() -> None:
    asked: list[str] = []

    def hint(pod: Pod, old: object | None, new: object | None) -> bool:
        asked.append(pod.metadata.name)
        return False

    queue, known = queue_of((NODE_ADD, "P", hint))
    for name, plugins in (("a", P), ("b", Q), ("c", P | Q)):
        known[f"default/{name}"] = pod(name)
        queue.add(pod(name), 0)
        queue.fail(popped(queue), 0, unschedulable_plugins=plugins)
    queue.move_all(NODE_ADD, None, None, 1)
    assert asked == ["a", "c"]


def test_any_event_retries_pods_of_a_profile_without_hints() -> None:
    queue, known = queue_of(P_WAITS_FOR_NODES)
    known["default/a"] = pod("a", scheduler="other")
    queue.add(known["default/a"], 0)
    queue.fail(popped(queue), 0, unschedulable_plugins=Q)
    assert queue.move_all(NODE_ADD, None, None, 5 * SECOND) == 1


def test_a_gated_pod_ignores_events_that_its_gate_did_not_register() -> None:
    queue = gated()
    assert queue.move_all(NODE_ADD, None, None, 1) == 0
    assert queue.move_all(FORCE_ACTIVATE, None, None, 1) == 0
    assert (places(queue), queue.pending_counts()["gated"]) == ({"unschedulable": "a"}, 1)


def test_a_pod_becomes_active_when_its_gate_is_removed() -> None:
    queue = gated()
    queue.update(pod("a", gates=("g",)), pod("a"), 7)
    [queued] = queue.active()
    assert (queued.gating_plugin, queued.initial_attempt_ns, queued.timestamp_ns) == ("", 7, 0)
    assert queued.unschedulable_plugins == {"SchedulingGates"}


def test_the_blocking_gate_is_checked_first() -> None:
    asked: list[str] = []

    def recording(name: str, held: set[str]) -> Callable[[Pod], bool]:
        def passes(pod: Pod) -> bool:
            asked.append(name)
            return name not in held

        return passes

    held = {"second"}
    gates = [(name, gate(recording(name, held))) for name in ("first", "second", "third")]
    queue = SchedulingQueue({PROFILE: []}, {PROFILE: gates}, dict[str, Pod]().get)
    queue.add(pod("a"), 0)
    queue.activate([pod("a")], 0)
    held.clear()
    queue.activate([pod("a")], 0)
    assert asked == ["first", "second", "second", "second", "first", "third"]
    assert places(queue) == {"active": "a"}


# Assigned pods, the old way.

SPREAD = frozenset({"PodTopologySpread"})


def near(app: str, **term: object) -> Pod:
    affinity = {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": app}}, **term}
        ]
    }
    document = {
        "metadata": {"name": "a", "namespace": "default", "uid": "uid-a"},
        "spec": {"schedulerName": PROFILE, "affinity": {"podAffinity": affinity}},
    }
    return convert(document, Pod)


HELPED: list[tuple[str, Pod, frozenset[str], bool]] = [
    ("an affinity term selects the pod", near("x"), P, True),
    ("no affinity term selects the pod", near("y"), P, False),
    ("the term is about another namespace", near("x", namespaces=["other"]), P, False),
    ("the term is about all namespaces", near("x", namespaceSelector={}), P, True),
    ("the term is about namespaces with a label", near("x", namespaceSelector={"matchLabels": {"a": "b"}}), P, False),
    ("the term is invalid", near("x", namespaceSelector={"matchLabels": {"-": ""}}), P, False),
    ("spreading rejected it in this namespace", pod("a"), SPREAD, True),
    ("something else rejected it", pod("a"), P, False),
]


@pytest.mark.parametrize(("waiting", "plugins", "want"), [row[1:] for row in HELPED], ids=[row[0] for row in HELPED])
def test_an_updated_assigned_pod_wakes_only_pods_with_matching_affinity_or_spreading(
    waiting: Pod, plugins: frozenset[str], want: bool
) -> None:
    everybody = ClusterEvent(EventResource.POD, ActionType.ALL)
    queue, known = queue_of(*((everybody, plugin, None) for plugin in ("P", "PodTopologySpread")))
    known["default/a"] = waiting
    queue.add(waiting, 0)
    queue.fail(popped(queue), 0, unschedulable_plugins=plugins)
    event = ClusterEvent(EventResource.ASSIGNED_POD, ActionType.UPDATE_POD_LABEL)
    old, new = pod("r", node="n1"), pod("r", node="n1", app="x")
    assert assigned_pod_updated(queue, event, old, new, 5 * SECOND) == want


def test_a_scaled_down_assigned_pod_wakes_all_pods() -> None:
    scale_down = ClusterEvent(EventResource.POD, ActionType.UPDATE_POD_SCALE_DOWN)
    queue = rejected((scale_down, "P", None))
    event = ClusterEvent(EventResource.ASSIGNED_POD, ActionType.UPDATE_POD_SCALE_DOWN)
    assert assigned_pod_added(queue, pod("r", node="n1"), 5 * SECOND) == 0
    assert assigned_pod_updated(queue, event, pod("r"), pod("r"), 5 * SECOND) == 1
