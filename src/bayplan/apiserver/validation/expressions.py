"""Checks of CEL expressions: those that select devices, and those of admission."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bayplan.apiserver.model.errors import Cause, invalid_value, too_long
from bayplan.apiserver.validation.engine import Causes
from bayplan.objects.selectors import quote

if TYPE_CHECKING:
    from bayplan.apiserver.model.expressions import Scope
    from bayplan.cel.types import CelType

MAX_EXPRESSION_BYTES = 10 * 1024
MAX_COMPILED = 64 * 1024
"""Maximum length of the expressions that one write compiles, about half a second; the scheduler compiles the rest on demand."""
_INTERNAL = ("unexpected compilation error", "program instantiation failed")


def check_expression(text: str, path: str, out: Causes, scope: Scope, *wanted: CelType) -> CelType | None:
    """Check an expression of admission, and return the type of its value, or None if it is invalid.

    Args:
        text: the expression.
        path: the path of its field.
        out: receives the causes.
        scope: the variables that the expression may use.
        wanted: the allowed types of its value; empty for any type.
    """
    # The CEL package is slow to import, and most clusters have no policies.
    from bayplan.apiserver.model.expressions import compile_expression, variable_type

    found = compile_expression(text, scope, wanted)
    if found.problem:
        if found.problem.startswith(_INTERNAL):
            out.append(Cause("InternalError", f"Internal error: {found.problem}", path))
        else:
            out.append(invalid_value(path, quote(text), found.problem))
        return None
    return variable_type(found)


def check_device_expression(text: str, path: str, out: Causes, *, compiles: bool = True) -> None:
    """Check an expression that selects devices.

    Args:
        text: the expression.
        path: the path of its field.
        out: receives the causes.
        compiles: whether to compile it, which takes time.
    """
    if len(text.encode("utf-8", "replace")) > MAX_EXPRESSION_BYTES:
        out.append(too_long(path, MAX_EXPRESSION_BYTES))
        return
    if not compiles:
        return
    from bayplan.cel.problems import CompileProblem
    from bayplan.plugins.dynamic_resources.device_environment import compile_device_expression

    try:
        compile_device_expression(text)
    except CompileProblem as problem:
        if str(problem).startswith(_INTERNAL):
            out.append(Cause("InternalError", f"Internal error: {problem}", path))
        else:
            out.append(invalid_value(path, quote(text), str(problem)))
