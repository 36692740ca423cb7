"""What-if and compare, checked by new clusters.

The reason of each pod that a change leaves pending must be the message with which a new cluster, with the objects at the end
of the what-if, rejects this pod. Two configurations are compared with two independent runs, and two clusters with a list of
their pods.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import islice

from bayplan.answers.changes import parse_change
from bayplan.answers.comparing import compare
from bayplan.answers.copies import replacement_of_victim
from bayplan.answers.displaced_pods import as_waiting, is_recreated_elsewhere
from bayplan.answers.instant_host import InstantHost
from bayplan.answers.question_cluster import QuestionCluster
from bayplan.answers.trial import Trial
from bayplan.answers.what_if import Answer, Reschedule, what_if
from bayplan.app.scheduler_setup import SchedulerOptions, read_setup
from bayplan.engine.records import RecordLevel
from bayplan.library import Cluster
from bayplan.objects.meta import KubernetesObject
from bayplan.objects.node import Node
from bayplan.objects.pod import Pod
from bayplan.testing.builders import make_pod
from proofs.busy_clusters import WITHOUT_EVICTIONS, BusyCluster, busy_clusters
from proofs.proof import Proof

PROFILE = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- %s
"""
CONFIGURATIONS = (
    PROFILE % ("plugins: {score: {disabled: [{name: PodTopologySpread}]}}"),
    PROFILE % ("plugins: {multiPoint: {disabled: [{name: NodeResourcesBalancedAllocation}]}}"),
    PROFILE % ("pluginConfig: [{name: NodeResourcesFit, args: {scoringStrategy: {type: MostAllocated}}}]"),
    PROFILE % ("plugins: {filter: {disabled: [{name: InterPodAffinity}, {name: NodePorts}]}}"),
    WITHOUT_EVICTIONS,
)
"""Configurations, one of which is compared with the default one."""

MAX_ROUNDS = 5
"""Maximum number of times to create evicted pods again."""


def prove(cases: int, seed: int) -> Proof:
    """Check `cases` clusters and return the results."""
    proof, draw = Proof(), random.Random(f"what-if {seed}")
    for case in islice((each for each in busy_clusters(seed) if each.workloads), cases):
        proof.cases += 1
        case.objects += [_pending(draw, number) for number in range(draw.randint(0, 3))]
        check_change(case, _change(draw, case), proof)
        check_configurations(case, draw.choice(CONFIGURATIONS), proof)
    return proof


def _pending(draw: random.Random, number: int) -> Pod:
    """Return a pod that may fit nowhere, or evict other pods."""
    pod = make_pod(f"more-{number}").label({"app": "more"}).req(cpu=draw.choice(("500m", "2", "3")), memory="256Mi")
    if draw.random() < 0.3:
        pod.pod_affinity({"app": draw.choice(("w0", "w1"))}, "zone")
    return pod.priority(draw.choice((0, 5, 20))).owner("ReplicaSet", "more").obj()


def _change(draw: random.Random, case: BusyCluster) -> str:
    nodes = [item.metadata.name for item in case.objects if isinstance(item, Node)]
    zones = sorted(
        {item.metadata.labels["topology.kubernetes.io/zone"] for item in case.objects if isinstance(item, Node)}
    )
    node, workload = draw.choice(nodes), draw.choice(case.workloads)
    changes = [f"remove-nodes={node}", f"drain={node}", f"cordon={node}", f"taint={node}:x=y:NoExecute"]
    changes += [f"resize={node}:cpu=1", "add-nodes=1:cpu=2,memory=4Gi", f"delete=pod/{workload}-0"]
    changes += [f"lose-zone={draw.choice(zones)}"] * (2 if len(zones) > 1 else 0)
    if not any(isinstance(item, Pod) and item.metadata.name == f"{workload}-0" for item in case.objects):
        changes.remove(f"delete=pod/{workload}-0")
    return draw.choice(changes)


# --- one change -------------------------------------------------------------------------------------------------------


