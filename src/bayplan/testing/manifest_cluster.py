"""A cluster for tests of manifests: it says whether objects would be scheduled in it, and if not, why.

A separate simulation answers each question: it applies the objects of the cluster, then those in question, and runs
until nothing changes any more. So controllers create the pods of workloads, quotas and priority classes apply, and pods
may preempt others. No question changes the cluster. The fixtures of `bayplan.testing.pytest_plugin` use this class.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeAlias, runtime_checkable

import msgspec
from msgspec.structs import replace

from bayplan.app.scheduler_setup import SchedulerOptions, SchedulerSetup, read_setup
from bayplan.app.waiting_explanation import why_waiting
from bayplan.base.durations import DAY_NS, SECOND_NS
from bayplan.base.random_streams import RandomStreams
from bayplan.engine.event_driven_queue import EventDrivenQueue
from bayplan.formats.inputs import load_inputs
from bayplan.framework.plugin import Plugin
from bayplan.objects.defaults import default_object
from bayplan.objects.kinds import decode
from bayplan.objects.meta import KubernetesObject
from bayplan.objects.namespace import Namespace
from bayplan.objects.pod import Pod
from bayplan.sim import arrivals
from bayplan.sim.operations import Apply
from bayplan.sim.result import PodFate, PodTimeline
from bayplan.sim.simulator import Simulator
from bayplan.sim.virtual_cluster import VirtualCluster

MAX_SHOWN = 3
"""Maximum number of workloads to explain in a failed assertion."""


@runtime_checkable
class _Builder(Protocol):
    """A builder of `bayplan.testing`."""

    def obj(self) -> KubernetesObject:
        """Return the built object."""
        ...


What: TypeAlias = str | Path | Mapping[str, object] | KubernetesObject | _Builder
"""The path of manifests, an object, a builder of an object, or a document."""


class WaitingPods(msgspec.Struct, frozen=True):
    """The waiting pods of one workload: the first one, the number of the others, why it waits, and the scheduler's message."""

    pod: str
    others: int
    reason: str
    message: str


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """The result of adding objects to a cluster.

    Attributes:
        nodes: the node of each placed pod, by key.
        waiting: the waiting pods, by workload.
        evicted: the keys of the preempted pods of the cluster.
        refused: why the cluster refuses objects, by ``Kind key``.
    """

    nodes: Mapping[str, str]
    waiting: Sequence[WaitingPods]
    evicted: Sequence[str]
    refused: Mapping[str, str]

    @property
    def waiting_count(self) -> int:
        """Return the number of waiting pods."""
        return sum(1 + each.others for each in self.waiting)


