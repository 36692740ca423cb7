"""Suggestions for a waiting pod next to pods that are nominated, terminating or preempted, and for unreadable affinity."""

from __future__ import annotations

import pytest

from bayplan import make_pod
from bayplan.testing.object_builders import make_priority_class
from tests.answers.test_unblock import THREE, node, running, suggested_texts, unblocked


def test_room_for_nominated_pods_is_not_free() -> None:
    # On node b, 2 cpu are free, but the nominated pod takes 1 of them.
    pods = (running("web-a", "a", "3"), running("web-b", "b"), running("web-c", "c", "4"))
    waits = make_pod("n").req(cpu="1").nominated("b").priority(5)
    found = unblocked(*THREE, *pods, waits, make_pod("x").req(cpu="3"))
    assert "nearest is a, which lacks 2 cpu" in found.verdict
    assert suggested_texts(found, "shrink request") == ["reduce the request: cpu from 3 to 1"]
    # A pod of a higher priority than the nominated one may take its room.
    found = unblocked(*THREE, *pods, waits, make_pod("x").req(cpu="3").priority(9).spec(preemptionPolicy="Never"))
    assert "nearest is b, which lacks 1 cpu" in found.verdict
    assert suggested_texts(found, "shrink request") == ["reduce the request: cpu from 3 to 2"]


def test_nothing_is_suggested_that_preempts_pods_which_are_preempted_anyway() -> None:
    add = make_priority_class("high", 10)
    low = [running(f"low-{name}", name, "3", owner="").priority(-5) for name in "abc"]
    found = unblocked(*THREE, add, *low, make_pod("x").label({"app": "x"}).req(cpu="2").spread({"app": "x"}, "zone"))
    assert found.suggestions[0].kind == "wait"
    assert [text for text in suggested_texts(found) if "it then preempts" in text] == []
    assert suggested_texts(found, "raise priority") == []


def test_a_higher_priority_is_not_suggested_if_the_pod_preempts_others_anyway() -> None:
    # Of equal nodes, preemption chooses one at random, so the victims may differ.
    nodes = [node(f"n{number}") for number in range(12)]
    low = [running(f"low-{number}", f"n{number}", "3", owner="").priority(-5) for number in range(12)]
    found = unblocked(*nodes, *low, make_priority_class("high", 10), make_pod("x").req(cpu="2"))
    assert found.suggestions[0].kind == "wait"
    assert suggested_texts(found, "raise priority") == []


def test_a_pod_that_comes_back_to_its_node_is_not_moved() -> None:
    # Without the pod on node a, the spread constraint admits a. Then its replacement comes back, because node b is full.
    nodes = (node("a"), node("b", "eu-1b", cpu="1"))
    pods = (running("y-1", "a", "1").label({"app": "x"}), running("full", "b", "1", owner=""))
    found = unblocked(*nodes, *pods, make_pod("x").label({"app": "x"}).req(cpu="1").spread({"app": "x"}, "zone"))
    assert found.suggestions
    assert suggested_texts(found, "move pods") == []


def test_a_pod_waits_for_the_end_of_a_terminating_pod() -> None:
    dying = running("dying", "a", "3").terminating()
    pods = (dying, running("web-b", "b", "3"), running("web-c", "c", "3"))
    # Even if it has no higher priority or may not preempt, so that it is not nominated to the node.
    never = make_pod("x").req(cpu="4").priority(5).spec(preemptionPolicy="Never")
    for x in (make_pod("x").req(cpu="4"), never, make_pod("x").req(cpu="4").priority(5)):
        found = unblocked(*THREE, make_priority_class("high", 10), *pods, x)
        best = found.suggestions[0]
        assert (best.kind, best.node, best.evicted, best.moved, best.ended) == ("wait", "a", [], [], ["default/dying"])
        assert best.text == "wait: default/dying is terminating on a, which makes room"
        assert suggested_texts(found, "raise priority") == []
    # Another pod on the node has to be preempted, too.
    small = running("small", "a", "1")
    found = unblocked(
        *THREE, *pods, small, make_pod("x").req(cpu="4").priority(5).node_selector({"kubernetes.io/hostname": "a"})
    )
    assert found.suggestions[0].text == (
        "wait: the scheduler preempts default/small on a by itself, where default/dying is terminating"
    )


@pytest.mark.parametrize(
    ("owner", "taint"),
    [
        pytest.param("DaemonSet", "", id="a DaemonSet recreates the pod there"),
        pytest.param("StatefulSet", "", id="a StatefulSet recreates the pod"),
        pytest.param("ReplicaSet", "node.kubernetes.io/unreachable", id="the kubelet does not respond"),
    ],
)
def test_a_pod_does_not_wait_for_terminating_pods_that_make_no_room(owner: str, taint: str) -> None:
    dying = running("dying", "a", "3", owner="").owner(owner, "web").terminating()
    place = node("a").taint(taint) if taint else node("a")
    x = make_pod("x").req(cpu="4").spec(tolerations=[{"operator": "Exists"}])
    assert suggested_texts(unblocked(place, dying, x), "wait") == []


def test_pod_affinity_that_cannot_be_read_is_dropped() -> None:
    unreadable = {"matchExpressions": [{"key": "tier", "operator": "Exists", "values": ["a"]}]}
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": unreadable}
    readable = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "web"}}}
    terms = [{"weight": 1, "podAffinityTerm": each} for each in (term, readable)]
    pod = make_pod("x").spec(affinity={"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": terms}})
    found = unblocked(*THREE, pod)
    assert suggested_texts(found) == ["drop the terms of the pod affinity that can't be read"]
    (document,) = found.suggestions[0].objects
    left = document["spec"]["affinity"]["podAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]  # type: ignore[index]
    assert [each["podAffinityTerm"]["labelSelector"] for each in left] == [readable["labelSelector"]]
