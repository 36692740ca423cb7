"""Addresses, versions and container statuses: what a kubelet writes of nodes and pods."""

from __future__ import annotations

from typing import Any

import pytest

from bayplan.apiserver.bridge.network import NumberPool
from bayplan.base.version import KUBERNETES_VERSION
from tests.apiserver.bridge.bridge_fixture import API, APPS, BridgeFixture, workload

NODES, PODS = f"{API}/nodes", f"{API}/namespaces/default/pods"


def shown(fixture: BridgeFixture, path: str) -> Any:
    """Return an object as a client sees it."""
    return fixture.get(path).document


def listed(fixture: BridgeFixture, table: str, namespace: str = "default") -> list[Any]:
    """Return all objects of a table in a namespace."""
    return list(fixture.documents(table, namespace))


def node(name: str, *, pods: str = "110", **more: Any) -> dict[str, Any]:
    status = {"capacity": {"cpu": "8", "memory": "16Gi", "pods": pods}, **more.pop("status", {})}
    return {"metadata": {"name": name}, "spec": more, "status": status}


def pod(name: str, **spec: Any) -> dict[str, Any]:
    containers = [{"name": "c", "image": "example/app:1"}]
    return {"metadata": {"name": name}, "spec": {"containers": containers, **spec}}


def test_missing_node_addresses_pod_cidrs_and_info_are_filled_in() -> None:
    fixture = BridgeFixture()
    ready = {"conditions": [{"type": "Ready", "status": "True"}]}
    for document in (node("bare"), node("ready", status=ready)):
        fixture.post(NODES, document)
    fixture.run()
    seen: set[str] = set()
    for name in ("bare", "ready"):
        document = shown(fixture, f"{NODES}/{name}")
        status, spec = document["status"], document["spec"]
        addresses = {each["type"]: each["address"] for each in status["addresses"]}
        assert addresses["Hostname"] == name
        assert addresses["InternalIP"].startswith("172.16.")
        assert spec["podCIDR"].endswith("/24")
        assert spec["podCIDRs"] == [spec["podCIDR"]]
        seen |= {addresses["InternalIP"], spec["podCIDR"]}
        info = status["nodeInfo"]
        assert info["kubeletVersion"] == KUBERNETES_VERSION
        assert info["systemUUID"] == document["metadata"]["uid"]
        assert all(each["lastHeartbeatTime"] and each["lastTransitionTime"] for each in status["conditions"])
    assert len(seen) == 4, "no address twice"


def test_reported_node_addresses_cidrs_and_conditions_are_preserved() -> None:
    fixture = BridgeFixture()
    said: dict[str, Any] = {
        "addresses": [{"type": "InternalIP", "address": "192.168.7.7"}],
        "nodeInfo": {"kubeletVersion": "v1.30.0", "osImage": "Flatcar", "architecture": "arm64"},
        "conditions": [
            {"type": "Ready", "status": "False", "reason": "Broken", "lastHeartbeatTime": "2026-01-01T00:00:00Z"}
        ],
    }
    fixture.post(NODES, node("n", podCIDR="10.244.3.0/24", podCIDRs=["10.244.3.0/24"], status=said))
    fixture.run()
    document = shown(fixture, f"{NODES}/n")
    assert document["spec"]["podCIDR"] == "10.244.3.0/24"
    assert document["status"]["addresses"][0] == said["addresses"][0]
    info, condition = document["status"]["nodeInfo"], document["status"]["conditions"][0]
    assert (info["kubeletVersion"], info["osImage"], info["architecture"]) == ("v1.30.0", "Flatcar", "arm64")
    assert (condition["status"], condition["lastHeartbeatTime"]) == ("False", "2026-01-01T00:00:00Z")


@pytest.mark.parametrize(
    ("pods", "want"),
    [
        pytest.param("110", 24, id="as many as the default"),
        pytest.param("254", 24, id="as many as a /24 network has"),
        pytest.param("255", 23, id="one more"),
        pytest.param("1000", 22, id="a large node"),
        pytest.param("99999999", 16, id="never more than a /16"),
    ],
)
def test_a_pod_cidr_is_large_enough_for_the_pod_capacity(pods: str, want: int) -> None:
    fixture = BridgeFixture()
    fixture.post(NODES, node("n", pods=pods))
    fixture.run()
    assert shown(fixture, f"{NODES}/n")["spec"]["podCIDR"].endswith(f"/{want}")


