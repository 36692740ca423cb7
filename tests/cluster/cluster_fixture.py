"""A simulated cluster with a clock and a scheduler that binds every pod, for tests of controllers."""

from __future__ import annotations

from itertools import count
from typing import Any

from bayplan.base.random_streams import RandomStreams
from bayplan.cluster.kubelet import KubeletOptions, RunOf
from bayplan.cluster.owned_pods import is_active
from bayplan.cluster.store import ChangeEvent
from bayplan.controllers.daemon_nodes import target_node
from bayplan.objects.kinds import decode
from bayplan.objects.meta import KubernetesObject
from bayplan.objects.node import Node
from bayplan.objects.pod import Pod
from bayplan.objects.selectors import find_untolerated_taint
from bayplan.sim.virtual_cluster import ClusterOptions, VirtualCluster

SECOND = 1_000_000_000
Json = dict[str, Any]
CONTAINERS = [{"name": "c", "image": "app:1", "resources": {"requests": {"cpu": "100m"}}}]


class ClusterFixture:
    """A cluster, its time, and every event so far.

    Args:
        nodes: The number of nodes at the start. They are called node-0, node-1, ...
        seed: The seed of the random parts of names and of the uids.
        binds: Whether `settle` binds pods.
    """

    def __init__(
        self,
        nodes: int = 0,
        *,
        seed: int = 1,
        binds: bool = True,
        start_delay_s: int = 0,
        termination_s: float = 0.0,
        run_of: RunOf | None = None,
        sync_delay_ns: int = 0,
        terminated_pod_threshold: int = 0,
    ) -> None:
        kubelet = KubeletOptions(
            start_delay_ns=start_delay_s * SECOND, termination_time_ns=int(termination_s * SECOND), run_of=run_of
        )
        options = ClusterOptions(
            kubelet=kubelet, sync_delay_ns=sync_delay_ns, terminated_pod_threshold=terminated_pod_threshold
        )
        self.cluster = VirtualCluster(RandomStreams(seed), options)
        self.store = self.cluster.store
        self.now_ns = 0
        self.binds = binds
        self.events: list[ChangeEvent] = []
        self._next_node = count()
        for number in range(nodes):
            self.apply(node(f"node-{number}"))
        self.settle()

    def apply(self, *items: Json | KubernetesObject) -> None:
        """Apply objects or documents at the present time."""
        for item in items:
            item = decode(item) if isinstance(item, dict) else item
            self.events += self.cluster.apply(item, self.now_ns)

    def delete(self, kind: type[KubernetesObject], key: str, **how: Any) -> None:
        """Delete an object at the present time."""
        self.events += self.cluster.delete(kind, key, self.now_ns, **how)

    def settle(self) -> None:
        """Let the controllers and the scheduler work until they have nothing left to do at the present time."""
        while True:
            changes = self._advance()
            if self.binds:
                for pod in list(self.store.pods.values()):
                    if not pod.spec.node_name and is_active(pod):
                        changes += self._bind(pod)
            if not changes:
                return
            self.events += changes

    def _advance(self) -> list[ChangeEvent]:
        wakeup = self.cluster.next_wakeup()
        return self.cluster.advance(self.now_ns) if wakeup is not None and wakeup <= self.now_ns else []

    def _bind(self, pod: Pod) -> list[ChangeEvent]:
        names = [name for name, item in self.store.nodes.items() if _admits(item, pod)]
        name = target_node(pod) or (names[next(self._next_node) % len(names)] if names else "")
        return self.cluster.bind(pod.key, name, self.now_ns) if name in names else []

    def run_until(self, seconds: float) -> None:
        """Advance the time to `seconds`, and stop at each time at which something is due."""
        end_ns = int(seconds * SECOND)
        self.settle()
        while (wakeup := self.cluster.next_wakeup()) is not None and wakeup <= end_ns:
            self.now_ns = max(self.now_ns, wakeup)
            self.settle()
        self.now_ns = end_ns
        self.settle()
        self.store.check_invariants()

    def pods(self, prefix: str = "") -> list[Pod]:
        """Return the pods whose names start with a prefix, sorted by name."""
        found = [pod for pod in self.store.pods.values() if pod.metadata.name.startswith(prefix)]
        return sorted(found, key=lambda pod: pod.metadata.name)

    def names(self, prefix: str = "") -> list[str]:
        """Return the names of the pods whose names start with a prefix, sorted."""
        return [pod.metadata.name for pod in self.pods(prefix)]

    def phases(self, prefix: str = "") -> dict[str, int]:
        """Return the number of pods by phase; pods that are being deleted count as ``Terminating``."""
        found: dict[str, int] = {}
        for pod in self.pods(prefix):
            phase = "Terminating" if pod.metadata.deletion_timestamp is not None else pod.status.phase
            found[phase] = found.get(phase, 0) + 1
        return found

    def added(self, kind: type[KubernetesObject]) -> list[str]:
        """Return the names of the objects of a kind in the order in which they were created."""
        return [item.object.metadata.name for item in self.events if item.kind is kind and item.type == "ADDED"]

    def deleted(self, kind: type[KubernetesObject]) -> list[str]:
        """Return the names of the objects of a kind in the order in which they were deleted."""
        return [item.object.metadata.name for item in self.events if item.kind is kind and item.type == "DELETED"]


