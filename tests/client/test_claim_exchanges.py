"""Tests of the requests for volumes and claims of a pod that is bound, and of bindings that a preemption cancels."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from bayplan.client.exchanges import exchanges_of
from bayplan.client.requests import ApiResponse, path_of
from bayplan.engine.actions import Action, Bind, Evict, SetCondition, Update
from bayplan.objects.meta import Condition, KubernetesObject, ObjectMeta, ObjectReference
from bayplan.objects.node import Node
from bayplan.objects.pod import Container, Pod, PodSpec, ResourceRequirements
from bayplan.objects.resource import (
    AllocatedDeviceStatus,
    AllocationResult,
    DeviceAllocationResult,
    DeviceClaim,
    DeviceRequest,
    DeviceRequestAllocationResult,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimConsumerReference,
    ResourceClaimSpec,
    ResourceClaimStatus,
)
from bayplan.objects.storage import (
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeSpec,
)
from bayplan.objects.volumes import PersistentVolumeClaimSpec
from bayplan.plugins.pod_claims import BIND_COMPLETED, SELECTED_NODE
from tests.client.exchange_host import OK, POD_PATH, Answers, Host, emit, pod, refusal

NODE = Node(metadata=ObjectMeta(name="n1"))
CLAIM = PersistentVolumeClaim(metadata=ObjectMeta(name="c", namespace="n", uid="uid-c", resource_version="3"))
VOLUME = PersistentVolume(
    metadata=ObjectMeta(name="v", resource_version="5", annotations={"bound": "yes"}),
    spec=PersistentVolumeSpec(
        claim_ref=ObjectReference(api_version="v1", kind="PersistentVolumeClaim", namespace="n", name="c", uid="uid-c")
    ),
)
BOUND = PersistentVolumeClaim(
    metadata=ObjectMeta(name="c", namespace="n", uid="uid-c", annotations={BIND_COMPLETED: "yes", SELECTED_NODE: "n1"}),
    spec=PersistentVolumeClaimSpec(volume_name="v"),
)
VOLUME_PATH = path_of(PersistentVolume, name="v")
WHOLE = ApiResponse(200, b'{"metadata": {"name": "v", "resourceVersion": "9"}, "spec": {"csi": {"driver": "d"}}}')


def test_a_persistent_volume_update_sends_the_whole_object_and_waits_for_the_claim_to_bind() -> None:
    host = Host({f"GET {VOLUME_PATH}": [WHOLE]}, (NODE, CLAIM, VOLUME, pod()))
    host.on_pause = lambda: host.objects.update({(PersistentVolumeClaim, CLAIM.key): BOUND})
    log = host.execute(Update(pod(), "n1", VOLUME), Bind(pod(), "n1"))
    assert log == [f"GET {VOLUME_PATH}", f"PUT {VOLUME_PATH}", f"POST {POD_PATH}/p/binding"]
    assert host.bodies[f"PUT {VOLUME_PATH}"] == {
        "metadata": {"name": "v", "resourceVersion": "5", "annotations": {"bound": "yes"}},
        "spec": {
            "csi": {"driver": "d"},
            "claimRef": {
                "apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": "n", "name": "c", "uid": "uid-c",
                "resourceVersion": "3",
            },
        },
    }  # fmt: skip


@pytest.mark.parametrize(
    ("objects", "want"),
    [
        pytest.param((CLAIM, VOLUME, pod()), 'failed to get node "n1": node "n1" not found', id="the node has gone"),
        pytest.param((NODE, CLAIM, VOLUME), 'pod does not exist any more: pod "p" not found', id="the pod has gone"),
        pytest.param(
            (NODE, CLAIM, PersistentVolume(metadata=ObjectMeta(name="v", resource_version="9")), pod()),
            'ClaimRef got reset for pv "v"', id="the volume was taken back",
        ),
        pytest.param((NODE, CLAIM, VOLUME, pod()), "context deadline exceeded", id="the claim is never bound"),
    ],
)  # fmt: skip
def test_waiting_for_a_volume_fails_if_node_pod_or_volume_changes_or_on_timeout(
    objects: tuple[KubernetesObject, ...], want: str
) -> None:
    host = Host({f"GET {VOLUME_PATH}": [WHOLE]}, objects)
    log = host.execute(Update(pod(), "n1", VOLUME), Bind(pod(), "n1"))
    assert log[-1] == f"PreBind of n/p failed in VolumeBinding: binding volumes: {want}"


def test_a_claim_with_failed_provisioning_fails_the_binding() -> None:
    path = path_of(PersistentVolumeClaim, "n", "c")
    asks = PersistentVolumeClaim(metadata=ObjectMeta(name="c", namespace="n", annotations={SELECTED_NODE: "n1"}))
    reset = PersistentVolumeClaim(metadata=ObjectMeta(name="c", namespace="n", annotations={"other": "x"}))
    host = Host({f"GET {path}": [ApiResponse(200, b'{"metadata": {}}')]}, (NODE, reset, pod()))
    log = host.execute(Update(pod(), "n1", asks), Bind(pod(), "n1"))
    assert log[-1] == 'PreBind of n/p failed in VolumeBinding: binding volumes: provisioning failed for PVC "c"'


DEVICES = ResourceClaim(
    metadata=ObjectMeta(name="d", namespace="n", uid="uid-d", finalizers=("keep",)),
    status=ResourceClaimStatus(
        allocation=AllocationResult(),
        reserved_for=(ResourceClaimConsumerReference(resource="pods", name="p", uid="uid-p"),),
    ),
)
CLAIM_PATH = path_of(ResourceClaim, "n", "d")
FOUND = ApiResponse(200, b'{"metadata": {"name": "d", "uid": "uid-d"}, "spec": {}}')


def test_a_resource_claim_gets_a_finalizer_before_its_allocation() -> None:
    host = Host({f"GET {CLAIM_PATH}": [FOUND], f"PUT {CLAIM_PATH}": [FOUND]})
    log = host.execute(Update(pod(), "n1", DEVICES), Bind(pod(), "n1"))
    assert log == [f"GET {CLAIM_PATH}", f"PUT {CLAIM_PATH}", f"PUT {CLAIM_PATH}/status", f"POST {POD_PATH}/p/binding"]
    status = host.bodies[f"PUT {CLAIM_PATH}/status"]
    assert isinstance(status, dict)
    assert status["status"]["reservedFor"] == [{"resource": "pods", "name": "p", "uid": "uid-p"}]


@pytest.mark.parametrize(
    ("answers", "want"),
    [
        pytest.param(
            {f"PUT {CLAIM_PATH}": [refusal(403)]}, "add finalizer to claim n/d: no", id="it can't be protected"
        ),
        pytest.param(
            {f"PUT {CLAIM_PATH}": [FOUND], f"PUT {CLAIM_PATH}/status": [refusal(422)]},
            "add allocation and reservation to claim n/d: no", id="it can't be allocated",
        ),
        pytest.param(
            {f"GET {CLAIM_PATH}": [ApiResponse(200, b'{"metadata": {"uid": "another"}}')]},
            "claim n/d got deleted in the meantime", id="another claim has its name",
        ),
        pytest.param(
            {f"GET {CLAIM_PATH}": [ApiResponse(200, b'{"metadata": {"uid": "uid-d"}, "status": {"allocation": '
                                                    b'{"devices": {"results": [{"device": "x"}]}}}}')]},
            "claim n/d got allocated elsewhere in the meantime", id="another client has allocated it",
        ),
    ],
)  # fmt: skip
def test_a_failed_or_conflicting_resource_claim_update_fails_the_binding(answers: Answers, want: str) -> None:
    host = Host({f"GET {CLAIM_PATH}": [FOUND], **answers})
    log = host.execute(Update(pod(), "n1", DEVICES), Bind(pod(), "n1"))
    assert log[-1] == f"PreBind of n/p failed in DynamicResources: {want}"


def test_a_resource_claim_conflict_is_retried() -> None:
    host = Host({f"GET {CLAIM_PATH}": [FOUND], f"PUT {CLAIM_PATH}": [refusal(409), FOUND]})
    log = host.execute(Update(pod(), "n1", DEVICES), Bind(pod(), "n1"))
    assert log.count(f"PUT {CLAIM_PATH}") == 2
    assert log[-1] == f"POST {POD_PATH}/p/binding"


def test_deallocating_an_unused_claim_uses_the_known_resource_version() -> None:
    found = ApiResponse(
        200,
        b'{"metadata": {"name": "d", "resourceVersion": "9"}, "spec": {"a": 1}, "status": {"allocation": {}, "reservedFor": []}}',
    )
    host = Host({f"GET {CLAIM_PATH}": [found]})
    log = host.execute(
        Update(pod(), "", DEVICES), emit(pod(), "FailedScheduling"), SetCondition(pod(), "Unschedulable", "")
    )
    assert log == [
        "event FailedScheduling of p by default-scheduler",
        f"GET {CLAIM_PATH}",
        f"PUT {CLAIM_PATH}/status",
        f"PATCH {POD_PATH}/p/status",
    ]
    metadata = {"name": "d", "resourceVersion": DEVICES.metadata.resource_version}
    assert host.bodies[f"PUT {CLAIM_PATH}/status"] == {"metadata": metadata, "spec": {"a": 1}, "status": {}}


def test_a_pod_that_can_t_be_bound_releases_its_claim() -> None:
    refused = {f"POST {POD_PATH}/p/binding": [refusal(403)]}
    host = Host({f"GET {CLAIM_PATH}": [FOUND], f"PUT {CLAIM_PATH}": [FOUND], **refused})
    log = host.execute(Update(pod(), "n1", DEVICES), Bind(pod(), "n1"))
    assert log[-2:] == [f"PATCH {CLAIM_PATH}/status", "Bind of n/p failed in DefaultBinder: no"]
    users = [{"$patch": "delete", "uid": "uid-p"}]
    assert host.bodies[f"PATCH {CLAIM_PATH}/status"] == {
        "metadata": {"uid": "uid-d"},
        "status": {"reservedFor": users},
    }


RESULT = DeviceRequestAllocationResult(
    request="r",
    driver="d",
    pool="p",
    device="gpu",
    binding_conditions=("Attached",),
    binding_failure_conditions=("Broken",),
)


def attached(*conditions: Condition, timestamp: str = "2027-01-15T08:00:00Z") -> ResourceClaim:
    """Return the claim with a device that must be attached first, with its driver's status."""
    allocation = AllocationResult(devices=DeviceAllocationResult(results=(RESULT,)), allocation_timestamp=timestamp)
    device = AllocatedDeviceStatus(driver="d", pool="p", device="gpu", conditions=conditions)
    return replace(DEVICES, status=replace(DEVICES.status, allocation=allocation, devices=(device,)))


