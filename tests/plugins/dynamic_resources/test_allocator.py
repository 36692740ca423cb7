"""The choice of devices: order, counts, all of them, limits, constraints, taints, counters, shared capacity, pools."""

from typing import Any

import pytest

from bayplan.plugins.dynamic_resources.node_filter import CANNOT_ALLOCATE
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

INDEX = 'device.attributes["gpu.example.com"].index'
FOUR = [device(f"d{number}", number % 2) for number in range(4)]
CANNOT = ("UnschedulableAndUnresolvable", CANNOT_ALLOCATE)
NONE = [f"n1: {CANNOT[0]} {CANNOT[1]}"]


def chosen(world: World, *claims: str) -> list[str]:
    """Return the devices that a pod with these claims gets on n1, or why n1 is rejected."""
    pod = claiming(*(claims or ("c",)))
    rejected = world.filter(pod)
    if "n1" in rejected:
        return [f"n1: {' '.join(rejected['n1'])}"]
    return [item.replace("=n1/", "=") for item in world.reserve(pod)]


def world_of(*objects: Any, devices: list[dict[str, Any]] | None = None, **gates: bool) -> World:
    """Return a world of one node with devices."""
    return World(["n1"], [device_class(), device_slice("n1", FOUR if devices is None else devices), *objects], **gates)


def error(text: str) -> list[str]:
    """Return the result of `chosen` for an error."""
    return [f"n1: Error {text}"]


ALL: dict[str, Any] = {"allocationMode": "All"}


@pytest.mark.parametrize(
    ("requests", "want"),
    [
        pytest.param([request()], ["r=d0"], id="the first device that is free"),
        pytest.param([request(count=3)], ["r=d0", "r=d1", "r=d2"], id="as many as requested"),
        pytest.param([request(count=5)], NONE, id="more than available"),
        pytest.param([request(expression=f"{INDEX} == 1")], ["r=d1"], id="the first that a selector takes"),
        pytest.param([request(**ALL)], ["r=d0", "r=d1", "r=d2", "r=d3"], id="all of them"),
        pytest.param([request(expression=f"{INDEX} > 5", **ALL)], NONE, id="all of an empty pool is not enough"),
        pytest.param([request("a"), request("b")], ["a=d0", "b=d1"], id="two requests share nothing"),
        pytest.param(
            [request("a", 2), request("b", 2, f"{INDEX} == 0")],
            ["a=d1", "a=d3", "b=d0", "b=d2"],
            id="an earlier request yields to a more specific one",
        ),
        pytest.param(
            [request(expression=f"{INDEX}.x == 1")],
            error("claim default/c: selector #0: CEL runtime error: no such key: x"),
            id="a selector that fails on a device ends the cycle",
        ),
        pytest.param(
            [request(count=33)],
            error("claim default/c: number of requested devices 33 exceeds the claim limit of 32"),
            id="more devices than a claim can hold",
        ),
        pytest.param(
            [request(allocationMode="Some")],
            error("claim default/c, request r: unsupported count mode Some"),
            id="an unknown mode",
        ),
        pytest.param(
            [request(selectors=[{}])],
            error("claim default/c, request r, selector #0: CEL expression empty (unsupported selector type?)"),
            id="a selector of an unknown kind",
        ),
    ],
)
def test_devices_are_chosen_in_order(requests: list[dict[str, Any]], want: list[str]) -> None:
    assert chosen(world_of(claim("c", *requests))) == want


def test_device_class_selectors_apply_in_addition_to_the_request() -> None:
    objects = [device_class("gpu", f"{INDEX} == 1"), claim("c", request(count=2))]
    assert chosen(world_of(*objects)) == ["r=d1", "r=d3"]
    bad = world_of(device_class("gpu", "1"), claim("c", request()))
    text = "class gpu: selector #0: CEL compile error: must evaluate to bool or the unknown type, not int"
    assert chosen(bad) == error(text)


