"""The taints of nodes: those that keep a pod away, those that mark an unhealthy node, and how a user writes one."""

from __future__ import annotations

from collections.abc import Iterable

from bayplan.analysis.units import format_choice
from bayplan.base.errors import InputError
from bayplan.objects.node import Node, Taint
from bayplan.objects.pod import Pod
from bayplan.objects.requests import Amounts, node_amounts
from bayplan.objects.selectors import REJECTING_EFFECTS, compile_required_node_affinity, tolerates

CONDITION = "node.kubernetes.io/"
"""Prefix of taints that Kubernetes adds for a condition of the node, or for its cordon."""

CONDITION_PREFIXES = (CONDITION, "node.cloudprovider.kubernetes.io/")
"""Prefixes of taints that mark a node as unhealthy or not ready yet."""

LEAVING_TAINTS = ("ToBeDeletedByClusterAutoscaler", "karpenter.sh/disrupted", "karpenter.sh/disruption")
"""Keys of taints on nodes that an autoscaler is about to remove."""

_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_CONDITIONS = {
    "unschedulable": "cordoned",
    "memory-pressure": "short of memory",
    "disk-pressure": "short of disk space",
    "pid-pressure": "short of process IDs",
    "network-unavailable": "without network",
}
"""Conditions in words, by the name of their taint, if the words differ."""


def condition_of(pod: Pod, node: Node) -> str:
    """Return the condition for which a node rejects a pod, such as ``not ready``; "" if there is none."""
    for taint in untolerated_taints(pod, node):
        if taint.key.startswith(CONDITION):
            name = taint.key.removeprefix(CONDITION)
            return _CONDITIONS.get(name, name.replace("-", " "))
    return ""


def untolerated_taints(pod: Pod, node: Node) -> list[Taint]:
    """Return the taints for which a node rejects a pod: NoSchedule and NoExecute taints that the pod does not tolerate."""
    return [
        taint
        for taint in node.spec.taints
        if taint.effect in REJECTING_EFFECTS
        and not any(tolerates(each, taint, comparison_operators=True) for each in pod.spec.tolerations)
    ]


def reserving_taints(pod: Pod, requests: Amounts, nodes: Iterable[Node]) -> dict[str, list[Taint]]:
    """Map each device that a pod requests to the untolerated taints that reserve the device's nodes.

    A taint reserves a device if all nodes that offer enough of the device have the taint, and no other node does.
    Taints for node conditions are left out.
    """
    known, found = list(nodes), dict[str, list[Taint]]()
    for resource, wanted in requests.items():
        if "/" not in resource or not wanted:
            continue
        offers = [node_amounts(node.status.allocatable).get(resource, 0) >= wanted for node in known]
        shared: dict[str, Taint] | None = None
        others: set[str] = set()
        for node, is_offered in zip(known, offers, strict=True):
            if not is_offered:
                others.update(map(taint_text, node.spec.taints))
                continue
            taints = untolerated_taints(pod, node)
            own = {taint_text(each): each for each in taints if not each.key.startswith(CONDITION)}
            shared = own if shared is None else {text: each for text, each in shared.items() if text in own}
        if shared and not others & shared.keys():
            found[resource] = list(shared.values())
    return found


def taints_of_selected(pod: Pod, nodes: Iterable[Node]) -> list[Taint]:
    """Return the untolerated taints that all nodes selected by a pod have, and no other node has; [] if it selects all nodes."""
    required = compile_required_node_affinity(pod)
    shared: dict[str, Taint] | None = None
    others: set[str] = set()
    for node in nodes:
        if not required.matches(node.metadata.labels, node.metadata.name):
            others.update(map(taint_text, node.spec.taints))
            continue
        own = {taint_text(each): each for each in untolerated_taints(pod, node) if not each.key.startswith(CONDITION)}
        shared = own if shared is None else {text: each for text, each in shared.items() if text in own}
    if shared is None or required.key == (None, None):
        return []
    return [each for text, each in shared.items() if text not in others]


def taint_text(taint: Taint) -> str:
    """Return a taint in the notation of kubectl: ``key=value:effect``."""
    value = f"={taint.value}" if taint.value else ""
    return f"{taint.key}{value}:{taint.effect}"


def is_condition_taint(taint: Taint) -> bool:
    """Return whether a taint marks a node as unhealthy, not ready or about to be removed. Pods should not tolerate these."""
    return taint.key.startswith(CONDITION_PREFIXES) or taint.key in LEAVING_TAINTS


def parse_taint(text: str) -> Taint:
    """Parse a taint in kubectl's notation: ``key=value:Effect`` or ``key:Effect``.

    Raises:
        InputError: the text is not a taint.
    """
    rest, colon, effect = text.rpartition(":")
    key, _, value = rest.partition("=")
    if not colon or not key or effect not in _EFFECTS:
        wanted = f"key=value:Effect or key:Effect with {format_choice(_EFFECTS)}"
        raise InputError("taint", got=repr(text), wanted=wanted, hint="dedicated=batch:NoSchedule")
    return Taint(key=key, value=value, effect=effect)
