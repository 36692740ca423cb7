"""Hosts for tests: a scheduler whose plugins misbehave on request, and a cluster that executes its bindings."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from threading import Event
from typing import Any, ClassVar

from msgspec import structs

from bayplan.base.clock import Clock
from bayplan.cluster.store import ADDED, DELETED, MODIFIED, ChangeEvent
from bayplan.engine.actions import Action, Bind, Evict
from bayplan.engine.assemble import assemble_scheduler
from bayplan.engine.records import RecordLevel
from bayplan.engine.scheduler import Scheduler
from bayplan.engine.select_host import first_by_name
from bayplan.framework.configuration.loading import load_configuration
from bayplan.framework.feature_gates import FeatureGates
from bayplan.framework.plugin import Plugin
from bayplan.live.decision_store import DecisionStore
from bayplan.live.instrumented_queue import InstrumentedQueue
from bayplan.live.plugin_guard import GuardedRegistry
from bayplan.live.plugin_runner import PluginRunner
from bayplan.live.scheduler_thread import SchedulerThread
from bayplan.objects.meta import KubernetesObject
from bayplan.objects.pod import Pod
from bayplan.plugins.registry import in_tree_registry
from bayplan.testing import make_node, make_pod
from tests.engine.recorders import HEADER, Recorder

START_NS = 1_800_000_000 * 1_000_000_000
SECOND = 1_000_000_000


class FaultyPlugin(Recorder):
    """A plugin that misbehaves at one extension point, for pods whose names start with ``bad``.

    Class attributes:
        at: The method that misbehaves.
        how: ``raise``, ``sleep``, ``wait`` (until `released` is set), ``loop``, ``nonsense`` (return a value of a wrong
            type) or ``well`` (do not misbehave).
    """

    at: ClassVar[str]
    how: ClassVar[str]
    released: ClassVar[Event]


def make_faulty_plugin(at: str, how: str) -> type[FaultyPlugin]:
    """Return a plugin that misbehaves in one method."""
    base: Callable[..., object] = getattr(Recorder, at)

    def method(self: FaultyPlugin, *arguments: Any) -> object:
        if any(_name(it).startswith("bad") for it in arguments) or at in ("scale", "normalize"):
            if type(self).how == "raise":
                raise KeyError("zone")
            if type(self).how == "sleep":
                time.sleep(3600)
            if type(self).how == "wait":
                type(self).released.wait()
            while type(self).how == "loop":
                pass
            if type(self).how == "nonsense":
                return 42
        return base(self, *arguments)

    method.__module__ = __name__
    members: dict[str, Any] = {
        "name": "Trouble",
        "log": [],
        "says": {},
        "events": None,
        "at": at,
        "how": how,
        "released": Event(),
        at: method,
    }
    return type("Trouble", (FaultyPlugin,), members)


def _name(argument: object) -> str:
    pod = getattr(argument, "pod", argument)
    return pod.metadata.name if isinstance(pod, Pod) else ""


class Cluster:
    """The environment of a host: it binds pods, and reports the bindings to the scheduler when `run` is called.

    Attributes:
        objects: The objects by kind and key.
        actions: All actions that the scheduler has requested.
        refuses: Keys of pods whose binding fails.
    """

    def __init__(
        self, *plugins: type[Plugin[Any]], level: RecordLevel = RecordLevel.FULL, deadline_seconds: float = 30.0
    ) -> None:
        self.clock = Clock(start_ns=START_NS, paused=True)
        self.runner = PluginRunner(deadline_seconds, now_ns=self.clock.now_ns)
        self.plugins = plugins
        self.decisions = DecisionStore(level)
        self.actions: list[Action] = []
        self.objects: dict[str, KubernetesObject] = {}
        self.refuses: set[str] = set()
        scheduler = self.make()
        scheduler.records = self.decisions
        self.host = SchedulerThread(scheduler, self.clock, self.actions.extend, remake=self.make, runner=self.runner)
        self._done = 0

    def make(self) -> Scheduler:
        """Return a scheduler for an empty cluster, with the default plugins and this cluster's plugins."""
        plain = in_tree_registry().with_plugins(*self.plugins)
        registry = GuardedRegistry(plain.plugins, self.runner, in_tree=plain.in_tree)
        points = registry.extension_points_for_configuration
        configuration = load_configuration(HEADER, extension_points_of=points)
        configuration = configuration.with_plugins((plugin, 1) for plugin in self.plugins)
        return assemble_scheduler(
            configuration,
            registry,
            feature_gates=FeatureGates(),
            pick=first_by_name,
            start_ns=self.clock.now_ns(),
            queue_type=InstrumentedQueue,
        )

    def add(self, *items: KubernetesObject) -> None:
        """Create objects, or replace existing ones by these versions."""
        for item in items:
            key = f"{type(item).__name__} {item.key}"
            old = self.objects.get(key)
            self.objects[key] = item
            kind = ADDED if old is None else MODIFIED
            self.host.post([ChangeEvent(kind, type(item), old, item, 1)])

    def delete(self, item: KubernetesObject) -> None:
        """Delete an object."""
        old = self.objects.pop(f"{type(item).__name__} {item.key}")
        self.host.post([ChangeEvent(DELETED, type(item), old, None, 1)])

    def run(self) -> None:
        """Run the host, bind pods and delete preempted ones until nothing is left to do at the present time."""
        self.host.schedule_current_instant()
        while self._done < len(self.actions):
            action = self.actions[self._done]
            self._done += 1
            if isinstance(action, Bind):
                self._bind(action)
            elif isinstance(action, Evict) and f"Pod {action.pod.key}" in self.objects:
                self.delete(action.pod)
            self.host.schedule_current_instant()

    def _bind(self, action: Bind) -> None:
        pod = self.objects.get(f"Pod {action.pod.key}")
        if action.pod.key in self.refuses or not isinstance(pod, Pod):
            self.host.binding_failed(action.pod, "the cluster refuses it")
            return
        self.add(structs.replace(pod, spec=structs.replace(pod.spec, node_name=action.node_name)))

    def pass_seconds(self, seconds: float) -> None:
        """Advance the clock and stop at each timer on the way."""
        end_ns = self.clock.now_ns() + int(seconds * SECOND)
        while True:
            due = self.host.call(self.host.next_instant_of)
            if due is None or due > end_ns:
                break
            self.clock.jump(due)
            self.run()
        self.clock.jump(end_ns)
        self.run()

    def nodes_of(self) -> dict[str, str]:
        """Return the node of each pod by the pod's name; the empty string for pods that wait."""
        return {item.metadata.name: item.spec.node_name for item in self.objects.values() if isinstance(item, Pod)}

    def check(self) -> None:
        """Raise AssertionError if the scheduler's state is inconsistent or it still has assumed pods."""

        def look(scheduler: Scheduler) -> None:
            scheduler.state.check_invariants()
            scheduler.queue.check_invariants()
            assert not scheduler.assumed
            assert not scheduler.bindings.pending
            assert not len(scheduler.waiting_pods)
            bound = {item.key for item in self.objects.values() if isinstance(item, Pod) and item.spec.node_name}
            assert set(scheduler.state.pods) == bound

        self.host.call(look)

    def messages_of(self, name: str) -> list[str]:
        """Return the result of each attempt of a pod: the message, or the chosen node if the message is empty."""
        numbers = self.decisions.numbers_of(f"default/{name}")
        return [self.decisions[number].message or self.decisions[number].node for number in numbers]


def small_cluster(*plugins: type[Plugin[Any]], nodes: int = 2, **more: Any) -> Cluster:
    """Return a cluster with nodes of 4 CPUs."""
    cluster = Cluster(*plugins, **more)
    cluster.add(*(make_node(f"n{number}").capacity(cpu="4", memory="8Gi", pods="20").obj() for number in range(nodes)))
    cluster.run()
    return cluster


def small_pod(name: str, **requests: str) -> Pod:
    return make_pod(name).uid(f"uid-{name}").req(requests or {"cpu": "1"}).obj()


@contextmanager
def closing(cluster: Cluster) -> Iterator[Cluster]:
    """Stop the host of a cluster at the end."""
    try:
        yield cluster
    finally:
        cluster.host.stop()


def incidents(cluster: Cluster) -> Sequence[tuple[str, str]]:
    """Return the extension points at which plugins failed, each with the exception."""
    return [(it.point, it.exception) for it in cluster.runner.incidents()]
