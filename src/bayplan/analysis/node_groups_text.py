"""Groups of nodes in words, by what the pod says about nodes: ``the 9 nodes with pool=memory (nodeSelector)``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from bayplan.analysis.filter_matrix import FilterMatrix
from bayplan.objects.affinity import NodeSelectorRequirement, NodeSelectorTerm
from bayplan.objects.node import Node
from bayplan.objects.pod import Pod
from bayplan.objects.selectors import compile_node_term, compile_required_node_affinity
from bayplan.state.arrays import Bools

_MAX_SELECTION = 80
"""Maximum length of a selector in the name of a group of nodes."""


class NodeGroups:
    """Names groups of the nodes of a decision.

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
        """Return some nodes."""
        names = (self._matrix.nodes[row] for row in np.flatnonzero(rows).tolist())
        return [self._by_name[name] for name in names if name in self._by_name]

    def suffix(self, rows: Bools) -> str:
        """Return a text that distinguishes some nodes from all others; "" for all nodes."""
        if rows.all():
            return ""
        selection = self.selection
        if selection and bool((rows == self.selected()).all()):
            return f" {selection}"
        return " that it may use"

    @property
    def selection(self) -> str:
        """Return the nodes that the pod selects, in words: ``with pool=gpu (nodeSelector)``; "" if it selects none."""
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
        return text if len(text) <= _MAX_SELECTION else "that match its node selector and affinity"

    def only(self, rows: Bools) -> str:
        """Return the only one of some nodes: ``the only node that it may use, n1``."""
        name = self._matrix.nodes[int(np.flatnonzero(rows)[0])]
        return f"the only node{self.suffix(rows)}, {name}"

    def none_of(self, rows: Bools, verb: str, rest: str) -> str:
        """Return that none of some nodes does something: ``none of 3 nodes has room``."""
        count, suffix = int(rows.sum()), self.suffix(rows)
        if not verb:
            return f"none of the {count:,} nodes{suffix}" if suffix and count > 1 else "no node"
        if count == 1:
            negated = f"has no {rest}" if verb == "has" else "does not take it"
            return f"{self.only(rows)}, {negated}"
        return f"none of {f'the {count:,} nodes{suffix}' if suffix else f'{count:,} nodes'} {verb} {rest}"

    def every(self, rows: Bools) -> str:
        """Return all of some nodes: ``all 3 nodes with pool=gpu (nodeSelector)``."""
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

    def common_rule(self, rows: Sequence[int]) -> str:
        """Return the first rule of the pod that excludes all of some nodes by itself; "" if there is none, or it is long.

        A rule is a label of the node selector, or a requirement of the only term of the node affinity, or all its terms.
        """
        nodes = [self._by_name.get(self._matrix.nodes[row]) for row in rows]
        if not nodes:
            return ""
        terms = self.terms()
        rules = [
            (f"requires {key}={wanted}", NodeSelectorTerm(match_expressions=(_equals(key, wanted),)))
            for key, wanted in (self._pod.spec.node_selector or {}).items()
        ]
        if len(terms) == 1:
            for each in terms[0].match_expressions:
                rules.append((f"requires {requirement_text(each)}", NodeSelectorTerm(match_expressions=(each,))))
            for each in terms[0].match_fields:
                rules.append((f"requires {requirement_text(each)}", NodeSelectorTerm(match_fields=(each,))))
        for text, term in rules:
            compiled = compile_node_term(term, "")
            if len(text) <= _MAX_SELECTION and not any(
                node is None or compiled.matches(node.metadata.labels, node.metadata.name) for node in nodes
            ):
                return text
        text = f"requires {' or '.join(map(term_text, terms))}"
        compiled_terms = [compile_node_term(term, "") for term in terms]
        excluded = len(terms) > 1 and not any(
            node is None or compiled.matches(node.metadata.labels, node.metadata.name)
            for compiled in compiled_terms
            for node in nodes
        )
        return text if excluded and len(text) <= _MAX_SELECTION else ""

    def unmet(self, term: NodeSelectorTerm) -> str:
        """Return the requirements of a term that no node meets by itself; "" if each is met by any node."""
        found = [
            requirement_text(each)
            for each in (*term.match_expressions, *term.match_fields)
            if not any(self._meets(node, each, field=each in term.match_fields) for node in self._by_name.values())
        ]
        return " and ".join(found)

    def _meets(self, node: Node, requirement: NodeSelectorRequirement, *, field: bool) -> bool:
        term = (
            NodeSelectorTerm(match_fields=(requirement,))
            if field
            else NodeSelectorTerm(match_expressions=(requirement,))
        )
        return compile_node_term(term, "").matches(node.metadata.labels, node.metadata.name)


def _equals(key: str, value: str) -> NodeSelectorRequirement:
    return NodeSelectorRequirement(key=key, operator="In", values=(value,))


def requirement_text(requirement: NodeSelectorRequirement) -> str:
    """Return an expression in readable form: ``disk In (ssd, nvme)``."""
    values = f" ({', '.join(requirement.values)})" if requirement.values else ""
    return f"{requirement.key} {requirement.operator}{values}"


def term_text(term: NodeSelectorTerm) -> str:
    """Return a term of a node selector in readable form."""
    return " and ".join(requirement_text(each) for each in (*term.match_expressions, *term.match_fields))
