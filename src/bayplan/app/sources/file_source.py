"""Files as a source: dumps stay unchanged; manifests that were in no cluster yet are first applied to a virtual one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import BinaryIO

from msgspec.structs import replace

from bayplan.analysis.units import format_duration
from bayplan.app.custom_plugins import reported_plugin_errors
from bayplan.app.scheduler_setup import SchedulerOptions, SchedulerSetup, read_setup
from bayplan.app.sources.assumptions import (
    configuration_assumption,
    newest_time_ns,
    sampling_assumption,
    scheduler_flags,
    scheduler_name_assumption,
    time_text,
)
from bayplan.app.sources.cluster_source import (
    Assumption,
    ClusterSource,
    SourceKind,
    SourceOptions,
    UnreadKind,
    in_order,
)
from bayplan.app.sources.missing_kinds import missing_assumptions, missing_kinds
from bayplan.base.counted_nouns import format_count
from bayplan.base.errors import ConfigurationError, InputError
from bayplan.base.garbage_collector import rare_collections
from bayplan.base.random_streams import RandomStreams
from bayplan.engine.event_driven_queue import EventDrivenQueue
from bayplan.engine.records import RecordLevel
from bayplan.formats.inputs import Inputs, load_inputs
from bayplan.formats.manifest import Manifest
from bayplan.objects.meta import KubernetesObject
from bayplan.objects.namespace import Namespace
from bayplan.objects.node import Node
from bayplan.objects.pod import Pod
from bayplan.objects.policy import LimitRange, PriorityClass, ResourceQuota
from bayplan.objects.workloads import DaemonSet, Deployment, Job, ReplicaSet, ReplicationController, StatefulSet
from bayplan.sim import arrivals
from bayplan.sim.pod_count import check_pod_count
from bayplan.sim.result import SimulationResult
from bayplan.sim.simulator import Simulator
from bayplan.sim.virtual_cluster import VirtualCluster

_WORKLOADS = (DaemonSet, Deployment, Job, ReplicaSet, ReplicationController, StatefulSet)
_FOR_ADMISSION = (Namespace, PriorityClass, LimitRange, ResourceQuota, Node)


def open_files(options: SourceOptions, *, stdin: BinaryIO | None = None, inputs: Inputs | None = None) -> ClusterSource:
    """Open files as a source; pass `inputs` if the files have been read already.

    Raises:
        InputError: see `bayplan.formats.inputs.load_inputs` and `bayplan.app.scheduler_setup.read_setup`.
    """
    # Report errors in the configuration before reading anything large.
    setup = read_setup_of(options)
    inputs = inputs or load_inputs(options.paths, stdin=stdin, strict=options.strict)
    if is_dump(inputs):
        return _dump(options, setup, inputs)
    return _manifests(options, setup, inputs)


def read_setup_of(
    options: SourceOptions, *, feature_gates: str = "", text: str = "", where: str = ""
) -> SchedulerSetup:
    """Return the scheduler setup of the user's options, with the source's settings for options that are not set.

    Args:
        options: the options of the user.
        feature_gates, text, where: the settings of the source; the user's settings take precedence.
    """
    return read_setup(
        SchedulerOptions(
            mode=options.mode,
            config=options.config,
            algorithm_provider=options.algorithm_provider,
            feature_gates=options.feature_gates or feature_gates,
            plugins=options.plugins,
            text=text,
            where=where,
        )
    )


def with_source_gates(
    options: SourceOptions, setup: SchedulerSetup, objects: Sequence[KubernetesObject]
) -> tuple[SchedulerSetup, list[Assumption]]:
    """Return the setup, with the feature gates of the cluster's scheduler if its pod shows them, and assumptions."""
    pod, flags = scheduler_flags(objects)
    gates = flags.get("feature-gates", "")
    if not gates or options.feature_gates or options.config is not None:
        return setup, []
    try:
        found = read_setup_of(options, feature_gates=gates)
    except ConfigurationError as problem:
        return setup, [Assumption("configuration", f"the feature gates of {pod} can't be used: {problem}")]
    setup.connections.close()
    return found, [Assumption("configuration", f"feature gates are those of {pod}: {gates}")]


