"""Assemble a scheduler from a configuration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Protocol

from bayplan.base.durations import SECOND_NS
from bayplan.base.random_streams import RandomStreams
from bayplan.engine.queue import PreEnqueue, SchedulingQueue
from bayplan.engine.queue_options import QueueOptions
from bayplan.engine.queued_pod import KeyFunction, QueuedPod, SortKey, priority_sort
from bayplan.engine.records import RecordLevel
from bayplan.engine.scheduler import Scheduler
from bayplan.engine.select_host import NodeSampling, Pick, seeded_pick
from bayplan.framework.configuration.extension_points import IN_TREE_EXTENSION_POINTS
from bayplan.framework.configuration.loading import SchedulerConfiguration
from bayplan.framework.configuration.profiles import ProfileConfiguration
from bayplan.framework.events import ANY_EVENT, ClusterEvent, HintTable, QueueingHint, registrations
from bayplan.framework.extender import EXTENDER, Extender
from bayplan.framework.feature_gates import FeatureGates
from bayplan.framework.noted_calls import noting_pod
from bayplan.framework.plugin import Handle, Plugin, QueueSortPlugin
from bayplan.framework.preemption.evaluator import PreemptionChoices
from bayplan.framework.profile import Profile
from bayplan.framework.registry import Registry
from bayplan.framework.waiting_pods import WaitingPods
from bayplan.objects.pod import Pod
from bayplan.objects.requests import RequestGates
from bayplan.state.cluster_state import ClusterState


class Assemble(Protocol):
    """The signature that `assemble_scheduler` shares with the function that assembles the classic scheduler."""

    def __call__(
        self,
        configuration: SchedulerConfiguration,
        registry: Registry,
        *,
        feature_gates: FeatureGates,
        seed: int = 0,
        start_ns: int = 0,
        record_level: RecordLevel = RecordLevel.SUMMARY,
        state: ClusterState | None = None,
        queue_type: type[SchedulingQueue] = SchedulingQueue,
        sampling: bool = True,
        extenders: Sequence[Extender] = (),
    ) -> Scheduler:
        """Return a scheduler for an empty cluster, or for `state` if one is given."""


def assemble_scheduler(
    configuration: SchedulerConfiguration,
    registry: Registry,
    *,
    feature_gates: FeatureGates,
    seed: int = 0,
    start_ns: int = 0,
    record_level: RecordLevel = RecordLevel.SUMMARY,
    pick: Pick | None = None,
    state: ClusterState | None = None,
    queue_type: type[SchedulingQueue] = SchedulingQueue,
    sampling: bool = True,
    extenders: Sequence[Extender] = (),
) -> Scheduler:
    """Return a scheduler for an empty cluster, or for `state` if one is given.

    Args:
        configuration: profiles and settings, defaulted and validated.
        feature_gates: gates that change decisions.
        seed: seed of the streams that choose among equally good nodes.
        start_ns: the time when the scheduler starts; its timers are aligned to it.
        pick: the function that chooses one of several best nodes; by default, at random from a seeded stream.
        state: an existing cluster, e.g. a fork of another scheduler's.
        queue_type: the class of the scheduling queue; simulations pass `EventDrivenQueue`.
        sampling: whether to stop filtering when enough feasible nodes are found (percentageOfNodesToScore).
        extenders: the configured extenders, connected by the host.

    Raises:
        PluginError: a plugin is unknown or not allowed at its extension point.
    """
    # The columns come first: every plugin reads them through its handle.
    state = state if state is not None else ClusterState(request_gates(feature_gates))
    # The queue looks up the newest version of a failed pod in the same mapping that the event handlers update.
    pods: dict[str, Pod] = {}
    streams = RandomStreams(seed)
    waiting_pods = WaitingPods()
    choices = _preemption_choices(state, streams, pick)
    handle = Handle(state, feature_gates, "", choices, extenders, waiting_pods, pods)
    profiles = {
        profile.scheduler_name: _profile(profile, registry, replace(handle, scheduler_name=profile.scheduler_name))
        for profile in configuration.profiles
    }
    queue = queue_type(
        *_hints_and_gates(profiles, extended=bool(extenders)),
        pods.get,
        sort_key=_sort_key(next(iter(profiles.values()))),
        options=_queue_options(configuration, feature_gates, start_ns),
    )
    chooser = pick if pick is not None else seeded_pick(streams.stream("select_host").random)
    pods.update((key, info.pod) for key, info in state.pods.items())
    extended = any(extender.is_filter or extender.is_prioritizer for extender in extenders)
    scheduler = Scheduler(
        state,
        profiles,
        queue,
        pods,
        pick=chooser,
        sampling=NodeSampling(configuration.percentage_of_nodes_to_score, extended=extended) if sampling else None,
        extenders=extenders,
        record_level=record_level,
        waiting_pods=waiting_pods,
        nominates_expected=feature_gates.enabled("NominatedNodeNameForExpectation"),
    )
    scheduler.missing_plugins = _missing_plugins(configuration, registry)
    return scheduler


def _preemption_choices(state: ClusterState, streams: RandomStreams, pick: Pick | None) -> PreemptionChoices:
    # As upstream, the search for victims starts at a random node, and ties between nodes are broken at random.
    offsets = streams.stream("preemption_offset").random
    chooser = pick if pick is not None else seeded_pick(streams.stream("preemption_node").random)
    return PreemptionChoices(lambda count: int(offsets() * count), partial(chooser, state))


def _queue_options(configuration: SchedulerConfiguration, feature_gates: FeatureGates, start_ns: int) -> QueueOptions:
    return QueueOptions(
        initial_backoff_ns=configuration.declared.pod_initial_backoff_seconds * SECOND_NS,
        max_backoff_ns=configuration.declared.pod_max_backoff_seconds * SECOND_NS,
        pop_from_backoff=feature_gates.enabled("SchedulerPopFromBackoffQ"),
        start_ns=start_ns,
        request_gates=request_gates(feature_gates),
    )


def _missing_plugins(configuration: SchedulerConfiguration, registry: Registry) -> tuple[str, ...]:
    """Return the names of enabled in-tree plugins that this version does not implement, or implements only in part."""
    wanted = {
        entry.name for profile in configuration.profiles for entries in profile.plugins.values() for entry in entries
    }
    return tuple(
        name
        for name in IN_TREE_EXTENSION_POINTS
        if name in wanted and (name not in registry or registry.plugins[name].partial)
    )


def _profile(profile: ProfileConfiguration, registry: Registry, handle: Handle) -> Profile:
    """Create a profile with its plugins, except in-tree plugins that this version lacks."""
    plugins = {
        str(point): [
            (entry.name, entry.weight)
            for entry in entries
            if entry.name in registry or entry.name not in IN_TREE_EXTENSION_POINTS
        ]
        for point, entries in profile.plugins.items()
    }
    return Profile(
        profile.scheduler_name,
        plugins,
        arguments=profile.plugin_arguments,
        registry=registry,
        handle=handle,
        percentage_of_nodes_to_score=profile.percentage_of_nodes_to_score,
    )


def _hints_and_gates(
    profiles: Mapping[str, Profile], *, extended: bool
) -> tuple[HintTable, Mapping[str, Sequence[tuple[str, PreEnqueue]]]]:
    """Return, each by scheduler name, the events and hints that plugins registered, and the PreEnqueue plugins."""
    # It is unknown what extenders read, so any event may help a pod that they rejected.
    theirs: list[tuple[str, Sequence[tuple[ClusterEvent, QueueingHint | None]]]] = (
        [(EXTENDER, ((ANY_EVENT, None),))] if extended else []
    )
    hints = {
        name: registrations([*theirs, *((each.name, _events_of(each)) for each in profile.plugins.values())])
        for name, profile in profiles.items()
    }
    gates = {
        name: [(plugin.name, noting_pod(plugin, plugin.pre_enqueue)) for plugin in profile.pre_enqueue]
        for name, profile in profiles.items()
    }
    return hints, gates


def _events_of(plugin: Plugin[object]) -> Sequence[tuple[ClusterEvent, QueueingHint | None]]:
    return [(event, None if hint is None else noting_pod(plugin, hint)) for event, hint in plugin.events_to_register()]


def request_gates(feature_gates: FeatureGates) -> RequestGates:
    """Return the feature gates that affect how the requests of a pod are summed."""
    return RequestGates(
        pod_level_resources=feature_gates.enabled("PodLevelResources"),
        in_place_pod_vertical_scaling=feature_gates.enabled("InPlacePodVerticalScaling"),
        in_place_pod_level_resources_vertical_scaling=feature_gates.enabled("InPlacePodLevelResourcesVerticalScaling"),
        dra_node_allocatable_resources=feature_gates.enabled("DRANodeAllocatableResources"),
    )


def _sort_key(profile: Profile) -> KeyFunction:
    """Return the sort key function of the QueueSort plugin, which upstream requires to be the same in all profiles."""
    plugin: QueueSortPlugin[object] = profile.queue_sort[0]
    if plugin.name == "PrioritySort":
        return priority_sort
    key_of = noting_pod(plugin, plugin.sort_key)

    def sort_key(queued: QueuedPod) -> SortKey:
        return (*key_of(queued.pod, queued.timestamp_ns), queued.sequence)

    return sort_key
