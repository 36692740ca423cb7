"""HTTP extenders as the engine uses them: requests, the meaning of responses, and the handling of failures.

`bayplan.extender.client` implements HTTP. Source:
https://kubernetes.io/docs/reference/config-api/kube-scheduler-config.v1/#Extender
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar, TypeAlias, TypeVar

import msgspec

from bayplan.framework.configuration.document import Extender as ExtenderConfiguration
from bayplan.framework.extender_answers import (
    AnswerError,
    MetaVictims,
    bind_error,
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


class ExtenderFailure(msgspec.Struct, frozen=True):
    """An extender that could not be called, or whose response is unusable. `message` is upstream's error text."""

    message: str


Answer = TypeVar("Answer")

Send: TypeAlias = Callable[[str, Mapping[str, object]], object]
"""Sends arguments to a verb of an extender; returns the response's JSON value as plain data, or an `ExtenderFailure`.

Arguments contain plain data and typed objects, under the names of upstream's Go structs (``Pod``, ``NodeNames``).
"""


class Filtered(msgspec.Struct, frozen=True):
    """The result of an extender's filter verb.

    Attributes:
        nodes: names of the remaining nodes, in the extender's order, each once.
        failed, unresolvable: the reasons for rejected nodes, by name; for unresolvable nodes, preemption can't help.
        bare: whether the extender returned node objects instead of names; from then on, the cycle sees only these.
    """

    nodes: tuple[str, ...]
    failed: Mapping[str, str]
    unresolvable: Mapping[str, str]
    bare: bool


class Victims(msgspec.Struct, frozen=True):
    """The pods to evict from a node, most important first, and the number of them that a disruption budget protects."""

    pods: tuple[Pod, ...]
    num_pdb_violations: int


class Extender:
    """One extender of a configuration.

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

    def filter(self, pod: Pod, nodes: Sequence[Node]) -> Filtered | ExtenderFailure:
        """Return the nodes that can run the pod, according to the extender. Without a filter verb, all can."""
        names = tuple(node.metadata.name for node in nodes)
        if not self.is_filter:
            return Filtered(names, {}, {}, bare=False)
        answer = self._call(self._configuration.filter_verb, self._nodes_arguments(pod, nodes), filter_answer)
        if isinstance(answer, ExtenderFailure):
            return answer
        if answer.error:
            return ExtenderFailure(answer.error)
        if not self._by_name or answer.node_names is None:
            # As upstream, returned nodes are accepted even if they were not sent.
            returned = tuple(dict.fromkeys(answer.nodes or ()))
            return Filtered(returned, answer.failed, answer.unresolvable, bare=answer.nodes is not None)
        known = frozenset(names)
        for name in answer.node_names:
            if name not in known:
                return ExtenderFailure(unknown_node(self.name, name))
        return Filtered(tuple(dict.fromkeys(answer.node_names)), answer.failed, answer.unresolvable, bare=False)

    def prioritize(self, pod: Pod, nodes: Sequence[Node]) -> Sequence[tuple[str, int]] | ExtenderFailure:
        """Return (node name, score) pairs in the extender's order. The extender must have a prioritize verb."""
        return self._call(self._configuration.prioritize_verb, self._nodes_arguments(pod, nodes), host_priorities)

    def process_preemption(
        self, pod: Pod, victims: Mapping[str, Victims], pods_on: Callable[[str], Sequence[Pod] | None]
    ) -> Mapping[str, Victims] | ExtenderFailure:
        """Return the preemption candidates that the extender accepts, with their victims. It must have a preempt verb.

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
        answer = self._call(self._configuration.preempt_verb, arguments, meta_victims)
        if isinstance(answer, ExtenderFailure):
            return answer
        left: dict[str, Victims] = {}
        for name, meta in answer.items():
            pods = self._pods_of(name, meta, pods_on(name))
            if isinstance(pods, ExtenderFailure):
                return pods
            left[name] = Victims(pods, meta.num_pdb_violations)
        return left

    def _pods_of(
        self, node_name: str, meta: MetaVictims, pods: Sequence[Pod] | None
    ) -> tuple[Pod, ...] | ExtenderFailure:
        """Return the pods that a response names by uid, or a failure if one of them is not on the node."""
        if pods is None:
            return ExtenderFailure(f'nodeinfo not found for node name "{node_name}"')
        by_uid = {pod.metadata.uid: pod for pod in pods}
        for uid in meta.uids:
            if uid not in by_uid:
                return ExtenderFailure(
                    f"extender: {self.name} claims to preempt pod (UID: &{{{uid}}}) on node: {node_name}, "
                    "but the pod is not found on that node"
                )
        return tuple(by_uid[uid] for uid in meta.uids)

    def bind(self, pod: Pod, node_name: str) -> ExtenderFailure | None:
        """Bind a pod through the extender; return None or the failure. The extender must have a bind verb."""
        name, namespace, uid = pod.metadata.name, pod.metadata.namespace, pod.metadata.uid
        arguments = {"PodName": name, "PodNamespace": namespace, "PodUID": uid, "Node": node_name}
        text = self._call(self._configuration.bind_verb, arguments, bind_error)
        if isinstance(text, ExtenderFailure):
            return text
        return ExtenderFailure(text) if text else None

    def _nodes_arguments(self, pod: Pod, nodes: Sequence[Node]) -> Mapping[str, object]:
        if self._by_name:
            return {"Pod": pod, "Nodes": None, "NodeNames": [node.metadata.name for node in nodes]}
        return {"Pod": pod, "Nodes": {"metadata": {}, "items": list(nodes)}, "NodeNames": None}

    def _call(
        self, verb: str, arguments: Mapping[str, object], read: Callable[[object], Answer]
    ) -> Answer | ExtenderFailure:
        value = self._send(verb, arguments)
        if isinstance(value, ExtenderFailure):
            return value
        try:
            return read(value)
        except AnswerError as problem:
            return ExtenderFailure(str(problem))


def unknown_node(extender: str, name: str) -> str:
    """Return the error for an extender that returns a node that it was not sent."""
    return f'extender "{extender}" claims a filtered node "{name}" which is not found in the input node list'
