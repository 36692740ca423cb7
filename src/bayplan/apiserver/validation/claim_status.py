"""Validation rules of the status of a ResourceClaim: allocation, reservations, and the status of devices."""

from __future__ import annotations

import re

from bayplan.apiserver.model.errors import duplicate, forbidden_value, invalid_value, not_supported, required, too_long
from bayplan.apiserver.validation.conditions import conditions
from bayplan.apiserver.validation.engine import Causes, go_value, immutable, need, too_many, value
from bayplan.apiserver.validation.formats import dns_label, dns_subdomain, parse_ip, qualified_name
from bayplan.apiserver.validation.internal_json import shown_as
from bayplan.apiserver.validation.volumes import driver_name
from bayplan.base.go_text.json import json_text
from bayplan.base.plain_data import Document, part, parts, texts
from bayplan.objects.selectors import quote

MAX_RESERVED, MAX_RESULTS, MAX_CONFIG, MAX_CONDITIONS, MAX_DEVICE_CONDITIONS = 256, 32, 64, 4, 8
MAX_POOL_BYTES = 253
MAX_ADDRESSES, MAX_NAME_BYTES, MAX_HARDWARE_BYTES, MAX_DATA_BYTES = 16, 256, 128, 10 * 1024
_SOURCES = ("FromClaim", "FromClass")
_UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_UID_LENGTHS = (32, 36, 38, 45)
_ANY_UID = re.compile(
    r"[0-9a-fA-F]{32}|(urn:uuid:|\{)?[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\}?", re.IGNORECASE
)
_NOT_NORMALIZED = (
    "uid must be in RFC 4122 normalized form, `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx` with lowercase hexadecimal "
    "characters"
)
_ALLOCATION_STAYS = immutable("status.allocation", show=shown_as("*resource.AllocationResult"))


def pool_name(found: object, path: str, out: Causes) -> None:
    """Check the name of a pool: one or more DNS subdomains, separated by slashes."""
    if len(str(found)) > MAX_POOL_BYTES:
        out.append(too_long(path, MAX_POOL_BYTES))
    for segment in str(found).split("/"):
        dns_subdomain(segment, path, out)


def claim_status(new: Document, old: Document, out: Causes) -> None:
    """Check a status update, except the parts of the allocation that refer to requests of the claim."""
    status, before = part(new, "status"), part(old, "status")
    _reserved(status, out)
    _devices(status, out)
    if parts(status, "reservedFor"):
        path = "status.reservedFor"
        if status.get("allocation") is None:
            out.append(forbidden_value(path, "may not be specified when `allocated` is not set"))
        elif part(new, "metadata").get("deletionTimestamp"):
            known = parts(before, "reservedFor")
            if any(each not in known for each in parts(status, "reservedFor")):
                detail = "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set"
                out.append(forbidden_value(path, detail))
    if before.get("allocation") is not None and status.get("allocation") is not None:
        _ALLOCATION_STAYS(new, old, out)


def _reserved(status: Document, out: Causes) -> None:
    found, path = parts(status, "reservedFor"), "status.reservedFor"
    if len(found) > MAX_RESERVED:
        out.append(too_many(path, len(found), MAX_RESERVED))
        return
    for index, consumer in enumerate(found):
        for name in ("resource", "name", "uid"):
            if not consumer.get(name):
                out.append(required(f"{path}[{index}].{name}"))
    seen: set[object] = set()
    for index, consumer in enumerate(found):
        uid = consumer.get("uid") or ""
        if uid in seen:
            out.append(duplicate(f"{path}[{index}]", quote(str(uid))))
        seen.add(uid)


def device_name(device: Document) -> str:
    """Return the name of a device in messages: driver, pool, device and, if present, share id, separated by slashes."""
    name = "/".join(str(device.get(each) or "") for each in ("driver", "pool", "device"))
    return f"{name}/{device['shareID']}" if device.get("shareID") is not None else name


def _devices(status: Document, out: Causes) -> None:
    allocated = [device_name(each) for each in parts(part(status, "allocation", "devices"), "results")]
    found = parts(status, "devices")
    for index, device in enumerate(found):
        _device(device, f"status.devices[{index}]", allocated, out)
    names = [device_name(each) for each in found]
    for index, name in enumerate(names):
        if name in names[:index]:
            out.append(duplicate(f"status.devices[{index}]", quote(name)))


