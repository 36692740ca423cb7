"""The kinds of objects that the scheduler watches; it ignores changes of other kinds."""

from __future__ import annotations

from bayplan.cluster.store import Kind
from bayplan.objects.namespace import Namespace
from bayplan.objects.node import Node
from bayplan.objects.pod import Pod
from bayplan.objects.policy import PodDisruptionBudget, PodGroup
from bayplan.objects.resource import DeviceClass, DeviceTaintRule, ResourceClaim, ResourceSlice
from bayplan.objects.service import Service
from bayplan.objects.storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from bayplan.objects.workloads import ReplicaSet, ReplicationController, StatefulSet

WATCHED_KINDS: frozenset[Kind] = frozenset(
    (
        Pod,
        Node,
        Namespace,
        Service,
        ReplicationController,
        ReplicaSet,
        StatefulSet,
        PodDisruptionBudget,
        PodGroup,
        PersistentVolume,
        PersistentVolumeClaim,
        StorageClass,
        CSINode,
        CSIDriver,
        CSIStorageCapacity,
        VolumeAttachment,
        ResourceClaim,
        ResourceSlice,
        DeviceClass,
        DeviceTaintRule,
    )
)
"""The kinds for which kube-scheduler has informers. Only for membership tests; never iterated over."""
