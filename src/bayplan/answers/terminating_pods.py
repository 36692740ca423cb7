"""Terminating pods that make room for others when they are gone."""

from __future__ import annotations

from bayplan.answers.displaced_pods import stays_on_node
from bayplan.answers.trial import Trial
from bayplan.controllers.node_lifecycle import UNREACHABLE_TAINT
from bayplan.objects.node import Node
from bayplan.objects.pod import Pod


def terminating_pods(node: Node, trial: Trial) -> list[Pod]:
    """Return the terminating pods of a node that will be gone, and whose room no pod of the same name takes again.

    The kubelet of an unreachable node can't end its pods. Pods of a StatefulSet are recreated only when the old one is gone.
    """
    if any(taint.key == UNREACHABLE_TAINT for taint in node.spec.taints):
        return []
    return [pod for pod in trial.pods_on(node.metadata.name) if _makes_room(pod)]


def _makes_room(pod: Pod) -> bool:
    """Return whether a pod is terminating and will be gone, and is not recreated under its name."""
    owner = pod.metadata.controller()
    is_stateful = owner is not None and owner.kind == "StatefulSet"
    return pod.metadata.deletion_timestamp is not None and not stays_on_node(pod) and not is_stateful
