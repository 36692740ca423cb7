"""NodeDeclaredFeatures: what pods need and what nodes declare."""

import pytest

from bayplan.framework.events import HintAnswer
from bayplan.framework.plugin import PROCEED
from bayplan.framework.status import SKIP
from bayplan.objects.pod import Pod
from bayplan.plugins.node_declared_features import (
    NO_PRE_FILTER,
    REASON,
    RESTART_ALL_CONTAINERS,
    USER_NAMESPACES_HOST_NETWORK,
    NodeDeclaredFeatures,
    needed_features,
)
from tests.plugins.builders import make_node, make_plugin, make_pod, make_state
from tests.plugins.forms import filters, pre_filter

ISOLATED = make_pod(hostNetwork=True, hostUsers=False)
OFF = {
    "NodeDeclaredFeatures": False,
    "ExtendWebSocketsToKubelet": False,
    "InPlacePodLevelResourcesVerticalScaling": False,
    "InPlacePodVerticalScalingInitContainers": False,
    "RestartAllContainersOnContainerExits": False,
}


def restarting(action: str, *, where: str = "containers") -> Pod:
    rule = {"action": action, "exitCodes": {"operator": "In", "values": [1]}}
    container = {"name": "c", "restartPolicy": "OnFailure", "restartPolicyRules": [rule]}
    return make_pod(**{where: [container]})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("pod", "want"),
    [
        pytest.param(make_pod(), set(), id="most pods need nothing"),
        pytest.param(ISOLATED, {USER_NAMESPACES_HOST_NETWORK}, id="user namespaces on the host network"),
        pytest.param(make_pod(hostNetwork=True), set(), id="host network alone"),
        pytest.param(make_pod(hostNetwork=True, hostUsers=True), set(), id="host network with the host's users"),
        pytest.param(restarting("RestartAllContainers"), {RESTART_ALL_CONTAINERS}, id="a rule that restarts all"),
        pytest.param(
            restarting("RestartAllContainers", where="initContainers"),
            {RESTART_ALL_CONTAINERS},
            id="in an init container",
        ),
        pytest.param(restarting("Restart"), set(), id="a rule that restarts one"),
    ],
)
def test_needed_features_follow_from_the_pod_spec(pod: Pod, want: set[str]) -> None:
    assert needed_features(pod) == want


@pytest.mark.parametrize(
    ("declared", "want"),
    [
        pytest.param((USER_NAMESPACES_HOST_NETWORK,), True, id="the feature"),
        pytest.param(
            ("A", RESTART_ALL_CONTAINERS, USER_NAMESPACES_HOST_NETWORK, "Z"), True, id="together with other features"
        ),
        pytest.param((RESTART_ALL_CONTAINERS,), False, id="another feature"),
        pytest.param((), False, id="nothing"),
        pytest.param(("Z", USER_NAMESPACES_HOST_NETWORK), False, id="features out of order are not found, as upstream"),
    ],
)
def test_filter_rejects_nodes_that_do_not_declare_a_needed_feature(declared: tuple[str, ...], want: bool) -> None:
    state = make_state([make_node("n1", features=declared)])
    found = filters(make_plugin(NodeDeclaredFeatures, state), ISOLATED, state)
    assert found == ({} if want else {"n1": ("UnschedulableAndUnresolvable", (REASON,))})


def test_pods_without_needed_features_skip_the_filter() -> None:
    state = make_state([])
    plugin = make_plugin(NodeDeclaredFeatures, state)
    assert pre_filter(plugin, make_pod(), state) == SKIP
    assert pre_filter(plugin, ISOLATED, state) == PROCEED


def test_filter_without_pre_filter_is_an_error_on_every_node() -> None:
    state = make_state([make_node("n1")])
    found = filters(make_plugin(NodeDeclaredFeatures, state), make_pod(), state, None)
    assert found == {"n1": ("Error", (NO_PRE_FILTER,))}


def test_the_plugin_does_nothing_if_its_gate_is_off() -> None:
    state = make_state([make_node("n1")])
    plugin = make_plugin(NodeDeclaredFeatures, state, **OFF)
    assert pre_filter(plugin, ISOLATED, state) == SKIP
    assert filters(plugin, ISOLATED, state, None) == {}
    assert plugin.events_to_register() == ()


@pytest.mark.parametrize(
    ("old", "new", "want"),
    [
        pytest.param(None, make_node("n"), HintAnswer.QUEUE, id="a node was added"),
        pytest.param(make_node("n"), make_node("n", features=("A",)), HintAnswer.QUEUE, id="it declares more"),
        pytest.param(make_node("n"), make_node("n"), HintAnswer.SKIP, id="it declares the same"),
        pytest.param(None, make_pod(), HintAnswer.ERROR, id="not a node"),
    ],
)
def test_node_hint_queues_if_the_declared_features_changed(old: object, new: object, want: HintAnswer) -> None:
    hint = make_plugin(NodeDeclaredFeatures, make_state([])).events_to_register()[0][1]
    assert hint is not None
    assert hint(ISOLATED, old, new) is want


@pytest.mark.parametrize(
    ("old", "new", "want"),
    [
        pytest.param(ISOLATED, make_pod(), HintAnswer.QUEUE, id="it needs less"),
        pytest.param(ISOLATED, ISOLATED, HintAnswer.SKIP, id="it needs the same"),
        pytest.param(
            make_pod("q", hostNetwork=True, hostUsers=False), make_pod("q"), HintAnswer.SKIP, id="another pod"
        ),
        pytest.param(ISOLATED, None, HintAnswer.ERROR, id="nothing new"),
    ],
)
def test_pod_hint_queues_if_the_needed_features_changed(old: object, new: object, want: HintAnswer) -> None:
    hint = make_plugin(NodeDeclaredFeatures, make_state([])).events_to_register()[1][1]
    assert hint is not None
    assert hint(make_pod(), old, new) is want
