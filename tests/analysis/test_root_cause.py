"""The root cause of a waiting pod: one sentence, whatever the number of filters that exclude the nodes together."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from bayplan import Cluster, RecordLevel, make_node, make_pod
from bayplan.analysis import volume_places
from bayplan.analysis.explain import attempts_of
from bayplan.analysis.run_source import SimulationSource
from bayplan.analysis.verdict import pod_verdict
from bayplan.objects.affinity import NodeSelectorTerm
from bayplan.objects.meta import KubernetesObject
from bayplan.objects.selectors import NodeTerm, compile_node_term
from bayplan.testing.builders import NodeBuilder, PodBuilder
from bayplan.testing.object_builders import ClaimBuilder, VolumeBuilder, make_claim, make_volume
from tests.analysis.runs import run

ZONE = "topology.kubernetes.io/zone"
Built = NodeBuilder | PodBuilder | ClaimBuilder | VolumeBuilder


def nodes(pool: str, *names: str, zone: str = "", cpu: str = "4", memory: str = "8Gi") -> list[NodeBuilder]:
    made = [make_node(name).capacity(cpu=cpu, memory=memory).label(pool=pool) for name in names]
    return [each.zone(zone) for each in made] if zone else made


def on(node: str, app: str, *, cpu: str = "100m", memory: str = "1Mi") -> PodBuilder:
    return make_pod(f"{app}-on-{node}").label(app=app).req(cpu=cpu, memory=memory).node(node)


def built_of(*builders: Built) -> list[KubernetesObject]:
    return [each.obj() for each in builders]


GENERAL = nodes("general", "a1", "a2", zone="a") + nodes("general", "b1", zone="b")
GPU = [each.taint("gpu", "yes") for each in nodes("gpu", "g1", "g2", zone="a")]
ADDED = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "profiles": [
        {
            "pluginConfig": [
                {
                    "name": "NodeAffinity",
                    "args": {
                        "addedAffinity": {
                            "requiredDuringSchedulingIgnoredDuringExecution": {
                                "nodeSelectorTerms": [
                                    {"matchExpressions": [{"key": "pool", "operator": "In", "values": ["general"]}]}
                                ]
                            }
                        }
                    },
                }
            ]
        }
    ],
}
IN_B: list[Built] = [make_claim("data").bound("pv1"), make_volume("pv1").bound("data").node_affinity(ZONE, "b")]
SPREAD = [on("a1", "web"), on("a2", "web"), on("b1", "web")]


@pytest.mark.parametrize(
    ("objects", "pod", "want"),
    [
        pytest.param(
            [*GENERAL, *GPU],
            make_pod("x").node_selector(pool="gpu"),
            "both nodes with pool=gpu (nodeSelector) have the taint gpu=yes:NoSchedule, which it does not tolerate",
            id="the pool that it selects is tainted",
        ),
        pytest.param(
            [*(each.taint("team", "web") for each in nodes("general", "a1", "a2")), *GPU],
            make_pod("x").node_selector(pool="gpu"),
            "both nodes with pool=gpu (nodeSelector) have the taint gpu=yes:NoSchedule, which it does not tolerate",
            id="every pool is tainted: the one that it selects counts",
        ),
        pytest.param(
            [*GENERAL, GPU[0], nodes("gpu", "g3")[0].unschedulable()],
            make_pod("x").node_selector(pool="gpu"),
            "none of the 2 nodes with pool=gpu (nodeSelector) accepts it: cordoned (1), taint gpu=yes:NoSchedule (1)",
            id="one node of the pool is tainted, the other cordoned; the cordon's own taint does not count twice",
        ),
        pytest.param(
            [*GENERAL, nodes("gpu", "g3")[0].unschedulable()],
            make_pod("x").node_selector(pool="gpu"),
            "the only node with pool=gpu (nodeSelector), g3, is cordoned",
            id="a pool of one node",
        ),
        pytest.param(
            [
                *nodes("general", "a1", zone="a"),
                *(each.taint("gpu", "yes") for each in nodes("gpu", "b1", zone="b")),
                *IN_B,
            ],
            make_pod("x").claim("data"),
            "its volume data is in b; the only node there, b1, rejects it: taint gpu=yes:NoSchedule",
            id="the zone of its volume has one node",
        ),
        pytest.param(
            [*(each.taint("node.kubernetes.io/disk-pressure") for each in nodes("general", "a1")), *nodes("gpu", "g1")],
            make_pod("x").node_selector(pool="general"),
            "the only node with pool=general (nodeSelector), a1, is short of disk space",
            id="the condition of a node is named instead of its taint",
        ),
        pytest.param(
            [*(each.taint("node.kubernetes.io/not-ready") for each in nodes("general", "a1")), *nodes("gpu", "g1")],
            make_pod("x").node_affinity("pool", "general", *(f"another-pool-{number}" for number in range(20))),
            "the only node selected by its node selector and affinity, a1, is not ready",
            id="the rules about nodes are too long to be quoted",
        ),
        pytest.param(
            [each.taint("node.kubernetes.io/unreachable") for each in nodes("general", "a1", "a2")],
            make_pod("x"),
            "both nodes are unreachable",
            id="all nodes have a condition",
        ),
        pytest.param(
            [
                *(each.taint("node.kubernetes.io/unreachable") for each in nodes("general", "a1", "a2")),
                *(each.taint("gpu") for each in nodes("gpu", "g1")),
            ],
            make_pod("x"),
            "no node accepts it: unreachable (2), taint gpu:NoSchedule (1)",
            id="some nodes have a condition and the others a taint",
        ),
        pytest.param(
            nodes("general", "a1"),
            make_pod("x").node_affinity("disktype", operator="Exists"),
            "no node matches disktype Exists (required node affinity)",
            id="no node meets its affinity",
        ),
        pytest.param(
            [*GPU, nodes("general", "a1")[0].unschedulable()],
            make_pod("x"),
            "no node accepts it: taint gpu=yes:NoSchedule (2), cordoned (1)",
            id="taints and cordons, and no pool is selected",
        ),
        pytest.param(
            [*GENERAL, *GPU, on("a1", "big", memory="7Gi")],
            make_pod("x").req(cpu="3950m", memory="2Gi").label(app="x"),
            "",
            id="it fits",
        ),
        pytest.param(
            [
                *GENERAL,
                *GPU,
                *(on(name, "big", cpu="2") for name in ("a1", "a2", "b1")),
                on("a1", "huge", memory="7Gi"),
            ],
            make_pod("x").req(cpu="3", memory="2Gi"),
            "none of the 3 nodes that it may use has room: Insufficient cpu (3), Insufficient memory (1); "
            "nearest is a2, which lacks 1 cpu; the other 2 are excluded: taint gpu=yes:NoSchedule",
            id="each shortage with its own number of nodes",
        ),
        pytest.param(
            [*GENERAL, *(on(name, "es") for name in ("a1", "a2", "b1")), *nodes("other", "o1", "o2")],
            make_pod("x").label(app="es").node_selector(pool="general").pod_anti_affinity({"app": "es"}),
            "its anti-affinity allows one pod with app=es per node, and all 3 nodes with pool=general (nodeSelector) have one",
            id="anti-affinity by node within the pool",
        ),
        pytest.param(
            [*GENERAL, on("a1", "db"), on("b1", "db")],
            make_pod("x").label(app="web").pod_anti_affinity({"app": "db"}, "zone"),
            "its anti-affinity excludes each zone with a pod with app=db, and each of a and b has one",
            id="anti-affinity to pods of another kind",
        ),
        pytest.param(
            [*GENERAL, *SPREAD, on("a1", "more"), *nodes("general", "c1", zone="c", cpu="1")],
            make_pod("x").label(app="web").req(cpu="2").spread({"app": "web"}, "zone"),
            "zone a has 2 pods with app=web, b 1 and c 0 (maxSkew 1), so only zone c can take it, "
            "but the nodes there are excluded: Insufficient cpu (1)",
            id="spread: the only zone that can take it has no room",
        ),
        pytest.param(
            [*GENERAL, *SPREAD, *nodes("gpu", "c1", zone="c")],
            make_pod("x")
            .label(app="web")
            .node_affinity("pool", "general")
            .spread({"app": "web"}, "zone", nodeAffinityPolicy="Ignore"),
            "zone a has 2 pods with app=web, b 1 and c 0 (maxSkew 1), so only zone c can take it, "
            "but the nodes there are excluded: requires pool In (general) (1)",
            id="spread: its own affinity excludes the only zone that can take it",
        ),
        pytest.param(
            GENERAL,
            make_pod("x").label(app="web").spread({"app": "web"}, "rack"),
            "no node has the label rack, over which it is spread",
            id="spread: a label that no node has",
        ),
        pytest.param(
            [*GENERAL, *SPREAD],
            make_pod("x").label(app="web").spread({"app": "web"}, "zone", minDomains=3),
            "zone a has 2 pods with app=web and b 1 (maxSkew 1, minDomains 3 of which there are 2), so no zone can take it",
            id="spread: too few domains",
        ),
        pytest.param(
            [
                make_claim("data").bound("pv1"),
                make_volume("pv1").bound("data").node_affinity("topology.kubernetes.io/zone", "b"),
                make_node("a1").capacity(cpu="4").label({"topology.kubernetes.io/zone": "a"}),
                make_node("b1").capacity(cpu="4").label({"topology.kubernetes.io/zone": "b"}),
                make_node("b2").capacity(cpu="4").label({"topology.kubernetes.io/zone": "b"}),
            ],
            make_pod("x").claim("data").node_affinity("topology.kubernetes.io/zone", "a"),
            "its volume data is in b, and no node there accepts it: requires topology.kubernetes.io/zone In (a) (2)",
            id="the rule of the pod that excludes the nodes of its volume",
        ),
        pytest.param(
            [*IN_B, *nodes("p", "a1", zone="a"), *nodes("q", "b1", "b2", zone="b"), *nodes("p", "b3", zone="b")],
            make_pod("x").claim("data").node_selector(pool="p").node_affinity(ZONE, "a"),
            f"its volume data is in b, and no node there accepts it: requires pool=p (2), requires {ZONE} In (a) (1)",
            id="each node counts for the first rule of the pod that excludes it",
        ),
        pytest.param(
            [*IN_B, *nodes("p", "a1", zone="a"), *nodes("q", "b1", "b2", zone="b")],
            make_pod("x").claim("data").node_affinity(ZONE, "a").node_affinity("pool", "p"),
            "its volume data is in b, and no node there accepts it: "
            "requires topology.kubernetes.io/zone In (a) or pool In (p) (2)",
            id="the terms of an affinity together exclude the nodes",
        ),
        pytest.param(
            [*IN_B, *nodes("p", "a1", zone="a"), *nodes("q", "b1", "b2", zone="b")],
            make_pod("x").claim("data").node_affinity("pool", "p", *(f"a-longer-name-of-a-pool-{n}" for n in range(3))),
            "its volume data is in b, and no node there accepts it: node selector or affinity (2)",
            id="a rule that is too long to be quoted",
        ),
        pytest.param([], make_pod("x"), "the cluster has no nodes", id="no nodes"),
    ],
)
def test_explain_unblock_and_waiting_reasons_give_the_same_root_cause(
    objects: Sequence[Built], pod: PodBuilder, want: str
) -> None:
    built = built_of(*objects, pod)
    cluster = Cluster(built, record_level=RecordLevel.OFF)
    reasons = cluster.waiting_reasons()
    if not want:
        assert not len(reasons)
        return
    explained, unblocked = cluster.explain("x").verdict, cluster.unblock("x")
    assert explained == f"default/x is pending: {want}"
    assert unblocked.verdict.startswith(f"default/x is pending: {want}; best: ")
    # Reasons that are shared by several pods do not say how much this pod lacks on the nearest node.
    parts = [part for part in want.split("; ") if not part.startswith("nearest is")]
    assert {each.summary for each in reasons} == {"; ".join(parts)}


@pytest.mark.parametrize(
    ("pod", "want"),
    [
        pytest.param(
            make_pod("x").node_selector(pool="gpu"),
            "the scheduler's configuration (addedAffinity: pool In (general)) excludes both nodes with pool=gpu (nodeSelector)",
            id="the pod selects other nodes than the configuration",
        ),
        pytest.param(
            make_pod("x").node_selector(pool="none"),
            "no node has the label pool=none (nodeSelector; values of pool: general and gpu)",
            id="the pod selects nodes that do not exist",
        ),
    ],
)
def test_added_affinity_of_the_configuration_is_named_as_the_cause(pod: PodBuilder, want: str) -> None:
    cluster = Cluster(
        built_of(*GENERAL, *nodes("gpu", "g1", "g2"), pod), configuration=ADDED, record_level=RecordLevel.OFF
    )
    assert cluster.explain("x").verdict == f"default/x is pending: {want}"


def test_the_root_cause_of_a_simulated_pod_describes_its_last_attempt() -> None:
    pod = make_pod("x").label(app="web").req(cpu="2").spread({"app": "web"}, "zone")
    result = run(*built_of(*GENERAL, *SPREAD, *nodes("general", "c1", zone="c", cpu="1"), pod))
    source, life = SimulationSource(result), next(each for each in result.pods if each.key == "default/x")
    assert pod_verdict(source, life, attempts_of(source, life, [life])) == (
        "default/x is pending: zone a has 2 pods with app=web, b 1 and c 0 (maxSkew 1), so only zone c can take it, "
        "but the nodes there are excluded: Insufficient cpu (1)"
    )


def test_the_node_affinity_of_a_volume_is_compiled_once_for_all_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[NodeSelectorTerm] = []

    def counting(term: NodeSelectorTerm, path: str) -> NodeTerm:
        compiled.append(term)
        return compile_node_term(term, path)

    monkeypatch.setattr(volume_places, "compile_node_term", counting)
    far = nodes("p", *(f"a{number}" for number in range(20)), zone="a")
    objects: list[Built] = [*IN_B, *far, *nodes("p", "b1", "b2", zone="b", cpu="1")]
    verdict = Cluster(built_of(*objects, make_pod("x").claim("data").req(cpu="2"))).explain("x").verdict
    assert verdict.endswith("; the other 20 are excluded: its volume is in b")
    assert len(compiled) < len(far)


def test_a_full_node_in_the_wrong_zone_counts_for_the_zone_of_the_volume() -> None:
    # NodeResourcesFit rejects the nodes of zone a before VolumeBinding does, but no eviction there would help.
    full = [on("a1", "web", cpu="4"), on("a2", "web", cpu="4"), on("b1", "web", cpu="3")]
    pod = make_pod("x").req(cpu="2").claim("data")
    verdict = Cluster(built_of(*GENERAL, *full, *IN_B, pod)).explain("x").verdict
    assert verdict.endswith("; the other 2 are excluded: its volume is in b"), verdict


def test_a_blocked_volume_zone_is_named_with_the_rejections_of_its_nodes() -> None:
    claim, volume = make_claim("data").bound("pv").obj(), make_volume("pv").zone("a").bound("data").obj()
    tainted = [each.taint("team", "db").obj() for each in nodes("general", "a1", "a2", zone="a")]
    cluster = Cluster(
        [*tainted, nodes("general", "b1", zone="b")[0].obj(), claim, volume, make_pod("x").claim("data").obj()]
    )
    assert cluster.explain("x").verdict == (
        "default/x is pending: its volume data is in a, and no node there accepts it: taint team=db:NoSchedule (2)"
    )
