"""The result of one extender in one cycle: its part of a decision record."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from msgspec.structs import replace

from bayplan.framework.status import Status


class ExtenderSaid(msgspec.Struct):
    """The requests to one extender in one cycle, and its responses. Rows are row numbers of the cluster.

    Attributes:
        name: its URL prefix.
        weight: the weight of its scores.
        scale: the factor applied to its scores before the weight.
        asked: the rows sent to its filter, in order; empty if the filter was not called.
        refused: rows that it rejected, with the status (empty if it left a node out without a reason).
        unknown: names in its rejections that are not nodes of the cluster.
        scores: its scores by row, unscaled; None if it was not called, or failed.
        filter_error, prioritize_error: why the call failed, or "".
        ignored: whether the cycle continued despite a filter error.
    """

    name: str
    weight: int
    scale: int
    asked: tuple[int, ...] = ()
    refused: tuple[tuple[int, Status], ...] = ()
    unknown: tuple[tuple[str, Status], ...] = ()
    scores: tuple[tuple[int, int], ...] | None = None
    filter_error: str = ""
    prioritize_error: str = ""
    ignored: bool = False

    def moved(self, place: Mapping[int, int]) -> ExtenderSaid:
        """Return a copy with other row numbers, without the rows that have none."""
        return replace(
            self,
            asked=tuple(place[row] for row in self.asked if row in place),
            refused=tuple((place[row], status) for row, status in self.refused if row in place),
            scores=None
            if self.scores is None
            else tuple((place[row], score) for row, score in self.scores if row in place),
        )
