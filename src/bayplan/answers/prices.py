"""Prices of nodes: those that a user gives by name, and those by size."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from bayplan.answers.node_groups import INSTANCE_TYPE, group_of
from bayplan.base.counted_nouns import format_count
from bayplan.base.errors import InputError
from bayplan.base.near_names import near_name
from bayplan.objects.node import Node
from bayplan.objects.node_prices import price_of
from bayplan.objects.requests import node_amounts

_CORE = 1000
_GIB = 1 << 30


def size_price(node: Node) -> float:
    """Return a price by size: 1 for each core, 1 for each 8 GiB of memory, and 10 for each device."""
    amounts = node_amounts(node.status.allocatable)
    price = amounts.get("cpu", 0) / _CORE + amounts.get("memory", 0) / (8 * _GIB)
    return price + 10.0 * sum(amount for name, amount in amounts.items() if "/" in name and amount < 1000)


def equal_price(node: Node) -> float:
    """Return 1 for every node, for answers without prices."""
    return 1.0


def parse_prices(texts: Sequence[str]) -> dict[str, float]:
    """Parse prices by name, e.g. ``m5.large=0.096``.

    Raises:
        InputError: a price can't be parsed, or a name has two.
    """
    found = {}
    for text in texts:
        name, equals, value = text.rpartition("=")
        if not equals or not name:
            raise InputError("price", got=repr(text), wanted="NAME=PRICE", hint="m5.large=0.096")
        if name in found:
            raise InputError("price", got=f"{name!r} twice", wanted="one price for each name")
        found[name] = parse_number("price", value)
    return found


def check_prices(prices: Mapping[str, float], nodes: Iterable[Node], *, what: str) -> None:
    """Check that each price is that of a node, or of the instance type or pool of a node.

    `what`: the option or argument, for errors.

    Raises:
        InputError: no node has one of the names.
    """
    known = {name: None for node in nodes for name in _priced_names(node) if name}
    for name in prices:
        if name not in known:
            close = near_name(name, known)
            hint = f"'{close}'" if close else ""
            raise InputError(what, got=repr(name), wanted="an instance type, pool or node of the cluster", hint=hint)


def price_in(prices: Mapping[str, float], node: Node) -> float | None:
    """Return the price of a node by its name, instance type or pool, or else by its annotation; None if none is given."""
    return next((prices[name] for name in _priced_names(node) if name in prices), price_of(node))


def _priced_names(node: Node) -> tuple[str, str, str]:
    labels = node.metadata.labels
    return (node.metadata.name, labels.get(INSTANCE_TYPE, ""), group_of(labels).pool)


def unpriced_note(names: Sequence[str], noun: str) -> list[str]:
    """Return the assumption about nodes or shapes (`noun`) without a price; [] if there are none."""
    if not names:
        return []
    which = f"{noun} {names[0]}" if len(names) == 1 else f"{format_count(len(names), noun)}, such as {names[0]}"
    return [f"no price is given for {which}: 1 is assumed"]


def parse_number(key: str, value: str) -> float:
    """Parse a price or a number of nodes; `key` names it in errors.

    Raises:
        InputError: the text is not a number of at least 0.
    """
    try:
        number = float(value)
    except ValueError:
        number = -1.0
    if not 0 <= number < 1e12:
        raise InputError(key, got=repr(value), wanted="a number of at least 0")
    return number