def is_dump(inputs: Inputs) -> bool:
    """Return whether objects have been in a cluster: any pod or node has a uid, or any pod has an owner."""
    return inputs.trace is None and any(
        bool(item.metadata.uid or (isinstance(item, Pod) and item.metadata.owner_references))
        for item in inputs.manifest.objects()
        if isinstance(item, Pod | Node)
    )


# --- a dump -----------------------------------------------------------------------------------------------------------


def _dump(options: SourceOptions, setup: SchedulerSetup, inputs: Inputs) -> ClusterSource:
    found = list(inputs.manifest.objects())
    setup, gates = with_source_gates(options, setup, found)
    new = new_objects(found)
    now_ns = newest_time_ns(found)
    assumptions = [configuration_assumption(options, found), *gates]
    if now_ns:
        assumptions.append(
            Assumption(
                "time", f"the current time is taken to be {time_text(now_ns)}, the newest timestamp in the input"
            )
        )
    else:
        assumptions.append(
            Assumption("time", "the input has no timestamps, so it is assumed to show the current state")
        )
    if new:
        found, problems = _with_new_pods(found, new, options, now_ns)
        applied = format_count(len(new), "object")
        text = f"{applied} not in the cluster yet: pods of new workloads are created, and stay pending"
        assumptions.append(Assumption("objects", text))
        assumptions += [Assumption("objects", problem) for problem in problems]
    missing = missing_kinds(found)
    assumptions += missing_assumptions(missing)
    return _source(options, SourceKind.DUMP, setup, found, now_ns, assumptions, inputs, missing)


def new_objects(objects: Sequence[KubernetesObject]) -> list[KubernetesObject]:
    """Return the objects that a dump's cluster does not have yet: workloads without pods, and pods to admit."""
    owners = {
        (owner.kind, item.metadata.namespace, owner.name)
        for item in objects
        for owner in item.metadata.owner_references
    }
    found: list[KubernetesObject] = []
    for item in objects:
        metadata = item.metadata
        if metadata.uid or metadata.owner_references or metadata.resource_version:
            continue
        if isinstance(item, Pod):
            is_new = not item.spec.node_name and not item.status.phase
        else:
            owns = (type(item).__name__, metadata.namespace, metadata.name) in owners
            is_new = isinstance(item, _WORKLOADS) and not owns and not _has_status(item)
        if is_new:
            found.append(item)
    return found


def _has_status(item: KubernetesObject) -> bool:
    status = getattr(item, "status", None)
    return status is not None and status != type(status)()


def _with_new_pods(
    objects: Sequence[KubernetesObject], new: Sequence[KubernetesObject], options: SourceOptions, now_ns: int
) -> tuple[list[KubernetesObject], list[str]]:
    """Return the objects with the pods of new workloads and with new pods after admission, and the errors."""
    now_ns = now_ns or arrivals.DEFAULT_START_NS
    cluster = VirtualCluster(RandomStreams(options.seed))
    known = {id(item) for item in new}
    problems: list[str] = []
    # Existing pods are included only for quotas: the result contains them unchanged.
    for item in in_order(objects):
        if not isinstance(item, (*_FOR_ADMISSION, Pod)) and id(item) not in known:
            continue
        try:
            if id(item) in known:
                cluster.apply(item, now_ns)
            else:
                cluster.put(item, now_ns)
        except InputError as problem:
            problems.append(f"{type(item).__name__} {item.key} is refused: {problem}")
    for _ in range(len(new) + 10):
        wakeup_ns = cluster.next_wakeup()
        if wakeup_ns is None or wakeup_ns > now_ns:
            break
        cluster.advance(now_ns)
    problems += [f"{key}: {problem}" for key, problem in cluster.failures().items()]
    before = {item.key for item in objects if isinstance(item, Pod) and id(item) not in known}
    made = [pod for pod in cluster.store.pods.values() if pod.key not in before]
    kept = [item for item in objects if not (isinstance(item, Pod) and id(item) in known)]
    made_owners = [item for item in cluster.store.all(ReplicaSet) if item not in kept]
    check_pod_count(made, options.max_pods, hint="--max-pods {}")
    return [*kept, *made_owners, *made], problems


