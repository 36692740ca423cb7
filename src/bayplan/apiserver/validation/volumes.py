"""Validation rules of volume sources in pods and persistent volumes, and of claim templates' metadata."""

from __future__ import annotations

import re

from bayplan.apiserver.model.errors import duplicate, forbidden_value, invalid_value, not_supported, required
from bayplan.apiserver.schema.emptied import Emptied
from bayplan.apiserver.validation.claim_specs import CLAIM_SPEC
from bayplan.apiserver.validation.downward import downward_file
from bayplan.apiserver.validation.engine import (
    Causes,
    Rule,
    at_least,
    at_most,
    between,
    each,
    field,
    go_value,
    if_filled,
    inside,
    invalid_if,
    max_bytes,
    must,
    need,
    need_set,
    number,
    one_of,
    optional,
    required_if,
    table,
    value,
    when,
)
from bayplan.apiserver.validation.formats import amount_of, annotation_map, dns_label, dns_subdomain, labels
from bayplan.apiserver.validation.internal_json import shown_as
from bayplan.apiserver.validation.paths import descending_path, no_backsteps, unreserved_path
from bayplan.apiserver.validation.selectors import LABEL_SELECTOR
from bayplan.base.plain_data import Document, part, parts
from bayplan.objects.names import check_dns1123_subdomain
from bayplan.objects.selectors import quote

