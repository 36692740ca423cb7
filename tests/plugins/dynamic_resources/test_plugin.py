"""DynamicResources as a plugin: pods without claims, claims that can't be used, alternatives, reservations, PostFilter."""

from typing import Any

import numpy as np
import pytest

from bayplan.framework.cycle_state import CycleState
from bayplan.framework.diagnosis import Diagnosis
from bayplan.framework.plugin import PreFilterResult, Reads
from bayplan.framework.status import SKIP, Code, Status, unresolvable
from bayplan.objects.pod import Pod
from bayplan.objects.resource import ResourceClaim
from bayplan.plugins.dynamic_resources.node_filter import CANNOT_ALLOCATE, NOT_AVAILABLE
from bayplan.plugins.verdict_texts import FIRST_NUMBER
from bayplan.state.views import Rows
from bayplan.testing.row_results import verdicts_of
from tests.plugins.builders import make_pod
from tests.plugins.dynamic_resources.worlds import (
    World,
    allocation,
    claim,
    claiming,
    device,
    device_class,
    device_slice,
    made,
    request,
)

REJECTED = ("UnschedulableAndUnresolvable", CANNOT_ALLOCATE)
GPU = device_class()


def two_nodes(*objects: Any, **gates: bool) -> World:
    """Return a world where n1 has two devices and n2 one."""
    slices = (device_slice("n1", [device("d0", 0), device("d1", 1)]), device_slice("n2", [device("d0", 2)]))
    return World(["n1", "n2"], [GPU, *slices, *objects], **gates)


def test_pods_without_claims_skip_the_plugin() -> None:
    world = two_nodes()
    pod = make_pod()
    assert world.start(pod) == SKIP
    assert world.plugin.sign_pod(pod) is None
    assert world.spec is world.plugin.compile(make_pod("other"), world.state)
    assert world.plugin.pre_filter_reads(world.spec) is Reads.NOTHING
    assert world.scores() == [0, 0]
    assert world.plugin.reserve(world.cycle_state, pod, "n1").ok
    assert world.plugin.reserved(world.cycle_state) == {}


def rejected_everywhere(world: World, status: Status | None = None) -> Diagnosis:
    """Return a diagnosis where this plugin's filter rejected every node."""
    count = len(world.state.nodes)
    return Diagnosis(
        num_all_nodes=count,
        pre_filter_status=status,
        examined=np.ones(count, dtype=np.bool_),
        values=np.full(count, FIRST_NUMBER, dtype=np.int64),
        filters=("DynamicResources",),
        explain=lambda value: unresolvable(),
        counts={FIRST_NUMBER: count},
    )


def post_filter(world: World, pod: Pod) -> tuple[str, str]:
    """Run PostFilter after every node was rejected; return code and text."""
    _, status = world.plugin.post_filter(pod, rejected_everywhere(world), world.cycle_state)
    return status.code.text, status.message


def test_post_filter_deallocates_nothing_for_pods_without_claims() -> None:
    world = two_nodes()
    world.start(make_pod())
    assert post_filter(world, make_pod()) == ("Unschedulable", "no new claims to deallocate")


def test_post_filter_returns_an_error_if_pre_filter_did_not_run() -> None:
    world = two_nodes()
    world.start(make_pod())
    world.cycle_state.unreached_pre_filters = ("DynamicResources",)
    assert post_filter(world, make_pod()) == ("Error", "not found")


def test_extension_points_report_not_found_if_pre_filter_is_disabled() -> None:
    world = two_nodes()
    pod = make_pod()
    spec = world.plugin.compile(pod, world.state)
    verdicts = verdicts_of(world.plugin, spec, None, Rows(world.state)).tolist()
    assert [world.plugin.reasons(spec, None, verdict) for verdict in verdicts] == [("not found",)] * 2
    assert world.plugin.score_error(spec, ()) == "not found"
    for status in (
        world.plugin.reserve(CycleState(), pod, "n1"),
        world.plugin.pre_bind(CycleState(), pod, "n1"),
        world.plugin.post_filter(pod, rejected_everywhere(world), CycleState())[1],
    ):
        assert (status.code, status.message) == (Code.ERROR, "not found")


TEMPLATE = {"resourceClaims": [{"name": "x", "resourceClaimTemplateName": "t"}]}
MADE = {"resourceClaimStatuses": [{"name": "x", "resourceClaimName": "made"}]}


@pytest.mark.parametrize(
    ("pod", "objects", "want"),
    [
        pytest.param(claiming("c"), [], 'could not find ResourceClaim "default/c"', id="the claim does not exist"),
        pytest.param(
            claiming("c"),
            [claim("c", request(), metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})],
            'resourceclaim "c" is being deleted',
            id="the claim is being deleted",
        ),
        pytest.param(
            make_pod(**TEMPLATE),  # type: ignore[arg-type]
            [],
            'pod "default/p": ResourceClaim not created yet',
            id="the claim of a template was not made yet",
        ),
        pytest.param(
            make_pod(**TEMPLATE, status=MADE),  # type: ignore[arg-type]
            [claim("made", request())],
            "ResourceClaim default/made was not created for Pod default/p (Pod is not owner)",
            id="the claim of a template has another owner",
        ),
        pytest.param(
            make_pod(resourceClaims=[{"name": "x"}]),
            [],
            'pod "default/p", spec.resourceClaim "x": none of the supported fields are set',
            id="the entry is empty",
        ),
    ],
)
def test_unready_resource_claims_gate_pods(pod: Pod, objects: list[Any], want: str) -> None:
    world = two_nodes(*objects)
    assert world.plugin.pre_enqueue(pod) == unresolvable(want)
    assert world.start(pod) == unresolvable(want)
    assert post_filter(world, pod) == ("Unschedulable", "no new claims to deallocate")


