"""Node selectors over a view of rows: the nodes whose labels and names match."""

from __future__ import annotations

from bayplan.objects.selectors import CompiledNodeSelector, FieldRequirement, NodeTerm, RequiredNodeAffinity, Selector
from bayplan.state.arrays import Bools
from bayplan.state.views import Rows


def required_node_affinity_matches(required: RequiredNodeAffinity, rows: Rows) -> Bools:
    """Return which nodes match a pod's node selector and required node affinity."""
    matching = rows.everywhere(True)
    if required.labels is not None:
        matching = matching & labels_match(required.labels, rows)
    if required.node_selector is not None:
        matching = matching & node_selector_matches(required.node_selector, rows)
    return matching


def node_selector_matches(selector: CompiledNodeSelector, rows: Rows) -> Bools:
    """Return which rows match any of the terms."""
    matched = rows.everywhere(False)
    for term in selector.terms:
        if not term.errors:
            matched = matched | node_term_matches(term, rows)
    return matched


def node_term_matches(term: NodeTerm, rows: Rows) -> Bools:
    """Return which rows match all requirements of a valid term."""
    matched = labels_match(term.labels, rows) if term.labels is not None else rows.everywhere(True)
    for requirement in term.fields:
        matched = matched & field_matches(requirement, rows)
    return matched


def labels_match(selector: Selector, rows: Rows) -> Bools:
    """Return which rows' labels match a selector."""
    matched = rows.everywhere(not selector.matches_nothing)
    for requirement in selector.requirements:
        matched = matched & rows.matches(requirement)
    return matched


def field_matches(requirement: FieldRequirement, rows: Rows) -> Bools:
    """Return which rows' names match a requirement."""
    if requirement.field != "metadata.name":
        return rows.everywhere(requirement.matches(""))
    matched: Bools = rows.named((requirement.value,)) == requirement.equal
    return matched
