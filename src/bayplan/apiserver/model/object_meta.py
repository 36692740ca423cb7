"""Validation of metadata: names, labels, annotations, owner references and finalizers, and changes of them."""

from __future__ import annotations

import ipaddress
import json
import re

import msgspec

from bayplan.apiserver.model.errors import Cause, forbidden_value, invalid_value, required
from bayplan.base.plain_data import Document, part, parts, texts
from bayplan.objects.names import (
    check_dns1035_label,
    check_dns1123_label,
    check_dns1123_subdomain,
    check_label_value,
    check_qualified_name,
)
from bayplan.objects.selectors import quote

MAX_ANNOTATIONS_BYTES = 256 * 1024
"""Maximum total size of the keys and values of an object's annotations."""
_LEADING_ZEROS = re.compile(r"(?<![0-9])0+(?=[0-9])")
_IMMUTABLE = "field is immutable"


def check_name(name: str, rule: str, *, prefix: bool = False) -> tuple[str, ...]:
    """Return the errors of a name.

    Args:
        name: the name to check.
        rule: ``subdomain``, ``long`` (the same with a different message), ``class`` (like ``long``, and
            `check_metadata` skips generateName), ``label``, ``label1035``, ``path``, ``address`` or ``any``.
        prefix: whether the name is a generateName, which may end with a dash.
    """
    if prefix and name.endswith("-") and len(name) > 1:
        name = f"{name[:-1]}a" if rule != "path" else name
    if rule == "label":
        return check_dns1123_label(name)
    if rule in ("long", "class"):
        return tuple(each.replace("253 characters", "253 bytes") for each in check_dns1123_subdomain(name))
    if rule == "any":
        return ()
    if rule == "address":
        return check_canonical_address(name)
    if rule == "label1035":
        return check_dns1035_label(name)
    return check_dns1123_subdomain(name) if rule == "subdomain" else check_path_segment(name)


def check_canonical_address(name: str) -> tuple[str, ...]:
    """Return the errors of a name that must be an IP address in canonical form."""
    try:
        address = ipaddress.ip_address(_LEADING_ZEROS.sub("", name) if ":" not in name else name)
    except ValueError:
        return ("must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)",)
    if address.version == 4 and str(address) != name:
        return ("must not have leading 0s",)
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped:
        return ("must not be an IPv4-mapped IPv6 address",)
    return () if str(address) == name else (f"must be in canonical form ({quote(str(address))})",)


def check_path_segment(name: str) -> tuple[str, ...]:
    """Return the errors of a name that must be a path segment."""
    if name in (".", ".."):
        return (f"may not be '{name}'",)
    return tuple(f"may not contain '{each}'" for each in ("/", "%") if each in name)


def check_metadata(
    metadata: Document, namespaced: bool, rule: str, field: str = "metadata", *, standard: bool = False
) -> list[Cause]:
    """Return the errors of an object's metadata.

    Args:
        metadata: the metadata of the object.
        namespaced: whether the object is in a namespace.
        rule: see `check_name`.
        field: the path of the metadata.
        standard: whether finalizers without a domain must be standard finalizers, as most kinds require.
    """
    causes: list[Cause] = []
    prefix, name = str(metadata.get("generateName") or ""), str(metadata.get("name") or "")
    if prefix and rule != "class":
        causes += [
            invalid_value(f"{field}.generateName", quote(prefix), each)
            for each in check_name(prefix, rule, prefix=True)
        ]
    if not name:
        causes.append(required(f"{field}.name", "name or generateName is required"))
    else:
        causes += [invalid_value(f"{field}.name", quote(name), each) for each in check_name(name, rule)]
    namespace = str(metadata.get("namespace") or "")
    if namespaced and namespace:
        found = check_dns1123_label(namespace)
        causes += [invalid_value(f"{field}.namespace", quote(namespace), each) for each in found]
    elif not namespaced and namespace:
        causes.append(forbidden_value(f"{field}.namespace", "not allowed on this type"))
    generation = metadata.get("generation")
    if isinstance(generation, int) and generation < 0:
        text = "must be greater than or equal to 0"
        causes.append(invalid_value(f"{field}.generation", str(generation), text))
    causes += check_labels(part(metadata, "labels"), f"{field}.labels")
    causes += check_annotations(part(metadata, "annotations"), f"{field}.annotations")
    causes += _check_owners(parts(metadata, "ownerReferences"), f"{field}.ownerReferences")
    causes += _check_finalizers(metadata, f"{field}.finalizers")
    return causes + (check_standard_finalizers(metadata, field) if standard else [])


_REPEATED_OWNERS = (
    ".metadata.ownerReferences contains duplicate entries{}; API server dedups owner references in 1.20+, and may reject such "
    "requests as early as 1.24; please fix your requests; duplicate UID(s) observed: {}"
)


def drop_repeated_owners(metadata: Document, *, when: str = "") -> list[str]:
    """Remove duplicate owner references from metadata, and return a list with a warning about them, or an empty list.

    Args:
        metadata: the metadata of an object.
        when: the time at which they were found, as text for the warning.
    """
    owners = parts(metadata, "ownerReferences")
    if len(owners) < 2:
        return []
    kept: dict[bytes, Document] = {}
    repeated: list[str] = []
    for owner in owners:
        if kept.setdefault(msgspec.json.encode(owner, order="sorted"), owner) is not owner:
            repeated.append(str(owner.get("uid") or ""))
    if not repeated:
        return []
    metadata["ownerReferences"] = list(kept.values())
    return [_REPEATED_OWNERS.format(when, ", ".join(repeated))]