_MODE_TEXT = "must be a number between 0 and 0777 (octal), both inclusive"
_PARTITION_TEXT = "must be between 1 and 255, inclusive"
_SEVERAL = "may not specify more than 1 volume type"
_HOST_PATH_TYPES = ("", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket")
_IQN = re.compile(r"iqn\.\d{4}-\d{2}\.([A-Za-z0-9\-.]+)(:[^,;*&$|\s]+)")
_EUI = re.compile(r"eui.[A-Za-z0-9]{16}")
_NAA = re.compile(r"naa.[A-Za-z0-9]{32}")

file_mode = must(lambda found: isinstance(found, int) and 0 <= found <= 0o777, _MODE_TEXT)
_partition = number("partition", must(lambda found: isinstance(found, int) and 0 <= found <= 255, _PARTITION_TEXT))

KEY_TO_PATH = table(need("key"), need("path"), value("path", unreserved_path), field("mode", file_mode))


def driver_name(found: object, path: str, out: Causes) -> None:
    """Check the name of a CSI or DRA driver."""
    text = str(found)
    if not text:
        out.append(required(path))
        return
    max_bytes(63)(text, path, out)
    for problem in check_dns1123_subdomain(text.lower()):
        out.append(invalid_value(path, quote(text), problem))


def _iqn(*, at_name: str, prefix_detail: str) -> Rule:
    def run(document: Document, path: str, out: Causes) -> None:
        found = document.get("initiatorName" if at_name == "initiatorname" else "iqn")
        if found is None or (at_name == "iqn" and not found):
            return
        text, here = str(found), f"{path}.{at_name}"
        if not text.startswith(("iqn", "eui", "naa")):
            out.append(invalid_value(here, quote(text), prefix_detail))
        elif not any(pattern.fullmatch(text) for pattern in (_IQN, _EUI, _NAA)):
            out.append(invalid_value(here, quote(text), "must be valid format"))

    return run


_PREFIX_DETAIL = "must be valid format starting with iqn, eui, or naa"


def _iscsi(prefix_detail: str) -> tuple[Rule, ...]:
    return (
        need("targetPortal"),
        need("iqn"),
        _iqn(at_name="iqn", prefix_detail=prefix_detail),
        number("lun", between(0, 255)),
        required_if(
            lambda source: (
                bool(source.get("chapAuthDiscovery") or source.get("chapAuthSession"))
                and source.get("secretRef") is None
            ),
            "secretRef",
        ),
        _iqn(at_name="initiatorname", prefix_detail=prefix_detail),
    )


_FC = table(
    required_if(
        lambda source: not source.get("targetWWNs") and not source.get("wwids"),
        "targetWWNs",
        "must specify either targetWWNs or wwids, but not both",
    ),
    invalid_if(
        lambda source: bool(source.get("targetWWNs") and source.get("wwids")),
        "targetWWNs",
        "targetWWNs and wwids can not be specified simultaneously",
    ),
    when(
        lambda source: bool(source.get("targetWWNs")),
        need_set("lun", "lun is required if targetWWNs is specified"),
        field("lun", between(0, 255)),
    ),
)


def _absolute(found: object, path: str, out: Causes) -> None:
    if not str(found).startswith("/"):
        out.append(invalid_value(path, quote(str(found)), "must be an absolute path"))


def _host_pairs(document: Document, path: str, out: Causes) -> None:
    registry = str(document.get("registry") or "")
    detail = "must be a host:port pair or multiple pairs separated by commas"
    if not registry:
        out.append(required(f"{path}.registry", detail))
    elif len(str(document.get("tenant") or "")) >= 65:
        out.append(required(f"{path}.tenant", "must be a UUID and may not exceed a length of 64 characters"))
    else:
        for pair in registry.split(","):
            if not re.fullmatch(r"(\[[^\]]*\]|[^:\[\]]*):[^:]*", pair):
                out.append(invalid_value(f"{path}.registry", quote(registry), detail))


def _flocker(document: Document, path: str, out: Causes) -> None:
    name, uuid = document.get("datasetName"), document.get("datasetUUID")
    if not name and not uuid:
        out.append(required(path, "one of datasetName and datasetUUID is required"))
    if name and uuid:
        detail = "datasetName and datasetUUID can not be specified simultaneously"
        out.append(invalid_value(path, '"resource"', detail))
    if "/" in str(name or ""):
        out.append(invalid_value(f"{path}.datasetName", quote(str(name)), "must not contain '/'"))


def _flex_options(document: Document, path: str, out: Causes) -> None:
    for key in sorted(part(document, "options")):
        domain = f".{key.partition('/')[0].lower()}"
        if domain.endswith((".kubernetes.io", ".k8s.io")):
            detail = "kubernetes.io and k8s.io namespaces are reserved"
            out.append(invalid_value(f"{path}.options[{key}]", quote(key), detail))


def _azure_uri(document: Document, path: str, out: Causes) -> None:
    kind, uri = document.get("kind"), str(document.get("diskURI") or "")
    managed = "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}"
    blob = "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd"
    if kind == "Managed" and not uri.startswith("/subscriptions/"):
        out.append(not_supported(f"{path}.diskURI", quote(uri), (managed,)))
    elif kind not in (None, "Managed") and not uri.startswith("https://"):
        out.append(not_supported(f"{path}.diskURI", quote(uri), (blob,)))


_AZURE_DISK = table(
    need("diskName"),
    need("diskURI"),
    field("cachingMode", one_of("None", "ReadOnly", "ReadWrite")),
    field("kind", one_of("Dedicated", "Managed", "Shared")),
    _azure_uri,
)
_HOST_PATH = table(
    need("path"),
    when(
        lambda source: bool(source.get("path")), value("path", no_backsteps), field("type", one_of(*_HOST_PATH_TYPES))
    ),
)
_STORAGE_OS = table(need("volumeName", dns_label), value("volumeNamespace", if_filled(dns_label)))
_SECRET_NAME = optional("secretRef", need("name"))
_SECRET_REFERENCE = optional("secretRef", need("name"), need("namespace"))
_PD = table(need("pdName"), _partition)
_EBS = table(need("volumeID"), _partition)
_NFS = table(need("server"), need("path"), value("path", _absolute))
_PORTWORX = need("volumeID")
_SCALE_IO = table(need("gateway"), need("system"), need("volumeName"))
_RBD = table(need("monitors"), need("image"))


# --- projected --------------------------------------------------------------------------------------------------------

_TOKEN = table(
    number(
        "expirationSeconds",
        at_least(600, "may not specify a duration less than 10 minutes"),
        at_most(1 << 32, "may not specify a duration larger than 2^32 seconds"),
    )
)
_CONFLICT = "conflicting duplicate paths"


def _projected(document: Document, path: str, out: Causes) -> None:
    field("defaultMode", file_mode)(document, path, out)
    paths: set[str] = set()

    def note(text: object, shown: object) -> None:
        if text and str(text) in paths:
            out.append(invalid_value(path, go_value(shown), _CONFLICT))
        paths.add(str(text or ""))

    for index, source in enumerate(parts(document, "sources")):
        here = f"{path}.sources[{index}]"
        for name in ("secret", "configMap"):
            inner = source.get(name)
            if isinstance(inner, dict):
                need("name")(inner, f"{here}.{name}", out)
                for position, item in enumerate(parts(inner, "items")):
                    KEY_TO_PATH(item, f"{here}.{name}.items[{position}]", out)
                    note(item.get("path"), inner.get("name") or "")
        inner = source.get("downwardAPI")
        if isinstance(inner, dict):
            for item in parts(inner, "items"):
                downward_file(item, f"{here}.downwardAPI", out)
                note(item.get("path"), item.get("path"))
        _projected_token(source, here, path, out)
        _projected_bundle(source, here, out)
        if isinstance(source.get("clusterTrustBundle"), dict):
            bundle = part(source, "clusterTrustBundle").get("path")
            note(bundle, bundle)
        if len(source) > 1:
            out.append(forbidden_value(here, "may not specify more than 1 volume type per source"))


def _projected_token(source: Document, here: str, path: str, out: Causes) -> None:
    token = source.get("serviceAccountToken")
    if not isinstance(token, dict):
        return
    _TOKEN(token, f"{here}.serviceAccountToken", out)
    need("path", unreserved_path)(token, path, out)


def _projected_bundle(source: Document, here: str, out: Causes) -> None:
    bundle = source.get("clusterTrustBundle")
    if not isinstance(bundle, dict):
        return
    here = f"{here}.clusterTrustBundle"
    name, signer = bundle.get("name"), bundle.get("signerName")
    if name is not None and signer is not None:
        shown = shown_as("core.ClusterTrustBundleProjection")(bundle)
        out.append(invalid_value(here, shown, "only one of name and signerName may be used"))
    elif name is not None:
        if not name:
            out.append(required(f"{here}.name", "must be a valid object name"))
        for problem in check_dns1123_subdomain(str(name).rpartition(":")[2]):
            detail = f"not a valid clustertrustbundlename: {problem}"
            out.append(invalid_value(f"{here}.name", quote(str(name)), detail))
        if bundle.get("labelSelector") is not None:
            detail = "labelSelector must be unset if name is specified"
            out.append(invalid_value(f"{here}.labelSelector", go_value(bundle["labelSelector"]), detail))
    elif signer is not None:
        if not signer:
            out.append(required(f"{here}.signerName", "must be a valid signer name"))
        optional("labelSelector", LABEL_SELECTOR)(bundle, here, out)
    else:
        out.append(required(here, "either name or signerName must be specified"))
    need("path")(bundle, here, out)
    value("path", unreserved_path)(bundle, here, out)


_UNSETTABLE = (
    ("name", "name"), ("generateName", "generateName"), ("namespace", "namespace"), ("selfLink", "selfLink"),
    ("uid", "uID"), ("resourceVersion", "resourceVersion"), ("generation", "generation"),
    ("creationTimestamp", "creationTimestamp"),
    ("deletionTimestamp", "deletionTimestamp"), ("deletionGracePeriodSeconds", "deletionGracePeriodSeconds"),
    ("ownerReferences", "ownerReferences"), ("finalizers", "finalizers"), ("managedFields", "managedFields"),
)  # fmt: skip
"""Metadata fields that claim templates must not have, in Go's order, with their names in messages."""


def template_metadata(document: Document, path: str, out: Causes) -> None:
    """Check the metadata of a claim template, which can only have labels and annotations."""
    metadata = part(document, "metadata")
    field("annotations", annotation_map)(metadata, f"{path}.metadata", out)
    field("labels", labels)(metadata, f"{path}.metadata", out)
    empties = metadata.empties if isinstance(metadata, Emptied) else {}
    for name, shown in _UNSETTABLE:
        if metadata.get(name) is not None or name in empties:
            out.append(forbidden_value(f"{path}.metadata.{shown}", "cannot be set"))


_EPHEMERAL = table(
    need_set("volumeClaimTemplate"), optional("volumeClaimTemplate", template_metadata, inside("spec", CLAIM_SPEC))
)


def _publish_secret(document: Document, path: str, out: Causes) -> None:
    secret = document.get("nodePublishSecretRef")
    if not isinstance(secret, dict):
        return
    name = secret.get("name")
    if not name:
        out.append(required(f"{path}.nodePublishSecretRef.name"))
    else:
        dns_subdomain(name, f"{path}.name", out)


def _no_name_no_digest(document: Document, path: str, out: Causes) -> None:
    # Only the images of pods are required, not those of templates.
    if path.startswith("spec.volumes[") and not document.get("reference"):
        out.append(required(f"{path}.reference"))
    pull = document.get("pullPolicy") or ""
    if not pull:
        out.append(required(f"{path}.pullPolicy"))
    else:
        one_of("Always", "IfNotPresent", "Never")(pull, f"{path}.pullPolicy", out)


def _downward_files(source: Document, path: str, out: Causes) -> None:
    for item in parts(source, "items"):
        downward_file(item, path, out)


_DOWNWARD = table(field("defaultMode", file_mode), _downward_files)
POD_SOURCES: dict[str, tuple[str, Rule]] = {
    "hostPath": ("hostPath", _HOST_PATH),
    "gitRepo": ("gitRepo", table(need("repository"), value("directory", descending_path))),
    "gcePersistentDisk": ("persistentDisk", _PD),
    "awsElasticBlockStore": ("awsElasticBlockStore", _EBS),
    "secret": ("secret", table(need("secretName"), field("defaultMode", file_mode), each("items", KEY_TO_PATH))),
    "nfs": ("nfs", _NFS),
    "iscsi": ("iscsi", table(*_iscsi(_PREFIX_DETAIL))),
    "glusterfs": ("glusterfs", table(need("endpoints"), need("path"))),
    "flocker": ("flocker", _flocker),
    "persistentVolumeClaim": ("persistentVolumeClaim", need("claimName")),
    "rbd": ("rbd", _RBD),
    "cinder": ("cinder", table(need("volumeID"), _SECRET_NAME)),
    "cephfs": ("cephfs", need("monitors")),
    "quobyte": ("quobyte", table(_host_pairs, need("volume"))),
    "downwardAPI": ("downwardAPI", _DOWNWARD),
    "fc": ("fc", _FC),
    "flexVolume": ("flexVolume", table(need("driver"), _flex_options)),
    "configMap": ("configMap", table(need("name"), field("defaultMode", file_mode), each("items", KEY_TO_PATH))),
    "azureFile": ("azureFile", table(need("secretName"), need("shareName"))),
    "vsphereVolume": ("vsphereVolume", need("volumePath")),
    "photonPersistentDisk": ("photonPersistentDisk", need("pdID")),
    "portworxVolume": ("portworxVolume", _PORTWORX),
    "azureDisk": ("azureDisk", _AZURE_DISK),
    "storageos": ("storageos", table(_STORAGE_OS, _SECRET_NAME)),
    "projected": ("projected", _projected),
    "scaleIO": ("scaleIO", _SCALE_IO),
    "csi": ("csi", table(value("driver", driver_name), _publish_secret)),
    "ephemeral": ("ephemeral", _EPHEMERAL),
    "image": ("image", _no_name_no_digest),
}
"""The sources of pod volumes in upstream's order, each with its name in paths and its rule."""

_ENDPOINTS_NAMESPACE = "if the endpointnamespace is set, it must be a valid namespace name"


def _glusterfs_namespace(source: Document, path: str, out: Causes) -> None:
    found = source.get("endpointsNamespace")
    if found == "":
        out.append(invalid_value(f"{path}.endpointsNamespace", '""', _ENDPOINTS_NAMESPACE))
    elif found is not None:
        dns_label(found, f"{path}.endpointsNamespace", out)


_PV_SECRET = table(need("name", dns_subdomain), need("namespace", dns_label))
_CSI_SECRETS = (
    "controllerPublishSecretRef", "controllerExpandSecretRef", "nodePublishSecretRef", "nodeExpandSecretRef",
)  # fmt: skip
PERSISTENT_SOURCES: dict[str, Rule] = {
    "hostPath": _HOST_PATH,
    "gcePersistentDisk": _PD,
    "awsElasticBlockStore": _EBS,
    "glusterfs": table(need("endpoints"), need("path"), _glusterfs_namespace),
    "flocker": _flocker,
    "nfs": _NFS,
    "rbd": _RBD,
    "quobyte": table(_host_pairs, need("volume")),
    "cephfs": need("monitors"),
    "iscsi": table(*_iscsi("must be valid format"), _SECRET_NAME),
    "cinder": table(need("volumeID"), _SECRET_REFERENCE),
    "fc": _FC,
    "flexVolume": table(need("driver"), _flex_options),
    "azureFile": table(
        need("secretName"),
        need("shareName"),
        required_if(lambda source: source.get("secretNamespace") == "", "secretNamespace"),
    ),
    "vsphereVolume": need("volumePath"),
    "photonPersistentDisk": need("pdID"),
    "portworxVolume": _PORTWORX,
    "azureDisk": _AZURE_DISK,
    "scaleIO": _SCALE_IO,
    "local": table(need("path"), when(lambda source: bool(source.get("path")), value("path", no_backsteps))),
    "storageos": table(_STORAGE_OS, _SECRET_REFERENCE),
    "csi": table(
        value("driver", driver_name), need("volumeHandle"), *(optional(name, _PV_SECRET) for name in _CSI_SECRETS)
    ),
}
"""The sources of persistent volumes in upstream's order, each with its rule."""

_FORBIDDEN_AS = {"downwardAPI": "downwarAPI", "cephfs": "cephFS"}


def _pod_volume_source(volume: Document, path: str, pod_name: str, out: Causes) -> None:
    """Check that a volume of a pod has exactly one source, and check this source."""
    count = 0
    empty = volume.get("emptyDir")
    if isinstance(empty, dict):
        count += 1
        limit = empty.get("sizeLimit")
        if limit is not None and amount_of(str(limit)).sign() < 0:
            detail = "SizeLimit field must be a valid resource quantity"
            out.append(forbidden_value(f"{path}.emptyDir.sizeLimit", detail))
    if len(volume) <= 2:
        for name, source in volume.items():
            if name in POD_SOURCES and isinstance(source, dict):
                count += 1
                shown, rule = POD_SOURCES[name]
                rule(source, f"{path}.{shown}", out)
                if name == "ephemeral":
                    out.extend(_claim_name_problems(volume, path, pod_name))
    else:
        count = _several_sources(volume, path, pod_name, count, out)
    if not count:
        out.append(required(path, "must specify a volume type"))


def _several_sources(volume: Document, path: str, pod_name: str, count: int, out: Causes) -> int:
    for name, (shown, rule) in POD_SOURCES.items():
        source = volume.get(name)
        if not isinstance(source, dict):
            continue
        if count:
            out.append(forbidden_value(f"{path}.{_FORBIDDEN_AS.get(name, name)}", _SEVERAL))
        else:
            rule(source, f"{path}.{shown}", out)
            if name == "ephemeral":
                out.extend(_claim_name_problems(volume, path, pod_name))
        count += 1
    return count


def _claim_name_problems(volume: Document, path: str, pod_name: str) -> Causes:
    """Return the errors about the name of the claim that is created for an ephemeral volume."""
    name = str(volume.get("name") or "")
    if not name or not pod_name:
        return []
    claim = f"{pod_name}-{name}"
    problems = check_dns1123_subdomain(claim)
    return [invalid_value(f"{path}.name", quote(name), f"PVC name {quote(claim)}: {each}") for each in problems]


def pod_volumes(document: Document, path: str, pod_name: str, out: Causes) -> dict[str, Document]:
    """Check the volumes in a pod's spec, and return the valid volumes by name."""
    valid: dict[str, Document] = {}
    volumes = parts(document, "volumes")
    made = {f"{pod_name}-{each.get('name')}" for each in volumes if pod_name and "ephemeral" in each}
    for index, volume in enumerate(volumes):
        here, name = f"{path}.volumes[{index}]", str(volume.get("name") or "")
        before = len(out)
        _pod_volume_source(volume, here, pod_name, out)
        if not name:
            out.append(required(f"{here}.name"))
        else:
            dns_label(name, f"{here}.name", out)
        if name in valid:
            out.append(duplicate(f"{here}.name", quote(name)))
        if len(out) == before:
            valid[name] = volume
        claim = part(volume, "persistentVolumeClaim").get("claimName") if made else None
        if claim in made:
            detail = "must not reference a PVC that gets created for an ephemeral volume"
            out.append(invalid_value(f"{here}.persistentVolumeClaim.claimName", go_value(claim), detail))
    return valid
