"""Steps that change nodes: uncordon a node, add a label, or add a node."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
from msgspec.structs import replace

from bayplan.analysis.filter_matrix import CORDON, NODE_AFFINITY, TAINTS
from bayplan.analysis.node_taints import is_condition_taint, untolerated_taints
from bayplan.answers.drain_rules import CORDON_TAINT, uncordoned
from bayplan.answers.node_groups import describes_node
from bayplan.answers.node_shapes import NodeShape
from bayplan.answers.pod_diagnosis import PodDiagnosis
from bayplan.answers.shape_catalogue import ShapeCatalogue, labels_named_by
from bayplan.answers.steps import Step, StepKind
from bayplan.answers.trial import Trial
from bayplan.objects.node import Node
from bayplan.objects.pod import Pod
from bayplan.objects.requests import accounted_requests, node_amounts
from bayplan.objects.selectors import compile_required_node_affinity

_MAX_NODES = 8
_MAX_SHAPES = 12
"""Maximum number of shapes to try."""


def node_steps(diagnosis: PodDiagnosis, trial: Trial, node: str = "") -> Iterator[Step]:
    """Yield the steps that change an existing node. `node`: the only node to consider; "" for all."""
    yield from _uncordons(diagnosis, trial, node)
    yield from _labels(diagnosis, trial, node)


def _uncordons(diagnosis: PodDiagnosis, trial: Trial, only: str) -> Iterator[Step]:
    matrix = diagnosis.matrix
    if CORDON not in matrix.filters:
        return
    rejected = matrix.failing[matrix.filters.index(CORDON)]
    others = matrix.failing.sum(axis=0)
    rows = sorted(np.flatnonzero(rejected).tolist(), key=lambda row: (int(others[row]), matrix.nodes[row]))
    found = 0
    for row in rows:
        node = trial.node(matrix.nodes[row])
        if only not in ("", matrix.nodes[row]):
            continue
        if node is None or any(is_condition_taint(each) and each.key != CORDON_TAINT for each in node.spec.taints):
            # Uncordoning an unhealthy node does not make it healthy.
            continue
        name = node.metadata.name
        yield Step(
            StepKind.UNCORDON,
            f"uncordon {name}",
            CORDON,
            cost=found / (_MAX_NODES + 1),
            commands=(f"kubectl uncordon {name}",),
            nodes=frozenset((name,)),
            edit_nodes={name: uncordoned},
        )
        found += 1
        if found == _MAX_NODES:
            return


def _labels(diagnosis: PodDiagnosis, trial: Trial, only: str) -> Iterator[Step]:
    """Yield steps that label nodes with a pod's node selector, if the missing labels are ones that administrators assign."""
    matrix, wanted = diagnosis.matrix, diagnosis.pod.spec.node_selector or {}
    if NODE_AFFINITY not in matrix.filters or not wanted:
        return
    others = matrix.failing.sum(axis=0)
    rejected = matrix.failing[matrix.filters.index(NODE_AFFINITY)] & ((others <= 2) | bool(only))
    rows = sorted(np.flatnonzero(rejected).tolist(), key=lambda row: (int(others[row]), matrix.nodes[row]))
    found = 0
    for row in rows:
        node = trial.node(matrix.nodes[row])
        if node is None or only not in ("", node.metadata.name):
            continue
        missing = {key: text for key, text in wanted.items() if node.metadata.labels.get(key) != text}
        if not missing or any(map(describes_node, missing)):
            continue
        if not compile_required_node_affinity(diagnosis.pod).matches(
            {**node.metadata.labels, **missing}, node.metadata.name
        ):
            continue
        name = node.metadata.name
        shown = [f"{key}={text}" for key, text in missing.items()]
        yield Step(
            StepKind.LABEL,
            f"label {name} with {', '.join(shown)}",
            NODE_AFFINITY,
            cost=found / (_MAX_NODES + 1),
            commands=(f"kubectl label --overwrite node {name} {' '.join(shown)}",),
            nodes=frozenset((name,)),
            edit_nodes={name: partial(_labelled, missing)},
        )
        found += 1
        if found == _MAX_NODES:
            return


def _labelled(labels: dict[str, str], node: Node) -> Node:
    return replace(node, metadata=replace(node.metadata, labels={**node.metadata.labels, **labels}))


# --- new nodes --------------------------------------------------------------------------------------------------------


def added_nodes(pod: Pod, shapes: ShapeCatalogue, *, tailored: bool) -> Iterator[Step]:
    """Yield steps that add a node.

    Args:
        pod: the waiting pod.
        shapes: the available shapes.
        tailored: whether to tailor shapes to the pod, instead of using existing ones.
    """
    known = shapes.shapes
    if tailored:
        # Don't give nodes another pool's labels or hardware, unless there is no other way.
        apt = [shape for shape in known if shapes.can_match(shape, pod)] or known
        made = [shapes.tailored(shape, pod) for shape in apt]
        # Prefer shapes that differ least from existing nodes.
        chosen = sorted(made, key=lambda each: (each.distance, each.price, each.like))[:_MAX_SHAPES]
    else:
        chosen = [shape for shape in known if _can_accept(shape, pod)][:_MAX_SHAPES]
    highest = max((shape.price for shape in chosen), default=1.0) or 1.0
    for shape in chosen:
        yield Step(
            StepKind.ADD_NODE,
            f"add a node {shape.text_for(labels_named_by(pod))}",
            TAINTS,
            cost=min(shape.price / (2 * highest) + 0.1 * min(shape.distance, 4), 0.99),
            nodes=frozenset(("new-node",)),
            adds=shapes.objects(shape),
            copies=partial(shapes.objects, shape),
            group=shape.size,
        )


def _can_accept(shape: NodeShape, pod: Pod) -> bool:
    """Return whether a shape's labels, taints and size allow a pod; scheduling decides the rest."""
    node = shape.template
    if any(not is_condition_taint(taint) for taint in untolerated_taints(pod, node)):
        return False
    if not compile_required_node_affinity(pod).matches(node.metadata.labels, node.metadata.name):
        return False
    offered = node_amounts(node.status.allocatable)
    return all(offered.get(name, 0) >= amount for name, amount in accounted_requests(pod).requests.items())
