"""A realistic cluster for screenshots and layout tests: cloud names, Deployments, waiting and gated pods."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from tests.ui.cloud_names import STYLES, cloud_name, eks_name
from tests.ui.running import Manifest, deployment, node, pod

ZONES = ("eu-west-1a", "eu-west-1b", "eu-west-1c")
NODES = 18
GPU_NODES = (4, 13)
OTHER_SCHEDULER = "volcano"

DEPLOYMENTS = (
    ("checkout", "shop", 9, "500m", "1Gi"),
    ("payments-api", "shop", 6, "1", "2Gi"),
    ("recommendation-model-server", "ml-serving", 4, "3", "12Gi"),
    ("ingress-nginx-controller", "ingress-nginx", 3, "250m", "512Mi"),
    ("opentelemetry-collector-gateway", "observability", 5, "750m", "1536Mi"),
)


def cloud_nodes(name: Callable[[int], str], count: int = NODES) -> list[Manifest]:
    """Return nodes of several sizes, two of which have GPUs and a taint; one is unschedulable."""
    found = []
    for number in range(count):
        is_gpu = number in GPU_NODES
        made = node(name(number), ZONES[number % 3], cpu=("4", "8", "16")[number % 3], taint="nvidia.com/gpu" * is_gpu)
        labels = cast("dict[str, dict[str, object]]", made["metadata"])["labels"]
        labels["node.kubernetes.io/instance-type"] = "p4d.24xlarge" if is_gpu else "m6i.2xlarge"
        labels["eks.amazonaws.com/nodegroup"] = "gpu" if is_gpu else "general"
        if number == count - 1:
            cast("dict[str, object]", made["spec"])["unschedulable"] = True
        found.append(made)
    return found


def in_namespace(manifest: Manifest, namespace: str, **labels: str) -> Manifest:
    """Return a manifest in another namespace, with labels."""
    metadata = cast("dict[str, object]", manifest["metadata"])
    return {**manifest, "metadata": {**metadata, "namespace": namespace, "labels": labels}}


def cloud_pods() -> list[Manifest]:
    """Return Deployments, pods that wait for several reasons, a gated pod, and a pod with an unknown scheduler name."""
    made = [
        in_namespace(deployment(name, replicas, cpu=cpu, memory=memory), namespace)
        for name, namespace, replicas, cpu, memory in DEPLOYMENTS
    ]
    waiting = [
        pod("trainer-resnet50-distributed-worker-0", cpu="32", memory="64Gi"),
        pod("trainer-resnet50-distributed-worker-1", cpu="32", memory="64Gi"),
        pod("feature-store-compaction-28471920-x7kq2", cpu="2", nodeSelector={"disktype": "nvme"}),
        pod("zookeeper-quorum-0", cpu="14", memory="90Gi"),
    ]
    gated = pod("batch-settlement-28471935-9fq4c", schedulingGates=[{"name": "kueue.x-k8s.io/admission"}])
    foreign = pod("spark-driver-monthly-report-7d9f8b6c5d", schedulerName=OTHER_SCHEDULER)
    return [*made, *(in_namespace(each, "ml-train") for each in waiting), in_namespace(gated, "batch"), foreign]


def cloud_cluster(style: str = "mixed", count: int = NODES) -> list[Manifest]:
    """Return the cluster, whose nodes have the names of one style of `STYLES`, or of all of them for ``mixed``."""
    return [*cloud_nodes(STYLES.get(style, cloud_name), count), *cloud_pods()]


def urgent_pod() -> tuple[Manifest, Manifest]:
    """Return a PriorityClass and a pod of this class that fits no node without preemption."""
    priority = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "value": 100_000}
    urgent = pod("postgres-primary-failover-0", cpu="15500m", memory="30Gi", priorityClassName="business-critical")
    return {**priority, "metadata": {"name": "business-critical"}}, urgent


def imported_cluster() -> list[Manifest]:
    """Return the manifests of another cluster: two nodes with running pods."""
    nodes = cloud_nodes(lambda number: eks_name(100 + number), 2)
    names = [cast("dict[str, str]", each["metadata"])["name"] for each in nodes]
    del cast("dict[str, object]", nodes[-1]["spec"])["unschedulable"]
    pods = [
        in_namespace(pod(f"legacy-billing-6f5d4c7b8-{suffix}", nodeName=names[at % 2]), "legacy", app="billing")
        for at, suffix in enumerate(("2xk9q", "7jw4m", "b8n6t"))
    ]
    for each in pods:
        each["status"] = {"phase": "Running"}
    return [*nodes, *pods]
