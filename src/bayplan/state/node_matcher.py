"""Node selectors for compiled rules: each requirement is a table look-up by the node's code in a label column."""

from __future__ import annotations

from typing import Any

import numpy as np

from bayplan.objects.selectors import CompiledNodeSelector, NodeTerm, RequiredNodeAffinity, Requirement, Selector
from bayplan.state.arrays import Bools
from bayplan.state.node_table import NodeTable


class LabelTest:
    """Tests one requirement on the labels of nodes."""

    def __init__(self, requirement: Requirement, nodes: NodeTable) -> None:
        self._requirement = requirement
        self._nodes = nodes
        self._codes: Any = None
        self._matching: Any = None
        self._last = 0

    def bind(self) -> None:
        """Bind the test to the current labels."""
        column = self._nodes.label_column(self._requirement.key)
        self._codes = column.codes
        self._matching = column.table(self._requirement).view(np.uint8)
        self._last = len(self._matching) - 1

    def matches(self, row: int) -> bool:
        """Return whether the node in a row meets the requirement."""
        code = self._codes[row]
        # A node without the key uses the last element of the table.
        return self._matching[code if code >= 0 else self._last] != 0

    def has_key(self, row: int) -> bool:
        """Return whether the node in a row has the label, whatever its value."""
        present: bool = self._codes[row] >= 0
        return present


class TermMatcher:
    """Matches one term of a node selector, or a ``nodeSelector``: all requirements must hold.

    Args:
        labels: the requirements on labels, or None.
        term: the term that contains `labels`; None for a ``nodeSelector``. An invalid term matches no node.
        nodes: the columns of the nodes.
    """

    def __init__(self, labels: Selector | None, term: NodeTerm | None, nodes: NodeTable) -> None:
        self._nodes = nodes
        self._never = (term is not None and bool(term.errors)) or (labels is not None and labels.matches_nothing)
        self._tests = [] if labels is None else [LabelTest(each, nodes) for each in labels.requirements]
        self._fields = () if term is None else term.fields
        self._wanted_rows: list[tuple[int, bool]] = []
        for field in self._fields:
            # Only metadata.name has a value; all other fields are "".
            if field.field != "metadata.name" and not field.matches(""):
                self._never = True

    def bind(self) -> None:
        """Bind the tests to the current nodes."""
        for test in self._tests:
            test.bind()
        self._wanted_rows = [
            (self._nodes.row_of.get(field.value, -1), field.equal)
            for field in self._fields
            if field.field == "metadata.name"
        ]

    def matches(self, row: int) -> bool:
        """Return whether the node in a row matches."""
        if self._never:
            return False
        for number in range(len(self._tests)):
            test = self._tests[number]
            if not test.matches(row):
                return False
        for wanted, equal in self._wanted_rows:  # noqa: SIM110 - Cython compiles no generators in such methods.
            if (row == wanted) != equal:
                return False
        return True


class SelectorMatcher:
    """Matches a node selector: one of its terms must match."""

    def __init__(self, selector: CompiledNodeSelector, nodes: NodeTable) -> None:
        self._terms = [TermMatcher(term.labels, term, nodes) for term in selector.terms]

    def bind(self) -> None:
        """Bind the terms to the current nodes."""
        for term in self._terms:
            term.bind()

    def matches(self, row: int) -> bool:
        """Return whether the node in a row matches."""
        for number in range(len(self._terms)):
            term = self._terms[number]
            if term.matches(row):
                return True
        return False


def matching_rows(required: RequiredNodeAffinity, nodes: NodeTable) -> Bools:
    """Return the rows that meet a pod's node selector and required node affinity (bool[rows in use])."""
    matched: Bools = np.ones(nodes.count, dtype=np.bool_)
    matchers: list[TermMatcher | SelectorMatcher] = []
    if required.labels is not None:
        matchers.append(TermMatcher(required.labels, None, nodes))
    if required.node_selector is not None:
        matchers.append(SelectorMatcher(required.node_selector, nodes))
    for matcher in matchers:
        matcher.bind()
        matched &= np.array([matcher.matches(row) for row in range(nodes.count)], dtype=np.bool_)
    return matched
