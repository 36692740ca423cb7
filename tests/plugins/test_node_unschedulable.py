"""NodeUnschedulable: nodes that are marked as unschedulable."""

import pytest

from bayplan.framework.events import HintAnswer
from bayplan.plugins.node_unschedulable import REASON, NodeUnschedulable
from tests.plugins.builders import make_node, make_plugin, make_pod, make_state
from tests.plugins.forms import filters

KEY = "node.kubernetes.io/unschedulable"
REJECTED = {"n2": ("UnschedulableAndUnresolvable", (REASON,))}


@pytest.mark.parametrize(
    ("toleration", "gate", "want"),
    [
        pytest.param({"key": "a", "operator": "Exists"}, False, REJECTED, id="another toleration does not help"),
        pytest.param({"key": KEY, "operator": "Exists"}, False, {}, id="the toleration of the cordon's taint does"),
        pytest.param(
            {"key": KEY, "effect": "NoExecute", "operator": "Exists"}, False, REJECTED, id="for its effect only"
        ),
        pytest.param({"operator": "Exists"}, False, {}, id="tolerating everything does"),
        pytest.param({"key": KEY, "value": "x"}, False, REJECTED, id="the cordon's taint has no value"),
        pytest.param({"key": KEY}, False, {}, id="the cordon's taint equals one with an empty value"),
        pytest.param({"key": KEY, "operator": "Gt", "value": "0"}, True, REJECTED, id="a value that is not a number"),
    ],
)
def test_filter_rejects_cordoned_nodes_unless_tolerated(
    toleration: dict[str, str], gate: bool, want: dict[str, object]
) -> None:
    state = make_state([make_node("n1"), make_node("n2", unschedulable=True)])
    plugin = make_plugin(NodeUnschedulable, state, TaintTolerationComparisonOperators=gate)
    assert filters(plugin, make_pod(tolerations=[toleration]), state) == want


OPEN, CLOSED = make_node("n"), make_node("n", unschedulable=True)


@pytest.mark.parametrize(
    ("old", "new", "want"),
    [
        pytest.param(None, OPEN, HintAnswer.QUEUE, id="a schedulable node was added"),
        pytest.param(None, CLOSED, HintAnswer.SKIP, id="a cordoned node was added"),
        pytest.param(CLOSED, OPEN, HintAnswer.QUEUE, id="a node was uncordoned"),
        pytest.param(OPEN, OPEN, HintAnswer.SKIP, id="a node stayed schedulable"),
        pytest.param(CLOSED, CLOSED, HintAnswer.SKIP, id="a node stayed cordoned"),
        pytest.param(None, make_pod(), HintAnswer.ERROR, id="not a node"),
    ],
)
def test_node_hint_queues_if_the_node_is_schedulable_now(old: object, new: object, want: HintAnswer) -> None:
    hint = make_plugin(NodeUnschedulable, make_state([])).events_to_register()[0][1]
    assert hint is not None
    assert hint(make_pod(), old, new) is want


@pytest.mark.parametrize(
    ("new", "want"),
    [
        pytest.param(
            make_pod("p", tolerations=[{"operator": "Exists"}]), HintAnswer.QUEUE, id="it tolerates cordons now"
        ),
        pytest.param(make_pod("p", tolerations=[{"key": "a"}]), HintAnswer.SKIP, id="it tolerates something else now"),
        pytest.param(
            make_pod("q", tolerations=[{"operator": "Exists"}]), HintAnswer.SKIP, id="another pod tolerates cordons now"
        ),
    ],
)
def test_pod_hint_queues_if_the_pod_tolerates_cordons_now(new: object, want: HintAnswer) -> None:
    hint = make_plugin(NodeUnschedulable, make_state([])).events_to_register()[1][1]
    assert hint is not None
    assert hint(make_pod("p"), make_pod("p"), new) is want
