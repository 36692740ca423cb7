"""Sampling of nodes and choice among the best: the sample, the rows with the highest total, and the seeded pick.

Upstream stops filtering when it has found enough nodes, and the next cycle resumes from there. `NodeSampling` works
like upstream with one worker: it visits nodes in the order of the node tree from a rotating start, until it finds one
feasible node more than needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import numpy as np

from bayplan.state.arrays import Bools, Index, Ints
from bayplan.state.cluster_state import ClusterState

# The .pxd declares these constants as C integers.
_MIN_FEASIBLE_NODES = 100
"""Smaller clusters are searched completely; in larger ones, a search needs at least this many feasible nodes."""

_MIN_PERCENTAGE = 5
_ADAPTIVE_PERCENTAGE = 50
_NODES_PER_PERCENT = 125
"""Without a percentage, a search needs 50 % of the nodes, minus 1 % for every 125 nodes, but at least 5 %."""

NO_ROWS: Index = np.zeros(0, dtype=np.intp)
NO_TOTALS: Ints = np.zeros(0, dtype=np.int64)


def num_feasible_nodes_to_find(percentage: int, count: int) -> int:
    """Return how many feasible nodes end a search among `count` nodes. A percentage of 0 is adaptive."""
    if count < _MIN_FEASIBLE_NODES:
        return count
    if percentage == 0:
        percentage = max(_ADAPTIVE_PERCENTAGE - count // _NODES_PER_PERCENT, _MIN_PERCENTAGE)
    return max(count * percentage // 100, _MIN_FEASIBLE_NODES)


class Sample:
    """Feasible rows, in visiting order. The sample of a search is valid until the next one.

    Args:
        rows: intp, the rows; also an attribute, a buffer of which `count` elements are used.
        start, visited: the start of the search in visiting order, and the number of nodes that it visited, excluding the
            node that ended it; also attributes.

    Attributes:
        count: the number of rows.
    """

    def __init__(self, rows: Index, start: int = 0, visited: int = 0) -> None:
        self.rows: Any = rows
        self.count = len(rows)
        self.start, self.visited = start, visited
        self._ties = UnsortedRows(np.empty(len(rows), dtype=np.intp), 0)

    def array(self) -> Index:
        """Return the rows as an array (intp)."""
        return np.asarray(self.rows)[: self.count]

    def best(self, total: Any) -> tuple[int, UnsortedRows]:
        """Return the highest total (int64[capacity]; -1: not feasible) of these rows, and the rows that have it.

        The returned rows are reused by the next call.
        """
        rows, chosen, highest, ties = self.rows, self._ties, 0, 0
        best = chosen.rows
        for place in range(self.count):
            row = rows[place]
            value = total[row]
            if value >= highest:
                if value > highest:
                    highest, ties = value, 0
                best[ties] = row
                ties += 1
        chosen.count = ties
        highest = int(highest) if ties else -1
        return highest, chosen


class NodeSampling:
    """Decides where the next search for feasible nodes starts, and when the current one ends.

    Args:
        percentage_of_nodes_to_score: the scheduler's percentageOfNodesToScore, which profiles may override; 0 for
            adaptive.

    Attributes:
        next_start: the position in visiting order at which the next search starts.
        extended: whether extenders filter or score; then one feasible node is not enough even if no plugin scores.
    """

    def __init__(self, percentage_of_nodes_to_score: int = 0, *, extended: bool = False) -> None:
        self.percentage_of_nodes_to_score = percentage_of_nodes_to_score
        self.next_start = 0
        self.extended = extended
        # The order of the last search: the array object, and the same array as a typed buffer.
        self._order: Index | None = None
        self._visits: Any = NO_ROWS
        self._sample = Sample(NO_ROWS)

    def wanted(self, profile_percentage: int | None, count: int, scoring: bool) -> int:
        """Return the number of feasible nodes at which the search ends. Without scoring, one is enough."""
        if not scoring:
            return 1
        percentage = self.percentage_of_nodes_to_score if profile_percentage is None else profile_percentage
        return num_feasible_nodes_to_find(percentage, count)

    def search(self, order: Index, feasible: Any, wanted: int) -> Sample:
        """Visit rows (intp) from the rotating start until more than `wanted` of them are feasible (uint8[capacity]).

        Return the feasible rows found, at most `wanted`.
        """
        if order is not self._order:
            self._order = self._visits = order
            self._sample = Sample(np.empty(len(order), dtype=np.intp))
        sample = self._sample
        visits, chosen, count = self._visits, sample.rows, len(self._visits)
        found = visited = 0
        place = self.next_start % count if count else 0
        while visited < count and found <= wanted:
            # The next `wanted + 1 - found` rows can't have more feasible rows than needed. So the loop over them has no
            # branches: it writes every row, but moves on only after a feasible one.
            start, end = place, min(place + wanted + 1 - found, place + count - visited, count)
            for place in range(start, end):
                row = visits[place]
                chosen[found] = row
                found += feasible[row] != 0
            visited += end - start
            place = end if end < count else 0
        if found > wanted:
            # The last node only shows that the search can end.
            found, visited = wanted, visited - 1
        sample.count, sample.visited = int(found), int(visited)
        sample.start = self.next_start
        return sample

    def advance(self, processed: int, count: int) -> None:
        """Move the start of the next search forward by `processed` nodes, in a cluster of `count` nodes."""
        self.next_start = (self.next_start + processed) % count


def visited_rows(order: Index, start: int, evaluated: int) -> Index:
    """Return the `evaluated` rows that a search visited from index `start` of its order (intp) on, in visiting order."""
    return order[(start + np.arange(evaluated)) % len(order)] if len(order) else order


def mask_of(rows: Index, capacity: int) -> Bools:
    """Return bool[capacity], true for these rows (intp)."""
    mask: Bools = np.zeros(capacity, dtype=np.bool_)
    mask[rows] = True
    return mask


# The rows with the highest total.

BLOCK = 256
"""Number of rows in a block of totals. After a placement, only the changed row's block is searched for its best."""


