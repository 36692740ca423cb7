"""The volumes of a pod, and the sources that persistent volumes share with them.

Sources are omitted if neither scheduling, volume limits, zones nor the virtual kubelet read them.
"""

# ruff: noqa: RUF012 - msgspec gives every instance its own empty dict.

from msgspec import field

from bayplan.objects.meta import ApiStruct, Int32, LabelSelector, ObjectMeta, QuantityText, ResourceList


class LocalObjectReference(ApiStruct, frozen=True, kw_only=True):
    """The name of an object in the same namespace."""

    name: str = ""


class SecretReference(ApiStruct, frozen=True, kw_only=True):
    """The name and namespace of a secret."""

    name: str = ""
    namespace: str = ""


class HostPathVolumeSource(ApiStruct, frozen=True, kw_only=True):
    """A path on the node."""

    path: str = ""
    type: str | None = None


class EmptyDirVolumeSource(ApiStruct, frozen=True, kw_only=True):
    """A directory that exists as long as the pod."""

    medium: str = ""
    size_limit: QuantityText | None = None


class GCEPersistentDiskVolumeSource(ApiStruct, frozen=True, kw_only=True):
    """A persistent disk of Google Compute Engine."""

    pd_name: str = ""
    fs_type: str = ""
    partition: Int32 = 0
    read_only: bool = False


class AWSElasticBlockStoreVolumeSource(ApiStruct, frozen=True, kw_only=True):
    """A disk of AWS EBS."""

    volume_id: str = field(name="volumeID", default="")
    fs_type: str = ""
    partition: Int32 = 0
    read_only: bool = False


class AzureDiskVolumeSource(ApiStruct, frozen=True, kw_only=True):
    """A data disk of Azure."""

    disk_name: str = ""
    disk_uri: str = field(name="diskURI", default="")
    caching_mode: str | None = None
    fs_type: str | None = None
    read_only: bool | None = None
    kind: str | None = None


class AzureFileVolumeSource(ApiStruct, frozen=True, kw_only=True):
    """A file share of Azure, in a pod."""

    secret_name: str = ""
    share_name: str = ""
    read_only: bool = False


class AzureFilePersistentVolumeSource(ApiStruct, frozen=True, kw_only=True):
    """A file share of Azure, in a persistent volume."""

    secret_name: str = ""
    share_name: str = ""
    read_only: bool = False
    secret_namespace: str | None = None


class CinderVolumeSource(ApiStruct, frozen=True, kw_only=True):
    """A disk of OpenStack, in a pod."""

    volume_id: str = field(name="volumeID", default="")
    fs_type: str = ""
    read_only: bool = False
    secret_ref: LocalObjectReference | None = None


class CinderPersistentVolumeSource(ApiStruct, frozen=True, kw_only=True):
    """A disk of OpenStack, in a persistent volume."""

    volume_id: str = field(name="volumeID", default="")
    fs_type: str = ""
    read_only: bool = False
    secret_ref: SecretReference | None = None


class VsphereVirtualDiskVolumeSource(ApiStruct, frozen=True, kw_only=True):
    """A disk of vSphere."""

    volume_path: str = ""
    fs_type: str = ""
    storage_policy_name: str = ""
    storage_policy_id: str = field(name="storagePolicyID", default="")


class PortworxVolumeSource(ApiStruct, frozen=True, kw_only=True):
    """A volume of Portworx."""

    volume_id: str = field(name="volumeID", default="")
    fs_type: str = ""
    read_only: bool = False


class ISCSIVolumeSource(ApiStruct, frozen=True, kw_only=True):
    """A disk over iSCSI. In pods and persistent volumes it differs only in a secret, which Bayplan does not read."""

    target_portal: str = ""
    iqn: str = ""
    lun: Int32 = 0
    iscsi_interface: str = ""
    fs_type: str = ""
    read_only: bool = False
    portals: tuple[str, ...] = ()
    initiator_name: str | None = None


class RBDVolumeSource(ApiStruct, frozen=True, kw_only=True):
    """A Ceph disk. In pods and persistent volumes it differs only in a secret, which Bayplan does not read."""

    monitors: tuple[str, ...] = ()
    image: str = ""
    fs_type: str = ""
    pool: str = ""
    user: str = ""
    read_only: bool = False


class NFSVolumeSource(ApiStruct, frozen=True, kw_only=True):
    """A directory over NFS."""

    server: str = ""
    path: str = ""
    read_only: bool = False


