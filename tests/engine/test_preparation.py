"""PreFilter and PreScore plugins run again only if something that they read may have changed."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import pytest

from bayplan.framework.cycle_state import CycleState
from bayplan.framework.plugin import PROCEED, PreFilterPlugin, PreFilterResult, PreScorePlugin, Reads
from bayplan.library import Cluster
from bayplan.objects.pod import Pod
from bayplan.state.arrays import Bools
from bayplan.state.cluster_state import ClusterState
from bayplan.testing import make_node, make_pod
from bayplan.testing.object_builders import make_namespace


class OneSpec:
    """The same for all pods."""

    key = ()


class Counted(PreFilterPlugin[OneSpec], PreScorePlugin[OneSpec]):
    """Counts how often it runs."""

    name = "Counted"
    reads_feasible = False
    reads = Reads.NOTHING
    runs: ClassVar[list[str]] = []

    def compile(self, pod: Pod, cluster: ClusterState) -> OneSpec:
        """Return the spec."""
        return OneSpec()

    def pre_filter(self, spec: OneSpec, cluster: ClusterState, state: CycleState) -> PreFilterResult:
        """Count."""
        self.runs.append("pre_filter")
        return PROCEED

    def pre_score(self, spec: OneSpec, cluster: ClusterState, feasible: Bools) -> tuple[int, ...]:
        """Count."""
        self.runs.append("pre_score")
        return ()


def _place_plain_pod(cluster: Cluster) -> None:
    cluster.schedule(make_pod("plain").req(cpu="1").obj())


def _place_counted_pod(cluster: Cluster) -> None:
    cluster.schedule(make_pod("counted").label(app="x").pod_anti_affinity({"app": "x"}, "zone").obj())


def _add_namespace(cluster: Cluster) -> None:
    cluster.add(make_namespace("other"))


def _add_node(cluster: Cluster) -> None:
    cluster.add(make_node("late").capacity(cpu="8").obj())


@pytest.mark.parametrize(
    ("reads", "change", "want"),
    [
        pytest.param(Reads.NODES, _place_plain_pod, 0, id="a rule that reads nodes ignores pods"),
        pytest.param(Reads.NODES, _add_node, 1, id="a rule that reads nodes runs after a new node"),
        pytest.param(Reads.COUNTERS, _place_plain_pod, 0, id="a pod that no counter counts changes no counter"),
        pytest.param(Reads.COUNTERS, _place_counted_pod, 1, id="a pod that owns a term changes a counter"),
        pytest.param(Reads.COUNTERS, _add_namespace, 0, id="an object changes no counter"),
        pytest.param(Reads.CATALOG, _add_namespace, 1, id="an object changes the catalog"),
        pytest.param(Reads.CATALOG, _place_counted_pod, 0, id="a pod does not change the catalog"),
        pytest.param(Reads.COUNTERS | Reads.CATALOG, _add_namespace, 1, id="one of two is enough"),
        pytest.param(Reads.USAGE, _place_plain_pod, 1, id="a rule that reads usage runs in every cycle"),
        pytest.param(Reads.EVERYTHING, _place_plain_pod, 1, id="a rule that declares nothing runs in every cycle"),
    ],
)
def test_pre_filter_and_pre_score_run_again_only_if_their_inputs_changed(
    reads: Reads, change: Callable[[Cluster], None], want: int
) -> None:
    class Kind(Counted):
        pre_reads = reads
        runs: ClassVar[list[str]] = []

    cluster = Cluster([make_node(name).label(zone=name).capacity(cpu="8").obj() for name in "ab"], plugins=[Kind])
    probes = [make_pod(f"probe-{number}").req(cpu="100m").obj() for number in range(3)]
    for probe in probes[:2]:
        # The plan adapts to the first pods of its kind before it is cached.
        cluster.schedule(probe)
    change(cluster)
    Kind.runs.clear()
    cluster.schedule(probes[2])
    assert Kind.runs == ["pre_filter", "pre_score"] * want
