"""The reasons of predicates, and which of them evicting pods can't resolve.

The texts are those of upstream's predicate errors in events, in v1.16.
"""

from __future__ import annotations

from bayplan.framework.status import UNRESOLVABLE_BIT

DISK_CONFLICT = "node(s) had no available disk"
VOLUME_ZONE_CONFLICT = "node(s) had no available volume zone"
NODE_SELECTOR_NOT_MATCH = "node(s) didn't match node selector"
POD_AFFINITY_NOT_MATCH = "node(s) didn't match pod affinity/anti-affinity"
POD_AFFINITY_RULES_NOT_MATCH = "node(s) didn't match pod affinity rules"
POD_ANTI_AFFINITY_RULES_NOT_MATCH = "node(s) didn't match pod anti-affinity rules"
EXISTING_PODS_ANTI_AFFINITY_RULES_NOT_MATCH = "node(s) didn't satisfy existing pods anti-affinity rules"
TAINTS_TOLERATIONS_NOT_MATCH = "node(s) had taints that the pod didn't tolerate"
POD_NOT_MATCH_HOST_NAME = "node(s) didn't match the requested hostname"
POD_NOT_FITS_HOST_PORTS = "node(s) didn't have free ports for the requested pod ports"
NODE_LABEL_PRESENCE_VIOLATED = "node(s) didn't have the requested labels"
SERVICE_AFFINITY_VIOLATED = "node(s) didn't match service affinity"
MAX_VOLUME_COUNT_EXCEEDED = "node(s) exceed max volume count"
NODE_UNDER_MEMORY_PRESSURE = "node(s) had memory pressure"
NODE_UNDER_DISK_PRESSURE = "node(s) had disk pressure"
NODE_UNDER_PID_PRESSURE = "node(s) had pid pressure"
NODE_NOT_READY = "node(s) were not ready"
NODE_NETWORK_UNAVAILABLE = "node(s) had unavailable network"
NODE_UNSCHEDULABLE = "node(s) were unschedulable"
VOLUME_NODE_CONFLICT = "node(s) had volume node affinity conflict"
VOLUME_BIND_CONFLICT = "node(s) didn't find available persistent volumes to bind"
TOPOLOGY_SPREAD_CONSTRAINTS_NOT_MATCH = "node(s) didn't match pod topology spread constraints"

UNRESOLVABLE = frozenset(
    (
        NODE_SELECTOR_NOT_MATCH,
        POD_AFFINITY_RULES_NOT_MATCH,
        POD_NOT_MATCH_HOST_NAME,
        TAINTS_TOLERATIONS_NOT_MATCH,
        NODE_LABEL_PRESENCE_VIOLATED,
        NODE_NOT_READY,
        NODE_NETWORK_UNAVAILABLE,
        NODE_UNDER_DISK_PRESSURE,
        NODE_UNDER_PID_PRESSURE,
        NODE_UNDER_MEMORY_PRESSURE,
        NODE_UNSCHEDULABLE,
        VOLUME_ZONE_CONFLICT,
        VOLUME_NODE_CONFLICT,
        VOLUME_BIND_CONFLICT,
    )
)
"""Preemption skips a node that has one of these reasons."""


def verdict_of(flag: int, reason: str) -> int:
    """Return the verdict for a reason: its flag, and `UNRESOLVABLE_BIT` if evicting pods can't help."""
    return flag | (UNRESOLVABLE_BIT if reason in UNRESOLVABLE else 0)
