"""Volumes in a simulation: the claims of a StatefulSet are bound in both volume binding modes."""

from __future__ import annotations

import pytest

from bayplan.objects.kinds import decode
from bayplan.objects.storage import PersistentVolumeClaim
from bayplan.sim.operations import Apply
from tests.sim.simulations import document, node, simulate, template


@pytest.mark.parametrize("mode", ["Immediate", "WaitForFirstConsumer"])
def test_pods_of_a_stateful_set_get_volumes_and_nodes(mode: str) -> None:
    storage_class = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "fast"},
        "provisioner": "csi.example.com",
        "volumeBindingMode": mode,
    }
    claim = {
        "metadata": {"name": "data"},
        "spec": {
            "storageClassName": "fast",
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
    spec = {
        "replicas": 2,
        "serviceName": "db",
        "selector": {"matchLabels": {"app": "app"}},
        "template": template("1"),
        "volumeClaimTemplates": [claim],
    }
    stateful_set = document("apps/v1", "StatefulSet", "db", spec)
    result = simulate((0, node("n")), (0, Apply(decode(storage_class))), (0, Apply(stateful_set)))
    assert [(line.key, line.node) for line in result.pods] == [("default/db-0", "n"), ("default/db-1", "n")]
    claims = result.cluster.store.all(PersistentVolumeClaim)
    assert {claim.key: (claim.status.phase, bool(claim.spec.volume_name)) for claim in claims} == {
        "default/data-db-0": ("Bound", True),
        "default/data-db-1": ("Bound", True),
    }
