"""Validation rules of the kinds of storage.k8s.io."""

from __future__ import annotations

from bayplan.apiserver.model.errors import duplicate, forbidden_value, invalid_value, required, too_long
from bayplan.apiserver.validation.engine import (
    FIELD_IS_IMMUTABLE,
    Causes,
    Check,
    Rule,
    at_least,
    at_most,
    changed_metadata,
    field,
    forbid_change,
    go_value,
    if_filled,
    immutable,
    inside,
    invalid_if,
    items_here,
    kind,
    need,
    need_set,
    one_of,
    optional,
    required_if,
    table,
    value,
    when,
)
from bayplan.apiserver.validation.formats import dns_subdomain, nonnegative, nonnegative_quantity, qualified_name
from bayplan.apiserver.validation.internal_json import internal, ordered_selector
from bayplan.apiserver.validation.persistent import inline_volume
from bayplan.apiserver.validation.selectors import LABEL_SELECTOR
from bayplan.apiserver.validation.volumes import driver_name
from bayplan.base.go_text.json import json_text
from bayplan.base.plain_data import Document, parts, texts
from bayplan.objects.names import check_qualified_name
from bayplan.objects.selectors import quote

_MAX_PARAMETERS = 512
_MAX_PARAMETERS_BYTES = 256 * 1024
_CLASS = "storage.k8s.io/"


def _provisioner(found: object, path: str, out: Causes) -> None:
    qualified_name(str(found).lower(), path, out)


def _parameters(*, may_be_empty: bool) -> Check:
    def check(found: object, path: str, out: Causes) -> None:
        pairs = found if isinstance(found, dict) else {}
        if len(pairs) > _MAX_PARAMETERS:
            out.append(too_long(path, _MAX_PARAMETERS))
            return
        if "" in pairs:
            out.append(invalid_value(path, '""', "field can not be empty."))
        if sum(len(key.encode()) + len(str(item).encode()) for key, item in pairs.items()) > _MAX_PARAMETERS_BYTES:
            out.append(too_long(path, _MAX_PARAMETERS_BYTES))
        if not pairs and not may_be_empty:
            out.append(required(path, "must contain at least one key/value pair"))

    return check


# --- StorageClass -----------------------------------------------------------------------------------------------------


def _topologies(document: Document, path: str, out: Causes) -> None:
    terms = parts(document, "allowedTopologies")
    # Upstream also compares each term with as many empty terms as the list has terms, and reports each match.
    seen: list[dict[str, frozenset[str]]] = [{} for _ in terms]
    for index, term in enumerate(terms):
        here = f"allowedTopologies[{index}].matchLabelExpressions"
        expressions: dict[str, frozenset[str]] = {}
        for position, expression in enumerate(parts(term, "matchLabelExpressions")):
            key, values = str(expression.get("key") or ""), texts(expression, "values")
            place = f"{here}[{position}]"
            if not values:
                out.append(required(f"{place}.values"))
            known: set[str] = set()
            for place_of_value, text in enumerate(values):
                if text in known:
                    out.append(duplicate(f"{place}.values[{place_of_value}]", quote(text)))
                known.add(text)
            for problem in check_qualified_name(key):
                out.append(invalid_value(f"{place}.key", quote(key), problem))
            if key in expressions:
                out.append(duplicate(f"{place}.key", quote(key)))
            expressions[key] = frozenset(known)
        out.extend(duplicate(here, '""') for other in seen if other == expressions)
        seen.append(expressions)


def _shown_map(found: object) -> str:
    """Return a map as Go encodes it in JSON: with sorted keys."""
    return go_value(dict(sorted(found.items())) if isinstance(found, dict) else found)


STORAGE_CLASS = kind(
    need("provisioner", _provisioner),
    field("parameters", _parameters(may_be_empty=True)),
    field("reclaimPolicy", if_filled(one_of("Delete", "Retain"))),
    need_set("volumeBindingMode"),
    field("volumeBindingMode", one_of("Immediate", "WaitForFirstConsumer")),
    _topologies,
    after=[
        changed_metadata(),
        immutable("parameters", show=_shown_map),
        *(immutable(name) for name in ("provisioner", "reclaimPolicy", "volumeBindingMode")),
    ],
    metadata=("object",),
)

# --- CSINode, CSIDriver, CSIStorageCapacity ---------------------------------------------------------------------------


def _node_driver_keys(document: Document, path: str, out: Causes) -> None:
    known: set[str] = set()
    for key in texts(document, "topologyKeys"):
        if not key:
            out.append(required(path))
        if key in known:
            out.append(duplicate(path, quote(key)))
        known.add(key)
        qualified_name(key, path, out)


def _node_drivers(document: Document, path: str, out: Causes) -> None:
    known: set[object] = set()
    for index, driver in enumerate(parts(document, "drivers")):
        here, name = f"{path}.drivers[{index}]", driver.get("name") or ""
        _NODE_DRIVER(driver, here, out)
        if name in known:
            out.append(duplicate(f"{here}.name", go_value(name)))
        known.add(name)
        _node_driver_keys(driver, here, out)


def _node_id(found: object, path: str, out: Causes) -> None:
    if not found:
        out.append(required(path))
    elif len(str(found)) > 256:
        out.append(invalid_value(path, quote(str(found)), "must be 256 characters or less"))


_NODE_DRIVER = table(
    value("name", driver_name),
    value("nodeID", _node_id),
    optional("allocatable", field("count", nonnegative)),
)


