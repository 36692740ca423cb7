"""Admission of pods: the plugins Priority and DefaultTolerationSeconds."""

from __future__ import annotations

from bayplan.apiserver.kinds.strategy import Context, Document, part, parts
from bayplan.apiserver.rest.errors import forbidden

_CLASSES = "scheduling.k8s.io/priorityclasses"
_TAINTS = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_SECONDS = 300
_PREEMPTS = "PreemptLowerPriority"


def admit_priority(context: Context, pod: Document) -> None:
    """Fill in priority and preemption policy from the pod's class, or from the default one.

    Raises:
        ApiError: there is no such class, or the pod brings other values.
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
    """Return the global default; of several the one with the lowest value, as upstream does."""
    found = [each for each in context.cluster.all(_CLASSES) if each.get("globalDefault")]
    return min(found, key=_value) if found else None


def _value(priority_class: Document) -> int:
    found = priority_class.get("value")
    return found if isinstance(found, int) else 0


def admit_tolerations(pod: Document) -> None:
    """Let a pod stay for five minutes on a node that is not ready or not reachable, unless it says otherwise."""
    spec = part(pod, "spec")
    tolerations = list(parts(spec, "tolerations"))
    for taint in _TAINTS:
        if not any(_covers(each, taint) for each in tolerations):
            extra: Document = {"key": taint, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": _SECONDS}
            tolerations.append(extra)
    spec["tolerations"] = tolerations


def _covers(toleration: Document, taint: str) -> bool:
    return toleration.get("key") in (None, "", taint) and toleration.get("effect") in (None, "", "NoExecute")
