"""HTTP extenders as the engine uses them: requests, the meaning of responses, and the handling of failures.

`bayplan.extender.client` implements HTTP. Source:
https://kubernetes.io/docs/reference/config-api/kube-scheduler-config.v1/#Extender
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import ClassVar, TypeAlias

import msgspec

from bayplan.framework.configuration.document import Extender as ExtenderConfiguration
from bayplan.framework.extender_answers import (
    ExtenderFailure,
    Filtered,
    MetaVictims,
    check_bound,
    filter_answer,
    host_priorities,
    meta_victims,
)
from bayplan.framework.plugin import MAX_NODE_SCORE
from bayplan.objects.node import Node
from bayplan.objects.pod import Pod

EXTENDER = "Extender"
"""Stands for all extenders among the plugins that rejected a pod; every event brings such a pod back."""

MAX_EXTENDER_PRIORITY = 10
"""The maximum score of an extender; the minimum is 0."""


Send: TypeAlias = Callable[[str, Mapping[str, object]], object]
"""Sends arguments to a verb of an extender; returns the response's JSON value as plain data, or raises `ExtenderFailure`.

Arguments contain plain data and typed objects, under the names of upstream's Go structs (``Pod``, ``NodeNames``).
"""


class Victims(msgspec.Struct, frozen=True):
    """The pods to evict from a node, most important first, and the number of them that a disruption budget protects."""

    pods: tuple[Pod, ...]
    num_pdb_violations: int


class Extender:
    """One extender of a configuration. Calls of a verb, which the extender must have, may raise `ExtenderFailure`.

    Attributes:
        name: the URL prefix, which identifies the extender in messages.
        ignorable: whether cycles continue if the extender can't be called.
        weight: the weight of its scores.
        scale: the factor that scales its scores to the range of plugins' scores.
        is_filter, is_prioritizer, is_binder, supports_preemption: the verbs that it supports.
    """

    scale: ClassVar[int] = MAX_NODE_SCORE // MAX_EXTENDER_PRIORITY

    def __init__(self, configuration: ExtenderConfiguration, send: Send) -> None:
        self.name = configuration.url_prefix
        self.ignorable = configuration.ignorable
        self.weight = configuration.weight
        self.is_filter = bool(configuration.filter_verb)
        self.is_prioritizer = bool(configuration.prioritize_verb)
        self.is_binder = bool(configuration.bind_verb)
        self.supports_preemption = bool(configuration.preempt_verb)
        self._configuration = configuration
        self._by_name = configuration.node_cache_capable
        self._managed = frozenset(resource.name for resource in configuration.managed_resources)
        self._send = send

    def is_interested(self, pod: Pod) -> bool:
        """Return whether the extender manages a resource that a pod requests, or declares no managed resources."""
        if not self._managed:
            return True
        containers = (*pod.spec.containers, *pod.spec.init_containers)
        resources = (container.resources for container in containers)
        return any(not self._managed.isdisjoint((*each.requests, *each.limits)) for each in resources)

    def filter(self, pod: Pod, nodes: Sequence[Node]) -> Filtered:
        """Return the nodes that can run the pod, according to the extender."""
        value = self._send(self._configuration.filter_verb, self._nodes_arguments(pod, nodes))
        found = filter_answer(value, by_name=self._by_name)
        if not found.bare:
            # As upstream, returned node objects are accepted even if they were not sent.
            self.check_known(found.nodes, {node.metadata.name for node in nodes})
        return found

    def check_known(self, names: Sequence[str], known: Collection[str]) -> None:
        """Raise ExtenderFailure if the extender returned a node that is not known."""
        for name in names:
            if name not in known:
                raise ExtenderFailure(
                    f'extender "{self.name}" claims a filtered node "{name}" which is not found in the input node list'
                )

    def prioritize(self, pod: Pod, nodes: Sequence[Node]) -> Sequence[tuple[str, int]]:
        """Return (node name, score) pairs in the extender's order."""
        return host_priorities(self._send(self._configuration.prioritize_verb, self._nodes_arguments(pod, nodes)))

    def process_preemption(
        self, pod: Pod, victims: Mapping[str, Victims], pods_on: Callable[[str], Sequence[Pod] | None]
    ) -> Mapping[str, Victims]:
        """Return the preemption candidates that the extender accepts, with their victims.

        Args:
            pod: the preemptor.
            victims: the victims by node name.
            pods_on: the function that returns the pods on a node by its name, or None if there is no such node.
        """
        by_node = {
            name: {
                "Pods": [{"UID": victim.metadata.uid} for victim in found.pods] if self._by_name else found.pods,
                "NumPDBViolations": found.num_pdb_violations,
            }
            for name, found in sorted(victims.items())
        }
        arguments = {
            "Pod": pod,
            "NodeNameToVictims": None if self._by_name else by_node,
            "NodeNameToMetaVictims": by_node if self._by_name else None,
        }
        answer = meta_victims(self._send(self._configuration.preempt_verb, arguments))
        return {
            name: Victims(self._pods_of(name, meta, pods_on(name)), meta.num_pdb_violations)
            for name, meta in answer.items()
        }

    def _pods_of(self, node_name: str, meta: MetaVictims, pods: Sequence[Pod] | None) -> tuple[Pod, ...]:
        """Return the pods that a response names by uid; all of them must be on the node."""
        if pods is None:
            raise ExtenderFailure(f'nodeinfo not found for node name "{node_name}"')
        by_uid = {pod.metadata.uid: pod for pod in pods}
        for uid in meta.uids:
            if uid not in by_uid:
                raise ExtenderFailure(
                    f"extender: {self.name} claims to preempt pod (UID: &{{{uid}}}) on node: {node_name}, "
                    "but the pod is not found on that node"
                )
        return tuple(by_uid[uid] for uid in meta.uids)

    def bind(self, pod: Pod, node_name: str) -> None:
        """Bind a pod through the extender."""
        name, namespace, uid = pod.metadata.name, pod.metadata.namespace, pod.metadata.uid
        arguments = {"PodName": name, "PodNamespace": namespace, "PodUID": uid, "Node": node_name}
        check_bound(self._send(self._configuration.bind_verb, arguments))

    def _nodes_arguments(self, pod: Pod, nodes: Sequence[Node]) -> Mapping[str, object]:
        if self._by_name:
            return {"Pod": pod, "Nodes": None, "NodeNames": [node.metadata.name for node in nodes]}
        return {"Pod": pod, "Nodes": {"metadata": {}, "items": list(nodes)}, "NodeNames": None}
