"""Suggestions for misspelt names in a configuration: fields, plugins, and enumerated values."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence

from bayplan.base.near_names import near_name
from bayplan.framework.configuration.document import KubeSchedulerConfiguration
from bayplan.framework.configuration.field_errors import Step, steps_of
from bayplan.framework.configuration.plugin_arguments import ARGUMENT_TYPES
from bayplan.framework.configuration.schema import Arguments, GoType, Nested, Pointer, Slice, StructField, fields_of

_KIND = "KubeSchedulerConfiguration"
_MISSING_PLUGIN = re.compile(r'"([^"]*)" does not exist')
_UNSUPPORTED = re.compile(r'Unsupported value: "([^"]*)": supported values: (.*)', re.DOTALL)
_UNKNOWN_KIND = re.compile(r'no kind "([^"]*)" is registered')


def suggestion(message: str, path: str, value_at: Callable[[Sequence[Step]], str], plugins: Collection[str]) -> str:
    """Return the likely correct spelling of the misspelt name that a message is about.

    Returns "" if the message is not about a name, or no name is similar.

    Args:
        message: upstream's message.
        path: the path of the field that the message is about.
        value_at: the function that returns the scalar at a path of the text.
        plugins: the names of all plugins.
    """
    steps = steps_of(path.removeprefix("$"))
    if message == "unknown field" and steps:
        return near_name(str(steps[-1]), _fields_at(steps[:-1], value_at))
    if match := _MISSING_PLUGIN.search(message):
        return near_name(match[1], plugins)
    if match := _UNSUPPORTED.match(message):
        return near_name(match[1], re.findall(r'"([^"]*)"', match[2]))
    if match := _UNKNOWN_KIND.match(message):
        return near_name(match[1], (_KIND,)) if match[1] != _KIND else ""
    return ""


def _fields_at(steps: Sequence[Step], value_at: Callable[[Sequence[Step]], str]) -> list[str]:
    """Return the names of the fields that the object at a path may have."""
    here: GoType = Nested(KubeSchedulerConfiguration)
    for number, step in enumerate(steps):
        here = _core(here)
        if isinstance(step, int):
            continue
        known = {field.json.lower(): field.go_type for field in _fields(here)}
        found = known.get(step.lower())
        if isinstance(found, Arguments):
            arguments = ARGUMENT_TYPES.get(f"{value_at((*steps[:number], 'name'))}Args")
            found = Nested(arguments) if arguments is not None else None
        if found is None:
            return []
        here = found
    return [field.json for field in _fields(_core(here))]


def _core(go_type: GoType) -> GoType:
    while isinstance(go_type, Pointer | Slice):
        go_type = go_type.element
    return go_type


def _fields(go_type: GoType) -> Sequence[StructField]:
    return fields_of(go_type.struct) if isinstance(go_type, Nested) else ()
