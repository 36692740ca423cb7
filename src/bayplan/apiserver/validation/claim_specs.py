"""Validation rules of the spec of PersistentVolumeClaims and claim templates."""

from __future__ import annotations

from bayplan.apiserver.model.errors import forbidden_value, invalid_value, not_supported, required
from bayplan.apiserver.validation.engine import (
    Causes,
    Rule,
    field,
    go_value,
    if_filled,
    inside,
    need,
    one_of,
    optional,
    table,
    value,
)
from bayplan.apiserver.validation.formats import amount_of, dns_label, dns_subdomain
from bayplan.apiserver.validation.resources import resource_amount
from bayplan.apiserver.validation.selectors import LABEL_SELECTOR
from bayplan.base.plain_data import Document, part, texts
from bayplan.objects.selectors import quote

_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")


def access_modes(document: Document, path: str, out: Causes) -> None:
    """Check that access modes are known and may be combined."""
    modes, here = texts(document, "accessModes"), f"{path}.accessModes"
    for mode in modes:
        if mode not in _MODES:
            out.append(not_supported(here, quote(mode), _MODES))
    if "ReadWriteOncePod" in modes and any(mode in _MODES and mode != "ReadWriteOncePod" for mode in modes):
        out.append(forbidden_value(here, "may not use ReadWriteOncePod with other access modes"))


def _claim_storage(document: Document, path: str, out: Causes) -> None:
    amount, here = part(document, "resources", "requests").get("storage"), f"{path}.resources[storage]"
    if amount is None:
        out.append(required(here))
    elif amount_of(str(amount)).sign() <= 0:
        out.append(invalid_value(here, quote(str(amount)), "must be greater than zero"))
    else:
        resource_amount("storage", str(amount), here, out)


def _known_source(document: Document, path: str, out: Causes) -> None:
    need("name")(document, path, out)
    need("kind")(document, path, out)
    group, kind = document.get("apiGroup") or "", document.get("kind") or ""
    if not group and kind != "PersistentVolumeClaim":
        detail = "must be 'PersistentVolumeClaim' when referencing the default apiGroup"
        out.append(invalid_value(path, go_value(kind), detail))


def _data_source(document: Document, path: str, out: Causes) -> None:
    _known_source(document, path, out)
    value("apiGroup", if_filled(dns_subdomain))(document, path, out)


def _data_sources(document: Document, path: str, out: Causes) -> None:
    source, reference = document.get("dataSource"), document.get("dataSourceRef")
    if not isinstance(source, dict) or not isinstance(reference, dict):
        return
    if reference.get("namespace"):
        out.append(invalid_value(path, "{}", "may not be specified when dataSourceRef.namespace is specified"))
    elif any(source.get(name) != reference.get(name) for name in ("apiGroup", "kind", "name")):
        out.append(invalid_value(path, "{}", "must match dataSourceRef"))


def _claim_spec(data_source: Rule) -> Rule:
    return table(
        need("accessModes", detail="at least 1 access mode is required"),
        optional("selector", LABEL_SELECTOR),
        access_modes,
        _claim_storage,
        value("storageClassName", if_filled(dns_subdomain)),
        field("volumeMode", one_of("Block", "Filesystem")),
        optional("dataSource", data_source),
        optional("dataSourceRef", data_source, value("namespace", if_filled(dns_label))),
        _data_sources,
        value("volumeAttributesClassName", if_filled(dns_subdomain)),
    )


CLAIM_SPEC = _claim_spec(_data_source)
_WITH_ANY_GROUP = _claim_spec(_known_source)


def changed_claim_spec(new: Document, old: Document, out: Causes) -> None:
    """Check the spec of a changed claim. The groups of its sources are not checked if one had a group before."""
    before = part(old, "spec")
    had_group = any(part(before, name).get("apiGroup") is not None for name in ("dataSource", "dataSourceRef"))
    inside("spec", _WITH_ANY_GROUP if had_group else CLAIM_SPEC)(new, "", out)
