"""Phrases for groups of nodes, in terms of the pod's rules: ``the 9 nodes with pool=memory (nodeSelector)``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np

from bayplan.analysis.filter_matrix import FilterMatrix
from bayplan.objects.affinity import NodeSelectorRequirement, NodeSelectorTerm
from bayplan.objects.node import Node
from bayplan.objects.pod import Pod
from bayplan.objects.selectors import NodeTerm, compile_node_term, compile_required_node_affinity
from bayplan.state.arrays import Bools

SELECTION = "node selector or affinity"
"""The text for a node that the pod's rules exclude, if no short rule does so by itself."""

_MAX_SELECTION = 80
"""Maximum length of a selector in the name of a group of nodes."""


class NodeGroups:
    """Composes phrases for groups of a decision's nodes.

    Args:
        matrix: the matrix of the decision.
        pod: the pod.
        nodes: the nodes of the cluster, by name.
    """

    def __init__(self, matrix: FilterMatrix, pod: Pod, nodes: Mapping[str, Node]) -> None:
        self._matrix = matrix
        self._pod = pod
        self._by_name = nodes

    def at(self, rows: Bools) -> list[Node]:
        """Return the nodes of these rows."""
        names = (self._matrix.nodes[row] for row in np.flatnonzero(rows).tolist())
        return [self._by_name[name] for name in names if name in self._by_name]

    def suffix(self, rows: Bools) -> str:
        """Return a phrase that distinguishes the nodes of these rows from all others; "" for all nodes."""
        if rows.all():
            return ""
        selection = self.selection
        if selection and bool((rows == self.selected()).all()):
            return f" {selection}"
        return " that it may use"

    @property
    def selection(self) -> str:
        """Return the nodes that the pod selects, in words: ``with pool=gpu (nodeSelector)``; "" if it has no rules about nodes."""
        wanted = ", ".join(f"{key}={value}" for key, value in (self._pod.spec.node_selector or {}).items())
        terms = " or ".join(term_text(term) for term in self.terms())
        if wanted and not terms:
            text = f"with {wanted} (nodeSelector)"
        elif terms and not wanted:
            text = f"with {terms} (node affinity)"
        elif terms:
            text = f"with {wanted} and {terms}"
        else:
            return ""
        return text if len(text) <= _MAX_SELECTION else "selected by its node selector and affinity"

    def only(self, rows: Bools) -> str:
        """Return a phrase for the only node of these rows: ``the only node that it may use, n1``."""
        name = self._matrix.nodes[int(np.flatnonzero(rows)[0])]
        return f"the only node{self.suffix(rows)}, {name}"

    def none_of(self, rows: Bools, verb: str, rest: str) -> str:
        """Return a clause such as ``none of 3 nodes has room``; without a verb, only its subject."""
        count, suffix = int(rows.sum()), self.suffix(rows)
        if not verb:
            return f"none of the {count:,} nodes{suffix}" if suffix and count > 1 else "no node"
        if count == 1:
            negated = f"has no {rest}" if verb == "has" else "does not take it"
            return f"{self.only(rows)}, {negated}"
        return f"none of {f'the {count:,} nodes{suffix}' if suffix else f'{count:,} nodes'} {verb} {rest}"

    def every(self, rows: Bools) -> str:
        """Return a phrase for all nodes of these rows: ``all 3 nodes with pool=gpu (nodeSelector)``."""
        count = int(rows.sum())
        if count == 1:
            return f"{self.only(rows)},"
        return f"{'both' if count == 2 else f'all {count:,}'} nodes{self.suffix(rows)}"

    def selected(self) -> Bools:
        """Return bool[nodes], the nodes that match the pod's own node selector and required affinity."""
        required = compile_required_node_affinity(self._pod)
        found: Bools = np.zeros(len(self._matrix.nodes), dtype=np.bool_)
        for row, name in enumerate(self._matrix.nodes):
            node = self._by_name.get(name)
            found[row] = node is not None and required.matches(node.metadata.labels, name)
        return found & self._matrix.known

    def terms(self) -> tuple[NodeSelectorTerm, ...]:
        """Return the terms of the required node affinity."""
        affinity = self._pod.spec.affinity.node_affinity if self._pod.spec.affinity is not None else None
        required = affinity.required_during_scheduling_ignored_during_execution if affinity is not None else None
        return required.node_selector_terms if required is not None else ()

    def rule_against(self, node: Node | None) -> str:
        """Return the first rule of the pod that excludes a node by itself; `SELECTION` if no rule does, or the node is unknown."""
        excluding = (text for text, alternatives in self._rules if node is not None and not _meets(node, alternatives))
        return next(excluding, SELECTION)

    @cached_property
    def _rules(self) -> list[tuple[str, Sequence[NodeTerm]]]:
        """The pod's short rules about nodes, each with alternatives of which a node must meet one.

        A rule is a label of the node selector or a requirement of the node affinity. If the affinity has several terms,
        they form one rule.
        """
        selector, terms = self._pod.spec.node_selector or {}, self.terms()
        rules = [(f"{key}={value}", [_compiled(_label_term(key, value))]) for key, value in selector.items()]
        if len(terms) > 1:
            rules.append((" or ".join(map(term_text, terms)), [_compiled(term) for term in terms]))
        for term in terms if len(terms) == 1 else ():
            rules += [(term_text(each), [_compiled(each)]) for each in _requirements(term)]
        found = [(f"requires {text}", alternatives) for text, alternatives in rules]
        return [each for each in found if len(each[0]) <= _MAX_SELECTION]

    def unmet(self, term: NodeSelectorTerm) -> str:
        """Return the requirements of a term that no node meets, joined by "and"; "" if some node meets each of them."""
        return " and ".join(term_text(each) for each in self._unmet(term))

    def unmet_values(self, terms: Sequence[NodeSelectorTerm]) -> dict[str, list[str]]:
        """Return the values of labels that the terms require and no node has, by key."""
        found: dict[str, list[str]] = {}
        for part in (each for term in terms for each in self._unmet(term)):
            for requirement in part.match_expressions:
                if requirement.operator == "In":
                    found.setdefault(requirement.key, []).extend(requirement.values or ())
        return found

    def _unmet(self, term: NodeSelectorTerm) -> list[NodeSelectorTerm]:
        nodes = self._by_name.values()
        rules = ((each, [_compiled(each)]) for each in _requirements(term))
        return [each for each, rule in rules if not any(_meets(node, rule) for node in nodes)]


