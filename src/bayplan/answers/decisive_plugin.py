"""Find the plugin that decided: the first one whose results for two nodes differ between two decisions about one pod."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import msgspec

from bayplan.engine.decision import Decision


class PluginOutput(Protocol):
    """The results of all plugins in one decision."""

    def rejection(self, node: str) -> tuple[str, str] | None:
        """Return the plugin that rejected a node, and its reason; None if none did, or if there was no such node."""
        ...

    def points(self, node: str) -> Mapping[str, int] | None:
        """Return a node's weighted score by score plugin; None if there was no such node."""
        ...


class DecisionOutput:
    """Plugin results from a full record.

    Args:
        decision: the full record.
    """

    def __init__(self, decision: Decision) -> None:
        self._decision = decision

    def _row(self, node: str) -> int | None:
        names = self._decision.names
        return names.index(node) if node in names else None

    def rejection(self, node: str) -> tuple[str, str] | None:
        """Return the plugin that rejected a node, and its reason, or None."""
        row, decision = self._row(node), self._decision
        status = None if row is None else decision.first_failure(row)
        if row is None or status is None:
            return None
        return decision.rejecting_plugin(row), status.message or status.code.text

    def points(self, node: str) -> Mapping[str, int] | None:
        """Return a node's weighted score by score plugin, or None."""
        row, decision = self._row(node), self._decision
        if row is None:
            return None
        normalized: list[int] = decision.normalized[:, row].tolist()
        products = (points * weight for points, weight in zip(normalized, decision.weights, strict=True))
        return dict(zip(decision.scorers, products, strict=True))


class DecisivePlugin(msgspec.Struct, frozen=True, kw_only=True):
    """The plugin that decided differently on two sides.

    Attributes:
        name: the name of the plugin.
        a, b: the plugin's result on each side: for a filter, the reason if it rejected the other side's node, else
            None; for a score plugin, its weighted score for the node of side a minus that for the node of side b.
    """

    name: str
    a: str | int | None
    b: str | int | None


def decisive_plugin(a: PluginOutput | None, b: PluginOutput | None, a_node: str, b_node: str) -> DecisivePlugin | None:
    """Return the first plugin whose results for two nodes differ between the sides; None if none does or results are missing.

    A filter that rejected the other side's node takes precedence. Otherwise, it is the first score plugin of the profile
    for which the two nodes' weighted scores have different differences on side a and side b.
    """
    if b is not None and a_node and (found := b.rejection(a_node)) is not None:
        return DecisivePlugin(name=found[0], a=None, b=found[1])
    if a is not None and b_node and (found := a.rejection(b_node)) is not None:
        return DecisivePlugin(name=found[0], a=found[1], b=None)
    if a is None or b is None:
        return None
    in_a, in_b = (_preferences(output, a_node, b_node) for output in (a, b))
    for name in dict.fromkeys((*in_a, *in_b)):
        if in_a.get(name, 0) != in_b.get(name, 0):
            return DecisivePlugin(name=name, a=in_a.get(name, 0), b=in_b.get(name, 0))
    return None


def _preferences(output: PluginOutput, a_node: str, b_node: str) -> dict[str, int]:
    """Return by score plugin its weighted score for `a_node` minus that for `b_node`; {} if a node is missing."""
    a_points, b_points = output.points(a_node), output.points(b_node)
    if a_points is None or b_points is None:
        return {}
    return {name: points - b_points.get(name, 0) for name, points in a_points.items()}


def already_better(a: PluginOutput, b: PluginOutput, a_node: str, b_node: str) -> tuple[bool, str, int]:
    """Return (whether b's node scored higher on side a, too; the plugin that preferred it most there; by how many points).

    If the first is True, the changes did not move the pod: without them, it would also have moved when scheduled again.
    Return (False, "", 0) if a side rejects one of the nodes.
    """
    if a.rejection(a_node) is not None or a.rejection(b_node) is not None or b.rejection(a_node) is not None:
        return False, "", 0
    before = _preferences(a, a_node, b_node)
    if sum(before.values()) >= 0 or not _preferences(b, a_node, b_node):
        return False, "", 0
    name = min(before, key=lambda each: before[each])
    return True, name, -before[name]
