"""The best rows of every class: the rows of a class differ by what they score by themselves, and that changes row by row.

What the classes are worth moves with every placement. The best rows of all are then the best ones of the best classes: a choice
among some dozens of numbers.
"""

from __future__ import annotations

import numpy as np

from bayplan.engine.followed_rows import FollowedRows
from bayplan.engine.tie_set import BestRows
from bayplan.state.arrays import Bools, Index, Ints

NOBODY = -(1 << 60)
"""Stands for the best score in a class without rows, and is added to what is worth nothing: less than any sum of scores."""

FEW_CLASSES = 3
"""Up to here classes are looked through one by one."""

FOLLOWED_UNIONS = 8
"""The best rows of so many sets of classes are followed together."""


class ClassTops:
    """The rows of each class with the highest score of their own.

    Args:
        member: intp[rows], the class of each row, -1: of none. Kept by this object from then on.
        size: how many classes there are.

    Attributes:
        held: int64[classes], how many rows are of each.
        changed: whether a class has got its first row or lost its last one since somebody set this to False.
    """

    __slots__ = (
        "_at_top",
        "_counts",
        "_found",
        "_lost",
        "_own",
        "_rows",
        "_top",
        "_unions",
        "changed",
        "held",
        "member",
    )

    def __init__(self, member: Index, size: int) -> None:
        self.member = member
        self.held: Ints = np.bincount(member + 1, minlength=size + 1)[1:]
        self.changed = False
        self._own: Ints = np.zeros(len(member), dtype=np.int64)
        # int64[classes], the highest score; how many rows have it, which these are, and of each class where somebody asked.
        self._top: Ints = np.full(size, NOBODY, dtype=np.int64)
        self._counts = [0] * size
        self._at_top: Bools = np.zeros(len(member), dtype=np.bool_)
        self._rows: list[FollowedRows | None] = [None] * size
        # By sets of classes (bool[classes], as bytes) the best rows of all of them.
        self._unions: dict[bytes, FollowedRows] = {}
        # Classes whose best rows must be looked for.
        self._lost: set[int] = set()
        self._found: _Best | None = None

    def grow(self, size: int) -> None:
        """Make room for more classes, which no row is of yet."""
        more = size - len(self._counts)
        self.held = np.append(self.held, np.zeros(more, dtype=np.int64))
        self._top = np.append(self._top, np.full(more, NOBODY, dtype=np.int64))
        self._counts += [0] * more
        self._rows += [None] * more
        self._unions.clear()

    def start(self, own: Ints) -> None:
        """Take over the scores of all rows (int64[rows])."""
        size, member = len(self._counts), self.member
        self._own = own
        self._top = np.full(size, NOBODY, dtype=np.int64)
        fits = member >= 0
        np.maximum.at(self._top, member[fits], own[fits])
        self._at_top = fits & (own == self._top[member])
        self._counts = np.bincount(member[self._at_top], minlength=size).tolist()
        self._rows = [None] * size
        self._unions.clear()
        self._lost = set()
        self._found = None

    def move(self, row: int, code: int) -> None:
        """Put a row into a class (-1: into none). Its score does not count until it is told (`enter`)."""
        before = self.member.item(row)
        if before >= 0 and self._at_top.item(row):
            self._at_top[row] = False
            left = self._counts[before] = self._counts[before] - 1
            rows = self._rows[before]
            if not left:
                self._lost.add(before)
                self._rows[before] = self._found = None
                self._drop_unions(before)
            else:
                if rows is not None:
                    rows.remove(row)
                for classes, union in self._unions.items():
                    if classes[before]:
                        union.remove(row)
        if before != code:
            self.member[row] = code
            held = self.held
            if before >= 0:
                left = held.item(before) - 1
                held[before] = left
                self.changed |= not left
            if code >= 0:
                already = held.item(code)
                held[code] = already + 1
                self.changed |= not already

    def enter(self, row: int, own: int) -> None:
        """Take over the score of a row that was moved."""
        self._own[row] = own
        code = self.member.item(row)
        if code < 0 or code in self._lost or self._at_top.item(row):
            return
        top = self._top.item(code)
        if own < top:
            return
        self._found = None
        if own > top:
            if self._counts[code]:
                self._at_top &= self.member != code
            self._top[code] = own
            self._counts[code], self._rows[code] = 0, FollowedRows([])
            self._drop_unions(code)
        self._at_top[row] = True
        self._counts[code] += 1
        rows = self._rows[code]
        if rows is not None:
            rows.add(row)
        for classes, union in self._unions.items():
            if classes[code]:
                union.add(row)

    def _drop_unions(self, code: int) -> None:
        """Forget the best rows of sets with a class, of which others are best now."""
        for classes in [classes for classes in self._unions if classes[code]]:
            del self._unions[classes]

    def own_scores(self) -> Ints:
        """Return int64[rows], what rows score by themselves; meaningful in those that are of a class."""
        return self._own

    def best(self, worth: Ints) -> tuple[int, BestRows]:
        """Return the highest sum of a row's own score and what its class is worth, and the rows that have it, ascending.

        `worth` is int64[classes], with `NOBODY` where no row of the class may be chosen; never written to. The rows are this
        object's own, and may change with the next `move`.
        """
        if self._lost:
            self._find_lost()
        found = self._found
        if found is None or found.worth is not worth:
            found = self._found = self._look(worth)
        return found.highest, found.followed.rows

    def _look(self, worth: Ints) -> _Best:
        sums = self._top + worth
        place = int(sums.argmax())
        highest = sums.item(place)
        if highest < 0:
            return _Best(worth, -1, FollowedRows([]))
        alike: Bools = sums == highest
        if len(alike.nonzero()[0]) == 1:
            return _Best(worth, highest, self._rows_of(place))
        classes = alike.tobytes()
        union = self._unions.get(classes)
        if union is None:
            if len(self._unions) >= FOLLOWED_UNIONS:
                self._unions.clear()
            union = FollowedRows((self._at_top & alike[self.member]).nonzero()[0])
            self._unions[classes] = union
        return _Best(worth, highest, union)

    def _rows_of(self, code: int) -> FollowedRows:
        rows = self._rows[code]
        if rows is None:
            rows = self._rows[code] = FollowedRows((self._at_top & (self.member == code)).nonzero()[0])
        return rows

    def _find_lost(self) -> None:
        lost = self._lost
        if len(lost) > FEW_CLASSES:
            self.start(self._own)
            return
        for code in lost:
            if not self.held.item(code):
                self._top[code] = NOBODY
                continue
            rows = (self.member == code).nonzero()[0]
            own = self._own[rows]
            top = self._top[code] = own[own.argmax()]
            rows = rows[own == top]
            self._rows[code] = FollowedRows(rows)
            self._at_top[rows] = True
            self._counts[code] = len(rows)
        lost.clear()


class _Best:
    """What was found to be best.

    Attributes:
        worth: of classes, when it was found. highest: the sum; -1 where no row may be chosen. followed: the best rows.
    """

    __slots__ = ("followed", "highest", "worth")

    def __init__(self, worth: Ints, highest: int, followed: FollowedRows) -> None:
        self.worth = worth
        self.highest = highest
        self.followed = followed
