"""Changes that would let a waiting pod fit, each tried by the engine on a small copy of the cluster.

The copy contains one of the nodes that the change would make fit, its pods, and everything that is neither node nor pod: all
that filters read to check a single node. Changes to other pods or other nodes are reported without being verified.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from bayplan.analysis.remedies import CORDON, CORDON_TAINT, FIT, REJECTING_EFFECTS, TAINTS, Remedy, remedies
from bayplan.analysis.run_source import RunSource
from bayplan.base.plain_data import Plain
from bayplan.engine.decision import Decision, Outcome
from bayplan.engine.records import RecordLevel
from bayplan.http_api.contract.pods import Remedies, RemedyRow
from bayplan.http_api.subject import Settings
from bayplan.http_api.trial_runner import TrialRunner, deadline_of
from bayplan.live.plugin_guard import GuardedRegistry
from bayplan.objects.affinity import Toleration
from bayplan.objects.kinds import kind_of
from bayplan.objects.meta import KubernetesObject
from bayplan.objects.node import Node
from bayplan.objects.pod import Pod
from bayplan.objects.requests import accounted_requests, node_amounts
from bayplan.objects.selectors import tolerates
from bayplan.sim.result import PodTimeline
from bayplan.state.resource_table import PODS

MAX_TRIED = 20
"""Maximum number of changes that are tried, those for the most nodes first."""

CALL_SECONDS = 1.0
"""Time limit for a call of a custom plugin, as a client waits for the response; after a timeout nothing more is tried."""


class Surroundings(NamedTuple):
    """The environment in which a change is tried.

    Attributes:
        settings: of the scheduler. others: objects that are neither nodes nor pods.
        nodes: by name. pods_on: pods by the name of their node.
        now_ns: the time.
    """

    settings: Settings
    others: Sequence[KubernetesObject]
    nodes: dict[str, Node]
    pods_on: dict[str, list[Pod]]
    now_ns: int


def remedies_document(
    source: RunSource, number: int, decision: Decision, life: PodTimeline, around: Surroundings
) -> Remedies:
    """Return the remedies of a decision that found no node.

    Args:
        source: a snapshot of the server. number, decision: the one to remedy. life: of its pod. around: the environment of
            trials.
    """
    if life.pod is None:
        return Remedies(items=[], why="nothing is known of the pod")
    found = remedies(source, number, decision, life)
    runner, items = TrialRunner(min(CALL_SECONDS, deadline_of(around.settings.registry))), []
    try:
        for place, each in enumerate(found):
            tried = place < MAX_TRIED and not runner.ended_by
            items.append(_item(each, life.pod, around, runner, tried=tried))
    finally:
        runner.close()
    why = "" if items else "no single change of the kinds that can be told would let the pod onto a node"
    return Remedies(items=items, why=why)


def _item(remedy: Remedy, pod: Pod, around: Surroundings, runner: TrialRunner, *, tried: bool) -> RemedyRow:
    told = RemedyRow(plugin=remedy.plugin, text=remedy.text, nodes=remedy.nodes, verified=False)
    node = around.nodes.get(remedy.nodes[0]) if remedy.nodes else None
    change = None if node is None or not tried else change_of(remedy.plugin, pod, node, around.pods_on)
    if change is None or node is None:
        return told
    verified = fits(change, pod, node, around, runner)
    return replace(told, verified=verified, objects=[document_of_object(item) for item in change])


def document_of_object(item: KubernetesObject) -> Plain:
    """Return a typed object as a document, with the fields that the typed form has."""
    kind = kind_of(type(item))
    document: Plain = {"apiVersion": kind.api_versions[0], "kind": kind.kind}
    plain = msgspec.to_builtins(item)
    assert isinstance(plain, dict)
    return document | plain


# --- the change -------------------------------------------------------------------------------------------------------


def change_of(plugin: str, pod: Pod, node: Node, pods_on: dict[str, list[Pod]]) -> list[KubernetesObject] | None:
    """Return the objects after a remedy's change; None for a remedy that changes other objects.

    Args:
        plugin: the only filter that the node fails. pod: the waiting one. node: that should fit. pods_on: by node.
    """
    if plugin == CORDON:
        taints = tuple(taint for taint in node.spec.taints if taint.key != CORDON_TAINT)
        return [replace(node, spec=replace(node.spec, unschedulable=False, taints=taints))]
    if plugin == TAINTS:
        return [_tolerating(pod, node)]
    if plugin == "NodeAffinity":
        wanted = pod.spec.node_selector or {}
        if not wanted:
            return None
        return [replace(node, metadata=replace(node.metadata, labels={**node.metadata.labels, **wanted}))]
    if plugin == FIT:
        return [_with_room(pod, node, pods_on.get(node.metadata.name, []))]
    return None


def _tolerating(pod: Pod, node: Node) -> Pod:
    missing = [
        Toleration(key=taint.key, operator="Equal", value=taint.value, effect=taint.effect)
        for taint in node.spec.taints
        if taint.effect in REJECTING_EFFECTS
        and not any(tolerates(each, taint, comparison_operators=True) for each in pod.spec.tolerations)
    ]
    return replace(pod, spec=replace(pod.spec, tolerations=(*pod.spec.tolerations, *missing)))


def _with_room(pod: Pod, node: Node, pods: Iterable[Pod]) -> Node:
    """Return the node with its capacity raised by what the pod lacks there."""
    wanted = accounted_requests(pod).requests | {PODS: 1}
    taken: dict[str, int] = {}
    for other in pods:
        for resource, amount in {**accounted_requests(other).requests, PODS: 1}.items():
            taken[resource] = taken.get(resource, 0) + amount
    offered = node_amounts(node.status.allocatable)
    more = {
        resource: taken.get(resource, 0) + amount
        for resource, amount in wanted.items()
        if taken.get(resource, 0) + amount > offered.get(resource, 0)
    }
    amounts = {resource: f"{amount}m" if resource == "cpu" else str(amount) for resource, amount in more.items()}
    return replace(node, status=replace(node.status, allocatable={**node.status.allocatable, **amounts}))


# --- verification -----------------------------------------------------------------------------------------------------


def fits(change: Sequence[KubernetesObject], pod: Pod, node: Node, around: Surroundings, runner: TrialRunner) -> bool:
    """Return whether the engine places the pod on the node after the change; `runner` runs custom plugins."""
    changed = {type(item): item for item in change}
    settings = around.settings
    try:
        scheduler = settings.assemble(
            settings.configuration,
            GuardedRegistry(settings.registry.plugins, runner),
            feature_gates=settings.feature_gates,
            seed=settings.seed,
            start_ns=around.now_ns,
            record_level=RecordLevel.OFF,
        )
        wanted = changed.get(Pod, pod)
        there = [*around.others, changed.get(Node, node), *around.pods_on.get(node.metadata.name, ())]
        for item in (*there, wanted):
            scheduler.handle(None, item, around.now_ns)
        report = scheduler.schedule_one(around.now_ns)
    except Exception:
        # A custom plugin probably failed, so nothing was verified.
        return False
    return report is not None and report.outcome is Outcome.SCHEDULED and report.pod.key == pod.key
