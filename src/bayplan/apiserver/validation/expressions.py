"""Validation of CEL expressions in admission policies, in webhooks and in device selectors."""

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
"""Maximum total length of the expressions that one write compiles, which takes half a second.

Only the scheduler compiles further expressions.
"""
_INTERNAL = ("unexpected compilation error", "program instantiation failed")


class ExpressionBudget:
    """The number of characters of expressions that one check may still compile."""

    def __init__(self) -> None:
        self._left = MAX_COMPILED

    def spend(self, size: int) -> bool:
        """Subtract the characters of expressions, and return whether they may be compiled."""
        self._left -= size
        return self._left >= 0


def check_expression(text: str, path: str, out: Causes, scope: Scope, *wanted: CelType) -> CelType | None:
    """Check an expression of admission, and return the type of its result, or None if it is invalid.

    Args:
        text: the expression.
        path: the path of its field.
        out: receives the errors.
        scope: the variables that the expression can use.
        wanted: the allowed types of the result; empty for any type.
    """
    # Import on demand: the CEL package is slow to import, and most clusters have no policies.
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
        out: receives the errors.
        compiles: whether to compile the expression; otherwise only check its length.
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
