"""Match conditions: CEL expressions that decide whether a policy or webhook applies to a request.

Source: k8s.io/apiserver v0.36.3, pkg/admission/plugin/webhook/matchconditions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from bayplan.apiserver.model.expressions import (
    MATCH_BUDGET,
    Budget,
    Evaluation,
    Expression,
    OutOfBudgetError,
    Scope,
    compile_expression,
)
from bayplan.base.plain_data import Document, parts
from bayplan.cel.problems import RunProblem
from bayplan.cel.types import BOOL


class MatchProblem(Exception):
    """A match condition could not be evaluated, and the failure policy denies the request."""


class Conditions(NamedTuple):
    """Compiled match conditions.

    Attributes:
        expressions: the expressions, in order.
        fails: whether an evaluation error denies the request; otherwise the hook is skipped.
        variables: the variables of the policy, as names and expressions.
    """

    expressions: Sequence[Expression] = ()
    fails: bool = True
    variables: Sequence[tuple[str, Expression]] = ()

    def are_met(self, values: Mapping[str, object]) -> bool:
        """Return whether all conditions are true. If a condition cannot be evaluated and failures are ignored, return False.

        Raises:
            MatchProblem: a condition cannot be evaluated, none is false, and failures deny the request.
        """
        if not self.expressions:
            return True
        evaluation, budget = Evaluation(values, self.variables), Budget(MATCH_BUDGET)
        problems: list[str] = []
        found: list[object] = []
        try:
            for expression in self.expressions:
                try:
                    found.append(evaluation.run(expression, budget))
                except RunProblem as problem:
                    problems.append(str(problem))
        except OutOfBudgetError as problem:
            found, problems = [], [str(problem)]
        if any(value is False for value in found):
            return False
        if problems and self.fails:
            unique = list(dict.fromkeys(problems))
            raise MatchProblem(unique[0] if len(unique) == 1 else f"[{', '.join(unique)}]")
        return not problems


def compile_conditions(
    document: Document, scope: Scope, variables: Iterable[tuple[str, Expression]] = ()
) -> Conditions:
    """Return the compiled match conditions of a policy's spec or of a webhook."""
    compiled = [
        compile_expression(str(each.get("expression") or ""), scope, (BOOL,))
        for each in parts(document, "matchConditions")
    ]
    return Conditions(compiled, document.get("failurePolicy") != "Ignore", tuple(variables))
