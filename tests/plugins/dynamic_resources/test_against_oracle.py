"""The allocator agrees with an enumeration of all choices, in random small clusters and in all of the smallest ones."""

from collections.abc import Sequence
from itertools import combinations_with_replacement, product
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.oracle.dynamic_resources import NaiveClaim, NaiveDevice, NaiveWish, allocate
from tests.plugins.dynamic_resources.worlds import (
    DRIVER,
    World,
    allocation,
    claim,
    claiming,
    device,
    device_class,
    device_slice,
    request,
)

WISHES = st.builds(
    NaiveWish,
    count=st.sampled_from((1, 1, 2, None)),
    indexes=st.sampled_from(((0, 1, 2), (0,), (1, 2), (0, 2))),
    admin=st.sampled_from((False, False, False, True)),
)
EXACT = WISHES.map(lambda wish: (wish,))
LISTS = st.lists(
    st.builds(NaiveWish, count=st.sampled_from((1, 2)), indexes=st.sampled_from(((0, 1), (2,)))), min_size=2, max_size=2
)
REQUESTS = st.lists(st.one_of(EXACT, EXACT, LISTS.map(tuple)), min_size=1, max_size=2)
CLAIMS = st.lists(st.builds(NaiveClaim, requests=REQUESTS.map(tuple), match=st.booleans()), min_size=1, max_size=2)
DEVICES = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 1), st.booleans()), min_size=1, max_size=5)


def written(number: int, alternatives: tuple[NaiveWish, ...]) -> dict[str, Any]:
    """Return a request as a document."""

    def exact(wish: NaiveWish) -> dict[str, Any]:
        expression = f'device.attributes["{DRIVER}"].index in {list(wish.indexes)}'
        mode = {"allocationMode": "All"} if wish.count is None else {}
        admin = {"adminAccess": True} if wish.admin else {}
        tolerations = {"tolerations": [{"operator": "Exists"}]} if wish.tolerates else {}
        found: dict[str, Any] = request("", wish.count or 1, expression, **mode, **admin, **tolerations)["exactly"]
        return found

    if len(alternatives) == 1:
        return {"name": f"r{number}", "exactly": exact(alternatives[0])}
    listed = [{"name": f"a{place}", **exact(wish)} for place, wish in enumerate(alternatives)]
    return {"name": f"r{number}", "firstAvailable": listed}


def check(claims: Sequence[NaiveClaim], naive: Sequence[NaiveDevice], units: int | None = None) -> None:
    """Let both allocate, and compare."""
    devices = []
    for item in naive:
        more: dict[str, Any] = {"attributes": {"group": {"int": item.group}}}
        if item.tainted:
            more["taints"] = [{"key": "k", "effect": "NoSchedule"}]
        if units is not None:
            more["consumesCounters"] = [{"counterSet": "s", "counters": {"units": {"value": str(item.units)}}}]
        devices.append(device(item.name, item.index, **more))
    slices = [device_slice("n1", devices, count=1 if units is None else 2)]
    if units is not None:
        counters = [{"name": "s", "counters": {"units": {"value": str(units)}}}]
        slices.append(device_slice("n1", [], name="counters", count=2, sharedCounters=counters))
    objects: list[Any] = [device_class(), *slices]
    for number, asked in enumerate(claims):
        constraints = [{"matchAttribute": f"{DRIVER}/group"}] if asked.match else []
        requests = [written(place, wishes) for place, wishes in enumerate(asked.requests)]
        objects.append(claim(f"c{number}", *requests, constraints=constraints))
    used = [("n1", item.name) for item in naive if item.used]
    if used:
        objects.append(claim("used", request(), status={"allocation": allocation(*used)}))
    world = World(["n1"], objects)
    pod = claiming(*(f"c{number}" for number in range(len(claims))))
    wanted = allocate(claims, naive, units)
    if wanted is None:
        assert "n1" in world.filter(pod), (claims, naive, units)
        return
    found = [item.split("=n1/") for item in world.reserve(pod)]
    expected = []
    for asked, choice in zip(claims, wanted, strict=True):
        for number, (wishes, (place, names)) in enumerate(zip(asked.requests, choice, strict=True)):
            name = f"r{number}" if len(wishes) == 1 else f"r{number}/a{place}"
            expected += [[name, device_name] for device_name in names]
    assert found == expected, (claims, naive, units)


@given(claims=CLAIMS, kinds=DEVICES)
@settings(max_examples=150, deadline=None)
def test_allocator_matches_the_first_choice_of_enumeration(
    claims: list[NaiveClaim], kinds: list[tuple[int, int, bool]]
) -> None:
    # Such claims are excluded, because they can end in an error, which the enumeration does not know.
    assume(not any(item.match and wish.count is None for item in claims for wishes in item.requests for wish in wishes))
    check(claims, [NaiveDevice(f"d{number}", *kind) for number, kind in enumerate(kinds)])


TOLERANT = st.builds(
    NaiveWish,
    count=st.sampled_from((1, 1, 2, None)),
    indexes=st.sampled_from(((0, 1, 2), (0,), (1, 2))),
    tolerates=st.booleans(),
)
DRAWING = st.lists(
    st.builds(NaiveClaim, requests=st.lists(TOLERANT.map(lambda wish: (wish,)), min_size=1, max_size=2).map(tuple)),
    min_size=1,
    max_size=2,
)
KINDS = st.lists(
    st.tuples(st.integers(0, 2), st.just(0), st.booleans(), st.booleans(), st.integers(0, 2)), min_size=1, max_size=5
)


@given(claims=DRAWING, kinds=KINDS, units=st.integers(0, 6) | st.none())
@settings(max_examples=150, deadline=None)
def test_allocator_matches_enumeration_with_taints_and_counters(
    claims: list[NaiveClaim], kinds: list[tuple[int, int, bool, bool, int]], units: int | None
) -> None:
    naive = [NaiveDevice(f"d{number}", *kind) for number, kind in enumerate(kinds)]
    # Devices in use must have been allocated within the capacity of the counter.
    assume(units is None or sum(item.units for item in naive if item.used) <= units)
    check(claims, naive, units)


SMALL_WISHES = [NaiveWish(count, indexes) for count, indexes in product((1, 2, None), ((0,), (0, 1)))]
SMALL_KINDS = [*product((0, 1), (0,), (False, True))]
SMALL_DEVICES = [kinds for count in (1, 2, 3) for kinds in combinations_with_replacement(SMALL_KINDS, count)]


@pytest.mark.parametrize("first", SMALL_WISHES, ids=lambda wish: f"{wish.count or 'all'} of {wish.indexes}")
def test_allocator_matches_enumeration_for_all_small_claims_and_nodes(first: NaiveWish) -> None:
    for second in (None, *SMALL_WISHES):
        requests = ((first,),) if second is None else ((first,), (second,))
        for kinds in SMALL_DEVICES:
            check([NaiveClaim(requests)], [NaiveDevice(f"d{number}", *kind) for number, kind in enumerate(kinds)])
