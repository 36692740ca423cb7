"""MaxCSIVolumeCountPred: limits the volumes of a CSI driver on a node, by the limit in its status or its CSINode."""

from __future__ import annotations

from collections import Counter
from hashlib import sha1

from bayplan.classic.arguments import classic_arguments
from bayplan.classic.plugins.attached_volumes import NO_NAME, NOT_BOUND, UnnamedClaim, reported_limits
from bayplan.classic.plugins.failure_reasons import MAX_VOLUME_COUNT_EXCEEDED, verdict_of
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.plugin import PROCEED, FilterPlugin, Handle, Params, PreFilterPlugin, PreFilterResult, Reads
from bayplan.framework.rule import FilterRule
from bayplan.framework.status import ERROR_BIT, SKIP, Status
from bayplan.objects.node import Node
from bayplan.objects.pod import Pod
from bayplan.objects.storage import CSINode, PersistentVolume, PersistentVolumeClaim, StorageClass
from bayplan.plugins.csi_migration import AWS_EBS, AZURE_DISK, AZURE_FILE, CINDER, GCE_PD
from bayplan.plugins.pod_claims import PodVolumes, class_of_claim, pod_volumes
from bayplan.state.cluster_state import ClusterState
from bayplan.state.object_catalog import ObjectCatalog
from bayplan.state.volume_use import VolumeUse

EXCEEDED = verdict_of(1, MAX_VOLUME_COUNT_EXCEEDED)
UNNAMED = 2 | ERROR_BIT
LIMIT_PREFIX = "attachable-volumes-csi-"
MAX_KEY_LENGTH = 63
MIGRATABLE = frozenset((AWS_EBS, GCE_PD, AZURE_DISK, AZURE_FILE, CINDER))
"""In-tree provisioners. Their unbound claims count for no CSI driver, because CSI migration is disabled."""


class MaxCSIVolumeCountPred(PreFilterPlugin[PodVolumes], FilterPlugin[PodVolumes]):
    """Rejects nodes that would exceed their limit for the volumes of a driver."""

    name = "MaxCSIVolumeCountPred"
    reads = Reads.EVERYTHING
    pre_reads = Reads.NOTHING

    def __init__(self, arguments: object, handle: Handle) -> None:
        super().__init__(arguments, handle)
        self._attach_volume_limit = classic_arguments(arguments).gates.attach_volume_limit
        self._use = VolumeUse(handle.cluster)

    def compile(self, pod: Pod, cluster: ClusterState) -> PodVolumes:
        """Return the pod's volumes."""
        return pod_volumes(pod)

    def pre_filter(self, spec: PodVolumes, cluster: ClusterState, state: CycleState) -> PreFilterResult | Status:
        """Return SKIP for pods without claims."""
        return PROCEED if spec.has_named_claims and self._attach_volume_limit else SKIP

    def filter_rule(self, spec: PodVolumes, cluster: ClusterState) -> FilterRule:
        """Return the rule that counts the volumes of a node."""
        return TooManyCsiVolumes(self, spec, self._use, cluster)

    def verdict(self, wanted: dict[str, str], node: Node, row: int, catalog: ObjectCatalog) -> int:
        """Return `EXCEEDED` if the node would exceed a driver's limit, `UNNAMED` if a claim on it has no name, or 0."""
        limits = reported_limits(node)
        csi_node = catalog.get(CSINode, node.metadata.name)
        for driver in csi_node.spec.drivers if csi_node is not None else ():
            if driver.allocatable is not None and driver.allocatable.count is not None:
                limits[limit_key(driver.name)] = driver.allocatable.count
        if not limits:
            return 0
        attached: dict[str, str] = {}
        try:
            for info in self._use.pods_on.get(row, ()):
                attached.update(csi_volumes(pod_volumes(info.pod), catalog))
        except UnnamedClaim:
            return UNNAMED
        counts = Counter(attached.values())
        for key, count in Counter(key for name, key in wanted.items() if name not in attached).items():
            if key in limits and counts[key] + count > limits[key]:
                return EXCEEDED
        return 0

    def reasons(self, spec: PodVolumes, params: Params | None, verdict: int) -> tuple[str, ...]:
        """Return the only reason, or the error."""
        return (NO_NAME,) if verdict == UNNAMED else (MAX_VOLUME_COUNT_EXCEEDED,)


class TooManyCsiVolumes(FilterRule):
    """Returns `EXCEEDED` if the node would exceed a driver's limit, `UNNAMED` if a claim has no name."""

    def __init__(self, plugin: MaxCSIVolumeCountPred, spec: PodVolumes, use: VolumeUse, cluster: ClusterState) -> None:
        super().__init__(cluster.columns)
        self._plugin, self._spec, self._use, self._cluster = plugin, spec, use, cluster
        self._wanted: dict[str, str] | None = {}

    def refresh(self) -> bool:
        """Look up the pod's volumes, which depend on claims and classes, and process added and removed pods."""
        try:
            self._wanted = csi_volumes(self._spec, self._cluster.catalog)
        except UnnamedClaim:
            self._wanted = None
        self._use.refresh()
        return False

    def filter(self, row: int) -> int:
        """Return the verdict for a node: 0 if the pod's CSI volumes stay within its attach limits."""
        if self._wanted is None:
            return UNNAMED
        node = self._cluster.nodes.nodes[row]
        if not self._wanted or node is None:
            return 0
        return self._plugin.verdict(self._wanted, node, row, self._cluster.catalog)


def csi_volumes(volumes: PodVolumes, catalog: ObjectCatalog) -> dict[str, str]:
    """Map each CSI volume that a pod claims (``driver/handle``) to the name of its driver's attach limit.

    Raises:
        UnnamedClaim: a claim has no name.
    """
    found = {}
    for volume in volumes.volumes:
        if volume.claim is None or volume.ephemeral:
            continue
        if not volume.claim:
            raise UnnamedClaim(NO_NAME)
        claim = catalog.get(PersistentVolumeClaim, f"{volumes.namespace}/{volume.claim}")
        driver, handle = _driver_and_handle(claim, catalog) if claim is not None else ("", "")
        if driver and handle:
            found[f"{driver}/{handle}"] = limit_key(driver)
    return found


def _driver_and_handle(claim: PersistentVolumeClaim, catalog: ObjectCatalog) -> tuple[str, str]:
    volume = catalog.get(PersistentVolume, claim.spec.volume_name) if claim.spec.volume_name else None
    if volume is not None:
        csi = volume.spec.csi
        return ("", "") if csi is None else (csi.driver, csi.volume_handle)
    storage_class = catalog.get(StorageClass, class_of_claim(claim))
    if storage_class is None or storage_class.provisioner in MIGRATABLE:
        return "", ""
    return storage_class.provisioner, f"{NOT_BOUND}{claim.key}"


def limit_key(driver: str) -> str:
    """Return the name of the resource that limits a driver's volumes; long driver names are shortened with a hash."""
    if len(LIMIT_PREFIX) + len(driver) < MAX_KEY_LENGTH:
        return LIMIT_PREFIX + driver
    return LIMIT_PREFIX + driver[:23] + sha1(driver.encode(), usedforsecurity=False).hexdigest()[:16]
