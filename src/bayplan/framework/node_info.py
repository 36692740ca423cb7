"""One node as plugins that inherit `PerNodePlugin` see it: names instead of row numbers."""

from __future__ import annotations

from bayplan.objects.node import Node, Taint
from bayplan.objects.pod import Pod
from bayplan.state.cluster_state import ClusterState
from bayplan.state.pod_info import FIRST_RESOURCE


class NodeInfo:
    """A node, and the resources that its pods request, at the moment of the call."""

    __slots__ = ("_row", "_state")

    def __init__(self, state: ClusterState, row: int) -> None:
        self._state = state
        self._row = row

    @property
    def node(self) -> Node:
        """Return the node object."""
        node = self._state.nodes.nodes[self._row]
        assert node is not None
        return node

    @property
    def name(self) -> str:
        """Return the node's name."""
        return self.node.metadata.name

    @property
    def labels(self) -> dict[str, str]:
        """Return the node's labels."""
        return self.node.metadata.labels

    @property
    def taints(self) -> tuple[Taint, ...]:
        """Return the node's taints."""
        return self.node.spec.taints

    @property
    def pods(self) -> list[Pod]:
        """Return the pods on the node, including assumed ones."""
        return [info.pod for info in self._state.pods_on[self._row].values()]

    def allocatable(self, resource: str) -> int:
        """Return the allocatable amount of a resource, in milli-CPU for cpu; 0 if the resource is unknown."""
        if resource == "pods":
            return int(self._state.nodes.allowed_pods[self._row])
        number = self._state.nodes.resources.get(resource)
        return 0 if number is None else int(self._state.nodes.allocatable[number, self._row])

    def requested(self, resource: str) -> int:
        """Return the sum of the requests of the node's pods for a resource, in the unit of `allocatable`."""
        if resource == "pods":
            return len(self._state.pods_on[self._row])
        number = self._state.nodes.resources.get(resource)
        return 0 if number is None else int(self._state.usage[FIRST_RESOURCE + number, self._row])

    def free(self, resource: str) -> int:
        """Return `allocatable` minus `requested`; negative if the node is overcommitted."""
        return self.allocatable(resource) - self.requested(resource)