def _meets(node: Node, alternatives: Sequence[NodeTerm]) -> bool:
    return any(term.matches(node.metadata.labels, node.metadata.name) for term in alternatives)


def _compiled(term: NodeSelectorTerm) -> NodeTerm:
    return compile_node_term(term, "")


def _label_term(key: str, value: str) -> NodeSelectorTerm:
    return NodeSelectorTerm(match_expressions=(NodeSelectorRequirement(key=key, operator="In", values=(value,)),))


def _requirements(term: NodeSelectorTerm) -> list[NodeSelectorTerm]:
    """Split a term into terms of one requirement each."""
    return [
        *(NodeSelectorTerm(match_expressions=(each,)) for each in term.match_expressions),
        *(NodeSelectorTerm(match_fields=(each,)) for each in term.match_fields),
    ]


def requirement_text(requirement: NodeSelectorRequirement) -> str:
    """Return an expression in readable form: ``disk In (ssd, nvme)``."""
    values = f" ({', '.join(requirement.values)})" if requirement.values else ""
    return f"{requirement.key} {requirement.operator}{values}"


def term_text(term: NodeSelectorTerm) -> str:
    """Return a term of a node selector in readable form."""
    return " and ".join(requirement_text(each) for each in (*term.match_expressions, *term.match_fields))
