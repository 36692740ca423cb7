"""The types of the fields that the conversion of older configurations reads, and the check of a document against them.

Fields that conversion only copies are not listed: the result is validated as v1, which covers them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

import msgspec

from bayplan.base.errors import ConfigurationError
from bayplan.formats.json_tree import JsonValue, kind_of
from bayplan.framework.configuration.conversion import Document
from bayplan.framework.configuration.field_errors import Step, path_of
from bayplan.framework.configuration.legacy_names import NODE_LABEL, STRATEGIES


@dataclass(frozen=True)
class Name:
    """The name of a plugin, predicate or priority, which must be set; with an example for the error."""

    what: str
    example: str


Shape: TypeAlias = "type | Name | list[Shape] | Mapping[str, Shape]"
"""A scalar type, a name, a list of elements of one shape, or an object. `ANY_KEY` gives the shape of all other fields."""

ANY_KEY: Final = "*"
_MAX_SHOWN: Final = 60

_LABELS: Final[Shape] = [str]
_PLUGIN: Final = Name("the name of a plugin", "NodeAffinity")
_PLUGIN_ENTRIES: Final[Shape] = [{"name": _PLUGIN, "weight": int}]
_PLUGINS: Final[Shape] = {ANY_KEY: {"enabled": _PLUGIN_ENTRIES, "disabled": _PLUGIN_ENTRIES}}
_PLUGIN_CONFIG: Final[Shape] = [{"name": _PLUGIN, "args": {}}]
_OBJECTS: Final[Shape] = [{}]

_ARGUMENTS: Final[Mapping[str, Shape]] = {
    NODE_LABEL: {
        **dict.fromkeys(("presentLabels", "absentLabels"), _LABELS),
        **dict.fromkeys(("presentLabelsPreference", "absentLabelsPreference"), _LABELS),
    },
    **{strategy: {"resources": _OBJECTS, "shape": _OBJECTS} for strategy in STRATEGIES},
}
"""The arguments that conversion reads, by plugin."""

CONFIGURATION: Final[Mapping[str, Shape]] = {
    "profiles": [{"plugins": _PLUGINS, "pluginConfig": _PLUGIN_CONFIG}],
    "plugins": _PLUGINS,
    "pluginConfig": _PLUGIN_CONFIG,
    "extenders": _OBJECTS,
    "leaderElection": {"resourceLock": str},
    "clientConnection": {},
    "schedulerName": str,
    "algorithmSource": {"policy": {}, "provider": str},
    "hardPodAffinitySymmetricWeight": int,
    "bindTimeoutSeconds": int,
    "disablePreemption": bool,
}

_RATIO: Final[Shape] = {"resources": _OBJECTS, "shape": _OBJECTS, "utilizationShape": _OBJECTS}
POLICY: Final[Mapping[str, Shape]] = {
    "predicates": [
        {
            "name": Name("the name of a predicate", "PodFitsResources"),
            "argument": {"labelsPresence": {"labels": _LABELS, "presence": bool}, "serviceAffinity": {}},
        }
    ],
    "priorities": [
        {
            "name": Name("the name of a priority", "LeastRequestedPriority"),
            "weight": int,
            "argument": {
                "labelPreference": {"label": str, "presence": bool},
                "serviceAntiAffinity": {},
                "requestedToCapacityRatioArguments": _RATIO,
            },
        }
    ],
    "hardPodAffinitySymmetricWeight": int,
    "alwaysCheckAllPredicates": bool,
    "extenders": _OBJECTS,
    "extenderConfigs": _OBJECTS,
}

_WANTED: Final = {str: "a string", int: "an integer", bool: "true or false"}
_EXAMPLES: Final = {int: "1", bool: "true"}
_ARTICLES: Final = {"array": "a list", "object": "an object"}

Locate: TypeAlias = Callable[[tuple[Step, ...]], str]
"""Returns file, line and column of a field."""


def check_shape(document: Document, shape: Mapping[str, Shape], locate: Locate) -> None:
    """Check the types of the fields of a document that its conversion reads.

    As in upstream, null is the same as a missing field, but elements of lists and names must be set.

    Raises:
        ConfigurationError: a field has another type, or an element has no name.
    """
    _check_fields(document, shape, (), locate)


def _check(value: JsonValue, shape: Shape, steps: tuple[Step, ...], locate: Locate) -> None:
    match shape:
        case Name():
            if not isinstance(value, str) or not value:
                raise _error(value, steps, locate, wanted=shape.what, hint=f"a name such as {shape.example}")
        case list():
            if not isinstance(value, list):
                raise _error(value, steps, locate, wanted="a list")
            for number, each in enumerate(value):
                _check(each, shape[0], (*steps, number), locate)
        case type():
            # JSON's true is not a number, although bool is a subclass of int.
            if type(value) is not shape:
                meant = f"'{value}'" if shape is str and isinstance(value, int | float) else ""
                raise _error(value, steps, locate, wanted=_WANTED[shape], hint=meant or _EXAMPLES.get(shape, ""))
        case _:
            if not isinstance(value, dict):
                is_name = isinstance(value, str) and isinstance(shape.get("name"), Name)
                hint = f"name: {_shown(value)}" if is_name else ""
                raise _error(value, steps, locate, wanted="an object", hint=hint)
            _check_fields(value, shape, steps, locate)


def _check_fields(value: Document, shape: Mapping[str, Shape], steps: tuple[Step, ...], locate: Locate) -> None:
    for key, wanted in shape.items():
        if isinstance(wanted, Name):
            _check(value.get(key), wanted, (*steps, key), locate)
    if "args" in shape:
        shape = {**shape, "args": _ARGUMENTS.get(str(value["name"]), {})}
    for key, item in value.items():
        inner = shape.get(key, shape.get(ANY_KEY))
        if inner is not None and item is not None:
            _check(item, inner, (*steps, key), locate)


def _error(
    value: JsonValue, steps: tuple[Step, ...], locate: Locate, *, wanted: str, hint: str = ""
) -> ConfigurationError:
    hint = hint or f"leaving out this {'element' if isinstance(steps[-1], int) else 'field'}"
    return ConfigurationError(path_of(steps), where=locate(steps), wanted=wanted, got=_shown(value), hint=hint)


def _shown(value: JsonValue) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, dict | list):
        return _ARTICLES[kind_of(value)]
    if isinstance(value, float) and not math.isfinite(value):
        return "a number out of range"
    text = f"'{value}'" if isinstance(value, str) else msgspec.json.encode(value).decode()
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}..."
