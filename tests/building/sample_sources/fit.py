"""A rule that is compiled in two variants and uses a class of another module."""

from __future__ import annotations

from bayplan.columns import Columns, Rule

from bayplan.base import go_arithmetic as go


class Fit(Rule):
    """The rule that a node needs enough free CPU."""

    def __init__(self, columns: Columns, cpu: int) -> None:
        super().__init__(columns)
        self.cpu = cpu

    def filter(self, row: int) -> int:
        """Return 1 if the node lacks free CPU, else what the base class returns."""
        columns = self.columns
        left = go.sub(columns.free[row], self.cpu)
        return 1 if left < 0 else Rule.filter(self, row)


def failing(rules: list[Rule], size: int) -> int:
    """Return the number of pairs of a rule and a row for which the rule fails."""
    total = 0
    for rule in rules:
        for row in range(size):
            if rule.filter(row) != 0:
                total += 1
    return total
