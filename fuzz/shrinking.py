"""Reduces a differing case: removes pods, objects, fields and elements while the answers still differ."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import TypeAlias

from bayplan.conformance.cases import Json, JsonObject
from fuzz.trial import Ask, Trial, try_cases

Path: TypeAlias = tuple[str | int, ...]

ROUNDS = 40
"""Maximum number of rounds per depth. Above it, the result is not the smallest case."""

DEPTHS = (2, 5, 100)
"""The depth of the search for removable parts: whole objects first, then parts of the remaining ones."""

AT_ONCE = 400
"""Number of smaller cases that are tried together."""

NEEDED = frozenset({"id", "kind", "apiVersion", "name"})
"""Fields without which an object is refused."""


def shrink(ask: Ask, trial: Trial) -> Trial:
    """Return the smallest trial found that differs in at least one of the same parts."""
    for depth in DEPTHS:
        for _ in range(ROUNDS):
            smaller = _smaller(ask, trial, depth)
            if smaller is None:
                break
            trial = smaller
    return trial


def _smaller(ask: Ask, trial: Trial, depth: int) -> Trial | None:
    """Return the trial with as many parts removed at once as possible; None if nothing can be removed."""
    parts, paths = trial.parts, [path for path in removable(trial.case) if len(path) <= depth]
    kept: list[Path] = []
    for start in range(0, len(paths), AT_ONCE):
        batch = paths[start : start + AT_ONCE]
        tried = try_cases(ask, [without(trial.case, [path]) for path in batch], trial.kind)
        kept += [path for path, found in zip(batch, tried, strict=True) if not found.refused and found.parts & parts]
    if not kept:
        return None
    # Parts that can be removed separately can often be removed together: try all of them, then the first half, down to
    # one.
    count = len(kept)
    while count:
        [together] = try_cases(ask, [without(trial.case, kept[:count])], trial.kind)
        if not together.refused and together.parts & parts:
            return together
        count //= 2
    return None


def removable(value: Json, path: Path = ()) -> Iterator[Path]:
    """Yield the paths of everything that can be removed from a case, each before the paths inside it."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if key not in NEEDED and (*path, key) not in (("objects",), ("pods",), ("family",)):
                yield (*path, key)
            yield from removable(inner, (*path, key))
    elif isinstance(value, list):
        for place, inner in enumerate(value):
            yield (*path, place)
            yield from removable(inner, (*path, place))


def without(case: JsonObject, paths: list[Path]) -> JsonObject:
    """Return a copy of a case without the values at some paths."""
    smaller = copy.deepcopy(case)
    # Remove from the back, so that earlier paths stay valid, and inner paths before outer ones.
    for path in sorted(paths, key=_order, reverse=True):
        inner: Json = smaller
        for step in path[:-1]:
            inner = inner[step]  # type: ignore[index]  # The path is one of this case, so every step exists.
        del inner[path[-1]]  # type: ignore[union-attr, arg-type]
    return smaller


def _order(path: Path) -> list[tuple[int, int, str]]:
    return [(0, step, "") if isinstance(step, int) else (1, 0, step) for step in path]
