"""Storage: persistent volumes, claims, storage classes, and the node and capacity objects of CSI drivers."""

# ruff: noqa: RUF012 - msgspec gives every instance its own empty dict.

from msgspec import field

from bayplan.objects.affinity import NodeSelector
from bayplan.objects.meta import (
    ApiStruct,
    Int32,
    Int64,
    KubernetesObject,
    LabelSelector,
    ObjectReference,
    QuantityText,
    ResourceList,
)
from bayplan.objects.volumes import (
    AWSElasticBlockStoreVolumeSource,
    AzureDiskVolumeSource,
    AzureFilePersistentVolumeSource,
    CinderPersistentVolumeSource,
    CSIPersistentVolumeSource,
    FCVolumeSource,
    GCEPersistentDiskVolumeSource,
    HostPathVolumeSource,
    ISCSIVolumeSource,
    LocalVolumeSource,
    NFSVolumeSource,
    PersistentVolumeClaimSpec,
    PortworxVolumeSource,
    RBDVolumeSource,
    VsphereVirtualDiskVolumeSource,
)


class VolumeNodeAffinity(ApiStruct, frozen=True, kw_only=True):
    """The nodes that can access a volume."""

    required: NodeSelector | None = None


class PersistentVolumeSpec(ApiStruct, frozen=True, kw_only=True):
    """The spec of a volume: its source, and the claim bound to it."""

    capacity: ResourceList = {}
    gce_persistent_disk: GCEPersistentDiskVolumeSource | None = None
    aws_elastic_block_store: AWSElasticBlockStoreVolumeSource | None = None
    host_path: HostPathVolumeSource | None = None
    nfs: NFSVolumeSource | None = None
    rbd: RBDVolumeSource | None = None
    iscsi: ISCSIVolumeSource | None = None
    cinder: CinderPersistentVolumeSource | None = None
    fc: FCVolumeSource | None = None
    azure_file: AzureFilePersistentVolumeSource | None = None
    vsphere_volume: VsphereVirtualDiskVolumeSource | None = None
    azure_disk: AzureDiskVolumeSource | None = None
    portworx_volume: PortworxVolumeSource | None = None
    local: LocalVolumeSource | None = None
    csi: CSIPersistentVolumeSource | None = None
    access_modes: tuple[str, ...] = ()
    claim_ref: ObjectReference | None = None
    persistent_volume_reclaim_policy: str = ""
    storage_class_name: str = ""
    mount_options: tuple[str, ...] = ()
    volume_mode: str | None = None
    node_affinity: VolumeNodeAffinity | None = None
    volume_attributes_class_name: str | None = None


class PersistentVolumeStatus(ApiStruct, frozen=True, kw_only=True):
    """The status of a volume. Phase: Pending, Available, Bound, Released, Failed."""

    phase: str = ""
    message: str = ""
    reason: str = ""


class PersistentVolume(KubernetesObject, frozen=True, kw_only=True):
    """A persistent volume."""

    spec: PersistentVolumeSpec = PersistentVolumeSpec()
    status: PersistentVolumeStatus = PersistentVolumeStatus()


class PersistentVolumeClaimStatus(ApiStruct, frozen=True, kw_only=True):
    """The status of a claim. Phase: Pending, Bound, Lost."""

    phase: str = ""
    access_modes: tuple[str, ...] = ()
    capacity: ResourceList = {}
    allocated_resources: ResourceList = {}


class PersistentVolumeClaim(KubernetesObject, frozen=True, kw_only=True):
    """A persistent volume claim."""

    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()
    status: PersistentVolumeClaimStatus = PersistentVolumeClaimStatus()


class TopologySelectorLabelRequirement(ApiStruct, frozen=True, kw_only=True):
    """A node label, and the values for which a class can provision volumes."""

    key: str = ""
    values: tuple[str, ...] = ()


class TopologySelectorTerm(ApiStruct, frozen=True, kw_only=True):
    """Label requirements that must all hold."""

    match_label_expressions: tuple[TopologySelectorLabelRequirement, ...] = ()


class StorageClass(KubernetesObject, frozen=True, kw_only=True):
    """A storage class."""

    provisioner: str = ""
    parameters: dict[str, str] = {}
    reclaim_policy: str | None = None
    mount_options: tuple[str, ...] = ()
    allow_volume_expansion: bool | None = None
    volume_binding_mode: str | None = None
    allowed_topologies: tuple[TopologySelectorTerm, ...] = ()


class VolumeNodeResources(ApiStruct, frozen=True, kw_only=True):
    """The maximum number of a driver's volumes on a node; None for no limit."""

    count: Int32 | None = None


class CSINodeDriver(ApiStruct, frozen=True, kw_only=True):
    """A CSI driver on a node."""

    name: str = ""
    node_id: str = field(name="nodeID", default="")
    topology_keys: tuple[str, ...] = ()
    allocatable: VolumeNodeResources | None = None


class CSINodeSpec(ApiStruct, frozen=True, kw_only=True):
    """The CSI drivers of a node."""

    drivers: tuple[CSINodeDriver, ...] = ()


class CSINode(KubernetesObject, frozen=True, kw_only=True):
    """The CSI drivers of the node with the same name."""

    spec: CSINodeSpec = CSINodeSpec()


class CSIDriverSpec(ApiStruct, frozen=True, kw_only=True):
    """The capabilities of a CSI driver."""

    attach_required: bool | None = None
    pod_info_on_mount: bool | None = None
    volume_lifecycle_modes: tuple[str, ...] = ()
    storage_capacity: bool | None = None
    fs_group_policy: str | None = None
    requires_republish: bool | None = None
    se_linux_mount: bool | None = None
    node_allocatable_update_period_seconds: Int64 | None = None
    prevent_pod_scheduling_if_missing: bool | None = None


class CSIDriver(KubernetesObject, frozen=True, kw_only=True):
    """A CSI driver."""

    spec: CSIDriverSpec = CSIDriverSpec()


class CSIStorageCapacity(KubernetesObject, frozen=True, kw_only=True):
    """The capacity that a driver can still provision for a class in a part of the cluster."""

    node_topology: LabelSelector | None = None
    storage_class_name: str = ""
    capacity: QuantityText | None = None
    maximum_volume_size: QuantityText | None = None


class VolumeAttachmentSource(ApiStruct, frozen=True, kw_only=True):
    """The volume that is attached."""

    persistent_volume_name: str | None = None
    inline_volume_spec: PersistentVolumeSpec | None = None


class VolumeAttachmentSpec(ApiStruct, frozen=True, kw_only=True):
    """The volume, node and driver of an attachment."""

    attacher: str = ""
    source: VolumeAttachmentSource = VolumeAttachmentSource()
    node_name: str = ""


class VolumeAttachmentStatus(ApiStruct, frozen=True, kw_only=True):
    """Whether the volume is attached."""

    attached: bool = False
    attachment_metadata: dict[str, str] = {}


class VolumeAttachment(KubernetesObject, frozen=True, kw_only=True):
    """The attachment of a volume to a node."""

    spec: VolumeAttachmentSpec = VolumeAttachmentSpec()
    status: VolumeAttachmentStatus = VolumeAttachmentStatus()