def test_allocated_devices_are_unavailable_except_for_admin_access() -> None:
    taken = claim("t", request(), status={"allocation": allocation(("n1", "d0"), ("n1", "d1"))})
    assert chosen(world_of(taken, claim("c", request()))) == ["r=d2"]
    assert chosen(world_of(taken, claim("c", request(adminAccess=True)))) == ["r=d0"]
    watching = claim("t", request(), status={"allocation": allocation(("n1", "d0"), adminAccess=True)})
    assert chosen(world_of(watching, claim("c", request()))) == ["r=d0"]


def test_claims_of_one_pod_get_different_devices() -> None:
    world = world_of(claim("c", request(count=2)), claim("d", request(count=2)))
    assert chosen(world, "c", "d") == ["r=d0", "r=d1", "r=d2", "r=d3"]
    assert chosen(world_of(claim("c", request(count=3)), claim("d", request(count=2))), "c", "d") == NONE


MODELS = [device("d0", 0), device("d1", 1), device("d2", 1), device("d3")]


@pytest.mark.parametrize(
    ("requests", "constraint", "want"),
    [
        pytest.param([request(count=2)], {"matchAttribute": "gpu.example.com/index"}, ["r=d1", "r=d2"], id="one value"),
        pytest.param([request(count=3)], {"matchAttribute": "gpu.example.com/index"}, NONE, id="no value is common to three"),
        pytest.param([request(count=1)], {"matchAttribute": "other.com/index"}, NONE, id="an attribute that no device has"),
        pytest.param(
            [request("a"), request("b")],
            {"distinctAttribute": "gpu.example.com/index"},
            ["a=d0", "b=d1"],
            id="different values",
        ),
        pytest.param(
            [request("a"), request("b"), request("c")],
            {"distinctAttribute": "gpu.example.com/index"},
            NONE,
            id="not three different ones",
        ),
        pytest.param(
            [request("a"), request("b"), request("c")],
            {"distinctAttribute": "gpu.example.com/index", "requests": ["a", "b"]},
            ["a=d0", "b=d1", "c=d2"],
            id="only for the requests that it names",
        ),
        pytest.param(
            [request(**ALL)],
            {"matchAttribute": "gpu.example.com/index"},
            error("claim default/c, request r: cannot add device gpu.example.com/n1/d1 because a claim constraint "
                  "would not be satisfied"),
            id="all devices can't be chosen among",
        ),
        pytest.param(
            [request()], {}, error("claim default/c, constraint #0: empty constraint (unsupported constraint type?)"),
            id="a constraint of an unknown kind",
        ),
    ],
)  # fmt: skip
def test_constraints_limit_the_combination_of_devices(
    requests: list[dict[str, Any]], constraint: dict[str, Any], want: list[str]
) -> None:
    assert chosen(world_of(claim("c", *requests, constraints=[constraint]), devices=MODELS)) == want


TAINT = {"key": "k", "value": "v", "effect": "NoSchedule", "timeAdded": "2026-01-01T00:00:00Z"}


@pytest.mark.parametrize(
    ("taint", "toleration", "gate", "want"),
    [
        pytest.param(TAINT, None, True, ["r=d1"], id="a taint rejects the pod"),
        pytest.param(TAINT, None, False, ["r=d0"], id="not without its feature"),
        pytest.param({**TAINT, "effect": "None"}, None, True, ["r=d0"], id="nor without effect"),
        pytest.param(TAINT, {"key": "k", "operator": "Exists"}, True, ["r=d0"], id="a toleration of any value"),
        pytest.param(TAINT, {"key": "k", "value": "v"}, True, ["r=d0"], id="a toleration of this value"),
        pytest.param(TAINT, {"key": "k", "value": "w"}, True, ["r=d1"], id="a toleration of another value"),
        pytest.param(TAINT, {"operator": "Exists", "effect": "NoExecute"}, True, ["r=d1"], id="of another effect"),
    ],
)
def test_tainted_devices_need_a_toleration(
    taint: dict[str, str], toleration: dict[str, str] | None, gate: bool, want: list[str]
) -> None:
    tolerations = [toleration] if toleration is not None else []
    devices = [device("d0", taints=[taint]), device("d1")]
    world = world_of(claim("c", request(tolerations=tolerations)), devices=devices, DRADeviceTaints=gate)
    assert chosen(world) == want