class ManifestCluster:
    """A cluster with a scheduler, and assertions about which objects fit into it.

    Args:
        what: the objects in the cluster.
        root: the directory that relative paths start from.
        config: the path of a KubeSchedulerConfiguration; None for the default configuration.
        feature_gates: the feature gates, as for ``--feature-gates`` of kube-scheduler.
        plugins: the plugins, as for ``--plugin`` of bayplan, or plugin classes, which are enabled with weight 1.
        seed: the seed for tie-breaking.
    """

    def __init__(
        self,
        *what: What,
        root: Path | None = None,
        config: str | Path | None = None,
        feature_gates: str = "",
        plugins: Sequence[str | type[Plugin[Any]]] = (),
        seed: int = 0,
    ) -> None:
        self._root = root or Path()
        self._seed = seed
        path = None if config is None else self._root / config
        self._setup = _setup_of(path, feature_gates, plugins)
        self._items: list[KubernetesObject] = []
        self.add(*what)

    def add(self, *what: What) -> None:
        """Add objects to the cluster, for all later assertions.

        Raises:
            InputError: a manifest cannot be read.
        """
        self._items += self._objects(what)

    def outcome(self, *what: What) -> Outcome:
        """Return the result of adding objects to the cluster, which does not change.

        Raises:
            InputError: a manifest cannot be read.
        """
        items = self._objects(what)
        simulator = self._simulator()
        simulator.settle(simulator.start_ns + DAY_NS)
        asked_ns = simulator.now_ns + SECOND_NS
        known = [namespace.metadata.name for namespace in simulator.cluster.store.all(Namespace)]
        before = len(simulator.pods)
        simulator.failures.clear()
        for item in (*arrivals.missing_namespaces(items, known), *items):
            simulator.at(asked_ns, Apply(item))
        simulator.settle(asked_ns + DAY_NS)
        names = {item.key for item in items} | {f"{type(item).__name__} {item.key}" for item in items}
        asked = [pod for pod in simulator.pods if pod.key in names or pod.workload in names]
        return Outcome(
            nodes={pod.key: pod.node for pod in asked if pod.node and pod.fate is not PodFate.DELETED},
            waiting=self._waiting(simulator, asked),
            evicted=[pod.key for pod in simulator.pods[:before] if pod.disruption],
            refused=simulator.failures | {key: str(each) for key, each in simulator.cluster.failures().items()},
        )

    # --- assertions ---------------------------------------------------------------------------------------------------

    def assert_schedulable(self, *what: What, evictions: int | None = None) -> Outcome:
        """Fail unless all pods of these objects find a node. Return the outcome, which has the nodes.

        Args:
            what: the objects.
            evictions: the maximum number of the cluster's pods that may be preempted; unlimited by default.

        Raises:
            AssertionError: the message explains why pods wait, as `bayplan explain` does.
        """
        __tracebackhide__ = True
        found = self.outcome(*what)
        pods = len(found.nodes) + found.waiting_count
        if found.refused:
            raise AssertionError("\n".join(["the cluster refuses objects:", *_lines(found.refused)]))
        if not pods:
            raise AssertionError("these objects create no pods")
        if found.waiting:
            lines = [f"{found.waiting_count:,} of {pods:,} pods are not schedulable:", *_explained(found.waiting)]
            raise AssertionError("\n".join(lines))
        if evictions is not None and len(found.evicted) > evictions:
            shown = ", ".join(found.evicted[:MAX_SHOWN])
            raise AssertionError(f"expected at most {evictions:,} evictions, got {len(found.evicted):,}: {shown}")
        return found

    def assert_not_schedulable(self, *what: What, reason: str = "") -> Outcome:
        """Fail if a pod of these objects finds a node, or waits for a different reason.

        Args:
            what: the objects.
            reason: a text that the explanation, the scheduler's message or the cluster's error must contain; "" for
                any.

        Raises:
            AssertionError: the message has the nodes of pods, or why they wait.
        """
        __tracebackhide__ = True
        found = self.outcome(*what)
        if found.nodes:
            placed = [f"{key} goes to {node}" for key, node in list(found.nodes.items())[:MAX_SHOWN]]
            more = f"\n  and {len(found.nodes) - MAX_SHOWN:,} more" if len(found.nodes) > MAX_SHOWN else ""
            raise AssertionError("expected no pod to be schedulable, but\n  " + "\n  ".join(placed) + more)
        texts = [f"{each.reason}\n{each.message}" for each in found.waiting] + list(found.refused.values())
        if not texts:
            raise AssertionError("these objects create no pods")
        if reason and not all(reason in text for text in texts):
            lines = [f"expected pods to be pending because of '{reason}', but", *_explained(found.waiting)]
            raise AssertionError("\n".join([*lines, *_lines(found.refused)]))
        return found

    # --- implementation -----------------------------------------------------------------------------------------------

    def _objects(self, what: Sequence[What]) -> list[KubernetesObject]:
        found: list[KubernetesObject] = []
        for each in what:
            if isinstance(each, str | Path):
                found += load_inputs([str(self._root / each)]).manifest.objects()
            elif isinstance(each, Mapping):
                found.append(default_object(decode(each)))
            else:
                found.append(each.obj() if isinstance(each, _Builder) else each)
        return [_as_new(item) for item in found]

    def _simulator(self) -> Simulator:
        """Return a simulation of the cluster that has not started."""
        start_ns = arrivals.DEFAULT_START_NS
        scheduler = self._setup.make(seed=self._seed, start_ns=start_ns, queue_type=EventDrivenQueue)
        cluster = VirtualCluster(RandomStreams(self._seed))
        simulator = Simulator(scheduler, cluster, seed=self._seed, start_ns=start_ns)
        for namespace in arrivals.missing_namespaces(self._items):
            simulator.at(start_ns, Apply(namespace))
        for item in arrivals.in_order(self._items):
            simulator.at(start_ns, Apply(item))
        return simulator

    def _waiting(self, simulator: Simulator, asked: Sequence[PodTimeline]) -> list[WaitingPods]:
        groups: dict[str, list[PodTimeline]] = {}
        for pod in asked:
            if not pod.node and pod.fate is not PodFate.DELETED:
                groups.setdefault(pod.workload or pod.key, []).append(pod)
        return [
            WaitingPods(pods[0].key, len(pods) - 1, why_waiting(simulator, self._setup, pods[0].key), pods[0].message)
            for pods in groups.values()
        ]


def _as_new(item: KubernetesObject) -> KubernetesObject:
    """Return a pod without a node as if a client created it, so that admission applies; return other objects unchanged."""
    if not isinstance(item, Pod) or item.spec.node_name:
        return item
    return replace(item, metadata=replace(item.metadata, uid="", resource_version=""))


def _explained(waiting: Sequence[WaitingPods]) -> list[str]:
    lines: list[str] = []
    for each in waiting[:MAX_SHOWN]:
        others = f" (and {each.others:,} more of its workload)" if each.others else ""
        lines.append(f"  {each.reason}{others}")
        if each.message:
            lines.append(f"    {each.message}")
    if len(waiting) > MAX_SHOWN:
        lines.append(f"  and pods of {len(waiting) - MAX_SHOWN:,} more workloads")
    return lines


def _lines(refused: Mapping[str, str]) -> list[str]:
    return [f"  {name}: {problem}" for name, problem in list(refused.items())[:MAX_SHOWN]]


def _setup_of(config: Path | None, feature_gates: str, plugins: Sequence[str | type[Plugin[Any]]]) -> SchedulerSetup:
    names = [each for each in plugins if isinstance(each, str)]
    classes = [each for each in plugins if not isinstance(each, str)]
    options = SchedulerOptions(config=config, feature_gates=feature_gates, plugins=names)
    return read_setup(options).with_plugins(*classes)
