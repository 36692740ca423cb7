"""The patches of a pod's status that kube-scheduler sends: a condition, the nominated node, or both.

A patch is the difference between the cached and the desired status, as a strategic merge patch without unchanged
fields.
"""

from __future__ import annotations

from msgspec import structs

from bayplan.base.go_text.times import format_time
from bayplan.objects.pod import Pod, PodCondition

_DETAILS = (
    ("lastProbeTime", "last_probe_time"),
    ("lastTransitionTime", "last_transition_time"),
    ("message", "message"),
    ("observedGeneration", "observed_generation"),
    ("reason", "reason"),
    ("status", "status"),
)
_ALWAYS_WRITTEN = ("lastProbeTime", "lastTransitionTime", "status")


def unscheduled_condition(pod: Pod, reason: str, message: str) -> PodCondition:
    """Return the condition PodScheduled=False of a pod; the reason is ``Unschedulable`` or ``SchedulerError``."""
    return PodCondition(
        type="PodScheduled",
        status="False",
        reason=reason,
        message=message,
        observed_generation=pod.metadata.generation,
    )


def disruption_condition(victim: Pod, preemptor: Pod) -> PodCondition:
    """Return the condition DisruptionTarget of a victim of preemption."""
    return PodCondition(
        type="DisruptionTarget",
        status="True",
        reason="PreemptionByScheduler",
        message=f"{preemptor.spec.scheduler_name}: preempting to accommodate a higher priority pod",
        observed_generation=victim.metadata.generation,
    )


def status_patch(
    pod: Pod, now_ns: int, *, condition: PodCondition | None = None, nominated_node_name: str | None = None
) -> dict[str, object] | None:
    """Return the patch that sets a pod's condition and nomination, or None if both are already set.

    Args:
        pod: the cached pod.
        now_ns: the transition time if the condition's status changes.
        condition: the condition without times; None to leave the conditions unchanged.
        nominated_node_name: the name of the node; "" to clear the nomination, None to leave it unchanged.
    """
    status: dict[str, object] = {}
    if condition is not None:
        status.update(_condition_patch(pod.status.conditions, condition, now_ns))
    if nominated_node_name is not None and nominated_node_name != pod.status.nominated_node_name:
        status["nominatedNodeName"] = nominated_node_name or None
    return {"status": status} if status else None


def _condition_patch(conditions: tuple[PodCondition, ...], wanted: PodCondition, now_ns: int) -> dict[str, object]:
    """Return the fields of a status patch that set a condition; empty if it is already set.

    As in upstream, the condition is not written if only its observed generation is new.
    """
    now = format_time(now_ns)
    known = next((condition for condition in conditions if condition.type == wanted.type), None)
    if known is None:
        whole = structs.replace(wanted, last_transition_time=now)
        if not conditions:
            return {"conditions": [_document(whole)]}
        order = [{"type": condition.type} for condition in (*conditions, whole)]
        return {"$setElementOrder/conditions": order, "conditions": [_document(whole)]}
    since = known.last_transition_time if known.status == wanted.status else now
    whole = structs.replace(wanted, last_transition_time=since)
    if structs.replace(whole, observed_generation=known.observed_generation) == known:
        return {}
    before, after = _document(known), _document(whole)
    change = {name: after.get(name) for name, _ in _DETAILS if after.get(name) != before.get(name)}
    return {
        "$setElementOrder/conditions": [{"type": condition.type} for condition in conditions],
        "conditions": [{**change, "type": wanted.type}],
    }


def _document(condition: PodCondition) -> dict[str, object]:
    """Return a condition as upstream writes it: times and status always, other fields only if they are not empty."""
    found = {name: getattr(condition, attribute) for name, attribute in _DETAILS}
    written: dict[str, object] = {
        name: value for name, value in found.items() if name in _ALWAYS_WRITTEN or value not in ("", 0)
    }
    return {**written, "type": condition.type}
