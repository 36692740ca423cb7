"""Devices in a simulation: claims are created for pods and allocated, and devices are released when the pods end."""

from __future__ import annotations

import pytest

from bayplan.objects.kinds import decode
from bayplan.objects.meta import KubernetesObject
from bayplan.objects.pod import Pod
from bayplan.objects.resource import ResourceClaim
from bayplan.sim.operations import Apply, Delete, Operation
from bayplan.sim.simulator import Simulator
from tests.sim.simulations import SECOND, document, node, pod_times, simulate, simulator, template

API = "resource.k8s.io/v1"
REQUEST = {"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com", "allocationMode": "ExactCount", "count": 1}}


def devices(node_name: str, count: int) -> Apply:
    """Return the slice of a node's devices."""
    spec = {
        "driver": "gpu.example.com",
        "nodeName": node_name,
        "pool": {"name": node_name, "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": f"gpu-{number}"} for number in range(count)],
    }
    metadata = {"name": f"{node_name}-gpus"}
    return Apply(decode({"apiVersion": API, "kind": "ResourceSlice", "metadata": metadata, "spec": spec}))


def device_class(extended_resource: str = "") -> Apply:
    """Return the class of all devices, which may stand behind an extended resource."""
    spec: dict[str, object] = {"selectors": [{"cel": {"expression": 'device.driver == "gpu.example.com"'}}]}
    if extended_resource:
        spec["extendedResourceName"] = extended_resource
    metadata = {"name": "gpu.example.com"}
    return Apply(decode({"apiVersion": API, "kind": "DeviceClass", "metadata": metadata, "spec": spec}))


CLAIM_TEMPLATE = document(API, "ResourceClaimTemplate", "one-gpu", {"spec": {"devices": {"requests": [REQUEST]}}})
SHARED_CLAIM = document(API, "ResourceClaim", "shared", {"devices": {"requests": [REQUEST]}})
CLUSTER: tuple[tuple[int, Operation], ...] = ((0, node("n", "64")), (0, devices("n", 2)), (0, device_class()))


def workload(name: str, claim: dict[str, str], *, pods: int, runs: str = "10s") -> KubernetesObject:
    """Return a Job whose pods run in parallel, each with an entry for a claim."""
    claims = [{"name": "gpu", **claim}]
    made = template("1", runs=runs, resourceClaims=claims, restartPolicy="Never")
    return document("batch/v1", "Job", name, {"parallelism": pods, "completions": pods, "template": made})


def claims(made: Simulator) -> list[ResourceClaim]:
    return list(made.cluster.store.all(ResourceClaim))


def bound_s(made: Simulator) -> list[float | None]:
    """Return when the pods got their nodes, in seconds since the start."""
    times = [line.bound_ns for line in made.result().pods]
    return sorted((None if time is None else (time - made.start_ns) / SECOND for time in times), key=str)


def test_pods_share_devices_in_turn_and_their_claims_are_deleted() -> None:
    made = simulator(
        *CLUSTER,
        (0, Apply(CLAIM_TEMPLATE)),
        (0, Apply(workload("train", {"resourceClaimTemplateName": "one-gpu"}, pods=6))),
    )
    made.run()
    assert {line.fate for line in made.result().pods} == {"succeeded"}
    assert sorted(bound_s(made), key=float) == [0, 0, 10, 10, 20, 20]  # type: ignore[arg-type]
    assert claims(made) == []


def test_a_claim_is_allocated_and_reserved_while_its_pod_runs() -> None:
    made = simulator(
        *CLUSTER,
        (0, Apply(CLAIM_TEMPLATE)),
        (0, Apply(workload("train", {"resourceClaimTemplateName": "one-gpu"}, pods=3))),
    )
    made.run(until_ns=made.start_ns + 5 * SECOND)
    used = [claim for claim in claims(made) if claim.status.allocation is not None]
    names = sorted(item.device for claim in used for item in claim.status.allocation.devices.results)  # type: ignore[union-attr]
    assert names == ["gpu-0", "gpu-1"]
    for claim in used:
        (user,) = claim.status.reserved_for
        pod = made.cluster.store.pods[f"default/{user.name}"]
        assert pod.metadata.uid == user.uid
        assert [item.resource_claim_name for item in pod.status.resource_claim_statuses] == [claim.metadata.name]
    assert len(claims(made)) == 3


def test_a_shared_claim_is_deallocated_when_its_last_pod_ends() -> None:
    made = simulator(
        *CLUSTER,
        (0, Apply(SHARED_CLAIM)),
        (0, Apply(workload("short", {"resourceClaimName": "shared"}, pods=2, runs="5s"))),
        (0, Apply(workload("long", {"resourceClaimName": "shared"}, pods=1, runs="20s"))),
    )
    made.run(until_ns=made.start_ns + 10 * SECOND)
    (claim,) = claims(made)
    assert claim.status.allocation is not None
    assert len(claim.status.reserved_for) == 1
    made.run()
    (claim,) = claims(made)
    assert (claim.status.allocation, claim.status.reserved_for, claim.metadata.finalizers) == (None, (), ())


def test_a_device_of_a_deleted_pod_is_allocated_to_the_next_pod() -> None:
    operations: list[tuple[int, Operation]] = [
        (0, node("n")),
        (0, devices("n", 1)),
        (0, device_class()),
        (0, Apply(CLAIM_TEMPLATE)),
    ]
    entry = [{"name": "gpu", "resourceClaimTemplateName": "one-gpu"}]
    for second, name in enumerate("ab"):
        manifest = template("1", runs="1h")
        spec = {**manifest["spec"], "resourceClaims": entry}  # type: ignore[dict-item]
        operations.append((second * SECOND, Apply(document("v1", "Pod", name, spec))))
    operations.append((30 * SECOND, Delete(Pod, "default/a")))
    made = simulator(*operations)
    made.run(until_ns=made.start_ns + 60 * SECOND)
    assert [(name, bound) for name, _, _, bound, _ in pod_times(made.result())] == [("a", 0), ("b", 30 * SECOND)]
    (claim,) = claims(made)
    assert claim.metadata.name.startswith("b-gpu-")


def test_a_pod_is_gated_and_reported_until_its_claim_template_exists() -> None:
    job = workload("train", {"resourceClaimTemplateName": "one-gpu"}, pods=1)
    result = simulate(*CLUSTER, (0, Apply(SHARED_CLAIM)), (0, Apply(job)))
    assert [line.fate for line in result.pods] == ["gated"]
    (problem,) = result.failures.values()
    assert "ResourceClaimTemplate default/one-gpu" in problem
    late = simulate(*CLUSTER, (0, Apply(job)), (7 * SECOND, Apply(CLAIM_TEMPLATE)))
    assert [line.fate for line in late.pods] == ["succeeded"]
    assert late.failures == {}


@pytest.mark.parametrize("pods", [5])
def test_devices_of_an_extended_resource_are_freed_when_pods_end(pods: int) -> None:
    made_template = template("1", runs="10s", restartPolicy="Never")
    container = made_template["spec"]["containers"][0]  # type: ignore[index]
    container["resources"] = {"requests": {"cpu": "1", "example.com/gpu": "1"}, "limits": {"example.com/gpu": "1"}}
    job = document("batch/v1", "Job", "train", {"parallelism": pods, "completions": pods, "template": made_template})
    made = simulator((0, node("n", "64")), (0, devices("n", 2)), (0, device_class("example.com/gpu")), (0, Apply(job)))
    made.run()
    assert sorted(bound_s(made), key=float) == [0, 0, 10, 10, 20]  # type: ignore[arg-type]
    assert claims(made) == []