READY, BROKEN = (
    Condition(type="Attached", status="True"),
    Condition(type="Broken", status="True", reason="R", message="m"),
)


@pytest.mark.parametrize(
    ("now", "then", "want", "pauses"),
    [
        pytest.param(attached(READY), attached(READY), f"POST {POD_PATH}/p/binding", 0, id="it already exists"),
        pytest.param(attached(), attached(READY), f"POST {POD_PATH}/p/binding", 1, id="it appears"),
        pytest.param(
            attached(), attached(BROKEN),
            "PreBind of n/p failed in DynamicResources: device binding failed: claim=d, reason=R, message=\"m\"", 1,
            id="it is broken",
        ),
        pytest.param(
            attached(timestamp="2027-01-15T07:00:00Z"), attached(),
            "PreBind of n/p failed in DynamicResources: device binding timeout: claim=d", 0, id="it took too long",
        ),
        pytest.param(
            None, attached(), 'PreBind of n/p failed in DynamicResources: could not find v1.ResourceClaim "n/d"', 0,
            id="the claim has gone",
        ),
    ],
)  # fmt: skip
def test_binding_waits_for_device_conditions_failure_or_timeout(
    now: ResourceClaim | None, then: ResourceClaim, want: str, pauses: int
) -> None:
    host = Host({f"GET {CLAIM_PATH}": [FOUND], f"PUT {CLAIM_PATH}": [FOUND]}, () if now is None else (now,))
    host.on_pause = lambda: host.objects.update({(ResourceClaim, DEVICES.key): then})
    log = host.execute(Update(pod(), "n1", attached()), Bind(pod(), "n1"))
    assert "event BindingConditionsPending of p by default-scheduler" in log
    assert (log[-1], host.pauses) == (want, pauses)


