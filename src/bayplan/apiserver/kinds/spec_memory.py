"""Cache of pod specs: pods of one template send the same spec thousands of times.

The key is the exact JSON of the spec as sent, except the node name; the value is the decoded and defaulted spec, the fields that
its client owns, and whether it is valid. A spec is cached when it is sent a second time; the first time, only a hash of it is
remembered. Values that depend on the cluster (priority, tolerations) are not included: admission
works on a copy. Specs whose label keys are merged with the pod's labels are not cached, because the merge changes them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import msgspec

from bayplan.apiserver.codec.shape import Emptied
from bayplan.apiserver.fields.field_set import Node
from bayplan.base.bounded_cache import BoundedCache, SeenKeys
from bayplan.base.plain_data import Document

_MAX_SPECS = 4096
_LABEL_KEYS = b"atchLabelKeys"
DEPENDENT = (_LABEL_KEYS, b"clusterTrustBundle", b"podCertificate", b"schedulingGroup", b"stopSignal")
"""Fields that make a spec depend on its pod, or that may be dropped from it."""
_NODE_NAME = "nodeName"
_ON_A_NODE = b"@"


@dataclass(slots=True)
class SpecFacts:
    """Cached facts about a spec.

    Attributes:
        spec: the decoded and defaulted spec; never changed.
        owned: the fields that the client of a create owns, once computed.
        objects: by outline of the metadata, the fields that the client of a create owns in a complete object with this spec.
        valid: whether it has passed validation, with any node name.
        quality: the quality-of-service class, once computed.
        warnings: the warnings about the spec, once computed.
    """

    spec: Document
    owned: Node | None = None
    objects: dict[bytes, Node] = field(default_factory=dict)
    valid: bool = False
    quality: str = ""
    warnings: tuple[str, ...] | None = None


class RememberedSpec(Emptied):
    """A copy of a spec that admission may change, with its cached facts.

    Attributes:
        facts: the facts of the spec as sent.
    """

    __slots__ = ("facts",)

    def __init__(self, facts: SpecFacts, node_name: str) -> None:
        super().__init__(facts.spec, facts.spec.empties if isinstance(facts.spec, Emptied) else {})
        if node_name:
            self[_NODE_NAME] = node_name
        self.facts = facts


class SpecMemory:
    """The most recent specs that were sent more than once, by their JSON."""

    def __init__(self) -> None:
        self._known: BoundedCache[bytes, SpecFacts] = BoundedCache(_MAX_SPECS)
        self._sent = SeenKeys(_MAX_SPECS)

    def recall(self, sent: Document, compute: Callable[[], Document | None]) -> RememberedSpec | None:
        """Return the facts of a spec, from the cache or newly computed.

        Args:
            sent: the spec from the request.
            compute: the function that returns the decoded and defaulted spec, or None if it must not be cached (unknown fields).

        Returns:
            None if the spec was not sent before or cannot be cached; then it is processed like any other object.
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
            facts = self._known.keep(key, SpecFacts(spec))
        return RememberedSpec(facts, node_name)
