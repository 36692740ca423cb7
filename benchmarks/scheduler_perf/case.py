"""The parts of a scheduler_perf case: batches of pods, churn, and scaling to smaller sizes."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Batch:
    """Pods of one template.

    Attributes:
        template: its name. count: how many pods. namespace: where; with `namespaces` over 1 so many, numbered, get `count` each.
        volume: "csi" or "in-tree": each pod has a bound claim of its own; "csi-once": one that a single pod at a time may use.
        shares: the prefix of the earlier batch whose claims the pods use. devices: each has a claim for one device.
        extended: the prefix of the resource that each pod asks for, one of its own. ports: host ports that they take in turn.
        waits: the pods can't be scheduled.
    """

    template: str
    count: int
    namespace: str = "namespace-2"
    namespaces: int = 1
    volume: str = ""
    shares: str = ""
    devices: bool = False
    extended: str = ""
    ports: int = 0
    waits: bool = False


@dataclass(frozen=True)
class Churn:
    """Creations and deletions between measured pods, at the rate of upstream's own throughput.

    Attributes:
        every: measured pods between two happenings; 0: all measured pods come first, and wait for what happens.
        interval_ms: the time between them.
        creates: the template of a pod that comes. recreates: whether a node and a service come and go with it, and it goes, too.
        deletes: the namespaces whose pods are deleted, one of each at a time; `finalizers`: they stay, being deleted.
    """

    every: int
    interval_ms: int
    creates: str = ""
    recreates: bool = False
    deletes: tuple[str, ...] = ()
    finalizers: bool = False


@dataclass(frozen=True)
class Case:
    """One case in one size.

    Attributes:
        name, workload: upstream's. floor: its threshold, 0: none.
        nodes, zones: nodes of 4 CPU, and the zones that they get in turn. tainted: so many more with a taint.
        named_node: whether there is one more that holds 90,000 pods. csi: "csi" or "migrated": nodes have CSINodes.
        volume_limit: volumes that a node with a CSINode can attach. extended: whether each node has a resource of its own.
        devices: devices of each node. device_classes: number of classes with an extended resource each; 0: one class without.
        labelled: whether namespaces have the label that selectors ask for. service: the namespace that has one.
        before: pods that are there when measuring starts. measured, also: the pods that are counted.
        churn: changes during the measurement.
        echo: whether the host hands bound pods back, as a watch does; without, only decisions are measured.
        unit: what a second counts; cycles where every pod is tried many times.
    """

    name: str
    workload: str
    nodes: int
    measured: Batch
    before: tuple[Batch, ...] = ()
    floor: int = 0
    zones: tuple[str, ...] = ()
    tainted: int = 0
    named_node: bool = False
    csi: str = ""
    volume_limit: int = 39
    extended: bool = False
    devices: int = 0
    device_classes: int = 0
    labelled: bool = False
    service: str = ""
    churn: Churn | None = None
    echo: bool = False
    unit: str = "pods/s"
    also: tuple[Batch, ...] = ()

    @property
    def label(self) -> str:
        """Return the name of the case and its workload."""
        return f"{self.name}/{self.workload}"

    def small(self) -> Case:
        """Return the case at a hundredth of its size."""
        return self.scaled(100)

    def scaled(self, divisor: int) -> Case:
        """Return the case with its counts divided by `divisor` (at least 5); namespaces and churn shrink less."""

        def shrunk(batch: Batch) -> Batch:
            namespaces = max(batch.namespaces // (divisor // 5), 1)
            return replace(batch, count=max(batch.count // divisor, 2), namespaces=namespaces)

        churn = self.churn
        if churn is not None and churn.every:
            churn = replace(churn, every=max(churn.every // (divisor // 5), 1))
        return replace(
            self,
            nodes=max(self.nodes // divisor, 2 if self.nodes else 0),
            tainted=self.tainted // divisor,
            device_classes=self.device_classes // divisor,
            before=tuple(map(shrunk, self.before)),
            measured=shrunk(self.measured),
            also=tuple(map(shrunk, self.also)),
            churn=churn,
        )
