"""The order of plugins at an extension point, expressed as sorting: slow, and independent of how it is really built.

A plugin runs at a point if it is enabled there, or listed under ``multiPoint``, implements the point, and is not disabled there.
First come those that are in both places, then those of ``multiPoint`` alone, then those of the point alone; each part in the
order of its own list, the first in that of the point. ``*`` at the point leaves only the point's own plugins.
"""

from collections.abc import Sequence, Set


def plugin_order(
    own: Sequence[str], multi_point: Sequence[str], disabled: Set[str], implementers: Set[str]
) -> list[str]:
    """Give the plugins that run, in their order. No list has repeats."""
    if "*" in disabled:
        return list(own)
    spread = [name for name in multi_point if name in implementers and name not in disabled]

    def place(name: str) -> tuple[int, int]:
        if name in own and name in spread:
            return 1, own.index(name)
        if name in spread:
            return 2, spread.index(name)
        return 3, own.index(name)

    return sorted({*own, *spread}, key=place)


def plugin_weight(name: str, own: Sequence[tuple[str, int]], multi_point: Sequence[tuple[str, int]]) -> int:
    """Give the weight of a plugin that scores: the first that is named for it, the point's own before ``multiPoint``."""
    for other, weight in [*own, *multi_point]:
        if other == name:
            return weight or 1
    raise ValueError(name)