def test_extended_resource_claims_are_created_and_recorded_in_the_pod_status() -> None:
    asked = ResourceRequirements(requests={"cpu": "1", "example.com/gpu": 2})
    wanting = replace(pod(), spec=PodSpec(containers=(Container(name="c", resources=asked),)))
    exact = ExactDeviceRequest(device_class_name="gpu", allocation_mode="ExactCount", count=2)
    requests = (DeviceRequest(name="container-0-request-1", exactly=exact),)
    made = ResourceClaim(
        metadata=ObjectMeta(
            name="p-x", namespace="n", annotations={"resource.kubernetes.io/extended-resource-claim": "true"}
        ),
        spec=ResourceClaimSpec(devices=DeviceClaim(requests=requests)),
        status=DEVICES.status,
    )
    collection = path_of(ResourceClaim, "n")
    host = Host({f"POST {collection}": [ApiResponse(201, b'{"metadata": {"name": "p-x", "uid": "u"}}')]})
    log = host.execute(Update(wanting, "n1", made), Bind(wanting, "n1"))
    assert log == [
        f"POST {collection}",
        f"PUT {collection}/p-x/status",
        f"PATCH {POD_PATH}/p/status",
        f"POST {POD_PATH}/p/binding",
    ]
    mapping = {"containerName": "c", "resourceName": "example.com/gpu", "requestName": "container-0-request-1"}
    reported = {"requestMappings": [mapping], "resourceClaimName": "p-x"}
    assert host.bodies[f"PATCH {POD_PATH}/p/status"] == {"status": {"extendedResourceClaimStatus": reported}}


