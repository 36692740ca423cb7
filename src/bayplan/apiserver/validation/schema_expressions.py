"""Validation of the CEL rules in a custom resource's schema: they must compile, and their estimated cost is limited.

Source: k8s.io/apiextensions-apiserver v0.36.3, pkg/apis/apiextensions/validation.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from bayplan.apiserver.model.errors import Cause, forbidden_value, invalid_value
from bayplan.apiserver.validation.custom_values import has_rules
from bayplan.apiserver.validation.engine import Causes, go_value
from bayplan.apiserver.validation.expressions import MAX_COMPILED, ExpressionBudget
from bayplan.base.go_text.json import json_text
from bayplan.base.plain_data import Document, part, parts
from bayplan.objects.selectors import quote

if TYPE_CHECKING:
    from bayplan.apiserver.validation.schema_rules import Rule
    from bayplan.apiserver.validation.schema_types import SchemaType

MAX_RULE_COST, MAX_SCHEMA_COST = 10_000_000, 100_000_000
"""Maximum estimated cost of one rule, and of all rules of a schema."""
_MOST = (1 << 64) - 1
_MAX_LISTED = 4
"""Number of rules that the errors name if the total cost of all rules is too high."""
_HINT = "try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared"
_RULES = "x-kubernetes-validations"


def check_expressions(schema: Document, path: str, refused: Causes, out: Causes) -> None:
    """Check the CEL rules in a schema, except in parts with other errors.

    Args:
        schema: the whole schema of a version.
        path: the path of the schema.
        refused: the other errors of the schema.
        out: receives the errors.
    """
    if not has_rules(schema):
        return
    size = _size_of_expressions(schema)
    if size > MAX_COMPILED:
        text = f"the expressions of the rules have {size} characters, more than the {MAX_COMPILED} that a request may compile"
        out.append(forbidden_value(path, text))
        return
    # Import on demand: the CEL package is slow to import, and most schemas have no rules.
    from bayplan.apiserver.validation.schema_types import schema_type

    check = _Check(refused, out)
    check.check(schema, schema_type(schema, is_object=True), path, _Place(1, ""))
    check.check_total(path)


def rule_causes_of_default(schema: Document, default: object, budget: ExpressionBudget) -> list[Cause]:
    """Return the errors of a default that is valid except for the CEL rules of its schema.

    Args:
        schema: the schema of the default.
        default: the default.
        budget: the budget of all defaults of a schema. A default that exceeds it is not checked.
    """
    if not has_rules(schema) or not budget.spend(_size_of_expressions(schema)):
        return []
    from bayplan.apiserver.validation.schema_rules import SchemaRules  # Imports the CEL package.
    from bayplan.apiserver.validation.schema_types import schema_type

    if parts(schema, _RULES) and schema_type(schema) is None:
        text = "rule compiler initialization error: failed to convert to declType for CEL validation rules"
        return [invalid_value("", '""', text)]

    whole: Document = {"type": "object", "properties": {_DEFAULT: schema}}
    found = SchemaRules(whole).check({_DEFAULT: default}, None)[0]
    return [cause._replace(field=cause.field.removeprefix(_DEFAULT)) for cause in found]


_DEFAULT = "default"
"""The field of an object that contains only the default."""


def _size_of_expressions(schema: Document) -> int:
    own = sum(
        len(str(rule.get(name) or "")) for rule in parts(schema, _RULES) for name in ("rule", "messageExpression")
    )
    inner = [*part(schema, "properties").values(), schema.get("items"), schema.get("additionalProperties")]
    return own + sum(_size_of_expressions(cast("Document", each)) for each in inner if isinstance(each, dict))


@dataclass(frozen=True)
class _Place:
    """A position in a schema.

    Attributes:
        most: the maximum number of values at this position in one object; None if the schema does not limit it.
        uncorrelated: the path of the enclosing list whose items cannot be matched with old items; empty if there is
            none.
    """

    most: int | None
    uncorrelated: str


@dataclass
class _Check:
    refused: Causes
    out: Causes
    total: int = 0
    expensive: list[tuple[int, str]] = field(default_factory=list)

    def check(self, schema: Document, kind: SchemaType | None, path: str, place: _Place) -> None:
        """Check the rules in nested schemas, and then the rules of the schema itself."""
        if not has_rules(schema):
            return
        from bayplan.apiserver.validation.schema_types import escaped, schema_type

        more, items = schema.get("additionalProperties"), schema.get("items")
        most = _product(place.most, _elements(schema))
        element = kind.element if kind is not None else None
        inside = _Place(most, place.uncorrelated)
        if isinstance(more, dict):
            self.check(cast("Document", more), element, f"{path}.additionalProperties", inside)
        properties = part(schema, "properties")
        for name in sorted(properties):
            inner = part(properties, name)
            known = kind.fields.get(escaped(name) or "") if kind is not None else None
            self.check(inner, known or schema_type(inner), f"{path}.properties[{name}]", inside)
        if isinstance(items, dict):
            is_map = schema.get("x-kubernetes-list-type") == "map"
            apart = place.uncorrelated or ("" if is_map else path)
            self.check(cast("Document", items), element, f"{path}.items", _Place(most, apart))
        if parts(schema, _RULES) and not any(cause.field.startswith(path) for cause in self.refused):
            self._own(schema, kind, path, place)

    def _own(self, schema: Document, kind: SchemaType | None, path: str, place: _Place) -> None:
        from bayplan.apiserver.validation.schema_rules import compile_rules
        from bayplan.apiserver.validation.schema_types import MAX_REQUEST_BYTES

        if kind is None:
            text = "internal error: failed to construct type information for x-kubernetes-validations rules"
            why = "unable to convert structural schema to CEL declarations"
            self.out.append(Cause("InternalError", f"Internal error: {text}: {why}", f"{path}.{_RULES}"))
            return
        times = place.most if place.most is not None else MAX_REQUEST_BYTES // (kind.least_bytes + 1)
        for index, rule in enumerate(compile_rules(schema, kind)):
            self._rule(rule, f"{path}.{_RULES}[{index}]", times, place.uncorrelated)

    def _rule(self, rule: Rule, path: str, times: int, uncorrelated: str) -> None:
        written = rule.document
        self._cost("estimated rule cost", f"{path}.rule", min(rule.test.cost * times, _MOST))
        if rule.test.problem:
            self.out.append(invalid_value(f"{path}.rule", _shown(written), rule.test.problem))
        if rule.message is not None and rule.message.problem:
            self.out.append(invalid_value(f"{path}.messageExpression", _shown(written), rule.message.problem))
        elif rule.message is not None:
            self._cost("estimated messageExpression cost", f"{path}.messageExpression", rule.message.cost)
        if rule.test.uses_old:
            if uncorrelated:
                detail = f"oldSelf cannot be used on the uncorrelatable portion of the schema within {uncorrelated}"
                self.out.append(invalid_value(f"{path}.rule", quote(str(written.get("rule"))), detail))
        elif written.get("optionalOldSelf") is not None:
            detail = "may not be set if oldSelf is not used in rule"
            self.out.append(invalid_value(f"{path}.optionalOldSelf", go_value(written["optionalOldSelf"]), detail))

    def _cost(self, name: str, path: str, cost: int) -> None:
        if cost > MAX_RULE_COST:
            self.out.append(forbidden_value(path, _exceeds(name, cost, MAX_RULE_COST)))
        self.total = min(self.total + cost, _MOST)
        if cost >= MAX_SCHEMA_COST // 100:
            self.expensive = sorted([*self.expensive, (cost, path)], key=lambda each: -each[0])[:_MAX_LISTED]

    def check_total(self, path: str) -> None:
        """Report the total cost of all rules if it exceeds the limit, and the most expensive rules."""
        if self.total <= MAX_SCHEMA_COST:
            return
        detail = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema"
        self.out.extend(forbidden_value(each, detail) for _, each in self.expensive)
        name = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema"
        self.out.append(forbidden_value(path, _exceeds(name, self.total, MAX_SCHEMA_COST)))


def _elements(schema: Document) -> int | None:
    """Return the maximum number of list items or map entries in a schema's values; None if it is not limited.

    Values of other types count as one element.
    """
    match schema.get("type"):
        case "object" if schema.get("additionalProperties") is not None:
            most = schema.get("maxProperties")
        case "array":
            most = schema.get("maxItems")
        case _:
            return 1
    return max(0, int(most)) if isinstance(most, int | float) else None


def _product(left: int | None, right: int | None) -> int | None:
    return None if left is None or right is None else min(left * right, _MOST)


def _exceeds(name: str, cost: int, limit: int) -> str:
    factor = cost / limit
    shown = "more than 100x" if factor > 100 else f"{factor:f}x" if factor < 1.5 else f"{factor:.1f}x"
    return f"{name} exceeds budget by factor of {shown} ({_HINT})"


def _shown(rule: Document) -> str:
    """Return a rule as messages show upstream's internal struct."""
    fields = ("rule", "message", "messageExpression", "reason", "fieldPath", "optionalOldSelf")
    optional = ("reason", "optionalOldSelf")
    return json_text(
        {name[0].upper() + name[1:]: rule.get(name) if name in optional else rule.get(name) or "" for name in fields}
    )