@pytest.mark.parametrize(
    ("selector", "gate", "want"),
    [
        pytest.param({"device": "d0"}, True, ["r=d1"], id="a rule for a device"),
        pytest.param({"pool": "n2"}, True, ["r=d0"], id="a rule for another pool"),
        pytest.param(None, True, NONE, id="a rule without selector means all"),
        pytest.param({"device": "d0"}, False, ["r=d0"], id="rules are a feature"),
    ],
)
def test_taint_rules_taint_the_selected_devices(selector: dict[str, str] | None, gate: bool, want: list[str]) -> None:
    from bayplan.objects.resource import DeviceTaint, DeviceTaintRule, DeviceTaintRuleSpec, DeviceTaintSelector

    chosen_devices = DeviceTaintSelector(**selector) if selector is not None else None
    spec = DeviceTaintRuleSpec(device_selector=chosen_devices, taint=DeviceTaint(key="k", effect="NoSchedule"))
    world = world_of(
        DeviceTaintRule(spec=spec),
        claim("c", request()),
        devices=[device("d0"), device("d1")],
        DRADeviceTaintRules=gate,
    )
    assert chosen(world) == want


def part(name: str, memory: str) -> dict[str, Any]:
    """Return a partition that draws memory from the counters of its pool."""
    return device(name, consumesCounters=[{"counterSet": "whole", "counters": {"memory": {"value": memory}}}])


PARTS = [part("whole", "40Gi"), part("half1", "20Gi"), part("half2", "20Gi"), part("half3", "20Gi")]


def partitions(*objects: Any) -> World:
    """Return a world of one node with partitions of one device."""
    counters = [{"name": "whole", "counters": {"memory": {"value": "40Gi"}}}]
    return World(
        ["n1"],
        [
            device_class(),
            device_slice("n1", [], name="counters", count=2, sharedCounters=counters),
            device_slice("n1", PARTS, name="parts", count=2),
            *objects,
        ],
    )


@pytest.mark.parametrize(
    ("count", "taken", "want"),
    [
        pytest.param(1, "", ["r=whole"], id="the whole device"),
        pytest.param(2, "", ["r=half1", "r=half2"], id="two halves, not the whole and a half"),
        pytest.param(3, "", NONE, id="a third half does not exist"),
        pytest.param(1, "half2", ["r=half1"], id="allocating a part makes the whole unavailable"),
        pytest.param(1, "whole", NONE, id="allocating the whole makes its parts unavailable"),
    ],
)
def test_partitions_are_limited_by_shared_counters(count: int, taken: str, want: list[str]) -> None:
    objects = [claim("c", request(count=count))]
    if taken:
        objects.append(claim("t", request(), status={"allocation": allocation(("n1", taken))}))
    assert chosen(partitions(*objects)) == want


def test_pool_with_unknown_counters_is_invalid() -> None:
    devices = [device("d0", consumesCounters=[{"counterSet": "no", "counters": {}}])]
    text = "n1: UnschedulableAndUnresolvable invalid resource pools were encountered"
    assert chosen(world_of(claim("c", request()), devices=devices)) == [text]


def shareable(**policy: object) -> dict[str, Any]:
    """Return a device of 10Gi that several claims may share."""
    capacity = {"memory": {"value": "10Gi", **({"requestPolicy": policy} if policy else {})}}
    return device("d0", capacity=capacity, allowMultipleAllocations=True)


def consumed(world: World, amount: str | None, count: int = 1) -> object:
    """Return the capacity of a device that a request consumes, or why it gets none."""
    capacity: dict[str, Any] = {"capacity": {"requests": {"memory": amount}}} if amount is not None else {}
    world.put(claim("c", *(request(f"r{number}", **capacity) for number in range(count))))
    found = chosen(world)
    if found[0].startswith("n1:"):
        return found
    devices: Any = world.plugin.reserved(world.cycle_state)["devices"]
    return [item["consumedCapacity"]["memory"] for item in devices["default/c"]]


