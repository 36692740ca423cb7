"""NodeName: the one node that a pod names."""

import pytest

from bayplan.plugins.node_name import REASON, NodeName
from tests.plugins.builders import make_node, make_plugin, make_pod, make_state
from tests.plugins.forms import filters

REJECTED = ("UnschedulableAndUnresolvable", (REASON,))


@pytest.mark.parametrize(
    ("node_name", "want"),
    [
        pytest.param("", {}, id="a pod that names no node fits on all"),
        pytest.param("n2", {"n1": REJECTED, "n3": REJECTED}, id="all but the named node are rejected"),
        pytest.param("n4", dict.fromkeys(("n1", "n2", "n3"), REJECTED), id="a node that does not exist rejects all"),
    ],
)
def test_filter_rejects_all_nodes_but_the_named_one(node_name: str, want: dict[str, object]) -> None:
    state = make_state([make_node("n1"), make_node("n2"), make_node("n3")])
    assert filters(make_plugin(NodeName, state), make_pod(nodeName=node_name), state) == want


def test_a_freed_row_is_not_confused_with_its_deleted_node() -> None:
    state = make_state([make_node("n1"), make_node("n2")])
    state.remove_node("n1")
    state.add_node(make_node("n3"))
    assert filters(make_plugin(NodeName, state), make_pod(nodeName="n1"), state) == dict.fromkeys(
        ("n2", "n3"), REJECTED
    )
