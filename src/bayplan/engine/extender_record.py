"""What one extender said in one cycle: the part of a decision record that tells of extenders."""

from __future__ import annotations

from dataclasses import dataclass

from bayplan.framework.status import Status


@dataclass(slots=True)
class ExtenderSaid:
    """What one extender was asked and said in one cycle. Rows are row numbers of the cluster.

    Attributes:
        name: its URL prefix. weight: of its scores.
        asked: the rows that its filter was asked about, in that order; empty where it was not asked.
        refused: rows that it rejected, with the status (its text, or none where it left a row out without a word).
        unknown: names that it rejected and that are no nodes.
        scores: its scores by row, as it gave them; None where it was not asked, or failed.
        filter_error, prioritize_error: why it could not be asked, or "". ignored: whether the cycle went on without its filter.
    """

    name: str
    weight: int
    asked: tuple[int, ...] = ()
    refused: tuple[tuple[int, Status], ...] = ()
    unknown: tuple[tuple[str, Status], ...] = ()
    scores: tuple[tuple[int, int], ...] | None = None
    filter_error: str = ""
    prioritize_error: str = ""
    ignored: bool = False
