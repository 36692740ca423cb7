"""Controllers of the virtual cluster where a server has to be more patient with what others will write."""

from __future__ import annotations

from bayplan.apiserver.bridge.narrator import Narrator
from bayplan.apiserver.bridge.node_facts import says_whether_ready
from bayplan.base.durations import SECOND_NS
from bayplan.cluster.admission import PodAdmission
from bayplan.cluster.controllers.controller import ControllerTools
from bayplan.cluster.controllers.node_lifecycle import NodeLifecycleController
from bayplan.cluster.controllers.pod_gc import PodGarbageCollector
from bayplan.objects.pod import Pod, PodSpec

_QUARANTINE_NS = 40 * SECOND_NS


class PatientNodeLifecycle(NodeLifecycleController):
    """Node lifecycle that waits for somebody to say whether a node is ready before it takes off the taint of new nodes.

    Args:
        tools: see `ControllerTools`.
        narrator: tells of nodes that are new.
    """

    def __init__(self, tools: ControllerTools, narrator: Narrator) -> None:
        super().__init__(tools)
        self._narrator = narrator
        self._registered: dict[str, None] = {}

    def reconcile(self, key: str, now_ns: int) -> int | None:
        """Set taints and evict pods, once the node has said whether it is ready."""
        node = self.store.nodes.get(key)
        if node is None:
            self._registered.pop(key, None)
        else:
            if key not in self._registered:
                self._registered[key] = None
                self._narrator.registered(node)
            if not says_whether_ready(node):
                return None
        return super().reconcile(key, now_ns)


class PatientPodGarbageCollector(PodGarbageCollector):
    """Pod garbage collection that gives a node forty seconds to come, or to come back."""

    def __init__(self, tools: ControllerTools) -> None:
        super().__init__(tools)
        self._missing_since: dict[str, int] = {}

    def reconcile(self, key: str, now_ns: int) -> int | None:
        """Remove the pods of a node that has been gone for long enough."""
        if key in self.store.nodes or not self.store.pods_on(key):
            self._missing_since.pop(key, None)
            return None
        until_ns = self._missing_since.setdefault(key, now_ns) + _QUARANTINE_NS
        return until_ns if now_ns < until_ns else super().reconcile(key, now_ns)


class NoAdmission(PodAdmission):
    """Templates as they are: admission is the API's, when the pod is created."""

    def admit(self, pod: Pod) -> PodSpec:
        """Return the very spec."""
        return pod.spec

    def charge(self, pod: Pod) -> None:
        """Leave quotas to the API."""