STEPS = {"default": "2Gi", "validRange": {"min": "2Gi", "step": "2Gi", "max": "8Gi"}}
VALUES = {"default": "1Gi", "validValues": ["1Gi", "4Gi"]}


@pytest.mark.parametrize(
    ("policy", "amount", "count", "want"),
    [
        pytest.param({}, "3Gi", 1, ["3Gi"], id="as much as requested"),
        pytest.param({}, None, 1, ["10Gi"], id="everything by default"),
        pytest.param({}, "11Gi", 1, NONE, id="not more than there is"),
        pytest.param({}, "4Gi", 2, ["4Gi", "4Gi"], id="two share the device"),
        pytest.param({}, "4Gi", 3, NONE, id="three don't fit"),
        pytest.param(STEPS, None, 1, ["2Gi"], id="the default of the policy"),
        pytest.param(STEPS, "1Gi", 1, ["2Gi"], id="at least the minimum"),
        pytest.param(STEPS, "3Gi", 1, ["4Gi"], id="rounded up to a step"),
        pytest.param(STEPS, "9Gi", 1, NONE, id="beyond the maximum"),
        pytest.param(VALUES, "2Gi", 1, ["4Gi"], id="the next value that is allowed"),
        pytest.param(VALUES, "5Gi", 1, NONE, id="beyond the largest value"),
    ],
)
def test_request_consumes_capacity_according_to_the_policy(
    policy: dict[str, Any], amount: str | None, count: int, want: object
) -> None:
    assert consumed(world_of(devices=[shareable(**policy)]), amount, count) == want


def test_capacity_consumed_by_other_claims_is_unavailable() -> None:
    shared = allocation(
        ("n1", "d0"), shareID="6233c036-ec68-580c-856e-e4e57fdc8800", consumedCapacity={"memory": "7Gi"}
    )
    world = world_of(claim("t", request(), status={"allocation": shared}), devices=[shareable()])
    assert consumed(world, "3Gi") == ["3Gi"]
    world = world_of(claim("t", request(), status={"allocation": shared}), devices=[shareable()])
    assert consumed(world, "4Gi") == NONE


def test_device_without_the_requested_capacity_is_skipped() -> None:
    wanted = request(capacity={"requests": {"memory": "1Gi"}})
    assert chosen(world_of(claim("c", wanted), devices=[device("d0")])) == NONE


def slices(**spec: Any) -> list[str]:
    """Return the devices that a pod gets on n1 from a slice with this spec, or why n1 is rejected."""
    arguments: dict[str, Any] = {"devices": [device("d0")], "pool": "p", **spec}
    world = World(["n1"], [device_class(), device_slice("", **arguments), claim("c", request())])
    return chosen(world)


def only(name: str) -> dict[str, Any]:
    """Return a node selector for nodes labelled with a name."""
    return {"nodeSelectorTerms": [{"matchExpressions": [{"key": "name", "operator": "In", "values": [name]}]}]}


@pytest.mark.parametrize(
    ("spec", "want"),
    [
        pytest.param({"allNodes": True}, ["r=p/d0"], id="all nodes"),
        pytest.param({"nodeSelector": only("n1")}, ["r=p/d0"], id="nodes with a label"),
        pytest.param({"nodeSelector": only("n2")}, NONE, id="other nodes"),
        pytest.param({}, NONE, id="a slice without node selection is invalid"),
        pytest.param({"allNodes": True, "count": 2}, NONE, id="an incomplete pool gives nothing"),
        pytest.param(
            {"perDeviceNodeSelection": True, "devices": [device("a", nodeName="n2"), device("b", nodeName="n1")]},
            ["r=p/b"],
            id="each device has its own node selection",
        ),
        pytest.param(
            {"allNodes": True, "devices": [device("d0"), device("d0")]},
            ["n1: UnschedulableAndUnresolvable invalid resource pools were encountered"],
            id="a pool with one name twice is invalid",
        ),
    ],
)
def test_resource_slices_select_nodes(spec: dict[str, Any], want: list[str]) -> None:
    assert slices(**spec) == want


