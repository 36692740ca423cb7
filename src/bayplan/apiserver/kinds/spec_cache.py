"""A cache of pod specs, because pods of one template send the same spec thousands of times.

The key is the exact JSON of the spec as sent, except the node name. The value is the decoded spec with defaults, the
fields that its client owns, and whether it is valid. A spec is cached when it is sent for the second time; the first
time, only its hash is stored. The cached spec does not contain values that depend on the cluster (priority,
tolerations), because admission changes a copy. Specs with label keys are not cached, because these are merged with the
pod's labels.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import msgspec

from bayplan.apiserver.fields.field_set import Node
from bayplan.apiserver.schema.emptied import Emptied
from bayplan.base.bounded_cache import BoundedCache, SeenKeys
from bayplan.base.plain_data import Document

_MAX_SPECS = 4096
_LABEL_KEYS = b"atchLabelKeys"
DEPENDENT = (_LABEL_KEYS, b"clusterTrustBundle", b"podCertificate", b"schedulingGroup", b"stopSignal")
"""Parts of field names that exclude a spec from the cache, because the field depends on the pod or on a feature gate."""
_NODE_NAME = "nodeName"
_ON_A_NODE = b"@"


@dataclass(slots=True)
class SpecFacts:
    """Cached facts about a spec.

    Attributes:
        spec: the decoded spec with defaults; never changed.
        owned: the fields in the spec that its client owns; None until computed.
        objects: the fields that the client owns in a whole pod with this spec, by the outline of the pod's metadata.
        valid: whether the spec is known to be valid with any node name.
        quality: the QoS class; empty until computed.
        warnings: the warnings about the spec; None until computed.
    """

    spec: Document
    owned: Node | None = None
    objects: dict[bytes, Node] = field(default_factory=dict)
    valid: bool = False
    quality: str = ""
    warnings: tuple[str, ...] | None = None


class CachedSpec(Emptied):
    """A shallow copy of a cached spec, which admission may change.

    Attributes:
        facts: the facts about the cached spec.
    """

    __slots__ = ("facts",)

    def __init__(self, facts: SpecFacts, node_name: str) -> None:
        super().__init__(facts.spec, facts.spec.empties if isinstance(facts.spec, Emptied) else {})
        if node_name:
            self[_NODE_NAME] = node_name
        self.facts = facts


class SpecCache:
    """The most recently used specs that were sent at least twice, by their JSON."""

    def __init__(self) -> None:
        self._known: BoundedCache[bytes, SpecFacts] = BoundedCache(_MAX_SPECS)
        self._sent = SeenKeys(_MAX_SPECS)

    def get(self, sent: Document, compute: Callable[[], Document | None]) -> CachedSpec | None:
        """Return a copy of a cached spec; cache it if it is sent for the second time.

        Args:
            sent: the spec in the request.
            compute: returns the decoded spec with defaults, or None if it must not be cached because of unknown fields.

        Returns:
            None if the spec is sent for the first time or cannot be cached. It is then processed like any other object.
        """
        node_name = sent.get(_NODE_NAME)
        if isinstance(node_name, str) and node_name:
            key = msgspec.json.encode({name: item for name, item in sent.items() if name != _NODE_NAME}) + _ON_A_NODE
        else:
            key, node_name = msgspec.json.encode(sent), ""
        facts = self._known.get(key)
        if facts is None:
            if self._sent.is_new(key) or any(each in key for each in DEPENDENT):
                return None
            spec = compute()
            if spec is None:
                return None
            facts = self._known.put(key, SpecFacts(spec))
        return CachedSpec(facts, node_name)
