"""In-tree volumes in the terms of the CSI drivers that replaced their plugins. This module is not a plugin.

Source: KEP-625, and the names that the drivers document.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from urllib.parse import unquote

import msgspec
from msgspec.structs import replace

from bayplan.base.go_text.quoting import quote
from bayplan.objects.affinity import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from bayplan.objects.storage import PersistentVolume, PersistentVolumeSpec
from bayplan.objects.volumes import Volume

AWS_EBS = "kubernetes.io/aws-ebs"
GCE_PD = "kubernetes.io/gce-pd"
AZURE_DISK = "kubernetes.io/azure-disk"
CINDER = "kubernetes.io/cinder"
PORTWORX = "kubernetes.io/portworx-volume"
AZURE_FILE = "kubernetes.io/azure-file"
VSPHERE = "kubernetes.io/vsphere-volume"

_BY_FIELD = MappingProxyType(
    {
        "aws_elastic_block_store": (AWS_EBS, "ebs.csi.aws.com"),
        "gce_persistent_disk": (GCE_PD, "pd.csi.storage.gke.io"),
        "azure_disk": (AZURE_DISK, "disk.csi.azure.com"),
        "cinder": (CINDER, "cinder.csi.openstack.org"),
        "portworx_volume": (PORTWORX, "pxd.portworx.com"),
        "azure_file": (AZURE_FILE, "file.csi.azure.com"),
        "vsphere_volume": (VSPHERE, "csi.vsphere.vmware.com"),
    }
)
"""By the field of a volume: the in-tree plugin, and the CSI driver that replaces it."""

DRIVERS = MappingProxyType(dict(_BY_FIELD.values()))
"""The CSI driver that replaces each in-tree plugin."""

MIGRATED = frozenset({AWS_EBS, GCE_PD, AZURE_DISK, CINDER, PORTWORX})
"""Plugins whose volumes the scheduler treats as volumes of their CSI driver; it never translates those of the others."""

TOPOLOGY_KEYS = MappingProxyType(
    {
        AWS_EBS: "topology.ebs.csi.aws.com/zone",
        GCE_PD: "topology.gke.io/zone",
        CINDER: "topology.cinder.csi.openstack.org/zone",
    }
)
"""The node label that contains a driver's zone, for drivers whose volumes' zones are translated."""

ZONE, REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
BETA_ZONE, BETA_REGION = "failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region"
ZONE_DELIMITER = "__"
UNSPECIFIED = "UNSPECIFIED"


class TranslationError(ValueError):
    """A volume that can't be translated; the text is upstream's. Each caller decides how to handle it."""


class CsiVolume(msgspec.Struct, frozen=True):
    """A volume in the terms of its CSI driver.

    Attributes:
        handle: the driver's identifier of the volume.
        node_affinity: the nodes that can access the volume; None for inline volumes, and if all nodes can.
    """

    driver: str
    handle: str
    node_affinity: NodeSelector | None = None


def in_tree_plugin(source: Volume | PersistentVolumeSpec) -> str:
    """Return a volume's in-tree plugin if a CSI driver has replaced it, else ""."""
    for field, (plugin, _) in _BY_FIELD.items():
        if getattr(source, field) is not None:
            return plugin
    return ""


def translate_inline_volume(volume: Volume) -> CsiVolume:
    """Return an inline volume of a migrated plugin in the terms of its CSI driver.

    Raises:
        TranslationError: the volume's identifier is invalid.
    """
    return CsiVolume(DRIVERS[in_tree_plugin(volume)], handle_of(volume, volume.name, {}))


def translate_volume(volume: PersistentVolume) -> CsiVolume:
    """Return a persistent volume of a migrated plugin in the terms of its CSI driver.

    Raises:
        TranslationError: the volume's identifier or zones are invalid.
    """
    spec, labels, plugin = volume.spec, volume.metadata.labels, in_tree_plugin(volume.spec)
    handle = handle_of(spec, volume.metadata.name, labels)
    affinity = spec.node_affinity.required if spec.node_affinity is not None else None
    if plugin in TOPOLOGY_KEYS:
        affinity = _translate_topology(affinity, labels, TOPOLOGY_KEYS[plugin])
    return CsiVolume(DRIVERS[plugin], handle, affinity)


# Identifiers.


