"""The hints of NodeResourcesFit: deleted pods, pods with smaller requests, and nodes with larger capacity."""

import pytest

from bayplan.framework.events import HintAnswer
from bayplan.objects.pod import Pod
from bayplan.objects.requests import RequestGates
from bayplan.objects.resource import DeviceClass
from bayplan.plugins.node_resources_fit import NodeResourcesFit
from bayplan.state.cluster_state import ClusterState
from tests.plugins.builders import make_node, make_plugin, make_pod
from tests.plugins.test_node_resources_fit import device_class

QUEUE, SKIP, ERROR = HintAnswer.QUEUE, HintAnswer.SKIP, HintAnswer.ERROR
WAITING = make_pod("p", {"cpu": "3", "example.com/gpu": "1"})


def running(name: str = "r", node: str = "n1", **requests: str) -> Pod:
    return make_pod(name, requests, nodeName=node)


def hints(*classes: DeviceClass, gates: RequestGates | None = None) -> NodeResourcesFit:
    state = ClusterState(gates or RequestGates())
    for item in classes:
        state.catalog.put(item.metadata.name, item)
    return make_plugin(NodeResourcesFit, state)


@pytest.mark.parametrize(
    ("old", "new", "want"),
    [
        pytest.param(running(), None, QUEUE, id="a pod with a node was deleted, regardless of its requests"),
        pytest.param(running(node=""), None, SKIP, id="a pod without a node was deleted"),
        pytest.param(make_pod("r", status={"nominatedNodeName": "n1"}), None, QUEUE, id="a nominated pod was deleted"),
        pytest.param(running(cpu="2"), running(cpu="1"), QUEUE, id="a pod requests less CPU"),
        pytest.param(
            running(memory="2"),
            running(memory="1"),
            SKIP,
            id="less of a resource that the waiting pod does not request",
        ),
        pytest.param(running(cpu="1"), running(cpu="2"), SKIP, id="for more"),
        pytest.param(
            running(node="", cpu="2"), running(node="", cpu="1"), SKIP, id="a pod without a node requests less"
        ),
        pytest.param(WAITING, WAITING, QUEUE, id="the waiting pod itself"),
        pytest.param(None, running(), ERROR, id="a pod without an earlier version"),
        pytest.param(make_node(), None, ERROR, id="not a pod"),
    ],
)
def test_pod_hint_queues_if_resources_became_free(old: object, new: object, want: HintAnswer) -> None:
    assert hints().is_schedulable_after_pod_event(WAITING, old, new) is want


def test_pod_hint_ignores_resizes_if_the_gate_is_off() -> None:
    off = RequestGates(in_place_pod_vertical_scaling=False)
    answer = hints(gates=off).is_schedulable_after_pod_event(WAITING, running(cpu="2"), running(cpu="1"))
    assert answer is SKIP


GPU = "example.com/gpu"
BIG, SMALL = {"cpu": "4", GPU: "1", "pods": "9"}, {"cpu": "2", GPU: "1", "pods": "9"}


@pytest.mark.parametrize(
    ("old", "new", "want"),
    [
        pytest.param(None, BIG, QUEUE, id="a node that is large enough was added"),
        pytest.param(None, SMALL, SKIP, id="a node that is too small was added"),
        pytest.param(None, {**BIG, "pods": "0"}, SKIP, id="a node that allows no pods was added"),
        pytest.param(SMALL, BIG, QUEUE, id="it grew"),
        pytest.param(BIG, BIG, SKIP, id="it stayed as it was"),
        pytest.param(
            {**BIG, "memory": "1Gi"},
            {**BIG, "memory": "2Gi"},
            SKIP,
            id="it grew in a resource that the pod does not request",
        ),
        pytest.param(BIG, {**BIG, "pods": "10"}, QUEUE, id="it holds more pods"),
        pytest.param({**BIG, GPU: "0"}, BIG, QUEUE, id="it got a device"),
    ],
)
def test_node_hint_queues_if_the_pod_fits_now(
    old: dict[str, str] | None, new: dict[str, str], want: HintAnswer
) -> None:
    before = None if old is None else make_node("n", old)
    assert hints().is_schedulable_after_node_change(WAITING, before, make_node("n", new)) is want


def test_node_hint_handles_unexpected_objects() -> None:
    assert hints().is_schedulable_after_node_change(WAITING, None, make_pod()) is ERROR
    assert hints().is_schedulable_after_node_change(WAITING, make_node(), None) is SKIP


def test_node_hint_queues_if_devices_can_provide_the_missing_resource() -> None:
    without = make_node("n", {"cpu": "4", "pods": "9"})
    assert hints().is_schedulable_after_node_change(WAITING, None, without) is SKIP
    backed = hints(device_class("gpus", "example.com/gpu"))
    assert backed.is_schedulable_after_node_change(WAITING, None, without) is QUEUE
    assert backed.is_schedulable_after_node_change(WAITING, without, without) is QUEUE


@pytest.mark.parametrize(
    ("old", "new", "want"),
    [
        pytest.param(
            None, device_class("c", "example.com/gpu"), QUEUE, id="a class for a requested resource was added"
        ),
        pytest.param(None, device_class("c", "example.com/nic"), SKIP, id="a class for another resource was added"),
        pytest.param(None, device_class("c"), SKIP, id="a class for no resource was added"),
        pytest.param(None, device_class("own"), QUEUE, id="a class with a requested implicit resource was added"),
        pytest.param(device_class("own"), device_class("own"), SKIP, id="another field of a class changed"),
        pytest.param(device_class("c"), device_class("c", "example.com/gpu"), QUEUE, id="a class now serves it"),
        pytest.param(device_class("c", "example.com/gpu"), device_class("c"), SKIP, id="it does not any more"),
        pytest.param(None, make_node(), ERROR, id="not a class"),
    ],
)
def test_device_class_hint_queues_if_a_class_provides_a_requested_resource(
    old: object, new: object, want: HintAnswer
) -> None:
    pod = make_pod(requests={"example.com/gpu": "1", "deviceclass.resource.kubernetes.io/own": "1"})
    assert hints().is_schedulable_after_device_class_event(pod, old, new) is want
