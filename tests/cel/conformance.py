"""Run the conformance tests of cel-spec as Kubernetes runs expressions: parse, check and evaluate, without messages.

A test is excluded, with a reason, if Kubernetes' environment cannot express it (k8s.io/apiserver/pkg/cel/environment
v0.36.3: no Protocol Buffers, no containers, its own choice of libraries). All other tests pass or fail.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from bayplan.cel.checker import Checker
from bayplan.cel.evaluator import compile_node, run
from bayplan.cel.parser import Parser
from bayplan.cel.problems import CompileProblem, RunProblem
from bayplan.cel.source import Source
from bayplan.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DYN,
    INT,
    NULL,
    STRING,
    UINT,
    CelType,
    list_of,
    map_of,
    optional_of,
    type_of,
)
from bayplan.cel.values import CelMap, Optional, TypeValue, Uint, equal, key_of
from tests.cel.textproto import Message, Name, Value, parse

_PRIMITIVES = {"BOOL": BOOL, "INT64": INT, "UINT64": UINT, "DOUBLE": DOUBLE, "STRING": STRING, "BYTES": BYTES}
_NOT_LOADED = {
    "block_ext": "cel.block is made by optimizers",
    "encoders_ext": "the library of encoders is not loaded",
    "math_ext": "the library of mathematics is not loaded",
    "network_ext": "Kubernetes has a library of IP addresses of its own",
    "proto2_ext": "there are no messages",
    "enums": "there are no messages",
    "proto2": "there are no messages",
    "proto3": "there are no messages",
    "wrappers": "there are no messages",
}
NOT_BUILT = frozenset(("duration", "timestamp", "format", "strings"))
"""Functions of Kubernetes' environment that are not implemented yet; tests that need one of them are excluded."""
_UNDECLARED = re.compile(r"undeclared reference to '(\w+)'")
_MESSAGES = re.compile(r"TestAllTypes|NestedTestAllTypes|google\.protobuf|GlobalEnum|cel\.expr")


class Outside(Exception):
    """The test needs something that Kubernetes' environment does not have."""


@dataclass(frozen=True)
class Case:
    """One test. `place` is file, section and name, followed by ``#2`` for the second test of the same name."""

    place: str
    test: Message


def cases(folder: Path) -> Iterator[Case]:
    """Return the tests of a folder of ``.textproto`` files."""
    seen: dict[str, int] = {}
    for path in sorted(folder.glob("*.textproto")):
        for section in _messages(parse(path.read_text(encoding="utf-8")), "section"):
            for test in _messages(section, "test"):
                place = f"{path.stem}/{_text(section, 'name')}/{_text(test, 'name')}"
                number = seen[place] = seen.get(place, 0) + 1
                yield Case(place if number == 1 else f"{place}#{number}", test)


def outcome(case: Case, departure: str = "") -> str:
    """Run a test; return the empty string if it passes, else a description of the difference.

    Args:
        case: The test.
        departure: What Kubernetes does instead of what the test expects: ``refused``, ``fails`` or a value.

    Raises:
        Outside: The test needs something that Kubernetes' environment does not have.
    """
    test = case.test
    file = case.place.partition("/")[0]
    if file in _NOT_LOADED:
        raise Outside(_NOT_LOADED[file])
    if _MESSAGES.search(repr(test)):
        raise Outside("there are no messages")
    for field, reason in (("container", "there are no containers"), ("disable_macros", "macros are always on")):
        if field in test and test[field] != [b""]:
            raise Outside(reason)
    if "disable_check" in test:
        raise Outside("expressions are always checked")
    if "unknown" in test or "any_unknowns" in test:
        raise Outside("there are no unknown values")
    variables: dict[str, CelType] = {}
    for declared in _messages(test, "type_env"):
        if "function" in declared:
            raise Outside("functions are not declared by users")
        variables[_text(declared, "name")] = type_from(_message(_message(declared, "ident"), "type"))
    bindings = {}
    for entry in _messages(test, "bindings"):
        bindings[_text(entry, "key")] = value_from(_message(_message(entry, "value"), "value"))
    if bindings.keys() - variables.keys():
        raise Outside("every variable is declared")
    if any("." in name for name in variables):
        raise Outside("variables have simple names")
    return _compare(test, variables, bindings, departure)