def handle_of(source: Volume | PersistentVolumeSpec, name: str, labels: Mapping[str, str]) -> str:
    """Return the CSI driver's identifier of a volume. `labels`: those of a persistent volume. `name`: for errors."""
    if source.aws_elastic_block_store is not None:
        return _ebs_volume_id(source.aws_elastic_block_store.volume_id)
    if source.gce_persistent_disk is not None:
        return f"projects/{UNSPECIFIED}/{_gce_place(labels)}/disks/{source.gce_persistent_disk.pd_name}"
    if (disk := source.azure_disk) is not None:
        if disk.kind is not None and disk.kind.lower() != "managed":
            raise TranslationError(f"kind({disk.kind}) is not supported in csi migration")
        return disk.disk_uri
    if source.cinder is not None:
        return source.cinder.volume_id
    if source.portworx_volume is not None:
        return source.portworx_volume.volume_id
    raise TranslationError(f"could not find in-tree plugin translation logic for {quote(name)}")


_AWS_VOLUME = re.compile(r"vol-[^/]*\n?\Z")


def _ebs_volume_id(text: str) -> str:
    """Return the volume ID in ``aws://<zone>/<volume>`` or ``aws:///<volume>``; return any other string unchanged."""
    prefix = "failed to translate Kubernetes ID to EBS Volume ID"
    if not text.startswith("aws://"):
        return text
    path = re.split(r"[?#]", text.removeprefix("aws://"), maxsplit=1)[0].partition("/")[2]
    volume = unquote(path).strip("/")
    if not _AWS_VOLUME.match(volume):
        raise TranslationError(f"{prefix} Invalid format for AWS volume ({text})")
    return volume


def _gce_place(labels: Mapping[str, str]) -> str:
    zones = (labels.get(BETA_ZONE) or labels.get(ZONE) or "").split(ZONE_DELIMITER)
    return f"regions/{_gce_region(zones)}" if len(zones) > 1 else f"zones/{zones[0] or UNSPECIFIED}"


def _gce_region(zones: list[str]) -> str:
    """Return the region that contains all zones; their names have the form ``<continent>-<region>-<letter>``."""
    prefix = "failed to get region from zones:"
    regions = set()
    for zone in zones:
        parts = zone.split("-")
        if len(parts) != 3:
            wanted = "expected: {locale}-{region}-{zone}"
            raise TranslationError(f"{prefix} zone in unexpected format, {wanted}, got: {zone}")
        regions.add("-".join(parts[:2]))
    if len(regions) != 1:
        listed = " ".join(f"{region}:{{}}" for region in sorted(regions))
        raise TranslationError(f"{prefix} multiple or no regions gotten from zones, got: map[{listed}]")
    return regions.pop()


# Topology.


def _translate_topology(affinity: NodeSelector | None, labels: Mapping[str, str], csi_key: str) -> NodeSelector | None:
    """Return the affinity with the driver's label key for its zones, which default to those of the volume's labels.

    A region in the affinity gets the current label name.
    """
    terms = affinity.node_selector_terms if affinity is not None else ()
    beta = _uses_beta_labels(terms, labels)
    zone = BETA_ZONE if beta else ZONE
    if _values_of(terms, zone):
        terms = _renamed(terms, zone, csi_key)
    elif zone in labels:
        zones = sorted({part.strip() for part in labels[zone].split(ZONE_DELIMITER)} - {""})
        if zones:
            extra = NodeSelectorRequirement(key=csi_key, operator="In", values=tuple(zones))
            terms = tuple(
                replace(term, match_expressions=(*term.match_expressions, extra))
                for term in terms or (NodeSelectorTerm(),)
            )
    if beta and _values_of(terms, BETA_REGION):
        terms = _renamed(terms, BETA_REGION, REGION)
    if affinity is None:
        return NodeSelector(node_selector_terms=terms) if terms else None
    return replace(affinity, node_selector_terms=terms)


def _uses_beta_labels(terms: tuple[NodeSelectorTerm, ...], labels: Mapping[str, str]) -> bool:
    """Return whether the zone has the old name, in the affinity or else in the labels; the new name has precedence."""
    keys = {requirement.key for term in terms for requirement in term.match_expressions}
    for names in (keys, labels):
        if ZONE in names:
            return False
        if BETA_ZONE in names:
            return True
    return False


def _values_of(terms: tuple[NodeSelectorTerm, ...], key: str) -> bool:
    return any(item.key == key and item.values for term in terms for item in term.match_expressions)


def _renamed(terms: tuple[NodeSelectorTerm, ...], old: str, new: str) -> tuple[NodeSelectorTerm, ...]:
    return tuple(
        replace(
            term,
            match_expressions=tuple(
                replace(item, key=new) if item.key == old else item for item in term.match_expressions
            ),
        )
        for term in terms
    )
