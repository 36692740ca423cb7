"""A made-up cluster of any size, in the shapes of our API: for tests of the page that need size, motion or odd names."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime

from tests.ui.cloud_names import cloud_name

Plain = dict[str, object]

ZONES = ("zone-a", "zone-b", "zone-c", "zone-d", "zone-e", "zone-f")
POOLS = ("general", "memory", "gpu")
NAMESPACES = ("web", "ml-train", "batch", "shop", "platform")
KINDS = ("api", "trainer", "worker", "cart", "ingress")
GIB = 1024**3
REASONS = (
    ("NodeResourcesFit", "Insufficient cpu"),
    ("TaintToleration", "node(s) had untolerated taint(s)"),
    ("NodeAffinity", "node(s) didn't match Pod's node affinity/selector"),
    ("NodeResourcesFit", "Insufficient memory"),
)
MEMORY_STEPS = (GIB // 2, GIB, 2 * GIB, 4 * GIB)
HOSTILE = (
    '<img src=x onerror="document.title=1">',
    "\u202egnp.exe\u202c",
    "a" * 253,
    "'\"><script>throw 1</script>",
    "{{7*7}} ${7*7}",
)
"""Names that no API server would take and no page may stumble over: markup, right-to-left, 253 characters, templates."""


def stamp(seconds: float | None = None) -> str:
    """Return an instant as the service writes it; now when None."""
    moment = datetime.fromtimestamp(time.time() if seconds is None else seconds, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


@dataclass(slots=True)
class FakeNode:
    """A node: amounts are milli-CPU and bytes."""

    name: str
    zone: str
    pool: str
    cpu: int
    memory: int
    ready: bool = True
    cordoned: bool = False
    used_cpu: int = 0
    used_memory: int = 0
    pods: list[int] = field(default_factory=list)

    @property
    def cell(self) -> int:
        """Return how full it is: 0 to 100, 101 from 98 % on."""
        share = self.used_cpu * 100 // self.cpu
        return 101 if share >= 98 else share

    @property
    def flags(self) -> int:
        """Return bit 0 for cordoned, bit 1 for not ready."""
        return int(self.cordoned) | 2 * (not self.ready)


@dataclass(slots=True)
class FakePod:
    """A pod; `why` is short for its messages."""

    namespace: str
    name: str
    cpu: int
    memory: int
    priority: int
    node: int = -1
    attempts: int = 1
    reason: int = 0
    gated: bool = False

    @property
    def status(self) -> str:
        """Return the page's name for the pod's state."""
        return "placed" if self.node >= 0 else "gated" if self.gated else "waiting"


class FakeCluster:
    """Nodes and pods, placed at random from a seed: most of them fit, some wait, a few are gated.

    Args:
        nodes, pods: how many. seed: of everything random. hostile: give odd names to the first of each.
        name: returns the name of a node.
    """

    def __init__(
        self,
        nodes: int,
        pods: int,
        *,
        seed: int = 1,
        hostile: bool = False,
        name: Callable[[int], str] = cloud_name,
    ) -> None:
        self._name = name
        self.random = random.Random(seed)
        self.version = 1
        self.layout = 1
        self.began = time.time() - 420
        self.nodes = [self._node(number, nodes) for number in range(nodes)]
        self.pods = [self._pod(number, pods) for number in range(pods)]
        if hostile:
            for number, text in enumerate(HOSTILE):
                self.nodes[number].name = f"{text}"
                self.pods[number].name = f"{text}"
        for number, pod in enumerate(self.pods):
            self._place(number, pod)
        self.by_name = {node.name: node for node in self.nodes}
        self.by_key = {f"{pod.namespace}/{pod.name}": number for number, pod in enumerate(self.pods)}
        self.decisions = [number for number, pod in enumerate(self.pods) if not pod.gated]
        self.changed: set[int] = set()

    def _node(self, number: int, total: int) -> FakeNode:
        pool = POOLS[0 if number % 7 else 1 + number % 2]
        cpu = {"general": 16000, "memory": 32000, "gpu": 64000}[pool]
        node = FakeNode(
            self._name(number),
            ZONES[number % min(6, max(2, total // 4))],
            pool,
            cpu,
            cpu // 1000 * 4 * GIB,
        )
        node.cordoned = number % 85 == 84 or (total < 60 and number == total - 1)
        node.ready = number % 1700 != 1699
        return node

    def _pod(self, number: int, total: int) -> FakePod:
        kind = number % len(KINDS)
        draw = self.random.random()
        name = f"{KINDS[kind]}-{self.random.getrandbits(20):05x}-{number:0{len(str(total))}}"
        pod = FakePod(
            NAMESPACES[kind],
            name,
            self.random.choice((250, 500, 1000, 2000)),
            self.random.choice(MEMORY_STEPS),
            1000 * (kind == 1),
        )
        pod.gated = draw > 0.999 or (total < 100 and number == 7)
        pod.attempts = 1 if draw < 0.8 else 1 + int(draw * 8)
        return pod

    def _place(self, number: int, pod: FakePod) -> None:
        waits = number % 34 == 33
        if waits or pod.gated:
            pod.reason = (0, 0, 0, 0, 0, 0, 1, 1, 2, 3)[number // 34 % 10]
            pod.attempts += number // 34 % 7
            pod.cpu = 4000 if waits else pod.cpu
            return
        for _ in range(8):
            at = self.random.randrange(len(self.nodes))
            if self.put(number, at):
                return
        pod.reason = 0

    def put(self, number: int, at: int) -> bool:
        """Place a pod on a node, if it fits."""
        pod, node = self.pods[number], self.nodes[at]
        if (
            not node.ready
            or node.cordoned
            or node.used_cpu + pod.cpu > node.cpu
            or node.used_memory + pod.memory > node.memory
        ):
            return False
        node.used_cpu += pod.cpu
        node.used_memory += pod.memory
        node.pods.append(number)
        pod.node = at
        return True

    def change(self, count: int) -> None:
        """Move pods about: `count` of them leave their nodes and go elsewhere."""
        for _ in range(count):
            number = self.random.randrange(len(self.pods))
            pod = self.pods[number]
            if pod.gated:
                continue
            if pod.node >= 0:
                node = self.nodes[pod.node]
                node.used_cpu -= pod.cpu
                node.used_memory -= pod.memory
                node.pods.remove(number)
                self.changed.add(pod.node)
                pod.node = -1
            at = self.random.randrange(len(self.nodes))
            if self.put(number, at):
                self.changed.add(at)
            self.decisions.append(number)
        self.version += count

    # --- shapes of the API ---------------------------------------------------------------------------------------------

    def pod_counts(self) -> Plain:
        """Return how many pods there are."""
        placed = sum(pod.node >= 0 for pod in self.pods)
        gated = sum(pod.gated for pod in self.pods)
        return {
            "pods": len(self.pods),
            "placed": placed,
            "waiting": len(self.pods) - placed - gated,
            "gated": gated,
            "terminating": 0,
            "finished": 0,
        }

    def counts(self) -> Plain:
        """Return the counts of the overview."""
        return self.pod_counts() | {
            "nodes": len(self.nodes),
            "nodes_full": sum(node.cell > 100 for node in self.nodes),
            "nodes_empty": sum(not node.pods for node in self.nodes),
            "nodes_cordoned": sum(node.cordoned for node in self.nodes),
            "nodes_not_ready": sum(not node.ready for node in self.nodes),
        }

    def node_row(self, node: FakeNode) -> Plain:
        """Return a row of the table of nodes."""
        allocatable = {"cpu": node.cpu, "memory": node.memory, "pods": 110}
        requested = {"cpu": node.used_cpu, "memory": node.used_memory, "pods": len(node.pods)}
        if node.pool == "gpu":
            allocatable["nvidia.com/gpu"], requested["nvidia.com/gpu"] = 8, min(8, len(node.pods) // 4)
        return {
            "name": node.name,
            "zone": node.zone,
            "pool": node.pool,
            "ready": node.ready,
            "cordoned": node.cordoned,
            "allocatable": allocatable,
            "requested": requested,
            "free": {name: value - requested[name] for name, value in allocatable.items()},
            "shares": {name: requested[name] / value for name, value in allocatable.items()},
            "pods": len(node.pods),
            "most_pods": 110,
            "taints": ["gpu=:NoSchedule"] * (node.pool == "gpu"),
            "created_at": stamp(self.began),
        }

    def pod_row(self, pod: FakePod) -> Plain:
        """Return a row of the table of pods."""
        total = len(self.nodes)
        why = f"12 ahead of {self.nodes[(pod.node + 1) % total].name}"
        if pod.node < 0:
            why = (
                "SchedulingGates: quota"
                if pod.gated
                else f"{REASONS[pod.reason][1]} ({total * 9 // 10:,}), {REASONS[1][1]} ({total // 10:,})"
            )
        return {
            "namespace": pod.namespace,
            "name": pod.name,
            "status": pod.status,
            "node": self.nodes[pod.node].name if pod.node >= 0 else "",
            "why": why,
            "cpu": pod.cpu,
            "memory": pod.memory,
            "priority": pod.priority,
            "attempts": pod.attempts,
            "created_at": stamp(self.began + 300),
            "workload": f"Deployment/{pod.name.partition('-')[0]}",
            "scheduler_name": "default-scheduler",
        }

    def decision(self, number: int) -> Plain:
        """Return the summary of a decision."""
        pod = self.pods[self.decisions[number]]
        node = self.nodes[pod.node].name if pod.node >= 0 else ""
        message = (
            "" if node else f"0/{len(self.nodes)} nodes are available: {len(self.nodes)} {REASONS[pod.reason][1]}."
        )
        return {
            "number": number,
            "at": stamp(self.began + 300 + number * 0.002),
            "namespace": pod.namespace,
            "name": pod.name,
            "attempt": pod.attempts,
            "outcome": "scheduled" if node else "unschedulable",
            "node": node,
            "feasible_nodes": 297 if node else 0,
            "evaluated_nodes": len(self.nodes),
            "ties": 1,
            "total": 796,
            "margin": 12 if node else None,
            "runner_up": self.nodes[(pod.node + 1) % len(self.nodes)].name,
            "message": message,
            "nominated_node": "",
            "victims": [],
            "tier": "active",
            "woken_by": "",
            "annotated": False,
            "text": f"{pod.namespace}/{pod.name} runs on {node}: best of 297 nodes that fit"
            if node
            else f"{pod.namespace}/{pod.name} waits: {message}",
        }
