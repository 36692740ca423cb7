"""Tests of the objects from which a scheduler is rebuilt: the latest version of each, in the right order."""

from __future__ import annotations

from bayplan.base.durations import SECOND_NS
from bayplan.live.object_mirror import ObjectMirror
from bayplan.live.quarantine import MAX_HOLD_NS, Quarantine
from bayplan.testing import make_node, make_pod
from bayplan.testing.object_builders import make_namespace


def test_objects_are_ordered_nodes_first_then_bound_then_pending_pods() -> None:
    mirror = ObjectMirror()
    waiting, bound = make_pod("waiting").obj(), make_pod("bound").node("n").obj()
    node, namespace = make_node("n").obj(), make_namespace("team")
    for item in (waiting, bound, node, namespace):
        mirror.apply(None, item)
    assert [*mirror] == [node, namespace, bound, waiting]
    assert (len(mirror), mirror.pod("default/bound"), mirror.pod("default/nobody")) == (4, bound, None)


def test_the_mirror_applies_updates_and_deletions() -> None:
    mirror = ObjectMirror()
    old, new = make_pod("p").obj(), make_pod("p").node("n").obj()
    mirror.apply(None, old)
    mirror.apply(old, new)
    assert [*mirror] == [new]
    mirror.apply(new, None)
    assert len(mirror) == 0
    mirror.apply(new, None)


class TestQuarantine:
    def test_quarantine_time_doubles_up_to_a_maximum(self) -> None:
        mirror, quarantine = ObjectMirror(), Quarantine()
        pod = make_pod("p").obj()
        mirror.apply(None, pod)
        waits = []
        for _ in range(12):
            quarantine.put_pod(pod.key, 0)
            waits.append(quarantine.next_ns())
            assert quarantine.contains(pod)
            assert quarantine.released((waits[-1] or 0) - 1, mirror) == []
            assert quarantine.released(waits[-1] or 0, mirror) == [pod]
        assert waits[:3] == [2 * SECOND_NS, 4 * SECOND_NS, 8 * SECOND_NS]
        assert waits[-1] == MAX_HOLD_NS
        assert not quarantine

    def test_changes_of_a_quarantined_pod_are_withheld_until_it_is_bound_or_deleted(self) -> None:
        quarantine = Quarantine()
        pod, labelled = make_pod("p").obj(), make_pod("p").label(app="web").obj()
        quarantine.put_pod(pod.key, 0)
        assert quarantine.hides(pod, labelled)
        bound = make_pod("p").node("n").obj()
        assert not quarantine.hides(labelled, bound)
        assert not quarantine
        quarantine.put_pod(pod.key, 0)
        assert quarantine.hides(pod, None)
        assert not quarantine

    def test_an_object_is_quarantined_until_it_changes(self) -> None:
        quarantine = Quarantine()
        node, other = make_node("n").obj(), make_node("n").zone("a").obj()
        quarantine.put_object(node)
        assert quarantine.contains(node)
        assert not quarantine.contains(other)
        assert not quarantine.hides(node, other)
        assert not quarantine.contains(node)
        quarantine.put_object(node)
        assert quarantine.hides(node, None)
