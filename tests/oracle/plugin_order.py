"""The order of plugins at an extension point, computed by sorting, independently of the real implementation.

A plugin runs at an extension point if it implements the point, is enabled there or under ``multiPoint``, and is not
disabled there. The order: plugins enabled in both places, in the order of the point's list; then those enabled only
under ``multiPoint``; then those enabled only at the point, each in the order of its list. If ``*`` is disabled at the
point, only its own plugins run.
"""

from collections.abc import Sequence, Set


def plugin_order(
    own: Sequence[str], multi_point: Sequence[str], disabled: Set[str], implementers: Set[str]
) -> list[str]:
    """Return the names of the plugins that run, in order. The lists must have no duplicates."""
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
    """Return a Score plugin's weight from the first entry with its name, the point's list first; 1 instead of 0."""
    for other, weight in [*own, *multi_point]:
        if other == name:
            return weight or 1
    raise ValueError(name)
