"""Groups of nodes in answers: by zone and node pool."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

ZONE = "topology.kubernetes.io/zone"

POOL_LABELS = (
    "karpenter.sh/nodepool",
    "eks.amazonaws.com/nodegroup",
    "cloud.google.com/gke-nodepool",
    "kubernetes.azure.com/agentpool",
    "agentpool",
    "alpha.eksctl.io/nodegroup-name",
    "kops.k8s.io/instancegroup",
    "node-pool",
    "pool",
)
"""Labels that providers use for node pools, in order of precedence."""

INSTANCE_TYPE = "node.kubernetes.io/instance-type"
"""Used as the pool of nodes that have none of these labels."""


class Group(NamedTuple):
    """Zone and pool of a node; "" if it has none."""

    zone: str
    pool: str


def group_of(labels: Mapping[str, str]) -> Group:
    """Return the group of a node by its labels."""
    pool = next((labels[name] for name in POOL_LABELS if labels.get(name)), labels.get(INSTANCE_TYPE, ""))
    return Group(labels.get(ZONE, ""), pool)
