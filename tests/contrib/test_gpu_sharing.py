"""GPU sharing: devices, the six policies on small examples computed by hand, and the plugin contract."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan import Cluster, Decision
from bayplan.base.errors import ConfigurationError
from bayplan.contrib.gpu_sharing import (
    FGD,
    POLICIES,
    BestFit,
    DotProd,
    GpuClustering,
    GpuPacking,
    GpuPolicy,
    Random,
    requests,
)
from bayplan.contrib.gpu_sharing.devices import DeviceTable, tightest
from bayplan.contrib.gpu_sharing.fragmentation import (
    FragmentationMeasure,
    read_typical_pods,
    typical_pods,
    typical_pods_argument,
)
from bayplan.contrib.gpu_sharing.requests import GPU_INDEX, GpuRequest, gpu_request
from bayplan.formats.traces.shapes import GPU_COUNT, GPU_MILLI, GPU_MODEL
from bayplan.objects.node import Node
from bayplan.objects.pod import Pod
from bayplan.plugins.registry import in_tree_registry
from bayplan.testing import check_plugin, make_node, make_pod


def gpu_pod(name: str, *, gpus: int = 1, milli: int = 1000, cpu: str = "1", model: str = "", on: str = "") -> Pod:
    builder = make_pod(name).req(cpu=cpu).annotation(**{GPU_COUNT: str(gpus), GPU_MILLI: str(milli)})
    if model:
        builder = builder.annotation(**{GPU_MODEL: model})
    return builder.node(on).obj() if on else builder.obj()


def gpu_node(name: str, gpus: int = 2, *, cpu: str = "8", model: str = "T4") -> Node:
    return make_node(name).capacity(**{"cpu": cpu, GPU_COUNT: str(gpus)}).label(**{GPU_MODEL: model}).obj()


def make_cluster(policy: type[GpuPolicy], *nodes: Node, **arguments: object) -> Cluster:
    entry = [{"name": policy.name}]
    profile: dict[str, Any] = {
        "plugins": {
            "filter": {"enabled": entry},
            "score": {"disabled": [{"name": "*"}], "enabled": entry},
            "reserve": {"enabled": entry},
        },
        "pluginConfig": [{"name": policy.name, "args": arguments}] if arguments else [],
    }
    configuration = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [profile],
    }
    return Cluster(nodes, configuration=configuration, registry=in_tree_registry().with_plugins(policy))


def devices(cluster: Cluster) -> DeviceTable:
    (profile,) = cluster.scheduler.profiles.values()
    policy = next(each for each in profile.reserve if isinstance(each, GpuPolicy))
    return policy.table(cluster.state)


def free(cluster: Cluster, node: str) -> list[int]:
    table = devices(cluster)
    row = cluster.state.nodes.row_of[node]
    found: list[int] = table.free[row, : int(table.counts[row])].tolist()
    return found


def score_of(cluster: Cluster, policy: str, pod: Pod) -> dict[str, int]:
    decision = cluster.schedule(pod)[-1]
    raw = decision.raw[decision.scorers.index(policy)]
    names = cluster.state.nodes.names
    return {name: int(raw[row]) for row, name in enumerate(names) if name}


def reasons(decision: Decision) -> tuple[str, ...]:
    failure = decision.first_failure(0)
    assert failure is not None
    return failure.reasons


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.name)
def test_each_policy_passes_the_plugin_contract_check(policy: type[GpuPolicy]) -> None:
    typical = [{"cpuMilli": 500, "gpuMilli": 300, "gpuCount": 1}, {"cpuMilli": 1000, "gpuCount": 2}, {"cpuMilli": 500}]
    check_plugin(
        policy,
        arguments={"typicalPods": typical} if policy is FGD else None,
        annotations={GPU_COUNT: ["0", "1", "2"], GPU_MILLI: ["300", "1000"], GPU_MODEL: ["T4", "P100|T4"]},
        labels={GPU_MODEL: ["T4", "P100"]},
        resources={GPU_COUNT: ["1", "2", "8"]},
    )


@pytest.mark.parametrize(
    ("annotations", "want"),
    [
        pytest.param({}, GpuRequest(), id="no annotations, no GPUs"),
        pytest.param({GPU_MILLI: "300"}, GpuRequest(1, 300), id="a share alone is of one GPU"),
        pytest.param({GPU_COUNT: "2"}, GpuRequest(2, 1000), id="a number alone is of whole GPUs"),
        pytest.param({GPU_COUNT: "1", GPU_MODEL: "T4|P100"}, GpuRequest(1, 1000, ("T4", "P100")), id="models"),
        pytest.param({GPU_COUNT: "0", GPU_MILLI: "0"}, GpuRequest(), id="zero GPUs are none"),
        pytest.param({GPU_COUNT: "many"}, f"annotation {GPU_COUNT} is 'many', not a number of GPUs", id="no number"),
        pytest.param(
            {GPU_MILLI: "1001"}, f"annotation {GPU_MILLI} is '1001', not a number from 0 to 1000", id="more than a GPU"
        ),
    ],
)
def test_pod_annotations_are_parsed_to_a_gpu_request(annotations: dict[str, str], want: GpuRequest | str) -> None:
    assert gpu_request(make_pod("p").annotation(**annotations).obj()) == want


def test_parsed_annotations_are_cached() -> None:
    before = requests._read_request.cache_info()
    pods = [make_pod(f"p{number}").annotation(**{GPU_COUNT: "1", GPU_MILLI: "777"}).obj() for number in range(10)]
    assert {gpu_request(pod) for pod in pods} == {GpuRequest(1, 777)}
    after = requests._read_request.cache_info()
    assert (after.misses - before.misses, after.hits - before.hits) == (1, 9)


def test_a_pod_that_fits_on_no_single_gpu_stays_pending() -> None:
    cluster = make_cluster(BestFit, gpu_node("n"))
    cluster.schedule(gpu_pod("a", milli=600), gpu_pod("b", milli=600))
    assert free(cluster, "n") == [400, 400]
    decision = cluster.schedule(gpu_pod("c", milli=600))[-1]
    assert decision.record.node == ""
    assert reasons(decision) == ("node(s) didn't have enough room on their GPUs",)


def test_a_removed_pod_releases_its_gpus_without_moving_other_pods() -> None:
    cluster = make_cluster(BestFit, gpu_node("n"))
    cluster.schedule(gpu_pod("a", milli=600), gpu_pod("b", milli=500), gpu_pod("c", milli=300))
    assert free(cluster, "n") == [100, 500]
    cluster.remove("a")
    assert free(cluster, "n") == [700, 500]
    cluster.schedule(gpu_pod("whole"))
    assert cluster.pending == ["default/whole"]


def test_a_running_pod_occupies_the_gpus_of_its_index_annotation() -> None:
    cluster = make_cluster(BestFit, gpu_node("n", 4))
    pod = make_pod("p").annotation(**{GPU_COUNT: "2", GPU_MILLI: "1000", GPU_INDEX: "1-3"}).node("n").obj()
    cluster.add(pod)
    assert free(cluster, "n") == [1000, 0, 1000, 0]


@pytest.mark.parametrize(
    ("node", "pod", "want"),
    [
        pytest.param(make_node("n").capacity(cpu="8").obj(), gpu_pod("p"), "node(s) had no GPUs", id="no GPUs"),
        pytest.param(
            gpu_node("n"), gpu_pod("p", model="P100"), "node(s) had GPUs of another model", id="another model"
        ),
        pytest.param(
            gpu_node("n"), gpu_pod("p", gpus=3), "node(s) didn't have enough room on their GPUs", id="too few"
        ),
    ],
)
def test_a_rejected_node_has_a_reason(node: Node, pod: Pod, want: str) -> None:
    (decision,) = make_cluster(BestFit, node).schedule(pod)
    assert reasons(decision) == (want,)


def test_preemption_frees_gpus() -> None:
    cluster = make_cluster(BestFit, gpu_node("n", 1))
    cluster.schedule(gpu_pod("low", milli=700))
    urgent = make_pod("urgent").priority(10).annotation(**{GPU_COUNT: "1", GPU_MILLI: "500"}).obj()
    cluster.schedule(urgent)
    cluster.schedule()
    assert cluster.node_of("urgent") == "n"
    assert cluster.node_of("low") is None


def test_best_fit_prefers_the_node_with_the_least_remaining_resources() -> None:
    cluster = make_cluster(BestFit, gpu_node("full", 1, cpu="4"), gpu_node("large", 8, cpu="64"))
    # 100 - 50 * (3/128 + 0.5/8) = 95.7 and 100 - 50 * (63/128 + 7.5/8) = 28.5.
    assert score_of(cluster, "BestFit", gpu_pod("p", milli=500)) == {"full": 95, "large": 28}


def test_dot_prod_prefers_the_node_with_the_smallest_product() -> None:
    cluster = make_cluster(DotProd, gpu_node("small", 4, cpu="4"), gpu_node("large", 8, cpu="128"))
    # 100 * (1 - (4/128 * 2/128 + 4/8 * 4/8) / 2) = 87.5 for the small node, and 100 * (1 - (2/128 + 4/8) / 2) = 74.2.
    assert score_of(cluster, "DotProd", gpu_pod("p", gpus=4, cpu="2")) == {"small": 87, "large": 74}


def test_gpu_packing_prefers_used_gpus_then_used_nodes_then_free_nodes() -> None:
    cluster = make_cluster(GpuPacking, gpu_node("shared"), gpu_node("used"), gpu_node("free", 4))
    cluster.add(gpu_pod("a", milli=400, on="shared"), gpu_pod("b", milli=900, on="used"))
    # 60 % free on the GPU in use: 100 - 6; one free GPU of a node in use: 50 - 1; four GPUs of a free node: 33 - 4.
    assert score_of(cluster, "GpuPacking", gpu_pod("p", milli=500)) == {"shared": 94, "used": 49, "free": 29}


def test_gpu_clustering_prefers_nodes_with_similar_pods() -> None:
    nodes = [gpu_node(name) for name in ("same", "mixed", "idle", "other")]
    cluster = make_cluster(GpuClustering, *nodes)
    cluster.add(gpu_pod("a", milli=500, on="same"), gpu_pod("b", milli=500, on="mixed"), gpu_pod("c", on="mixed"))
    cluster.add(gpu_pod("d", on="other"))
    # Within each range, 25 * (8000 - free) / 8000: 20 for 1500 free, 23 for 500, 18 for 2000, 21 for 1000.
    assert score_of(cluster, "GpuClustering", gpu_pod("p", milli=400)) == {
        "same": 95,
        "mixed": 73,
        "idle": 43,
        "other": 21,
    }


def test_random_selects_gpus_by_its_seed() -> None:
    def placed(seed: int) -> list[int]:
        cluster = make_cluster(Random, gpu_node("n", 8), seed=seed)
        cluster.schedule(*[gpu_pod(f"p{number}", milli=100) for number in range(8)])
        return free(cluster, "n")

    assert placed(1) == placed(1)
    assert placed(1) != placed(2)


def naive_fragments(cpu: int, rooms: list[int], model: str, kinds: list[tuple[int, GpuRequest, float]]) -> float:
    amount = 0.0
    for needed, request, share in kinds:
        fitting = [room for room in rooms if room >= request.milli]
        runs = bool(request.count) and len(fitting) >= request.count and cpu >= needed and request.allows(model)
        amount += share * (sum(rooms) - (sum(fitting) if runs else 0))
    return amount


@given(
    cpu=st.integers(0, 8000),
    rooms=st.lists(st.sampled_from([0, 100, 300, 500, 1000]), min_size=1, max_size=4),
    kinds=st.lists(
        st.tuples(
            st.integers(0, 4000),
            st.builds(
                GpuRequest,
                count=st.integers(1, 2),
                milli=st.sampled_from([100, 300, 1000]),
                models=st.sampled_from([(), ("T4",), ("P100",)]),
            )
            | st.just(GpuRequest()),
            st.floats(0.1, 1),
        ),
        min_size=1,
        max_size=4,
    ),
)
def test_fragmentation_matches_the_definition_of_the_paper(
    cpu: int, rooms: list[int], kinds: list[tuple[int, GpuRequest, float]]
) -> None:
    measure = FragmentationMeasure(tuple(kinds))
    allowed = measure.allowed(["T4"])
    found = measure.amounts(np.array([cpu]), np.array([rooms]), allowed)
    assert found[0] == pytest.approx(naive_fragments(cpu, rooms, "T4", kinds))


def test_fgd_preserves_whole_gpus() -> None:
    typical = [{"cpuMilli": 1000, "gpuMilli": 1000, "gpuCount": 2}]
    cluster = make_cluster(FGD, gpu_node("whole"), gpu_node("used"), typicalPods=typical)
    cluster.add(gpu_pod("a", milli=500, on="used"))
    cluster.schedule(gpu_pod("p", milli=300))
    assert cluster.node_of("p") == "used"
    assert free(cluster, "used") == [200, 1000]


def test_fgd_scores_by_the_sigmoid_of_the_fragmentation_decrease() -> None:
    typical = [{"cpuMilli": 1000, "gpuMilli": 1000, "gpuCount": 2}]
    cluster = make_cluster(FGD, gpu_node("whole"), gpu_node("used"), typicalPods=typical)
    cluster.add(gpu_pod("a", milli=500, on="used"))
    # On `whole` the free GPUs are no fragment before the pod, and 1.7 are after it; on `used`, 1.5 before and 1.2
    # after.
    want = {"whole": int(100 / (1 + np.exp(1.7))), "used": int(100 / (1 + np.exp(-0.3)))}
    assert score_of(cluster, "FGD", gpu_pod("p", milli=300)) == want


def test_fgd_derives_typical_pods_from_the_cluster_by_default() -> None:
    cluster = make_cluster(FGD, gpu_node("whole"), gpu_node("used"))
    cluster.add(gpu_pod("a", milli=500, on="used"))
    cluster.schedule(gpu_pod("p", milli=500))
    assert cluster.node_of("p") == "used"


def test_typical_pods_are_the_most_common_requests_and_round_trip_as_an_argument() -> None:
    pods = (
        [gpu_pod(f"a{n}", milli=500) for n in range(12)] + [gpu_pod(f"b{n}") for n in range(7)] + [gpu_pod("c", gpus=2)]
    )
    found = typical_pods(pods)
    assert [(request, round(share, 4)) for _, request, share in found] == [
        (GpuRequest(1, 500), 0.6316),
        (GpuRequest(1, 1000), 0.3684),
    ]
    again = read_typical_pods(typical_pods_argument(found))
    assert [(cpu, request) for cpu, request, _ in again] == [(cpu, request) for cpu, request, _ in found]
    assert [share for *_, share in again] == pytest.approx([share for *_, share in found])


@pytest.mark.parametrize(
    ("arguments", "want"),
    [
        pytest.param({"typicalPods": "all"}, "typicalPods", id="no list"),
        pytest.param({"typicalPods": [{"gpus": 1}]}, "gpus", id="an unknown field of a pod"),
        pytest.param({"typicalPods": [{"gpuCount": -1}]}, "gpuCount", id="a negative number"),
        pytest.param({"typicalPods": [{"gpuCount": 0.5}]}, "gpuCount: expected an integer", id="half a GPU"),
        pytest.param({"typical": []}, "typical", id="an unknown argument"),
    ],
)
def test_invalid_arguments_are_refused(arguments: dict[str, object], want: str) -> None:
    with pytest.raises(ConfigurationError, match=want):
        make_cluster(FGD, gpu_node("n"), **arguments)


def test_tightest_selects_the_fullest_fitting_gpus_with_the_lowest_indexes() -> None:
    assert tightest([1000, 400, 400, 300], GpuRequest(1, 350)) == [1]
    assert tightest([1000, 400, 1000], GpuRequest(2, 1000)) == [0, 2]
    assert tightest([1000, 400], GpuRequest(2, 1000)) is None


@pytest.mark.parametrize("seed", ["x", None, 1.7, True])
def test_random_refuses_seeds_that_are_not_integers(seed: object) -> None:
    with pytest.raises(ConfigurationError, match="pluginConfig of Random: seed: expected an integer"):
        make_cluster(Random, gpu_node("n", 8), seed=seed)


@pytest.mark.parametrize(
    ("name", "value"), [("cpuMilli", math.inf), ("count", math.nan), ("count", math.inf), ("gpuMilli", 2**63)]
)
def test_typical_pods_refuse_numbers_that_are_not_finite_or_too_large(name: str, value: float) -> None:
    with pytest.raises(ConfigurationError, match=f"typicalPods: {name}: expected a finite number"):
        read_typical_pods([{name: value}])
