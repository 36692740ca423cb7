"""Execute the actions of steps on a simulator."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec.structs import replace

from bayplan.answers.displaced_pods import is_recreated_elsewhere
from bayplan.answers.drain_rules import Budgets
from bayplan.apiserver.patches.json_patch import JsonPatchError, json_patch, merge_patch
from bayplan.apiserver.patches.strategic import StrategicPatchError, strategic_merge
from bayplan.base.durations import SECOND_NS
from bayplan.base.errors import InputError
from bayplan.base.go_text.times import format_time
from bayplan.formats import schema
from bayplan.objects.defaults import default_object
from bayplan.objects.kinds import decode, encode
from bayplan.objects.meta import KubernetesObject
from bayplan.objects.namespace import Namespace
from bayplan.objects.node import Node, NodeCondition
from bayplan.objects.pod import Pod
from bayplan.objects.policy import PodDisruptionBudget
from bayplan.objects.workloads import Deployment, ReplicaSet, ReplicationController, StatefulSet
from bayplan.scenarios.scenario import Failure, Patch, Scale
from bayplan.scenarios.targets import failing_nodes, find_objects, select_nodes
from bayplan.sim.arrivals import missing_namespaces
from bayplan.sim.operations import Apply, Cordon, Delete, Evict
from bayplan.sim.simulator import Simulator

EVICTION_RETRY_NS = 5 * SECOND_NS
"""Interval at which ``kubectl drain`` retries evictions that a disruption budget refuses."""

_SCALABLE = Deployment | ReplicaSet | ReplicationController | StatefulSet


def put_objects(simulator: Simulator, items: Sequence[KubernetesObject], *, new: bool) -> None:
    """Create objects, or change existing ones. Missing namespaces are created.

    Args:
        simulator: the simulator with the cluster.
        items: the objects.
        new: whether it is an error if an object exists.

    Raises:
        InputError: an object exists and must be new, or the cluster rejects an object.
    """
    store = simulator.cluster.store
    known = [namespace.metadata.name for namespace in store.all(Namespace)]
    wanted = (*missing_namespaces(items, known), *items)
    for item in wanted if new else ():
        if store.get(type(item), item.key) is not None:
            raise InputError(f"{type(item).__name__} {item.key} already exists", hint="apply instead of create")
    _apply(simulator, wanted)


def _apply(simulator: Simulator, items: Sequence[KubernetesObject]) -> None:
    """Apply objects at the current time.

    Raises:
        InputError: the cluster rejects an object.
    """
    names = [f"{type(item).__name__} {item.key}" for item in items]
    for name, item in zip(names, items, strict=True):
        simulator.failures.pop(name, None)
        simulator.at(simulator.now_ns, Apply(item))
    simulator.advance(simulator.now_ns)
    for name in names:
        if name in simulator.failures:
            raise InputError(f"{name} is refused: {simulator.failures[name]}")


def patch_object(simulator: Simulator, patch: Patch) -> None:
    """Patch the objects that the patch's target selects.

    Raises:
        InputError: the target matches no object, or the patch does not apply.
    """
    for item in find_objects(patch.target, simulator.cluster.store):
        document = encode(item)
        try:
            if patch.type == "json":
                if not isinstance(patch.patch, list):
                    raise InputError("patch", wanted="a list of operations", got="an object", hint="type: merge")
                patched = json_patch(document, patch.patch)
            elif isinstance(patch.patch, list):
                raise InputError("patch", wanted="an object", got="a list", hint="type: json")
            elif patch.type == "merge":
                patched = merge_patch(document, patch.patch)
            else:
                facts = schema.find_kind(str(document["apiVersion"]), str(document["kind"]))
                patched = strategic_merge(facts.type if facts is not None else "", document, patch.patch)
        except (JsonPatchError, StrategicPatchError) as problem:
            raise InputError(f"patch of {patch.target}: {problem}") from None
        if not isinstance(patched, dict):
            raise InputError(f"result of the patch of {patch.target}", wanted="an object", got=repr(patched))
        _apply(simulator, [default_object(decode(patched))])


def scale_workload(simulator: Simulator, scale: Scale) -> None:
    """Set the number of replicas of workloads.

    Raises:
        InputError: the target matches no object, or an object has no replicas.
    """
    for item in find_objects(scale.target, simulator.cluster.store):
        if not isinstance(item, _SCALABLE):
            wanted = "a Deployment, ReplicaSet, ReplicationController or StatefulSet"
            raise InputError(f"scale {scale.target}", wanted=wanted, got=f"a {type(item).__name__}")
        _apply(simulator, [replace(item, spec=replace(item.spec, replicas=scale.replicas))])


def delete_objects(simulator: Simulator, targets: Sequence[str]) -> None:
    """Delete objects and their dependents.

    Raises:
        InputError: a target matches no object.
    """
    for target in targets:
        for item in find_objects(target, simulator.cluster.store):
            simulator.perform(Delete(type(item), item.key))


def cordon_nodes(simulator: Simulator, nodes: str, *, unschedulable: bool) -> None:
    """Mark nodes unschedulable, or schedulable again.

    Raises:
        InputError: no node matches.
    """
    for node in select_nodes(nodes, simulator.cluster.store):
        simulator.perform(Cordon(node.metadata.name, unschedulable))


def set_failed(simulator: Simulator, failure: Failure, rack_label: str, *, failed: bool) -> None:
    """Make nodes unreachable, as if their kubelets had stopped, or ready again.

    Raises:
        InputError: no node matches.
    """
    nodes = failing_nodes(failure, simulator.cluster.store, rack_label)
    _apply(simulator, [_with_readiness(node, simulator.now_ns, failed=failed) for node in nodes])


def _with_readiness(node: Node, now_ns: int, *, failed: bool) -> Node:
    condition = NodeCondition(
        type="Ready",
        status="Unknown" if failed else "True",
        reason="NodeStatusUnknown" if failed else "KubeletReady",
        message="Kubelet stopped posting node status." if failed else "kubelet is posting ready status",
        last_transition_time=format_time(now_ns),
    )
    others = tuple(each for each in node.status.conditions if each.type != "Ready")
    return replace(node, status=replace(node.status, conditions=(*others, condition)))


def drain_nodes(simulator: Simulator, nodes: str, until_ns: int) -> list[str]:
    """Cordon nodes and evict their pods, as ``kubectl drain --force --delete-emptydir-data`` does.

    Evictions that a disruption budget refuses are retried every 5 seconds. Pods of DaemonSets and mirror pods stay.

    Args:
        simulator: the simulator with the cluster.
        nodes: see `select_nodes`.
        until_ns: the time limit.

    Returns:
        Why nodes are not empty at `until_ns`, one line per remaining pod.

    Raises:
        InputError: no node matches.
    """
    names = [node.metadata.name for node in select_nodes(nodes, simulator.cluster.store)]
    for name in names:
        simulator.perform(Cordon(name))
    while True:
        refused = _evict_all(simulator, names)
        if not _leaving(simulator, names):
            return []
        next_ns = simulator.now_ns + EVICTION_RETRY_NS
        if next_ns > until_ns:
            return [f"{key} stays: {reason}" for key, reason in refused.items()]
        simulator.advance(next_ns, stop=_emptied(simulator, names))


def _leaving(simulator: Simulator, names: Sequence[str]) -> list[Pod]:
    """Return the pods that still have to leave the nodes, including those that are being deleted."""
    pods = (pod for name in names for pod in simulator.cluster.store.pods_on(name))
    return [pod for pod in pods if pod.metadata.deletion_timestamp is not None or is_recreated_elsewhere(pod)]


def _emptied(simulator: Simulator, names: Sequence[str]) -> Callable[[], bool]:
    return lambda: not _leaving(simulator, names)


def _evict_all(simulator: Simulator, names: Sequence[str]) -> dict[str, str]:
    """Evict the pods of nodes. Return why disruption budgets refuse evictions, by pod."""
    store = simulator.cluster.store
    refused: dict[str, str] = {}
    for pod in _leaving(simulator, names):
        if pod.metadata.deletion_timestamp is not None:
            continue
        # Read the budgets again: each eviction changes what they allow.
        refusal = Budgets(store.all(PodDisruptionBudget)).eviction_problem(pod)
        if refusal:
            refused[pod.key] = refusal
        elif store.pods.get(pod.key) is not None:
            simulator.perform(Evict(pod.key))
    return refused
