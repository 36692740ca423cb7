"""CEL expressions of admission: variables and types, cached compilation, and evaluation within a cost budget.

Sources: k8s.io/apiserver v0.36.3, pkg/admission/plugin/cel; https://kubernetes.io/docs/reference/using-api/cel/.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache, partial
from typing import NamedTuple

from bayplan.base.plain_data import Document
from bayplan.base.recursion_limit import RECURSION_LIMIT
from bayplan.cel import library_authorization
from bayplan.cel.checker import Checker
from bayplan.cel.evaluator import Code, compile_node, run
from bayplan.cel.meter import Meter
from bayplan.cel.parser import Parser
from bayplan.cel.problems import CompileProblem, RunProblem
from bayplan.cel.records import Message, Variables
from bayplan.cel.source import Source
from bayplan.cel.times import Duration, Timestamp, duration_text, timestamp_text
from bayplan.cel.types import (
    AUTHORIZER,
    BOOL,
    DYN,
    INT,
    NULL,
    RESOURCE_CHECK,
    STRING,
    TIMESTAMP,
    CelType,
    declared_name,
    list_of,
    map_of,
)
from bayplan.cel.values import CelMap, Uint

BUDGET = 10_000_000
"""Maximum total cost of the expressions of a policy for one request."""
MATCH_BUDGET = BUDGET // 4
"""Maximum total cost of the match conditions of a policy or webhook for one request."""
_OUT_OF_BUDGET = "validation failed due to running out of cost budget, no further validation rules will be run"

OBJECT, JSON_PATCH = CelType("object", "Object"), CelType("object", "JSONPatch")
_REQUEST, _NAMESPACE, _VARIABLES = (
    CelType("object", f"kubernetes.{name}") for name in ("AdmissionRequest", "Namespace", "variables")
)


def _object(name: str) -> CelType:
    return CelType("object", f"kubernetes.{name}")


_FIELDS: Mapping[str, Mapping[str, CelType]] = {
    "kubernetes.AdmissionRequest": {
        "kind": _object("GroupVersionKind"),
        "resource": _object("GroupVersionResource"),
        "subResource": STRING,
        "requestKind": _object("GroupVersionKind"),
        "requestResource": _object("GroupVersionResource"),
        "requestSubResource": STRING,
        "name": STRING,
        "namespace": STRING,
        "operation": STRING,
        "userInfo": _object("UserInfo"),
        "dryRun": BOOL,
        "options": DYN,
    },
    "kubernetes.GroupVersionKind": dict.fromkeys(("group", "version", "kind"), STRING),
    "kubernetes.GroupVersionResource": dict.fromkeys(("group", "version", "resource"), STRING),
    "kubernetes.UserInfo": {
        "username": STRING,
        "uid": STRING,
        "groups": list_of(STRING),
        "extra": map_of(STRING, list_of(STRING)),
    },
    "kubernetes.Namespace": {
        "metadata": _object("NamespaceMetadata"),
        "spec": _object("NamespaceSpec"),
        "status": _object("NamespaceStatus"),
    },
    "kubernetes.NamespaceSpec": {"finalizers": list_of(STRING)},
    "kubernetes.NamespaceStatus": {"conditions": list_of(_object("NamespaceCondition")), "phase": STRING},
    "kubernetes.NamespaceCondition": {
        **dict.fromkeys(("status", "type", "message", "reason"), STRING),
        "lastTransitionTime": TIMESTAMP,
    },
    "kubernetes.NamespaceMetadata": {
        **dict.fromkeys(("name", "generateName", "namespace", "UID", "resourceVersion"), STRING),
        **dict.fromkeys(("labels", "annotations"), map_of(STRING, STRING)),
        **dict.fromkeys(("creationTimestamp", "deletionTimestamp"), TIMESTAMP),
        **dict.fromkeys(("deletionGracePeriodSeconds", "generation"), INT),
        "finalizers": list_of(STRING),
    },
}
_PATCH_FIELDS: Mapping[str, CelType] = {"op": STRING, "path": STRING, "from": STRING, "value": DYN}


class OutOfBudgetError(Exception):
    """The expressions of a policy exceed the cost budget of one request."""

    def __init__(self) -> None:
        super().__init__(_OUT_OF_BUDGET)


class Expression(NamedTuple):
    """A compiled expression, or its error.

    Attributes:
        text: the source text.
        code: the compiled code; None if the text does not compile.
        problem: the compile error, or empty.
        type: the type of the result.
    """

    text: str
    code: Code | None
    problem: str
    type: CelType = DYN


class Scope(NamedTuple):
    """The variables that expressions can use in addition to the objects, the request and the namespace.

    Attributes:
        params: whether expressions can use `params`.
        authorizer: whether expressions can use `authorizer`.
        patches: whether expressions can create objects and JSON patches.
        variables: the names and types of the fields of `variables`; None if expressions cannot use `variables`.
    """

    params: bool = False
    authorizer: bool = True
    patches: bool = False
    variables: tuple[tuple[str, CelType], ...] | None = None

    def with_variable(self, name: str, kind: CelType) -> Scope:
        """Return the scope with one more variable, for expressions that follow its declaration."""
        return self._replace(variables=(*(self.variables or ()), (name, kind)))


@lru_cache(maxsize=4096)
def compile_expression(text: str, scope: Scope, wanted: tuple[CelType, ...] = ()) -> Expression:
    """Return a compiled expression, or its error. Results are cached.

    Args:
        text: the source text of the expression.
        scope: the variables that the expression can use.
        wanted: the allowed types of the result; empty for any type.
    """
    names, objects = environment(scope)
    try:
        with RECURSION_LIMIT.raised():
            node = Parser(text, binds=False).parse()
            kind = Checker(Source(text), names, objects, OBJECT.name if scope.patches else "").check(node)
            if wanted and kind not in wanted:
                return Expression(text, None, _wrong_type(wanted, kind))
            return Expression(text, compile_node(node), "", kind)
    except CompileProblem as problem:
        return Expression(text, None, str(problem))


def environment(scope: Scope) -> tuple[dict[str, CelType], dict[str, Mapping[str, CelType]]]:
    """Return the types of the variables by name, and the field types of each object type by its name."""
    names: dict[str, CelType] = {"object": DYN, "oldObject": DYN, "namespaceObject": _NAMESPACE, "request": _REQUEST}
    objects: dict[str, Mapping[str, CelType]] = dict(_FIELDS)
    if scope.params:
        names["params"] = DYN
    if scope.authorizer:
        names |= {"authorizer": AUTHORIZER, "authorizer.requestResource": RESOURCE_CHECK}
    if scope.variables is not None:
        names["variables"] = _VARIABLES
        objects[_VARIABLES.name] = dict(scope.variables)
    if scope.patches:
        objects[JSON_PATCH.name] = _PATCH_FIELDS
    return names, objects


def _wrong_type(wanted: tuple[CelType, ...], found: CelType) -> str:
    names = [declared_name(each) for each in wanted]
    if len(names) == 1:
        return f"must evaluate to {names[0]} but got {declared_name(found)}"
    return f"must evaluate to one of [{' '.join(names)}] but got {declared_name(found)}"


def variable_type(expression: Expression) -> CelType:
    """Return the type of a policy's variable in other expressions.

    The type is dynamic for objects, and for a variable whose expression does not compile.
    """
    return _declared(expression.type) if expression.code is not None else DYN


def _declared(kind: CelType) -> CelType:
    if kind.kind in ("primitive", "wellknown", "any") or kind == NULL:
        return kind
    if kind.kind in ("list", "map"):
        return kind._replace(params=tuple(_declared(each) for each in kind.params))
    return DYN


# --- values -----------------------------------------------------------------------------------------------------------


def cel_value(value: object) -> object:
    """Return a JSON value as a CEL value."""
    if isinstance(value, dict):
        return CelMap.of_texts({name: cel_value(item) for name, item in value.items()})
    return [cel_value(item) for item in value] if isinstance(value, list) else value


def plain_value(value: object) -> object:
    """Return a CEL value as a JSON value.

    Raises:
        RunProblem: the value has no JSON form.
    """
    if isinstance(value, Message):
        return {name: plain_value(item) for name, item in value.fields.items()}
    if isinstance(value, CelMap):
        for key, _ in value.entries.values():
            if not isinstance(key, str):
                raise RunProblem(f"map key {key} is not a string")
        return {str(key): plain_value(item) for key, item in value.entries.values()}
    if isinstance(value, list):
        return [plain_value(item) for item in value]
    if isinstance(value, Timestamp):
        return timestamp_text(value)
    if isinstance(value, Duration):
        return duration_text(value)
    if isinstance(value, Uint):
        return int(value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise RunProblem("unsupported conversion to JSON")


# --- evaluation -------------------------------------------------------------------------------------------------------


class Budget:
    """The remaining cost budget of a policy's expressions.

    Attributes:
        left: the remaining cost.
    """

    __slots__ = ("left",)

    def __init__(self, left: int = BUDGET) -> None:
        self.left = left

    def spend(self, cost: int) -> None:
        """Deduct a cost from the budget.

        Raises:
            OutOfBudgetError: the cost exceeds the remaining budget.
        """
        if cost > self.left:
            raise OutOfBudgetError
        self.left -= cost


class Evaluation:
    """Evaluates the expressions of one policy for one request.

    Args:
        names: the values of the request's variables.
        variables: the names and expressions of the policy's variables; each is evaluated at most once per group.
    """

    __slots__ = ("_names", "_spent", "_variables")

    def __init__(self, names: Mapping[str, object], variables: Iterable[tuple[str, Expression]] = ()) -> None:
        self._names = dict(names)
        self._variables = tuple(variables)
        self._spent = 0
        self.begin_group()

    def begin_group(self) -> None:
        """Begin a group of expressions: discard the cached values of the policy's variables."""
        self._names["variables"] = Variables(
            {name: partial(self.variable, name, each) for name, each in self._variables}
        )

    def variable(self, name: str, expression: Expression) -> object:
        """Return the value of a variable of the policy.

        Raises:
            RunProblem: the expression of the variable does not compile, or fails.
        """
        if expression.code is None:
            raise RunProblem(f'composited variable "{name}" fails to compile: {expression.problem}')
        meter = Meter()
        try:
            return run(expression.code, self._names, meter)
        except RunProblem as problem:
            raise RunProblem(f'composited variable "{name}" fails to evaluate: {problem}') from None
        finally:
            self._spent += meter.cost

    def run(self, expression: Expression, budget: Budget) -> object:
        """Return the value of an expression.

        Raises:
            RunProblem: the expression does not compile, or fails; the text is the message of the denial.
            OutOfBudgetError: the cost exceeds the remaining budget.
        """
        if expression.code is None:
            raise RunProblem(f"compilation error: {expression.problem}")
        meter = Meter()
        self._spent = 0
        failure: RunProblem | None = None
        value: object = None
        with RECURSION_LIMIT.raised():
            try:
                value = run(expression.code, self._names, meter)
            except RunProblem as problem:
                failure = problem
        budget.spend(self._spent)
        budget.spend(meter.cost)
        if failure is not None:
            raise RunProblem(f"expression '{expression.text}' resulted in error: {failure}")
        return value


AUTHORIZATION: Document = {
    "authorizer": library_authorization.AUTHORIZER,
    "authorizer.requestResource": library_authorization.RESOURCE_CHECK,
}
"""The values of the authorizer's variables. Every user is allowed everything."""
