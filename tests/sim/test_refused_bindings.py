"""Bindings that the cluster refuses: the pod releases its node, backs off as after other errors, and is tried again."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from bayplan.base.random_streams import RandomStreams
from bayplan.cluster.store import ChangeEvent, ObjectStore
from bayplan.objects.meta import ObjectMeta
from bayplan.objects.storage import PersistentVolume, PersistentVolumeClaim
from bayplan.sim.binding_problem import binding_problem, update_problem
from bayplan.sim.virtual_cluster import VirtualCluster
from bayplan.testing import make_pod
from tests.sim.simulations import MINUTE, SECOND, node, pod, pod_times, simulator


@pytest.mark.parametrize(
    ("change", "want"),
    [
        pytest.param("none", "", id="a deletion without finalizers"),
        pytest.param("gone", 'pods "p" not found', id="it is gone"),
        pytest.param(
            "bound",
            'Operation cannot be fulfilled on pods/binding "p": pod p is already assigned to node "n"',
            id="another client was faster",
        ),
        pytest.param(
            "deleting",
            'Operation cannot be fulfilled on pods/binding "p": pod p is being deleted, cannot be assigned to a host',
            id="it is terminating",
        ),
        pytest.param(
            "finished", 'Operation cannot be fulfilled on pods/binding "p": pod p has finished', id="it has finished"
        ),
    ],
)
def test_binding_refusal_explains_why_a_pod_cannot_be_bound(change: str, want: str) -> None:
    store = ObjectStore(RandomStreams(0).stream("uids"))
    made = make_pod("p").obj()
    match change:
        case "bound":
            made = replace(made, spec=replace(made.spec, node_name="n"))
        case "deleting":
            made = replace(made, metadata=replace(made.metadata, deletion_timestamp="2026-01-01T00:00:00Z"))
        case "finished":
            made = replace(made, status=replace(made.status, phase="Succeeded"))
    if change != "gone":
        store.add(made, 0)
    assert binding_problem(store, "default/p") == want


def test_an_update_of_a_missing_object_is_refused() -> None:
    store = ObjectStore(RandomStreams(0).stream("uids"))
    volume = PersistentVolume(metadata=ObjectMeta(name="pv"))
    claim = PersistentVolumeClaim(metadata=ObjectMeta(name="c", namespace="default"))
    assert update_problem(store, volume) == 'persistentvolumes "pv" not found'
    assert update_problem(store, claim) == 'persistentvolumeclaims "c" not found'
    store.add(volume, 0)
    assert update_problem(store, volume) == ""


class RefusingCluster(VirtualCluster):
    """A cluster that refuses the first binding."""

    refused = ""

    def bind(self, pod_key: str, node_name: str, now_ns: int) -> list[ChangeEvent]:
        """Refuse the first call."""
        if not self.refused:
            self.refused = pod_key
            return []
        return super().bind(pod_key, node_name, now_ns)


def test_a_pod_whose_binding_was_refused_comes_back_after_its_backoff() -> None:
    made = simulator((0, node("n")), (0, pod("p", "3")), (500_000_000, pod("q", "3")), cluster_type=RefusingCluster)
    assert isinstance(made.cluster, RefusingCluster)
    made.run(until_ns=made.start_ns + MINUTE)
    result = made.result()
    assert made.cluster.refused == "default/p"
    # While p backs off, other pods can use its room.
    assert [line[:4] for line in pod_times(result)] == [("p", "", 0, None), ("q", "n", 500_000_000, 500_000_000)]
    said = [(event.pod, event.reason, event.first_ns - made.start_ns) for event in result.events]
    assert said[0] == ("default/p", "FailedScheduling", 0)
    assert ("default/p", "FailedScheduling", 2 * SECOND) in said
    assert result.events[0].note == 'running Bind plugin "DefaultBinder": the cluster refused it'