def test_the_claim_of_extended_resources_is_deleted_if_the_pod_can_t_be_bound() -> None:
    metadata = ObjectMeta(
        name="p-x", namespace="n", annotations={"resource.kubernetes.io/extended-resource-claim": "true"}
    )
    made = ResourceClaim(metadata=metadata, status=DEVICES.status)
    path = f"{path_of(ResourceClaim, 'n')}/p-x"
    protected = b'{"metadata": {"name": "p-x", "finalizers": ["keep", "resource.kubernetes.io/delete-protection"]}}'
    answers = {f"GET {path}": [ApiResponse(200, protected)], f"PUT {path}": [refusal(409), OK]}
    host = Host({**answers, f"PUT {path}/status": [refusal(403)]})
    log = host.execute(Update(pod(), "n1", made), Bind(pod(), "n1"))
    assert log[2:] == [
        *[f"GET {path}", f"PUT {path}"] * 2,
        f"DELETE {path}",
        "PreBind of n/p failed in DynamicResources: add allocation and reservation to claim n/p-x: no",
    ]
    assert host.bodies[f"PUT {path}"] == {"metadata": {"name": "p-x", "finalizers": ["keep"]}}


# Victims whose bindings have not ended.


def _preempt(host: Host, *, cancels_pre_bind: bool = True) -> None:
    evict = Evict(pod(), pod("vip"), "n1", cancels_pre_bind)
    [exchange] = exchanges_of([evict, emit(pod(), "Preempted")], host)
    host.run(exchange)


def test_a_victim_that_waits_for_its_volumes_is_not_deleted_and_its_binding_is_canceled() -> None:
    host = Host({f"GET {VOLUME_PATH}": [WHOLE]}, (NODE, CLAIM, VOLUME, pod()))
    host.on_pause = lambda: _preempt(host)
    assert host.execute(Update(pod(), "n1", VOLUME), Bind(pod(), "n1"))[2:] == [
        "event Preempted of p by second",
        "PreBind of n/p failed in VolumeBinding: preempted by DefaultPreemption",
    ]
    assert host.notes == ["note (in kube-scheduler memory)."]


