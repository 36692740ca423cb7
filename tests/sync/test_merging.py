"""Fields of a node's local status that are kept when the source's status is written."""

from __future__ import annotations

import pytest

from bayplan.base.plain_data import Document
from bayplan.sync.followed_kinds import BY_PLURAL
from bayplan.sync.merging import merge_object, merge_status, merge_waiting_pod

THEN, NOW = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"
READY: Document = {"type": "Ready", "status": "True"}
TIMES: Document = {"lastHeartbeatTime": THEN, "lastTransitionTime": THEN}
INFO: Document = {"kubeletVersion": "v1.36.3", "operatingSystem": "linux"}
ADDRESSES: list[object] = [{"type": "InternalIP", "address": "172.16.0.2"}]


def merged(here: Document, wanted: Document, kind: str = "Node") -> Document | None:
    identity: Document = {"apiVersion": "v1", "kind": kind, "metadata": {"name": "n"}}
    found = merge_status({**identity, "status": here}, {**identity, "status": wanted})
    return None if found is None else found["status"]  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("here", "wanted", "want"),
    [
        pytest.param(
            {"conditions": [{**READY, **TIMES}], "addresses": ADDRESSES, "nodeInfo": INFO},
            {"conditions": [{**READY, "lastHeartbeatTime": None}], "nodeInfo": {"kubeletVersion": ""}},
            None,
            id="a node whose kubelet added what the source lacks is not written",
        ),
        pytest.param(
            {"conditions": [{**READY, **TIMES}], "addresses": ADDRESSES},
            {"conditions": [READY], "capacity": {"cpu": "4"}},
            {"conditions": [{**READY, **TIMES}], "addresses": ADDRESSES, "capacity": {"cpu": "4"}},
            id="what the kubelet added stays when another field changes",
        ),
        pytest.param(
            {"conditions": [{**READY, **TIMES}], "nodeInfo": INFO},
            {"conditions": [{**READY, **TIMES, "lastHeartbeatTime": NOW}], "nodeInfo": {"kubeletVersion": "v1.30.0"}},
            {
                "conditions": [{**READY, **TIMES, "lastHeartbeatTime": NOW}],
                "nodeInfo": {"kubeletVersion": "v1.30.0", "operatingSystem": "linux"},
            },
            id="fields of the source count",
        ),
        pytest.param(
            {"conditions": [{**READY, **TIMES}, {"type": "DiskPressure", "status": "False"}]},
            {"conditions": [{"type": "Ready", "status": "False"}]},
            {"conditions": [{"type": "Ready", "status": "False", **TIMES}]},
            id="the conditions are those of the source",
        ),
    ],
)
def test_node_status_from_the_source_preserves_local_additions(
    here: Document, wanted: Document, want: Document | None
) -> None:
    assert merged(here, wanted) == want


def test_the_status_of_other_kinds_is_replaced() -> None:
    assert merged({"phase": "Bound", "conditions": [{**READY, **TIMES}]}, {"conditions": [READY]}, "Namespace") == {
        "conditions": [READY]
    }


def test_a_locally_allocated_claim_keeps_its_status() -> None:
    mine: Document = {"allocation": {"devices": {}}}
    theirs: Document = {"reservedFor": [{"name": "p"}]}
    assert merged(mine, theirs, "ResourceClaim") is None
    assert merged(theirs, mine, "ResourceClaim") == mine


def test_annotations_of_a_local_binding_stay_on_claims() -> None:
    def claim(**annotations: str) -> Document:
        names = {f"pv.kubernetes.io/{name.replace('_', '-')}": each for name, each in annotations.items()}
        return {"metadata": {"name": "c", "annotations": names}, "spec": {}}

    here = claim(bind_completed="here", bound_by_controller="here", other="here")
    found = merge_object(BY_PLURAL["persistentvolumeclaims"], here, claim(bound_by_controller="source", new="source"))
    want = claim(bind_completed="here", bound_by_controller="source", new="source")
    assert found["metadata"] == want["metadata"]


def test_a_waiting_pod_keeps_open_gates_tolerations_and_annotations_of_its_copy() -> None:
    def waiting(gates: list[str], tolerations: list[str], image: str, **annotations: str) -> Document:
        spec = {
            "schedulingGates": [{"name": name} for name in gates],
            "tolerations": [{"key": key} for key in tolerations],
            "containers": [{"name": "c", "image": image}],
        }
        return {"metadata": {"name": "p", "annotations": annotations}, "spec": spec}

    here = waiting(["b"], ["local"], "i:1", result="local", both="local")
    found = merge_waiting_pod(here, waiting(["a", "b"], ["local", "new"], "i:2", both="source"))
    assert found == waiting(["b"], ["local", "new"], "i:2", result="local", both="source")
