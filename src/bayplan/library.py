"""`bayplan.Cluster`, for notebooks and tests: add nodes and pods, get decisions; a fork costs a copy of some arrays.

Only programs outside the package and some commands use it; no lower module imports it.
"""

from __future__ import annotations

import weakref
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from copy import copy
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import msgspec
from msgspec.structs import replace

from bayplan.analysis.explain import BEST_NODES
from bayplan.analysis.explanation import Explanation
from bayplan.analysis.pod_lookup import find_pods
from bayplan.analysis.rows import Rows
from bayplan.analysis.waits import WAITING
from bayplan.answers.capacity import DEFAULT_LIMIT, CapacityAnswer, capacity, parse_mix
from bayplan.answers.cluster_tables import NodeRow, PodRow, node_rows, pod_rows
from bayplan.answers.current_source import current_pods
from bayplan.answers.drain_rules import DrainOptions
from bayplan.answers.explain_now import explain_now
from bayplan.answers.instant_host import InstantHost
from bayplan.answers.missing_replicas import missing_replicas
from bayplan.answers.node_removal import RemovalAnswer, nodes_to_remove
from bayplan.answers.question_cluster import QuestionCluster
from bayplan.answers.trial import Trial
from bayplan.answers.unblock import Unblocking, unblock
from bayplan.answers.waiting_reasons import WaitingReason, waiting_reasons
from bayplan.answers.what_if import Answer as WhatIfAnswer
from bayplan.answers.what_if import what_if
from bayplan.app.custom_plugins import CustomPlugin
from bayplan.app.library_arguments import (
    checked_gates,
    checked_mix,
    checked_seeds,
    checked_shapes,
    checked_target,
    listed_objects,
    prices_by_node,
    reject_configuration_path,
    rescheduled,
    split_changes,
    typed_object,
    weighted_plugins,
)
from bayplan.app.option_values import converted
from bayplan.app.question_clusters import changed_setup
from bayplan.app.scheduler_setup import SchedulerOptions, SchedulerSetup
from bayplan.app.sources.cluster_source import ClusterSource, SourceOptions
from bayplan.app.sources.opening import open_source
from bayplan.base.counted_nouns import format_count
from bayplan.base.errors import InputError
from bayplan.base.html_table import table
from bayplan.cluster.owned_pods import is_finished
from bayplan.engine.records import Decision, RecordLevel, Records
from bayplan.engine.scheduler import Scheduler
from bayplan.extender.connections import ExtenderConnections
from bayplan.formats.inputs import load_inputs
from bayplan.framework.configuration.loading import default_configuration, load_configuration
from bayplan.framework.feature_gates import FeatureGates
from bayplan.framework.plugin import Plugin
from bayplan.framework.registry import Registry
from bayplan.objects.meta import KubernetesObject
from bayplan.objects.node import Node
from bayplan.objects.pod import Pod
from bayplan.objects.workloads import Job, ReplicaSet
from bayplan.plugins.registry import in_tree_registry
from bayplan.sim.result import PodTimeline
from bayplan.state.cluster_state import ClusterState

if TYPE_CHECKING:
    from bayplan.classic.configuration import ClassicConfiguration


