"""Assemble a classic scheduler from a provider or a Policy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace as replace_registry
from typing import Any, cast

from msgspec.structs import replace

from bayplan.base.errors import PluginError
from bayplan.base.random_streams import RandomStreams
from bayplan.classic.algorithms import PREDICATE_ORDER, Algorithm, Algorithms
from bayplan.classic.configuration import ClassicConfiguration
from bayplan.classic.cycle import CycleSettings
from bayplan.classic.plugins.check_volume_binding import CheckVolumeBinding
from bayplan.classic.queue import ClassicQueue
from bayplan.classic.requests import classic_accounting
from bayplan.classic.scheduler import ClassicScheduler
from bayplan.classic.select_host import reservoir_pick
from bayplan.engine.queue_options import QueueOptions
from bayplan.engine.records import RecordLevel
from bayplan.engine.select_host import NodeSampling, Pick
from bayplan.framework.extender import Extender
from bayplan.framework.feature_gates import FeatureGates
from bayplan.framework.plugin import Handle, Plugin, PreFilterPlugin, PreScorePlugin
from bayplan.framework.profile import Profile
from bayplan.framework.registry import Registry
from bayplan.framework.waiting_pods import WaitingPods
from bayplan.objects.pod import Pod
from bayplan.plugins.default_binder import DefaultBinder
from bayplan.plugins.priority_sort import PrioritySort
from bayplan.state.cluster_state import ClusterState

DEFAULT_SCHEDULER_NAME = "default-scheduler"

CUSTOM_POINTS = (
    "pre_filter",
    "filter",
    "pre_score",
    "score",
    "reserve",
    "permit",
    "pre_bind",
    "bind",
    "post_bind",
)
"""The extension points at which the scheduling framework of 1.16 runs plugins."""

NO_PLUGINS = Registry({})


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
    queue_type: type[ClassicQueue] = ClassicQueue,
    scheduler_name: str = DEFAULT_SCHEDULER_NAME,
    registry: Registry = NO_PLUGINS,
    plugins: Sequence[tuple[str, int]] = (),
) -> ClassicScheduler:
    """Return a classic scheduler for an empty cluster, or for `state` if one is given.

    Args:
        configuration: the provider or Policy, and gates.
        seed: the seed of the streams that choose among equally good nodes.
        start_ns: the time when the scheduler starts; its timers are aligned to it.
        record_level: the detail of recorded decisions.
        pick: the function that chooses one of several best nodes; by default, reservoir sampling from the seeded
            stream.
        state: an existing cluster, created by `classic_state`.
        sampling: whether to stop filtering when enough feasible nodes are found; False: filter all nodes.
        extenders: the extenders of the Policy, connected by the host.
        queue_type: the class of the scheduling queue.
        scheduler_name: the scheduler name of its pods.
        registry: the registry with the custom plugins.
        plugins: the names and weights of enabled custom plugins.

    Raises:
        ConfigurationError: the configuration is invalid.
        PluginError: a custom plugin cannot be created, or has an extension point that 1.16 lacks.
    """
    state = state if state is not None else classic_state(configuration)
    # The queue looks up the newest version of a failed pod in the same mapping that the event handlers update.
    pods: dict[str, Pod] = {key: info.pod for key, info in state.pods.items()}
    waiting_pods = WaitingPods()
    handle = Handle(state, FeatureGates(), scheduler_name, None, extenders, waiting_pods, pods)
    profile, _ = classic_profile(configuration, handle, registry, plugins)
    queue = queue_type({}, {}, pods.get, options=QueueOptions(start_ns=start_ns))
    # As upstream, choose at random among equally good nodes.
    streams = RandomStreams(seed)
    settings = CycleSettings(
        pick if pick is not None else seeded_pick(streams, "select_host"),
        configuration.always_check_all_predicates,
        NodeSampling(configuration.percentage_of_nodes_to_score) if sampling else None,
        frozenset(name for name, _ in plugins),
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
        waiting_pods=waiting_pods,
    )


def classic_state(configuration: ClassicConfiguration) -> ClusterState:
    """Return an empty cluster that counts requests as the classic scheduler does."""
    return ClusterState(account=classic_accounting(pod_overhead=configuration.gates.pod_overhead))


def seeded_pick(streams: RandomStreams, name: str) -> Pick:
    """Return a pick by reservoir sampling that draws from a named stream."""
    return reservoir_pick(streams.stream(name).random)


def classic_profile(
    configuration: ClassicConfiguration,
    handle: Handle,
    registry: Registry = NO_PLUGINS,
    custom: Sequence[tuple[str, int]] = (),
) -> tuple[Profile, Profile]:
    """Return the profile of the scheduler, and a profile with the configured predicates that never run.

    Args:
        configuration: the provider or Policy, and gates.
        handle: the interface of plugins to the scheduler.
        registry: the registry with the custom plugins.
        custom: the names and weights of enabled custom plugins; they run last.

    Raises:
        ConfigurationError: the configuration is invalid.
        PluginError: a custom plugin cannot be created, or has an extension point that 1.16 lacks.
    """
    algorithms = configuration.algorithms()
    arguments = configuration.arguments(algorithms)
    classes: dict[str, type[Plugin[Any]]] = {PrioritySort.name: PrioritySort, DefaultBinder.name: DefaultBinder}
    given: dict[str, object] = {}
    _check_custom_plugins(registry, custom, [*algorithms.predicates, *algorithms.priorities])

    by_name = profile_names(algorithms)
    for name, item in (*by_name[0].items(), *by_name[1].items()):
        # The name of the class must be the name of its rule in this configuration.
        kind = type(item.kind.__name__, (item.kind,), {"name": name, "__module__": item.kind.__module__})
        classes[name] = cast("type[Plugin[Any]]", kind)
        given[name] = replace(arguments, argument=item.argument)
    predicates = [name for name, item in by_name[0].items() if item.name in PREDICATE_ORDER]
    others = [name for name, item in by_name[0].items() if item.name not in PREDICATE_ORDER]
    priorities = [(name, item.weight) for name, item in by_name[1].items()]
    binding = [name for name in predicates if issubclass(classes[name], CheckVolumeBinding)]
    points: dict[str, list[tuple[str, int]]] = {
        "queue_sort": [(PrioritySort.name, 0)],
        "pre_filter": _of_type(predicates, classes, PreFilterPlugin),
        "filter": [(name, 0) for name in predicates],
        "pre_score": _of_type([name for name, _ in priorities], classes, PreScorePlugin),
        "score": priorities,
        # Volumes are assumed when the pod is assumed, and written before it is bound.
        "reserve": [(name, 0) for name in binding],
        "permit": [],
        "pre_bind": [(name, 0) for name in binding],
        "bind": [],
        "post_bind": [],
    }
    unused_points: dict[str, list[tuple[str, int]]] = {
        "pre_filter": _of_type(others, classes, PreFilterPlugin),
        "filter": [(name, 0) for name in others],
    }
    in_tree = frozenset(classes)
    for name, weight in custom:
        classes[name] = registry.plugins[name]
        for point in registry.extension_points_of(name):
            points[point].append((name, weight if point == "score" else 0))
    points["bind"].append((DefaultBinder.name, 0))
    made_by = replace_registry(registry, plugins=classes, in_tree=in_tree)
    return (
        Profile(handle.scheduler_name, points, arguments=given, registry=made_by, handle=handle),
        Profile(handle.scheduler_name, unused_points, arguments=given, registry=made_by, handle=handle),
    )


def profile_names(algorithms: Algorithms) -> tuple[dict[str, Algorithm], dict[str, Algorithm]]:
    """Return predicates and priorities by their names in a profile.

    A priority with the same name as a predicate gets a suffix.
    """
    predicates = {item.name: item for item in algorithms.predicates}
    priorities = {
        f"{item.name} (priority)" if item.name in predicates else item.name: item for item in algorithms.priorities
    }
    return predicates, priorities


def _check_custom_plugins(registry: Registry, custom: Sequence[tuple[str, int]], taken: Sequence[Algorithm]) -> None:
    """Raise PluginError if the classic scheduler does not support one of the custom plugins."""
    names = {algorithm.name for algorithm in taken}
    for name, _ in custom:
        if name in names:
            raise PluginError(
                f"plugin {name} has the name of a predicate or priority", hint="another `name` in the class"
            )
        for point in registry.extension_points_of(name):
            if point not in CUSTOM_POINTS:
                wanted = f"one of {', '.join(CUSTOM_POINTS)}"
                raise PluginError(f"plugin {name} in classic mode", got=f"extension point {point}", wanted=wanted)


def _of_type(
    names: Sequence[str], classes: Mapping[str, type[Plugin[Any]]], kind: type[Plugin[Any]]
) -> list[tuple[str, int]]:
    return [(name, 0) for name in names if issubclass(classes[name], kind)]
