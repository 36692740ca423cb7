"""Selectors, compiled once and evaluated often: label selectors, node selectors, tolerations.

A compiled selector has a `key` that is equal for equivalent selectors, so that equal terms are registered once. Its
requirements can be evaluated for single values (`Requirement.matches_value`), so that a column of labels is evaluated
once for each distinct value.

Source: https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/ and the behavior of
k8s.io/apimachinery/pkg/labels, k8s.io/component-helpers/scheduling/corev1 and k8s.io/api/core/v1 v0.36.3.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, cast

import msgspec

from bayplan.base.go_text.json import json_string
from bayplan.base.go_text.quoting import quote as quote
from bayplan.base.plain_data import Document
from bayplan.objects.affinity import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, PreferredSchedulingTerm
from bayplan.objects.meta import LabelSelector
from bayplan.objects.names import check_label_value, check_qualified_name
from bayplan.objects.node import Taint
from bayplan.objects.pod import Pod, Toleration

Operator = Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]
Labels = Mapping[str, str]

_LABEL_OPERATORS: tuple[Operator, ...] = ("In", "NotIn", "Exists", "DoesNotExist")
_NODE_OPERATORS: tuple[Operator, ...] = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
_FIELD_OPERATORS = ("In", "NotIn")
_INTEGER = re.compile(r"[+-]?[0-9]+", re.ASCII)
_CANONICAL_INTEGER = re.compile(r"0|-?[1-9][0-9]*", re.ASCII)
_INT64 = range(-(2**63), 2**63)


class Requirement(msgspec.Struct, frozen=True):
    """One requirement on the labels of an object."""

    key: str
    operator: Operator
    values: tuple[str, ...] = ()

    def matches(self, labels: Labels) -> bool:
        """Return whether labels match the requirement."""
        return self.matches_value(labels.get(self.key))

    def matches_value(self, value: str | None) -> bool:
        """Return whether a value of the requirement's key matches; None stands for an absent key."""
        operator = self.operator
        if operator == "In":
            return value is not None and value in self.values
        if operator == "NotIn":
            return value is None or value not in self.values
        if operator == "Exists":
            return value is not None
        if operator == "DoesNotExist":
            return value is None
        number = parse_int64(value) if value is not None else None
        bound = parse_int64(self.values[0]) if len(self.values) == 1 else None
        if number is None or bound is None:
            return False
        return number > bound if operator == "Gt" else number < bound


class Selector:
    """A compiled label selector: every requirement must hold. Immutable; equivalent selectors are equal.

    Attributes:
        requirements: the requirements, sorted by key; empty in a selector that matches nothing.
        matches_nothing: whether the selector was absent, so that it matches no labels.
        key: hashable; equal for equivalent selectors; None for a selector that matches nothing.
    """

    __slots__ = ("_equal", "_others", "key", "matches_nothing", "requirements")

    def __init__(self, requirements: Iterable[Requirement], *, matches_nothing: bool = False) -> None:
        self.requirements = tuple(sorted(requirements, key=lambda item: item.key))
        self.matches_nothing = matches_nothing
        self.key: tuple[tuple[str, str, tuple[str, ...]], ...] | None = None
        if not matches_nothing:
            self.key = tuple(
                sorted({(item.key, item.operator, tuple(sorted(set(item.values)))) for item in self.requirements})
            )
        self._equal = [
            (item.key, item.values[0]) for item in self.requirements if item.operator == "In" and len(item.values) == 1
        ]
        self._others = [item for item in self.requirements if item.operator != "In" or len(item.values) != 1]

    @property
    def matches_everything(self) -> bool:
        """Return whether the selector has no requirements (upstream's `Empty`)."""
        return not self.requirements and not self.matches_nothing

    def matches(self, labels: Labels) -> bool:
        """Return whether labels match."""
        if self.matches_nothing:
            return False
        for key, value in self._equal:
            if labels.get(key) != value:
                return False
        for requirement in self._others:  # noqa: SIM110 - a generator would cost more than the test.
            if not requirement.matches_value(labels.get(requirement.key)):
                return False
        return True

    def adding(self, requirements: Iterable[Requirement]) -> "Selector":
        """Return a selector with additional requirements; a selector that matches nothing is unchanged."""
        return self if self.matches_nothing else Selector((*self.requirements, *requirements))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Selector) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def __repr__(self) -> str:
        return "Selector(nothing)" if self.matches_nothing else f"Selector({list(self.requirements)!r})"


NOTHING = Selector((), matches_nothing=True)
EVERYTHING = Selector(())


