"""Rules 13 to 21 and 34 to 37: PreFilter, volumes, devices, ports, taints."""

from __future__ import annotations

from bayplan.conformance.cases import Json, JsonObject
from tests.conformance.semantics.rows import (
    HOSTNAME,
    Row,
    claim_volume,
    cpu,
    device_claim,
    device_class,
    devices,
    disabled,
    in_,
    node,
    node_affinity,
    pod,
    storage_class,
    using,
    volume,
    volume_claim,
    with_args,
)

NAME = "metadata.name"
RESOURCE_GPU = "example.com/gpu"
ATTRIBUTE = 'device.attributes["d.example"]'


def toleration(operator: str, value: str) -> list[Json]:
    return [{"key": "level", "operator": operator, "value": value, "effect": "NoSchedule"}]


def level(value: str) -> JsonObject:
    return {"key": "level", "value": value, "effect": "NoSchedule"}


def ebs(name: str) -> JsonObject:
    return volume(name, awsElasticBlockStore={"volumeID": f"vol-{name}"})


def csi_node(name: str, driver: str, count: int) -> JsonObject:
    written: JsonObject = {"name": driver, "nodeID": name, "topologyKeys": [HOSTNAME], "allocatable": {"count": count}}
    spec: JsonObject = {"drivers": [written]}
    return {"apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": {"name": name}, "spec": spec}


