"""A fake cluster of any size, for tests of the page that need many objects, changes or unusual names."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from msgspec.structs import replace

from bayplan.http_api.contract.answer import Answer
from bayplan.http_api.contract.cluster import ClusterTotals
from bayplan.http_api.contract.decisions import DecisionSummary
from bayplan.http_api.contract.nodes import NodeBlock, NodeFacts, NodeRow
from bayplan.http_api.contract.pods import PodRow, PodTotals
from tests.ui.cloud_names import cloud_name

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
"""Names that no API server accepts but the page must display: markup, right-to-left, 253 characters, templates."""


def stamp(seconds: float | None = None) -> str:
    """Return a time, in seconds since 1970, in the service's format; the present time if it is None."""
    moment = datetime.fromtimestamp(time.time() if seconds is None else seconds, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


@dataclass(slots=True)
class FakeNode:
    """A node; its amounts are in milli-CPU and bytes."""

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
        """Return the used share of CPU as the heat map has it: 0 to 97 percent, or 101 from 98 % on."""
        share = self.used_cpu * 100 // self.cpu
        return 101 if share >= 98 else share

    @property
    def flags(self) -> int:
        """Return the flags of the node: bit 0 if it is unschedulable, bit 1 if it is not ready."""
        return int(self.cordoned) | 2 * (not self.ready)


@dataclass(slots=True)
class FakePod:
    """A pod; `node` and `reason` are indexes, -1 if it has no node."""

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
        """Return the page's name of the pod's state."""
        return "placed" if self.node >= 0 else "gated" if self.gated else "waiting"


class FakeCluster:
    """Nodes and pods that are placed at random. Most pods fit, some wait, a few are gated.

    Args:
        nodes: The number of nodes.
        pods: The number of pods.
        seed: The seed of all random choices.
        hostile: Whether the first nodes and pods get the names in `HOSTILE`.
        name: Returns the name of a node from its number.
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
        """Place a pod on a node if it fits; return whether it does."""
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
        """Move `count` random pods to random nodes; a pod that does not fit there waits."""
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

    # --- answers of the API --------------------------------------------------------------------------------------------

    def pod_counts(self) -> PodTotals:
        """Return the numbers of pods by state."""
        return PodTotals(**self._pods_by_status())

    def counts(self) -> ClusterTotals:
        """Return the totals of the overview."""
        return ClusterTotals(
            **self._pods_by_status(),
            nodes=len(self.nodes),
            nodes_full=sum(node.cell > 100 for node in self.nodes),
            nodes_empty=sum(not node.pods for node in self.nodes),
            nodes_cordoned=sum(node.cordoned for node in self.nodes),
            nodes_not_ready=sum(not node.ready for node in self.nodes),
        )

    def _pods_by_status(self) -> dict[str, int]:
        placed = sum(pod.node >= 0 for pod in self.pods)
        gated = sum(pod.gated for pod in self.pods)
        waiting = len(self.pods) - placed - gated
        counts = {"pods": len(self.pods), "placed": placed, "waiting": waiting, "gated": gated}
        return counts | {"terminating": 0, "finished": 0}

    def node_row(self, node: FakeNode, *, blocks: bool = False) -> NodeRow:
        """Return a node's row in the table of nodes."""
        facts = to_fields(self.node_facts(node))
        row = NodeRow(**facts, pods=len(node.pods))
        if not blocks:
            return row
        found = [
            NodeBlock(namespace=pod.namespace, name=pod.name, cpu=pod.cpu, memory=pod.memory, priority=pod.priority)
            for pod in (self.pods[number] for number in node.pods)
        ]
        return replace(row, blocks=found)

    def node_facts(self, node: FakeNode) -> NodeFacts:
        """Return the fields that every answer about a node contains."""
        allocatable = {"cpu": node.cpu, "memory": node.memory, "pods": 110}
        requested = {"cpu": node.used_cpu, "memory": node.used_memory, "pods": len(node.pods)}
        if node.pool == "gpu":
            allocatable["nvidia.com/gpu"], requested["nvidia.com/gpu"] = 8, min(8, len(node.pods) // 4)
        return NodeFacts(
            name=node.name,
            zone=node.zone,
            pool=node.pool,
            ready=node.ready,
            cordoned=node.cordoned,
            allocatable=allocatable,
            requested=requested,
            free={name: value - requested[name] for name, value in allocatable.items()},
            shares={name: requested[name] / value for name, value in allocatable.items()},
            most_pods=110,
            taints=["gpu=:NoSchedule"] * (node.pool == "gpu"),
            created_at=stamp(self.began),
        )

    def pod_row(self, pod: FakePod) -> PodRow:
        """Return a pod's row in the table of pods."""
        total = len(self.nodes)
        runner_up = self.nodes[(pod.node + 1) % total].name if pod.node >= 0 else ""
        why = f"12 ahead of {runner_up}"
        if pod.node < 0:
            why = (
                "SchedulingGates: quota"
                if pod.gated
                else f"{REASONS[pod.reason][1]} ({total * 9 // 10:,}), {REASONS[1][1]} ({total // 10:,})"
            )
        return PodRow(
            namespace=pod.namespace,
            name=pod.name,
            status=pod.status,
            node=self.nodes[pod.node].name if pod.node >= 0 else "",
            why=why,
            runner_up=runner_up,
            cpu=pod.cpu,
            memory=pod.memory,
            priority=pod.priority,
            attempts=pod.attempts,
            created_at=stamp(self.began + 300),
            workload=f"Deployment/{pod.name.partition('-')[0]}",
            scheduler_name="default-scheduler",
        )

    def decision(self, number: int) -> DecisionSummary:
        """Return the summary of a decision by its number."""
        pod = self.pods[self.decisions[number]]
        node = self.nodes[pod.node].name if pod.node >= 0 else ""
        message = (
            "" if node else f"0/{len(self.nodes)} nodes are available: {len(self.nodes)} {REASONS[pod.reason][1]}."
        )
        key = f"{pod.namespace}/{pod.name}"
        return DecisionSummary(
            number=number,
            at=stamp(self.began + 300 + number * 0.002),
            namespace=pod.namespace,
            name=pod.name,
            attempt=pod.attempts,
            outcome="scheduled" if node else "unschedulable",
            node=node,
            feasible_nodes=297 if node else 0,
            evaluated_nodes=len(self.nodes),
            ties=1,
            total=796,
            margin=12 if node else None,
            runner_up=self.nodes[(pod.node + 1) % len(self.nodes)].name,
            message=message,
            nominated_node="",
            victims=[],
            tier="active",
            woken_by="",
            annotated=False,
            text=f"{key} runs on {node}: best of 297 nodes that fit" if node else f"{key} is pending: {message}",
        )


def to_fields(answer: Answer) -> dict[str, Any]:
    """Return the fields of an answer, to build a larger answer that contains them."""
    return {name: getattr(answer, name) for name in answer.__struct_fields__}