def test_running_pods_have_addresses_and_container_statuses() -> None:
    fixture = BridgeFixture(nodes=1)
    inits = [{"name": "setup", "image": "setup"}, {"name": "proxy", "image": "proxy:2", "restartPolicy": "Always"}]
    fixture.post(PODS, pod("a", initContainers=inits))
    fixture.post(PODS, pod("b"))
    fixture.post(PODS, pod("host", hostNetwork=True))
    fixture.run()
    host = shown(fixture, f"{NODES}/n0")["status"]["addresses"][0]["address"]
    status = {name: shown(fixture, f"{PODS}/{name}")["status"] for name in ("a", "b", "host")}
    assert {each["hostIP"] for each in status.values()} == {host}
    assert all(each["hostIPs"] == [{"ip": host}] for each in status.values())
    assert all(each["podIPs"] == [{"ip": each["podIP"]}] for each in status.values())
    assert status["host"]["podIP"] == host
    assert status["a"]["podIP"] != status["b"]["podIP"]
    container = status["a"]["containerStatuses"][0]
    assert container["image"] == "example/app:1"
    assert container["imageID"].startswith("example/app@sha256:")
    assert container["containerID"].startswith("bayplan://")
    assert container["restartCount"] == 0
    setup, proxy = status["a"]["initContainerStatuses"]
    assert setup["state"]["terminated"]["reason"] == "Completed"
    assert (proxy["ready"], "running" in proxy["state"]) == (True, True)
    assert {each["qosClass"] for each in status.values()} == {"BestEffort"}


def test_pod_ips_are_unique_per_node_and_reused_after_deletion() -> None:
    fixture = BridgeFixture()
    fixture.post(NODES, node("n", podCIDR="10.9.0.0/29", podCIDRs=["10.9.0.0/29"]))
    fixture.run()
    for number in range(8):
        fixture.post(PODS, pod(f"p{number}"))
    fixture.run()
    addresses = [shown(fixture, f"{PODS}/p{number}")["status"].get("podIP") for number in range(8)]
    assert sorted(filter(None, addresses)) == [f"10.9.0.{number}" for number in range(1, 7)]
    assert addresses.count(None) == 2, "a network that is full gives none"
    gone = next(number for number in range(8) if addresses[number])
    fixture.delete(f"{PODS}/p{gone}")
    fixture.run()
    fixture.post(PODS, pod("late"))
    fixture.run()
    assert shown(fixture, f"{PODS}/late")["status"]["podIP"] == addresses[gone]


def test_a_running_pod_preserves_its_ip_and_new_pods_get_other_ips() -> None:
    fixture = BridgeFixture()
    fixture.post(NODES, node("n", podCIDR="10.9.0.0/24", podCIDRs=["10.9.0.0/24"]))
    fixture.post(PODS, pod("old", nodeName="n"))
    status = {"status": {"phase": "Running", "podIP": "10.9.0.2", "podIPs": [{"ip": "10.9.0.2"}]}}
    fixture.patch(f"{PODS}/old/status", status)
    fixture.run()
    fixture.post(PODS, pod("new"))
    fixture.run()
    assert shown(fixture, f"{PODS}/old")["status"]["podIP"] == "10.9.0.2"
    assert shown(fixture, f"{PODS}/new")["status"]["podIP"] == "10.9.0.3"


def test_addresses_stay_unique_after_a_restart() -> None:
    fixture = BridgeFixture(nodes=2)
    fixture.post(f"{APPS}/deployments", workload("Deployment", "web", {"replicas": 3}))
    fixture.run()
    again = BridgeFixture(store=fixture.store, nodes=0)
    again.add_node("n2")
    again.patch(f"{APPS}/deployments/web", {"spec": {"replicas": 9}})
    again.run()
    pods, nodes = listed(again, "pods"), listed(again, "nodes", "")
    assert len({each["status"]["podIP"] for each in pods}) == 9
    assert len({each["spec"]["podCIDR"] for each in nodes}) == 3
    assert len({each["status"]["addresses"][0]["address"] for each in nodes}) == 3


@pytest.mark.parametrize(
    ("counts", "want"),
    [
        pytest.param([1, 1, 1], [0, 1, 2], id="one after the other"),
        pytest.param([1, 4, 1], [0, 4, 8], id="blocks begin at multiples of their size"),
        pytest.param([8, 4, 4, 1], [0, 8, 12, None], id="until no block is left"),
    ],
)
def test_number_pools_allocate_aligned_blocks_once(counts: list[int], want: list[int | None]) -> None:
    pool = NumberPool(0, 16)
    assert [pool.take(count) for count in counts] == want


def test_a_released_number_is_reused_last() -> None:
    pool = NumberPool(0, 3)
    assert pool.take() == 0
    pool.discard(0)
    assert [pool.take(), pool.take(), pool.take()] == [1, 2, 0]


def test_a_number_is_free_after_its_last_user_releases_it() -> None:
    pool = NumberPool(0, 2)
    assert pool.take() == 0
    pool.add(0)
    pool.add(0)
    pool.discard(0)
    assert [pool.take(), pool.take()] == [1, None]
    pool.discard(0)
    assert pool.take() == 0


def test_a_shared_pod_cidr_stays_allocated_until_both_nodes_are_deleted() -> None:
    fixture = BridgeFixture()
    cidr: dict[str, Any] = {"podCIDR": "10.128.0.0/24", "podCIDRs": ["10.128.0.0/24"]}
    fixture.post(NODES, node("a", **cidr))
    fixture.post(NODES, node("b", **cidr))
    fixture.run()
    fixture.delete(f"{NODES}/a")
    fixture.post(NODES, node("c"))
    fixture.run()
    assert shown(fixture, f"{NODES}/c")["spec"]["podCIDR"] == "10.128.1.0/24"
