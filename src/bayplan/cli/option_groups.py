"""Groups of options that several commands share."""

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, get_type_hints

from msgspec import Struct
from msgspec.structs import fields


class OptionGroup(Struct, frozen=True):
    """A group of options: each field is one, annotated for Typer, with its default."""


def with_groups(command: Callable[..., None]) -> Callable[..., None]:
    """Replace each parameter of a command whose type is an `OptionGroup` by the options of the group."""
    signature = inspect.signature(command, eval_str=True)
    groups: dict[str, type[OptionGroup]] = {}
    parameters: list[inspect.Parameter] = []
    for name, parameter in signature.parameters.items():
        kind = parameter.annotation
        if isinstance(kind, type) and issubclass(kind, OptionGroup):
            groups[name] = kind
            parameters += _parameters(kind)
        else:
            parameters.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))

    @wraps(command)
    def run(**values: Any) -> None:
        for name, group in groups.items():
            values[name] = group(**{option: values.pop(option) for option in group.__struct_fields__})
        command(**values)

    run.__annotations__ = {}
    run.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    return run


def _parameters(group: type[OptionGroup]) -> list[inspect.Parameter]:
    hints = get_type_hints(group, include_extras=True)
    kind = inspect.Parameter.KEYWORD_ONLY
    return [
        inspect.Parameter(each.name, kind, default=each.default, annotation=hints[each.name]) for each in fields(group)
    ]
