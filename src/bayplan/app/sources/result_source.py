"""A result directory as a source: the cluster at the end of the simulation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from bayplan.analysis.result_directory import ResultDirectory, open_result
from bayplan.app.scheduler_setup import SchedulerSetup
from bayplan.app.sources.assumptions import (
    configuration_assumption,
    sampling_assumption,
    scheduler_name_assumption,
    time_text,
    unread_assumptions,
)
from bayplan.app.sources.cluster_source import (
    Assumption,
    ClusterSource,
    SourceKind,
    SourceOptions,
    UnreadKind,
    in_order,
)
from bayplan.app.sources.file_source import read_setup_of
from bayplan.base.errors import MissingPlugins
from bayplan.base.go_text.times import format_time
from bayplan.controllers.pod_claims import POD_CLAIM_ANNOTATION
from bayplan.objects.kinds import find_kind
from bayplan.objects.meta import KubernetesObject, OwnerReference
from bayplan.objects.pod import Pod, PodResourceClaimStatus
from bayplan.objects.resource import ResourceClaim
from bayplan.sim.result import PodFate, PodTimeline

_GONE = (PodFate.DELETED,)
_FINISHED = {PodFate.SUCCEEDED: "Succeeded", PodFate.FAILED: "Failed"}
_WORKLOAD_VERSIONS = ("apps/v1", "batch/v1", "v1")
_CONFIGURATION = (
    "kube-scheduler's defaults are assumed: a result does not contain the configuration of its run (--config)"
)

_UNKNOWN_PLUGINS = Assumption(
    "configuration", "the run had no custom plugins but those of --plugin: an older Bayplan did not record them"
)


def open_result_source(options: SourceOptions) -> ClusterSource:
    """Read a result directory as a source.

    Raises:
        InputError: the folder is not a result directory, was written by a later version, or see `result_source`.
    """
    return result_source(open_result(options.paths[0]), read_setup_of(options), options)


def result_source(result: ResultDirectory, setup: SchedulerSetup, options: SourceOptions) -> ClusterSource:
    """Return a result as a source, with the scheduler that was read from the options.

    Raises:
        MissingPlugins: the run had custom plugins that this scheduler lacks or enables with other weights.
    """
    missing = _missing_plugins(result, setup)
    if missing:
        raise MissingPlugins(missing, where=str(result.path))
    objects: list[KubernetesObject] = [*result.nodes.values(), *result.objects]
    claims = _claim_statuses(result.objects)
    objects += [pod for life in result.pods if (pod := _pod(life, claims)) is not None]
    unread: list[UnreadKind] = []
    if not result.has_objects:
        effect = "answers know nothing of volumes, claims, budgets and priority classes"
        unread = [UnreadKind(kind="Other", reason="an older Bayplan wrote no objects.parquet", effect=effect)]
    found = [
        configuration_assumption(options, objects, _CONFIGURATION),
        Assumption("time", f"the cluster is that of the end of the simulation, {time_text(result.end_ns)}"),
        sampling_assumption(setup.configuration, objects),
        scheduler_name_assumption(setup.configuration, objects),
        _UNKNOWN_PLUGINS if result.facts.custom_plugins is None else None,
        *unread_assumptions(unread),
    ]
    return ClusterSource(
        name=options.paths[0],
        kind=SourceKind.RESULT,
        objects=in_order(objects),
        scheduler=setup,
        now_ns=result.end_ns,
        assumptions=[each for each in found if each is not None],
        unread=unread,
    )


def _missing_plugins(result: ResultDirectory, setup: SchedulerSetup) -> list[str]:
    """Return the custom plugins of a result's run that a scheduler does not enable with the same weights."""
    profiles = setup.configuration.profiles
    enabled = {each for profile in profiles for each in setup.registry.custom_plugins(profile.plugins)}
    # A plugin without a recorded weight is compared by its name.
    enabled |= {each.partition("=")[0] for each in enabled}
    return [each for each in result.facts.custom_plugins or () if each not in enabled]


def objects_at(result: ResultDirectory, time_ns: int) -> list[KubernetesObject]:
    """Return the objects of a result with its pods at a given time; objects of other kinds are those at the end."""
    claims = _claim_statuses(result.objects)
    pods = (_pod(then, claims) for life in result.pods if (then := _at(life, time_ns)) is not None)
    return in_order([*result.nodes.values(), *result.objects, *(pod for pod in pods if pod is not None)])


def _at(life: PodTimeline, time_ns: int) -> PodTimeline | None:
    """Return a pod at a given time, or None if it did not exist."""
    if life.arrived_ns > time_ns or (life.ended_ns is not None and life.ended_ns <= time_ns):
        return None
    is_bound = life.bound_ns is not None and life.bound_ns <= time_ns
    fate = PodFate.PLACED if is_bound else PodFate.PENDING
    return replace(life, node=life.node if is_bound else "", fate=fate)


def _claim_statuses(objects: Iterable[KubernetesObject]) -> dict[str, tuple[PodResourceClaimStatus, ...]]:
    """Return the generated resource claims of pods, which results do not record with the pods, by the uid of the pod."""
    found: dict[str, tuple[PodResourceClaimStatus, ...]] = {}
    for claim in objects:
        name = claim.metadata.annotations.get(POD_CLAIM_ANNOTATION)
        owner = claim.metadata.controller()
        if isinstance(claim, ResourceClaim) and name is not None and owner is not None:
            status = PodResourceClaimStatus(name=name, resource_claim_name=claim.metadata.name)
            found[owner.uid] = (*found.get(owner.uid, ()), status)
    return found


def _pod(life: PodTimeline, claims: Mapping[str, tuple[PodResourceClaimStatus, ...]]) -> Pod | None:
    """Return the pod at the end, or None if it was deleted or is not recorded. `claims`: see `_claim_statuses`."""
    pod = life.pod
    if pod is None or life.fate in _GONE:
        return None
    metadata = pod.metadata
    if life.workload and not metadata.owner_references:
        metadata = replace(metadata, owner_references=(_owner(life.workload),))
    metadata = replace(metadata, creation_timestamp=format_time(life.arrived_ns))
    # A pod that was bound only after the time in question has no node.
    started_ns = None if not life.node else life.bound_ns if life.started_ns is None else life.started_ns
    phase = _FINISHED.get(life.fate, "Running" if life.node else "Pending")
    return replace(
        pod,
        metadata=metadata,
        spec=replace(pod.spec, node_name=life.node),
        status=replace(
            pod.status,
            phase=phase,
            start_time=None if started_ns is None else format_time(started_ns),
            resource_claim_statuses=pod.status.resource_claim_statuses or claims.get(metadata.uid, ()),
        ),
    )


def _owner(workload: str) -> OwnerReference:
    """Return a reference to the pod's workload as its owner; ReplicaSets in between are not recorded."""
    kind, _, key = workload.partition(" ")
    versions = [version for version in _WORKLOAD_VERSIONS if find_kind(version, kind) is not None]
    name = key.rpartition("/")[2]
    return OwnerReference(
        api_version=versions[0] if versions else "", kind=kind, name=name, uid=workload, controller=True
    )
