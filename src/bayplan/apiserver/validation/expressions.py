"""Checks of expressions in CEL: those that select devices, and those of admission.

Admission knows functions that the checker of devices doesn't have. An expression that calls one of them is accepted.
"""

from __future__ import annotations

import re
from functools import lru_cache

from bayplan.apiserver.rest.errors import Cause, invalid_value, too_long
from bayplan.apiserver.validation.engine import Causes
from bayplan.base.recursion_limit import RECURSION_LIMIT
from bayplan.objects.selectors import quote

MAX_EXPRESSION_BYTES = 10 * 1024
MAX_COMPILED = 64 * 1024
"""Characters of expressions that one write compiles, about half a second; the scheduler compiles the rest when it needs it."""
_INTERNAL = ("unexpected compilation error", "program instantiation failed")
_OTHER_LIBRARIES = re.compile(
    r"undeclared reference to '(quantity|isQuantity|url|isURL|ip|isIP|cidr|isCIDR|semver|isSemver|format|optional|"
    r"jsonpatch|Object|JSONPatch|authorizer|[a-z]\w*\.[\w.]+)"
)
_OTHER_METHODS = re.compile(
    r"undeclared reference to '(group|resource|path|check|allowed|reason|errored|error|namespace|name|subresource|"
    r"serviceAccount|labelSelector|fieldSelector|validate|find|findAll|getScheme|getHost|getHostname|getPort|"
    r"getEscapedPath|getQuery|isGreaterThan|isLessThan|compareTo|asInteger|asApproximateFloat|isInteger|sign|add|sub|"
    r"family|isUnspecified|isLoopback|containsIP|containsCIDR|masked|prefixLength|major|minor|patch|sum|min|max|indexOf|"
    r"lastIndexOf|isSorted|hasValue|value|orValue)'"
)
_ROOTS = ("object", "oldObject", "request", "namespaceObject", "authorizer", "variables")


def check_expression(
    text: str,
    path: str,
    out: Causes,
    *,
    has_params: bool,
    variables: tuple[str, ...] | None = None,
    type_name: str = "bool",
    any_type: bool = False,
) -> None:
    """Check an expression of admission.

    Args:
        text: the expression.
        path: of its field.
        out: gets the causes.
        has_params: the policy has parameters.
        variables: of the policy; None where there are none.
        type_name: what the expression must be.
        any_type: it may be of any type.
    """
    problem = _admission_problem(text, has_params, variables is not None, "" if any_type else type_name)
    if problem:
        out.append(invalid_value(path, quote(text), problem))


@lru_cache(maxsize=1024)
def _admission_problem(text: str, has_params: bool, has_variables: bool, type_name: str) -> str:
    # The language takes a while to import, and most clusters have no policies.
    from bayplan.cel.checker import Checker
    from bayplan.cel.parser import Parser
    from bayplan.cel.problems import CompileProblem
    from bayplan.cel.source import Source
    from bayplan.cel.types import ANY, BOOL, DYN, STRING, declared_name, primitive

    null = primitive("null_type")
    allowed = {"bool": (BOOL,), "string": (STRING,), "string or null": (STRING, null)}.get(type_name)
    names = [name for name in _ROOTS if name != "variables" or has_variables]
    if has_params:
        names.append("params")
    try:
        with RECURSION_LIMIT.raised():
            kind = Checker(Source(text), dict.fromkeys(names, DYN), {}).check(Parser(text).parse())
    except CompileProblem as problem:
        message = str(problem)
        return "" if _OTHER_LIBRARIES.search(message) or _OTHER_METHODS.search(message) else message
    if allowed is not None and kind not in (*allowed, ANY, DYN):
        return f"must evaluate to {type_name}" + (
            " or the unknown type, not " + declared_name(kind) if type_name == "bool" else ""
        )
    return ""


def check_device_expression(text: str, path: str, out: Causes, *, compiles: bool = True) -> None:
    """Check an expression that selects devices.

    Args:
        text: the expression.
        path: of its field.
        out: gets the causes.
        compiles: it is compiled, which takes time.
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
