"""Admission of pods: the plugins Priority, PodTopologyLabels, DefaultTolerationSeconds and RuntimeClass."""

from __future__ import annotations

from typing import cast

from bayplan.apiserver.kinds.strategy import Context
from bayplan.apiserver.model.errors import ApiError, forbidden
from bayplan.apiserver.validation.engine import sent
from bayplan.base.plain_data import Document, part, parts
from bayplan.objects.selectors import quote

_CLASSES = "scheduling.k8s.io/priorityclasses"
_RUNTIMES = "node.k8s.io/runtimeclasses"
_TAINTS = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_SECONDS = 300
_PREEMPTS = "PreemptLowerPriority"


def admit_priority(context: Context, pod: Document) -> None:
    """Set the priority and preemption policy of a pod from its priority class, or from the global default.

    Raises:
        ApiError: the class does not exist, or the pod sets different values.
    """
    spec, name = part(pod, "spec"), str(part(pod, "metadata").get("name") or "")
    class_name = spec.get("priorityClassName")
    if class_name:
        found = context.cluster.find(_CLASSES, "", str(class_name))
        if found is None:
            raise forbidden("pods", "", name, f"no PriorityClass with name {class_name} was found")
    else:
        found = _default_class(context)
        if found is not None:
            spec["priorityClassName"] = part(found, "metadata").get("name")
    priority = found.get("value", 0) if found is not None else 0
    policy = (found or {}).get("preemptionPolicy") or _PREEMPTS
    given = spec.get("priority")
    computed = "priority admission controller computed"
    if given is not None and given != priority:
        why = f"the integer value of priority ({given}) must not be provided in pod spec; "
        raise forbidden("pods", "", name, f"{why}{computed} {priority} from the given PriorityClass name")
    if spec.get("preemptionPolicy") not in (None, policy):
        why = f"the string value of PreemptionPolicy ({spec['preemptionPolicy']}) must not be provided in pod spec; "
        raise forbidden("pods", "", name, f"{why}{computed} {policy} from the given PriorityClass name")
    spec["priority"] = priority
    spec["preemptionPolicy"] = policy


def _default_class(context: Context) -> Document | None:
    """Return the priority class that is the global default, or None.

    If there are several, return the class with the lowest value, as upstream does.
    """
    found = [each for each in context.cluster.all(_CLASSES) if each.get("globalDefault")]
    return min(found, key=_value) if found else None


def _value(priority_class: Document) -> int:
    found = priority_class.get("value")
    return found if isinstance(found, int) else 0


TOPOLOGY_LABELS = ("topology.kubernetes.io/region", "topology.kubernetes.io/zone")


def admit_topology(context: Context, pod: Document) -> None:
    """Copy the topology labels of the node to a pod that is created with `nodeName` (the plugin PodTopologyLabels)."""
    node_name = part(pod, "spec").get("nodeName")
    if not node_name or context.imported:
        return
    found = context.cluster.find("nodes", "", str(node_name))
    if found is None:
        return
    labels = part(found, "metadata", "labels")
    copied = {name: labels[name] for name in TOPOLOGY_LABELS if name in labels}
    if copied:
        metadata = part(pod, "metadata")
        metadata["labels"] = {**part(metadata, "labels"), **copied}


def admit_tolerations(pod: Document) -> None:
    """Tolerate not-ready and unreachable nodes for five minutes, unless the pod has its own tolerations for them."""
    spec = part(pod, "spec")
    tolerations = list(parts(spec, "tolerations"))
    for taint in _TAINTS:
        if not any(_covers(each, taint) for each in tolerations):
            extra: Document = {"key": taint, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": _SECONDS}
            tolerations.append(extra)
    spec["tolerations"] = tolerations


def _covers(toleration: Document, taint: str) -> bool:
    return toleration.get("key") in (None, "", taint) and toleration.get("effect") in (None, "", "NoExecute")


def admit_runtime(context: Context, pod: Document) -> None:
    """Set the overhead, node selector and tolerations of a pod from its runtime class.

    Raises:
        ApiError: the class does not exist, or the pod sets different values.
    """
    spec = part(pod, "spec")
    class_name, given = spec.get("runtimeClassName"), sent(spec, "overhead")
    found: Document | None = None
    if class_name == "":
        raise ApiError(500, "resource name may not be empty", reason="")
    if class_name is not None:
        found = context.cluster.find(_RUNTIMES, "", str(class_name))
        if found is None:
            raise _rejection(pod, f"pod rejected: RuntimeClass {quote(str(class_name))} not found")
    if found is not None and found.get("overhead") is not None:
        overhead = part(found, "overhead", "podFixed")
        if given and given != overhead:
            raise _rejection(pod, "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead")
        spec.pop("overhead", None)
        if overhead:
            spec["overhead"] = overhead
    if found is not None and "scheduling" in found:
        _admit_scheduling(pod, spec, part(found, "scheduling"))


def check_overhead(context: Context, pod: Document) -> None:
    """Check that the runtime class of a valid pod defines the pod's overhead.

    Raises:
        ApiError: the pod has an overhead, and no class defines it.
    """
    spec = part(pod, "spec")
    if sent(spec, "overhead") is None:
        return
    found = context.cluster.find(_RUNTIMES, "", str(spec.get("runtimeClassName") or ""))
    if found is None or found.get("overhead") is None:
        raise _rejection(pod, "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead")


def _admit_scheduling(pod: Document, spec: Document, scheduling: Document) -> None:
    selector, wanted = {**part(spec, "nodeSelector")}, part(scheduling, "nodeSelector")
    for key, value in sorted(wanted.items()):
        if selector.setdefault(key, value) != value:
            theirs = f"runtimeClass.scheduling.nodeSelector[{key}] = {value}"
            raise _rejection(pod, f"conflict: {theirs}; pod.spec.nodeSelector[{key}] = {selector[key]}")
    if selector:
        spec["nodeSelector"] = selector
    tolerations = parts(spec, "tolerations") + parts(scheduling, "tolerations")
    kept: list[Document] = []
    for position, each in enumerate(tolerations):
        later = (other for other in tolerations[position + 1 :] if other != each)
        if not any(_includes(other, each) for other in (*kept, *later)):
            kept.append(each)
    if kept:
        spec["tolerations"] = kept


def _includes(wide: Document, narrow: Document) -> bool:
    """Return whether the toleration `wide` covers everything that `narrow` tolerates."""
    if wide == narrow:
        return True
    exists = wide.get("operator") == "Exists"
    if (narrow.get("key") or "") != (wide.get("key") or "") and (wide.get("key") or not exists):
        return False
    if wide.get("effect") and narrow.get("effect") != wide["effect"]:
        return False
    most, seconds = wide.get("tolerationSeconds"), narrow.get("tolerationSeconds")
    limited = wide.get("effect") == "NoExecute" and isinstance(most, int)
    if limited and (not isinstance(seconds, int) or seconds > cast("int", most)):
        return False
    if exists:
        return True
    equal = wide.get("operator") in (None, "", "Equal") and narrow.get("operator") == "Equal"
    return equal and (narrow.get("value") or "") == (wide.get("value") or "")


def _rejection(pod: Document, why: str) -> ApiError:
    return forbidden("pods", "", str(part(pod, "metadata").get("name") or ""), why)
