"""Assemble a classic scheduler from a provider or a Policy: the whole of it in reading order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from msgspec.structs import replace

from bayplan.base.random_streams import RandomStreams
from bayplan.engine.classic.cycle import CycleSettings
from bayplan.engine.classic.queue import ClassicQueue
from bayplan.engine.classic.scheduler import ClassicScheduler
from bayplan.engine.classic.select_host import reservoir_pick
from bayplan.engine.node_sampling import NodeSampling
from bayplan.engine.records import RecordLevel
from bayplan.engine.select_host import Pick
from bayplan.framework.extender import Extender
from bayplan.framework.feature_gates import FeatureGates
from bayplan.framework.plugin import Handle, Plugin, PreFilterPlugin, PreScorePlugin
from bayplan.framework.profile import Profile
from bayplan.framework.registry import Registry
from bayplan.objects.classic_requests import classic_accounting
from bayplan.objects.pod import Pod
from bayplan.plugins.classic.algorithms import PREDICATE_ORDER, Algorithm
from bayplan.plugins.classic.check_volume_binding import CheckVolumeBinding
from bayplan.plugins.classic.configuration import ClassicConfiguration
from bayplan.plugins.default_binder import DefaultBinder
from bayplan.plugins.priority_sort import PrioritySort
from bayplan.state.cluster_state import ClusterState

DEFAULT_SCHEDULER_NAME = "default-scheduler"


def assemble_classic_scheduler(
    configuration: ClassicConfiguration,
    *,
    seed: int = 0,
    start_ns: int = 0,
    record_level: RecordLevel = RecordLevel.SUMMARY,
    pick: Pick | None = None,
    state: ClusterState | None = None,
    sampling: bool = True,
    extenders: Sequence[Extender] = (),
) -> ClassicScheduler:
    """Return a classic scheduler, for an empty cluster unless it is given a state.

    Args:
        configuration: provider or Policy, and gates.
        seed: of the streams that choose among equally good nodes.
        start_ns: when the scheduler starts; its timers are aligned to it.
        record_level: how much is recorded.
        pick: how one of several best nodes is chosen; by reservoir from the seeded stream where it is not given.
        state: a cluster that exists already; made by `classic_state`.
        sampling: whether a search ends when it has found enough nodes; else all are looked at.
        extenders: those of the Policy, connected by the host; without them none is asked.

    Raises:
        ConfigurationError: upstream would not start with this configuration.
    """
    state = state if state is not None else classic_state(configuration)
    profile, _ = classic_profile(configuration, state)
    # The queue asks for the newest version of a pod when one fails: the same pods that the event handlers keep.
    pods: dict[str, Pod] = {key: info.pod for key, info in state.pods.items()}
    queue = ClassicQueue(pods.get, start_ns=start_ns)
    # Where upstream draws lots, among equally good nodes, so do we.
    streams = RandomStreams(seed)
    settings = CycleSettings(
        pick if pick is not None else seeded_pick(streams, "select_host"),
        configuration.always_check_all_predicates,
        NodeSampling(configuration.percentage_of_nodes_to_score) if sampling else None,
    )
    return ClassicScheduler(
        state,
        {profile.scheduler_name: profile},
        queue,
        pods,
        settings=settings,
        pick_node=pick if pick is not None else seeded_pick(streams, "preemption_node"),
        non_preempting=configuration.gates.non_preempting_priority,
        disable_preemption=configuration.disable_preemption,
        extenders=extenders,
        record_level=record_level,
    )


def classic_state(configuration: ClassicConfiguration) -> ClusterState:
    """Return an empty cluster that counts requests as the classic scheduler does."""
    return ClusterState(account=classic_accounting(pod_overhead=configuration.gates.pod_overhead))


def seeded_pick(streams: RandomStreams, name: str) -> Pick:
    """Return a choice by reservoir that draws from one of the streams of a run."""
    return reservoir_pick(streams.stream(name).random)


def classic_profile(configuration: ClassicConfiguration, state: ClusterState) -> tuple[Profile, Profile]:
    """Return the profile of the scheduler, and one of the predicates that are configured and never asked.

    Raises:
        ConfigurationError: upstream would not start with this configuration.
    """
    algorithms = configuration.algorithms()
    arguments = configuration.arguments(algorithms)
    classes: dict[str, type[Plugin[Any]]] = {PrioritySort.name: PrioritySort, DefaultBinder.name: DefaultBinder}
    given: dict[str, object] = {}

    def named(algorithm: Algorithm) -> str:
        name = algorithm.name if algorithm.name not in classes else f"{algorithm.name} (priority)"
        # A class carries the name that its rule has in this configuration.
        classes[name] = cast("type[Plugin[Any]]", type(algorithm.kind.__name__, (algorithm.kind,), {"name": name}))
        given[name] = replace(arguments, argument=algorithm.argument)
        return name

    asked = [named(item) for item in algorithms.predicates if item.name in PREDICATE_ORDER]
    others = [named(item) for item in algorithms.predicates if item.name not in PREDICATE_ORDER]
    priorities = [(named(item), item.weight) for item in algorithms.priorities]
    binding = [name for name in asked if issubclass(classes[name], CheckVolumeBinding)]
    registry, handle = Registry(classes), Handle(state, FeatureGates(), DEFAULT_SCHEDULER_NAME)
    points: dict[str, list[tuple[str, int]]] = {
        "queue_sort": [(PrioritySort.name, 0)],
        "pre_filter": _of_type(asked, classes, PreFilterPlugin),
        "filter": [(name, 0) for name in asked],
        "pre_score": _of_type([name for name, _ in priorities], classes, PreScorePlugin),
        "score": priorities,
        # Volumes are assumed with the pod, and written before it is bound.
        "reserve": [(name, 0) for name in binding],
        "pre_bind": [(name, 0) for name in binding],
        "bind": [(DefaultBinder.name, 0)],
    }
    never_asked: dict[str, list[tuple[str, int]]] = {
        "pre_filter": _of_type(others, classes, PreFilterPlugin),
        "filter": [(name, 0) for name in others],
    }
    return (
        Profile(DEFAULT_SCHEDULER_NAME, points, arguments=given, registry=registry, handle=handle),
        Profile(DEFAULT_SCHEDULER_NAME, never_asked, arguments=given, registry=registry, handle=handle),
    )


def _of_type(
    names: Sequence[str], classes: Mapping[str, type[Plugin[Any]]], kind: type[Plugin[Any]]
) -> list[tuple[str, int]]:
    return [(name, 0) for name in names if issubclass(classes[name], kind)]
