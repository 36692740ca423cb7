"""The kinds of objects: one table from (apiVersion, kind) to a struct, and decoding.

As for Kubernetes' own decoder, `null` means absent in every field. Documents rarely contain a null that a struct does
not accept (timestamps accept it), so decoding tries the unchanged document first. Only if that fails, nulls are
replaced by Go's values for them, and the document is decoded again (see `_without_nulls`).
"""

import re
from collections.abc import Mapping
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec

from bayplan.base.errors import InputError
from bayplan.objects.meta import ApiStruct, KubernetesObject
from bayplan.objects.namespace import Namespace
from bayplan.objects.node import Node
from bayplan.objects.pod import Pod
from bayplan.objects.policy import LimitRange, PodDisruptionBudget, PodGroup, PriorityClass, ResourceQuota
from bayplan.objects.resource import DeviceClass, DeviceTaintRule, ResourceClaim, ResourceClaimTemplate, ResourceSlice
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
from bayplan.objects.workloads import (
    CronJob,
    DaemonSet,
    Deployment,
    Job,
    PodTemplate,
    ReplicaSet,
    ReplicationController,
    StatefulSet,
)

T = TypeVar("T")


class ResourceKind(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of object.

    Attributes:
        group: the API group, "" for the core group.
        version: the version that is written.
        older_api_versions: other accepted `apiVersion` values, in which the struct's fields are the same.
        kind: the kind, e.g. `Pod`.
        plural: the name in URLs and on the command line, e.g. `pods`.
        namespaced: whether objects of the kind belong to a namespace.
        struct: the class of typed objects.
    """

    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool
    struct: type[KubernetesObject]
    older_api_versions: tuple[str, ...] = ()

    @property
    def api_version(self) -> str:
        """Return `group/version`, or the version alone in the core group."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def api_versions(self) -> tuple[str, ...]:
        """Return all accepted `apiVersion` values."""
        return (self.api_version, *self.older_api_versions)


def _kind(
    struct: type[KubernetesObject], plural: str, group: str, version: str, *older: str, cluster_wide: bool = False
) -> ResourceKind:
    return ResourceKind(
        group=group,
        version=version,
        older_api_versions=tuple(version if "/" in version else f"{group}/{version}" for version in older),
        kind=struct.__name__,
        plural=plural,
        namespaced=not cluster_wide,
        struct=struct,
    )


_STORAGE = "storage.k8s.io"
_RESOURCE = "resource.k8s.io"

KINDS: tuple[ResourceKind, ...] = (
    _kind(Pod, "pods", "", "v1"),
    _kind(Node, "nodes", "", "v1", cluster_wide=True),
    _kind(Namespace, "namespaces", "", "v1", cluster_wide=True),
    _kind(Service, "services", "", "v1"),
    _kind(ReplicationController, "replicationcontrollers", "", "v1"),
    _kind(PodTemplate, "podtemplates", "", "v1"),
    _kind(PersistentVolume, "persistentvolumes", "", "v1", cluster_wide=True),
    _kind(PersistentVolumeClaim, "persistentvolumeclaims", "", "v1"),
    _kind(LimitRange, "limitranges", "", "v1"),
    _kind(ResourceQuota, "resourcequotas", "", "v1"),
    _kind(Deployment, "deployments", "apps", "v1", "v1beta2", "v1beta1", "extensions/v1beta1"),
    _kind(ReplicaSet, "replicasets", "apps", "v1", "v1beta2", "extensions/v1beta1"),
    _kind(StatefulSet, "statefulsets", "apps", "v1", "v1beta2", "v1beta1"),
    _kind(DaemonSet, "daemonsets", "apps", "v1", "v1beta2", "extensions/v1beta1"),
    _kind(Job, "jobs", "batch", "v1"),
    _kind(CronJob, "cronjobs", "batch", "v1", "v1beta1"),
    _kind(PodDisruptionBudget, "poddisruptionbudgets", "policy", "v1", "v1beta1"),
    _kind(PriorityClass, "priorityclasses", "scheduling.k8s.io", "v1", "v1beta1", "v1alpha1", cluster_wide=True),
    _kind(PodGroup, "podgroups", "scheduling.k8s.io", "v1alpha2"),
    _kind(StorageClass, "storageclasses", _STORAGE, "v1", "v1beta1", cluster_wide=True),
    _kind(CSINode, "csinodes", _STORAGE, "v1", "v1beta1", cluster_wide=True),
    _kind(CSIDriver, "csidrivers", _STORAGE, "v1", "v1beta1", cluster_wide=True),
    _kind(CSIStorageCapacity, "csistoragecapacities", _STORAGE, "v1", "v1beta1", "v1alpha1"),
    _kind(VolumeAttachment, "volumeattachments", _STORAGE, "v1", "v1beta1", "v1alpha1", cluster_wide=True),
    _kind(ResourceClaim, "resourceclaims", _RESOURCE, "v1", "v1beta2"),
    _kind(ResourceClaimTemplate, "resourceclaimtemplates", _RESOURCE, "v1", "v1beta2"),
    _kind(ResourceSlice, "resourceslices", _RESOURCE, "v1", "v1beta2", cluster_wide=True),
    _kind(DeviceClass, "deviceclasses", _RESOURCE, "v1", "v1beta2", "v1beta1", cluster_wide=True),
    _kind(DeviceTaintRule, "devicetaintrules", _RESOURCE, "v1beta2", "v1alpha3", cluster_wide=True),
)

_BY_DOCUMENT: dict[tuple[str, str], ResourceKind] = {
    (api_version, kind.kind): kind for kind in KINDS for api_version in kind.api_versions
}
_BY_STRUCT: dict[type[KubernetesObject], ResourceKind] = {kind.struct: kind for kind in KINDS}


def kind_of(struct: type[KubernetesObject]) -> ResourceKind:
    """Return the kind whose typed objects are of a class."""
    return _BY_STRUCT[struct]


def find_kind(api_version: str, kind: str) -> ResourceKind | None:
    """Return the kind with an `apiVersion` and a `kind`, or None if Bayplan has no struct for it."""
    return _BY_DOCUMENT.get((api_version, kind))


def decode(document: Mapping[str, object], *, where: str = "") -> KubernetesObject:
    """Convert a document to the typed object of its `apiVersion` and `kind`.

    Fields that the struct lacks are ignored; no defaults are set (see `bayplan.objects.defaults`).

    Args:
        document: an object of the Kubernetes API, decoded from JSON or YAML.
        where: the file and line, for error messages.

    Raises:
        InputError: the kind is unknown, or a field has the wrong type; the message contains the field's path.
    """
    api_version, kind = document.get("apiVersion"), document.get("kind")
    if not isinstance(api_version, str) or not isinstance(kind, str) or not kind:
        raise InputError(
            describe(document), where=where, wanted="an object with apiVersion and kind", got=_shown(dict(document))
        )
    row = _BY_DOCUMENT.get((api_version, kind))
    if row is None:
        versions = [version for (version, name) in _BY_DOCUMENT if name == kind]
        hint = f"apiVersion {versions[0]}" if versions else ""
        raise InputError(
            f"{describe(document)} $.kind", where=where, wanted="a known kind", got=f"{api_version} {kind}", hint=hint
        )
    return convert(document, row.struct, what=describe(document), where=where)


def decode_json(data: bytes | str, struct: type[T], *, where: str = "") -> T:
    """Decode JSON directly to a struct (or a list of structs). The fastest way if the kind is known.

    Raises:
        InputError: the data is not JSON, or a field has the wrong type; the message contains the field's path.
    """
    try:
        return msgspec.json.decode(data, type=struct)
    except msgspec.ValidationError:
        return convert(msgspec.json.decode(data), struct, where=where)
    except msgspec.DecodeError as problem:
        raise InputError("JSON", where=where, got=str(problem)) from None


def convert(value: object, struct: type[T], *, what: str = "", where: str = "") -> T:
    """Convert plain data to a struct; nulls are treated as absent fields.

    Args:
        value: dicts, lists and scalars, as decoded from JSON.
        struct: the wanted type.
        what: the object, for error messages, e.g. `Pod default/web`.
        where: the file and line, for error messages.

    Raises:
        InputError: a field has the wrong type; the message contains the field's path.
    """
    try:
        return msgspec.convert(value, struct)
    except msgspec.ValidationError:
        repaired = _without_nulls(value, struct)
    try:
        return msgspec.convert(repaired, struct)
    except msgspec.ValidationError:
        path, wanted, got, hint = _explain(repaired, struct, "$")
    raise InputError(f"{what} {path}".lstrip(), where=where, wanted=wanted, got=got, hint=hint)


def encode(item: KubernetesObject) -> dict[str, object]:
    """Return the document of a typed object, with `apiVersion` and `kind`, omitting fields with default values."""
    row = _BY_STRUCT[type(item)]
    document: dict[str, object] = {"apiVersion": row.api_version, "kind": row.kind}
    document.update(msgspec.json.decode(msgspec.json.encode(item)))  # Lists, because to_builtins would return tuples.
    return document


def describe(document: Mapping[str, object]) -> str:
    """Return kind and name of an object for an error message, e.g. `Pod default/web`.

    Parts that are missing are left out.
    """
    kind = document.get("kind")
    text = kind if isinstance(kind, str) and kind else "object"
    metadata = document.get("metadata")
    if isinstance(metadata, Mapping):
        name = metadata.get("name") or metadata.get("generateName")
        if isinstance(name, str):
            namespace = metadata.get("namespace")
            text += f" {namespace}/{name}" if isinstance(namespace, str) and namespace else f" {name}"
    return text


# --- nulls ------------------------------------------------------------------------------------------------------------


@cache
def _fields(struct: type[ApiStruct]) -> dict[str, object]:
    """Return the types of a struct's fields, by field name in documents."""
    hints = get_type_hints(struct, include_extras=True)
    return {item.encode_name: hints[item.name] for item in msgspec.structs.fields(struct)}


def _bare(type_: object) -> tuple[object, bool]:
    """Return a type without `Annotated` and `| None`, and whether it allows None. Other unions stay unchanged."""
    nullable = False
    while True:
        origin = get_origin(type_)
        if origin is Annotated:
            type_ = get_args(type_)[0]
        elif origin in (Union, UnionType) and NoneType in get_args(type_):
            nullable = True
            rest = tuple(arg for arg in get_args(type_) if arg is not NoneType)
            type_ = rest[0] if len(rest) == 1 else Union[rest]  # noqa: UP007
        else:
            return type_, nullable


def _is_struct(type_: object) -> bool:
    return isinstance(type_, type) and issubclass(type_, ApiStruct)


def _zero(type_: object) -> object:
    """Return Go's value for a null element of a list, or null value of a map."""
    bare, nullable = _bare(type_)
    if nullable or bare is object:
        return None
    if _is_struct(bare) or get_origin(bare) is dict:
        return {}
    if get_origin(bare) in (tuple, list):
        return []
    if bare is str:
        return ""
    return False if bare is bool else 0


def _without_nulls(value: object, type_: object) -> object:
    """Return a copy of plain data with nulls replaced by Go's values for them.

    A null field is absent. A null in a list or map becomes the zero value of its type: `labels: {a: null}` is the label
    `a` with an empty value, `requests: {cpu: null}` a request of 0.
    """
    bare, _ = _bare(type_)
    if isinstance(value, dict):
        if _is_struct(bare):
            fields = _fields(bare)
            return {
                name: _without_nulls(item, fields[name])
                for name, item in value.items()
                if item is not None and name in fields
            }
        if get_origin(bare) is dict:
            inner = get_args(bare)[1]
            return {key: _zero(inner) if item is None else _without_nulls(item, inner) for key, item in value.items()}
    elif isinstance(value, list | tuple) and get_origin(bare) in (tuple, list):
        inner = get_args(bare)[0]
        return [_zero(inner) if item is None else _without_nulls(item, inner) for item in value]
    return value


# --- errors -----------------------------------------------------------------------------------------------------------

_MESSAGE = re.compile(r"(?P<text>.*?)(?: - at `(?P<path>.*)`)?", re.DOTALL)
_STEP = re.compile(r"\.([^.\[]+)|\[(\d+)\]|\[\.\.\.\]")
_EXPECTED = re.compile(r"Expected `([^`]*)`(?: ([<>]=?) (-?\d+))?")
_NOUNS = {
    "int": "an integer",
    "float": "a number",
    "str": "a string",
    "bool": "true or false",
    "object": "an object",
    "array": "a list",
}
_BOUNDS = {"<=": "of at most", ">=": "of at least", "<": "below", ">": "above"}


def _explain(value: object, type_: object, prefix: str) -> tuple[str, str, str, str]:
    """Return the first error of a value that has the wrong type: path, expected, actual, suggestion."""
    try:
        msgspec.convert(value, type_)
    except msgspec.ValidationError as problem:
        match = _MESSAGE.fullmatch(str(problem))
        text, path = (match["text"], match["path"] or "$") if match else (str(problem), "$")
    else:  # Only a value of a map, checked by itself, can turn out to be valid: then it was the key.
        return prefix, "a string as key", "", ""
    is_key = path.startswith("key` in `")
    path = path.removeprefix("key` in `").removeprefix("$")
    for step in _STEP.finditer(path):
        bare, _ = _bare(type_)
        name, index = step.groups()
        if name is not None and isinstance(value, Mapping):
            value, type_, prefix = value[name], _fields(bare)[name], f"{prefix}.{name}"
        elif index is not None and isinstance(value, list | tuple):
            value, type_, prefix = value[int(index)], get_args(bare)[0], f"{prefix}[{index}]"
        elif isinstance(value, Mapping):
            inner = get_args(bare)[1]
            for key, item in value.items():
                if not isinstance(key, str):
                    return f"{prefix}.{key}", "a string as key", repr(key), repr(str(key))
                if not _fits(item, inner):
                    return _explain(item, inner, f"{prefix}.{key}")
    if is_key and isinstance(value, Mapping):
        key = next(key for key in value if not isinstance(key, str))
        return prefix, "a string as key", _shown(key), repr(str(key))
    wanted = _wanted(text)
    return prefix, wanted, _shown(value), _hint(value, wanted)


def _fits(value: object, type_: object) -> bool:
    try:
        msgspec.convert(value, type_)
    except msgspec.ValidationError:
        return False
    return True


def _wanted(text: str) -> str:
    """Return the type that msgspec's message expects, in words."""
    match = _EXPECTED.match(text)
    if match is None:
        return text
    names = [name for name in match[1].split(" | ") if name != "null"]
    if "matching regex" in text and "%" in text:
        return "a number, or a percentage up to 100%"
    if "matching regex" in text or names == ["int", "float", "str"]:
        return "a quantity"
    words = " or ".join(_NOUNS.get(name, name) for name in names)
    return f"{words} {_BOUNDS[match[2]]} {match[3]}" if match[2] else words


_AMOUNT = re.compile(r"\s*([+-]?[0-9]*\.?[0-9]+)\s*(?:([kKMGTPE]i?)[bB]?|cores?|cpus?|millicores?|bytes?|B)?\s*")


def _hint(value: object, wanted: str) -> str:
    """Return a suggestion in the form in which a user can paste it, or ""."""
    if wanted == "a quantity" and isinstance(value, str):
        match = _AMOUNT.fullmatch(value)
        if match is None:
            return ""
        suffix = "m" if "milli" in value else (match[2] or "")
        return repr(match[1] + ("k" if suffix == "K" else suffix))
    if wanted == "a string" and isinstance(value, bool):
        return repr(str(value).lower())
    if wanted == "a string" and isinstance(value, int | float):
        return repr(str(value))
    if wanted.startswith("an integer") and isinstance(value, str) and re.fullmatch(r"-?[0-9]+", value):
        return value
    if wanted == "true or false" and isinstance(value, str) and value.lower() in ("true", "false"):
        return value.lower()
    return ""


def _shown(value: object) -> str:
    """Return a value as text for an error message, at most 80 characters."""
    if isinstance(value, Mapping):
        text = "an object" + (f" with {', '.join(map(str, list(value)[:5]))}" if value else " without fields")
    elif isinstance(value, list | tuple):
        text = f"a list of {len(value)}"
    elif value is None or isinstance(value, bool):
        text = {None: "null", True: "true", False: "false"}[value]
    else:
        text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
