"""Run one case: fill a cluster, measure pods, and act as the API server and scheduler_perf for a scheduler.

The result is the CPU time of this process from the arrival of the first measured pod to the last decision. Objects are
parsed before. There is no API server: the host responds immediately, and configures the garbage collector as ``bayplan
simulate`` does.
"""

from __future__ import annotations

import gc
import hashlib
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from msgspec.structs import replace

from bayplan.base.durations import MILLISECOND_NS, SECOND_NS
from bayplan.base.garbage_collector import rare_collections
from bayplan.engine.actions import Action, Bind, Evict, Nominate, Update
from bayplan.engine.assemble import assemble_scheduler
from bayplan.engine.records import RecordLevel
from bayplan.engine.scheduler import Scheduler
from bayplan.framework.configuration.loading import default_configuration
from bayplan.framework.feature_gates import FeatureGates
from bayplan.objects.meta import KubernetesObject
from bayplan.objects.pod import Pod
from bayplan.plugins.registry import in_tree_registry
from benchmarks.scheduler_perf.case import Batch, Case, Churn
from benchmarks.scheduler_perf.templates import (
    NAMED_NODE,
    TEMPLATES,
    make_csi_node,
    make_device_claim,
    make_device_class,
    make_namespace,
    make_node,
    make_pod,
    make_service,
    make_slice,
    make_volume,
)

DELETED = "2026-01-01T00:00:00Z"


@dataclass(frozen=True)
class Measured:
    """The result of a run.

    Attributes:
        seconds: the CPU time.
        pods: the number of measured pods with a decision.
        decisions: the number of cycles while measuring.
        decisions_hash: the hash of the nodes, in the order of the bindings, and of the victims.
        records_digest: the hash of all records, including those of pods before: time, pod, outcome, node or message.
    """

    seconds: float
    pods: int
    decisions: int
    decisions_hash: str
    records_digest: str


@dataclass
class Host:
    """The scheduler of a case, and its cluster.

    Attributes:
        echo: whether bound pods are returned to the scheduler.
        bindings: the pods that were bound and their nodes, in order of binding.
    """

    scheduler: Scheduler
    echo: bool
    now_ns: int = 0
    decisions: int = 0
    bindings: list[tuple[Pod, str]] = field(default_factory=list)
    evicted: list[str] = field(default_factory=list)

    def create(self, items: Sequence[KubernetesObject]) -> None:
        """Pass new objects to the scheduler."""
        handle, now_ns = self.scheduler.handle, self.now_ns
        for item in items:
            handle(None, item, now_ns)

    def settle(self) -> None:
        """Run cycles until no pod is ready."""
        schedule_one, now_ns, echo = self.scheduler.schedule_one, self.now_ns, self.echo
        decisions = 0
        while (report := schedule_one(now_ns)) is not None:
            decisions += 1
            for action in report.actions:
                if isinstance(action, Bind) and not echo:
                    self.bindings.append((action.pod, action.node_name))
                else:
                    self.execute(action)
        self.decisions += decisions

    def execute(self, action: Action) -> None:
        """Execute an action of the scheduler, and pass it the resulting event."""
        scheduler, now_ns = self.scheduler, self.now_ns
        if isinstance(action, Update):
            known = scheduler.state.catalog.get(type(action.item), _key_of(action.item))
            scheduler.handle(known, action.item, now_ns)
            return
        pod = scheduler.pods.get(action.pod.key)
        if pod is None:
            return
        if isinstance(action, Evict):
            self.evicted.append(pod.key)
            scheduler.handle(pod, None, now_ns)
        elif isinstance(action, Nominate):
            status = replace(pod.status, nominated_node_name=action.node_name)
            scheduler.handle(pod, replace(pod, status=status), now_ns)
        elif isinstance(action, Bind):
            self.bindings.append((pod, action.node_name))
            scheduler.handle(pod, replace(pod, spec=replace(pod.spec, node_name=action.node_name)), now_ns)

    def unbound(self, pods: Sequence[Pod]) -> int:
        """Return how many of these pods were not bound."""
        return len({pod.key for pod in pods} - {pod.key for pod, _ in self.bindings})

    def wait(self, nanoseconds: int) -> None:
        """Advance the time and run the scheduler's timers."""
        self.now_ns += nanoseconds
        for action in self.scheduler.tick(self.now_ns):
            self.execute(action)


