"""The allocator chooses what enumerating every choice gives."""

from typing import Any

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
        found: dict[str, Any] = request("", wish.count or 1, expression, **mode, **admin)["exactly"]
        return found

    if len(alternatives) == 1:
        return {"name": f"r{number}", "exactly": exact(alternatives[0])}
    listed = [{"name": f"a{place}", **exact(wish)} for place, wish in enumerate(alternatives)]
    return {"name": f"r{number}", "firstAvailable": listed}


@given(claims=CLAIMS, kinds=DEVICES)
@settings(max_examples=150, deadline=None)
def test_first_of_all_choices_is_taken(claims: list[NaiveClaim], kinds: list[tuple[int, int, bool]]) -> None:
    naive = [NaiveDevice(f"d{number}", *kind) for number, kind in enumerate(kinds)]
    # All devices of a claim with a constraint can be an error, which is not a choice.
    assume(not any(item.match and wish.count is None for item in claims for wishes in item.requests for wish in wishes))
    devices = [device(item.name, item.index, attributes={"group": {"int": item.group}}) for item in naive]
    objects: list[Any] = [device_class(), device_slice("n1", devices)]
    for number, item in enumerate(claims):
        constraints = [{"matchAttribute": f"{DRIVER}/group"}] if item.match else []
        requests = [written(place, wishes) for place, wishes in enumerate(item.requests)]
        objects.append(claim(f"c{number}", *requests, constraints=constraints))
    used = [("n1", item.name) for item in naive if item.used]
    if used:
        objects.append(claim("used", request(), status={"allocation": allocation(*used)}))
    world = World(["n1"], objects)
    pod = claiming(*(f"c{number}" for number in range(len(claims))))
    wanted = allocate(claims, naive)
    if wanted is None:
        assert "n1" in world.filter(pod)
        return
    found = [item.split("=n1/") for item in world.reserve(pod)]
    expected = []
    for item, choice in zip(claims, wanted, strict=True):
        for number, (wishes, (place, names)) in enumerate(zip(item.requests, choice, strict=True)):
            name = f"r{number}" if len(wishes) == 1 else f"r{number}/a{place}"
            expected += [[name, device_name] for device_name in names]
    assert found == expected