def test_a_victim_that_waits_for_its_devices_releases_its_claim() -> None:
    host = Host({f"GET {CLAIM_PATH}": [FOUND], f"PUT {CLAIM_PATH}": [FOUND]}, (attached(),))
    host.on_pause = lambda: _preempt(host)
    assert host.execute(Update(pod(), "n1", attached()), Bind(pod(), "n1"))[-3:] == [
        "event Preempted of p by second",
        f"PATCH {CLAIM_PATH}/status",
        "PreBind of n/p failed in DynamicResources: preempted by DefaultPreemption",
    ]


def test_a_binding_that_is_canceled_before_it_begins_writes_nothing() -> None:
    host = Host()
    [exchange] = exchanges_of([Update(pod(), "n1", VOLUME), Update(pod(), "n1", DEVICES), Bind(pod(), "n1")], host)
    host.binding = exchange
    _preempt(host)
    host.run(exchange)
    assert host.log == [
        "event Preempted of p by second",
        "PreBind of n/p failed in VolumeBinding: preempted by DefaultPreemption",
    ]


def test_a_binding_that_is_canceled_during_its_last_update_is_not_written() -> None:
    host = Host({f"GET {CLAIM_PATH}": [FOUND], f"PUT {CLAIM_PATH}": [FOUND]})
    host.on_request = lambda name: _preempt(host) if name == f"PUT {CLAIM_PATH}/status" else None
    assert host.execute(Update(pod(), "n1", DEVICES), Bind(pod(), "n1"))[-3:] == [
        "event Preempted of p by second",
        f"PATCH {CLAIM_PATH}/status",
        "PreBind of n/p failed in DynamicResources: preempted by DefaultPreemption",
    ]
    assert host.bound == []


def test_a_victim_of_the_classic_scheduler_is_deleted_while_it_waits_for_its_volumes() -> None:
    host = Host({f"GET {VOLUME_PATH}": [WHOLE]}, (NODE, CLAIM, VOLUME, pod()))

    def preempt() -> None:
        _preempt(host, cancels_pre_bind=False)
        host.objects.pop((Pod, pod().key))

    host.on_pause = preempt
    log = host.execute(Update(pod(), "n1", VOLUME), Bind(pod(), "n1"))
    assert log[2:5] == [f"PATCH {POD_PATH}/p/status", f"DELETE {POD_PATH}/p", "event Preempted of p by second"]
    assert "pod does not exist any more" in log[-1]


@pytest.mark.parametrize(
    "actions",
    [
        pytest.param([Bind(pod(), "n1")], id="without PreBind"),
        pytest.param([Update(pod(), "n1", DEVICES), Bind(pod(), "n1")], id="after PreBind"),
    ],
)
def test_a_victim_whose_binding_is_being_written_is_deleted(actions: list[Action]) -> None:
    host = Host({f"GET {CLAIM_PATH}": [FOUND], f"PUT {CLAIM_PATH}": [FOUND]})
    host.on_request = lambda name: _preempt(host) if name.endswith("/binding") else None
    log = host.execute(*actions)
    assert log[-3:] == [f"PATCH {POD_PATH}/p/status", f"DELETE {POD_PATH}/p", "event Preempted of p by second"]
    assert host.notes == ["note"]


def test_a_victim_that_an_extender_has_bound_is_deleted() -> None:
    host = Host({f"GET {VOLUME_PATH}": [WHOLE]}, (NODE, CLAIM, VOLUME, pod()))

    def preempt() -> None:
        _preempt(host)
        host.objects[PersistentVolumeClaim, CLAIM.key] = BOUND

    host.on_pause = preempt
    log = host.execute(Update(pod(), "n1", VOLUME), Bind(pod(), "n1", "extender"))
    assert log[2:] == [f"PATCH {POD_PATH}/p/status", f"DELETE {POD_PATH}/p", "event Preempted of p by second"]
    assert host.bound == ["n/p"]
