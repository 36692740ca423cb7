"""CEL rules in a custom resource's schema (``x-kubernetes-validations``): compiled once, evaluated on every write.

Sources: k8s.io/apiextensions-apiserver v0.36.3, pkg/apiserver/schema/cel;
https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#validation-rules.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias, cast

from bayplan.apiserver.model.errors import Cause, invalid_value
from bayplan.apiserver.validation.correlation import ABSENT, is_unchanged
from bayplan.apiserver.validation.custom_values import has_rules
from bayplan.apiserver.validation.field_paths import normalized_path
from bayplan.apiserver.validation.schema_types import SchemaType, escaped, schema_type, schema_value
from bayplan.base.plain_data import Document, part, parts, texts
from bayplan.base.recursion_limit import RECURSION_LIMIT
from bayplan.cel.checker import Checker
from bayplan.cel.estimates import estimate_cost
from bayplan.cel.evaluator import Code, compile_node, run
from bayplan.cel.meter import CostExceeded, Meter
from bayplan.cel.parser import Parser
from bayplan.cel.problems import CompileProblem, RunProblem
from bayplan.cel.source import Source
from bayplan.cel.types import BOOL, STRING, CelType, optional_of
from bayplan.cel.values import NONE, Optional
from bayplan.objects.selectors import quote

Objects: TypeAlias = Mapping[str, Mapping[str, CelType]]
RULES = "x-kubernetes-validations"
BUDGET = 10_000_000
"""Maximum total cost of all rules for one object."""
MAX_MESSAGE_BYTES = 5 * 1024
_OUT_OF_BUDGET = "validation failed due to running out of cost budget, no further validation rules will be run"
_OUT_OF_MESSAGE_BUDGET = (
    "messageExpression evaluation failed due to running out of cost budget, no further validation rules will be run"
)


@dataclass
class CompiledText:
    """A compiled expression of a rule, or its error.

    Attributes:
        code: the compiled expression; None if it does not compile.
        problem: the compile error, or empty.
        cost: the estimated maximum cost.
        uses_old: whether the expression uses `oldSelf`.
    """

    code: Code | None = None
    problem: str = ""
    cost: int = 0
    uses_old: bool = False


@dataclass
class Rule:
    """A CEL rule of a schema.

    Attributes:
        document: the rule as declared in the schema.
        test: the compiled rule.
        message: the compiled message expression; None if there is none.
        field_path: the path of the field that errors name, relative to the value; empty for the value itself.
    """

    document: Document
    test: CompiledText
    message: CompiledText | None
    field_path: str = ""

    @property
    def is_optional(self) -> bool:
        """Whether the rule also runs if there is no old value."""
        return self.document.get("optionalOldSelf") is True

    def default_message(self) -> str:
        """Return the error message for a rule whose message expression is missing or fails."""
        text = str(self.document.get("message") or "")
        return text.strip() if text else f"failed rule: {str(self.document.get('rule') or '').strip()}"

    def shown(self) -> str:
        """Return the text that identifies the rule in errors of its expression."""
        return str(self.document.get("message") or self.document.get("rule") or "").strip()


def compile_rules(schema: Document, kind: SchemaType) -> list[Rule]:
    """Return the compiled rules of a schema, without the rules of nested schemas.

    Args:
        schema: a structural schema.
        kind: the type of the schema.
    """
    found = []
    objects = kind.objects() if schema.get(RULES) else {}
    for rule in parts(schema, RULES):
        text = str(rule.get("rule") or "")
        optional = rule.get("optionalOldSelf") is True
        test = compile_text(text, kind, objects, BOOL, optional=optional) if text.strip() else CompiledText()
        message = None
        if rule.get("messageExpression") and test.code is not None:
            message = compile_text(str(rule["messageExpression"]), kind, objects, STRING, optional=optional)
        found.append(Rule(rule, test, message, _field_path(schema, rule)))
    return found


def _field_path(schema: Document, rule: Document) -> str:
    path = str(rule.get("fieldPath") or "")
    return normalized_path(schema, path) or "" if path else ""


def compile_text(text: str, kind: SchemaType, objects: Objects, wanted: CelType, *, optional: bool) -> CompiledText:
    """Return a compiled rule or message expression, or its error.

    Args:
        text: the expression.
        kind: the type of `self`.
        objects: the field types of object types, see `SchemaType.objects`.
        wanted: the required type of the result: BOOL for a rule, STRING for a message.
        optional: whether `oldSelf` is an optional value.
    """
    names = {"self": kind.type, "oldSelf": optional_of(kind.type) if optional else kind.type}
    what = "cel expression" if wanted == BOOL else "messageExpression"
    try:
        with RECURSION_LIMIT.raised():
            node = Parser(text, binds=False).parse()
            checker = Checker(Source(text), names, objects)
            if checker.check(node) != wanted:
                return CompiledText(problem=f"{what} must evaluate to a {wanted.name}")
            code = compile_node(node)
            cost = estimate_cost(node, checker, kind.size_at)
            return CompiledText(code, "", cost, "oldSelf" in checker.references)
    except CompileProblem as problem:
        shown = str(problem)
        if wanted == STRING:
            shown = f"messageExpression {shown.removeprefix('program ')}"
        return CompiledText(problem=shown)


# --- runs -------------------------------------------------------------------------------------------------------------


class SchemaRules:
    """The CEL rules of a custom resource's schema, compiled at the first check.

    Args:
        schema: the schema of the complete object.
    """

    __slots__ = ("_root", "_schema")

    def __init__(self, schema: Document) -> None:
        self._schema = schema
        self._root: _Node | None = None

    def check(self, document: Document, old: Document | None) -> tuple[list[Cause], list[str]]:
        """Return the errors of an object, and warnings about errors of unchanged values.

        Args:
            document: the complete object, which is valid except for the rules.
            old: the current object, None for a create.
        """
        if self._root is None:
            self._root = _compiled(self._schema, schema_type(self._schema, is_object=True), is_object=True)
        if self._root is None:
            return [], []
        run_of = _Run()
        before = ABSENT if old is None else old
        with suppress(_OutOfBudgetError):
            run_of.check(self._root, document, before, "", _Correlation(self._schema, document, before))
        return run_of.causes, run_of.warnings


@dataclass
class _Node:
    """A compiled schema that has rules, or contains schemas with rules."""

    schema: Document
    is_object: bool
    rules: list[Rule]
    properties: dict[str, _Node] = field(default_factory=dict)
    element: _Node | None = None


def _compiled(schema: Document, kind: SchemaType | None, *, is_object: bool) -> _Node | None:
    if kind is None or not has_rules(schema):
        return None
    node = _Node(schema, is_object, compile_rules(schema, kind))
    for name, inner in part(schema, "properties").items():
        if not isinstance(inner, dict):
            continue
        written = escaped(name)
        child_kind = schema_type(inner) if written is None else kind.fields.get(written)
        child = _compiled(inner, child_kind, is_object=_is_embedded(inner))
        if child is not None:
            node.properties[name] = child
    inner = schema.get("items") if schema.get("type") == "array" else schema.get("additionalProperties")
    if isinstance(inner, dict):
        node.element = _compiled(cast("Document", inner), kind.element, is_object=_is_embedded(cast("Document", inner)))
    return node


def _is_embedded(schema: Document) -> bool:
    return bool(schema.get("x-kubernetes-embedded-resource"))


class _OutOfBudgetError(Exception):
    """The cost budget is exhausted: no further rule is evaluated."""


@dataclass
class _Correlation:
    """Matches a value with its old value: an unchanged value may violate rules that were added later.

    Attributes:
        schema: the schema of the value.
        value: the value.
        before: the old value, or `ABSENT` if no old value matches.
        inherited: whether the parent is unchanged; used if no old value matches.
    """

    schema: Document
    value: object
    before: object
    inherited: bool = False

    @cached_property
    def is_unchanged(self) -> bool:
        """Whether violated rules are only warnings, because the value has not changed."""
        return self.inherited if self.before is ABSENT else is_unchanged(self.schema, self.value, self.before)

    def of(self, schema: Document, value: object, before: object) -> _Correlation:
        """Return the correlation of a nested value."""
        return _Correlation(schema, value, before, self.is_unchanged)


class _Run:
    """The evaluation of all rules for one object."""

    def __init__(self) -> None:
        self.causes: list[Cause] = []
        self.warnings: list[str] = []
        self._left = BUDGET

    def check(self, node: _Node, value: object, old: object, path: str, correlation: _Correlation) -> None:
        """Evaluate the rules of a value and of the values nested in it.

        Raises:
            _OutOfBudgetError: no further rule can be evaluated.
        """
        if value is None:
            return
        self._rules(node, value, old, path, correlation)
        if isinstance(value, list) and node.element is not None:
            known = _items_by_key(node.schema, old)
            for index, item in enumerate(value):
                before = known.get(_item_key(node.schema, item), ABSENT) if known else ABSENT
                self.check(
                    node.element, item, before, f"{path}[{index}]", correlation.of(node.element.schema, item, before)
                )
        if not isinstance(value, dict):
            return
        before_map = old if isinstance(old, dict) else {}
        for name, item in value.items():
            before = before_map.get(name, ABSENT)
            if node.element is not None:
                self.check(
                    node.element, item, before, f"{path}[{name}]", correlation.of(node.element.schema, item, before)
                )
            child = node.properties.get(name)
            if child is not None:
                self.check(
                    child, item, before, f"{path}.{name}" if path else name, correlation.of(child.schema, item, before)
                )

    def _rules(self, node: _Node, value: object, old: object, path: str, correlation: _Correlation) -> None:
        if not node.rules:
            return
        if self._left <= 0:
            self._stop(node, path, _OUT_OF_BUDGET)
        has_old = old is not ABSENT and old is not None
        names: Document = {}
        failure = ""
        try:
            names["self"] = schema_value(value, node.schema, is_object=node.is_object)
            if has_old and any(rule.test.uses_old for rule in node.rules):
                names["oldSelf"] = schema_value(old, node.schema, is_object=node.is_object)
        except RunProblem as problem:
            failure = str(problem)
        for rule in node.rules:
            if rule.test.problem:
                self._add(node, path, f"rule compile error: {rule.test.problem}")
            elif rule.test.code is not None and (has_old or not rule.test.uses_old or rule.is_optional):
                if failure:
                    self._add(node, path, f"{failure} evaluating rule: {rule.shown()}")
                elif not self._holds(node, rule, _variables(rule, names), path):
                    self._refuse(node, rule, value, _variables(rule, names), path, correlation)

    def _holds(self, node: _Node, rule: Rule, names: Document, path: str) -> bool:
        """Return whether a rule is met. If its expression fails, report that error instead, and return True."""
        try:
            return self._value(node, rule.test, names, path, _OUT_OF_BUDGET) is True
        except CostExceeded as problem:
            why = "no further validation rules will be run due to call cost exceeds limit for rule"
            self._stop(node, path, f"'{problem}': {why}: {rule.shown()}")
        except RunProblem as problem:
            text = f"{problem} evaluating rule: {rule.shown()}"
            if str(problem).startswith("no such overload"):
                what = "call arguments did not match a supported operator, function or macro signature for rule"
                text = f"'{problem}': {what}: {rule.shown()}"
            self._add(node, path, text)
        return True

    def _value(self, node: _Node, text: CompiledText, names: Document, path: str, too_much: str) -> object:
        assert text.code is not None
        meter = Meter()
        try:
            with RECURSION_LIMIT.raised():
                return run(text.code, names, meter)
        finally:
            if meter.cost > self._left:
                self._stop(node, path, too_much)
            self._left -= meter.cost

    def _refuse(
        self, node: _Node, rule: Rule, value: object, names: Document, path: str, correlation: _Correlation
    ) -> None:
        at = path
        if rule.field_path:
            at = f"{path}.{rule.field_path}" if path else rule.field_path
        detail = self._message(node, rule, names, at) or rule.default_message()
        cause = _cause(at, node.schema, value, detail, str(rule.document.get("reason") or ""))
        if not rule.test.uses_old and correlation.is_unchanged:
            self.warnings.append(f"{cause.field}: {cause.message}")
        else:
            self.causes.append(cause)

    def _message(self, node: _Node, rule: Rule, names: Document, path: str) -> str:
        """Return the result of a rule's message expression, or "" if there is no usable result."""
        if rule.message is None or rule.message.code is None:
            return ""
        try:
            found = self._value(node, rule.message, names, path, _OUT_OF_MESSAGE_BUDGET)
        except CostExceeded:
            why = "no further validation rules will be run due to call cost exceeds limit for messageExpression"
            self._stop(node, path, f"{why}: {quote(str(rule.document['messageExpression']))}")
        except RunProblem:
            return ""
        text = found.strip() if isinstance(found, str) else ""
        return "" if len(text.encode()) > MAX_MESSAGE_BYTES or "\n" in text else text

    def _add(self, node: _Node, path: str, detail: str) -> None:
        self.causes.append(invalid_value(path or "<nil>", quote(str(node.schema.get("type") or "")), detail))

    def _stop(self, node: _Node, path: str, detail: str) -> None:
        self._add(node, path, detail)
        raise _OutOfBudgetError