def check_labels(labels: Document, field: str) -> list[Cause]:
    """Return the errors of labels, sorted by key."""
    causes: list[Cause] = []
    for key, value in sorted(labels.items()):
        causes += [invalid_value(field, quote(key), each) for each in check_qualified_name(key)]
        causes += [invalid_value(field, quote(str(value)), each) for each in check_label_value(str(value))]
    return causes


def check_annotations(annotations: Document, field: str) -> list[Cause]:
    """Return the errors of annotations: invalid keys, and a total size over the limit."""
    causes: list[Cause] = []
    total = 0
    for key, value in annotations.items():
        causes += [invalid_value(field, quote(key), each) for each in check_qualified_name(key.lower())]
        total += len(key.encode()) + len(str(value).encode())
    if total > MAX_ANNOTATIONS_BYTES:
        text = f"Too long: may not be more than {MAX_ANNOTATIONS_BYTES} bytes"
        causes.append(Cause("FieldValueTooLong", text, field))
    return causes


_OWNER_FIELDS = ("apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion")


def _check_owners(owners: list[Document], field: str) -> list[Cause]:
    if not owners:
        return []
    causes: list[Cause] = []
    controllers = [owner for owner in owners if owner.get("controller")]
    missing = {
        name: invalid_value(f"{field}.{name}", '""', text)
        for name, text in (
            ("apiVersion", "version must not be empty"), ("kind", "must not be empty"),
            ("name", "must not be empty"), ("uid", "must not be empty"),
        )
    }  # fmt: skip
    for owner in owners:
        version = str(owner.get("apiVersion") or "")
        if version.endswith("/") or version.count("/") > 1:
            causes.append(invalid_value(f"{field}.apiVersion", quote(version), "version must not be empty"))
        causes += [cause for name, cause in missing.items() if not owner.get(name)]
        if (version, owner.get("kind")) == ("v1", "Event"):
            causes.append(
                invalid_value(field, shown(_in_order(owner)), "/v1, Kind=Event is disallowed from being an owner")
            )
    if len(controllers) > 1:
        first, second = (f"{each.get('kind')}/{each.get('name')}" for each in controllers[:2])
        text = "Only one reference can have Controller set to true. "
        text += f'Found "true" in references for {first} and {second}'
        causes.append(invalid_value(field, shown([_in_order(each) for each in owners]), text))
    return causes


def _in_order(owner: Document) -> Document:
    """Return an owner reference with its fields in the order in which Go encodes them."""
    return {name: owner[name] for name in _OWNER_FIELDS if name in owner}


def _check_finalizers(metadata: Document, field: str) -> list[Cause]:
    names = texts(metadata, "finalizers")
    causes = [invalid_value(field, quote(name), each) for name in names for each in check_qualified_name(name)]
    if "orphan" in names and "foregroundDeletion" in names:
        text = "finalizer orphan and foregroundDeletion cannot be both set"
        causes.append(invalid_value(field, shown(names), text))
    return causes


def check_finalizer(name: str, path: str, out: list[Cause]) -> None:
    """Append the errors of a finalizer to `out`: a name that is not qualified, or has no domain and is not standard."""
    out.extend(invalid_value(path, quote(name), problem) for problem in check_qualified_name(name))
    if "/" not in name and name not in ("kubernetes", "orphan", "foregroundDeletion"):
        detail = "name is neither a standard finalizer name nor is it fully qualified"
        out.append(invalid_value(path, quote(name), detail))


def check_standard_finalizers(metadata: Document, field: str = "metadata") -> list[Cause]:
    """Return errors for finalizers that have no domain and are not standard finalizers."""
    text = "name is neither a standard finalizer name nor is it fully qualified"
    return [
        invalid_value(f"{field}.finalizers[{index}]", quote(name), text)
        for index, name in enumerate(texts(metadata, "finalizers"))
        if "/" not in name and name not in ("kubernetes", "orphan", "foregroundDeletion")
    ]


def check_metadata_update(new: Document, old: Document, field: str = "metadata") -> list[Cause]:
    """Return the errors of changed metadata: immutable fields, new finalizers during deletion, and invalid values."""
    causes: list[Cause] = []
    if old.get("deletionTimestamp"):
        known = texts(old, "finalizers")
        added = sorted(each for each in texts(new, "finalizers") if each not in known)
        if added:
            listed = ", ".join(quote(each) for each in added)
            text = "no new finalizers can be added if the object is being deleted, found new finalizers "
            causes.append(forbidden_value(f"{field}.finalizers", f"{text}[]string{{{listed}}}"))
    for name in ("name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"):
        if new.get(name) != old.get(name):
            causes.append(invalid_value(f"{field}.{name}", json.dumps(new.get(name)), _IMMUTABLE))
    causes += check_labels(part(new, "labels"), f"{field}.labels")
    causes += check_annotations(part(new, "annotations"), f"{field}.annotations")
    return causes + _check_owners(parts(new, "ownerReferences"), f"{field}.ownerReferences")


def shown(value: object) -> str:
    """Return a value as Go's messages show it: as compact JSON."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def outline_of(metadata: Document) -> bytes:
    """Return the parts of metadata that determine which fields a client owns: field names, map keys and list items."""
    return msgspec.json.encode([(name, _keys(value)) for name, value in metadata.items()])


def _keys(value: object) -> object:
    if isinstance(value, dict):
        return list(value)
    return value if isinstance(value, list) else bool(value)
