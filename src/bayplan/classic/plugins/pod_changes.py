"""The changes of a trial to one node, and the predicates that depend on them.

Upstream computes the cluster-wide data of predicates once for each pod (predicate metadata), and then adds and removes pods
of one node: nominated ones, and potential victims. Added pods are not always counted like existing ones, so
these predicates get the changes themselves instead of a state to which they were applied.
"""

from __future__ import annotations

import msgspec

from bayplan.framework.rule import FilterRule
from bayplan.state.pod_info import PodInfo


class PodChanges(msgspec.Struct):
    """The pods that a trial moved on one row.

    Attributes:
        removed: the pods that ran there and were removed, by key; including those that were added back.
        restored: the removed pods that were added back.
        nominated: the pods that were added because they are nominated to the node.
    """

    removed: dict[str, PodInfo] = msgspec.field(default_factory=dict)
    restored: dict[str, PodInfo] = msgspec.field(default_factory=dict)
    nominated: dict[str, PodInfo] = msgspec.field(default_factory=dict)

    @property
    def added(self) -> list[PodInfo]:
        """Return all pods that were added."""
        return [*self.restored.values(), *self.nominated.values()]


class CountingRule(FilterRule):
    """The rule of a predicate that counts pods beyond the node itself. It is not refreshed while pods are moved in a trial."""

    def filter_changed(self, row: int, changes: PodChanges) -> int:
        """Return the verdict on a row whose pods a trial has moved. Every subclass implements it."""
        raise TypeError(f"{type(self).__name__} lacks filter_changed()")