class SelectorError(ValueError):
    """A selector that upstream rejects; the text is upstream's. Each caller decides how to handle it."""


def compile_label_selector(selector: LabelSelector | None) -> Selector:
    """Compile a label selector. None matches nothing, an empty selector everything.

    Raises:
        SelectorError: upstream rejects an operator, key or value.
    """
    if selector is None:
        return NOTHING
    if not selector.match_labels and not selector.match_expressions:
        return EVERYTHING
    requirements = []
    for key, value in sorted(selector.match_labels.items()):
        _raise_for(check_requirement(key, "In", (value,)))
        requirements.append(Requirement(key, "In", (value,)))
    for expression in selector.match_expressions:
        if expression.operator not in _LABEL_OPERATORS:
            raise SelectorError(f"{quote(expression.operator)} is not a valid label selector operator")
        operator = _operator(expression.operator)
        # Upstream copies the values, which turns an empty list into nil.
        _raise_for(check_requirement(expression.key, operator, expression.values or None))
        requirements.append(Requirement(expression.key, operator, expression.values))
    return Selector(requirements)


def compile_label_map(labels: Labels | None) -> Selector:
    """Compile a map of labels, without checks, as upstream does; None and an empty map match everything."""
    return Selector(Requirement(key, "In", (value,)) for key, value in labels.items()) if labels else EVERYTHING


def compile_selector_document(selector: Document) -> Selector:
    """Compile the label selector of a validated document, without checking keys and values.

    An empty selector matches everything, a selector with an unknown operator nothing.
    """
    pairs = cast("Document", selector.get("matchLabels") or {})
    requirements = [Requirement(key, "In", (str(value),)) for key, value in pairs.items()]
    for expression in cast("list[Document]", selector.get("matchExpressions") or []):
        operator = next((each for each in _LABEL_OPERATORS if each == expression.get("operator")), None)
        if operator is None:
            return NOTHING
        values = cast("list[object]", expression.get("values") or [])
        requirements.append(Requirement(str(expression.get("key")), operator, tuple(str(value) for value in values)))
    return Selector(requirements)


def check_requirement(key: str, operator: str, values: tuple[str, ...] | None, *, path: str = "") -> tuple[str, ...]:
    """Return upstream's errors about a requirement; empty if it is valid.

    Args:
        key, operator, values: the requirement. Messages show `values` None as null, () as [].
        path: the path of the requirement, e.g. `nodeSelectorTerms[0].matchExpressions[1]`.
    """
    problems = []
    dot = f"{path}." if path else ""
    if complaints := check_qualified_name(key):
        problems.append(f"{dot}key: Invalid value: {quote(key)}: {'; '.join(complaints)}")
    if operator in ("In", "NotIn") and not values:
        text = "for 'in', 'notin' operators, values set can't be empty"
        problems.append(f"{dot}values: Invalid value: {_to_json(values)}: {text}")
    elif operator in ("Exists", "DoesNotExist") and values:
        text = "values set must be empty for exists and does not exist"
        problems.append(f"{dot}values: Invalid value: {_to_json(values)}: {text}")
    elif operator in ("Gt", "Lt"):
        if len(values or ()) != 1:
            text = "for 'Gt', 'Lt' operators, exactly one value is required"
            problems.append(f"{dot}values: Invalid value: {_to_json(values)}: {text}")
        text = "for 'Gt', 'Lt' operators, the value must be an integer"
        problems.extend(
            f"{dot}values[{index}]: Invalid value: {quote(value)}: {text}"
            for index, value in enumerate(values or ())
            if parse_int64(value) is None
        )
    for index, value in enumerate(values or ()):
        if complaints := check_label_value(value):
            problems.append(f"{dot}values[{index}][{key}]: Invalid value: {quote(value)}: {'; '.join(complaints)}")
    return tuple(dict.fromkeys(problems))


def _raise_for(problems: tuple[str, ...]) -> None:
    if problems:
        raise SelectorError(join_errors(problems))


def _operator(text: str) -> Operator:
    return next(operator for operator in _NODE_OPERATORS if operator == text)


# --- node selectors ---------------------------------------------------------------------------------------------------


class FieldRequirement(msgspec.Struct, frozen=True):
    """A requirement on a field of a node; only `metadata.name` has a value."""

    field: str
    value: str
    equal: bool

    def matches(self, name: str) -> bool:
        """Return whether a node with that name matches the requirement."""
        return ((name if self.field == "metadata.name" else "") == self.value) == self.equal


