"""scheduler_perf's cases at 5,000 nodes, by name: nodes, pods that already run, measured pods, and changes during the measurement.

Floors are the thresholds of upstream's continuous integration (pods per second with a real API server and etcd, the
worst of many runs). Counts are those of the files under test/integration/scheduler_perf;
`tests/project/test_scheduler_perf.py` compares them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from benchmarks.scheduler_perf.case import Batch, Case, Churn

ZONES = ("moon-1", "moon-2", "moon-3")


def affinity(name: str, workload: str, template: str, floor: int, *, running: int, measured: int, zone: bool) -> Case:
    """Return a case of pods with affinity terms that name the namespaces sched-0 and sched-1."""
    return Case(
        name,
        workload,
        5000,
        Batch(template, measured, "sched-1"),
        (Batch(template, running, "sched-0"),),
        floor,
        ("zone1",) if zone else (),
    )


def by_selector(
    name: str, workload: str, template: str, floor: int, *, nodes: int, each: int, measured: int, zone: bool
) -> Case:
    """Return a case of pods with affinity terms that select namespaces, with pods in a hundred of them."""
    return Case(
        name,
        workload,
        nodes,
        Batch(template, measured, "measure-ns-0"),
        (Batch(template, each, "init-ns", namespaces=100),),
        floor,
        ("zone1",) if zone else (),
        labelled=True,
    )


AFFINITY: Sequence[Case] = (
    affinity(
        "SchedulingPodAntiAffinity",
        "5000Nodes_2000Pods",
        "pod-with-pod-anti-affinity",
        60,
        running=1000,
        measured=2000,
        zone=False,
    ),
    replace(
        affinity(
            "SchedulingPodMatchingAntiAffinity",
            "5000Nodes_5000Pods",
            "pod-with-pod-anti-affinity",
            595,
            running=1000,
            measured=5000,
            zone=False,
        ),
        measured=Batch("pod-with-pod-anti-affinity-label", 5000, "sched-1"),
    ),
    affinity(
        "SchedulingPodAffinity",
        "5000Nodes_5000Pods",
        "pod-with-pod-affinity",
        35,
        running=5000,
        measured=5000,
        zone=True,
    ),
    affinity(
        "SchedulingPreferredPodAffinity",
        "5000Nodes_5000Pods",
        "pod-with-preferred-pod-affinity",
        90,
        running=5000,
        measured=5000,
        zone=False,
    ),
    affinity(
        "SchedulingPreferredPodAntiAffinity",
        "5000Nodes_5000Pods",
        "pod-with-preferred-pod-anti-affinity",
        90,
        running=5000,
        measured=5000,
        zone=False,
    ),
    Case(
        "MixedSchedulingBasePod",
        "5000Nodes_5000Pods",
        5000,
        Batch("pod-default", 5000, "namespace-7"),
        (
            Batch("pod-default", 2000, "sched-0"),
            Batch("pod-with-pod-affinity", 2000, "sched-0"),
            Batch("pod-with-pod-anti-affinity", 2000, "sched-0"),
            Batch("pod-with-preferred-pod-affinity", 2000, "sched-0"),
            Batch("pod-with-preferred-pod-anti-affinity", 2000, "sched-0"),
        ),
        140,
        ("zone1",),
    ),
    by_selector(
        "SchedulingRequiredPodAntiAffinityWithNSSelector",
        "5000Nodes_2000Pods",
        "pod-anti-affinity-ns-selector",
        24,
        nodes=6000,
        each=40,
        measured=2000,
        zone=False,
    ),
    by_selector(
        "SchedulingPreferredAntiAffinityWithNSSelector",
        "5000Nodes_2000Pods",
        "pod-preferred-anti-affinity-ns-selector",
        55,
        nodes=5000,
        each=40,
        measured=2000,
        zone=False,
    ),
    by_selector(
        "SchedulingRequiredPodAffinityWithNSSelector",
        "5000Nodes_2000Pods",
        "pod-affinity-ns-selector",
        35,
        nodes=5000,
        each=50,
        measured=2000,
        zone=True,
    ),
    by_selector(
        "SchedulingPreferredAffinityWithNSSelector",
        "5000Nodes_5000Pods",
        "pod-preferred-affinity-ns-selector",
        90,
        nodes=5000,
        each=50,
        measured=5000,
        zone=False,
    ),
)

MATCHING = "5,000 matching pods running"
"""The name of workloads that upstream lacks: its spreading cases start with pods that do not count."""


def spreading(name: str, workload: str, template: str, floor: int, *, running: str = "pod-default") -> Case:
    """Return a case of pods with topology spread constraints over three zones."""
    namespace = "namespace-2" if running == template else "namespace-1"
    return Case(name, workload, 5000, Batch(template, 5000), (Batch(running, 5000, namespace),), floor, ZONES)


def default_spreading(workload: str, count: int, floor: int) -> Case:
    """Return a case of pods of a service, which get the default constraints."""
    return Case(
        "DefaultTopologySpreading",
        workload,
        5000,
        Batch("pod-with-label", count, "service-ns"),
        (Batch("pod-default", 5000, "namespace-1"),),
        floor,
        ZONES,
        service="service-ns",
    )


SPREADING: Sequence[Case] = (
    spreading("TopologySpreading", "5000Nodes_5000Pods", "pod-with-topology-spreading", 460),
    spreading("PreferredTopologySpreading", "5000Nodes_5000Pods", "pod-with-preferred-topology-spreading", 340),
    default_spreading("5000Nodes_10000Pods", 10000, 0),
    Case(
        "SchedulingWithNodeInclusionPolicy",
        "5000Nodes",
        4000,
        Batch("pod-with-node-inclusion-policy", 4000),
        floor=270,
        tainted=1000,
    ),
    spreading("TopologySpreading", MATCHING, "pod-with-topology-spreading", 0, running="pod-with-topology-spreading"),
    spreading(
        "PreferredTopologySpreading",
        MATCHING,
        "pod-with-preferred-topology-spreading",
        0,
        running="pod-with-preferred-topology-spreading",
    ),
    replace(default_spreading(MATCHING, 5000, 0), before=(Batch("pod-with-label", 5000, "service-ns"),)),
    spreading(
        "two soft constraints",
        MATCHING,
        "pod-with-two-preferred-constraints",
        0,
        running="pod-with-two-preferred-constraints",
    ),
)

SIMPLE: Sequence[Case] = (
    Case(
        "SchedulingBasic",
        "5000Nodes_10000Pods",
        5000,
        Batch("pod-default", 10000),
        (Batch("pod-default", 1000, "namespace-1"),),
        680,
    ),
    Case(
        "SchedulingNodeAffinity",
        "5000Nodes_10000Pods",
        5000,
        Batch("pod-with-node-affinity", 10000),
        (Batch("pod-with-node-affinity", 5000, "namespace-1"),),
        220,
        ("zone1",),
    ),
    Case(
        "SchedulingDaemonset",
        "15000Nodes",
        15000,
        Batch("daemonset-pod", 30000),
        floor=1100,
        named_node=True,
    ),
    Case(
        "SchedulingWithExtendedResource",
        "5000pods_5000nodes",
        5000,
        Batch("pod-default", 5000, "test", extended="foo.com/bar-"),
        floor=180,
        extended=True,
    ),
    Case(
        "SchedulingWithMixedChurn",
        "5000Nodes_10000Pods",
        5000,
        Batch("pod-default", 10000),
        floor=710,
        churn=Churn(710, 1000, creates="pod-high-priority-large-cpu", recreates=True),
        echo=True,
    ),
    Case(
        "SchedulingDeletedPodsWithFinalizers",
        "5000Node_5000DeletingPods",
        5000,
        Batch("light-pod", 5000, "namespace-3"),
        (Batch("pod-with-finalizer", 5000, "namespace-1"),),
        830,
        churn=Churn(8, 10, deletes=("namespace-1",), finalizers=True),
        echo=True,
    ),
)


def volumes(name: str, workload: str, volume: str, floor: int, *, running: int, measured: int, csi: str) -> Case:
    """Return a case of pods that have a bound volume each."""
    return Case(
        name,
        workload,
        5000,
        Batch("pod-default", measured, volume=volume),
        (Batch("pod-default", running, "namespace-1", volume=volume),),
        floor,
        csi=csi,
    )


GPU = "example.com/gpu-"
"""Prefix of the extended resources of device classes."""

VOLUMES: Sequence[Case] = (
    Case(
        "SchedulingSecrets",
        "5000Nodes_10000Pods",
        5000,
        Batch("pod-with-secret-volume", 10000),
        (Batch("pod-with-secret-volume", 1000, "namespace-1"),),
        790,
    ),
    volumes("SchedulingInTreePVs", "5000Nodes_2000Pods", "in-tree", 290, running=1000, measured=2000, csi=""),
    volumes(
        "SchedulingMigratedInTreePVs",
        "5000Nodes_5000Pods",
        "in-tree",
        100,
        running=5000,
        measured=5000,
        csi="migrated",
    ),
    volumes("SchedulingCSIPVs", "5000Nodes_5000Pods", "csi", 100, running=5000, measured=5000, csi="csi"),
    Case(
        "SchedulingWithResourceClaimTemplate",
        "5000pods_500nodes",
        500,
        Batch("pod-default", 2500, "test", devices=True),
        (Batch("pod-default", 2500, "test", devices=True),),
        120,
        devices=10,
    ),
    Case(
        "SchedulingWithExtendedResource",
        "5000pods_500nodes",
        500,
        Batch("pod-default", 2500, "test", extended=GPU),
        (Batch("pod-default", 2500, "init", extended=GPU),),
        devices=10,
        device_classes=2500,
    ),
)

LOW = Batch("pod-low-priority", 20000, "namespace-1")


def unschedulable(workload: str, running: int, floor: int) -> Case:
    """Return a case of plain pods, among which pods arrive for which preemption can't make room."""
    return Case(
        "Unschedulable",
        workload,
        5000,
        Batch("pod-default", 10000, "namespace-3"),
        (Batch("pod-default", running, "namespace-1"),),
        floor,
        churn=Churn(floor // 5, 200, creates="pod-high-priority-large-cpu"),
        echo=True,
    )


PREEMPTION: Sequence[Case] = (
    Case(
        "PreemptionBasic",
        "1000Nodes",
        1000,
        Batch("pod-high-priority", 1000),
        (replace(LOW, count=4000),),
        echo=True,
        unit="preemptors/s",
    ),
    Case(
        "PreemptionBasic", "5000Nodes", 5000, Batch("pod-high-priority", 5000), (LOW,), echo=True, unit="preemptors/s"
    ),
    Case(
        "PreemptionAsync",
        "5000Nodes_AsyncPreemptionEnabled",
        5000,
        Batch("pod-default", 5000, "namespace-3"),
        (LOW,),
        570,
        churn=Churn(114, 200, creates="pod-high-priority"),
        echo=True,
    ),
    unschedulable("5kNodes/100Init/10kPods", 100, 590),
    unschedulable("5kNodes/20kInit/10kPods", 20000, 600),
    Case(
        "Unschedulable",
        "5kNodes/20kInit, preemptors alone",
        5000,
        Batch("pod-high-priority-large-cpu", 2000, waits=True),
        (Batch("pod-default", 20000, "namespace-1"),),
        echo=True,
        unit="preemptors/s",
    ),
)

GATED: Sequence[Case] = (
    Case(
        "SchedulingWhileGated",
        "1Node_10000GatedPods",
        0,
        Batch("light-pod", 20000, "namespace-5"),
        (Batch("gated-pod", 10000, "namespace-1", waits=True), Batch("light-pod", 20000, "namespace-3")),
        910,
        named_node=True,
        churn=Churn(18, 20, deletes=("namespace-3",)),
        echo=True,
    ),
    Case(
        "SchedulingGatedPodsWithPodAffinityImpactForThroughput",
        "1Node_10000GatedPods",
        0,
        Batch("pod-with-label", 20000, "namespace-3"),
        (Batch("gated-pod-with-pod-affinity", 10000, "namespace-1", waits=True),),
        110,
        named_node=True,
        echo=True,
    ),
)

SHAPED_LIKE = "shaped like 50Nodes_500Pods"
"""A smaller variant of upstream's case: fewer pods, and none with volumes."""

PORTS = 12
TOPOLOGY_BLOCKERS, AFFINITY_BLOCKERS = "blockertopologyportsresources", "blockeraffinity"
"""Host ports that pods take in turn, and the namespaces of the two groups of blockers."""

EVENTS: Sequence[Case] = (
    Case(
        "EventHandlingPodDelete",
        "50Nodes_500Pods",
        50,
        Batch("poddelete-pod-podtopologyspread", 500, TOPOLOGY_BLOCKERS),
        (
            Batch("poddelete-pod-blocker-topology-ports-resources", 480, TOPOLOGY_BLOCKERS, volume="csi", ports=PORTS),
            Batch("poddelete-pod-blocker-affinity", 480, AFFINITY_BLOCKERS, volume="csi-once"),
        ),
        csi="csi",
        volume_limit=20,
        also=(
            Batch("poddelete-pod-volumerestrictions", 480, AFFINITY_BLOCKERS, shares="init-1"),
            Batch("poddelete-pod-nodeports", 500, "nodeports", ports=PORTS),
            Batch("poddelete-pod-noderesources", 500, "noderesources"),
            Batch("poddelete-pod-nodevolumelimits", 480, "nodevolumelimits", volume="csi"),
            Batch("poddelete-pod-interpodaffinity", 500, "interpodaffinity"),
        ),
        churn=Churn(0, 10, deletes=(TOPOLOGY_BLOCKERS, AFFINITY_BLOCKERS)),
        echo=True,
        unit="cycles/s",
    ),
    Case(
        "EventHandlingPodDelete",
        SHAPED_LIKE,
        50,
        Batch("waits-for-room", 250, "noderesources"),
        (Batch("pod-hostport-80", 50, "blockers"), Batch("blocker", 450, "blockers")),
        also=(Batch("pod-hostport-80", 50, "nodeports"), Batch("waits-for-distance", 200, "interpodaffinity")),
        churn=Churn(0, 10, deletes=("blockers",)),
        echo=True,
        unit="cycles/s",
    ),
)

CASES: Sequence[Case] = (*SIMPLE, *AFFINITY, *SPREADING, *VOLUMES, *PREEMPTION, *GATED, *EVENTS)
