"""A cluster for notebooks and tests: nodes and pods go in, decisions come out, a fork costs a copy of some arrays."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

from msgspec.structs import replace

from bayplan.app.mode import Mode
from bayplan.app.scheduler_setup import SchedulerSetup
from bayplan.app.sources.cluster_source import ClusterSource, SourceOptions
from bayplan.app.sources.opening import open_source
from bayplan.base.errors import InputError
from bayplan.cluster.volume_controller import volume_writes
from bayplan.engine.actions import Action, Bind, Evict, Update
from bayplan.engine.queued_pod import key_of
from bayplan.engine.records import Decision, RecordLevel, Records
from bayplan.engine.scheduler import Scheduler
from bayplan.extender.connections import ExtenderConnections
from bayplan.extender.tls_check import check_extender_tls
from bayplan.formats.inputs import load_inputs
from bayplan.framework.configuration.loading import (
    SchedulerConfiguration,
    default_configuration,
    load_configuration,
    load_configuration_mapping,
)
from bayplan.framework.feature_gates import FeatureGates
from bayplan.framework.plugin import Plugin
from bayplan.framework.registry import Registry
from bayplan.objects.meta import KubernetesObject
from bayplan.objects.node import Node
from bayplan.objects.pod import Pod
from bayplan.plugins.registry import in_tree_registry
from bayplan.state.cluster_state import ClusterState

if TYPE_CHECKING:
    from bayplan.classic.configuration import ClassicConfiguration


class Cluster:
    """A cluster with a scheduler, without time: pods are scheduled when they are added, and bound at once.

    Args:
        objects: nodes, pods (bound ones stay where they are) and whatever else scheduling reads.
        configuration: a KubeSchedulerConfiguration as a mapping or YAML text; the default one if not given. Its HTTP
            extenders are asked.
        classic: a provider or Policy of the classic scheduler, which then decides instead; `configuration` and `feature_gates`
            are then not read.
        plugins: custom ones, enabled in every profile with weight 1. registry: where others come from; in-tree ones if not given.
        feature_gates: gates to set.
        seed: of the choice among equally good nodes.
        record_level: how much of each decision is kept.

    Raises:
        InputError: a configuration or a plugin that can't be used.
    """

    def __init__(
        self,
        objects: Iterable[KubernetesObject] = (),
        *,
        configuration: Mapping[str, object] | str | None = None,
        classic: ClassicConfiguration | None = None,
        plugins: Sequence[type[Plugin[Any]]] = (),
        registry: Registry | None = None,
        feature_gates: Mapping[str, bool] | None = None,
        seed: int = 0,
        record_level: RecordLevel = RecordLevel.FULL,
    ) -> None:
        if registry is None:
            registry = in_tree_registry() if classic is None else Registry({})
        registry = registry.with_plugins(*plugins)
        gates = FeatureGates.from_mapping(feature_gates or {})
        self.source: ClusterSource | None = None
        self.seed = seed
        self._record_level = record_level
        self._setup = _setup_of(configuration, classic, registry, gates, plugins)
        weakref.finalize(self, self._setup.connections.close)
        self.scheduler = self._assemble(None)
        self.add(*objects)

    @classmethod
    def open(cls, *paths: str, record_level: RecordLevel = RecordLevel.FULL, **options: Any) -> Self:
        """Return a cluster as it is now: files, a result directory, a running Bayplan by its URL, or ``context="NAME"``.

        Args:
            paths: see `bayplan.app.sources.cluster_source.SourceOptions`, whose other fields are `options`.
            record_level: how much of each decision is kept.

        Raises:
            InputError: the source can't be read.
        """
        return cls.of(open_source(SourceOptions(paths=paths, **options)), record_level=record_level)

    @classmethod
    def of(cls, source: ClusterSource, *, seed: int = 0, record_level: RecordLevel = RecordLevel.FULL) -> Self:
        """Return a cluster with the objects of a source and its scheduler; pods that wait are not scheduled yet."""
        cluster = object.__new__(cls)
        setup = source.scheduler
        cluster.source, cluster.seed, cluster._record_level, cluster._setup = source, seed, record_level, setup
        weakref.finalize(cluster, setup.connections.close)
        cluster.scheduler = cluster._assemble(None)
        cluster.add(*source.objects)
        return cluster

    @classmethod
    def load(cls, *paths: str, **options: Any) -> Self:
        """Return a cluster with the objects of manifests (files, folders, globs); `options` as for the class."""
        return cls(load_inputs(paths).manifest.objects(), **options)

    def _assemble(self, state: ClusterState | None) -> Scheduler:
        return self._setup.make(seed=self.seed, record_level=self._record_level, state=state)

    @property
    def state(self) -> ClusterState:
        """Return the columns; don't write them."""
        return self.scheduler.state

    @property
    def records(self) -> Records:
        """Return what was decided so far."""
        return self.scheduler.records

    @property
    def pending(self) -> list[str]:
        """Return the keys of the pods that have no node."""
        return [
            key for key, pod in self.scheduler.pods.items() if key not in self.state.pods and not pod.spec.node_name
        ]

    def add(self, *objects: KubernetesObject) -> None:
        """Add objects, or replace those of the same name; pods without a node wait for `schedule`."""
        for item in objects:
            old: KubernetesObject | None = None
            if isinstance(item, Pod):
                old = self.scheduler.pods.get(key_of(item))
            elif isinstance(item, Node):
                row = self.state.nodes.row_of.get(item.metadata.name)
                old = None if row is None else self.state.nodes.nodes[row]
            self._carry_out(self.scheduler.handle(old, item, 0))

    def schedule(self, *pods: Pod) -> list[Decision]:
        """Add pods, then schedule until no pod is ready; return the decisions in order (full records only)."""
        self.add(*pods)
        before = len(self.records)
        while (report := self.scheduler.schedule_one(0)) is not None:
            self._carry_out(report.actions)
        if self._record_level is not RecordLevel.FULL:
            return []
        return [self.records.decision(number) for number in range(before, len(self.records))]

    def remove(self, *names: str) -> None:
        """Remove pods (``namespace/name``, or ``name`` in the namespace default) and nodes (``name``); pods first."""
        for name in names:
            key = name if "/" in name else f"default/{name}"
            pod = self.scheduler.pods.get(key)
            row = self.state.nodes.row_of.get(name)
            if pod is not None:
                self._carry_out(self.scheduler.handle(pod, None, 0))
            elif row is not None:
                self._carry_out(self.scheduler.handle(self.state.nodes.nodes[row], None, 0))
            else:
                raise InputError(f"no pod {key} and no node {name}")

    def node_of(self, pod: str) -> str | None:
        """Return the node of a pod (``namespace/name``, or ``name`` in the namespace default), or None."""
        info = self.state.pods.get(pod if "/" in pod else f"default/{pod}")
        return None if info is None else self.state.nodes.names[info.row]

    def fork(self) -> Cluster:
        """Return an independent copy of the cluster, to try something out; its records and its random choices start anew."""
        other = object.__new__(Cluster)
        other.source, other.seed, other._record_level = self.source, self.seed, self._record_level
        other._setup = replace(self._setup, connections=self._setup.connect())
        weakref.finalize(other, other._setup.connections.close)
        other.scheduler = other._assemble(self.state.fork())
        for key in self.pending:
            other.add(self.scheduler.pods[key])
        return other

    def _carry_out(self, actions: Iterable[Action]) -> None:
        """Do what a host does: bind at once, and delete victims at once."""
        for action in actions:
            if isinstance(action, Bind):
                pod = self.scheduler.pods[key_of(action.pod)]
                bound = replace(pod, spec=replace(pod.spec, node_name=action.node_name))
                self._carry_out(self.scheduler.handle(pod, bound, 0))
            elif isinstance(action, Update):
                catalog = self.state.catalog
                node = self.state.nodes.nodes[self.state.nodes.row_of[action.node_name]]
                for item in volume_writes(action.item, catalog, node):
                    self._carry_out(self.scheduler.handle(catalog.get(type(item), item.key), item, 0))
            elif isinstance(action, Evict):
                victim = self.scheduler.pods.get(key_of(action.pod))
                if victim is not None:
                    self._carry_out(self.scheduler.handle(victim, None, 0))


