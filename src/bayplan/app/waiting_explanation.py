"""Explain why a pod of a simulation is pending: decide again in a copy of the cluster, as `bayplan explain` does."""

from __future__ import annotations

from collections.abc import Collection

from bayplan.analysis.explain import explain
from bayplan.answers.current_source import CurrentSource, current_pods
from bayplan.answers.trial import Trial
from bayplan.app.scheduler_setup import SchedulerSetup
from bayplan.engine.records import RecordLevel
from bayplan.engine.scheduler import Scheduler
from bayplan.objects.pod import Pod
from bayplan.sim.simulator import Simulator


def why_waiting(simulator: Simulator, setup: SchedulerSetup, key: str) -> str:
    """Return why a pod is pending, in one sentence; the simulation does not change.

    Args:
        simulator: the simulator with the cluster.
        setup: the scheduler that decides in the cluster.
        key: the key of the pod.
    """

    state = simulator.scheduler.state.fork()

    def make(without: Collection[str]) -> Scheduler:
        return setup.make(
            seed=simulator.seed, record_level=RecordLevel.OFF, state=state, sampling=False, without=without
        )

    store, now_ns = simulator.cluster.store, simulator.now_ns
    waiting = [pod for pod in store.all(Pod) if not pod.spec.node_name]
    trial = Trial(make(()), now_ns, make, waiting=waiting)
    objects = (item for kind in store.kinds() for item in store.all(kind))
    pods = current_pods(objects, simulator.scheduler.profiles)
    life = next(each for each in pods if each.key == key)
    found = explain(CurrentSource(trial, pods, life, now_ns), [life])
    if found.detail is not None and found.detail.attempt.node:
        return f"{key} is pending: it would fit on {found.detail.attempt.node} now, and waits for its next attempt"
    return found.verdict