def _key_of(item: KubernetesObject) -> str:
    metadata = item.metadata
    return f"{metadata.namespace}/{metadata.name}" if metadata.namespace else metadata.name


def node_names(case: Case) -> Iterator[str]:
    """Yield the names of the ordinary nodes."""
    return (f"scheduler-perf-{number:05}" for number in range(case.nodes))


def nodes_of(case: Case) -> Iterator[KubernetesObject]:
    """Yield the nodes of a case and the objects that describe them."""
    if case.named_node:
        yield make_node(NAMED_NODE, pods="90000")
    if case.devices and not case.device_classes:
        yield make_device_class()
    for number in range(case.device_classes):
        yield make_device_class(f"test-class-{number}", f"{case.measured.extended}{number}")
    for number, name in enumerate(node_names(case)):
        zone = case.zones[number % len(case.zones)] if case.zones else ""
        extended = {f"foo.com/bar-{number}": "1"} if case.extended else {}
        if case.csi:
            yield make_csi_node(name, migrated=case.csi == "migrated", limit=case.volume_limit)
            extended = {"attachable-volumes-csi-ebs.csi.aws.com": str(case.volume_limit)}
        yield make_node(name, zone=zone, extended=extended)
        if case.devices:
            yield make_slice(name, case.devices)
    for number in range(case.tainted):
        yield make_node(f"taint-node-{number:05}", taint="foo")


def namespaces_of(case: Case) -> Iterator[KubernetesObject]:
    """Yield the namespaces of a case's pods, and its service."""
    for batch in (*case.before, case.measured, *case.also):
        for namespace in _namespaces(batch):
            yield make_namespace(namespace, labelled=case.labelled)
    if case.service:
        yield make_service(case.service)


def _namespaces(batch: Batch) -> list[str]:
    if batch.namespaces == 1:
        return [batch.namespace]
    return [f"{batch.namespace}-{number}" for number in range(batch.namespaces)]


def pods_of(batch: Batch, prefix: str) -> tuple[list[KubernetesObject], list[Pod]]:
    """Return the objects that the pods of a batch refer to, and the pods."""
    objects: list[KubernetesObject] = []
    pods = []
    template = TEMPLATES[batch.template]
    for namespace in _namespaces(batch):
        for number in range(batch.count):
            name = f"{prefix}-{number:05}"
            claim = device_claim = ""
            if batch.volume:
                claim = f"pvc-{name}"
                csi, once = batch.volume.startswith("csi"), batch.volume == "csi-once"
                objects += make_volume(claim, namespace, csi=csi, once=once)
            elif batch.shares:
                claim = f"pvc-{batch.shares}-{number:05}"
            if batch.devices:
                device_claim = f"{name}-resource"
                objects.append(make_device_claim(device_claim, namespace))
            extended = f"{batch.extended}{number}" if batch.extended else ""
            # Upstream prefixes the number with an 8: ports 80 to 89, then 810 and 811.
            port = int(f"8{number % batch.ports}") if batch.ports else 0
            pods.append(
                make_pod(
                    name,
                    namespace,
                    template,
                    claim=claim,
                    device_claim=device_claim,
                    extended=extended,
                    host_port=port,
                )
            )
    return objects, pods


