"""A naive implementation of selectors from the documentation on the typed objects, for valid selectors only."""

from collections.abc import Mapping

from bayplan.objects.affinity import NodeSelector, NodeSelectorRequirement
from bayplan.objects.meta import LabelSelector, LabelSelectorRequirement


def matches_requirement(item: LabelSelectorRequirement | NodeSelectorRequirement, labels: Mapping[str, str]) -> bool:
    """Return whether labels satisfy one requirement."""
    match item.operator:
        case "In":
            return item.key in labels and labels[item.key] in (item.values or ())
        case "NotIn":
            return not (item.key in labels and labels[item.key] in (item.values or ()))
        case "Exists":
            return item.key in labels
        case "DoesNotExist":
            return item.key not in labels
        case "Gt" | "Lt":
            try:
                number, bound = int(labels[item.key]), int((item.values or ())[0])
            except (KeyError, ValueError):
                return False
            return number > bound if item.operator == "Gt" else number < bound
    raise AssertionError(item.operator)


def matches_labels(selector: LabelSelector | None, labels: Mapping[str, str]) -> bool:
    """Return whether labels match a label selector; None matches nothing."""
    if selector is None:
        return False
    return all(labels.get(key) == value for key, value in selector.match_labels.items()) and all(
        matches_requirement(item, labels) for item in selector.match_expressions
    )


def matches_node(selector: NodeSelector, labels: Mapping[str, str], name: str) -> bool:
    """Return whether a node's labels and name match a node selector."""
    return any(
        (term.match_expressions or term.match_fields)
        and all(matches_requirement(item, labels) for item in term.match_expressions)
        and all(matches_requirement(item, {"metadata.name": name}) for item in term.match_fields)
        for term in selector.node_selector_terms
    )
