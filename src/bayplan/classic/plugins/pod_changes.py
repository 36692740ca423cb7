"""The pods that a trial moves on one node, and the base of rules that need to know them.

Upstream computes the cluster-wide data of predicates once per pod (predicate metadata), and then adds and removes pods
of one node: nominated pods, and potential victims. It does not always count added pods like existing ones, so these
predicates get the moves themselves, and not a state to which the moves have been applied.
"""

from __future__ import annotations

import msgspec

from bayplan.framework.rule import FilterRule
from bayplan.state.pod_info import PodInfo


class PodChanges(msgspec.Struct):
    """The pods that a trial moved on one row.

    Attributes:
        removed: the removed pods of the node, by key, including those that were added back.
        restored: the removed pods that were added back.
        nominated: the pods that were added because they are nominated to the node.
    """

    removed: dict[str, PodInfo] = msgspec.field(default_factory=dict)
    restored: dict[str, PodInfo] = msgspec.field(default_factory=dict)
    nominated: dict[str, PodInfo] = msgspec.field(default_factory=dict)

    @property
    def added(self) -> list[PodInfo]:
        """Return all pods that were added: restored and nominated ones."""
        return [*self.restored.values(), *self.nominated.values()]


class CountingRule(FilterRule):
    """Base of rules that count pods on other nodes, too. They are not refreshed while a trial moves pods."""

    def filter_changed(self, row: int, changes: PodChanges) -> int:
        """Return the verdict on a row whose pods a trial has moved."""
        raise TypeError(f"{type(self).__name__} lacks filter_changed()")
