"""Amounts of a node's resources as users write them in questions: ``cpu=8``, ``memory=32Gi``, ``example.com/gpu=2``."""

from __future__ import annotations

from bayplan.base.errors import InputError
from bayplan.base.near_names import near_name
from bayplan.objects.quantity import parse_quantity
from bayplan.objects.resource_names import CPU, EPHEMERAL_STORAGE, MEMORY, PODS, is_scalar

_PLAIN = (CPU, MEMORY, EPHEMERAL_STORAGE, PODS)
_BYTES = (MEMORY, EPHEMERAL_STORAGE)
_MIN_BYTES = 1 << 20
"""A node has more; less is an amount without its unit, such as ``memory=32``."""


def check_node_amount(
    resource: str, text: str, *, what: str, example: str, where: str = "", separator: str = "="
) -> None:
    """Check an amount of a node's resource.

    Args:
        resource: the name of the resource.
        text: the amount.
        what: what has the amount, for errors.
        example: a correct amount in full, for errors.
        where: the file that has it, for errors.
        separator: the text between a resource and its amount, for suggestions.

    Raises:
        InputError: a node can't have such a resource, or not this amount of it.
    """
    if resource not in _PLAIN and not is_scalar(resource):
        close = near_name(resource, _PLAIN)
        wanted = f"{', '.join(_PLAIN)}, or a resource such as example.com/gpu"
        hint = f"{close}{separator}{text}" if close else example
        raise InputError(what, where=where, got=repr(resource), wanted=wanted, hint=hint)
    name = f"{what} {resource}"
    try:
        amount = parse_quantity(text)
    except InputError as problem:
        raise InputError(name, where=where, got=problem.got, wanted=problem.wanted, hint=example) from None
    if amount.unscaled < 0:
        raise InputError(name, where=where, got=repr(text), wanted="an amount of at least 0", hint=example)
    if resource in _BYTES and 0 < amount.unscaled * 10**amount.scale < _MIN_BYTES:
        hint = f"{resource}{separator}{text}Gi" if text.isdecimal() else example
        raise InputError(name, where=where, got=f"{text} bytes", wanted="an amount with a unit", hint=hint)