def _variables(rule: Rule, names: Document) -> Document:
    if not rule.is_optional:
        return names
    old = Optional(names["oldSelf"], True) if "oldSelf" in names else NONE
    return {**names, "oldSelf": old}


def _cause(path: str, schema: Document, value: object, detail: str, reason: str) -> Cause:
    at = path or "<nil>"
    shown = ""
    if schema.get("type") not in ("object", "array"):
        shown = quote(value) if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
    match reason:
        case "FieldValueForbidden":
            return Cause(reason, f"Forbidden: {detail}", at)
        case "FieldValueRequired":
            return Cause(reason, f"Required value: {detail}", at)
        case "FieldValueDuplicate":
            return Cause(reason, f"Duplicate value: {shown}" if shown else "Duplicate value", at)
    return Cause("FieldValueInvalid", f"Invalid value: {shown}: {detail}" if shown else f"Invalid value: {detail}", at)


def _items_by_key(schema: Document, old: object) -> dict[str, object]:
    """Return the items of an old list by key; an empty map if the list is not keyed."""
    if schema.get("x-kubernetes-list-type") != "map" or not isinstance(old, list):
        return {}
    return dict(_keyed(schema, old))


def _keyed(schema: Document, items: list[object]) -> Iterator[tuple[str, object]]:
    for item in items:
        key = _item_key(schema, item)
        if key:
            yield key, item


def _item_key(schema: Document, item: object) -> str:
    keys = texts(schema, "x-kubernetes-list-map-keys")
    return json.dumps([item.get(key) for key in keys]) if isinstance(item, dict) else ""
