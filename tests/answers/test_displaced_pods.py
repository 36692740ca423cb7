"""Pods that are recreated when their node goes away, and pods of one controller."""

from __future__ import annotations

import pytest

from bayplan.answers.displaced_pods import as_waiting, is_recreated, is_recreated_elsewhere, is_sibling
from bayplan.testing.builders import PodBuilder, make_pod
from tests.answers.clusters import running


@pytest.mark.parametrize(
    ("other", "want"),
    [
        pytest.param(running("web-2", "n2"), True, id="the same controller"),
        pytest.param(running("web-2", "n2", owner="other"), False, id="a controller with another name"),
        pytest.param(running("web-2", "n2", kind="StatefulSet"), False, id="a controller of another kind"),
        pytest.param(running("web-2", "n2", kind=""), False, id="no controller"),
        pytest.param(make_pod("web-2", "shop").owner("ReplicaSet", "web"), False, id="another namespace"),
    ],
)
def test_siblings_have_the_same_controller_in_the_same_namespace(other: PodBuilder, want: bool) -> None:
    pod = running("web-1", "n1").obj()
    assert is_sibling(pod, other.obj()) is want
    assert is_sibling(other.obj(), pod) is want


@pytest.mark.parametrize(
    ("pod", "back", "recreated"),
    [
        pytest.param(running("web-1", "n1"), True, True, id="a pod of a ReplicaSet"),
        pytest.param(running("bare", "n1", kind=""), True, False, id="a bare pod"),
        pytest.param(running("agent-1", "n1", kind="DaemonSet"), False, False, id="a pod of a DaemonSet"),
    ],
)
def test_only_pods_that_leave_their_node_come_back(pod: PodBuilder, back: bool, recreated: bool) -> None:
    assert (is_recreated_elsewhere(pod.obj()), is_recreated(pod.obj())) == (back, recreated)


def test_a_recreated_pod_waits_without_a_node() -> None:
    pod = as_waiting(running("web-1", "n1").obj())
    assert (pod.spec.node_name, pod.status.phase, pod.status.start_time) == ("", "Pending", None)
