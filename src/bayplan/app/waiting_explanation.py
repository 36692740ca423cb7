"""Why a pod of a simulation waits now: decided again in a copy of the cluster, in the words of `bayplan explain`."""

from __future__ import annotations

from bayplan.analysis.explain import explain
from bayplan.answers.present import PresentSource, present_pods
from bayplan.app.notebook import Cluster
from bayplan.app.scheduler_setup import SchedulerSetup
from bayplan.app.sources.cluster_source import ClusterSource, SourceKind, in_order
from bayplan.engine.records import RecordLevel
from bayplan.sim.simulator import Simulator


def why_waiting(simulator: Simulator, setup: SchedulerSetup, key: str) -> str:
    """Return why a pod waits, in one sentence; the simulation does not change.

    Args:
        simulator: with the cluster. setup: the scheduler that decides in it. key: of the pod.
    """
    store, now_ns = simulator.cluster.store, simulator.now_ns
    objects = [item for kind in store.kinds() for item in store.all(kind)]
    source = ClusterSource(
        name="", kind=SourceKind.MANIFESTS, objects=in_order(objects), scheduler=setup, now_ns=now_ns, assumptions=()
    )
    cluster = Cluster.of(source, seed=simulator.seed, record_level=RecordLevel.OFF)
    pods = present_pods(objects, cluster.scheduler.profiles)
    life = next(each for each in pods if each.key == key)
    return explain(PresentSource(cluster.trial(), pods, life, now_ns), [life]).verdict
