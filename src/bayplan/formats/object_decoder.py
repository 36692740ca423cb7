"""Decode the JSON of an object, from storage or a watch, to a typed object; equal parts of different objects are shared.

For hosts that repeatedly decode the objects of one cluster (the API server's bridge, a watch of a real cluster): pods
with equal specs (except for the node), labels, annotations or owners share these objects, and statuses share their
equal parts, regardless of addresses and container IDs. This saves memory (1.1 kB instead of 4.3 for a running pod), and
the scheduler finds the plan of a pod by the identity of these parts. Specs that differ only in the resources of
containers share everything else: they are built from a common frame. `bayplan.formats.manifests` reads files, and also
reports unusual input.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from hashlib import blake2b
from operator import itemgetter
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from bayplan.base.bounded_cache import BoundedCache
from bayplan.objects.defaults import default_object, default_pod
from bayplan.objects.kinds import decode_json
from bayplan.objects.meta import Int64, KubernetesObject, ObjectMeta, OwnerReference, ResourceList
from bayplan.objects.pod import Container, Pod, PodSpec, PodStatus, ResourceRequirements
from bayplan.objects.pod_defaults import default_requirements

T = TypeVar("T")
K = TypeVar("K", bound=KubernetesObject)

_MAX_VALUES = 16_384
_MAX_PARTS = 1024
_NODE = b'"nodeName":"'
# Fields of a status that differ from pod to pod. As quotes inside strings are escaped, a match is never inside a
# string.
_POD_IP = re.compile(rb'"podIP":"([^"\\]*)"')
_HOST_IP = re.compile(rb'"hostIP":"([^"\\]*)"')
_OF_ONE_POD = re.compile(rb'"(?:podIP|hostIP|containerID)":"[^"\\]*"|"(?:podIPs|hostIPs)":\[[^\]\\]*\]')
_RESOURCES = re.compile(
    rb'"resources":(\{"(?:limits|requests)":\{[^{}\\]*\}(?:,"(?:limits|requests)":\{[^{}\\]*\})?\})'
)
_MARK = "bayplan.example/place"
_NO_LABELS: dict[str, str] = {}
_NONE = ResourceRequirements()


class _PodMetadata(msgspec.Struct, gc=False, rename="camel"):
    """The metadata of a pod, with the parts that repeat left as raw JSON."""

    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: Int64 = 0
    labels: msgspec.Raw = msgspec.Raw(b"")
    annotations: msgspec.Raw = msgspec.Raw(b"")
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: Int64 | None = None
    owner_references: msgspec.Raw = msgspec.Raw(b"")
    finalizers: tuple[str, ...] = ()


class _PodDocument(msgspec.Struct, gc=False):
    """A pod, with the parts that repeat left as raw JSON."""

    metadata: _PodMetadata
    spec: msgspec.Raw = msgspec.Raw(b"{}")
    status: msgspec.Raw = msgspec.Raw(b"{}")


class _Frame(msgspec.Struct, frozen=True, gc=False):
    """The part that specs share if they differ only in the resources of containers.

    Attributes:
        spec: the spec with defaults, without these resources.
        key: a digest of the spec.
        places: for each occurrence of resources in a spec's JSON, in order, the container: its field and its index
            there.
    """

    spec: PodSpec
    key: bytes
    places: tuple[tuple[str, int], ...]


class ObjectDecoder:
    """Decodes objects. Each host has a separate decoder, so that shared values live as long as the host.

    Attributes:
        framed: the number of specs that were built from a frame instead of being decoded.
    """

    def __init__(self) -> None:
        self._pod = msgspec.json.Decoder(_PodDocument).decode
        self._specs: BoundedCache[bytes, PodSpec] = BoundedCache(_MAX_VALUES)
        self._equal_specs: BoundedCache[bytes, PodSpec] = BoundedCache(_MAX_VALUES)
        self._frames: BoundedCache[bytes, _Frame | None] = BoundedCache(_MAX_PARTS)
        self._resources: BoundedCache[bytes, ResourceRequirements] = BoundedCache(_MAX_PARTS)
        self._amounts: BoundedCache[bytes, ResourceList] = BoundedCache(_MAX_PARTS)
        self.framed = 0
        self._maps: BoundedCache[bytes, dict[str, str]] = BoundedCache(_MAX_VALUES)
        self._owners: BoundedCache[bytes, tuple[OwnerReference, ...]] = BoundedCache(_MAX_VALUES)
        self._statuses: BoundedCache[bytes, PodStatus] = BoundedCache(_MAX_PARTS)

    def decode(self, raw: bytes, struct: type[K]) -> K:
        """Return the typed object of a document, with the API's defaults.

        Args:
            raw: the object as JSON; kind and apiVersion are optional.
            struct: the struct of its kind.

        Raises:
            InputError: the document is not JSON, or a field has the wrong type; with the field's path.
        """
        if struct is Pod:
            return self._decode_pod(raw)  # type: ignore[return-value]
        return default_object(decode_json(raw, struct))

    def _decode_pod(self, raw: bytes) -> Pod:
        try:
            document = self._pod(raw)
            found = document.metadata
            metadata = ObjectMeta(
                name=found.name,
                generate_name=found.generate_name,
                namespace=found.namespace or "default",
                uid=found.uid,
                resource_version=found.resource_version,
                generation=found.generation,
                labels=_cached(self._maps, bytes(found.labels), _decode_map) or _NO_LABELS,
                annotations=_cached(self._maps, bytes(found.annotations), _decode_map) or _NO_LABELS,
                creation_timestamp=found.creation_timestamp,
                deletion_timestamp=found.deletion_timestamp,
                deletion_grace_period_seconds=found.deletion_grace_period_seconds,
                owner_references=_cached(self._owners, bytes(found.owner_references), _decode_owners) or (),
                finalizers=found.finalizers,
            )
            spec = self._decode_spec(bytes(document.spec))
            status = self._decode_pod_status(bytes(document.status))
        except msgspec.MsgspecError:
            # Decode again, to accept nulls in unexpected places or to get an error with the field's path.
            return default_object(decode_json(raw, Pod))
        return Pod(metadata=metadata, spec=spec, status=status)

    def _decode_pod_status(self, raw: bytes) -> PodStatus:
        pod_ips, host_ips = _POD_IP.findall(raw), _HOST_IP.findall(raw)
        if not pod_ips and not host_ips:
            return _cached(self._statuses, raw, _decode_status) or PodStatus()
        if len(pod_ips) > 1 or len(host_ips) > 1:
            return _decode_status(raw)
        key = _OF_ONE_POD.sub(b"", raw)
        shared = self._statuses.get(key)
        if shared is None:
            shared = self._statuses.put(key, replace(_decode_status(raw), pod_ip="", host_ip=""))
        pod_ip, host_ip = (found[0].decode() if found else "" for found in (pod_ips, host_ips))
        return replace(shared, pod_ip=pod_ip, host_ip=sys.intern(host_ip))

    def _decode_spec(self, raw: bytes) -> PodSpec:
        bare, node_name = _without_node(raw)
        known = _digest(bare)
        spec = self._specs.get(known)
        if spec is None:
            spec = self._framed_spec(bare)
            if spec is None:
                found = _decode_spec(raw)
                spec = self._shared(default_pod(Pod(spec=replace(found, node_name=""))).spec)
                if found.node_name != node_name:
                    return replace(spec, node_name=found.node_name)
            self._specs.put(known, spec)
        return replace(spec, node_name=node_name) if node_name else spec

    def _shared(self, spec: PodSpec) -> PodSpec:
        """Return the first spec that was equal to this one: specs whose JSON differs in the order of fields share an object."""
        key = _digest(_encode_value(spec))
        return self._equal_specs.get(key) or self._equal_specs.put(key, spec)

    def _framed_spec(self, bare: bytes) -> PodSpec | None:
        """Build a spec from a shared frame and its resources; return None if it has to be decoded as a whole."""
        # Texts between resources (even indexes), and resources (odd indexes).
        found = _RESOURCES.split(bare)
        if len(found) == 1:
            return None
        known = _digest(b"\0".join(found[::2]))
        frame = self._frames[known] if known in self._frames else self._frames.put(known, self._frame(found))
        if frame is None:
            return None
        decoded = [_cached(self._resources, each, self._decode_resources) or _NONE for each in found[1::2]]
        own = sorted(zip(frame.places, decoded, strict=True), key=_place_of)
        key = _digest(frame.key + _encode_value(own))
        spec = self._equal_specs.get(key)
        if spec is None:
            fields = {"containers": list(frame.spec.containers), "init_containers": list(frame.spec.init_containers)}
            for (name, index), resources in own:
                fields[name][index] = replace(fields[name][index], resources=resources)
            shared = {name: tuple(each) for name, each in fields.items() if each}
            spec = self._equal_specs.put(key, replace(frame.spec, **shared))
            self.framed += 1
        return spec

    def _frame(self, found: list[bytes]) -> _Frame | None:
        """Return the frame of a spec that was split at its resources; None if some of these do not belong to containers."""
        marked = [b'"resources":{"limits":{"%b":"%d"}}' % (_MARK.encode(), number) for number in range(len(found) // 2)]
        if any(_MARK.encode() in each for each in found):
            return None
        pieces = list(found)
        pieces[1::2] = marked
        spec = _decode_spec(b"".join(pieces))
        places: dict[str, tuple[str, int]] = {}
        bare: dict[str, tuple[Container, ...]] = {}
        for name, containers in (("containers", spec.containers), ("init_containers", spec.init_containers)):
            for index, each in enumerate(containers):
                if _MARK in each.resources.limits:
                    places[str(each.resources.limits[_MARK])] = (name, index)
            bare[name] = tuple(
                replace(each, resources=_NONE) if _MARK in each.resources.limits else each for each in containers
            )
        if len(places) != len(marked) or spec.resources is not None or spec.node_name:
            return None
        shared = self._shared(default_pod(Pod(spec=replace(spec, **bare))).spec)
        order = tuple(places[number] for number in sorted(places, key=int))
        return _Frame(shared, _digest(_encode_value(shared)), order)

    def _decode_resources(self, raw: bytes) -> ResourceRequirements:
        found = default_requirements(_decode_resources(raw))
        return ResourceRequirements(limits=self._interned(found.limits), requests=self._interned(found.requests))

    def _interned(self, amounts: ResourceList) -> ResourceList:
        """Return the same dictionary for equal amounts."""
        key = _encode_value(amounts)
        return self._amounts.get(key) or self._amounts.put(key, amounts)


_encode_value = msgspec.msgpack.Encoder().encode
_place_of = itemgetter(0)
_decode_spec = msgspec.json.Decoder(PodSpec).decode
_decode_resources = msgspec.json.Decoder(ResourceRequirements).decode
_decode_status = msgspec.json.Decoder(PodStatus).decode
_decode_map = msgspec.json.Decoder(dict[str, str]).decode
_decode_owners = msgspec.json.Decoder(tuple[OwnerReference, ...]).decode


def _cached(cache: BoundedCache[bytes, T], raw: bytes, decode: Callable[[bytes], T]) -> T | None:
    """Return the decoded value of JSON, from a cache if possible; None for b""."""
    if not raw:
        return None
    known = cache.get(raw)
    return known if known is not None else cache.put(raw, decode(raw))


def _digest(data: bytes) -> bytes:
    """Return a digest as a key for caches. The JSON of a spec would take 1 to 2 kB in each of two caches."""
    return blake2b(data, digest_size=16).digest()


def _without_node(raw: bytes) -> tuple[bytes, str]:
    """Return a spec's JSON with an empty node name, and the name; unchanged JSON and "" if the field can't be found for certain.

    As quotes inside strings are escaped, an unescaped match is the field itself.
    """
    at = raw.find(_NODE)
    if at < 0 or raw.find(_NODE, at + 1) >= 0:
        return raw, ""
    start = at + len(_NODE)
    end = raw.index(b'"', start)
    name = raw[start:end]
    return (raw[:start] + raw[end:], name.decode()) if b"\\" not in name else (raw, "")