def _drivers_stay(new: Document, old: Document, out: Causes) -> None:
    for before in parts(old.get("spec") or {}, "drivers"):  # type: ignore[arg-type]
        for after in parts(new.get("spec") or {}, "drivers"):  # type: ignore[arg-type]
            bare, bare_before = ({**each_driver, "allocatable": None} for each_driver in (after, before))
            if after.get("name") == before.get("name") and bare != bare_before:
                shown = json_text(internal("storage.CSINodeDriver", bare))
                out.append(invalid_value("spec.drivers", shown, "field is immutable"))


def _token_requests(document: Document, path: str, out: Causes) -> None:
    audiences: set[object] = set()
    for index, request in enumerate(parts(document, "tokenRequests")):
        here, audience = f"{path}.tokenRequests[{index}]", request.get("audience") or ""
        if audience in audiences:
            out.append(duplicate(f"{here}.audience", go_value(audience)))
            continue
        audiences.add(audience)
        _EXPIRATION(request, here, out)


_EXPIRATION = field(
    "expirationSeconds",
    at_least(600, "may not specify a duration less than 10 minutes"),
    at_most(1 << 32, "may not specify a duration larger than 2^32 seconds"),
)


def _required_as(name: str, shown: str) -> Rule:
    return required_if(lambda spec: spec.get(name) is None, shown)


_DRIVER_SPEC = table(
    _required_as("attachRequired", "attachedRequired"),
    need_set("podInfoOnMount"),
    need_set("storageCapacity"),
    field("fsGroupPolicy", one_of("File", "None", "ReadWriteOnceWithFSType")),
    _token_requests,
    field("volumeLifecycleModes", items_here(one_of("Persistent", "Ephemeral"))),
    need_set("seLinuxMount"),
    field("nodeAllocatableUpdatePeriodSeconds", at_least(10, "must be greater than or equal to 10 seconds")),
    invalid_if(
        lambda spec: spec.get("serviceAccountTokenInSecrets") is not None and not spec.get("tokenRequests"),
        "serviceAccountTokenInSecrets",
        "serviceAccountTokenInSecrets is set but no tokenRequests are specified",
    ),
)


def _attach_required(new: Document, old: Document, out: Causes) -> None:
    found: Causes = []
    immutable("spec.attachRequired")(new, old, found)
    out.extend(each_cause._replace(field="spec.attachedRequired") for each_cause in found)


CSI_DRIVER = kind(inside("spec", _DRIVER_SPEC), after=[_attach_required, immutable("spec.volumeLifecycleModes")])
CSI_NODE = kind(inside("spec", _node_drivers), after=[_drivers_stay], metadata=("object",))


def _topology_stays(new: Document, old: Document, out: Causes) -> None:
    # Upstream distinguishes an empty selector from a missing one.
    if new.get("nodeTopology") != old.get("nodeTopology"):
        found = new.get("nodeTopology")
        shown = json_text(ordered_selector(found)) if isinstance(found, dict) else go_value(found)
        out.append(invalid_value("nodeTopology", shown, FIELD_IS_IMMUTABLE))


CSI_STORAGE_CAPACITY = kind(
    optional("nodeTopology", LABEL_SELECTOR),
    value("storageClassName", dns_subdomain),
    field("capacity", nonnegative_quantity),
    after=[changed_metadata(), _topology_stays, immutable("storageClassName", zero="")],
    metadata=("object",),
)

# --- VolumeAttachment, VolumeAttributesClass --------------------------------------------------------------------------


def _source(document: Document, path: str, out: Causes) -> None:
    inline, name = document.get("inlineVolumeSpec"), document.get("persistentVolumeName")
    detail = "must specify exactly one of inlineVolumeSpec and persistentVolumeName"
    if inline is None and name is None:
        out.append(required(path, detail))
    elif inline is not None and name is not None:
        out.append(forbidden_value(path, detail))
    elif name == "":
        out.append(required(f"{path}.persistentVolumeName", "must specify non empty persistentVolumeName"))
    else:
        optional("inlineVolumeSpec", inline_volume)(document, path, out)


_VOLUME_ERROR = table(
    when(
        lambda error: len(str(error.get("message") or "").encode()) > 1024,
        lambda _error, path, out: out.append(too_long(f"{path}.message", 256 * 1024)),
    ),
    field("errorCode", at_least(0, "must be between 0 and 2147483647, inclusive")),
)
_ATTACHMENT_STATUS = inside("status", optional("attachError", _VOLUME_ERROR), optional("detachError", _VOLUME_ERROR))
VOLUME_ATTACHMENT = kind(
    inside("spec", value("attacher", driver_name), inside("source", _source), value("nodeName", dns_subdomain)),
    _ATTACHMENT_STATUS,
    inside("spec", inside("source", field("persistentVolumeName", dns_subdomain))),
    after=[immutable("spec", show=lambda found: json_text(internal("storage.VolumeAttachmentSpec", found)))],
    status=[lambda new, _old, out: _ATTACHMENT_STATUS(new, "", out)],
    metadata=("object",),
)
VOLUME_ATTRIBUTES_CLASS = kind(
    need("driverName", _provisioner),
    value("parameters", _parameters(may_be_empty=False), zero={}),
    before=[
        forbid_change("driverName", "updates to driverName are forbidden."),
        forbid_change("parameters", "updates to parameters are forbidden."),
    ],
    metadata=("change", "object"),
)
KINDS = {
    f"{_CLASS}storageclasses": STORAGE_CLASS,
    f"{_CLASS}csinodes": CSI_NODE,
    f"{_CLASS}csidrivers": CSI_DRIVER,
    f"{_CLASS}csistoragecapacities": CSI_STORAGE_CAPACITY,
    f"{_CLASS}volumeattachments": VOLUME_ATTACHMENT,
    f"{_CLASS}volumeattributesclasses": VOLUME_ATTRIBUTES_CLASS,
}
