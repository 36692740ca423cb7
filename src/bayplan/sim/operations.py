"""External operations on the cluster: objects are created, changed and deleted at given times.

Operations of the same instant run in the order of their ranks, and those of the same rank in the order in which they
were added.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TypeAlias

import msgspec

from bayplan.cluster.store import Kind
from bayplan.controllers.writer import Propagation
from bayplan.objects.meta import KubernetesObject
from bayplan.objects.node import Node
from bayplan.objects.pod import Pod


class Rank(IntEnum):
    """The order of operations and reactions at one instant.

    Resources are freed before they are requested, and nodes are added before the pods that arrive at the same time:

    * ENDS: pods whose run time is over finish (by the virtual kubelet), then pods are deleted;
    * NODES: nodes are added, changed and removed;
    * ARRIVALS: all other objects are added, changed and removed, in the order of the operations;
    * CONTROLLERS: controllers react;
    * TIMERS: the scheduler's timers run (backoffs, timeouts);
    * SCHEDULING: the scheduler processes its queue until it is empty; each binding takes effect at once.

    Controllers and kubelet react to bindings at the same instant: everything from CONTROLLERS on is repeated until
    nothing more happens.
    """

    ENDS = 0
    NODES = 1
    ARRIVALS = 2
    CONTROLLERS = 3
    TIMERS = 4
    SCHEDULING = 5


# Looked up once: on Python 3.11, looking up a member of an enumeration takes thousands of instructions.
_NODES, _ARRIVALS = Rank.NODES, Rank.ARRIVALS


class Apply(msgspec.Struct, frozen=True):
    """Create an object, or replace it if it exists.

    Attributes:
        item: the new version.
    """

    item: KubernetesObject

    @property
    def rank(self) -> Rank:
        """The rank among the operations of an instant."""
        return _NODES if isinstance(self.item, Node) else _ARRIVALS


class Delete(msgspec.Struct, frozen=True):
    """Delete an object; no effect if it does not exist.

    Attributes:
        kind: its class, e.g. `Pod`.
        key: its key: `namespace/name`, or `name` for cluster-scoped objects.
        propagation: what happens to its dependents.
        grace_seconds: the grace period of pods; None for the pods' own.
    """

    kind: Kind
    key: str
    propagation: Propagation = Propagation.BACKGROUND
    grace_seconds: int | None = None

    @property
    def rank(self) -> Rank:
        """The rank among the operations of an instant."""
        return Rank.ENDS if self.kind is Pod else Rank.NODES if self.kind is Node else Rank.ARRIVALS


class Cordon(msgspec.Struct, frozen=True):
    """Mark a node unschedulable, or schedulable again.

    Attributes:
        node_name: the node.
        unschedulable: whether the node becomes unschedulable; False to undo it.
    """

    node_name: str
    unschedulable: bool = True

    @property
    def rank(self) -> Rank:
        """The rank among the operations of an instant."""
        return Rank.NODES


class Evict(msgspec.Struct, frozen=True):
    """Evict a pod like the eviction API, but without checking disruption budgets; no effect if it does not exist.

    Attributes:
        pod_key: the key of the pod.
    """

    pod_key: str

    @property
    def rank(self) -> Rank:
        """The rank among the operations of an instant."""
        return Rank.ENDS


Operation: TypeAlias = Apply | Delete | Cordon | Evict
