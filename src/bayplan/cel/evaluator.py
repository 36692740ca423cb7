"""The compiler: turns each node of an expression into a closure that is called with the variables.

Failures are exceptions; ``&&``, ``||``, ``all`` and ``exists`` ignore them if the other operand or another element
decides the result. Every step has a cost, and an evaluation over the cost limit is stopped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

from bayplan.base.go_regexp import RegexpError, compile_regexp
from bayplan.cel import library
from bayplan.cel.costs import COSTS
from bayplan.cel.declarations import TYPE_NAMES
from bayplan.cel.meter import COST_LIMIT, METER, CostExceeded, Meter
from bayplan.cel.problems import CompileProblem, RunProblem
from bayplan.cel.records import Message, Record
from bayplan.cel.syntax import (
    Bind,
    Call,
    Fold,
    Ident,
    ListNode,
    Literal,
    MapNode,
    MessageNode,
    Node,
    Select,
    qualified_name,
)
from bayplan.cel.types import declared_name
from bayplan.cel.values import NONE, CelMap, Optional, TypeValue, key_of, shown, type_name

LIST_COST, MAP_COST, MESSAGE_COST = 10, 30, 40
DOTTED_NAMES = frozenset(("authorizer.requestResource", *(name for name in TYPE_NAMES if "." in name)))
"""Variables and types whose names contain a dot, so they look like fields."""


class Frame:
    """The variables that are visible to a part of an expression, and the meter of the evaluation."""

    __slots__ = ("meter", "variables")

    def __init__(self, variables: dict[str, object], meter: Meter) -> None:
        self.variables = variables
        self.meter = meter

    def spend(self, cost: int) -> None:
        """Add the cost of a step.

        Raises:
            CostExceeded: the total exceeds the limit.
        """
        meter = self.meter
        meter.cost += cost
        if meter.cost > COST_LIMIT:
            raise CostExceeded


Code: TypeAlias = Callable[[Frame], object]


def compile_node(node: Node) -> Code:
    """Return the function that computes the value of a checked expression from a `Frame`."""
    match node:
        case Literal():
            value = node.value
            return lambda frame: value
        case Ident():
            return _ident(node)
        case Select():
            return _select(node)
        case Call():
            return _call(node)
        case ListNode():
            return _list(node)
        case MapNode():
            return _map(node)
        case MessageNode():
            return _message(node)
        case Fold():
            return _fold(node)
        case Bind():
            return _bind(node)


def _ident(node: Ident) -> Code:
    name = node.name

    def read(frame: Frame) -> object:
        frame.spend(1)
        if name in frame.variables:
            return frame.variables[name]
        return TypeValue(declared_name(TYPE_NAMES[name]._replace(params=())))

    return read


def qualify(value: object, key: object) -> tuple[bool, object]:
    """Return whether a value has a field, key or index, and the value there.

    Raises:
        RunProblem: the index of a list is not an integer.
    """
    if isinstance(value, CelMap):
        return value.find(key)
    if isinstance(value, Record):
        return value.find(str(key))
    if isinstance(value, list):
        if isinstance(key, bool) or not isinstance(key, int | float):
            raise RunProblem(f"unsupported index type '{type_name(key)}' in list")
        if isinstance(key, float) and not (key.is_integer() and abs(key) < 2.0**63):
            raise RunProblem(f"unsupported index value {shown(key)} in list")
        place = int(key)
        return (True, value[place]) if 0 <= place < len(value) else (False, None)
    return False, None


def _read(value: object, key: object, *, optional: bool) -> object:
    """Return a field, key or index of a value; as an optional value if `optional`, or if the value is optional."""
    wrapped = isinstance(value, Optional)
    if isinstance(value, Optional):
        if not value.present:
            return NONE
        value = value.value
    found, item = qualify(value, key)
    if optional or wrapped:
        return Optional(item, True) if found else NONE
    if found:
        return item
    if isinstance(value, list):
        raise RunProblem(f"index out of bounds: {shown(key)}")
    raise RunProblem(f"no such key: {shown(key)}")


def _select(node: Select) -> Code:
    dotted = qualified_name(node)
    if dotted in DOTTED_NAMES:
        return _ident(Ident(str(dotted), node.at))
    operand, name, optional = compile_node(node.operand), node.field, node.optional
    if node.test:

        def test(frame: Frame) -> object:
            value = operand(frame)
            if isinstance(value, Optional):
                if not value.present:
                    return False
                value = value.value
            return qualify(value, name)[0]

        return test

    def select(frame: Frame) -> object:
        value = operand(frame)
        frame.spend(1)
        return _read(value, name, optional=optional)

    return select


# Calls.


def _without_dyn(node: Node) -> Node:
    """Return the argument of ``dyn``, which changes no value; any other node itself."""
    while isinstance(node, Call) and node.function == "dyn" and node.target is None and len(node.args) == 1:
        node = node.args[0]
    return node


def _constant(node: Node) -> Literal | None:
    """Return a constant, or the result of conversions of a constant.

    Raises:
        CompileProblem: the constant can't be converted.
    """
    if isinstance(node, Literal):
        return node
    if not isinstance(node, Call) or node.function not in library.CONVERSIONS or len(node.args) != 1 or node.target:
        return None
    inner = _constant(_without_dyn(node.args[0]))
    if inner is None:
        return None
    try:
        return Literal(library.call(node.function, [inner.value]), node.at)
    except RunProblem as problem:
        raise CompileProblem(f"program instantiation failed: {problem}") from None


def _call(node: Call) -> Code:
    name = node.function
    if name == "_&&_":
        return _logic(node, decisive=False)
    if name == "_||_":
        return _logic(node, decisive=True)
    if name == "_?_:_":
        return _conditional(node)
    args = [compile_node(arg) for arg in node.args]
    if node.target is not None:
        prefix = qualified_name(node.target)
        if prefix is not None and f"{prefix}.{name}" in library.FUNCTIONS:
            name = f"{prefix}.{name}"
        else:
            args.insert(0, compile_node(node.target))
    if name in ("_[_]", "_[?_]"):
        value, index, optional = args[0], args[1], name == "_[?_]"
        _check_index(node.args[-1])

        def read(frame: Frame) -> object:
            target = value(frame)
            key = index(frame)
            frame.spend(1)
            return _read(target, key, optional=optional)

        return read
    if name in ("or", "orValue"):
        return _alternative(args[0], args[1], wrapped=name == "or")

    if name in ("find", "findAll") and len(node.args) and isinstance(node.args[0], Literal):
        _check_pattern(node.args[0].value)
    if (constant := _constant(node)) is not None:
        value_of_constant = constant.value
        return lambda frame: value_of_constant

    cost = COSTS.get(name)
    # The sum of no elements has their type; if it is unknown, the first overload is called.
    element = declared_name(node.overloads[0].result) if name == "sum" and len(node.overloads) == 1 else "int"

    def run(frame: Frame) -> object:
        values = [arg(frame) for arg in args]
        frame.spend(1 if cost is None else cost(values))
        if name == "sum" and values[0] == []:
            return library.ZEROS[element]
        return library.call(name, values)

    return run


def _check_index(node: Node) -> None:
    """Raise CompileProblem if a constant is never a valid index, as cel-go does when it creates a program."""
    while isinstance(node, Call) and node.function == "dyn" and len(node.args) == 1:
        node = node.args[0]
    if isinstance(node, Literal) and (node.value is None or isinstance(node.value, bytes)):
        kind = "Null" if node.value is None else "Bytes"
        raise CompileProblem(f"program instantiation failed: invalid qualifier type: types.{kind}")


def _check_pattern(pattern: object) -> None:
    """Raise CompileProblem if a constant is not a regular expression, as cel-go does when it creates a program."""
    try:
        compile_regexp(str(pattern))
    except RegexpError as problem:
        raise CompileProblem(f"program instantiation failed: {problem}") from None


def _logic(node: Call, *, decisive: bool) -> Code:
    """Return the function of ``&&`` or ``||``.

    An operand with the value `decisive` decides, even if the other one fails.
    """
    left, right = (compile_node(arg) for arg in node.args)
    name = node.function

    def decide(frame: Frame) -> object:
        failure: RunProblem | None = None
        first: object = None
        try:
            first = left(frame)
        except CostExceeded:
            raise
        except RunProblem as problem:
            failure = problem
        if first is decisive:
            return decisive
        second = right(frame) if failure is None else _attempt(right, frame)
        if second is decisive:
            return decisive
        if failure is not None:
            raise failure
        if isinstance(first, bool) and isinstance(second, bool):
            return not decisive
        raise RunProblem(
            "no such overload" if isinstance(first, bool) or isinstance(second, bool) else f"no such overload: {name}"
        )

    return decide


def _attempt(code: Code, frame: Frame) -> object:
    try:
        return code(frame)
    except CostExceeded:
        raise
    except RunProblem:
        return None


def _conditional(node: Call) -> Code:
    condition, then, otherwise = (compile_node(arg) for arg in node.args)

    def choose(frame: Frame) -> object:
        decision = condition(frame)
        if not isinstance(decision, bool):
            raise RunProblem("no such overload")
        return then(frame) if decision else otherwise(frame)

    return choose


def _alternative(optional: Code, other: Code, *, wrapped: bool) -> Code:
    def choose(frame: Frame) -> object:
        value = optional(frame)
        if not isinstance(value, Optional):
            return value
        if value.present:
            return value if wrapped else value.value
        return other(frame)

    return choose


# Lists, maps, macros.


def _list(node: ListNode) -> Code:
    items = [(compile_node(item), number in node.optional) for number, item in enumerate(node.items)]

    def build(frame: Frame) -> object:
        frame.spend(LIST_COST)
        found: list[object] = []
        for code, optional in items:
            value = code(frame)
            if not optional:
                found.append(value)
            elif isinstance(value, Optional) and value.present:
                found.append(value.value)
        return found

    return build


def _map(node: MapNode) -> Code:
    entries = [(compile_node(key), compile_node(value), optional) for key, value, optional in node.entries]

    def build(frame: Frame) -> object:
        frame.spend(MAP_COST)
        found: dict[object, tuple[object, object]] = {}
        for key_code, value_code, optional in entries:
            key, value = key_code(frame), value_code(frame)
            if optional:
                if not isinstance(value, Optional) or not value.present:
                    continue
                value = value.value
            found[key_of(key)] = (key, value)
        return CelMap(found)

    return build


def _message(node: MessageNode) -> Code:
    name = node.type_name
    entries = [(field, compile_node(value), optional) for field, value, optional, _ in node.entries]

    def build(frame: Frame) -> object:
        frame.spend(MESSAGE_COST)
        found: dict[str, object] = {}
        for field, code, optional in entries:
            value = code(frame)
            if optional:
                if not isinstance(value, Optional) or not value.present:
                    continue
                value = value.value
            found[field] = value
        return Message(name, found)

    return build


def _items(over: object, two: bool) -> Iterator[tuple[object, ...]]:
    """Yield the values of a macro's variables for each element; `two`: whether it has two variables."""
    if isinstance(over, list):
        yield from enumerate(over) if two else ((item,) for item in over)
    elif isinstance(over, CelMap):
        yield from over.entries.values() if two else ((key,) for key, _ in over.entries.values())
    else:
        raise RunProblem("no such overload")