@dataclass(frozen=True, slots=True)
class NodeTerm:
    """A compiled term of a node selector.

    Attributes:
        labels: the requirements on the node's labels; None if there are none.
        fields: the requirements on the node's name.
        errors: upstream's errors about the term; an invalid term matches no node.
        key: hashable; equal for equivalent terms; None for invalid ones.
    """

    labels: Selector | None
    fields: tuple[FieldRequirement, ...]
    errors: tuple[str, ...] = ()
    key: object = field(init=False)

    def __post_init__(self) -> None:
        key = (self.labels and self.labels.key, frozenset(self.fields)) if not self.errors else None
        object.__setattr__(self, "key", key)

    def matches(self, labels: Labels, name: str) -> bool:
        """Return whether a node with these labels and this name matches."""
        if self.errors or (self.labels is not None and not self.labels.matches(labels)):
            return False
        return not name or all(requirement.matches(name) for requirement in self.fields)


class CompiledNodeSelector(msgspec.Struct, frozen=True):
    """A compiled node selector: one of its terms must match. Without terms it matches no node.

    Attributes:
        terms: the terms that are not empty (an empty term matches no node).
        key: hashable; equal for equivalent selectors.
    """

    terms: tuple[NodeTerm, ...]

    @property
    def key(self) -> object:
        """Return a value that is equal for equivalent selectors."""
        return frozenset(term.key for term in self.terms if not term.errors)

    @property
    def error(self) -> str:
        """Return upstream's errors about all invalid terms, or ""."""
        return join_errors(problem for term in self.terms for problem in term.errors)

    def matches(self, labels: Labels, name: str) -> bool:
        """Return whether a node with these labels and this name matches. Invalid terms match no node."""
        return any(term.matches(labels, name) for term in self.terms)


class CompiledPreferredTerms(msgspec.Struct, frozen=True):
    """Compiled preferred node terms with their weights.

    Attributes:
        terms: (weight, term) pairs, without empty terms and terms with weight 0.
        error: upstream's errors about invalid terms, or ""; an error ends the cycle in PreScore.
    """

    terms: tuple[tuple[int, NodeTerm], ...]
    error: str = ""

    def score(self, labels: Labels, name: str) -> int:
        """Return the sum of the weights of the terms that a node matches."""
        return sum(weight for weight, term in self.terms if term.matches(labels, name))


class RequiredNodeAffinity(msgspec.Struct, frozen=True):
    """A pod's requirements on its node's labels and name: `nodeSelector` together with required node affinity."""

    labels: Selector | None
    node_selector: CompiledNodeSelector | None

    @property
    def key(self) -> object:
        """Return a value that is equal for equivalent requirements."""
        return self.labels and self.labels.key, self.node_selector and self.node_selector.key

    def matches(self, labels: Labels, name: str) -> bool:
        """Return whether a node with these labels and this name matches."""
        if self.labels is not None and not self.labels.matches(labels):
            return False
        return self.node_selector is None or self.node_selector.matches(labels, name)


def compile_node_selector(selector: NodeSelector) -> CompiledNodeSelector:
    """Compile a node selector. An invalid term stores its errors and matches nothing; the other terms still work.

    Callers that must reject any error (added affinity, volumes, resource slices) check `.error`.
    """
    return CompiledNodeSelector(
        tuple(
            compile_node_term(term, f"nodeSelectorTerms[{index}]")
            for index, term in enumerate(selector.node_selector_terms)
            if term.match_expressions or term.match_fields
        )
    )


def compile_preferred_terms(terms: tuple[PreferredSchedulingTerm, ...] | None) -> CompiledPreferredTerms:
    """Compile preferred node terms. If any is invalid, return no terms but an error. None means no terms."""
    compiled = [
        (term.weight, compile_node_term(term.preference, f"[{index}]"))
        for index, term in enumerate(terms or ())
        if term.weight != 0 and (term.preference.match_expressions or term.preference.match_fields)
    ]
    error = join_errors(problem for _, term in compiled for problem in term.errors)
    return CompiledPreferredTerms(() if error else tuple(compiled), error)


def compile_required_node_affinity(pod: Pod) -> RequiredNodeAffinity:
    """Compile a pod's requirements on its node's labels and name."""
    spec = pod.spec
    labels = compile_label_map(spec.node_selector) if spec.node_selector else None
    affinity = spec.affinity.node_affinity if spec.affinity is not None else None
    required = affinity.required_during_scheduling_ignored_during_execution if affinity is not None else None
    return RequiredNodeAffinity(labels, compile_node_selector(required) if required is not None else None)