def _names(device: Document, path: str, out: Causes) -> None:
    value("driver", driver_name)(device, path, out)
    need("pool", pool_name)(device, path, out)
    dns_label(device.get("device") or "", f"{path}.device", out)


def _share(device: Document, path: str, out: Causes) -> None:
    found = device.get("shareID")
    if found is not None and not _UID.fullmatch(str(found)):
        detail = "must be a lowercase UUID in 8-4-4-4-12 format"
        out.append(invalid_value(f"{path}.shareID", quote(str(found)), detail))


def _uid_problem(text: str) -> str:
    """Return what upstream's parser of UUIDs, which accepts more forms than one, reports about a text."""
    length = len(text.encode(errors="surrogatepass"))
    if length not in _UID_LENGTHS:
        return f"error validating uid: invalid UUID length: {length}"
    if not _ANY_UID.fullmatch(text):
        return "error validating uid: invalid UUID format"
    return "" if _UID.fullmatch(text) else _NOT_NORMALIZED


def _device(device: Document, path: str, allocated: list[str], out: Causes) -> None:
    _names(device, path, out)
    share = device.get("shareID")
    problem = _uid_problem(str(share)) if share is not None else ""
    if problem:
        out.append(invalid_value(f"{path}.shareID", quote(str(share)), problem))
    if device_name(device) not in allocated:
        detail = "must be an allocated device in the claim"
        identity = {name.title(): device.get(name) or "" for name in ("driver", "pool", "device")}
        out.append(invalid_value(path, go_value({**identity, "ShareID": device.get("shareID") or ""}), detail))
    if len(parts(device, "conditions")) > MAX_DEVICE_CONDITIONS:
        out.append(too_many(f"{path}.conditions", len(parts(device, "conditions")), MAX_DEVICE_CONDITIONS))
    conditions(device, path, out)
    if device.get("data") is not None:
        raw_object(device["data"], f"{path}.data", out)
    _network(part(device, "networkData"), f"{path}.networkData", out)


def raw_object(found: object, path: str, out: Causes) -> None:
    """Check data that a driver reports: a JSON object of limited size."""
    if len(json_text(found).encode()) > MAX_DATA_BYTES:
        out.append(too_long(path, MAX_DATA_BYTES))
    elif not isinstance(found, dict):
        out.append(invalid_value(path, quote("<value omitted>"), "must be a valid JSON object"))


def _network(network: Document, path: str, out: Causes) -> None:
    for name, limit in (("interfaceName", MAX_NAME_BYTES), ("hardwareAddress", MAX_HARDWARE_BYTES)):
        if len(str(network.get(name) or "").encode()) > limit:
            out.append(too_long(f"{path}.{name}", limit))
    found = texts(network, "ips")
    if len(found) > MAX_ADDRESSES:
        out.append(too_many(f"{path}.ips", len(found), MAX_ADDRESSES))
        return
    for index, text in enumerate(found):
        _interface_address(text, f"{path}.ips[{index}]", out)
    for index, text in enumerate(found):
        if text in found[:index]:
            out.append(duplicate(f"{path}.ips[{index}]", quote(text)))


def _interface_address(text: str, path: str, out: Causes) -> None:
    host, _, bits = text.partition("/")
    address = parse_ip(host)
    if address is None or not bits.isascii() or not bits.isdigit() or int(bits[:4]) > address.max_prefixlen:
        detail = "must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)"
        out.append(invalid_value(path, quote(text), detail))
    elif text != f"{address}/{int(bits)}":
        out.append(invalid_value(path, quote(text), f"must be in canonical form ({quote(f'{address}/{int(bits)}')})"))


def allocated_result(result: Document, path: str, out: Causes) -> None:
    """Check an allocated device, except its reference to a request."""
    _names(result, path, out)
    bound, failed = texts(result, "bindingConditions"), texts(result, "bindingFailureConditions")
    for name, found in (("bindingConditions", bound), ("bindingFailureConditions", failed)):
        if len(found) > MAX_CONDITIONS:
            out.append(too_many(f"{path}.{name}", len(found), MAX_CONDITIONS))
            continue
        for index, text in enumerate(found):
            qualified_name(text, f"{path}.{name}[{index}]", out)
    _share(result, path, out)


def config_source(config: Document, path: str, out: Causes) -> None:
    """Check where a device configuration comes from: the claim or the class."""
    source = str(config.get("source") or "")
    if not source:
        out.append(required(f"{path}.source"))
    elif source not in _SOURCES:
        out.append(not_supported(f"{path}.source", quote(source), _SOURCES))
