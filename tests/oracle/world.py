"""A cluster as plain dicts of typed objects, for naive rules that read several pods."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from bayplan.objects.node import Node
from bayplan.objects.pod import Pod


@dataclass
class World:
    """Nodes by name, running pods with the names of their nodes by key, and the labels of existing namespaces."""

    nodes: dict[str, Node] = field(default_factory=dict)
    pods: dict[str, tuple[Pod, str]] = field(default_factory=dict)
    namespaces: dict[str, Mapping[str, str]] = field(default_factory=dict)

    def labels_of(self, namespace: str) -> Mapping[str, str]:
        """Return the labels of a namespace; an empty mapping if it does not exist."""
        return self.namespaces.get(namespace, {})

    def value(self, node: str, key: str) -> str | None:
        """Return the value of a topology key on a node, or None."""
        return self.nodes[node].metadata.labels.get(key)

    def neighbours(self, node: str, key: str) -> list[Pod]:
        """Return the pods in a node's domain of a topology key; none if the node lacks the key."""
        value = self.value(node, key)
        if value is None:
            return []
        return [pod for pod, place in self.pods.values() if self.value(place, key) == value]