class FCVolumeSource(ApiStruct, frozen=True, kw_only=True):
    """A disk over Fibre Channel."""

    target_wwns: tuple[str, ...] = field(name="targetWWNs", default=())
    lun: Int32 | None = None
    fs_type: str = ""
    read_only: bool = False
    wwids: tuple[str, ...] = ()


class LocalVolumeSource(ApiStruct, frozen=True, kw_only=True):
    """A disk or directory of one node, in a persistent volume."""

    path: str = ""
    fs_type: str | None = None


class CSIVolumeSource(ApiStruct, frozen=True, kw_only=True):
    """An ephemeral volume of a CSI driver, in a pod."""

    driver: str = ""
    read_only: bool | None = None
    fs_type: str | None = None
    volume_attributes: dict[str, str] = {}


class CSIPersistentVolumeSource(ApiStruct, frozen=True, kw_only=True):
    """A volume of a CSI driver, in a persistent volume."""

    driver: str = ""
    volume_handle: str = ""
    read_only: bool = False
    fs_type: str = ""
    volume_attributes: dict[str, str] = {}


class ConfigMapVolumeSource(ApiStruct, frozen=True, kw_only=True):
    """A volume with the contents of a ConfigMap."""

    name: str = ""
    optional: bool | None = None


class SecretVolumeSource(ApiStruct, frozen=True, kw_only=True):
    """A volume with the contents of a Secret."""

    secret_name: str = ""
    optional: bool | None = None


class PersistentVolumeClaimVolumeSource(ApiStruct, frozen=True, kw_only=True):
    """A claim in the pod's namespace."""

    claim_name: str = ""
    read_only: bool = False


class ImageVolumeSource(ApiStruct, frozen=True, kw_only=True):
    """The files of a container image."""

    reference: str = ""
    pull_policy: str = ""


class VolumeResourceRequirements(ApiStruct, frozen=True, kw_only=True):
    """The storage requests of a claim."""

    limits: ResourceList = {}
    requests: ResourceList = {}


class TypedLocalObjectReference(ApiStruct, frozen=True, kw_only=True):
    """An object in the same namespace from which a claim gets its data."""

    api_group: str | None = None
    kind: str = ""
    name: str = ""


class TypedObjectReference(ApiStruct, frozen=True, kw_only=True):
    """An object, possibly in another namespace, from which a claim gets its data."""

    api_group: str | None = None
    kind: str = ""
    name: str = ""
    namespace: str | None = None


class PersistentVolumeClaimSpec(ApiStruct, frozen=True, kw_only=True):
    """The spec of a claim. `storage_class_name` is None for the default class, "" for no class."""

    access_modes: tuple[str, ...] = ()
    selector: LabelSelector | None = None
    resources: VolumeResourceRequirements = VolumeResourceRequirements()
    volume_name: str = ""
    storage_class_name: str | None = None
    volume_mode: str | None = None
    data_source: TypedLocalObjectReference | None = None
    data_source_ref: TypedObjectReference | None = None
    volume_attributes_class_name: str | None = None


class PersistentVolumeClaimTemplate(ApiStruct, frozen=True, kw_only=True):
    """The metadata and spec of the claim that is created for an ephemeral volume."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()


class EphemeralVolumeSource(ApiStruct, frozen=True, kw_only=True):
    """A claim that exists as long as its pod, under the name `<pod>-<volume>`."""

    volume_claim_template: PersistentVolumeClaimTemplate | None = None


class Volume(ApiStruct, frozen=True, kw_only=True):
    """A volume of a pod: a name and one source. All sources are None if scheduling does not read the volume's kind."""

    name: str = ""
    host_path: HostPathVolumeSource | None = None
    empty_dir: EmptyDirVolumeSource | None = None
    gce_persistent_disk: GCEPersistentDiskVolumeSource | None = None
    aws_elastic_block_store: AWSElasticBlockStoreVolumeSource | None = None
    secret: SecretVolumeSource | None = None
    nfs: NFSVolumeSource | None = None
    iscsi: ISCSIVolumeSource | None = None
    persistent_volume_claim: PersistentVolumeClaimVolumeSource | None = None
    rbd: RBDVolumeSource | None = None
    cinder: CinderVolumeSource | None = None
    fc: FCVolumeSource | None = None
    azure_file: AzureFileVolumeSource | None = None
    config_map: ConfigMapVolumeSource | None = None
    vsphere_volume: VsphereVirtualDiskVolumeSource | None = None
    azure_disk: AzureDiskVolumeSource | None = None
    portworx_volume: PortworxVolumeSource | None = None
    csi: CSIVolumeSource | None = None
    ephemeral: EphemeralVolumeSource | None = None
    image: ImageVolumeSource | None = None