# --- manifests --------------------------------------------------------------------------------------------------------


def _manifests(options: SourceOptions, setup: SchedulerSetup, inputs: Inputs) -> ClusterSource:
    """Return the cluster that results from manifests and traces after some virtual time."""
    check_pod_count(inputs.manifest.objects(), options.max_pods, hint="--max-pods {}")
    start_ns = arrivals.start_time_ns(inputs.manifest)
    with reported_plugin_errors(setup.custom_plugins), rare_collections():
        scheduler = setup.make(
            seed=options.seed, start_ns=start_ns, record_level=RecordLevel.OFF, queue_type=EventDrivenQueue
        )
        cluster = VirtualCluster(RandomStreams(options.seed))
        simulator = Simulator(scheduler, cluster, seed=options.seed, start_ns=start_ns, strict=options.strict)
        for time_ns, operation in arrivals.operations(inputs, start_ns):
            simulator.at(time_ns, operation)
        simulator.run(until_ns=start_ns + options.applied_ns)
    store = cluster.store
    objects = [item for kind in store.kinds() for item in store.all(kind)]
    text = _applied_text(options.applied_ns)
    assumptions = [configuration_assumption(options, objects), Assumption("time", text)]
    found = _source(options, SourceKind.MANIFESTS, setup, objects, simulator.now_ns, assumptions, inputs)
    return _with_failures(found, simulator.failures)


def _applied_text(spent_ns: int) -> str:
    """Return the assumption about objects that do not come from a cluster, worded alike for all questions."""
    spent = format_duration(spent_ns)
    return f"these objects were never in a cluster: they are applied and scheduled for {spent} of virtual time"


def _source(
    options: SourceOptions,
    kind: SourceKind,
    setup: SchedulerSetup,
    objects: Sequence[KubernetesObject],
    now_ns: int,
    assumptions: list[Assumption],
    inputs: Inputs,
    unread: Sequence[UnreadKind] = (),
) -> ClusterSource:
    for found in (
        sampling_assumption(setup.configuration, objects),
        scheduler_name_assumption(setup.configuration, objects),
    ):
        if found is not None:
            assumptions.append(found)
    return ClusterSource(
        name=", ".join(options.paths),
        kind=kind,
        objects=in_order(objects),
        scheduler=setup,
        now_ns=now_ns,
        assumptions=assumptions,
        unread=unread,
        warnings=inputs.manifest.warnings,
    )


def source_of(result: SimulationResult, options: SourceOptions) -> ClusterSource:
    """Return the cluster at the end of a simulation as a source.

    Args:
        result: the result of the simulation.
        options: the options of the simulation.
    """
    setup = read_setup_of(options)
    store = result.cluster.store
    objects = [item for kind in store.kinds() for item in store.all(kind)]
    text = _applied_text(max(result.end_ns - result.start_ns, options.applied_ns))
    assumptions = [configuration_assumption(options, objects), Assumption("time", text)]
    inputs = Inputs(manifest=Manifest(), trace=None)
    found = _source(options, SourceKind.MANIFESTS, setup, objects, result.end_ns, assumptions, inputs)
    return _with_failures(found, result.failures)


def _with_failures(source: ClusterSource, failures: Mapping[str, str]) -> ClusterSource:
    """Return a source with the objects that are refused, also as assumptions."""
    assumptions = [Assumption("objects", f"{name}: {problem}") for name, problem in failures.items()]
    return replace(source, failures=failures, assumptions=[*source.assumptions, *assumptions])
