"""NodePorts: which ports collide, and what frees them."""

import pytest

from bayplan.framework.events import HintAnswer
from bayplan.framework.plugin import PROCEED
from bayplan.framework.status import SKIP
from bayplan.objects.pod import Pod
from bayplan.plugins.node_ports import NO_PRE_FILTER, REASON, NodePorts
from tests.plugins.builders import make_node, make_plugin, make_pod, make_state
from tests.plugins.forms import filters, pre_filter


def port(number: int, protocol: str = "TCP", ip: str = "") -> dict[str, object]:
    return {"containerPort": 80, "hostPort": number, "protocol": protocol, "hostIP": ip}


def holder(*ports: dict[str, object], name: str = "holder", node_name: str = "") -> Pod:
    return make_pod(name, ports=ports, nodeName=node_name)


@pytest.mark.parametrize(
    ("wanted", "held", "want"),
    [
        pytest.param(port(80), port(80), True, id="the same port on all addresses"),
        pytest.param(port(80), port(81), False, id="another number"),
        pytest.param(port(80), port(80, "UDP"), False, id="another protocol"),
        pytest.param(port(80, ip="10.0.0.1"), port(80, ip="10.0.0.2"), False, id="two addresses"),
        pytest.param(port(80, ip="10.0.0.1"), port(80, ip="10.0.0.1"), True, id="the same address"),
        pytest.param(port(80, ip="10.0.0.1"), port(80), True, id="all addresses are held"),
        pytest.param(port(80), port(80, ip="10.0.0.1"), True, id="a request for all addresses"),
        pytest.param(port(80, ip="0.0.0.0"), port(80, ip="127.0.0.1"), True, id="0.0.0.0 is all addresses"),
        pytest.param(port(80, ip="::"), port(80, ip="127.0.0.1"), False, id=":: is an address like others"),
        pytest.param(port(80, ""), port(80), True, id="no protocol is TCP"),
    ],
)
def test_filter_rejects_nodes_with_a_conflicting_host_port(
    wanted: dict[str, object], held: dict[str, object], want: bool
) -> None:
    state = make_state([make_node("n1"), make_node("n2")], [(holder(held), "n1")])
    found = filters(make_plugin(NodePorts, state), make_pod(ports=[wanted]), state)
    assert found == ({"n1": ("Unschedulable", (REASON,))} if want else {})


def test_one_conflicting_port_of_several_rejects_the_node() -> None:
    state = make_state(
        [make_node("n1"), make_node("n2")], [(holder(port(80)), "n1"), (holder(port(81), name="h"), "n2")]
    )
    rejected = ("Unschedulable", (REASON,))
    pod = make_pod(ports=[port(81), port(80)])
    assert filters(make_plugin(NodePorts, state), pod, state) == {"n1": rejected, "n2": rejected}


def test_a_host_port_is_free_after_its_pod_has_left() -> None:
    state = make_state([make_node("n1")], [(holder(port(80)), "n1")])
    plugin = make_plugin(NodePorts, state)
    assert "n1" in filters(plugin, make_pod(ports=[port(80)]), state)
    state.remove_pod("default/holder")
    assert filters(plugin, make_pod(ports=[port(80)]), state) == {}


def test_pods_without_host_ports_skip_the_filter() -> None:
    state = make_state([])
    plugin = make_plugin(NodePorts, state)
    assert pre_filter(plugin, make_pod(ports=[port(0)]), state) == SKIP
    assert pre_filter(plugin, make_pod(ports=[port(1)]), state) == PROCEED


def test_filter_without_pre_filter_is_an_error_on_every_node() -> None:
    state = make_state([make_node("n1")])
    found = filters(make_plugin(NodePorts, state), make_pod(), state, None)
    assert found == {"n1": ("Error", (NO_PRE_FILTER,))}


@pytest.mark.parametrize(
    ("old", "want"),
    [
        pytest.param(holder(port(80), node_name="n1"), HintAnswer.QUEUE, id="it held the port"),
        pytest.param(holder(port(80, "UDP"), node_name="n1"), HintAnswer.SKIP, id="it held another protocol"),
        pytest.param(holder(node_name="n1"), HintAnswer.SKIP, id="it held no port"),
        pytest.param(holder(port(80)), HintAnswer.SKIP, id="it was on no node"),
        pytest.param(
            make_pod("h", ports=[port(80)], status={"nominatedNodeName": "n1"}), HintAnswer.QUEUE, id="it was nominated"
        ),
        pytest.param(make_node("n"), HintAnswer.ERROR, id="not a pod"),
        pytest.param(None, HintAnswer.ERROR, id="nothing"),
    ],
)
def test_pod_deleted_hint_queues_if_a_wanted_port_became_free(old: object, want: HintAnswer) -> None:
    hint = make_plugin(NodePorts, make_state([])).events_to_register()[0][1]
    assert hint is not None
    assert hint(make_pod("p", ports=[port(80, ip="10.0.0.1")]), old, None) is want