def _setup_of(
    configuration: Mapping[str, object] | str | None,
    classic: ClassicConfiguration | None,
    registry: Registry,
    gates: FeatureGates,
    plugins: Sequence[type[Plugin[Any]]],
) -> SchedulerSetup:
    """Return the scheduler that the arguments of a cluster ask for."""
    points = registry.extension_points_for_configuration
    loaded: SchedulerConfiguration
    if classic is not None:
        # A second scheduler, which most programs need not import.
        from bayplan.app.classic_mode import classic_scheduler_configuration, connect_extenders

        loaded = classic_scheduler_configuration(classic, check_tls=check_extender_tls)
    elif configuration is None:
        loaded = default_configuration(gates, extension_points_of=points)
    elif isinstance(configuration, str):
        loaded = load_configuration(configuration, feature_gates=gates, extension_points_of=points)
    else:
        loaded = load_configuration_mapping(configuration, feature_gates=gates, extension_points_of=points)
    loaded = loaded.with_plugins([(plugin.name, 1) for plugin in plugins], points)
    connections = ExtenderConnections(loaded.extenders) if classic is None else connect_extenders(loaded)
    return SchedulerSetup(
        mode=Mode.CURRENT if classic is None else Mode.CLASSIC,
        configuration=loaded,
        registry=registry,
        feature_gates=gates,
        custom_plugins=(),
        connections=connections,
    )
