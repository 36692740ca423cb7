"""Node selectors on arrays of rows: each requirement is a table look-up by the nodes' codes in a label column."""

from __future__ import annotations

from bayplan.objects.selectors import CompiledNodeSelector, NodeTerm, RequiredNodeAffinity, Requirement, Selector
from bayplan.state.arrays import Bools
from bayplan.state.views import Rows


def meets(requirement: Requirement, rows: Rows) -> Bools:
    """Return which nodes meet a requirement on their labels."""
    column = rows.state.nodes.label_column(requirement.key)
    codes = rows.label(requirement.key)
    if requirement.operator == "In" and len(requirement.values) == 1:
        # If every node has its own value, a table of all values for each value that is required costs too much.
        found: Bools = codes == column.index.get(requirement.values[0], -2)
        return found
    return column.table(requirement)[codes]


def matches_labels(selector: Selector, rows: Rows) -> Bools:
    """Return which nodes have labels that match a selector."""
    matched = rows.everywhere(not selector.matches_nothing)
    for requirement in selector.requirements:
        matched &= meets(requirement, rows)
    return matched


def matches_term(term: NodeTerm, rows: Rows) -> Bools:
    """Return which nodes match a term of a node selector."""
    matched = rows.everywhere(not term.errors)
    if term.labels is not None:
        matched &= matches_labels(term.labels, rows)
    for field in term.fields:
        if field.field == "metadata.name":
            named = rows.row_numbers() == rows.state.nodes.row_of.get(field.value, -1)
            matched &= named == field.equal
        else:
            # No other field has a value.
            matched &= field.matches("")
    return matched


def matches_selector(selector: CompiledNodeSelector, rows: Rows) -> Bools:
    """Return which nodes match a node selector, by one of its terms."""
    matched = rows.everywhere(False)
    for term in selector.terms:
        matched |= matches_term(term, rows)
    return matched


def matching_rows(required: RequiredNodeAffinity, rows: Rows) -> Bools:
    """Return which nodes meet a pod's node selector and required node affinity."""
    matched = rows.everywhere(True)
    if required.labels is not None:
        matched &= matches_labels(required.labels, rows)
    if required.node_selector is not None:
        matched &= matches_selector(required.node_selector, rows)
    return matched
