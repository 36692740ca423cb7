"""Ranking of surplus pods: the order in which controllers delete them.

Upstream sorts with comparisons that are not a total order (two ready pods of similar age compare by uid, two of equal
age by other fields), so this module compares as well. The criteria that can be a sort key come first.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from functools import cmp_to_key

from bayplan.base.go_text.times import parse_time_ns
from bayplan.cluster.owned_pods import condition_time, is_active, is_ready
from bayplan.objects.pod import Pod

DELETION_COST_ANNOTATION = "controller.kubernetes.io/pod-deletion-cost"

_PHASES = {"Pending": 0, "Unknown": 1, "Running": 2}


def rank_for_deletion(pods: Iterable[Pod], related: Iterable[Pod], now_ns: int) -> list[Pod]:
    """Return pods in the order in which a ReplicaSet deletes them.

    Unassigned before assigned, pending before running, not ready before ready, low deletion cost before high, nodes
    with many related pods before nodes with few, then the younger by powers of two of their age, ties by uid.

    Args:
        pods: the candidates.
        related: the pods of all ReplicaSets of the same Deployment.
        now_ns: the current time, for ages.
    """
    pods_on_node = Counter(pod.spec.node_name for pod in related if is_active(pod))

    def compare(one: Pod, other: Pod) -> int:
        return _compare_ages(one, other, now_ns)

    age = cmp_to_key(compare)
    return sorted(pods, key=lambda pod: (*_rank(pod), _deletion_cost(pod), -pods_on_node[pod.spec.node_name], age(pod)))


def rank_active(pods: Iterable[Pod]) -> list[Pod]:
    """Return pods in a Job's deletion order: like `rank_for_deletion`, with exact times, ignoring costs and related pods."""

    def key(pod: Pod) -> tuple[tuple[bool, int, bool], tuple[bool, int], tuple[int, int], tuple[bool, int]]:
        regular, sidecar = _restarts(pod)
        return _rank(pod), _latest_first(_ready_since(pod)), (-regular, -sidecar), _latest_first(_created(pod))

    return sorted(pods, key=key)


def _rank(pod: Pod) -> tuple[bool, int, bool]:
    return bool(pod.spec.node_name), _PHASES.get(pod.status.phase, 0), is_ready(pod)


def _deletion_cost(pod: Pod) -> int:
    text = pod.metadata.annotations.get(DELETION_COST_ANNOTATION)
    if text is None:
        return 0
    # Upstream uses 0 for values that it cannot parse: a leading plus or zero, or more than 32 bits.
    if not re.fullmatch(r"-[0-9]+|0|[1-9][0-9]*", text, re.ASCII) or len(text) > 12:
        return 0
    cost = int(text)
    return cost if -(2**31) <= cost < 2**31 else 0


def _ready_since(pod: Pod) -> int | None:
    since = condition_time(pod, "Ready", "True")
    return parse_time_ns(since) if since is not None else None


def _created(pod: Pod) -> int | None:
    created = pod.metadata.creation_timestamp
    return parse_time_ns(created) if created is not None else None


def _latest_first(time_ns: int | None) -> tuple[bool, int]:
    """Return the sort key of a time: a missing time first, then the latest."""
    return (False, 0) if time_ns is None else (True, -time_ns)


def _restarts(pod: Pod) -> tuple[int, int]:
    """Return the largest number of restarts of a container, and of a sidecar, which breaks ties."""
    status = pod.status
    regular = max((each.restart_count for each in status.container_statuses), default=0)
    if not status.init_container_statuses:
        return regular, 0
    sidecars = {each.name for each in pod.spec.init_containers if each.restart_policy == "Always"}
    restarts = (each.restart_count for each in status.init_container_statuses if each.name in sidecars)
    return regular, max(restarts, default=0)


def _compare_ages(one: Pod, other: Pod, now_ns: int) -> int:
    if is_ready(one) and is_ready(other):
        by_ready = _compare_by_age(_ready_since(one), _ready_since(other), one, other, now_ns)
        if by_ready:
            return by_ready
    restarts, other_restarts = _restarts(one), _restarts(other)
    if restarts != other_restarts:
        return -1 if restarts > other_restarts else 1
    return _compare_by_age(_created(one), _created(other), one, other, now_ns)


def _compare_by_age(since: int | None, other_since: int | None, one: Pod, other: Pod, now_ns: int) -> int:
    """Compare two times: 0 if equal; the younger first on a logarithmic scale; within one power of two, by uid.

    A missing time is first.
    """
    if since == other_since:
        return 0
    if since is None or other_since is None:
        return -1 if since is None else 1
    difference = _magnitude(now_ns - since) - _magnitude(now_ns - other_since)
    if difference:
        return difference
    return -1 if one.metadata.uid < other.metadata.uid else 1


def _magnitude(age_ns: int) -> int:
    return age_ns.bit_length() - 1 if age_ns > 0 else -1
