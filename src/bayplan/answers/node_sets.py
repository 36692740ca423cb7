"""Sets of nodes to add: the outcome of scheduling all pods with a set, and cheaper sets to try."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations

import msgspec

from bayplan.answers.node_shapes import NodeShape


class Outcome(msgspec.Struct, frozen=True):
    """The outcome for a set of nodes.

    Attributes:
        shapes, names: the shapes and names of the nodes.
        nodes: the node of each pod, or "".
        left: the keys of the pods that still wait.
        messages: why pods wait, by key.
        left_by_order: by order, the number of pods of each kind that still wait, as far as it is known.
    """

    shapes: list[NodeShape]
    names: list[str]
    nodes: dict[str, str]
    left: frozenset[str]
    messages: dict[str, str]
    left_by_order: Sequence[Counter[int]] = ()

    @property
    def price(self) -> float:
        """Return the total price of the nodes."""
        return sum(shape.price for shape in self.shapes)


def cheaper_sets(outcome: Outcome, shapes: Sequence[NodeShape]) -> Iterator[list[NodeShape]]:
    """Yield different cheaper sets than that of an outcome, the most promising first.

    They lack a node without pods; lack a node of some shape, or have a cheaper one instead; lack any other node; or have
    one cheaper node instead of two.
    """
    # Nodes are named by their place, so sets with equal shapes in the same order have the same outcome.
    seen = set[tuple[str, ...]]()
    for each in _candidates(outcome, shapes):
        key = tuple(shape.name for shape in each)
        if key not in seen:
            seen.add(key)
            yield each


def _candidates(outcome: Outcome, shapes: Sequence[NodeShape]) -> Iterator[list[NodeShape]]:
    """Yield the sets of `cheaper_sets`, some of them repeatedly."""
    chosen, used = outcome.shapes, frozenset(outcome.nodes.values())
    empty = [place for place, name in enumerate(outcome.names) if name not in used]
    # Nodes of one shape differ only in their place, and thus in the choice among equally good nodes: try one of them first.
    first = sorted(
        {shape.name: place for place, shape in enumerate(chosen)}.values(), key=lambda place: -chosen[place].price
    )
    cheapest = sorted(shapes, key=lambda shape: shape.price)
    for place in empty:
        yield _without(chosen, place)
    for place in first:
        rest = _without(chosen, place)
        yield rest
        yield from _with_another(rest, chosen[place].price, cheapest)
    for place in range(len(chosen)):
        if place not in first and place not in empty:
            yield _without(chosen, place)
    pairs = {(chosen[one].name, chosen[two].name): (one, two) for one, two in combinations(range(len(chosen)), 2)}
    for one, two in pairs.values():
        rest = _without(_without(chosen, two), one)
        yield from _with_another(rest, chosen[one].price + chosen[two].price, cheapest)


def _without(chosen: Sequence[NodeShape], place: int) -> list[NodeShape]:
    return [*chosen[:place], *chosen[place + 1 :]]


def _with_another(rest: list[NodeShape], price: float, shapes: Sequence[NodeShape]) -> Iterator[list[NodeShape]]:
    """Yield the set `rest` with one more node, of each shape that costs less than `price` and is available."""
    for shape in shapes:
        is_available = shape.most is None or sum(other.name == shape.name for other in rest) < shape.most
        if shape.price < price and is_available:
            yield [*rest, shape]