def _admits(item: Node, pod: Pod) -> bool:
    return find_untolerated_taint(item.spec.taints, pod.spec.tolerations, comparison_operators=False) is None


def node(name: str, **spec: Any) -> Json:
    """Return the document of a node; keywords other than `labels` and `conditions` are fields of its spec."""
    labels, conditions = spec.pop("labels", {}), spec.pop("conditions", [])
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": spec,
        "status": {"allocatable": {"cpu": "8", "pods": "110"}, "conditions": conditions},
    }


def pod(name: str, **fields: Any) -> Json:
    """Return the document of a pod.

    The keywords `annotations`, `labels`, `finalizers`, `uid` and `status` are recognized; all others are fields of its
    spec.
    """
    metadata = {key: fields.pop(key) for key in ("annotations", "labels", "finalizers", "uid") if key in fields}
    status = fields.pop("status", {})
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", **metadata},
        "spec": {"containers": CONTAINERS, **fields},
        "status": status,
    }


def template(image: str = "app:1", *, annotations: dict[str, str] | None = None, **spec: Any) -> Json:
    """Return a pod template with the label ``app: x``; further keyword arguments are fields of its spec."""
    return {
        "metadata": {"labels": {"app": "x"}, "annotations": annotations or {}},
        "spec": {"containers": [{**CONTAINERS[0], "image": image}], **spec},
    }


_API_VERSIONS = {"ReplicationController": "v1", "Job": "batch/v1", "CronJob": "batch/v1"}


def workload(kind: str, name: str, *, image: str = "app:1", **spec: Any) -> Json:
    """Return the document of a workload; `spec` may contain a `template`, which replaces the default template."""
    body: Json = {"template": template(image), **spec}
    if kind not in ("Job", "CronJob", "ReplicationController"):
        body.setdefault("selector", {"matchLabels": {"app": "x"}})
    return {
        "apiVersion": _API_VERSIONS.get(kind, "apps/v1"),
        "kind": kind,
        "metadata": {"name": name, "namespace": "default"},
        "spec": body,
    }


def job(name: str, *, run_time: str | None = None, exit_code: int = 0, **spec: Any) -> Json:
    """Return the document of a Job whose pods run for `run_time` and then exit with `exit_code`."""
    annotations = {} if run_time is None else {"bayplan.io/run-time": run_time, "bayplan.io/exit-code": str(exit_code)}
    body = {"template": template(annotations=annotations, restartPolicy="Never"), **spec}
    return {**workload("Job", name), "spec": body}


def as_pod(item: object) -> Pod:
    """Return the object, which must be a pod."""
    assert isinstance(item, Pod)
    return item
