"""A claim's unused allocation that excludes all nodes is released; then the pod gets devices on another node."""

from __future__ import annotations

from bayplan.objects.kinds import decode
from bayplan.objects.resource import ResourceClaim
from bayplan.sim.operations import Apply, Operation
from tests.sim.simulations import document, node, simulator, template
from tests.sim.test_resource_claims import API, REQUEST, device_class, devices

ALLOCATION = {
    "devices": {"results": [{"request": "gpu", "driver": "gpu.example.com", "pool": "full", "device": "gpu-0"}]},
    "nodeSelector": {
        "nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["full"]}]}]
    },
}


def test_an_unused_claim_allocation_moves_to_a_node_with_room() -> None:
    claim = decode(
        {
            "apiVersion": API,
            "kind": "ResourceClaim",
            "metadata": {"name": "c", "namespace": "default"},
            "spec": {"devices": {"requests": [REQUEST]}},
            "status": {"allocation": ALLOCATION},
        }
    )
    made = template("1", runs="5s", resourceClaims=[{"name": "gpu", "resourceClaimName": "c"}], restartPolicy="Never")
    job = document("batch/v1", "Job", "train", {"parallelism": 1, "completions": 1, "template": made})
    operations: list[tuple[int, Operation]] = [
        # The claim is allocated to a device on this node, which has too little CPU for the pod.
        (0, node("full", "500m")),
        (0, node("free", "8")),
        (0, devices("full", 1)),
        (0, devices("free", 1)),
        (0, device_class()),
        (0, Apply(claim)),
        (0, Apply(job)),
    ]
    simulation = simulator(*operations)
    simulation.run(until_ns=simulation.start_ns + 3_000_000_000)
    [line] = simulation.result().pods
    assert line.node == "free"
    [found] = simulation.cluster.store.all(ResourceClaim)
    assert found.status.allocation is not None
    assert [item.pool for item in found.status.allocation.devices.results] == ["free"]
