"""Controllers and kubelet over the API: the cost of a pod's life, the duration of slices, the size of objects.

Everything runs in this process and is measured in CPU time, which other work on the machine does not change: a
ReplicaSet is scaled up, and its pods are bound, start, and are deleted.
"""

from __future__ import annotations

import asyncio
import gc
import hashlib
import time
import tracemalloc
from collections.abc import Iterator

import msgspec

from bayplan.apiserver.bridge.bridge import Bridge, BridgeOptions
from bayplan.apiserver.bridge.driver import SLICE_NS
from bayplan.apiserver.rest.api import Api
from bayplan.apiserver.rest.backend import Backend
from bayplan.apiserver.rest.bootstrap import bootstrap
from bayplan.apiserver.rest.messages import Request, Response
from bayplan.apiserver.store.store import Store
from bayplan.formats.object_decoder import ObjectDecoder
from bayplan.objects.pod import Pod
from benchmarks import Figure

PODS = {"small": 300, "large": 5_000}
NODES = 50
_SETS = "/apis/apps/v1/namespaces/default/replicasets"
_PODS_PATH = "/api/v1/namespaces/default/pods"
_NOW_NS = 1_767_225_600_000_000_000


def figures(size: str) -> Iterator[Figure]:
    """Yield the figures; `size` is ``small`` or ``large``."""
    count = PODS[size]
    thresholds = gc.get_threshold()
    # The thresholds that a server sets.
    gc.set_threshold(50_000, 20, 100)
    cluster = Cluster()
    try:
        yield from _life(cluster, count)
    finally:
        cluster.close()
        gc.set_threshold(*thresholds)


def _life(cluster: Cluster, count: int) -> Iterator[Figure]:
    for number in range(NODES):
        cluster.post("/api/v1/nodes", {"metadata": {"name": f"n{number}"}})
    cluster.work()
    cluster.post(_SETS, _replica_set(count))
    yield cluster.measure("pods made by a ReplicaSet", count)
    names = [item.name for item in cluster.backend.store.between("pods")]
    start = time.process_time()
    for number, name in enumerate(names):
        cluster.post(
            f"{_PODS_PATH}/{name}/binding", {"metadata": {"name": name}, "target": {"name": f"n{number % NODES}"}}
        )
    yield Figure(name="pods bound by a client", value=_per_pod(start, count), unit="us/pod")
    yield cluster.measure("pods started, with three events each", count)
    raws = [item.raw for item in cluster.backend.store.between("pods")]
    yield _memory(raws)
    start = time.process_time()
    cluster.bridge.check()
    yield Figure(name="both stores compared", value=_per_pod(start, count), unit="us/pod")
    cluster.send("PATCH", f"{_SETS}/many", {"spec": {"replicas": 0}}, "application/merge-patch+json")
    yield cluster.measure("pods deleted and gone", count)


def _per_pod(start: float, count: int) -> float:
    """Return the CPU time per pod since a start, in microseconds."""
    return (time.process_time() - start) / count * 1e6


def _memory(raws: list[bytes]) -> Figure:
    decoder = ObjectDecoder()
    tracemalloc.start()
    pods = [decoder.decode(raw, Pod) for raw in raws]
    taken = tracemalloc.get_traced_memory()[0] / len(pods)
    tracemalloc.stop()
    return Figure(name="a typed pod that runs", value=taken, unit="bytes", note=f"its document: {len(raws[0]):,} bytes")


class Cluster:
    """An API with controllers and kubelet; the benchmark calls each step."""

    def __init__(self) -> None:
        self.backend = Backend(Store(), clock=lambda: _NOW_NS / 1e9)
        bootstrap(self.backend)
        self._api = Api(self.backend)
        self.bridge = Bridge(self.backend, seed=1, options=BridgeOptions())
        self._loop = asyncio.new_event_loop()

    def close(self) -> None:
        """Close the loop."""
        self._loop.close()

    def post(self, path: str, document: dict[str, object]) -> None:
        """Create an object."""
        self.send("POST", path, document, "application/json")

    def send(self, method: str, path: str, document: object, content_type: str) -> None:
        """Send a request, which must succeed."""
        request = Request(method, path, headers={"content-type": content_type}, body=msgspec.json.encode(document))
        answer = self._loop.run_until_complete(self._api.handle(request))
        assert isinstance(answer, Response)
        assert answer.status < 300, answer.body

    def work(self) -> list[float]:
        """Execute everything that is due, in slices; return the CPU seconds of each slice, sorted."""
        slices = []
        while True:
            start = time.process_time()
            more = self.bridge.advance(_NOW_NS, SLICE_NS)
            slices.append(time.process_time() - start)
            if not more:
                return sorted(slices)

    def measure(self, name: str, count: int) -> Figure:
        """Execute everything that is due, and return its cost per pod."""
        slices = self.work()
        names = " ".join(item.name for item in self.backend.store.between("pods"))
        note = f"{len(slices)} slices, p99 {slices[int(len(slices) * 0.99)] * 1e3:.1f} ms, longest {slices[-1] * 1e3:.1f} ms"
        digest = hashlib.blake2b(names.encode(), digest_size=6).hexdigest()
        cost = sum(slices) / count * 1e6
        return Figure(name=name, value=cost, unit="us/pod", decisions_hash=digest, note=note)


def _replica_set(replicas: int) -> dict[str, object]:
    requests = {"cpu": "100m", "memory": "64Mi"}
    container = {"name": "c", "image": "nginx:1", "resources": {"requests": requests}, "ports": [{"containerPort": 80}]}
    template = {"metadata": {"labels": {"app": "many"}}, "spec": {"containers": [container]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": "many"}}, "template": template}
    return {"metadata": {"name": "many"}, "spec": spec}
