"""Scores by classes of rows that score alike: a placement moves one row to another class, or the worth of classes.

Counts of domains change with every placement, and with them the raw scores of thousands of nodes. What a class is worth, once
it is normalised, changes far less often; that is compared, and rows are summed up anew only where it did.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from bayplan.engine.part import ScorePart
from bayplan.framework.plugin import NormalizePlugin, Params, ScorePlugin
from bayplan.state.arrays import Bools, Index, Ints
from bayplan.state.cluster_state import ClusterState
from bayplan.state.row_classes import RowClasses
from bayplan.state.views import Row

ParamsOf: TypeAlias = Callable[[ScorePart], Params | None]
"""Returns the params of a scorer in this cycle."""


class ClassScores:
    """What one part adds to the totals of one plan.

    Args:
        part: the part; its own values are not used, and not brought up to date.
        weight: of its plugin. state: the cluster.

    Attributes:
        worth: int64[classes], weighted scores; meaningful in classes that some feasible row is of.
        params: those that hold. scale: what they were normalised by, None without NormalizeScore.
    """

    __slots__ = (
        "_classes",
        "_held",
        "_member",
        "_present",
        "_raw",
        "_state",
        "params",
        "part",
        "scale",
        "weight",
        "worth",
    )

    def __init__(self, part: ScorePart, weight: int, state: ClusterState) -> None:
        self.part = part
        self.weight = weight
        self._state = state
        self.params: Params | None = None
        self._classes = RowClasses(state, ())
        # The class of each feasible row, -1 of others; how many rows each class has, and whether it has any.
        self._member: Index = self._classes.codes
        self._held: Ints = np.zeros(0, dtype=np.int64)
        self._present: Bools = np.zeros(0, dtype=np.bool_)
        self._raw: Ints = self._held
        self.worth: Ints = self._held
        self.scale: Params | None = None

    def start(self, params: Params | None, feasible: Bools) -> bool:
        """Number the classes and score them; return False where there are none, or too many.

        Args:
            params: of this cycle.
            feasible: bool[capacity], true somewhere.
        """
        plugin, spec = self.part.plugin, self.part.spec
        columns = plugin.score_columns(spec, params, self._state) if params is not None else None
        if columns is None:
            return False
        self._classes = classes = RowClasses(self._state, columns)
        if not classes.size:
            return False
        self.params = params
        self._member = np.where(feasible[: len(classes.codes)], classes.codes, -1)
        self._held = np.bincount(self._member + 1, minlength=classes.size + 1)[1:]
        self._present = self._held > 0
        self._raw = plugin.score(spec, params, classes.view)
        self.scale = self._scale_of(self._present)
        self.worth = self._weighted()
        return True

    def follow(self, params: Params | None, rows: Sequence[int], feasible: Bools) -> bool | None:
        """Take over new params, and rows that changed; return whether other rows are worth something else now.

        None where classes must be made anew.
        """
        same = params == self.params
        if not same and not self._has_columns_for(params):
            return None
        if not self._move(rows, feasible):
            return None
        before, self._present = self._present, self._held > 0
        if same and (before == self._present).all():
            return False
        if not same:
            self.params = params
            self._raw = self.part.plugin.score(self.part.spec, params, self._classes.view)
        scale, worth = self._scale_of(self._present), self.worth
        if same and scale == self.scale:
            return False
        self.scale = scale
        self.worth = self._weighted()
        return bool(((worth != self.worth) & before & self._present).any())

    def _has_columns_for(self, params: Params | None) -> bool:
        if params is None:
            return False
        columns = self.part.plugin.score_columns(self.part.spec, params, self._state)
        return columns is not None and tuple(columns) == self._classes.columns

    def _move(self, rows: Sequence[int], feasible: Bools) -> bool:
        """Put rows into the classes that they are of now."""
        if not self._classes.follow(rows):
            return False
        codes, member, held = self._classes.codes, self._member, self._held
        for row in rows:
            before = member.item(row)
            now = codes.item(row) if feasible.item(row) else -1
            if before != now:
                member[row] = now
                if before >= 0:
                    held[before] -= 1
                if now >= 0:
                    held[now] += 1
        return True

    def worth_of(self, row: int) -> int:
        """Return what the part adds to one row."""
        return self.worth.item(self._classes.codes.item(row))

    def worths_of(self, index: Index | None) -> Ints:
        """Return what the part adds to some rows (intp), None: to every row in use."""
        codes = self._classes.codes
        return self.worth.take(codes if index is None else codes.take(index))

    def scale_for(self, feasible: Bools) -> Params | None:
        """Return what normalising would need if other rows (bool[capacity]) were the feasible ones."""
        codes = self._classes.codes
        present = np.zeros(self._classes.size, dtype=np.bool_)
        present[codes[feasible[: len(codes)]]] = True
        return self._scale_of(present)

    def _scale_of(self, present: Bools) -> Params | None:
        plugin = self.part.plugin
        if not isinstance(plugin, NormalizePlugin):
            return None
        return plugin.scale_over(self.part.spec, self.params, self._raw, present, self._classes.view)

    def _weighted(self) -> Ints:
        plugin, scores = self.part.plugin, self._raw
        if self.scale is not None and isinstance(plugin, NormalizePlugin):
            scores = plugin.normalize(self.part.spec, self.scale, scores, self._classes.view)
        return self.weight * scores


class ClassedScores:
    """The parts of one plan that are scored class by class, by their numbers among its scorers.

    Args:
        state: the cluster.

    Attributes:
        renewed: whether the last `follow` met other params: raw scores are others on all rows, even if they come to the same.
        moved: whether rows beside those that changed were worth something else then.
    """

    __slots__ = ("_by_number", "_state", "moved", "renewed")

    def __init__(self, state: ClusterState) -> None:
        self._state = state
        self._by_number: dict[int, ClassScores] = {}
        self.renewed = self.moved = False

    def __len__(self) -> int:
        return len(self._by_number)

    def __contains__(self, number: int) -> bool:
        return number in self._by_number

    def choose(
        self, parts: Sequence[tuple[ScorePart, int]], params_of: ParamsOf, feasible: Bools, scales: list[Params | None]
    ) -> None:
        """Find the parts that have classes, and score them; `parts` are all scorers with weights, in order.

        `scales` takes what they were normalised by.
        """
        self._by_number = {}
        # Numbers that may leave int64 are for the full way.
        for number, (part, weight) in enumerate(parts if self._state.small else ()):
            if type(part.plugin).score_columns is not ScorePlugin.score_columns:
                scores = ClassScores(part, weight, self._state)
                if scores.start(params_of(part), feasible):
                    self._by_number[number] = scores
                    scales[number] = scores.scale

    def follow(self, rows: Sequence[int], params_of: ParamsOf, feasible: Bools, scales: list[Params | None]) -> bool:
        """Bring what classes are worth up to date; return False where they must be chosen anew."""
        self.renewed = self.moved = False
        if not self._state.small:
            return False
        for number, scores in self._by_number.items():
            params = params_of(scores.part)
            self.renewed |= params != scores.params
            moved = scores.follow(params, rows, feasible)
            if moved is None:
                return False
            self.moved |= moved
            scales[number] = scores.scale
        return True

    def scale_alike(self, feasible: Bools) -> bool:
        """Return whether normalising would need the same if other rows (bool[capacity]) were the feasible ones."""
        return all(scores.scale == scores.scale_for(feasible) for scores in self._by_number.values())

    def worth_of(self, row: int) -> int:
        """Return what these parts add to one row."""
        return sum(scores.worth_of(row) for scores in self._by_number.values())

    def add_to(self, worths: Ints, index: Index | None = None) -> None:
        """Add to all rows in use, or to some (intp), what these parts are worth."""
        for scores in self._by_number.values():
            worths += scores.worths_of(index)

    def settle(self, row_view: Row) -> None:
        """Bring the values of the parts themselves up to date, as somebody reads them."""
        for scores in self._by_number.values():
            scores.part.bring_up_to_date(self._state, scores.params, row_view)
