"""The parts of a scheduler_perf case: batches of pods, churn, and scaling to smaller sizes."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Batch:
    """Pods of one template.

    Attributes:
        template: the name of the template.
        count: the number of pods.
        namespace: their namespace.
        namespaces: if over 1, so many numbered namespaces get `count` pods each.
        volume: "csi" or "in-tree" for a separate bound claim per pod; "csi-once" for one that a single pod at a time
            may use.
        shares: the prefix of the earlier batch whose claims the pods use.
        devices: whether each pod has a claim for one device.
        extended: the prefix of the extended resource that each pod requests, a different one per pod.
        ports: the number of host ports that the pods take in turn.
        waits: whether the pods can't be scheduled.
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
        every: the number of measured pods between two changes; 0 if all measured pods come first and wait for the
            changes.
        interval_ms: the time between two changes.
        creates: the template of a pod that is created.
        recreates: whether a node and a service are created and deleted with it, and it is deleted, too.
        deletes: the namespaces whose pods are deleted, one pod of each at a time.
        finalizers: whether deleted pods have finalizers, and so stay.
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
        name, workload: upstream's names.
        floor: upstream's threshold; 0 for none.
        nodes, zones: the number of nodes of 4 CPU, and the zones that they get in turn.
        tainted: the number of additional nodes with a taint.
        named_node: whether there is another node, for 90,000 pods.
        csi: "csi" or "migrated" if nodes have CSINodes.
        volume_limit: the number of volumes that a node with a CSINode can attach.
        extended: whether each node has a different extended resource.
        devices: the number of devices of each node.
        device_classes: the number of classes, each with an extended resource; 0 for one class without.
        labelled: whether namespaces have the label that selectors require.
        service: the namespace that has a service.
        before: the pods that exist before the measurement.
        measured, also: the pods that are counted.
        churn: the changes during the measurement.
        echo: whether the host returns bound pods to the scheduler, as a watch does; if not, only decisions are
            measured.
        unit: the unit of the result: pods, or cycles if every pod is retried many times.
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
        """The name of the case and its workload."""
        return f"{self.name}/{self.workload}"

    def small(self) -> Case:
        """Return the case at a hundredth of its size."""
        return self.scaled(100)

    def scaled(self, divisor: int) -> Case:
        """Return the case with its counts divided by `divisor` (at least 5); namespaces and churn are reduced less."""

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
