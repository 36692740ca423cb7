"""What one extender said in one cycle: the part of a decision record that tells of extenders."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from msgspec.structs import replace

from bayplan.framework.status import Status


class ExtenderSaid(msgspec.Struct):
    """What one extender was asked and said in one cycle. Rows are row numbers of the cluster.

    Attributes:
        name: its URL prefix. weight: of its scores. scale: what they are multiplied by before that.
        asked: the rows that its filter was asked about, in that order; empty where it was not asked.
        refused: rows that it rejected, with the status (its text, or none where it left a row out without a word).
        unknown: names that it rejected and that are no nodes.
        scores: its scores by row, as it gave them; None where it was not asked, or failed.
        filter_error, prioritize_error: why it could not be asked, or "". ignored: whether the cycle went on without its filter.
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
        """Return the same with other row numbers; rows that have none are left out."""
        return replace(
            self,
            asked=tuple(place[row] for row in self.asked if row in place),
            refused=tuple((place[row], status) for row, status in self.refused if row in place),
            scores=None
            if self.scores is None
            else tuple((place[row], score) for row, score in self.scores if row in place),
        )