def test_template_claim_is_accepted_for_its_pod() -> None:
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "uid-p", "controller": True}
    world = two_nodes(claim("made", request(), metadata={"ownerReferences": [owner]}))
    pod = make_pod(**TEMPLATE, status=MADE)  # type: ignore[arg-type]
    assert world.plugin.pre_enqueue(pod).ok
    assert world.reserve(pod) == ["r=n1/d0"]


def test_pod_claim_entry_without_a_generated_claim_is_skipped() -> None:
    world = two_nodes()
    status = {"resourceClaimStatuses": [{"name": "x"}]}
    assert world.start(make_pod(**TEMPLATE, status=status)) == SKIP  # type: ignore[arg-type]


FIRST = {
    "name": "r",
    "firstAvailable": [{"name": "a", "deviceClassName": "gpu"}, {"name": "b", "deviceClassName": "no"}],
}


@pytest.mark.parametrize(
    ("written", "gate", "want"),
    [
        pytest.param(
            request(deviceClassName="no"),
            True,
            unresolvable("request r: device class no does not exist"),
            id="a class is missing",
        ),
        pytest.param(
            FIRST, True, unresolvable("request r/b: device class no does not exist"), id="the class of an alternative"
        ),
        pytest.param(
            FIRST,
            False,
            unresolvable(
                "resource claim default/c, request r: has subrequests, but the DRAPrioritizedList feature is disabled"
            ),
            id="alternatives without their feature",
        ),
        pytest.param(
            {"name": "r"},
            True,
            unresolvable("resource claim default/c, request r: unknown request type"),
            id="a request of an unknown kind",
        ),
        pytest.param(
            request(deviceClassName=""),
            True,
            Status(Code.ERROR, ("request r: unsupported request type",)),
            id="a request without class is an error",
        ),
    ],
)
def test_pre_filter_rejects_invalid_requests(written: dict[str, Any], gate: bool, want: Status) -> None:
    world = two_nodes(claim("c", written), DRAPrioritizedList=gate)
    assert world.start(claiming("c")) == want


def test_allocated_claim_restricts_its_pod_to_the_allocations_nodes() -> None:
    status = {"allocation": allocation(("n2", "d0"), node="n2")}
    world = two_nodes(claim("c", request(), status=status))
    assert world.filter(claiming("c")) == {"n1": ("UnschedulableAndUnresolvable", NOT_AVAILABLE)}
    assert world.plugin.reserve(world.cycle_state, claiming("c"), "n2").ok
    assert world.plugin.reserved(world.cycle_state) == {}


