"""Two runs side by side: the pods that differ, and the first plugin that decided otherwise."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from bayplan.analysis.cluster_sentences import comparison_sentence
from bayplan.engine.decision import Decision

KINDS = ("moved", "only_a", "only_b")

Plain = dict[str, object]


@dataclass(frozen=True, kw_only=True)
class Side:
    """One of the runs.

    Attributes:
        name: what it is called.
        nodes: the node of each pod by ``namespace/name``, "" for one that waits.
        facts: what is told of it.
        decision: returns the full record of the decision that gave a pod its node, or its last one; None where there is none.
    """

    name: str
    nodes: Mapping[str, str]
    facts: Plain = field(default_factory=dict)
    decision: Callable[[str], Decision | None] = lambda pod: None


@dataclass(frozen=True)
class Difference:
    """A pod that has another place.

    Attributes:
        pod: ``namespace/name``. kind: one of `KINDS`. a_node, b_node: where it is; "" nowhere.
    """

    pod: str
    kind: str
    a_node: str
    b_node: str


def differences(a: Side, b: Side) -> tuple[list[Difference], int]:
    """Return the pods that differ, by name, and how many pods both have. Pods that only one of them has are left out."""
    found, both = [], 0
    for pod, a_node in a.nodes.items():
        b_node = b.nodes.get(pod)
        if b_node is None:
            continue
        both += 1
        if a_node != b_node:
            kind = "only_b" if not a_node else "moved" if b_node else "only_a"
            found.append(Difference(pod, kind, a_node, b_node))
    return sorted(found, key=lambda each: each.pod), both


def comparison_document(a: Side, b: Side, kind: str, offset: int, limit: int) -> Plain:
    """Return how two runs differ, with a page of the pods.

    Args:
        a, b: the runs. kind: one of `KINDS`, or "" for all. offset, limit: of the page.
    """
    found, both = differences(a, b)
    counts = {each: sum(one.kind == each for one in found) for each in KINDS}
    wanted = [each for each in found if kind in ("", each.kind)]
    used = [len({node for node in side.nodes.values() if node}) for side in (a, b)]
    placed = [sum(bool(node) for node in side.nodes.values()) for side in (a, b)]
    return {
        "sentence": comparison_sentence(
            a=a.name,
            b=b.name,
            pods=both,
            moved=counts["moved"],
            only_a=counts["only_a"],
            only_b=counts["only_b"],
            nodes_a=used[0],
            nodes_b=used[1],
        ),
        "a": {"name": a.name, **a.facts},
        "b": {"name": b.name, **b.facts},
        "counts": {"pods": both, **counts},
        "metrics": [
            {"name": "placed", "a": placed[0], "b": placed[1]},
            {"name": "waiting", "a": len(a.nodes) - placed[0], "b": len(b.nodes) - placed[1]},
            {"name": "nodes_used", "a": used[0], "b": used[1]},
        ],
        "items": [_row(a, b, each) for each in wanted[offset : offset + limit]],
        "total": len(wanted),
        "total_is_exact": True,
        "offset": offset,
        "limit": limit,
    }


def _row(a: Side, b: Side, difference: Difference) -> Plain:
    first = first_plugin(a.decision(difference.pod), b.decision(difference.pod), difference.a_node, difference.b_node)
    return {
        "pod": difference.pod,
        "kind": difference.kind,
        "a_node": difference.a_node,
        "b_node": difference.b_node,
        "first_plugin": first,
    }


def first_plugin(a: Decision | None, b: Decision | None, a_node: str, b_node: str) -> Plain | None:
    """Return the first plugin that decided otherwise about two nodes; None where nothing is known of that.

    A filter that rejected the other side's node comes first, with its reason. Else it is the scorer, in the order of the
    profile, whose preference for the one node over the other (in weighted points) is another on both sides.
    """
    if a is None or b is None:
        return None
    for node, decision, side in ((b_node, a, "a"), (a_node, b, "b")):
        status = decision.first_failure(decision.names.index(node)) if node in decision.names else None
        if status is not None:
            told = {"a": None, "b": None, side: status.message or status.code.text}
            return {"name": status.plugin, **told}
    preferences = [_preferences(decision, a_node, b_node) for decision in (a, b)]
    for name in dict.fromkeys((*a.scorers, *b.scorers)):
        in_a, in_b = (preference.get(name, 0) for preference in preferences)
        if in_a != in_b:
            return {"name": name, "a": in_a, "b": in_b}
    return None


def _preferences(decision: Decision, a_node: str, b_node: str) -> dict[str, int]:
    """Return by how many points each scorer preferred the one node to the other."""
    if a_node not in decision.names or b_node not in decision.names:
        return {}
    weighted, rows = decision.weighted, [decision.names.index(node) for node in (a_node, b_node)]
    points: Sequence[int] = (weighted[:, rows[0]] - weighted[:, rows[1]]).tolist()
    return dict(zip(decision.scorers, points, strict=True))
