"""Small clusters with devices, and the results of scheduling cycles in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bayplan.framework.cycle_state import CycleState
from bayplan.framework.plugin import PreFilterResult
from bayplan.framework.status import Status, verdict_code
from bayplan.objects.defaults import default_object
from bayplan.objects.kinds import decode
from bayplan.objects.meta import KubernetesObject
from bayplan.objects.pod import Pod
from bayplan.plugins.dynamic_resources.plugin import DynamicResources
from bayplan.state.cluster_state import ClusterState
from bayplan.state.views import Rows
from bayplan.testing.row_results import verdicts_of
from tests.plugins.builders import make_node, make_plugin, make_pod, make_state

DRIVER = "gpu.example.com"
Document = dict[str, Any]


def made(kind: str, name: str, spec: Mapping[str, object], namespace: str = "", **more: object) -> KubernetesObject:
    """Return an object of the group resource.k8s.io/v1."""
    metadata: Document = {"name": name, "uid": f"uid-{name}"}
    if namespace:
        metadata["namespace"] = namespace
    metadata.update(more.pop("metadata", {}))  # type: ignore[call-overload]
    document = {"apiVersion": "resource.k8s.io/v1", "kind": kind, "metadata": metadata, "spec": dict(spec), **more}
    return default_object(decode(document))


def device_class(name: str = "gpu", expression: str = "", **spec: object) -> KubernetesObject:
    """Return a device class, with a selector if an expression is given."""
    selectors = [{"cel": {"expression": expression}}] if expression else []
    return made("DeviceClass", name, {"selectors": selectors, **spec})


def device(name: str, index: int | None = None, **more: object) -> Document:
    """Return a device; `index` is the value of its attribute ``index``."""
    attributes = {} if index is None else {"index": {"int": index}}
    return {"name": name, "attributes": {**attributes, **more.pop("attributes", {})}, **more}  # type: ignore[dict-item]


def device_slice(
    node: str,
    devices: Sequence[Document],
    *,
    name: str = "",
    pool: str = "",
    count: int = 1,
    generation: int = 1,
    **spec: object,
) -> KubernetesObject:
    """Return a ResourceSlice of a node's pool; without `node`, `spec` says which nodes can use it."""
    where: Document = {"nodeName": node} if node else {}
    return made(
        "ResourceSlice",
        name or f"slice-{pool or node}",
        {
            "driver": DRIVER,
            "pool": {"name": pool or node, "generation": generation, "resourceSliceCount": count},
            "devices": list(devices),
            **where,
            **spec,
        },
    )


def request(name: str = "r", count: int = 1, expression: str = "", **exactly: object) -> Document:
    """Return a request for an exact count of devices of the class ``gpu``."""
    selectors = [{"cel": {"expression": expression}}] if expression else []
    exact = {
        "deviceClassName": "gpu",
        "allocationMode": "ExactCount",
        "count": count,
        "selectors": selectors,
        **exactly,
    }
    if exact["allocationMode"] == "All":
        del exact["count"]
    return {"name": name, "exactly": exact}


def claim(name: str, *requests: Document, constraints: Sequence[Document] = (), **more: object) -> KubernetesObject:
    """Return a claim in the namespace ``default``."""
    devices = {"requests": list(requests), "constraints": list(constraints)}
    return made("ResourceClaim", name, {"devices": devices}, "default", **more)


def allocation(*devices: tuple[str, str], node: str = "", **result: object) -> Document:
    """Return an allocation of devices, pairs of pool and name, which is restricted to `node` if one is given."""
    results = [{"request": "r", "driver": DRIVER, "pool": pool, "device": name, **result} for pool, name in devices]
    found: Document = {"devices": {"results": results}}
    if node:
        term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
        found["nodeSelector"] = {"nodeSelectorTerms": [term]}
    return found


def claiming(*claims: str, name: str = "p", **more: object) -> Pod:
    """Return a pod that uses the claims with these names."""
    entries = [{"name": f"x{number}", "resourceClaimName": claim} for number, claim in enumerate(claims)]
    return make_pod(name, resourceClaims=entries, **more)  # type: ignore[arg-type]


class World:
    """A cluster of nodes and other objects, and the plugin DynamicResources."""

    def __init__(self, nodes: Sequence[str], objects: Sequence[KubernetesObject], **gates: bool) -> None:
        self.state: ClusterState = make_state([make_node(name, labels={"name": name}) for name in nodes])
        for item in objects:
            self.put(item)
        self.plugin = make_plugin(DynamicResources, self.state, **gates)
        self.cycle_state = CycleState()

    def put(self, item: KubernetesObject) -> None:
        """Add or replace an object."""
        self.state.catalog.put(item.key, item)

    def start(self, pod: Pod) -> PreFilterResult | Status:
        """Run PreFilter for a pod and return its result."""
        self.cycle_state = CycleState()
        self.spec = self.plugin.compile(pod, self.state)
        return self.plugin.pre_filter(self.spec, self.state, self.cycle_state)

    def filter(self, pod: Pod) -> dict[str, tuple[str, str]]:
        """Run PreFilter and Filter; return the code and the message of each rejected node."""
        answer = self.start(pod)
        assert isinstance(answer, PreFilterResult), answer
        verdicts = verdicts_of(self.plugin, self.spec, answer.params, Rows(self.state)).tolist()
        return {
            str(self.state.nodes.names[row]): (
                verdict_code(verdict).text,
                self.plugin.reasons(self.spec, answer.params, verdict)[0],
            )
            for row, verdict in enumerate(verdicts)
            if verdict
        }

    def scores(self) -> list[int]:
        """Return the raw scores of all nodes; requires a previous call of `filter`."""
        params = self.plugin.observe(self.spec, self.state)
        return [int(score) for score in self.plugin.score(self.spec, params, Rows(self.state))]

    def reserve(self, pod: Pod, node: str = "n1") -> list[str]:
        """Run Filter and Reserve on a node; return the allocated devices in the form ``request=pool/device``."""
        rejected = self.filter(pod)
        assert node not in rejected, rejected
        status = self.plugin.reserve(self.cycle_state, pod, node)
        assert status.ok, status
        found: Any = self.plugin.reserved(self.cycle_state).get("devices", {})
        return [f"{item['request']}={item['pool']}/{item['device']}" for items in found.values() for item in items]