def new_host(case: Case, *, sampled: bool) -> Host:
    """Return a host with the nodes of a case, and with the pods that exist before the measurement."""
    scheduler = assemble_scheduler(
        default_configuration(),
        in_tree_registry(),
        feature_gates=FeatureGates(),
        seed=1,
        record_level=RecordLevel.SUMMARY,
        sampling=sampled,
    )
    host = Host(scheduler, echo=True)
    host.create([*namespaces_of(case), *nodes_of(case)])
    for number, batch in enumerate(case.before):
        objects, pods = pods_of(batch, f"init-{number}")
        host.create(objects)
        host.create(pods)
        host.settle()
    host.echo = case.echo
    return host


class Churning:
    """Applies the changes between measured pods."""

    def __init__(self, churn: Churn, host: Host) -> None:
        self._churn = churn
        self._host = host
        self._count = 0
        self._comings: list[KubernetesObject] = []
        pods = list(host.scheduler.pods)
        doomed = ([key for key in pods if key.startswith(f"{namespace}/")][::-1] for namespace in churn.deletes)
        self._doomed = [keys for keys in doomed if keys]

    def happen(self) -> None:
        """Apply the next change."""
        churn, host = self._churn, self._host
        host.wait(churn.interval_ms * MILLISECOND_NS)
        number, self._count = self._count, self._count + 1
        if churn.recreates:
            for item in self._comings:
                host.scheduler.handle(self._newest(item), None, host.now_ns)
            self._comings = [make_node(f"churn-{number:05}", pods="0"), make_service("namespace-churn")]
        if churn.creates:
            pod = make_pod(f"churn-{number:05}", "namespace-churn", TEMPLATES[churn.creates])
            if churn.recreates:
                self._comings.append(pod)
            else:
                host.create([pod])
        if churn.recreates:
            host.create(self._comings)
        for keys in self._doomed:
            key = keys.pop()
            pod = host.scheduler.pods[key]
            deleted = replace(pod, metadata=replace(pod.metadata, deletion_timestamp=DELETED))
            host.scheduler.handle(pod, deleted if churn.finalizers else None, host.now_ns)
        self._doomed = [keys for keys in self._doomed if keys]

    @property
    def goes_on(self) -> bool:
        """Whether any pods are left to be deleted."""
        return bool(self._doomed)

    def _newest(self, item: KubernetesObject) -> KubernetesObject:
        return self._host.scheduler.pods.get(item.key, item) if isinstance(item, Pod) else item


def measure(case: Case, *, sampled: bool) -> Measured:
    """Run a case and return its result."""
    host = new_host(case, sampled=sampled)
    pods: list[Pod] = []
    for batch in (case.measured, *case.also):
        objects, made = pods_of(batch, "pod")
        host.create(objects)
        pods += made
    before, host.decisions = len(host.bindings), 0
    gc.collect()
    with rare_collections():
        seconds = _decide(case, host, pods)
    if not case.measured.waits:
        missing = host.unbound(pods)
        assert not missing, f"{case.label}: {missing} pods have no node"
    lines = [f"{pod.key} {node}" for pod, node in host.bindings[before:]]
    digest = hashlib.blake2b("\n".join(lines + host.evicted).encode(), digest_size=8).hexdigest()
    return Measured(seconds, len(pods), host.decisions, digest, host.scheduler.records.digest())


def _decide(case: Case, host: Host, pods: list[Pod]) -> float:
    """Create the measured pods, and run until the last decision; return the CPU seconds."""
    start = time.process_time()
    churning = Churning(case.churn, host) if case.churn is not None else None
    every = case.churn.every if case.churn is not None else 0
    for first in range(0, len(pods), every or len(pods)):
        if churning is not None and every:
            churning.happen()
        host.create(pods[first : first + (every or len(pods))])
        host.settle()
    while churning is not None and not every and churning.goes_on:
        churning.happen()
        host.settle()
    # Pods in backoff, and preemptors whose victims terminate, are retried later.
    for _ in range(0 if case.measured.waits else 60):
        if not len(host.scheduler.queue) or not host.unbound(pods):
            break
        host.wait(SECOND_NS)
        host.settle()
    return time.process_time() - start
