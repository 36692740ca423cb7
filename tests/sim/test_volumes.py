"""Volumes in a simulation: claims of classes that don't wait are bound before their pods are scheduled."""

from __future__ import annotations

import pytest

from bayplan.objects.kinds import decode
from bayplan.sim.operations import Apply
from tests.sim.worlds import document, node, simulate, template


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