def check_change(case: BusyCluster, change: str, proof: Proof) -> None:
    """Check the pods that a change leaves pending, and the counts."""
    ends: list[list[KubernetesObject]] = []

    def after(trial: Trial) -> None:
        ends.append(trial.objects())

    answer = what_if(case.asked(), [parse_change(change)], after=after)
    (end,) = ends
    title = f"{case.name} {change}"
    pods = {item.key: item for item in end if isinstance(item, Pod)}
    waiting = {key for key, pod in pods.items() if not pod.spec.node_name}
    counts = {
        "nodes": sum(isinstance(item, Node) for item in end),
        "pods placed": len(pods) - len(waiting),
        "pods pending": len(waiting),
    }
    for measure in answer.measures:
        if measure.after != counts.get(measure.name, measure.after):
            proof.failures.append(f"{title}: {measure.name} {measure.after}, want {counts[measure.name]}")
    for row in answer.differences:
        pod = pods.get(row.pod)
        if row.after != (pod.spec.node_name if pod is not None else ""):
            proof.failures.append(f"{title}: {row.pod} on {row.after!r}")
        elif pod is not None and not row.after:
            want = rejection(end, pod)
            kind = "pending pods after evictions" if answer.evictions else "pending pods"
            proof.counts[kind] += 1
            if row.reason.partition(". ")[0].rstrip(".") != want:
                proof.failures.append(f"{title}: {row.pod} is pending because of {row.reason!r}, want {want!r}")
    _check_evictions(answer, pods, proof, title)


def _check_evictions(answer: Answer, pods: dict[str, Pod], proof: Proof, title: str) -> None:
    """Check that no evicted pod is lost that a controller creates again."""
    for eviction in answer.evictions:
        proof.counts["evictions"] += 1
        if eviction.pod not in pods:
            proof.failures.append(f"{title}: {eviction.pod} is evicted and not created again")


def rejection(end: Sequence[KubernetesObject], pod: Pod) -> str:
    """Return the first sentence with which a new cluster rejects a pending pod; "" if the pod gets a node."""
    others = [item for item in end if not isinstance(item, Pod) or item.spec.node_name]
    record = Cluster(others, configuration=WITHOUT_EVICTIONS).schedule(pod)[-1].record
    return "" if record.node else record.message.partition(". ")[0].rstrip(".")


# --- two configurations, two clusters ---------------------------------------------------------------------------------


def check_configurations(case: BusyCluster, text: str, proof: Proof) -> None:
    """Compare two configurations with two independent runs, and then the two resulting clusters."""
    answer = what_if(
        case.asked(),
        scheduler=read_setup(SchedulerOptions(text=text)),
        scheduler_label="other",
        reschedule=Reschedule.ALL,
    )
    before, after = (run(case, configuration) for configuration in ("", text))
    a, b = ({pod.key: pod.spec.node_name for pod in pods} for pods in (before, after))
    want = {key: (a.get(key), b.get(key)) for key in a.keys() | b.keys() if a.get(key) != b.get(key)}
    proof.counts["compared pods"] += len(a)
    proof.counts["differences"] += len(want)
    _check_rows(f"{case.name} what-if {text}", answer, want, proof)
    others = [item for item in case.objects if not isinstance(item, Pod)]
    found = compare(*(QuestionCluster([*others, *pods], read_setup()) for pods in (before, after)))
    _check_rows(f"{case.name} compare {text}", found, want, proof)


def _check_rows(title: str, answer: Answer, want: dict[str, tuple[str | None, str | None]], proof: Proof) -> None:
    found = {
        row.pod: (None if row.kind == "new" else row.before, None if row.kind == "gone" else row.after)
        for row in answer.differences
    }
    for key in sorted(found.keys() | want.keys()):
        if found.get(key) != want.get(key):
            proof.failures.append(f"{title}: {key} {found.get(key)}, want {want.get(key)}")


def run(case: BusyCluster, text: str) -> list[Pod]:
    """Return the pods after all of them were scheduled in a new cluster, and evicted pods again, in the order of their eviction."""
    scheduler = read_setup(SchedulerOptions(text=text)).make(record_level=RecordLevel.OFF)
    host, pods = InstantHost(scheduler), [item for item in case.objects if isinstance(item, Pod)]
    fixed = [pod for pod in pods if not is_recreated_elsewhere(pod)]
    host.add_all([*(item for item in case.objects if not isinstance(item, Pod)), *fixed])
    # The queue sorts by priority, then by the order of addition: what-if adds pending pods first.
    free = sorted((pod for pod in pods if pod not in fixed), key=lambda pod: (bool(pod.spec.node_name), pod.key))
    host.add_all(as_waiting(pod) for pod in free)
    for _ in range(MAX_ROUNDS):
        done = len(host.evictions)
        while (report := scheduler.schedule_one(0)) is not None:
            host.execute(report.actions)
        for eviction in host.evictions[done:]:
            host.add_all(replacement_of_victim(host.victims[eviction.pod], case.asked()))
    return list(scheduler.pods.values())