def _fold(node: Fold) -> Code:
    over = compile_node(node.range)
    condition = compile_node(node.condition) if node.condition is not None else None
    transform = compile_node(node.transform) if node.transform is not None else None
    names, kind = node.variables, node.kind
    if kind in ("all", "exists"):
        assert condition is not None
        return _quantified(over, names, condition, decisive=kind == "exists")

    def fold(frame: Frame) -> object:
        found: list[object] = []
        mapped: dict[object, tuple[object, object]] = {}
        for inner, values in _rounds(frame, over(frame), names):
            if condition is not None:
                holds = condition(inner)
                if not isinstance(holds, bool):
                    raise RunProblem("no such overload")
                if not holds:
                    continue
            value = transform(inner) if transform is not None else values[-1 if kind != "filter" else 0]
            if kind == "transformMap":
                mapped[key_of(values[0])] = (values[0], value)
            elif kind == "transformMapEntry":
                _insert(mapped, value)
            else:
                found.append(value)
        if kind == "exists_one":
            return len(found) == 1
        return CelMap(mapped) if kind in ("transformMap", "transformMapEntry") else found

    return fold


def _insert(mapped: dict[object, tuple[object, object]], value: object) -> None:
    """Add the entries of a map, whose keys must be new."""
    if not isinstance(value, CelMap):
        raise RunProblem(f"no such overload: cel.@mapInsert(map, {type_name(value)})")
    for key, (shown_key, item) in value.entries.items():
        if key in mapped:
            raise RunProblem(f"insert failed: key {shown(shown_key)} already exists")
        mapped[key] = (shown_key, item)


