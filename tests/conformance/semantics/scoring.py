"""Rules 22 to 25 and 28 to 40: scores."""

from __future__ import annotations

from collections.abc import Mapping

from bayplan.conformance.cases import Json, JsonObject
from tests.conformance.semantics.rows import (
    HOSTNAME,
    PREFERRED,
    ZONE,
    Row,
    anti_affinity,
    claim_volume,
    cpu,
    disabled,
    in_,
    node,
    node_affinity,
    only,
    pod,
    pod_affinity,
    pod_term,
    storage_class,
    volume,
    volume_claim,
    with_args,
)

LARGE = "registry.example/large:v1"
MIB = 1 << 20


def soft_spread(key: str, selector: JsonObject | None = None) -> list[Json]:
    selected: JsonObject = selector or {"matchLabels": {"app": "x"}}
    return [{"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": selected}]


def preferred(*requirements: JsonObject) -> JsonObject:
    term: JsonObject = {"matchExpressions": list[Json](requirements)}
    return {"nodeAffinity": {PREFERRED: [{"weight": 1, "preference": term}]}}


def zoned(name: str, zone: str) -> JsonObject:
    return node(name, labels={ZONE: zone})


def namespace(name: str, labels: Mapping[str, Json]) -> JsonObject:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": dict(labels)}}


def elsewhere(operator: str) -> JsonObject:
    return {"namespaceSelector": {"matchExpressions": [{"key": "team", "operator": operator, "values": ["y"]}]}}