def _compare(test: Message, variables: dict[str, CelType], bindings: dict[str, object], departure: str) -> str:
    expression = _text(test, "expr")
    fails = "eval_error" in test or "any_eval_errors" in test or departure in ("refused", "fails")
    if departure and departure not in ("refused", "fails"):
        fails, test = False, {"value": [cast("Value", parse(departure))]}
    typed = _message(test, "typed_result") if "typed_result" in test else None
    try:
        node = Parser(expression).parse()
        kind = Checker(Source(expression), variables, {}).check(node)
        code = compile_node(node)
    except CompileProblem as problem:
        missing = _UNDECLARED.search(str(problem))
        if missing is not None and missing[1] in NOT_BUILT:
            raise Outside(f"not built: {missing[1]}") from None
        return "" if fails else f"does not compile: {problem}"
    if departure == "refused":
        return "compiles"
    if typed is not None and "deduced_type" in typed:
        want_type = type_from(_message(typed, "deduced_type"))
        if kind != want_type:
            return f"is of type {kind}, not {want_type}"
    if "check_only" in test:
        return ""
    try:
        found = run(code, bindings)
    except RunProblem as problem:
        return "" if fails else f"fails: {problem}"
    if fails:
        return f"is {found!r}, not an error"
    wanted: Message = _message(test, "value") if "value" in test else {"bool_value": [Name("true")]}
    if typed is not None:
        if "result" not in typed:
            return ""
        wanted = _message(typed, "result")
    expected = value_from(wanted)
    return "" if same(found, expected) else f"is {found!r}, not {expected!r}"


def same(found: object, wanted: object) -> bool:
    """Return whether two values are equal and of the same type; NaN equals NaN."""
    if isinstance(wanted, float) and isinstance(found, float):
        return found == wanted or (math.isnan(found) and math.isnan(wanted))
    if isinstance(wanted, list) and isinstance(found, list):
        return len(found) == len(wanted) and all(map(same, found, wanted))
    if isinstance(wanted, CelMap) and isinstance(found, CelMap):
        return found.entries.keys() == wanted.entries.keys() and all(
            same(value, wanted.entries[key][1]) for key, (_, value) in found.entries.items()
        )
    return type(found) is type(wanted) and equal(found, wanted)


def type_from(message: Message) -> CelType:
    """Return the checker's type for a ``cel.expr.Type``."""
    if "primitive" in message:
        return _PRIMITIVES[str(message["primitive"][0])]
    if "list_type" in message:
        return list_of(type_from(_message(_message(message, "list_type"), "elem_type")))
    if "map_type" in message:
        held = _message(message, "map_type")
        return map_of(type_from(_message(held, "key_type")), type_from(_message(held, "value_type")))
    if "abstract_type" in message:
        held = _message(message, "abstract_type")
        if _text(held, "name") == "optional_type":
            return optional_of(type_from(_messages(held, "parameter_types")[0]))
        return CelType("opaque", _text(held, "name"), tuple(map(type_from, _messages(held, "parameter_types"))))
    if "type" in message:
        inner = _message(message, "type")
        return type_of(type_from(inner) if inner else DYN)
    if "null" in message:
        return NULL
    if "dyn" in message:
        return DYN
    raise Outside("there are no messages")


def value_from(message: Message) -> object:
    """Return the Python value of a ``cel.expr.Value``."""
    ((field, values),) = message.items()
    reader = _READERS.get(field)
    if reader is None:
        raise Outside("there are no messages")
    return reader(values[0])


def _list(held: Value) -> object:
    return [value_from(item) for item in _messages(cast("Message", held), "values")]


def _map(held: Value) -> object:
    found: dict[object, tuple[object, object]] = {}
    for entry in _messages(cast("Message", held), "entries"):
        key = value_from(_message(entry, "key"))
        found[key_of(key)] = (key, value_from(_message(entry, "value")))
    return CelMap(found)


_READERS: dict[str, Callable[[Value], object]] = {
    "null_value": lambda _: None,
    "bool_value": lambda held: held == "true",
    "int64_value": lambda held: int(cast("int", held)),
    "uint64_value": lambda held: Uint(cast("int", held)),
    "double_value": lambda held: float(cast("float", held)),
    "string_value": lambda held: cast("bytes", held).decode(),
    "bytes_value": lambda held: held,
    "type_value": lambda held: TypeValue(cast("bytes", held).decode()),
    "list_value": _list,
    "map_value": _map,
}


def _messages(message: Message, field: str) -> list[Message]:
    return cast("list[Message]", message.get(field, []))


def _message(message: Message, field: str) -> Message:
    return _messages(message, field)[0]


def _text(message: Message, field: str) -> str:
    return cast("bytes", message.get(field, [b""])[0]).decode()


__all__ = ["Case", "Optional", "Outside", "cases", "outcome", "same"]