ROWS = (
    Row(
        13,
        "a name may name no node; those left out count with the plugin's name",
        [node("n1"), node("n2")],
        [pod("p", affinity=node_affinity(fields=[in_(NAME, "gone")]))],
        {
            "0.preFilter.nodeNames": ["gone"],
            "0.message": "0/2 nodes are available: 2 node(s) didn't satisfy plugin(s) [NodeAffinity]. no new claims to "
            "deallocate, preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling.",
        },
    ),
    Row(
        13,
        "two names that exclude one another are rejected at once",
        [node("n1"), node("n2")],
        [pod("p", affinity=node_affinity(fields=[in_(NAME, "n1"), in_(NAME, "n2")]))],
        {"0.preFilter.reasons": ["pod affinity terms conflict"], "0.preFilter.plugin": "NodeAffinity"},
    ),
    Row(
        14,
        "a missing claim is told by the first plugin that looks",
        [node()],
        [pod("p", volumes=claim_volume("c"))],
        {
            "0.preFilter.plugin": "VolumeRestrictions",
            "0.preFilter.reasons": ['persistentvolumeclaim "c" not found'],
        },
    ),
    Row(
        14,
        "where that one is switched off, by the next",
        [node()],
        [pod("p", volumes=claim_volume("c"))],
        {"0.preFilter.plugin": "VolumeBinding"},
        config=disabled("multiPoint", "VolumeRestrictions"),
    ),
    Row(
        15,
        "a volume for one pod only keeps another from every node",
        [
            node("n1"),
            node("n2"),
            storage_class(),
            volume("pv", mode="ReadWriteOncePod"),
            volume_claim("c", bound="pv", mode="ReadWriteOncePod"),
            pod("r", on="n1", volumes=claim_volume("c")),
        ],
        [pod("p", volumes=claim_volume("c"))],
        {
            "0.filterAll.VolumeRestrictions.n1.code": "Unschedulable",
            "0.filterAll.VolumeRestrictions.n2.code": "Unschedulable",
            "0.feasible": [],
        },
    ),
    Row(
        16,
        "an error on one node ends the cycle, though another fits",
        [
            node("n1"),
            node("n2"),
            device_class(),
            devices("n1", "x"),
            devices("n2", "y", attributes={"model": {"string": "a"}}),
            device_claim("c", selector=f'{ATTRIBUTE}.model == "a"'),
        ],
        [pod("p", resourceClaims=using("c"))],
        {
            "0.feasible": ["n2"],
            "0.chosen": None,
            "0.preemption": None,
            "0.message": 'running "DynamicResources" filter plugin: claim default/c: selector #0: CEL runtime error: '
            "no such key: model",
        },
    ),
    Row(
        16,
        "such as all devices of a pool that is not complete, of more than 32",
        [
            node("n1"),
            node("n2"),
            device_class(),
            devices("n1", *(f"d{number}" for number in range(33))),
            devices("n2", "y"),
            device_claim("c", mode="All"),
        ],
        [pod("p", resourceClaims=using("c"))],
        {"0.feasible": ["n2"], "0.chosen": None, "0.filter.n1.code": "Error"},
    ),
    Row(
        17,
        "without its PreFilter NodeResourcesFit finds no state",
        [node()],
        [pod("p", cpu("1"))],
        {"0.filter.n1.code": "Error", "0.chosen": None},
        config=disabled("preFilter", "NodeResourcesFit"),
    ),
    Row(
        17,
        "nor does PodTopologySpread",
        [node()],
        [pod("p", cpu("1"))],
        {"0.filter.n1.code": "Error", "0.chosen": None},
        config=disabled("preFilter", "PodTopologySpread"),
    ),
    Row(
        19,
        "the value of the taint must be greater than that of a toleration Gt",
        [node("n1", taints=[level("5")]), node("n2", taints=[level("7")]), node("n3", taints=[level("6")])],
        [pod("p", tolerations=toleration("Gt", "6")), pod("q", tolerations=toleration("Lt", "6"))],
        {"0.feasible": ["n2"], "1.feasible": ["n1"]},
        gates={"TaintTolerationComparisonOperators": True},
    ),
    Row(
        20,
        "a claim is bound only once its controller says so",
        [node(), storage_class(delayed=False), volume("pv"), volume_claim("c", bound="pv", by="")],
        [pod("p", volumes=claim_volume("c"))],
        {
            "0.preFilter.plugin": "VolumeBinding",
            "0.preFilter.reasons": ["pod has unbound immediate PersistentVolumeClaims"],
        },
    ),
    Row(
        20,
        "then it is",
        [node(), storage_class(delayed=False), volume("pv"), volume_claim("c", bound="pv")],
        [pod("p", volumes=claim_volume("c"))],
        {"0.chosen": "n1"},
    ),
    Row(
        21,
        "of volumes of one size one is chosen, and of others the smallest that is large enough",
        [
            node(),
            storage_class(),
            volume("pv-b", size="2Gi"),
            volume("pv-a", size="2Gi"),
            volume("pv-c", size="5Gi"),
            volume("pv-d", size="100Mi"),
            volume_claim("c"),
        ],
        [pod("p", volumes=claim_volume("c"))],
        {"0.reserved.volumes": {"default/c": "pv-a"}},
    ),
    Row(
        34,
        "a device without an attribute makes its selector fail",
        [node(), device_class(), devices("n1", "x"), device_claim("c", selector=f"{ATTRIBUTE}.index == 1")],
        [pod("p", resourceClaims=using("c"))],
        {"0.filter.n1.code": "Error"},
    ),
    Row(
        34,
        "an integer compared with a text is just something else",
        [
            node(),
            device_class(),
            devices("n1", "x", attributes={"index": {"int": 1}}),
            device_claim("c", selector=f'{ATTRIBUTE}.index == "1"'),
        ],
        [pod("p", resourceClaims=using("c"))],
        {"0.filter.n1.reasons": ["cannot allocate all claims"]},
    ),
    Row(
        35,
        "a pod that shares a claim whose devices were just chosen is rejected",
        [node(), device_class(), devices("n1", "x"), device_claim("c")],
        [pod("p", resourceClaims=using("c")), pod("q", resourceClaims=using("c"))],
        {
            "0.chosen": "n1",
            "1.preFilter.plugin": "DynamicResources",
            "1.preFilter.code": "UnschedulableAndUnresolvable",
            "1.preFilter.reasons": ["resource claim default/c is in the process of being allocated"],
        },
    ),
    Row(
        36,
        "resources of Kubernetes' own domains count, whatever is to be ignored; others can be",
        [node()],
        [pod("p", {"batch.kubernetes.io/x": "1", RESOURCE_GPU: "1"})],
        {"0.filter.n1.reasons": ["Insufficient batch.kubernetes.io/x"]},
        config=with_args(
            "NodeResourcesFit",
            ignoredResources=["batch.kubernetes.io/x", RESOURCE_GPU],
            ignoredResourceGroups=["batch.kubernetes.io"],
        ),
    ),
    Row(
        37,
        "volumes of EBS count for its driver without any annotation, and a limit of 0 allows none",
        [
            node("n1"),
            node("n2"),
            csi_node("n1", "ebs.csi.aws.com", 0),
            csi_node("n2", "ebs.csi.aws.com", 1),
            storage_class(),
            ebs("a"),
            ebs("b"),
            volume_claim("a", bound="a"),
            volume_claim("b", bound="b"),
            pod("r", on="n2", volumes=claim_volume("a")),
        ],
        [pod("p", volumes=claim_volume("b"))],
        {
            "0.filterAll.NodeVolumeLimits.n1": {
                "code": "Unschedulable",
                "reasons": ["node(s) exceed max volume count"],
            },
            "0.filterAll.NodeVolumeLimits.n2": {
                "code": "Unschedulable",
                "reasons": ["node(s) exceed max volume count"],
            },
        },
    ),
)
