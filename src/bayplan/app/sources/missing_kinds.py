"""Kinds of which a dump has no object although its pods and claims refer to them; reported as assumptions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from bayplan.analysis.units import format_list
from bayplan.app.sources.cluster_source import Assumption, UnreadKind
from bayplan.cluster.owned_pods import is_finished
from bayplan.objects.affinity import PodAffinityTerm
from bayplan.objects.kinds import KINDS
from bayplan.objects.meta import KubernetesObject
from bayplan.objects.pod import Pod
from bayplan.objects.storage import PersistentVolumeClaim
from bayplan.plugins.pod_claims import claim_name_of

_NONE = "the input has none"
_SCORES = "default spreading does not know which pods belong together, so scores may differ from those in the cluster"
_EFFECTS = {
    "Node": "no pod can be evaluated; dump nodes, too (kubectl get nodes,pods -A -o yaml)",
    "PersistentVolumeClaim": "pods with claims can't be evaluated",
    "PersistentVolume": "pods with bound claims can't be evaluated",
    "StorageClass": "pods with unbound claims can't be evaluated",
    "ResourceClaim": "pods with claims for devices can't be evaluated",
    "Namespace": "namespace selectors of affinity terms match no namespace",
    "ReplicaSet": _SCORES,
    "StatefulSet": _SCORES,
    "ReplicationController": _SCORES,
    "Service": _SCORES,
}
"""The kinds that answers may depend on, with the effect on answers, in the order in which they are stated."""


def missing_kinds(objects: Sequence[KubernetesObject]) -> list[UnreadKind]:
    """Return the kinds that a dump's pods and claims refer to, but of which it has no object."""
    there = {type(item) for item in objects}
    names = {row.kind for row in KINDS if row.struct in there}
    wanted = _referred_to(objects)
    return [
        UnreadKind(kind=kind, reason=_NONE, effect=effect)
        for kind, effect in _EFFECTS.items()
        if kind in wanted and kind not in names
    ]


def missing_assumptions(missing: Iterable[UnreadKind]) -> list[Assumption]:
    """Return the assumptions about missing kinds, one for each effect."""
    by_effect: dict[str, list[str]] = {}
    for each in missing:
        by_effect.setdefault(each.effect, []).append(f"{each.kind}{'es' if each.kind.endswith('s') else 's'}")
    return [
        Assumption("unread", f"the input has no {format_list(kinds).replace(' and ', ' and no ')}: {effect}")
        for effect, kinds in by_effect.items()
    ]


def _referred_to(objects: Iterable[KubernetesObject]) -> set[str]:
    """Return the kinds that pods and claims refer to."""
    found: set[str] = set()
    for item in objects:
        if isinstance(item, PersistentVolumeClaim):
            found.add("PersistentVolume" if item.spec.volume_name else "StorageClass")
        if not isinstance(item, Pod) or is_finished(item):
            continue
        found.add("Node")
        owner = item.metadata.controller()
        if owner is not None and not item.spec.topology_spread_constraints:
            # Without Services, default spreading would only use the workload; every cluster has at least one Service.
            found |= {owner.kind, "Service"}
        if any(claim_name_of(item.metadata.name, volume) for volume in item.spec.volumes):
            found.add("PersistentVolumeClaim")
        if item.spec.resource_claims:
            found.add("ResourceClaim")
        if any(term.namespace_selector is not None for term in _required_terms(item)):
            found.add("Namespace")
    return found


def _required_terms(pod: Pod) -> list[PodAffinityTerm]:
    affinity = pod.spec.affinity
    sides = (affinity.pod_affinity, affinity.pod_anti_affinity) if affinity is not None else ()
    return [
        term
        for side in sides
        if side is not None
        for term in side.required_during_scheduling_ignored_during_execution or ()
    ]