class Cluster:
    """A cluster in memory with a scheduler and no clock: `schedule` places pending pods and binds them at once.

    Args:
        objects: the nodes, pods and everything else that scheduling reads; bound pods keep their nodes.
        configuration: a KubeSchedulerConfiguration as a mapping or YAML text; by default, kube-scheduler's defaults. Its
            HTTP extenders are called.
        classic: the settings of the classic scheduler (docs/classic.md), which is then used instead; `configuration` and
            `feature_gates` are then ignored.
        plugins: the classes of custom plugins, enabled in every profile with weight 1, or with those of a dict:
            ``{MyPlugin: 5}``.
        registry: the available plugins; by default those of kube-scheduler.
        feature_gates: the feature gates to turn on or off, by name.
        seed: the seed for the choice among equally good nodes.
        record_level: the detail of recorded decisions.

    Raises:
        InputError: an object, a configuration or a plugin is invalid.
    """

    def __init__(
        self,
        objects: Iterable[KubernetesObject | Mapping[str, object]] = (),
        *,
        configuration: Mapping[str, object] | str | None = None,
        classic: ClassicConfiguration | None = None,
        plugins: Sequence[type[Plugin[Any]]] | Mapping[type[Plugin[Any]], int] = (),
        registry: Registry | None = None,
        feature_gates: Mapping[str, bool] | None = None,
        seed: int = 0,
        record_level: RecordLevel = RecordLevel.FULL,
    ) -> None:
        listed = listed_objects(objects)
        if registry is None:
            registry = in_tree_registry() if classic is None else Registry({})
        custom = weighted_plugins(plugins)
        registry = registry.with_plugins(*(each.plugin for each in custom))
        gates = FeatureGates.from_mapping(checked_gates(feature_gates or {}))
        setup = _setup_of(configuration, classic, registry, gates, custom)
        self._begin(setup, None, seed, record_level)
        self.add(*listed)

    def _begin(
        self,
        setup: SchedulerSetup,
        source: ClusterSource | None,
        seed: int,
        record_level: RecordLevel,
        state: ClusterState | None = None,
    ) -> None:
        """Set all attributes; the scheduler is for an empty cluster unless it is given a state."""
        self.source = source
        self.seed = seed = converted(seed, int, where="seed", name="seed")
        self._record_level = record_level = converted(
            record_level, RecordLevel, where="record_level", name="record_level"
        )
        self._setup = setup
        weakref.finalize(self, setup.connections.close)
        self.scheduler = setup.make(seed=seed, record_level=record_level, state=state)
        self._host = InstantHost(self.scheduler)

    @classmethod
    def open(cls, *paths: str | Path, record_level: RecordLevel = RecordLevel.FULL, **options: Any) -> Self:
        """Return the current state of a cluster: files, a result directory, a Bayplan server by its URL, or ``context="NAME"``.

        Args:
            paths: see `bayplan.app.sources.cluster_source.SourceOptions`, whose other fields are `options`.
            record_level: the detail of recorded decisions.

        Raises:
            InputError: the source can't be read, or needs a plugin that is not in `plugins`.
        """
        for plugin in options.get("plugins", ()):
            if not isinstance(plugin, str):
                name = getattr(plugin, "__name__", repr(plugin))
                hint = f"'FILE.py:{name}', or Cluster.load(..., plugins=[{name}])"
                raise InputError("plugins", got=f"the class {name}", wanted="strings", hint=hint)
        given = SourceOptions(paths=converted(paths, Sequence[str], where="Cluster.open", name="paths"), **options)
        return cls.of(open_source(given), seed=given.seed, record_level=record_level)

    @classmethod
    def of(cls, source: ClusterSource, *, seed: int = 0, record_level: RecordLevel = RecordLevel.FULL) -> Self:
        """Return a cluster with the objects of a source and its scheduler; pending pods are not scheduled yet."""
        cluster = cls.__new__(cls)
        cluster._begin(source.scheduler, source, seed, record_level)
        cluster.add(*source.objects)
        return cluster

    @classmethod
    def load(cls, *paths: str | Path, **options: Any) -> Self:
        """Return a cluster with the objects of manifests (files, folders, globs; no traces); `options` as for the class."""
        given = converted(paths, Sequence[str], where="Cluster.load", name="paths")
        inputs = load_inputs(given)
        if inputs.trace is not None:
            hint = f"simulate(SimulationOptions(paths={[*given]}))"
            raise InputError("Cluster.load", wanted="manifests", got="a trace", hint=hint)
        return cls(inputs.manifest.objects(), **options)

    @property
    def state(self) -> ClusterState:
        """Return the state as columns; do not change them."""
        return self.scheduler.state

    @property
    def nodes(self) -> Rows[NodeRow]:
        """Return the nodes as rows, with ``to_arrow()`` and ``to_pandas()``."""
        return node_rows(self.state)

    @property
    def pods(self) -> Rows[PodRow]:
        """Return the pods as rows, with ``to_arrow()`` and ``to_pandas()``."""
        return pod_rows(self.state, self.scheduler.pods, 0 if self.source is None else self.source.now_ns)

    def _repr_html_(self) -> str:
        waiting = len(self.pending)
        counts = f"{format_count(len(self.state.nodes), 'node')}, {format_count(len(self.scheduler.pods), 'pod')}"
        shown = [
            (each.node, each.zone, each.pool, each.pods, f"{each.cpu_requested_milli:,} of {each.cpu_milli:,}")
            for each in self.nodes
        ]
        heads = ("node", "zone", "pool", "pods", "cpu requested (m)")
        return table(heads, shown, caption=f"{counts}, {waiting:,} pending")

    @property
    def records(self) -> Records:
        """Return the records of all decisions so far."""
        return self.scheduler.records

    @property
    def pending(self) -> list[str]:
        """Return the keys of the pods that wait for a node; pods that are being deleted don't."""
        placed = self.state.pods
        return [
            key
            for key, pod in self.scheduler.pods.items()
            if not pod.spec.node_name and key not in placed and pod.metadata.deletion_timestamp is None
        ]

    def add(self, *objects: KubernetesObject | Mapping[str, object]) -> None:
        """Add objects, or replace existing objects of the same name; pods without a node wait for `schedule`.

        A pod that has a node keeps it; `remove` it first to have it scheduled again.

        Args:
            objects: typed objects, or manifests as dicts, such as `Suggestion.objects`.

        Raises:
            InputError: a value is not an object of the Kubernetes API, or has no name.
        """
        for each in objects:
            item = typed_object(each, "Cluster.add")
            if isinstance(item, Pod) and item.key in self.scheduler.pods:
                # The scheduler ignores updates with an unchanged resource version, as kube-scheduler does.
                item = replace(item, metadata=replace(item.metadata, resource_version=""))
            self._host.put(item)

    def schedule(self, *pods: Pod | Mapping[str, object]) -> list[Decision]:
        """Add pods, then schedule until no pod is ready; return the decisions in order (full records only).

        Raises:
            PluginError: a plugin returned something of the wrong type. Its own exceptions are raised unchanged.
        """
        self.add(*pods)
        before = len(self.records)
        while (report := self.scheduler.schedule_one(0)) is not None:
            self._host.execute(report.actions)
        if self._record_level is not RecordLevel.FULL:
            return []
        # Skipped pods, such as terminating ones, have no full record.
        numbers = (number for number in range(before, len(self.records)) if self.records[number].frame >= 0)
        return [self.records.decision(number) for number in numbers]

    def remove(self, *names: str) -> None:
        """Remove pods (``namespace/name``, or ``name`` in the namespace default) and nodes with their pods (``name``).

        A name of both a pod and a node is the pod's.
        """
        for name in converted(names, Sequence[str], where="remove()", name="names"):
            key = name if "/" in name else f"default/{name}"
            if self._host.remove_pod(key) is not None:
                continue
            if self._host.node(name) is None:
                raise InputError("remove()", wanted="a pod or node of the cluster", got=f"'{name}'")
            self._host.remove_node(name)

    def node_of(self, pod: str) -> str | None:
        """Return the node of a pod (``namespace/name``, or ``name`` in the namespace default), or None."""
        pod = checked_target(pod)
        info = self.state.pods.get(pod if "/" in pod else f"default/{pod}")
        return None if info is None else self.state.nodes.names[info.row]

    def explain(self, target: str, *, node: str = "", best: int = BEST_NODES) -> Explanation:
        """Explain why a pod is pending, or where it would be placed if it were scheduled again in the current cluster.

        Nothing changes.

        Args:
            target: a pod (name, ``namespace/name``), or a workload: its first pending pod, or its first pod if none is pending.
            node: the node to explain plugin by plugin, with the smallest change that would avoid each rejection.
            best: the number of nodes whose scores are compared.

        Raises:
            InputError: the pod or node does not exist.
            PluginError: a plugin returned something of the wrong type. Its own exceptions are raised unchanged.
        """
        best = max(0, converted(best, int, where="best", name="best"))
        pods, lives = self.timelines(), self.find(target)
        life = next((each for each in lives if each.fate in WAITING), lives[0])
        now_ns = 0 if self.source is None else self.source.now_ns
        found = explain_now(self.trial(), pods, life, node=node, best=best, now_ns=now_ns)
        return replace(found, assumptions=self.assumptions)

    @property
    def assumptions(self) -> list[str]:
        """Return the assumptions of answers: configuration, time, objects that could not be read."""
        return [] if self.source is None else [each.text for each in self.source.assumptions]

    def timelines(self) -> list[PodTimeline]:
        """Return all pods with their workloads, in order."""
        return self._timelines(self.scheduler.pods.values())

    def find(self, target: str) -> list[PodTimeline]:
        """Return the timelines of the pods that a text refers to; finished pods only if no other pod matches.

        Raises:
            InputError: no pod matches, or the text is ambiguous.
        """
        target = checked_target(target)
        try:
            return find_pods(target, self.timelines())
        except InputError:
            objects = () if self.source is None else self.source.objects
            finished = [item for item in objects if isinstance(item, Pod) and is_finished(item)]
            with suppress(InputError):
                return find_pods(target, self._timelines(finished))
            if self.source is not None and (refusal := self.source.refusal(target)) is not None:
                raise refusal from None
            raise

    def unblock(self, target: str, *, shapes: Sequence[Node] = ()) -> Unblocking:
        """Return changes that would get a pending pod, or the pending pods of a workload, placed. The cluster does not change.

        Args:
            target: a pod (name, ``namespace/name``) or a workload (``deployment/web``).
            shapes: the shapes of nodes that could be added; by default those of the cluster's nodes.

        Raises:
            InputError: the pod or workload does not exist, or none of its pods is pending.
        """
        nodes, waiting = checked_shapes(shapes), self._waiting_pods(target)
        found = unblock(self.trial(), waiting, nodes, others=len(self.pending) - len(waiting))
        return replace(found, assumptions=self.assumptions)

    def questions(self) -> QuestionCluster:
        """Return a snapshot of the cluster for the functions of `bayplan.answers`; it does not include later changes."""
        known = self.scheduler
        objects = (*self.state.catalog.everything(), *(node for node in self.state.nodes.nodes if node is not None))
        now_ns = 0 if self.source is None else self.source.now_ns
        return QuestionCluster((*objects, *known.pods.values()), self._setup, now_ns=now_ns, seed=self.seed)

    def capacity(
        self, mix: str, *, preempts: bool = False, limit: int = DEFAULT_LIMIT, seeds: Sequence[int] = ()
    ) -> CapacityAnswer:
        """Return the number of additional copies of a workload, or of a mix (``web=3,db``), that fit. The cluster does not change.

        Args:
            mix: the workloads or pods with their proportions.
            preempts: whether copies may evict pods of lower priority.
            limit: the number of copies after which the search ends.
            seeds: additional seeds to try; the answer is then a range.

        Raises:
            InputError: a workload does not exist.
        """
        limit, mixed = converted(limit, int, where="limit", name="limit"), parse_mix(checked_mix(mix))
        return capacity(self.questions(), mixed, preempts=preempts, limit=limit, seeds=checked_seeds(seeds))

    def what_if(
        self, *changes: str, configuration: Sequence[str] = (), reschedule: str | Iterable[str] = "new"
    ) -> WhatIfAnswer:
        """Return the effect of changes, e.g. ``cluster.what_if("lose-zone=a", "scale=web:5")``. The cluster does not change.

        Args:
            changes: changes as for ``bayplan what-if``, of the cluster or the scheduler (``weight=NodeResourcesFit:5``).
            configuration: more changes of the scheduler; see `bayplan.app.question_clusters`.
            reschedule: ``new`` pods only, ``all`` from an empty cluster, or pods and workloads.

        Raises:
            InputError: a change is invalid.
        """
        of_cluster, of_scheduler = split_changes(changes, configuration)
        setup = changed_setup(self._setup, of_scheduler) if of_scheduler else None
        label, (kind, these) = ", ".join(of_scheduler), rescheduled(reschedule)
        return what_if(
            self.questions(), of_cluster, scheduler=setup, scheduler_label=label, reschedule=kind, these=these
        )

    def removable_nodes(self, *, prices: Mapping[str, float] | None = None, force: bool = False) -> RemovalAnswer:
        """Return which nodes can be drained and removed with every placed pod still placed.

        Args:
            prices: the price by node, instance type or pool, by default the annotation ``bayplan.io/price``; 1 for other nodes.
            force: whether pods without a controller may move, too.

        Raises:
            InputError: a price is invalid, or of no node.
        """
        by_node = prices_by_node(prices, [node for node in self.state.nodes.nodes if node is not None])
        return nodes_to_remove(self.questions(), prices=by_node, options=DrainOptions(force=force))

    def waiting_reasons(self) -> Rows[WaitingReason]:
        """Return the reasons why pods are pending; first those that alone block the most pods."""
        return waiting_reasons(self.trial(), [self.scheduler.pods[key] for key in self.pending])

    def _waiting_pods(self, target: str) -> list[Pod]:
        """Return the pods without a node that a target refers to.

        Raises:
            InputError: the target does not exist, or none of its pods is pending.
        """
        target, pods = checked_target(target), self.scheduler.pods
        try:
            # Most pods have a node: they are searched only for a good error message.
            lives = find_pods(target, self._timelines([pods[key] for key in self.pending]))
        except InputError:
            try:
                lives = self.find(target)
            except InputError:
                missing = missing_replicas(target, self.questions(), only_if_all=True)
                if not missing:
                    raise
                got, hint = f"a workload without pods: {missing}", f"bayplan explain {target}"
                raise InputError("unblock", got=got, wanted="a pending pod", hint=hint) from None
        found = {life.key: life.pod for life in lives if life.fate in WAITING and life.pod is not None}
        if found:
            return list(found.values())
        first = lives[0]
        got = f"{first.key}, which {first.state_text}"
        if len(lives) > 1:
            got = f"{target}, none of whose {len(lives):,} pods is pending"
        raise InputError("unblock", got=got, wanted="a pending pod", hint=f"bayplan explain {target}")

    def trial(self) -> Trial:
        """Return a fork of the cluster in which changes are tried and undone."""

        state = self.state.fork()

        def make(without: Collection[str]) -> Scheduler:
            return self._setup.make(
                seed=self.seed, record_level=RecordLevel.OFF, state=state, sampling=False, without=without
            )

        pods = self.scheduler.pods
        now_ns = 0 if self.source is None else self.source.now_ns
        unread = () if self.source is None else [each.kind for each in self.source.unread]
        return Trial(make(()), now_ns, make, waiting=[pods[key] for key in self.pending], unread=unread)

    def _timelines(self, pods: Iterable[Pod]) -> list[PodTimeline]:
        """Return pods with their workloads."""
        catalog = self.state.catalog
        return current_pods(chain(catalog.all(ReplicaSet), catalog.all(Job), pods), self.scheduler.profiles)

    def fork(self) -> Self:
        """Return an independent copy of the cluster for experiments; its records and random streams start again.

        Attributes of subclasses are copied shallowly; override `fork` to copy their contents. Cached properties are
        computed again.
        """
        other = copy(self)
        for name in vars(self):
            if isinstance(getattr(type(self), name, None), cached_property):
                delattr(other, name)
        setup = replace(self._setup, connections=self._setup.connect())
        other._begin(setup, self.source, self.seed, self._record_level, self.state.fork())
        for key in self.pending:
            other.add(self.scheduler.pods[key])
        return other


def _setup_of(
    configuration: Mapping[str, object] | str | None,
    classic: ClassicConfiguration | None,
    registry: Registry,
    gates: FeatureGates,
    custom_plugins: Sequence[CustomPlugin],
) -> SchedulerSetup:
    """Return the scheduler setup for the arguments of a cluster."""
    reject_configuration_path(configuration)
    if classic is not None:
        # A second scheduler, which most programs need not import.
        from bayplan.app.classic_setup import check_classic, library_setup

        check_classic(classic)
        return library_setup(classic, registry).enabling(custom_plugins, registry)
    points = registry.extension_points_for_configuration
    text = "" if configuration is None else configuration
    if not isinstance(text, str):
        text = msgspec.json.encode(text).decode()
    if configuration is None:
        loaded = default_configuration(gates, extension_points_of=points)
    else:
        loaded = load_configuration(configuration, feature_gates=gates, extension_points_of=points)
    setup = SchedulerSetup(
        options=SchedulerOptions(feature_gates=gates.text, text=text),
        configuration=loaded,
        registry=registry,
        feature_gates=gates,
        connections=ExtenderConnections(loaded.extenders),
    )
    return setup.enabling(custom_plugins, registry)
