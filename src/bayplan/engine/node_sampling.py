"""Which nodes a cycle looks at: upstream stops filtering when it has found enough nodes, and goes on from there next time.

This is the form that one worker gives: nodes are visited in the order of the node tree from a rotating start, until one more
feasible node than wanted is met.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bayplan.state.arrays import Bools, Index

MIN_FEASIBLE_NODES = 100
"""A cluster smaller than this is looked at as a whole, and so many feasible nodes are always wanted."""

MIN_PERCENTAGE = 5
ADAPTIVE_PERCENTAGE = 50
NODES_PER_PERCENT = 125
"""Without a percentage, 50 % of the nodes are wanted in small clusters, 1 % less for every 125 nodes, but never under 5 %."""


def num_feasible_nodes_to_find(percentage: int, count: int) -> int:
    """Return how many feasible nodes are enough among `count`; a percentage of 0 lets the size decide."""
    if count < MIN_FEASIBLE_NODES:
        return count
    if percentage == 0:
        percentage = max(ADAPTIVE_PERCENTAGE - count // NODES_PER_PERCENT, MIN_PERCENTAGE)
    return max(count * percentage // 100, MIN_FEASIBLE_NODES)


class Sample(NamedTuple):
    """What one search came upon.

    Attributes:
        rows: intp, the feasible rows that were found, in the order of visits.
        evaluated: how many nodes were visited, the last one not counted that ended the search.
    """

    rows: Index
    evaluated: int


class NodeSampling:
    """Where the search for nodes starts next, and how long it goes on.

    Args:
        percentage_of_nodes_to_score: of the whole scheduler; profiles may have one of their own. 0: adaptive.

    Attributes:
        next_start: the place in the order of visits where the next search starts.
        extended: whether extenders filter or score; then one feasible node is not enough where no plugin scores.
    """

    def __init__(self, percentage_of_nodes_to_score: int = 0) -> None:
        self.percentage_of_nodes_to_score = percentage_of_nodes_to_score
        self.next_start = 0
        self.extended = False

    def wanted(self, profile_percentage: int | None, count: int, *, scoring: bool) -> int:
        """Return how many feasible nodes end the search. Where nothing is scored, the first one does."""
        if not scoring:
            return 1
        percentage = self.percentage_of_nodes_to_score if profile_percentage is None else profile_percentage
        return num_feasible_nodes_to_find(percentage, count)

    def wants_all(self, profile_percentage: int | None) -> bool:
        """Return whether all nodes are looked at, however many there are."""
        return (self.percentage_of_nodes_to_score if profile_percentage is None else profile_percentage) >= 100

    def search(self, order: Index, feasible: Bools, wanted: int) -> Sample:
        """Visit rows in an order (intp) from the rotating start until more than `wanted` of them are feasible (bool[capacity])."""
        start = self.next_start % len(order) if len(order) else 0
        return Sample(*walk(order, feasible.view(np.uint8), start, wanted))

    def visited(self, order: Index, evaluated: int) -> Index:
        """Return the first `evaluated` rows from the rotating start, in the order of visits."""
        count = len(order)
        start = self.next_start % count if count else 0
        return order[(start + np.arange(evaluated)) % count] if count else order

    def advance(self, processed: int, count: int) -> None:
        """Start the next search after the nodes that this one processed, of `count` nodes in the cluster."""
        self.next_start = (self.next_start + processed) % count


def walk(order: Index, feasible: Bools, start: int, wanted: int) -> tuple[Index, int]:
    """Visit rows in an order (intp), from the place `start`, until more than `wanted` of them are feasible (uint8[capacity]).

    Returns:
        intp, the feasible rows that were found, at most `wanted`, in the order of visits; and how many nodes were visited, the one
        that ended the search not counted.
    """
    count = len(order)
    rows: Index = np.empty(min(wanted, count), dtype=np.intp)
    chosen = rows
    found, visited, place = 0, count, start
    for step in range(count):
        row = order[place]
        if feasible[row]:
            if found == wanted:
                visited = step
                break
            chosen[found] = row
            found += 1
        place += 1
        if place == count:
            place = 0
    return rows[:found], int(visited)