def test_earlier_alternatives_score_higher() -> None:
    wanted = {
        "name": "r",
        "firstAvailable": [
            {"name": "two", "deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 2},
            {"name": "one", "deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1},
        ],
    }
    world = two_nodes(claim("c", wanted))
    assert world.filter(claiming("c")) == {}
    assert world.scores() == [8, 7]
    assert world.reserve(claiming("c")) == ["r/two=n1/d0", "r/two=n1/d1"]


def test_reserved_devices_are_unavailable_until_unreserved() -> None:
    world = two_nodes(claim("c", request(count=2)), claim("d", request(count=2)))
    assert world.reserve(claiming("c")) == ["r=n1/d0", "r=n1/d1"]
    reserved = world.cycle_state
    assert world.filter(claiming("d", name="q")) == {"n1": REJECTED, "n2": REJECTED}
    assert world.start(claiming("c", name="q")) == unresolvable(
        "resource claim default/c is in the process of being allocated"
    )
    for _ in range(2):
        world.plugin.unreserve(reserved, claiming("c"), "n1")
    assert world.filter(claiming("d", name="q")) == {"n2": REJECTED}


def test_pre_bind_writes_the_allocation_and_the_pod_so_that_others_can_share_the_claim() -> None:
    world = two_nodes(claim("c", request()))
    pod = claiming("c")
    world.reserve(pod)
    assert world.plugin.pre_bind(world.cycle_state, pod, "n1").ok
    (written,) = world.plugin.updates(world.cycle_state)
    assert isinstance(written, ResourceClaim)
    assert [user.name for user in written.status.reserved_for] == ["p"]
    assert written.metadata.finalizers == ("resource.kubernetes.io/delete-protection",)
    assert world.filter(claiming("c", name="q")) == {"n2": ("UnschedulableAndUnresolvable", NOT_AVAILABLE)}
    world.put(written)
    assert world.filter(claiming("c", name="q")) == {"n2": ("UnschedulableAndUnresolvable", NOT_AVAILABLE)}


def test_claim_is_limited_to_256_pods() -> None:
    users = [{"resource": "pods", "name": f"u{number}", "uid": f"uid-u{number}"} for number in range(256)]
    world = two_nodes(claim("c", request(), status={"allocation": allocation(("n1", "d0")), "reservedFor": users}))
    assert world.filter(claiming("c")) == {}
    status = world.plugin.pre_bind(world.cycle_state, claiming("c"), "n1")
    assert status.code is Code.ERROR
    assert "status.reservedFor: Too many: 257: must have at most 256 items" in status.message


@pytest.mark.parametrize(
    ("users", "want"),
    [
        pytest.param([], "deallocation of ResourceClaim completed", id="not in use"),
        pytest.param(["uid-p"], "deallocation of ResourceClaim completed", id="the pod alone uses it"),
        pytest.param(["uid-q"], "still not schedulable", id="another pod uses it"),
        pytest.param(["uid-p", "uid-q"], "still not schedulable", id="another pod uses it, too"),
    ],
)
def test_post_filter_deallocates_an_unused_blocking_allocation(users: list[str], want: str) -> None:
    reserved = [{"resource": "pods", "name": uid, "uid": uid} for uid in users]
    status = {"allocation": allocation(("n2", "d0"), node="gone"), "reservedFor": reserved}
    world = two_nodes(claim("c", request(), status=status))
    world.filter(claiming("c"))
    assert post_filter(world, claiming("c")) == ("Unschedulable", want)
    written = world.plugin.updates(world.cycle_state)
    assert len(written) == (want != "still not schedulable")


@pytest.mark.parametrize(
    ("conditions", "timestamp", "now_s", "want"),
    [
        pytest.param({}, None, 0, {}, id="devices that are still awaited don't reject"),
        pytest.param({"ready": "True"}, None, 0, {}, id="ready devices don't"),
        pytest.param({"failed": "True"}, None, 0, {"n1", "n2"}, id="a device that failed does"),
        pytest.param({}, "1970-01-01T00:00:00Z", 600, {}, id="waiting is allowed up to the limit"),
        pytest.param({}, "1970-01-01T00:00:00Z", 601, {"n1", "n2"}, id="and no longer"),
    ],
)
def test_failed_or_timed_out_binding_conditions_reject_nodes(
    conditions: dict[str, str], timestamp: str | None, now_s: int, want: set[str]
) -> None:
    allocated = allocation(("n1", "d0"), bindingConditions=["ready"], bindingFailureConditions=["failed"])
    allocated["allocationTimestamp"] = timestamp
    reported = [{"type": kind, "status": status} for kind, status in conditions.items()]
    devices = [{"driver": "gpu.example.com", "pool": "n1", "device": "d0", "conditions": reported}]
    item = claim("c", request(), status={"allocation": allocated, "devices": devices})
    world = two_nodes(item)
    plugin = world.plugin
    plugin._binding_timeout_ns = 600 * 10**9
    spec = plugin.compile(claiming("c"), world.state)
    answer = plugin.pre_filter(spec, world.state, CycleState(now_s * 10**9))
    assert isinstance(answer, PreFilterResult)
    verdicts = verdicts_of(plugin, spec, answer.params, Rows(world.state)).tolist()
    assert {f"n{row + 1}" for row, verdict in enumerate(verdicts) if verdict} == set(want)


def test_extended_resource_is_provided_by_the_node_or_by_devices() -> None:
    from tests.plugins.builders import make_node

    world = World([], [device_class(extendedResourceName="example.com/gpu"), device_slice("n2", [device("d0")])])
    plain = {"cpu": "4", "memory": "8Gi", "pods": "110"}
    for name, offers in (("n1", {**plain, "example.com/gpu": "1"}), ("n2", plain), ("n3", plain)):
        world.state.add_node(make_node(name, offers))
    pod = make_pod("p", {"example.com/gpu": "1"})
    assert world.filter(pod) == {"n3": REJECTED}
    assert world.plugin.reserve(world.cycle_state, pod, "n1").ok
    assert world.filter(pod) == {"n3": REJECTED}
    assert world.reserve(pod, "n2") == []
    assert world.filter(make_pod("q", {"example.com/gpu": "1"})) == {"n2": REJECTED, "n3": REJECTED}


def test_post_filter_deletes_the_extended_resource_claim_of_an_earlier_attempt() -> None:
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "uid-p", "controller": True}
    metadata = {
        "annotations": {"resource.kubernetes.io/extended-resource-claim": "true"},
        "ownerReferences": [owner],
    }
    world = two_nodes(
        claim("old", request(), metadata=metadata), made("DeviceClass", "x", {"extendedResourceName": "e.com/x"})
    )
    pod = make_pod("p", {"e.com/x": "1"})
    text = "cannot schedule extended resource claim"
    assert world.filter(pod) == dict.fromkeys(("n1", "n2"), ("UnschedulableAndUnresolvable", text))
    assert post_filter(world, pod) == ("Unschedulable", "deletion of ResourceClaim completed")