class BestRows:
    """The rows with the highest total, ascending, found by searching blocks of rows. Valid until totals change.

    Attributes:
        highest: the highest total at the last `search`; -1 if nothing is feasible.
    """

    def __init__(self) -> None:
        self.highest = -1
        self._total: Any = NO_TOTALS
        self._rows = self._ties = 0
        # By block: the highest total, the number of rows with it, and whether both must be searched again.
        self._best: Any = NO_TOTALS
        self._count: Any = NO_ROWS
        self._stale: Any = np.zeros(0, dtype=np.uint8)

    def begin(self, total: Any, rows: int) -> None:
        """Reset with new totals (int64[capacity]; -1: not feasible); `rows` is the number of rows in use."""
        blocks = rows // BLOCK + 1
        if blocks != len(self._stale):
            self._best = np.zeros(blocks, dtype=np.int64)
            self._count = np.zeros(blocks, dtype=np.intp)
            self._stale = np.zeros(blocks, dtype=np.uint8)
        self._total, self._rows = total, rows
        for block in range(blocks):
            self._stale[block] = 1

    def update(self, row: int, before: int, after: int) -> None:
        """Update the block of a row whose total changed."""
        block = row // BLOCK
        if self._stale[block]:
            return
        if after > self._best[block]:
            self._best[block], self._count[block] = after, 1
        elif after == self._best[block]:
            self._count[block] += 1
        elif before == self._best[block]:
            self._count[block] -= 1
            if self._count[block] == 0:
                self._stale[block] = 1

    def search(self) -> int:
        """Find the highest total and the rows that have it; return that total."""
        highest, ties = -1, 0
        for block in range(len(self._stale)):
            if self._stale[block]:
                self._search_block(block)
            if self._best[block] > highest:
                highest, ties = self._best[block], 0
            if self._best[block] == highest:
                ties += self._count[block]
        self.highest = highest
        self._ties = ties if highest >= 0 else 0
        return int(highest)

    def _search_block(self, block: int) -> None:
        total, best, count = self._total, -1, 0
        start = block * BLOCK
        end = min(start + BLOCK, self._rows)
        for row in range(start, end):
            if total[row] > best:
                best = total[row]
        for row in range(start, end):
            if total[row] == best:
                count += 1
        self._best[block] = best
        self._count[block] = count
        self._stale[block] = 0

    def __len__(self) -> int:
        return self._ties

    def __iter__(self) -> Iterator[int]:
        # Indexing searches on every call: iterating with it would take quadratic time.
        if not self._ties:
            return iter(())
        return iter((np.asarray(self._total)[: self._rows] == self.highest).nonzero()[0].tolist())

    def __getitem__(self, number: int) -> int:
        return self._nth(number)

    def _nth(self, number: int) -> int:
        if 0 <= number < self._ties:
            for block in range(len(self._stale)):
                if self._best[block] != self.highest:
                    continue
                if number >= self._count[block]:
                    number -= self._count[block]
                    continue
                for row in range(block * BLOCK, min((block + 1) * BLOCK, self._rows)):
                    if self._total[row] == self.highest:
                        if number == 0:
                            return row
                        number -= 1
        raise IndexError("not so many rows have the highest total")


class UnsortedRows:
    """Rows in any order as an ascending sequence: `rows` (intp), of which `count` elements are used and reordered."""

    def __init__(self, rows: Any, count: int) -> None:
        self.rows = rows
        self.count = count

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[int]:
        return iter(sorted(np.asarray(self.rows)[: self.count].tolist()))

    def __getitem__(self, number: int) -> int:
        if not 0 <= number < self.count:
            raise IndexError("not so many rows have the highest total")
        return self._nth(number)

    def _nth(self, number: int) -> int:
        """Select one row with Hoare's algorithm, without sorting all."""
        rows, low, high = self.rows, 0, self.count - 1
        while low < high:
            pivot = rows[(low + high) // 2]
            left, right = low, high
            while left <= right:
                while rows[left] < pivot:
                    left += 1
                while rows[right] > pivot:
                    right -= 1
                if left <= right:
                    row = rows[left]
                    rows[left] = rows[right]
                    rows[right] = row
                    left += 1
                    right -= 1
            if number <= right:
                high = right
            elif number >= left:
                low = left
            else:
                break
        return int(rows[number])


Ties: TypeAlias = list[int] | Index | BestRows | UnsortedRows
"""The rows of a tie set, ascending."""

Pick = Callable[[ClusterState, Ties], int]
"""Chooses a row from a tie set (never empty)."""


def seeded_pick(random: Callable[[], float]) -> Pick:
    """Return a pick that draws from a stream of floats in [0, 1): one draw for each tie set of more than one row."""

    def pick(state: ClusterState, rows: Ties) -> int:
        count = len(rows)
        return int(rows[int(random() * count)]) if count > 1 else int(rows[0])

    return pick


def first_by_name(state: ClusterState, rows: Ties) -> int:
    """Pick the node with the first name in sort order, as recorded answers do."""
    names = state.nodes.names
    return int(min(map(int, rows), key=lambda row: names[row] or ""))
