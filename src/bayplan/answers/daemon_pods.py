"""The pods of DaemonSets on new nodes."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain

from msgspec.structs import replace

from bayplan.analysis.node_taints import untolerated_taints
from bayplan.objects.meta import KubernetesObject
from bayplan.objects.node import Node
from bayplan.objects.pod import Pod, PodStatus
from bayplan.objects.requests import accounted_requests, node_amounts
from bayplan.objects.selectors import compile_required_node_affinity
from bayplan.state.cluster_state import ClusterState


def daemon_models(state: ClusterState, ended: Iterable[Pod] = ()) -> list[Pod]:
    """Return one pod of each DaemonSet, as a model for its pods on new nodes.

    Args:
        state: the state with the pods.
        ended: further pods of DaemonSets, which ended with their nodes.
    """
    found: dict[tuple[str, str], Pod] = {}
    for pod in chain((info.pod for info in state.pods.values()), ended):
        owner = pod.metadata.controller() if pod.metadata.owner_references else None
        if owner is not None and owner.kind == "DaemonSet":
            found.setdefault((pod.metadata.namespace, owner.name), pod)
    return list(found.values())


def daemon_on(daemon: Pod, node: Node) -> Pod | None:
    """Return the pod of a DaemonSet on a new node; None if the DaemonSet does not run on this node."""
    spec = daemon.spec
    affinity = spec.affinity
    if affinity is not None and affinity.node_affinity is not None:
        # The controller adds a term that selects the pod's node by name. Remove it: the pods differ in nothing else.
        of_node = affinity.node_affinity
        required = of_node.required_during_scheduling_ignored_during_execution
        if required is not None:
            terms = tuple(replace(term, match_fields=()) for term in required.node_selector_terms)
            kept = tuple(term for term in terms if term.match_expressions)
            found = replace(required, node_selector_terms=kept) if kept else None
            of_node = replace(of_node, required_during_scheduling_ignored_during_execution=found)
            spec = replace(spec, affinity=replace(affinity, node_affinity=of_node))
    pod = replace(daemon, spec=replace(spec, node_name=""))
    if not compile_required_node_affinity(pod).matches(node.metadata.labels, node.metadata.name):
        return None
    if untolerated_taints(pod, node):
        return None
    name = f"{daemon.metadata.name[:40]}-{node.metadata.name}"
    metadata = replace(daemon.metadata, name=name, uid=f"{daemon.metadata.uid}-on-{name}", resource_version="")
    spec = replace(pod.spec, node_name=node.metadata.name)
    return replace(pod, metadata=metadata, spec=spec, status=PodStatus(phase="Running"))


def with_daemons(node: Node, daemons: Iterable[Pod]) -> list[KubernetesObject]:
    """Return a new node and the pods of DaemonSets that fit on it.

    Args:
        node: the new node, with its name.
        daemons: see `daemon_models`.
    """
    found: list[KubernetesObject] = [node]
    free = node_amounts(node.status.allocatable)
    for daemon in daemons:
        pod = daemon_on(daemon, node)
        if pod is None:
            continue
        wanted = {**accounted_requests(pod).requests, "pods": 1}
        if all(amount <= free.get(name, 0) for name, amount in wanted.items() if amount):
            free |= {name: free.get(name, 0) - amount for name, amount in wanted.items()}
            found.append(pod)
    return found