def test_newer_generation_replaces_the_pool() -> None:
    objects = [
        device_slice("n1", [device("old")], name="a", generation=1),
        device_slice("n1", [device("new")], name="b", generation=2),
    ]
    world = World(["n1"], [device_class(), *objects, claim("c", request())])
    assert chosen(world) == ["r=new"]


def test_pools_are_tried_by_name_with_binding_conditions_last() -> None:
    waiting = device("d0", bindingConditions=["ready"], bindingFailureConditions=["failed"])
    objects = [
        device_slice("n1", [waiting], pool="a"),
        device_slice("n1", [device("d0")], pool="c"),
        device_slice("n1", [device("d0")], pool="b"),
    ]
    world = World(["n1"], [device_class(), *objects, claim("c", request(count=3))])
    assert chosen(world) == ["r=b/d0", "r=c/d0", "r=a/d0"]


@pytest.mark.parametrize(
    ("spec", "want"),
    [
        pytest.param({"count": 2}, "currently being updated", id="an incomplete pool"),
        pytest.param({"devices": [device("d0"), device("d0")]}, "currently invalid", id="an invalid pool"),
    ],
)
def test_requesting_all_devices_of_an_incomplete_or_invalid_pool_is_an_error(spec: dict[str, Any], want: str) -> None:
    arguments: dict[str, Any] = {"devices": [device("d0")], **spec}
    world = World(["n1"], [device_class(), device_slice("n1", **arguments), claim("c", request(**ALL))])
    text = f"claim default/c, request r: asks for all devices, but resource pool gpu.example.com/n1 is {want}"
    assert chosen(world) == error(text)


def test_alternatives_are_tried_in_order() -> None:
    def alternative(name: str, count: int) -> dict[str, Any]:
        return {"name": name, "deviceClassName": "gpu", "allocationMode": "ExactCount", "count": count}

    written = {"name": "r", "firstAvailable": [alternative("five", 5), alternative("three", 3), alternative("one", 1)]}
    assert chosen(world_of(claim("c", written))) == ["r/three=d0", "r/three=d1", "r/three=d2"]
    both = claim("c", written, request("more", 2))
    assert chosen(world_of(both)) == ["r/one=d0", "more=d1", "more=d2"]


def test_partitioned_devices_are_ignored_if_the_gate_is_off() -> None:
    made_parts = made("ResourceSlice", "x", {"driver": "x", "pool": {"name": "p"}, "allNodes": True})
    world = world_of(made_parts, claim("c", request()), devices=[part("d0", "1Gi")], DRAPartitionableDevices=False)
    assert chosen(world) == NONE


def test_claim_listed_twice_by_a_pod_is_allocated_once() -> None:
    world = world_of(claim("c", request()))
    assert chosen(world, "c", "c") == ["r=d0"]


@pytest.mark.parametrize(
    ("gates", "want"),
    [
        pytest.param({}, ["r=d0"], id="with all features"),
        pytest.param(
            {"DRAConsumableCapacity": False},
            error(
                "claim default/c, request r: has capacity requests, but the DRAConsumableCapacity feature is disabled"
            ),
            id="without shared capacity a request for it is an error",
        ),
        pytest.param(
            {"DRAConsumableCapacity": False, "DRADeviceBindingConditions": False},
            ["r=d0"],
            id="the oldest allocator ignores it",
        ),
    ],
)
def test_capacity_requests_depend_on_their_feature_gates(gates: dict[str, bool], want: list[str]) -> None:
    devices = [device("d0", capacity={"memory": {"value": "4Gi"}})]
    wanted = request(capacity={"requests": {"memory": "1Gi"}})
    assert chosen(world_of(claim("c", wanted), devices=devices, **gates)) == want


def test_selectors_can_use_fields_of_disabled_features() -> None:
    wanted = request(expression="!device.allowMultipleAllocations")
    assert chosen(world_of(claim("c", wanted), DRAConsumableCapacity=False)) == ["r=d0"]
