"""NodeDeclaredFeatures: a pod that needs a kubelet feature runs only on nodes that declare it. Source: KEP-5328."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from types import MappingProxyType

import numpy as np

from bayplan.framework.cycle_state import CycleState
from bayplan.framework.events import ActionType, ClusterEvent, EventResource, QueueingHint, hint
from bayplan.framework.plugin import PROCEED, FilterPlugin, Handle, Params, PreFilterPlugin, PreFilterResult, Reads
from bayplan.framework.status import ERROR_BIT, SKIP, UNRESOLVABLE_BIT, Status
from bayplan.objects.node import Node
from bayplan.objects.pod import Pod
from bayplan.plugins.key_spec import KeySpec
from bayplan.state.arrays import Codes
from bayplan.state.cluster_state import ClusterState
from bayplan.state.views import Rows

REASON = "node(s) didn't match Pod's required features"
NO_PRE_FILTER = 'error reading "PreFilterNodeDeclaredFeatures" from cycle-state: not found'
NOT_DECLARED = 1 | UNRESOLVABLE_BIT
STATE_MISSING = 2 | ERROR_BIT

RESTART_ALL_CONTAINERS = "RestartAllContainersOnContainerExits"
USER_NAMESPACES_HOST_NETWORK = "UserNamespacesHostNetworkSupport"
KNOWN_FEATURES = (
    "ExtendWebSocketsToKubelet",
    "InPlacePodLevelResourcesVerticalScaling",
    "InPlacePodVerticalScalingInitContainers",
    RESTART_ALL_CONTAINERS,
    USER_NAMESPACES_HOST_NETWORK,
)
"""The features that the release knows, in alphabetical order. Only two of them affect scheduling."""


class NodeDeclaredFeatures(PreFilterPlugin[KeySpec[frozenset[str]]], FilterPlugin[KeySpec[frozenset[str]]]):
    """Rejects nodes that don't declare a feature that the pod needs. Does nothing if its feature gate is disabled."""

    name = "NodeDeclaredFeatures"
    texts = MappingProxyType({NOT_DECLARED: REASON, STATE_MISSING: NO_PRE_FILTER})
    reads = Reads.NODES
    pre_reads = Reads.NOTHING
    compiles_requests = False
    compiles_volumes = False

    def __init__(self, arguments: object, handle: Handle) -> None:
        super().__init__(arguments, handle)
        self._enabled = handle.feature_gates.enabled("NodeDeclaredFeatures")

    def compile(self, pod: Pod, cluster: ClusterState) -> KeySpec[frozenset[str]]:
        """Infer the features that the pod needs."""
        return KeySpec(needed_features(pod))

    def pre_filter(
        self, spec: KeySpec[frozenset[str]], cluster: ClusterState, state: CycleState
    ) -> PreFilterResult | Status:
        """Return SKIP if the pod needs no feature."""
        return PROCEED if self._enabled and spec.key else SKIP

    def filter(self, spec: KeySpec[frozenset[str]], params: Params | None, rows: Rows) -> Codes:
        """Reject nodes that lack a needed feature."""
        if not self._enabled:
            return rows.verdicts()
        if params is None:
            return rows.verdicts((rows.everywhere(True), STATE_MISSING))
        nodes = [rows.state.nodes.nodes[row] for row in rows.row_numbers().tolist()]
        lacking = [node is not None and not spec.key <= known_features(node.status.declared_features) for node in nodes]
        return rows.verdicts((np.array(lacking, dtype=np.bool_), NOT_DECLARED))

    def events_to_register(self) -> Sequence[tuple[ClusterEvent, QueueingHint | None]]:
        """Register nodes that are added or change their declared features, and updates of the pod."""
        if not self._enabled:
            return ()
        node = ClusterEvent(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_DECLARED_FEATURE)
        pod_update = ClusterEvent(EventResource.POD, ActionType.UPDATE)
        return ((node, is_schedulable_after_node_change), (pod_update, is_schedulable_after_pod_update))


def needed_features(pod: Pod) -> frozenset[str]:
    """Return the features that a node must declare to run a pod."""
    spec = pod.spec
    needed = []
    rules = (rule for container in (*spec.containers, *spec.init_containers) for rule in container.restart_policy_rules)
    if any(rule.action == "RestartAllContainers" for rule in rules):
        needed.append(RESTART_ALL_CONTAINERS)
    if spec.host_network and spec.host_users is False:
        needed.append(USER_NAMESPACES_HOST_NETWORK)
    return frozenset(needed)


@lru_cache(maxsize=1024)
def known_features(declared: tuple[str, ...]) -> frozenset[str]:
    """Return the known features among those that a node declares.

    Kubelets declare features in alphabetical order. Like upstream, this merges two sorted lists, so it does not find a
    feature that is out of order.
    """
    found = []
    rest = iter(declared)
    feature = next(rest, None)
    for known in KNOWN_FEATURES:
        while feature is not None and feature.encode() < known.encode():
            feature = next(rest, None)
        if feature == known:
            found.append(known)
            feature = next(rest, None)
    return frozenset(found)


@hint(Node, new=True)
def is_schedulable_after_node_change(pod: Pod, before: Node | None, after: Node) -> bool:
    """Queue the pod if a node was added, or its declared features changed."""
    return before is None or before.status.declared_features != after.status.declared_features


@hint(Pod, new=True)
def is_schedulable_after_pod_update(pod: Pod, before: Pod | None, after: Pod) -> bool:
    """Queue the pod if its new version needs different features."""
    if after.metadata.uid != pod.metadata.uid or before is None:
        return False
    return needed_features(before) != needed_features(after)
