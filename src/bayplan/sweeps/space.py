"""The parameters of a sweep and their possible values."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from bayplan.base.errors import InputError
from bayplan.base.near_names import near_name

WEIGHT, ARGS = "weight.", "args."
SAMPLING = "percentageOfNodesToScore"
SHAPE, NODES = "shape", "nodes"

Value: TypeAlias = str | int | float | bool
Parameters: TypeAlias = Mapping[str, Value]
"""A value for each parameter of a sweep."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A parameter that takes one of several values."""

    values: tuple[Value, ...]

    @property
    def size(self) -> int:
        """The number of different values."""
        return len(self.all_values())

    def all_values(self) -> Sequence[Value]:
        """Return the different values."""
        return list({repr(each): each for each in self.values}.values())

    def draw(self, random: Callable[[], float]) -> Value:
        """Return a random value."""
        return self.values[int(random() * len(self.values))]


@dataclass(frozen=True, slots=True)
class Range:
    """A parameter that takes a number in an interval that includes both ends.

    Attributes:
        lowest: the lowest number.
        highest: the highest number.
        whole: whether only integers are drawn.
        log: whether numbers are drawn uniformly on a logarithmic scale.
    """

    lowest: float
    highest: float
    whole: bool
    log: bool = False

    @property
    def size(self) -> int | None:
        """The number of integers in the interval; None if not only integers are drawn."""
        return int(self.highest) - int(self.lowest) + 1 if self.whole else None

    def all_values(self) -> Sequence[Value]:
        """Return the integers in the interval."""
        return range(int(self.lowest), int(self.highest) + 1)

    def draw(self, random: Callable[[], float]) -> Value:
        """Return a random number of the interval."""
        low, high = (math.log(self.lowest), math.log(self.highest)) if self.log else (self.lowest, self.highest)
        if self.whole and not self.log:
            return int(self.lowest) + int(random() * (int(self.highest) - int(self.lowest) + 1))
        drawn = low + random() * (high - low)
        drawn = math.exp(drawn) if self.log else drawn
        return min(max(round(drawn), int(self.lowest)), int(self.highest)) if self.whole else drawn


DRAWS_PER_SET = 100
"""Maximum number of draws per requested parameter set. Most are needed if nearly all sets are requested, or some are unlikely."""

Space: TypeAlias = Mapping[str, Choice | Range]


def read_space(parameters: object, where: str) -> Space:
    """Return the parameters of a sweep file. Each has a list of values, or a range such as ``{min: 1, max: 100, log: true}``.

    Raises:
        InputError: the parameters are invalid.
    """
    if not isinstance(parameters, Mapping) or not parameters:
        raise InputError(
            "parameters", where=where, got=repr(parameters), wanted="an object with at least one parameter"
        )
    return {str(name): _read_domain(str(name), domain, where) for name, domain in parameters.items()}


def _read_domain(name: str, domain: object, where: str) -> Choice | Range:
    if isinstance(domain, list) and domain and all(isinstance(each, str | int | float) for each in domain):
        return Choice(tuple(domain))
    if isinstance(domain, Mapping) and {"min", "max"} <= set(domain) <= {"min", "max", "log"}:
        low, high, log = domain["min"], domain["max"], bool(domain.get("log", False))
        numbers = all(isinstance(each, int | float) and not isinstance(each, bool) for each in (low, high))
        if numbers and low <= high and (low > 0 or not log):
            return Range(low, high, isinstance(low, int) and isinstance(high, int), log)
    wanted = "a list of values, or {min, max} with log for a logarithmic scale from above 0"
    raise InputError(f"parameter {name}", where=where, got=repr(domain), wanted=wanted)


def check_space(space: Space, where: str) -> None:
    """Check the names and values of parameters, as far as they don't depend on the scheduler's plugins.

    Raises:
        InputError: a name is unknown, or a value is invalid whatever the other parameters are.
    """
    for name, domain in space.items():
        if name.startswith(WEIGHT):
            _check_integers(name, domain, where)
        elif name == SAMPLING:
            _check_integers(name, domain, where, most=100)
        elif name == NODES:
            _check_integers(name, domain, where)
        elif name == SHAPE and isinstance(domain, Range):
            raise InputError(f"parameter {name}", where=where, got="a range", wanted="a list of names of shapes")
        elif name.startswith(ARGS):
            _check_argument(name, where)
        elif name != SHAPE:
            raise unknown_parameter(name, where)


def _check_integers(name: str, domain: Choice | Range, where: str, *, most: int | None = None) -> None:
    """Raise InputError unless all values of a parameter are integers from 0 to `most`."""
    for value in domain.values if isinstance(domain, Choice) else (domain.lowest, domain.highest):
        if isinstance(value, bool) or not isinstance(value, int) or value < 0 or (most is not None and value > most):
            wanted = "integers of at least 0" if most is None else f"integers from 0 to {most}"
            raise InputError(f"parameter {name}", where=where, got=repr(value), wanted=wanted)


def _check_argument(name: str, where: str) -> None:
    """Raise InputError unless the parameter names a plugin and a field of its arguments."""
    if "" in name.split(".") or name.count(".") < 2:
        raise InputError("parameter", where=where, got=repr(name), wanted=f"{ARGS}PLUGIN.FIELD")


def unknown_parameter(name: str, where: str = "") -> InputError:
    """Return the error about a parameter that does not exist."""
    start, dot, rest = name.partition(".")
    near = near_name(start + dot, (WEIGHT, ARGS, SAMPLING, SHAPE, NODES))
    wanted = f"{WEIGHT}PLUGIN, {ARGS}PLUGIN.FIELD, {SAMPLING}, {SHAPE} or {NODES}"
    hint = near
    if near == WEIGHT:
        hint += rest or "PLUGIN"
    elif near == ARGS:
        plugin, _, field = rest.partition(".")
        hint += f"{plugin or 'PLUGIN'}.{field or 'FIELD'}"
    return InputError("parameter", where=where, got=repr(name), wanted=wanted, hint=hint)


def grid(space: Space) -> Iterator[Parameters]:
    """Yield all combinations of values; the last parameter varies fastest.

    Raises:
        InputError: a parameter is a range.
    """
    for name, domain in space.items():
        if isinstance(domain, Range):
            hint = "--search random"
            raise InputError(f"parameter {name}", got="a range", wanted="a list of values for a grid", hint=hint)
    yield from _combinations(space, [domain.values for domain in space.values() if isinstance(domain, Choice)])


def _combinations(space: Space, values: Iterable[Iterable[Value]]) -> Iterator[Parameters]:
    for chosen in itertools.product(*values):
        yield dict(zip(space, chosen, strict=True))


def random_sets(space: Space, number: int, random: Callable[[], float]) -> list[Parameters]:
    """Return this number of different random parameter sets; fewer if there are no more."""
    sizes = [domain.size for domain in space.values()]
    finite = [size for size in sizes if size is not None]
    if len(finite) == len(sizes) and number >= math.prod(finite):
        every = _combinations(space, [domain.all_values() for domain in space.values()])
        return sorted(every, key=lambda _: random())
    found: dict[str, Parameters] = {}
    for _ in range(DRAWS_PER_SET * number):
        drawn = {name: domain.draw(random) for name, domain in space.items()}
        found.setdefault(repr(drawn), drawn)
        if len(found) == number:
            break
    return list(found.values())
