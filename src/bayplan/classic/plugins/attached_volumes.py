"""The volumes of pods by type of disk, and the number of them that a node may attach."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType

import msgspec

from bayplan.objects.node import Node
from bayplan.objects.quantity import value
from bayplan.objects.storage import PersistentVolume, PersistentVolumeClaim, PersistentVolumeSpec, StorageClass
from bayplan.objects.volumes import Volume
from bayplan.plugins.csi_migration import AWS_EBS, AZURE_DISK, CINDER, GCE_PD
from bayplan.plugins.pod_claims import PodVolumes
from bayplan.state.object_catalog import ObjectCatalog

INSTANCE_TYPE = "beta.kubernetes.io/instance-type"
ATTACHABLE_VOLUMES = "attachable-volumes-"
NITRO = re.compile(r"^[cmr]5.*|t3|z1d")
MAX_EBS_VOLUMES = 39
MAX_EBS_NITRO_VOLUMES = 25
NO_NAME = "PersistentVolumeClaim had no name"
NOT_BOUND = "\0"
"""Prefix of the names of volumes that don't exist yet; upstream uses 32 random letters."""


class VolumeKind(msgspec.Struct, frozen=True):
    """One type of disk.

    Attributes:
        plugin: the name of the in-tree plugin that provisions such disks.
        limit_key: the resource in which a node declares its limit.
        limit: the function that returns the limit of a node that declares none.
        identify: the function that returns the name of the disk of a pod's volume or of a persistent volume; None if it
            is of another type.
    """

    plugin: str
    limit_key: str
    limit: Callable[[Node], int]
    identify: Callable[[Volume | PersistentVolumeSpec], str | None]


def _ebs_limit(node: Node) -> int:
    return MAX_EBS_NITRO_VOLUMES if NITRO.search(node.metadata.labels.get(INSTANCE_TYPE, "")) else MAX_EBS_VOLUMES


def _ebs(source: Volume | PersistentVolumeSpec) -> str | None:
    disk = source.aws_elastic_block_store
    return None if disk is None else disk.volume_id


def _gce(source: Volume | PersistentVolumeSpec) -> str | None:
    disk = source.gce_persistent_disk
    return None if disk is None else disk.pd_name


def _azure(source: Volume | PersistentVolumeSpec) -> str | None:
    disk = source.azure_disk
    return None if disk is None else disk.disk_name


def _cinder(source: Volume | PersistentVolumeSpec) -> str | None:
    disk = source.cinder
    return None if disk is None else disk.volume_id


VOLUME_KINDS: Mapping[str, VolumeKind] = MappingProxyType(
    {
        "MaxEBSVolumeCount": VolumeKind(AWS_EBS, "attachable-volumes-aws-ebs", _ebs_limit, _ebs),
        "MaxGCEPDVolumeCount": VolumeKind(GCE_PD, "attachable-volumes-gce-pd", lambda node: 16, _gce),
        "MaxAzureDiskVolumeCount": VolumeKind(AZURE_DISK, "attachable-volumes-azure-disk", lambda node: 16, _azure),
        "MaxCinderVolumeCount": VolumeKind(CINDER, "attachable-volumes-cinder", lambda node: 256, _cinder),
    }
)
"""The types by the name of the predicate that counts them, in the order of the predicates."""


class UnnamedClaim(Exception):
    """A volume refers to a claim without a name."""


def names_of(kind: VolumeKind, volumes: PodVolumes, catalog: ObjectCatalog) -> Iterable[str]:
    """Return the names of a pod's volumes of one type.

    They include unresolved claims whose storage class provisions this type.

    Raises:
        UnnamedClaim: a volume refers to a claim without a name.
    """
    found: dict[str, None] = {}
    for volume in volumes.volumes:
        name = kind.identify(volume.source)
        if name is not None:
            found[name] = None
        elif volume.source.persistent_volume_claim is not None:
            if not volume.claim:
                raise UnnamedClaim(NO_NAME)
            name = _name_by_claim(kind, f"{volumes.namespace}/{volume.claim}", catalog)
            if name is not None:
                found[name] = None
    return found


def _name_by_claim(kind: VolumeKind, key: str, catalog: ObjectCatalog) -> str | None:
    claim = catalog.get(PersistentVolumeClaim, key)
    if claim is None:
        return None
    bound = catalog.get(PersistentVolume, claim.spec.volume_name) if claim.spec.volume_name else None
    if bound is not None:
        return kind.identify(bound.spec)
    name = claim.spec.storage_class_name
    storage_class = catalog.get(StorageClass, name) if name is not None else None
    return f"{NOT_BOUND}{key}" if storage_class is not None and storage_class.provisioner == kind.plugin else None


def limit_of(kind: VolumeKind, node: Node, *, attach_volume_limit: bool) -> int:
    """Return a node's limit for a type of disk. A limit that the node declares counts only with AttachVolumeLimit."""
    reported = node.status.allocatable.get(kind.limit_key)
    return value(reported) if attach_volume_limit and reported is not None else kind.limit(node)


def reported_limits(node: Node) -> dict[str, int]:
    """Return the limits that a node declares, by resource name."""
    return {
        name: value(amount) for name, amount in node.status.allocatable.items() if name.startswith(ATTACHABLE_VOLUMES)
    }
