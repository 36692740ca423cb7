"""The rules of single plugins over classes of rows that are alike for them: what a class is told, and what it is worth.

Counts of domains change with every placement, and with them the verdicts or raw scores of thousands of nodes. What they come to
for some dozens of classes is found again in every cycle; no row is looked at for that.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bayplan.engine.part import FilterPart, ScorePart
from bayplan.framework.plugin import NormalizePlugin, Params
from bayplan.state.arrays import Bools, Ints
from bayplan.state.row_classes import ClassRows, Column


class ClassFilter:
    """The verdicts of one filter by classes.

    Args:
        part: of the plan; its own values are brought up to date only where somebody reads them.
        params: of this cycle. columns: what verdicts follow from with these.
    """

    __slots__ = ("columns", "params", "part")

    def __init__(self, part: FilterPart, params: Params | None, columns: Sequence[Column]) -> None:
        self.part = part
        self.params = params
        self.columns = columns

    def passes(self, view: ClassRows) -> Bools:
        """Return which classes pass."""
        verdicts: Any = self.part.plugin.filter(self.part.spec, self.params, view)
        passes: Bools = verdicts == 0
        return passes


class ClassScores:
    """What one scorer adds to the totals of classes.

    Args:
        part, params, columns: as of a filter. weight: of its plugin.

    Attributes:
        worth: int64[classes], weighted scores; meaningful in classes that some feasible row is of.
        scale: what raw scores were normalised by, None without NormalizeScore.
    """

    __slots__ = ("_raw", "columns", "params", "part", "scale", "weight", "worth")

    def __init__(self, part: ScorePart, weight: int, params: Params | None, columns: Sequence[Column]) -> None:
        self.part = part
        self.weight = weight
        self.params = params
        self.columns = columns
        self.scale: Params | None = None
        self._raw: Ints
        self.worth: Ints

    def evaluate(self, view: ClassRows, present: Bools) -> None:
        """Score all classes; `present` are those that some feasible row is of."""
        self._raw = self.part.plugin.score(self.part.spec, self.params, view)
        self.scale = self.scale_for(view, present)
        self._weigh(view)

    def rescale(self, view: ClassRows, present: Bools) -> bool:
        """Normalise for other classes that are present; return whether worths are others now."""
        scale = self.scale_for(view, present)
        if scale == self.scale:
            return False
        self.scale = scale
        self._weigh(view)
        return True

    def scale_for(self, view: ClassRows, present: Bools) -> Params | None:
        """Return what normalising needs if these classes are present."""
        plugin = self.part.plugin
        if not isinstance(plugin, NormalizePlugin):
            return None
        return plugin.scale_over(self.part.spec, self.params, self._raw, present, view)

    def _weigh(self, view: ClassRows) -> None:
        plugin, scores = self.part.plugin, self._raw
        if self.scale is not None and isinstance(plugin, NormalizePlugin):
            scores = plugin.normalize(self.part.spec, self.scale, scores, view)
        self.worth = scores if self.weight == 1 else self.weight * scores
