"""Rules 1 to 11: PostFilter, preemption, and nominated pods in filtering."""

from __future__ import annotations

from bayplan.conformance.cases import JsonObject
from tests.conformance.semantics.rows import (
    HOSTNAME,
    Row,
    anti_affinity,
    budget,
    claim_volume,
    cpu,
    device_claim,
    device_class,
    in_,
    node,
    node_affinity,
    pod,
    pod_affinity,
    storage_class,
    using,
    volume,
    volume_claim,
)

GONE: JsonObject = {"deletionTimestamp": "2026-01-05T00:00:00Z"}
EVICTED: JsonObject = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
NO_HELP = "preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."
NO_VICTIMS = "preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod."

ROWS = (
    Row(
        1,
        "a PreFilter that rejects before that of DynamicResources leaves its PostFilter with an error, and the nomination stays",
        [node()],
        [
            pod("p", cpu("4"), priority=10, nominated="n1", volumes=claim_volume("gone")),
            pod("q", cpu("1"), priority=0),
        ],
        {
            "0.message": '0/1 nodes are available: persistentvolumeclaim "gone" not found. not found',
            "0.preemption.code": "Error",
            "0.preemption.candidates": {},
            "1.filter.n1.reasons": ["Insufficient cpu"],
        },
    ),
    Row(
        2,
        "without claims DynamicResources has nothing to deallocate",
        [node()],
        [pod("p", cpu("5"))],
        {"0.message": f"0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, {NO_HELP}"},
    ),
    Row(
        2,
        "with claims the pod is still not schedulable",
        [node(), device_class(), device_claim("c")],
        [pod("p", resourceClaims=using("c"))],
        {"0.message": f"0/1 nodes are available: 1 cannot allocate all claims. still not schedulable, {NO_HELP}"},
    ),
    Row(
        3,
        "only what room could help is a candidate",
        [
            node("n1"),
            node("n2", {"cpu": "1"}),
            node("n3", taints=[{"key": "k", "effect": "NoSchedule"}]),
            node("n4", {"pods": "0"}),
            *(pod(f"r{number}", cpu("3"), on=f"n{number}", priority=0) for number in (1, 3)),
        ],
        [pod("p", cpu("2"), priority=5)],
        {
            "0.filterAll.NodeResourcesFit.n1": {"code": "Unschedulable", "reasons": ["Insufficient cpu"]},
            "0.filterAll.NodeResourcesFit.n2": {
                "code": "UnschedulableAndUnresolvable",
                "reasons": ["Insufficient cpu"],
            },
            "0.filterAll.TaintToleration.n3.code": "UnschedulableAndUnresolvable",
            "0.filterAll.NodeResourcesFit.n4": {"code": "Unschedulable", "reasons": ["Too many pods"]},
            "0.preemption.candidates": {"n1": {"victims": ["default/r1"], "numPDBViolations": 0}},
        },
    ),
    Row(
        3,
        "required affinity to pods, a missing topology label and node affinity can't be helped, anti-affinity can",
        [
            node("n1", labels={"disk": "ssd"}),
            node("n2", bare=True),
            pod("r", on="n1", labels={"app": "x"}, priority=0),
        ],
        [
            pod("p", priority=5, affinity=pod_affinity(HOSTNAME, "nobody")),
            pod("q", priority=5, affinity=anti_affinity(HOSTNAME, "x"), nodeSelector={"disk": "ssd"}),
            pod(
                "s",
                priority=5,
                topologySpreadConstraints=[
                    {
                        "maxSkew": 1,
                        "topologyKey": HOSTNAME,
                        "whenUnsatisfiable": "DoNotSchedule",
                        "labelSelector": {"matchLabels": {"app": "x"}},
                    }
                ],
            ),
            pod("t", priority=5, affinity=node_affinity(in_("disk", "hdd"))),
        ],
        {
            "0.filter.n1.code": "UnschedulableAndUnresolvable",
            "1.filter.n1.code": "Unschedulable",
            "1.filter.n2.code": "UnschedulableAndUnresolvable",
            "1.preemption.nominatedNode": "n1",
            "2.filterAll.PodTopologySpread.n2.code": "UnschedulableAndUnresolvable",
            "3.filter.n1.code": "UnschedulableAndUnresolvable",
        },
    ),
    Row(
        3,
        "a volume on another node can't be helped, a port and a limit of volumes can",
        [
            node(),
            storage_class(),
            volume("pv", on="n2"),
            volume_claim("c", bound="pv"),
            pod("r", on="n1", port=80, priority=0),
        ],
        [pod("p", priority=5, volumes=claim_volume("c")), pod("q", priority=5, port=80)],
        {
            "0.filterAll.VolumeBinding.n1.code": "UnschedulableAndUnresolvable",
            "1.filterAll.NodePorts.n1.code": "Unschedulable",
            "1.preemption.victims": ["default/r"],
        },
    ),
    Row(
        4,
        "a search that finds nothing takes the nomination away",
        [node(), pod("r", cpu("2"), on="n1", priority=50)],
        [pod("p", cpu("3"), priority=10, nominated="n1"), pod("q", cpu("2"), priority=0)],
        {"0.chosen": None, "0.preemption.nominatedNode": None, "1.chosen": "n1"},
    ),
    Row(
        4,
        "where the policy forbids the search, the nomination stays",
        [node(), pod("r", cpu("2"), on="n1", priority=50)],
        [
            pod("p", cpu("3"), priority=10, nominated="n1", preemptionPolicy="Never"),
            pod("q", cpu("2"), priority=0),
        ],
        {"0.chosen": None, "1.filter.n1.reasons": ["Insufficient cpu"]},
    ),
    Row(
        4,
        "where a victim that it evicted is leaving the nominated node, too",
        [node(), pod("r", cpu("2"), on="n1", priority=0, metadata=GONE, conditions=[EVICTED])],
        [pod("p", cpu("3"), priority=10, nominated="n1"), pod("q", cpu("2"), priority=0)],
        {
            "0.message": "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, preemption: not eligible "
            "due to a terminating pod on the nominated node.",
            "1.filter.n1.reasons": ["Insufficient cpu"],
        },
    ),
    Row(
        5,
        "success clears nominations of lower priority on the node",
        [
            node(),
            pod("r", on="n1", port=90, priority=0),
            pod("w", nominated="n1", port=80, priority=5),
        ],
        [pod("p", port=90, priority=10), pod("q", port=80, priority=0)],
        {"0.preemption.nominatedNode": "n1", "1.chosen": "n1"},
    ),
    Row(
        5,
        "but not where all victims are leaving already, evictions running aside",
        [
            node(),
            pod("r", on="n1", port=90, priority=0, metadata=GONE),
            pod("w", nominated="n1", port=80, priority=5),
        ],
        [pod("p", port=90, priority=10), pod("q", port=80, priority=0)],
        {"0.preemption.nominatedNode": "n1", "1.filter.n1.plugin": "NodePorts"},
    ),
    Row(
        5,
        "with evictions in the cycle even then",
        [
            node(),
            pod("r", on="n1", port=90, priority=0, metadata=GONE),
            pod("w", nominated="n1", port=80, priority=5),
        ],
        [pod("p", port=90, priority=10), pod("q", port=80, priority=0)],
        {"0.preemption.nominatedNode": "n1", "1.chosen": "n1"},
        gates={"SchedulerAsyncPreemption": False},
    ),
    Row(
        6,
        "a nominated pod of higher priority takes room in the dry run",
        [
            node(),
            pod("r1", cpu("2"), on="n1", priority=0),
            pod("r2", cpu("2"), on="n1", priority=1),
            pod("w", cpu("2"), nominated="n1", priority=10),
        ],
        [pod("p", cpu("2"), priority=5)],
        {"0.preemption.victims": ["default/r2", "default/r1"]},
    ),
    Row(
        6,
        "one of lower priority does not",
        [
            node(),
            pod("r1", cpu("2"), on="n1", priority=0),
            pod("r2", cpu("2"), on="n1", priority=1),
            pod("w", cpu("2"), nominated="n1", priority=4),
        ],
        [pod("p", cpu("2"), priority=5)],
        {"0.preemption.victims": ["default/r1"]},
    ),
    Row(
        7,
        "a budget with an empty selector protects nobody, and nobody without labels is protected",
        [
            node("n1"),
            node("n2"),
            node("n3"),
            pod("r1", cpu("3"), on="n1", labels={"app": "x"}, priority=0),
            pod("r2", cpu("3"), on="n2", priority=0),
            pod("r3", cpu("3"), on="n3", labels={"app": "y"}, priority=0),
            budget("everything", {}),
            budget("x", {"matchLabels": {"app": "x"}}),
            budget("none", {"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}),
        ],
        [pod("p", cpu("4"), priority=5)],
        {
            "0.preemption.candidates.n1.numPDBViolations": 1,
            "0.preemption.candidates.n2.numPDBViolations": 0,
            "0.preemption.candidates.n3.numPDBViolations": 0,
            "0.preemption.nominatedNodes": ["n2", "n3"],
        },
    ),
    Row(
        8,
        "a pod without a start time counts as just started, and goes first",
        [
            node(),
            pod("old", cpu("2"), on="n1", priority=0, started="1"),
            pod("unknown", cpu("2"), on="n1", priority=0),
        ],
        [pod("p", cpu("2"), priority=5)],
        {"0.preemption.victims": ["default/unknown"]},
    ),
    Row(
        9,
        "the nominated node is tried first and alone",
        [node("n1"), node("n2"), pod("r", cpu("1"), on="n2")],
        [pod("p", cpu("1"), nominated="n2")],
        {"0.nominated": {"node": "n2", "feasible": True}, "0.feasible": ["n2"], "0.filter": {}, "0.chosen": "n2"},
    ),
    Row(
        9,
        "where it does not fit, all nodes are",
        [node("n1"), node("n2"), pod("r", cpu("4"), on="n2")],
        [pod("p", cpu("1"), nominated="n2")],
        {"0.nominated": {"node": "n2", "feasible": False}, "0.feasible": ["n1"], "0.filter.n2.code": "Unschedulable"},
    ),
    Row(
        10,
        "a pod must not count on a nominated one",
        [node(), pod("w", nominated="n1", labels={"app": "x"}, priority=5)],
        [pod("p", priority=5, affinity=pod_affinity(HOSTNAME, "x"))],
        {"0.filter.n1.reasons": ["node(s) didn't match pod affinity rules"]},
    ),
    Row(
        10,
        "and must leave room for one of its own priority, not for one of lower",
        [node("n1"), pod("w", cpu("3"), nominated="n1", priority=5)],
        [pod("p", cpu("2"), priority=5), pod("q", cpu("2"), priority=6)],
        {"0.filter.n1.reasons": ["Insufficient cpu"], "0.filterAll": {}, "1.chosen": "n1"},
    ),
    Row(
        11,
        "nominated pods of other schedulers don't count",
        [node(), pod("w", cpu("3"), nominated="n1", priority=5, schedulerName="other")],
        [pod("p", cpu("2"), priority=0)],
        {"0.chosen": "n1"},
    ),
    Row(
        11,
        "nor do gated ones",
        [node(), pod("w", cpu("3"), nominated="n1", priority=5, schedulingGates=[{"name": "g"}])],
        [pod("p", cpu("2"), priority=0)],
        {"0.chosen": "n1"},
    ),
)
