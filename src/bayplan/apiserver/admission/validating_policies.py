"""ValidatingAdmissionPolicies: match requests, evaluate expressions, and deny requests.

Audit annotations are evaluated, because a failure can deny the request, but they are not stored: Bayplan has no audit
log.

Sources: k8s.io/apiserver v0.36.3, pkg/admission/plugin/policy/validating; KEP-3488.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from bayplan.apiserver.admission.attributes import Attributes, ObjectLister
from bayplan.apiserver.admission.conditions import MatchProblem
from bayplan.apiserver.admission.params import Misconfigured, applying_bindings, bound_policies, name_of
from bayplan.apiserver.admission.policies import BoundPolicy, compile_common
from bayplan.apiserver.admission.requests import admission_values
from bayplan.apiserver.model.errors import ApiError
from bayplan.apiserver.model.expressions import (
    Budget,
    Evaluation,
    Expression,
    OutOfBudgetError,
    cel_value,
    compile_expression,
)
from bayplan.base.plain_data import Document, part, parts, texts
from bayplan.cel.problems import RunProblem
from bayplan.cel.types import BOOL, NULL, STRING

POLICIES = "admissionregistration.k8s.io/validatingadmissionpolicies"
BINDINGS = "admissionregistration.k8s.io/validatingadmissionpolicybindings"
_CODES = {"Forbidden": 403, "Unauthorized": 401, "RequestEntityTooLarge": 413, "Invalid": 422}
_MAX_MESSAGE_BYTES = 5 * 1024


class Validation(NamedTuple):
    """One validation of a policy.

    Attributes:
        expression: must return true for a valid request.
        message: the message of a denial, or empty.
        message_expression: computes the message of a denial; None if there is none.
        reason: the reason of a denial, such as "Invalid".
    """

    expression: Expression
    message: str
    message_expression: Expression | None
    reason: str


@dataclass(frozen=True, eq=False)
class Policy(BoundPolicy):
    """A compiled ValidatingAdmissionPolicy.

    Attributes:
        validations: the validations, in order.
        annotations: the value expressions of the audit annotations.
    """

    validations: tuple[Validation, ...]
    annotations: tuple[Expression, ...]


class Denial(NamedTuple):
    """A denial of a request by a policy. The reason is empty if the policy could not be evaluated."""

    message: str
    reason: str = ""


class _Denied(NamedTuple):
    policy: Policy
    binding: Document | None
    denial: Denial


def compiled_policies(lister: ObjectLister) -> list[Policy]:
    """Return the policies that have bindings, sorted by name."""
    return [compile_policy(policy, bindings) for policy, bindings in bound_policies(lister, POLICIES, BINDINGS)]


def compile_policy(policy: Document, bindings: list[Document]) -> Policy:
    """Return a compiled policy. If an expression does not compile, its evaluation reports the error."""
    spec = part(policy, "spec")
    conditions, variables, scope = compile_common(policy)
    message_scope = scope._replace(authorizer=False)
    validations = tuple(
        Validation(
            compile_expression(str(each.get("expression") or ""), scope, (BOOL,)),
            str(each.get("message") or ""),
            compile_expression(str(each["messageExpression"]), message_scope, (STRING,))
            if each.get("messageExpression")
            else None,
            str(each.get("reason") or "Invalid"),
        )
        for each in parts(spec, "validations")
    )
    annotations = tuple(
        compile_expression(str(each.get("valueExpression") or ""), scope, (STRING, NULL))
        for each in parts(spec, "auditAnnotations")
    )
    return Policy(policy, bindings, conditions, variables, validations, annotations)


# --- a request --------------------------------------------------------------------------------------------------------


def validate(policies: list[Policy], attributes: Attributes) -> None:
    """Evaluate all policies for a request, and add their warnings to it.

    Raises:
        ApiError: a policy denies the request.
    """
    denied: list[_Denied] = []
    for policy in policies:
        denied += _denials(policy, attributes)
    if denied:
        raise _refusal(denied[0], attributes)


def _denials(policy: Policy, attributes: Attributes) -> Iterator[_Denied]:
    """Yield the denials of one policy."""
    values: Mapping[str, object] | None = None
    for each in applying_bindings(policy.document, policy.bindings, attributes):
        if isinstance(each, Misconfigured):
            if policy.fails:
                yield _Denied(policy, each.binding, Denial(each.message))
            continue
        if each.params and values is None:
            values = admission_values(attributes, each.match)
        for param in each.params:
            yield from _evaluate_binding(
                policy, each.binding, {**(values or {}), "params": cel_value(param)}, attributes
            )


def _evaluate_binding(
    policy: Policy, binding: Document, values: Mapping[str, object], attributes: Attributes
) -> Iterator[_Denied]:
    """Evaluate a policy for one parameter object. Yield denials or add warnings, depending on ``validationActions``.

    Failures of audit annotations always deny.
    """
    denials, failures = decisions(policy, values)
    for denial in denials:
        for action in texts(part(binding, "spec"), "validationActions"):
            if action == "Deny":
                yield _Denied(policy, binding, denial)
            elif action == "Warn":
                where = f"ValidatingAdmissionPolicy '{policy.name}' with binding '{name_of(binding)}'"
                attributes.warnings.append(f"Validation failed for {where}: {denial.message}")
    for failure in failures:
        yield _Denied(policy, binding, failure)


def decisions(policy: Policy, values: Mapping[str, object]) -> tuple[list[Denial], list[Denial]]:
    """Return the denials of a request by a policy, and the failures of its audit annotations.

    The binding's validation actions apply only to the first list: failures of annotations always deny.
    """
    without_namespace = {**values, "namespaceObject": None}
    try:
        if not policy.conditions.are_met(without_namespace):
            return [], []
    except MatchProblem as problem:
        return _failed(policy, str(problem)), []
    evaluation, budget = Evaluation(values, policy.variables), Budget()
    results: list[Denial | None] = []
    try:
        for validation in policy.validations:
            results.append(_result(policy, validation, evaluation, budget))
    except OutOfBudgetError as problem:
        return _failed(policy, str(problem)), []
    try:
        messages = _messages(policy, values, budget)
    except OutOfBudgetError as problem:
        return _failed(policy, f"failed messageExpression: {problem}") * len(results), []
    denials: list[Denial] = []
    for validation, message, result in zip(policy.validations, messages, results, strict=True):
        if result is None:
            continue
        if result.reason:
            text = message or validation.message.strip() or f"failed expression: {validation.expression.text.strip()}"
            denials.append(Denial(text, result.reason))
        elif policy.fails:
            denials.append(result)
    try:
        return denials, _annotation_failures(policy, values)
    except OutOfBudgetError as problem:
        return _failed(policy, str(problem)), []


def _failed(policy: Policy, message: str) -> list[Denial]:
    return [Denial(message)] if policy.fails else []


def _result(policy: Policy, validation: Validation, evaluation: Evaluation, budget: Budget) -> Denial | None:
    """Return None if a validation passes, else a Denial.

    The Denial has no message if the expression is false, and no reason if the evaluation failed.
    """
    try:
        holds = evaluation.run(validation.expression, budget)
    except RunProblem as problem:
        return Denial(str(problem))
    return None if holds is True else Denial("", validation.reason)


def _messages(policy: Policy, values: Mapping[str, object], budget: Budget) -> list[str]:
    """Return the result of each validation's message expression; "" if there is none, or if its result is unusable."""
    evaluation = Evaluation(values, policy.variables)
    found: list[str] = []
    for validation in policy.validations:
        message: object = ""
        if validation.message_expression is not None:
            try:
                message = evaluation.run(validation.message_expression, budget)
            except RunProblem:
                message = ""
        text = message.strip() if isinstance(message, str) else ""
        found.append("" if len(text.encode()) > _MAX_MESSAGE_BYTES or "\n" in text else text)
    return found


def _annotation_failures(policy: Policy, values: Mapping[str, object]) -> list[Denial]:
    evaluation, budget = Evaluation(values, policy.variables), Budget()
    failures: list[Denial] = []
    for annotation in policy.annotations:
        try:
            evaluation.run(annotation, budget)
        except RunProblem as problem:
            failures += _failed(policy, str(problem))
    return failures


def _refusal(first: _Denied, attributes: Attributes) -> ApiError:
    where = f"ValidatingAdmissionPolicy '{first.policy.name}'"
    if first.binding is not None:
        where += f" with binding '{name_of(first.binding)}'"
    message = f"{where} denied request: {first.denial.message}"
    error = attributes.forbidden(message)
    reason = first.denial.reason or "Invalid"
    details: Document = {**(error.details or {}), "causes": [{"message": message}]}
    return ApiError(_CODES.get(reason, 422), error.message, reason=reason, details=details)
