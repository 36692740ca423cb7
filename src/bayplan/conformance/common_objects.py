"""The valid object of which mutants were made, where the recording doesn't hold it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import cast

from bayplan.conformance.cases import Json, JsonObject

def common_object(mutants: Sequence[JsonObject]) -> Json:
    """Return the object of which these are one-field mutants: at each place what those have that don't mutate it."""
    return _common([(each["request"], str(each["mutation"]).partition(" ")[0]) for each in mutants])


def _common(values: list[tuple[Json, str]]) -> Json:
    """Return what values agree on.

    Args:
        values: each with the path within it that was mutated, or an empty one.
    """
    kind = Counter(type(each) for each, _ in values).most_common(1)[0][0]
    same = [(each, path) for each, path in values if type(each) is kind]
    if kind is dict:
        documents = [(cast("JsonObject", each), path) for each, path in same]
        found: JsonObject = {}
        for name in dict.fromkeys(name for each, _ in documents for name in each):
            found[name] = _common_part([(each.get(name), path) for each, path in documents], name)
        return {name: value for name, value in found.items() if value is not None}
    if kind is list:
        lists = [(cast("list[Json]", each), path) for each, path in same]
        length = Counter(len(each) for each, _ in lists).most_common(1)[0][0]
        lists = [(each, path) for each, path in lists if len(each) == length]
        return [_common_part([(each[index], path) for each, path in lists], str(index)) for index in range(length)]
    return Counter(each for each, _ in same).most_common(1)[0][0]


def _common_part(values: list[tuple[Json, str]], name: str) -> Json:
    inside = [
        (value, path[len(name) + 1 :] if path.startswith(f"{name}.") else "") for value, path in values if path != name
    ]
    return _common(inside or [(value, "") for value, _ in values])
