"""Group nodes by zone and node pool."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

ZONE = "topology.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"

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
"""Prefixes of labels that the kubelet, the cloud provider or a device operator sets."""

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
"""Words in the names of labels that describe a node's hardware, location or pool: ``disktype``, ``example.com/gpu-model``."""

INSTANCE_TYPE = "node.kubernetes.io/instance-type"
"""The label that stands for the pool of nodes without a label for pools."""


class Group(NamedTuple):
    """The zone and pool of a node, each "" if unknown."""

    zone: str
    pool: str


def describes_node(label: str) -> bool:
    """Return whether a label describes a node or its location. Such a label must not be changed to attract a pod."""
    if label in POOL_LABELS or label.startswith(_GIVEN_PREFIXES):
        return True
    name = label.rpartition("/")[2].lower().replace("-", "").replace("_", "").replace(".", "")
    return any(word in name for word in _PROPERTIES)


def describes_place(label: str) -> bool:
    """Return whether a label gives the zone or region of a node, whatever its prefix."""
    return label.rpartition("/")[2] in ("zone", "region") and ("topology." in label or "failure-domain" in label)


def group_of(labels: Mapping[str, str]) -> Group:
    """Return the group of a node from its labels."""
    pool = next((labels[name] for name in POOL_LABELS if labels.get(name)), labels.get(INSTANCE_TYPE, ""))
    return Group(labels.get(ZONE, ""), pool)
