"""An API in process with controllers, a kubelet, a clock that tests set, and a scheduler that binds pods in turn."""

from __future__ import annotations

from typing import cast

import msgspec

from bayplan.apiserver.bridge.bridge import Bridge, BridgeOptions
from bayplan.apiserver.store.store import Store
from bayplan.cluster.kubelet import KubeletOptions
from bayplan.controllers.daemon_nodes import target_node
from tests.apiserver.client import Client, Document

API = "/api/v1"
APPS = "/apis/apps/v1/namespaces/default"
BATCH = "/apis/batch/v1/namespaces/default"
MAX_SLICES = 3_000


class BridgeFixture(Client):
    """A cluster whose controllers and kubelet run, over an API server in memory.

    Attributes:
        bridge: The `Bridge` between the API server's store and the simulated cluster.
    """

    def __init__(
        self,
        *,
        nodes: int = 0,
        store: Store | None = None,
        controllers: bool = True,
        kubelet: bool = True,
        pods: KubeletOptions | None = None,
        check: bool = False,
    ) -> None:
        super().__init__(store)
        options = BridgeOptions(
            controllers=controllers,
            kubelet=kubelet,
            pods=pods or KubeletOptions(container_statuses=True),
            check=check,
        )
        self.bridge = Bridge(self.backend, seed=1, options=options)
        for number in range(nodes):
            self.add_node(f"n{number}")
        self.run()

    def add_node(self, name: str, **spec: object) -> None:
        """Create a node with room for 110 pods."""
        status = {"capacity": {"cpu": "8", "memory": "16Gi", "pods": "110"}}
        self.post(f"{API}/nodes", {"metadata": {"name": name}, "spec": spec, "status": status})

    def run(self, seconds: float = 0, *, schedule: bool = True) -> None:
        """Advance the clock, do everything due at its exact time, and check that both stores agree at the end."""
        until = self.seconds + seconds
        self._settle(schedule)
        while (wakeup := self.bridge.next_wakeup()) is not None and wakeup <= until * 1e9:
            # As a float, the time in seconds is up to a microsecond early or late.
            self.seconds = max(self.seconds, (wakeup // 1000 + 3) / 1e6)
            self._settle(schedule)
        self.seconds = until
        self._settle(schedule)
        assert self.bridge.bugs() == {}
        self.bridge.check()

    def _settle(self, schedule: bool) -> None:
        for _ in range(MAX_SLICES):
            busy = self.bridge.advance(self.bridge.now_ns(), 500_000)
            if not (schedule and self.schedule()) and not busy:
                return
        raise AssertionError("it does not come to rest")

    def schedule(self) -> bool:
        """Bind the waiting pods to the nodes in turn; return whether any pod was waiting."""
        nodes = [
            node.key
            for node in self.bridge.store.nodes.values()
            if not node.spec.taints and not node.spec.unschedulable
        ]
        bound = False
        for number, pod in enumerate(list(self.bridge.store.pods.values())):
            # A pod of a DaemonSet may only run on the node that its affinity names.
            wanted = target_node(pod)
            places = nodes if not wanted else [name for name in self.bridge.store.nodes if name == wanted]
            if not pod.spec.node_name and pod.metadata.deletion_timestamp is None and places:
                binding = {"metadata": {"name": pod.metadata.name}, "target": {"name": places[number % len(places)]}}
                path = f"{API}/namespaces/{pod.metadata.namespace}/pods/{pod.metadata.name}/binding"
                bound = self.post(path, binding).status == 201 or bound
        return bound

    def names(self, table: str, namespace: str = "default") -> list[str]:
        """Return the names of the objects of a resource in a namespace."""
        return [item.name for item in self.store.between(table, namespace)]

    def documents(self, table: str, namespace: str = "default") -> list[Document]:
        """Return the objects of a resource in a namespace, as JSON documents."""
        return [cast("Document", msgspec.json.decode(item.raw)) for item in self.store.between(table, namespace)]

    def reported(self, kind: str, namespace: str = "default") -> list[str]:
        """Return reason and message of the events about objects of a kind, in the order of their creation."""
        items = sorted(self.store.between("events", namespace), key=lambda item: item.revision)
        events = [msgspec.json.decode(item.raw) for item in items]
        return [f"{event['reason']}: {event['message']}" for event in events if event["involvedObject"]["kind"] == kind]


def template(labels: dict[str, str] | None = None, image: str = "app:1", **metadata: object) -> Document:
    """Return a pod template with fields, such as probes, that Bayplan's structs do not have."""
    container: Document = {
        "name": "c",
        "image": image,
        "env": [{"name": "GREETING", "value": "hello"}],
        "livenessProbe": {"httpGet": {"port": 80}},
    }
    return {"metadata": {"labels": labels or {"app": "x"}, **metadata}, "spec": {"containers": [container]}}


def workload(kind: str, name: str, spec: Document | None = None, **template_fields: object) -> Document:
    """Return a workload of the group ``apps`` that selects pods with the label ``app: x``."""
    made = template(**template_fields)  # type: ignore[arg-type]
    whole: Document = {"selector": {"matchLabels": {"app": "x"}}, "template": made, **(spec or {})}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name}, "spec": whole}


def job(name: str, run_time: str = "", spec: Document | None = None) -> Document:
    """Return a Job; with `run_time`, such as ``10s``, its pods finish after that time."""
    annotations = {"annotations": {"bayplan.io/run-time": run_time}} if run_time else {}
    made = template(**annotations)  # type: ignore[arg-type]
    cast("Document", made["spec"])["restartPolicy"] = "Never"
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"template": made, **(spec or {})},
    }
