"""The parameter sets of random searches."""

from __future__ import annotations

from random import Random

import pytest

from bayplan.sweeps.space import Choice, Range, random_sets


@pytest.mark.parametrize(
    ("space", "number", "want"),
    [
        pytest.param({"a": Choice((1, 2)), "b": Range(1, 3, whole=True)}, 4, 4, id="some of six"),
        pytest.param({"a": Choice((1, 2)), "b": Range(1, 3, whole=True)}, 6, 6, id="all six"),
        pytest.param({"a": Choice((1, 2)), "b": Range(1, 3, whole=True)}, 100, 6, id="more than there are"),
        pytest.param({"a": Choice((1, "1"))}, 100, 2, id="a number and a text"),
    ],
)
def test_random_sets_differ(space: dict[str, Choice | Range], number: int, want: int) -> None:
    found = random_sets(space, number, Random(1).random)
    assert len({repr(each) for each in found}) == len(found) == want


def test_all_sets_of_a_small_space_are_found_with_a_draw_for_each() -> None:
    draws: list[float] = []

    def random() -> float:
        draws.append(0.0)
        return 0.0

    space: dict[str, Choice | Range] = {"a": Choice((1, 2, 2)), "b": Range(1, 1000, whole=True, log=True)}
    assert len(random_sets(space, 1_000_000, random)) == len(draws) == 2000