def compile_node_term(term: NodeSelectorTerm, path: str) -> NodeTerm:
    """Compile one term of a node selector. `path`: the term's path in error messages."""
    errors: list[str] = []
    requirements: list[Requirement] = []
    for index, expression in enumerate(term.match_expressions):
        where = f"{path}.matchExpressions[{index}]"
        if expression.operator not in _NODE_OPERATORS:
            errors.append(_not_supported(where, expression.operator, _NODE_OPERATORS))
            continue
        problems = check_requirement(expression.key, expression.operator, expression.values, path=where)
        errors.extend(problems)
        if not problems:
            requirements.append(Requirement(expression.key, _operator(expression.operator), expression.values or ()))
    fields: list[FieldRequirement] = []
    for index, expression in enumerate(term.match_fields):
        values = expression.values or ()
        problem = _check_field(expression, f"{path}.matchFields[{index}]")
        if problem:
            errors.append(problem)
        else:
            fields.append(FieldRequirement(expression.key, values[0], expression.operator == "In"))
    if errors:
        return NodeTerm(None, (), tuple(errors))
    return NodeTerm(Selector(requirements) if term.match_expressions else None, tuple(fields))


def _check_field(expression: NodeSelectorRequirement, where: str) -> str:
    if expression.operator not in _FIELD_OPERATORS:
        return _not_supported(where, expression.operator, _FIELD_OPERATORS)
    if len(expression.values or ()) != 1:
        return f"{where}.values: Invalid value: {_to_json(expression.values)}: must have one element"
    return ""


def _not_supported(where: str, operator: str, supported: Iterable[str]) -> str:
    names = ", ".join(quote(name) for name in supported)
    return f"{where}.operator: Unsupported value: {json_string(operator)}: supported values: {names}"


# --- tolerations ------------------------------------------------------------------------------------------------------


def tolerates(toleration: Toleration, taint: Taint, *, comparison_operators: bool) -> bool:
    """Return whether a toleration tolerates a taint.

    Args:
        toleration: the toleration of a pod.
        taint: the taint of a node.
        comparison_operators: whether Gt and Lt are supported (gate TaintTolerationComparisonOperators); otherwise such
            a toleration tolerates nothing. Gt tolerates taints whose value is greater than its own.
    """
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    operator = toleration.operator
    if operator in ("", "Equal"):
        return toleration.value == taint.value
    if operator == "Exists":
        return True
    if operator not in ("Gt", "Lt") or not comparison_operators:
        return False
    bound, number = parse_canonical_int64(toleration.value), parse_canonical_int64(taint.value)
    if bound is None or number is None:
        return False
    return number > bound if operator == "Gt" else number < bound


REJECTING_EFFECTS = ("NoSchedule", "NoExecute")
"""The effects of taints that keep pods away from a node."""


def find_untolerated_taint(
    taints: Iterable[Taint],
    tolerations: tuple[Toleration, ...],
    *,
    comparison_operators: bool,
    effects: tuple[str, ...] = REJECTING_EFFECTS,
) -> Taint | None:
    """Return the first taint with one of the effects that no toleration tolerates, or None."""
    for taint in taints:
        if taint.effect in effects and not any(
            tolerates(item, taint, comparison_operators=comparison_operators) for item in tolerations
        ):
            return taint
    return None


# --- texts and numbers as in Go ---------------------------------------------------------------------------------------


def parse_int64(text: str) -> int | None:
    """Parse an integer as Go's ParseInt does: a sign and leading zeros are allowed. None if it is not a valid int64."""
    if not _INTEGER.fullmatch(text) or len(text.lstrip("+-0")) > 19:
        return None
    number = int(text)
    return number if number in _INT64 else None


def parse_canonical_int64(text: str) -> int | None:
    """Parse an int64 in canonical form: no plus, no leading zero, no -0. None if it is not one."""
    return parse_int64(text) if _CANONICAL_INTEGER.fullmatch(text) else None


def join_errors(problems: Iterable[str]) -> str:
    """Return errors as upstream's aggregate error joins them: each once, in brackets if there are several."""
    texts = list(dict.fromkeys(problems))
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]" if texts else ""


def _to_json(values: tuple[str, ...] | None) -> str:
    return "null" if values is None else f"[{','.join(json_string(value) for value in values)}]"


def selector_text(selector: LabelSelector | None) -> str:
    """Return a label selector in kubectl's notation: ``app=web,tier in (a, b)``."""
    if selector is None:
        return "nothing"
    parts = [f"{key}={value}" for key, value in sorted((selector.match_labels or {}).items())]
    for requirement in selector.match_expressions:
        values = f" ({', '.join(requirement.values)})" if requirement.values else ""
        parts.append(f"{requirement.key} {requirement.operator}{values}")
    return ", ".join(parts) or "any labels"
