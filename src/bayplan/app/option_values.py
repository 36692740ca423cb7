"""Values of the library's options: converts paths, integers, and names of levels and modes, and refuses other types."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from enum import Enum
from functools import cache
from operator import index
from pathlib import Path
from typing import Any, SupportsIndex

import msgspec
from msgspec.structs import FieldInfo, force_setattr

from bayplan.base.errors import InputError

_TEXTS = {
    str(int): "an integer",
    str(int | None): "an integer or None",
    str(bool): "True or False",
    str(str): "a string",
    str(Path | None): "a path or None",
}
"""The types of options in words."""


def convert_options(options: msgspec.Struct) -> None:
    """Convert the fields of a struct of options to their types, in its ``__post_init__``.

    Raises:
        InputError: a value has a wrong type.
    """
    for field in _fields(type(options)):
        value = getattr(options, field.name)
        found = converted(value, field.type, where=f"{type(options).__name__}({field.name})", name=field.name)
        if found is not value:
            force_setattr(options, field.name, found)


def converted(value: object, wanted: Any, *, where: str, name: str) -> Any:
    """Return a value as the type of an option; `where` and `name` describe the option in errors.

    Raises:
        InputError: the value has another type.
    """
    if wanted == Sequence[str]:
        return _strings(value, where, name)
    if isinstance(wanted, type) and issubclass(wanted, Enum):
        return _member(value, wanted, where)
    if wanted == Path | None and isinstance(value, str):
        return Path(value)
    if wanted is bool and type(value).__name__ in ("bool", "bool_"):  # NumPy's, too
        return bool(value)
    if isinstance(value, SupportsIndex) and not isinstance(value, bool):
        with suppress(TypeError):  # arrays with more than one element
            value = index(value)
    try:
        return msgspec.convert(value, wanted)
    except msgspec.ValidationError:
        raise InputError(where, got=_shown(value), wanted=_TEXTS.get(str(wanted), str(wanted))) from None


@cache
def _fields(kind: type[msgspec.Struct]) -> tuple[FieldInfo, ...]:
    return msgspec.structs.fields(kind)


def _strings(value: object, where: str, name: str) -> Sequence[str]:
    noun = "paths" if name == "paths" else "strings"
    if isinstance(value, str | os.PathLike):
        raise InputError(where, got=_shown(value), wanted=f"a list of {noun}", hint=f"{name}=[{os.fspath(value)!r}]")
    if not isinstance(value, Sequence):
        raise InputError(where, got=_shown(value), wanted=f"a list of {noun}")
    for each in value:
        if not isinstance(each, str | os.PathLike):
            raise InputError(where, got=_shown(each), wanted=noun)
    return value if all(isinstance(each, str) for each in value) else [os.fspath(each) for each in value]


def _member(value: object, wanted: type[Enum], where: str) -> Enum:
    if isinstance(value, wanted):
        return value
    members = {str(member.name).lower(): member for member in wanted}
    if isinstance(value, str) and value.lower() in members:
        return members[value.lower()]
    raise InputError(
        where, got=_shown(value), wanted=" or ".join(f"{wanted.__name__}.{member.name}" for member in wanted)
    )


def _shown(value: object) -> str:
    return f"{type(value).__name__} {value!r:.60}"
