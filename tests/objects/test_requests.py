"""Sums of requests compared with Kubernetes' results, tables of special cases, and a naive implementation."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.objects.kinds import convert
from bayplan.objects.pod import Container, Pod, PodSpec, ResourceRequirements
from bayplan.objects.quantity import QuantityLike
from bayplan.objects.requests import (
    AccountedRequests,
    Amounts,
    HostPort,
    RequestGates,
    RequestOptions,
    accounted_requests,
    balance_requests,
    fit_requests,
    fit_score_requests,
    host_ports,
    node_amounts,
    pod_amounts,
    pod_priority,
    pod_requests,
    repeats_overhead,
    sum_container_limits,
)
from bayplan.objects.simple_sums import DEFAULT_CPU_MILLI, DEFAULT_MEMORY_BYTES
from tests.objects.golden.files import read_golden
from tests.oracle.requests import needs

COLUMNS = ("cpu", "memory", "ephemeral-storage")


def with_columns(amounts: Amounts) -> Amounts:
    """Add the resources that upstream keeps in fields: they are present even if no container requests them."""
    return dict.fromkeys(COLUMNS, 0) | amounts


def test_requests_match_upstream_for_every_use() -> None:
    """800 random pods: sidecars, overhead, pod-level resources, resizes, negative and overflowing amounts."""
    lines = read_golden("requests")
    assert len(lines) == 800
    for line in lines:
        question, want = line["question"], line["want"]
        pod = convert(question["pod"], Pod)
        on = question["podLevelResources"]
        gates = RequestGates(pod_level_resources=on, in_place_pod_level_resources_vertical_scaling=on)
        accounted = accounted_requests(pod, gates)
        limits = sum_container_limits(pod).items()
        node = node_amounts(pod.spec.overhead)
        node.pop("pods", None)
        got: dict[str, Any] = {
            "fit": with_columns(fit_requests(pod, gates)),
            "fitScore": fit_score_requests(pod),
            "balance": balance_requests(pod, gates),
            "accounted": with_columns(accounted.requests),
            "nonZero": [accounted.non_zero_cpu_milli, accounted.non_zero_memory_bytes],
            "limits": {name: item.milli_value() if name == "cpu" else item.value() for name, item in limits},
            "hostPorts": [list(port) for port in host_ports(pod)],
            "node": with_columns(node),
        }
        want["hostPorts"] = [[ip or "0.0.0.0", protocol or "TCP", port] for ip, protocol, port in want["hostPorts"]]
        assert got == want, question


GPU: dict[str, Any] = {"example.com/gpu": 1}
SCALARS: dict[str, Any] = {"example.com/gpu": 0, "storage": 1, "pods": 3}


def pod_of(document: dict[str, object], **status: object) -> Pod:
    return convert({"spec": document, "status": status}, Pod)


def container(name: str = "c", *, sidecar: bool = False, **requests: Any) -> dict[str, object]:
    item: dict[str, object] = {"name": name, "resources": {"requests": requests}}
    return item | ({"restartPolicy": "Always"} if sidecar else {})


@pytest.mark.parametrize(
    ("spec", "want"),
    [
        pytest.param(
            {"containers": [container(cpu="1"), container(cpu="500m")]}, {"cpu": 1500}, id="containers add up"
        ),
        pytest.param(
            {"containers": [container(cpu="1")], "initContainers": [container(cpu="3"), container(cpu="2")]},
            {"cpu": 3000},
            id="init containers run one after the other",
        ),
        pytest.param(
            {"containers": [container(cpu="1")], "initContainers": [container(cpu="1", sidecar=True)]},
            {"cpu": 2000},
            id="a sidecar runs together with the containers",
        ),
        pytest.param(
            {
                "containers": [container(cpu="1")],
                "initContainers": [container(cpu="1", sidecar=True), container(cpu="2")],
            },
            {"cpu": 3000},
            id="a sidecar runs together with the init containers after it",
        ),
        pytest.param(
            {
                "containers": [container(cpu="1")],
                "initContainers": [container(cpu="2"), container(cpu="1", sidecar=True)],
            },
            {"cpu": 2000},
            id="a sidecar does not run together with the init containers before it",
        ),
        pytest.param(
            {"containers": [container(cpu="1")], "overhead": {"cpu": "100m", "memory": "1Mi"}},
            {"cpu": 1100, "memory": 2**20},
            id="overhead is added",
        ),
        pytest.param(
            {"containers": [container(cpu="1", **GPU)], "resources": {"requests": {"cpu": "3"}}},
            {"cpu": 3000, "example.com/gpu": 1},
            id="pod-level requests replace the containers' requests",
        ),
        pytest.param(
            {"containers": [container()], "resources": {"requests": {"example.com/gpu": 1}}},
            {},
            id="a pod can't ask for extended resources as a whole",
        ),
        pytest.param(
            {"containers": [container(cpu="100u"), container(cpu="100u")]},
            {"cpu": 1},
            id="amounts are rounded after the sum",
        ),
        pytest.param({"containers": [container(cpu="-1")]}, {"cpu": 0}, id="a negative sum counts as nothing"),
        pytest.param(
            {"containers": [container(**SCALARS)]},
            {"example.com/gpu": 0},
            id="a zero scalar resource stays; resources that nodes do not count are dropped",
        ),
        pytest.param(
            {"containers": [container(memory="9223372036854775807"), container(memory="1")]},
            {"memory": 0},
            id="a sum that leaves int64 wraps to a negative number",
        ),
    ],
)
def test_fit_requests_is_the_maximum_over_the_pods_lifetime(spec: dict[str, object], want: Amounts) -> None:
    assert fit_requests(pod_of(spec)) == want


def test_pod_level_resources_are_ignored_if_the_gate_is_off() -> None:
    pod = pod_of({"containers": [container(cpu="1")], "resources": {"requests": {"cpu": "3"}}})
    assert fit_requests(pod, RequestGates(pod_level_resources=False)) == {"cpu": 1000}
    assert balance_requests(pod, RequestGates(pod_level_resources=False)) == {"cpu": 1000}
    assert accounted_requests(pod, RequestGates(pod_level_resources=False)).requests == {"cpu": 1000}


def test_fit_score_requests_uses_defaults_and_ignores_pod_level_resources() -> None:
    pod = pod_of(
        {
            "containers": [container(), container(cpu="0", memory="1Gi")],
            "resources": {"requests": {"cpu": "3", "memory": "5Gi"}},
        }
    )
    assert fit_score_requests(pod) == {"cpu": DEFAULT_CPU_MILLI, "memory": DEFAULT_MEMORY_BYTES + 2**30}
    assert balance_requests(pod) == {"cpu": 3000, "memory": 5 * 2**30}


def test_a_best_effort_pod_has_default_requests_only_for_scores() -> None:
    accounted = accounted_requests(pod_of({"containers": [container(), container()]}))
    assert accounted == AccountedRequests({}, 2 * DEFAULT_CPU_MILLI, 2 * DEFAULT_MEMORY_BYTES)


def test_pod_level_requests_replace_the_defaults_of_the_same_resource() -> None:
    pod = pod_of({"containers": [container()], "resources": {"requests": {"cpu": "1"}}})
    assert accounted_requests(pod) == AccountedRequests({"cpu": 1000}, 1000, DEFAULT_MEMORY_BYTES)
    pod = pod_of({"containers": [container()], "resources": {"requests": {"cpu": "1", "memory": "1"}}})
    assert accounted_requests(pod) == AccountedRequests({"cpu": 1000, "memory": 1}, 1000, 1)


def resized(**condition: str) -> Pod:
    """Return a pod that requests 4 CPUs, was allocated 3 and runs with 2."""
    status = {"name": "c", "allocatedResources": {"cpu": "3"}, "resources": {"requests": {"cpu": "2"}}}
    conditions = [{"type": "PodResizePending", "status": "True", **condition}] if condition else []
    return pod_of({"containers": [container(cpu="4")]}, containerStatuses=[status], conditions=conditions)


@pytest.mark.parametrize(
    ("pod", "want"),
    [
        pytest.param(resized(), 4000, id="the maximum of requested, allocated and actual"),
        pytest.param(resized(reason="Deferred"), 4000, id="a deferred resize counts as requested"),
        pytest.param(resized(reason="Infeasible"), 3000, id="an infeasible resize does not"),
    ],
)
def test_accounted_requests_include_a_resize_of_a_running_pod(pod: Pod, want: int) -> None:
    assert accounted_requests(pod).requests == {"cpu": want}
    assert balance_requests(pod) == {"cpu": want}
    assert fit_requests(pod) == {"cpu": 4000}
    assert fit_score_requests(pod) == {"cpu": 4000, "memory": DEFAULT_MEMORY_BYTES}
    assert accounted_requests(pod, RequestGates(in_place_pod_vertical_scaling=False)).requests == {"cpu": 4000}


def test_container_statuses_without_resources_are_ignored() -> None:
    status = {"name": "c", "allocatedResources": {"cpu": "3"}}
    pod = pod_of({"containers": [container(cpu="1")]}, containerStatuses=[status])
    assert accounted_requests(pod).requests == {"cpu": 1000}


def test_only_sidecars_among_init_containers_count_with_a_resize() -> None:
    statuses = [{"name": name, "resources": {"requests": {"cpu": "5"}}} for name in ("i", "s")]
    init = [container("i", cpu="1"), container("s", cpu="1", sidecar=True)]
    pod = pod_of({"containers": [container()], "initContainers": init}, initContainerStatuses=statuses)
    assert accounted_requests(pod).requests == {"cpu": 5000}
    pod = pod_of({"containers": [container()], "initContainers": init[:1]}, initContainerStatuses=statuses)
    assert accounted_requests(pod).requests == {"cpu": 1000}


def test_node_resource_claims_count_only_if_the_gate_is_on() -> None:
    claims = [{"resourceClaimName": "a", "resources": {"cpu": "2"}}]
    pod = pod_of({"containers": [container(cpu="1")]}, nodeAllocatableResourceClaimStatuses=claims)
    assert accounted_requests(pod).requests == {"cpu": 1000}
    gates = RequestGates(dra_node_allocatable_resources=True)
    assert accounted_requests(pod, gates).requests == {"cpu": 3000}
    assert fit_requests(pod, gates) == {"cpu": 1000}


def test_request_options_exclude_parts_of_the_sum() -> None:
    pod = pod_of(
        {
            "containers": [container(cpu="1", memory="1Gi")],
            "overhead": {"cpu": "100m"},
            "resources": {"requests": {"cpu": "3"}},
        }
    )
    assert pod_amounts(pod, RequestOptions(skip_container_level_resources=True)) == {"cpu": 3100}
    assert pod_amounts(pod, RequestOptions(exclude_overhead=True)) == {"cpu": 3000, "memory": 2**30}
    assert {name: str(item) for name, item in pod_requests(pod, RequestOptions()).items()} == {
        "cpu": "3100m",
        "memory": "1Gi",
    }


def test_node_amounts_excludes_uncounted_resources() -> None:
    offered: dict[str, QuantityLike] = {
        "cpu": "3920m",
        "memory": "1Gi",
        "pods": 110,
        "example.com/gpu": "2",
        "storage": "1",
    }
    assert node_amounts(offered) == {"cpu": 3920, "memory": 2**30, "pods": 110, "example.com/gpu": 2}


def test_host_ports_come_from_sidecars_and_containers() -> None:
    ports = [{"containerPort": 1, "hostPort": 80}, {"containerPort": 2}]
    pod = pod_of(
        {
            "initContainers": [
                {"name": "i", "ports": [{"hostPort": 1, "containerPort": 1}]},
                {
                    "name": "s",
                    "restartPolicy": "Always",
                    "ports": [{"hostPort": 2, "containerPort": 2, "protocol": "UDP"}],
                },
            ],
            "containers": [
                {"name": "c", "ports": ports},
                {"name": "d", "ports": [{"hostPort": 81, "hostIP": "10.0.0.1"}]},
            ],
        }
    )
    assert host_ports(pod) == (
        HostPort("0.0.0.0", "UDP", 2),
        HostPort("0.0.0.0", "TCP", 80),
        HostPort("10.0.0.1", "TCP", 81),
    )


def test_a_pod_without_priority_has_priority_0() -> None:
    assert pod_priority(pod_of({})) == 0
    assert pod_priority(pod_of({"priority": -5})) == -5


# --- random ---

AMOUNTS = st.sampled_from(["0", "1", "250m", "1.5", "100u", "1Gi", "64Mi", "0.3", 3, 2.5])
REQUESTS = st.dictionaries(st.sampled_from(["cpu", "memory", "example.com/gpu"]), AMOUNTS, max_size=3)


def container_with(requests: dict[str, Any], policy: str | None) -> Container:
    return Container(resources=ResourceRequirements(requests=requests), restart_policy=policy)


CONTAINERS = st.builds(container_with, REQUESTS, st.none())
INIT_CONTAINERS = st.builds(container_with, REQUESTS, st.sampled_from([None, "Always"]))
PODS = st.builds(
    Pod,
    spec=st.builds(
        PodSpec,
        containers=st.lists(CONTAINERS, min_size=1, max_size=3).map(tuple),
        init_containers=st.lists(INIT_CONTAINERS, max_size=4).map(tuple),
        overhead=REQUESTS,
    ),
)
MISSING: dict[str, QuantityLike] = {"cpu": "100m", "memory": DEFAULT_MEMORY_BYTES}


@given(PODS)
def test_pod_amounts_matches_the_naive_oracle(pod: Pod) -> None:
    for options, missing in ((RequestOptions(), {}), (RequestOptions(missing_requests=MISSING), MISSING)):
        found = pod_amounts(pod, options)
        for name in ("cpu", "memory", "example.com/gpu"):
            assert found.get(name, 0) == needs(pod, name, missing), name


@given(PODS)
def test_pod_requests_and_pod_amounts_agree(pod: Pod) -> None:
    quantities = pod_requests(pod, RequestOptions())
    want = {name: item.milli_value() if name == "cpu" else item.value() for name, item in quantities.items()}
    assert pod_amounts(pod, RequestOptions()) == want


def pod_with_overhead(request: str, overhead: str, **status: object) -> Pod:
    level: dict[str, object] = {"requests": {"memory": request}}
    spec: dict[str, object] = {"containers": [container()], "resources": level, "overhead": {"memory": overhead}}
    return pod_of(spec, **status)


GIBI = 2**30


@pytest.mark.parametrize(
    ("pod", "want"),
    [
        pytest.param(
            pod_with_overhead("1.5Gi", "2Gi"), [7, 11, 15], id="a fraction of a binary unit grows with every sum"
        ),
        pytest.param(
            pod_with_overhead("1536Mi", "2Gi"), [7, 7, 7], id="the same amount as an API server writes it does not"
        ),
        pytest.param(pod_with_overhead("1Gi", "2.5Gi"), [7, 7, 7], id="nor does a fraction in the overhead"),
    ],
)
def test_overhead_is_added_repeatedly_like_upstream(pod: Pod, want: list[int]) -> None:
    halves = [amount * GIBI // 2 for amount in want]
    assert [balance_requests(pod, earlier_sums=sums)["memory"] for sums in range(3)] == halves
    accounted = accounted_requests(pod, earlier_sums=1)
    # The containers request no CPU, so upstream computes a second sum with default requests.
    assert (accounted.requests["memory"], accounted.non_zero_memory_bytes) == (halves[1], halves[2])
    assert repeats_overhead(pod) is (want[0] != want[1])


def test_overhead_is_not_added_again_to_resized_pod_level_requests() -> None:
    pod = pod_with_overhead("1.5Gi", "2Gi", resources={"requests": {"memory": "1.5Gi"}})
    assert balance_requests(pod, earlier_sums=3) == {"memory": 7 * GIBI // 2}
