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
    "nodepool",
    "pool",
)
"""Labels that providers use for node pools, in order of precedence."""

_GIVEN_PREFIXES = (
    "kubernetes.io/",
    "beta.kubernetes.io/",
    "failure-domain.beta.kubernetes.io/",
    "feature.node.kubernetes.io/",
    "node.kubernetes.io/",
    "topology.",
    "karpenter.",
    "cloud.google.com/",
    "eks.amazonaws.com/",
    "kubernetes.azure.com/",
    "nvidia.com/",
)
"""Prefixes of labels that the kubelet, the cloud or a device's operator sets."""

_PROPERTIES = (
    "accelerator",
    "arch",
    "capacity",
    "cpu",
    "datacenter",
    "disk",
    "gpu",
    "hardware",
    "hostname",
    "instance",
    "kernel",
    "lifecycle",
    "machine",
    "memory",
    "nodegroup",
    "nvme",
    "pool",
    "rack",
    "region",
    "ssd",
    "storage",
    "zone",
)
"""Words in the names of labels that describe hardware, location or pool of a node: ``disktype``, ``example.com/gpu-model``."""

INSTANCE_TYPE = "node.kubernetes.io/instance-type"
"""Used as the pool of nodes that have none of these labels."""


class Group(NamedTuple):
    """Zone and pool of a node; "" if it has none."""

    zone: str
    pool: str


def describes_node(label: str) -> bool:
    """Return whether a label describes a node or its location, so that it must not be changed to attract a pod."""
    if label in POOL_LABELS or label.startswith(_GIVEN_PREFIXES):
        return True
    name = label.rpartition("/")[2].lower().replace("-", "").replace("_", "").replace(".", "")
    return any(word in name for word in _PROPERTIES)


def describes_place(label: str) -> bool:
    """Return whether a label gives the zone or region of a node, under any name."""
    return label.rpartition("/")[2] in ("zone", "region") and ("topology." in label or "failure-domain" in label)


def group_of(labels: Mapping[str, str]) -> Group:
    """Return the group of a node by its labels."""
    pool = next((labels[name] for name in POOL_LABELS if labels.get(name)), labels.get(INSTANCE_TYPE, ""))
    return Group(labels.get(ZONE, ""), pool)
