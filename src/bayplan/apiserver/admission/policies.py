"""The bindings, match conditions and variables that validating and mutating admission policies share."""

from __future__ import annotations

from dataclasses import dataclass

from bayplan.apiserver.admission.conditions import Conditions, compile_conditions
from bayplan.apiserver.admission.params import name_of
from bayplan.apiserver.model.expressions import Expression, Scope, compile_expression, variable_type
from bayplan.base.plain_data import Document, part, parts

Variables = tuple[tuple[str, Expression], ...]
"""The names of a policy's variables, and their compiled expressions."""


@dataclass(frozen=True, eq=False)
class BoundPolicy:
    """A compiled policy with its bindings.

    Attributes:
        document: the policy object.
        bindings: the binding objects.
        conditions: the match conditions.
        variables: the variables of the policy.
    """

    document: Document
    bindings: list[Document]
    conditions: Conditions
    variables: Variables

    @property
    def name(self) -> str:
        """The name of the policy."""
        return name_of(self.document)

    @property
    def fails(self) -> bool:
        """Whether a failure denies the request."""
        return part(self.document, "spec").get("failurePolicy") != "Ignore"


def compile_common(policy: Document) -> tuple[Conditions, Variables, Scope]:
    """Return a policy's match conditions and variables, and the scope of the expressions that use them."""
    spec = part(policy, "spec")
    scope = Scope(params=isinstance(spec.get("paramKind"), dict), variables=())
    found: list[tuple[str, Expression]] = []
    for variable in parts(spec, "variables"):
        name = str(variable.get("name") or "")
        expression = compile_expression(str(variable.get("expression") or ""), scope)
        found.append((name, expression))
        scope = scope.with_variable(name, variable_type(expression))
    variables = tuple(found)
    return compile_conditions(spec, scope, variables), variables, scope