def _rounds(frame: Frame, over: object, names: tuple[str, ...]) -> Iterator[tuple[Frame, tuple[object, ...]]]:
    inner = Frame(dict(frame.variables), frame.meter)
    for values in _items(over, len(names) == 2):
        inner.variables.update(zip(names, values, strict=True))
        inner.spend(2)
        yield inner, values


def _quantified(over: Code, names: tuple[str, ...], condition: Code, *, decisive: bool) -> Code:
    def quantify(frame: Frame) -> object:
        failure: RunProblem | None = None
        for inner, _ in _rounds(frame, over(frame), names):
            try:
                holds = condition(inner)
            except CostExceeded:
                raise
            except RunProblem as problem:
                failure = problem
                continue
            if not isinstance(holds, bool):
                failure = RunProblem("no such overload")
            elif holds is decisive:
                return decisive
        if failure is not None:
            raise failure
        return not decisive

    return quantify


def _bind(node: Bind) -> Code:
    value, body, name, kind = compile_node(node.value), compile_node(node.body), node.name, node.kind

    def bind(frame: Frame) -> object:
        found = value(frame)
        if kind != "bind":
            if not isinstance(found, Optional):
                raise RunProblem("no such overload")
            if not found.present:
                return NONE
            found = found.value
        inner = Frame({**frame.variables, name: found}, frame.meter)
        result = body(inner)
        return Optional(result, True) if kind == "optMap" else result

    return bind


def run(code: Code, variables: Mapping[str, object], meter: Meter | None = None) -> object:
    """Return the value of an expression.

    Args:
        code: the compiled expression.
        variables: the values of the variables, by name.
        meter: a new meter, which then contains the cost; None if the cost is not needed.

    Raises:
        RunProblem: the evaluation fails.
    """
    meter = Meter() if meter is None else meter
    token = METER.set(meter)
    try:
        return code(Frame(dict(variables), meter))
    finally:
        METER.reset(token)
