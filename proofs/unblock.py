"""The first suggestion places the pod; without any suggestion, no single change that the proof can try places it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, combinations, islice

from msgspec.structs import replace

from bayplan.answers.displaced_pods import stays_on_node
from bayplan.answers.unblock import Suggestion
from bayplan.engine.records import RecordLevel
from bayplan.library import Cluster
from bayplan.objects.affinity import Toleration
from bayplan.objects.kinds import decode
from bayplan.objects.meta import KubernetesObject
from bayplan.objects.node import Node
from bayplan.objects.pod import Pod
from bayplan.objects.resource import ResourceClaim
from bayplan.objects.storage import CSINode
from proofs.proof import Proof
from proofs.waiting_pods import WaitingPod, place, waiting_pods

MAX_SUBSETS = 256


def prove(cases: int, seed: int) -> Proof:
    """Check `cases` pending pods and return the results."""
    proof = Proof()
    for case in islice(waiting_pods(seed), cases):
        proof.cases += 1
        check(case, proof)
    return proof


def check(case: WaitingPod, proof: Proof) -> None:
    """Check the suggestions for one pending pod."""
    cluster = Cluster([*case.objects, case.pod], record_level=RecordLevel.OFF)
    found = cluster.unblock(case.pod.key)
    cluster.state.check_invariants()
    if found.fits:
        proof.failures.append(f"{case.name}: reported to fit, and does not")
        return
    if not found.suggestions:
        proof.counts["no suggestion"] += 1
        missed = next(exhaustive(case), None)
        if missed is not None:
            proof.failures.append(f"{case.name}: nothing was suggested, and this places it: {missed}")
        return
    first = found.suggestions[0]
    proof.counts[first.kind] += 1
    applied = apply(case, first)
    if not place(applied.objects, applied.pod, preempts=applied.preempts):
        proof.failures.append(f"{case.name}: the first suggestion does not place it: {first.text}")
    for each in found.suggestions:
        problem = unwanted(case, each)
        if problem:
            proof.failures.append(f"{case.name}: {problem}: {each.text}")


@dataclass(frozen=True)
class Applied:
    """A cluster after a suggestion, the changed pod, and whether the pod has to preempt others."""

    objects: Sequence[KubernetesObject]
    pod: Pod
    preempts: bool


def apply(case: WaitingPod, suggestion: Suggestion) -> Applied:
    """Apply a suggestion only by its documents, as a user would."""
    pod, keys = case.pod, {*suggestion.deleted, *suggestion.ended}
    items = {(type(item), item.key): item for item in case.objects}
    gone = [item for item in items.values() if isinstance(item, Pod) and item.key in keys]
    for victim in gone:
        del items[Pod, victim.key]
    for document in suggestion.objects:
        item = decode(document)
        if isinstance(item, Pod) and item.key == pod.key:
            pod = item
        else:
            items[type(item), item.key] = item
    return Applied([*freed(items.values(), gone)], pod, "preempts" in suggestion.text)


def freed(items: Iterable[KubernetesObject], gone: Sequence[Pod]) -> Iterator[KubernetesObject]:
    """Yield the objects, with the resource claims of deleted pods released as the claim controller releases them."""
    names = {(pod.metadata.namespace, pod.metadata.name, pod.metadata.uid) for pod in gone}
    for item in items:
        if isinstance(item, ResourceClaim):
            users = item.status.reserved_for
            left = tuple(each for each in users if (item.metadata.namespace, each.name, each.uid) not in names)
            if len(left) < len(users):
                status = replace(item.status, reserved_for=left)
                item = replace(item, status=status if left else replace(status, allocation=None, devices=()))
        yield item


def unwanted(case: WaitingPod, suggestion: Suggestion) -> str:
    """Return why a suggestion is not allowed, or "".

    It must not tolerate a taint for a node condition, or remove a pod from its node that stays or is as important.
    """
    if "tolerate" in suggestion.text and any(
        f"{prefix}/" in suggestion.text for prefix in ("node.kubernetes.io", "node.cloudprovider.kubernetes.io")
    ):
        return "tolerates a condition"
    pods = {item.key: item for item in case.objects if isinstance(item, Pod)}
    own = next(
        (item for item in map(decode, suggestion.objects) if isinstance(item, Pod) and item.key == case.pod.key),
        case.pod,
    )
    for key in (*suggestion.deleted, *suggestion.evicted):
        if stays_on_node(pods[key]):
            return f"takes {key} off its node"
    for key in suggestion.evicted:
        if (pods[key].spec.priority or 0) >= (own.spec.priority or 0):
            return f"{key} is as important, and is left without a node"
    return ""


# --- everything else that could be tried ------------------------------------------------------------------------------


def exhaustive(case: WaitingPod) -> Iterator[str]:
    """Yield the changes that place the pod, of all single changes and all pairs of a changed node and the changed pod."""
    singles = chain(_pods_that_leave(case), _nodes_that_change(case), _pods_that_change(case))
    for text, objects, pod in chain(singles, _pairs(case)):
        # Preemption could violate disruption budgets.
        if place(objects, pod, preempts=False):
            yield text


Try = tuple[str, Sequence[KubernetesObject], Pod]


def _pairs(case: WaitingPod) -> Iterator[Try]:
    variants = list(_pods_that_change(case))
    for text, objects, _ in _nodes_that_change(case):
        for other, _, pod in variants:
            yield f"{text} and {other}", objects, pod


def _pods_that_leave(case: WaitingPod) -> Iterator[Try]:
    own = case.pod.spec.priority or 0
    by_node: dict[str, list[Pod]] = {}
    for item in case.objects:
        if (
            isinstance(item, Pod)
            and item.spec.node_name
            and not stays_on_node(item)
            and (item.spec.priority or 0) < own
        ):
            by_node.setdefault(item.spec.node_name, []).append(item)
    budgets = any(type(item).__name__ == "PodDisruptionBudget" for item in case.objects)
    for name, pods in by_node.items():
        if budgets:
            continue
        subsets = chain.from_iterable(combinations(pods, size) for size in range(1, len(pods) + 1))
        for subset in islice(subsets, MAX_SUBSETS):
            keys = {pod.key for pod in subset}
            left = [item for item in case.objects if not (isinstance(item, Pod) and item.key in keys)]
            yield f"evict {sorted(keys)} from {name}", list(freed(left, subset)), case.pod


def _nodes_that_change(case: WaitingPod) -> Iterator[Try]:
    nodes = [item for item in case.objects if isinstance(item, Node)]
    for node in nodes:
        others = [item for item in case.objects if item is not node]
        if node.spec.unschedulable:
            taints = tuple(each for each in node.spec.taints if each.key != "node.kubernetes.io/unschedulable")
            lifted = replace(node, spec=replace(node.spec, unschedulable=False, taints=taints))
            yield f"uncordon {node.metadata.name}", [*others, lifted], case.pod
        labels = {**node.metadata.labels, "kubernetes.io/hostname": "another", **(case.pod.spec.node_selector or {})}
        amounts = {**node.status.allocatable, "cpu": "1000", "memory": "10Ti", "pods": "1000"}
        metadata = replace(node.metadata, name="another", labels=labels, uid="")
        status = replace(node.status, allocatable=amounts, capacity=amounts)
        spec = replace(node.spec, unschedulable=False, taints=())
        # A new node of this kind has the same CSI drivers.
        csi = [
            replace(item, metadata=replace(item.metadata, name="another"))
            for item in case.objects
            if isinstance(item, CSINode) and item.metadata.name == node.metadata.name
        ]
        yield (
            f"add a node like {node.metadata.name}",
            [*case.objects, replace(node, metadata=metadata, status=status, spec=spec), *csi],
            case.pod,
        )


def _pods_that_change(case: WaitingPod) -> Iterator[Try]:
    pod, spec = case.pod, case.pod.spec
    variants: dict[str, object] = {
        "tolerate everything": replace(spec, tolerations=(*spec.tolerations, Toleration(operator="Exists"))),
        "drop the nodeSelector": replace(spec, node_selector=None),
        "drop affinity": replace(spec, affinity=None),
        "drop spreading": replace(spec, topology_spread_constraints=()),
        "drop gates": replace(spec, scheduling_gates=()),
    }
    for each in ("node_affinity", "pod_affinity", "pod_anti_affinity"):
        if spec.affinity is not None:
            variants[f"drop {each}"] = replace(spec, affinity=replace(spec.affinity, **{each: None}))
    for text, changed in variants.items():
        if changed != spec and text != "tolerate everything":
            yield text, case.objects, replace(pod, spec=changed)