ROWS = (
    Row(
        22,
        "taints and spreading give 100 to all where nodes are equal, affinity between pods 0",
        [
            node("n1"),
            node("n2"),
            pod("r1", on="n1", labels={"app": "x"}),
            pod("r2", on="n2", labels={"app": "x"}),
        ],
        [
            pod(
                "p",
                cpu("1"),
                labels={"app": "x"},
                topologySpreadConstraints=soft_spread(HOSTNAME),
                affinity={"podAffinity": {PREFERRED: [{"weight": 3, "podAffinityTerm": pod_term(HOSTNAME, "x")}]}},
            )
        ],
        {
            "0.scores.TaintToleration.normalized": {"n1": 100, "n2": 100},
            "0.scores.PodTopologySpread.normalized": {"n1": 100, "n2": 100},
            "0.scores.InterPodAffinity.raw": {"n1": 3, "n2": 3},
            "0.scores.InterPodAffinity.normalized": {"n1": 0, "n2": 0},
        },
    ),
    Row(
        22,
        "raw scores of affinity between pods can be negative",
        [node("n1"), node("n2"), pod("r", on="n1", labels={"app": "x"})],
        [
            pod(
                "p",
                affinity={"podAntiAffinity": {PREFERRED: [{"weight": 3, "podAffinityTerm": pod_term(HOSTNAME, "x")}]}},
            )
        ],
        {
            "0.scores.InterPodAffinity.raw": {"n1": -3, "n2": 0},
            "0.scores.InterPodAffinity.normalized": {"n1": 0, "n2": 100},
        },
    ),
    Row(
        23,
        "devices score 0 for pods without claims, and with weight 2; an empty node of 4 CPUs gets 97 for a pod without requests",
        [node()],
        [pod("p")],
        {
            "0.scores.DynamicResources": {"weight": 2, "raw": {"n1": 0}, "normalized": {"n1": 0}},
            "0.scores.NodeResourcesFit.raw": {"n1": 97},
            "0.preScoreSkipped": [
                "InterPodAffinity",
                "NodeAffinity",
                "NodeResourcesBalancedAllocation",
                "PodTopologySpread",
                "VolumeBinding",
            ],
        },
    ),
    Row(
        23,
        "volumes are scored with their gate only",
        [node(), storage_class(), volume("pv", size="2Gi"), volume_claim("c")],
        [pod("p", volumes=claim_volume("c"))],
        {"0.scores.VolumeBinding.raw": {"n1": 50}},
        gates={"StorageCapacityScoring": True},
    ),
    Row(
        24,
        "without score plugins every node that fits is as good as the next",
        [node("n1", {"cpu": "8"}), node("n2")],
        [pod("p", cpu("1"))],
        {"0.total": {"n1": 1, "n2": 1}, "0.best": ["n1", "n2"], "0.scores": {}},
        config=only("PrioritySort", "NodeUnschedulable", "DefaultBinder"),
    ),
    Row(
        25,
        "the second of two equal pods is scored on all nodes again",
        [node("n1"), node("n2")],
        [pod("p", cpu("1")), pod("q", cpu("1"))],
        {"0.chosen": "n1", "1.feasible": ["n1", "n2"], "1.best": ["n2"]},
        gates={"OpportunisticBatching": True},
    ),
    Row(
        28,
        "the fit score leaves out what the pod as a whole asks for; filter, balance and running pods count it",
        [node("n1"), node("n2")],
        [pod("p", resources={"requests": {"cpu": "4"}}), pod("q", resources={"requests": {"cpu": "1"}})],
        {
            "0.scores.NodeResourcesFit.raw": {"n1": 97, "n2": 97},
            "0.scores.NodeResourcesBalancedAllocation.raw": {"n1": 50, "n2": 50},
            "1.filterAll.NodeResourcesFit.n1.reasons": ["Insufficient cpu"],
            "1.feasible": ["n2"],
        },
    ),
    Row(
        29,
        "balance scores how a pod changes it: 50 at worst, 75 for no change, 100 at best; none for pods without requests",
        [
            node("n1"),
            node("n2"),
            pod("r", {"memory": "16Gi"}, on="n2"),
        ],
        [pod("p", cpu("4")), pod("q", {"cpu": "1m", "memory": "0"})],
        {"0.scores.NodeResourcesBalancedAllocation.raw": {"n1": 50, "n2": 100}, "1.chosen": "n1"},
    ),
    Row(
        30,
        "what a nominated pod keeps away from itself is overlooked where nobody who runs does so",
        [node(), pod("w", nominated="n1", priority=5, affinity=anti_affinity(HOSTNAME, "x"))],
        [pod("p", priority=0, labels={"app": "x"})],
        {"0.chosen": "n1"},
    ),
    Row(
        30,
        "it counts where a running pod makes the plugin look",
        [
            node("n1"),
            node("n2"),
            pod("w", nominated="n1", priority=5, affinity=anti_affinity(HOSTNAME, "x")),
            pod("r", on="n2", affinity=anti_affinity(HOSTNAME, "x")),
        ],
        [pod("p", priority=0, labels={"app": "x"})],
        {"0.filter.n1.reasons": ["node(s) didn't satisfy existing pods anti-affinity rules"], "0.feasible": []},
    ),
    Row(
        31,
        "an image has one size, that of the first node known to hold it",
        [node("n1", images=[(LARGE, 900 * MIB)]), node("n2", images=[(LARGE, 100 * MIB)]), node("n3")],
        [pod("p", image=LARGE)],
        {"0.scores.ImageLocality.raw": {"n1": 59, "n2": 59, "n3": 0}},
    ),
    Row(
        31,
        "images of init containers and of volumes count too",
        [node("n1", images=[(LARGE, 900 * MIB)]), node("n2")],
        [
            pod("p", initContainers=[{"name": "i", "image": LARGE}]),
            pod("q", volumes=[{"name": "v", "image": {"reference": LARGE}}]),
        ],
        {"0.scores.ImageLocality.raw": {"n1": 21, "n2": 0}, "1.scores.ImageLocality.raw": {"n1": 43, "n2": 0}},
    ),
    Row(
        32,
        "a node with 93P of memory leaves 64 bits, and the cycle fails",
        [node("n1", {"memory": "93P"}), node("n2")],
        [pod("p", cpu("1"))],
        {
            "0.message": 'applying score defaultWeights on Score plugins: plugin "NodeResourcesFit" returns an invalid score -11, '
            "it should in the range of [0, 100] after normalizing",
            "0.chosen": None,
        },
    ),
    Row(
        33,
        "a value that is no label's fails the cycle in a preferred term",
        [node()],
        [pod("p", affinity=preferred(in_("disk", "!")))],
        {"0.chosen": None, "0.scores": {}},
    ),
    Row(
        33,
        "if PreScore fails, no skips are listed, not even those of plugins before the one that fails",
        [node()],
        [
            pod(
                "p",
                topologySpreadConstraints=soft_spread(HOSTNAME, {"matchExpressions": [{"key": "a", "operator": "?"}]}),
            )
        ],
        {"0.preScoreSkipped": [], "0.scores": {}, "0.total": {}, "0.chosen": None},
    ),
    Row(
        33,
        "without PreScore it fails Score, after the plugins before",
        [node()],
        [pod("p", cpu("1"), affinity=preferred(in_("disk", "!")))],
        {
            "0.preScoreSkipped": ["InterPodAffinity", "PodTopologySpread", "VolumeBinding"],
            "0.scores": {"TaintToleration": {"weight": 3, "raw": {"n1": 0}, "normalized": {"n1": 100}}},
            "0.total": {"n1": 300},
            "0.best": [],
            "0.chosen": None,
        },
        config=disabled("preScore", "NodeAffinity"),
    ),
    Row(
        33,
        "if the first plugin fails in Score, nothing has a score",
        [node()],
        [pod("p", cpu("1"), affinity=preferred(in_("disk", "!")))],
        {"0.scores": {}, "0.total": {}, "0.chosen": None},
        config={
            "schedulerName": "default-scheduler",
            "plugins": {
                "preScore": {"disabled": [{"name": "NodeAffinity"}]},
                "score": {"disabled": [{"name": "TaintToleration"}]},
            },
        },
    ),
    Row(
        33,
        "in a required term it matches nothing",
        [node()],
        [pod("p", affinity=node_affinity(in_("disk", "!")))],
        {"0.filter.n1.reasons": ["node(s) didn't match Pod's node affinity/selector"]},
    ),
    Row(
        38,
        "a node without the key gets 0 in soft spreading",
        [zoned("n1", "a"), zoned("n2", "b"), node("n3")],
        [pod("p", labels={"app": "x"}, topologySpreadConstraints=soft_spread(ZONE))],
        {"0.scores.PodTopologySpread.normalized": {"n1": 100, "n2": 100, "n3": 0}},
    ),
    Row(
        40,
        "an incoming pod's selector of namespaces is matched against no labels, too",
        [
            node("n1"),
            node("n2"),
            namespace("other", {"team": "y"}),
            {**pod("r", on="n1", labels={"app": "x"}, metadata={"namespace": "other"})},
        ],
        [pod("p", affinity=pod_affinity(HOSTNAME, "x", **elsewhere("NotIn")))],
        {"0.feasible": ["n1"]},
    ),
    Row(
        40,
        "a running pod's is matched against those of the namespace only",
        [
            node("n1"),
            node("n2"),
            namespace("default", {"team": "y"}),
            {
                **pod(
                    "r",
                    on="n1",
                    metadata={"namespace": "other"},
                    affinity=anti_affinity(HOSTNAME, "x", **elsewhere("NotIn")),
                )
            },
        ],
        [pod("p", labels={"app": "x"})],
        {"0.feasible": ["n1", "n2"]},
    ),
    Row(
        41,
        "the mean of 2 and 3 percent is rounded to 3, not to the even number",
        [node("n1", {"memory": "10000"})],
        [pod("p", {"cpu": "80m", "memory": "300"})],
        {"0.scores.NodeResourcesFit.raw": {"n1": 3}},
        config=with_args(
            "NodeResourcesFit",
            scoringStrategy={
                "type": "RequestedToCapacityRatio",
                "resources": [{"name": "cpu", "weight": 1}, {"name": "memory", "weight": 1}],
                "requestedToCapacityRatio": {
                    "shape": [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}]
                },
            },
        ),
    ),
)
