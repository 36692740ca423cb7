"""Surge, unavailability and proportional scaling."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.base.errors import InputError
from bayplan.controllers.rollout_arithmetic import (
    DESIRED_REPLICAS_ANNOTATION,
    MAX_REPLICAS_ANNOTATION,
    new_set_size,
    read_count,
    rollout_limits,
    scaled_value,
    share_scaling,
)
from bayplan.objects.meta import IntOrString, ObjectMeta
from bayplan.objects.workloads import (
    Deployment,
    DeploymentSpec,
    DeploymentStatus,
    ReplicaSet,
    ReplicaSetSpec,
    RollingUpdate,
    UpdateStrategy,
)


def deployment(
    replicas: int, surge: IntOrString | None = "25%", unavailable: IntOrString | None = "25%", *, status: int = 0
) -> Deployment:
    rolling = RollingUpdate(max_surge=surge, max_unavailable=unavailable)
    strategy = UpdateStrategy(type="RollingUpdate", rolling_update=rolling)
    return Deployment(
        spec=DeploymentSpec(replicas=replicas, strategy=strategy), status=DeploymentStatus(replicas=status)
    )


def replica_set(name: str, size: int, *, most: int | None = None, created: str = "1970-01-01T00:00:00Z") -> ReplicaSet:
    annotations = {} if most is None else {MAX_REPLICAS_ANNOTATION: str(most)}
    metadata = ObjectMeta(name=name, annotations=annotations, creation_timestamp=created)
    return ReplicaSet(metadata=metadata, spec=ReplicaSetSpec(replicas=size))


@pytest.mark.parametrize(
    ("value", "round_up", "want"),
    [
        pytest.param(None, True, 0, id="nothing"),
        pytest.param(3, True, 3, id="a number"),
        pytest.param("25%", True, 3, id="a percentage rounded up"),
        pytest.param("25%", False, 2, id="a percentage rounded down"),
        pytest.param("100%", False, 10, id="all"),
        pytest.param("0%", True, 0, id="none"),
    ],
)
def test_scaled_value_rounds_percentages_up_or_down(value: IntOrString | None, round_up: bool, want: int) -> None:
    assert scaled_value(value, 10, round_up=round_up) == want


@pytest.mark.parametrize("value", ["25", "25 %", "a%", "%", ""])
def test_invalid_percentages_are_refused(value: str) -> None:
    with pytest.raises(InputError, match="percentage"):
        scaled_value(value, 10, round_up=True)


@pytest.mark.parametrize(
    ("item", "want"),
    [
        pytest.param(deployment(10), (3, 2), id="a quarter each: up and down"),
        pytest.param(deployment(2, "0%", "1%"), (0, 1), id="both round to nothing: one may be missing"),
        pytest.param(deployment(1, "1%", "25%"), (1, 0), id="one replica surges"),
        pytest.param(deployment(3, 0, 10), (0, 3), id="no more than all may be missing"),
        pytest.param(deployment(0), (0, 0), id="a percentage of zero"),
        pytest.param(Deployment(spec=DeploymentSpec(replicas=4)), (1, 1), id="defaults"),
        pytest.param(
            Deployment(spec=DeploymentSpec(replicas=4, strategy=UpdateStrategy(type="Recreate"))), (0, 0), id="Recreate"
        ),
    ],
)
def test_rollout_limits_are_derived_from_max_surge_and_max_unavailable(item: Deployment, want: tuple[int, int]) -> None:
    assert rollout_limits(item) == want


@pytest.mark.parametrize(
    ("item", "new", "every", "want"),
    [
        pytest.param(deployment(10), 0, 0, 10, id="a first set gets everything"),
        pytest.param(deployment(10), 0, 10, 3, id="with a full old set, the surge"),
        pytest.param(deployment(10), 3, 13, 3, id="no room"),
        pytest.param(deployment(10), 3, 11, 5, id="room of two"),
        pytest.param(deployment(10), 9, 10, 10, id="at most the requested number"),
        pytest.param(
            Deployment(spec=DeploymentSpec(replicas=4, strategy=UpdateStrategy(type="Recreate"))),
            0,
            4,
            4,
            id="Recreate gets everything",
        ),
    ],
)
def test_new_set_size_is_limited_by_replicas_and_surge(item: Deployment, new: int, every: int, want: int) -> None:
    assert new_set_size(item, new, every) == want


@pytest.mark.parametrize(
    ("item", "sets", "want"),
    [
        pytest.param(
            deployment(20, 0, 1),
            [replica_set("a", 5, most=10), replica_set("b", 5, most=10)],
            {"a": 10, "b": 10},
            id="doubled",
        ),
        pytest.param(
            deployment(12, 0, 1),
            [replica_set("a", 6, most=10), replica_set("b", 4, most=10)],
            {"a": 7, "b": 5},
            id="shared",
        ),
        pytest.param(
            deployment(5, 0, 1),
            [replica_set("a", 8, most=10), replica_set("b", 2, most=10)],
            {"a": 4, "b": 1},
            id="halved",
        ),
        pytest.param(deployment(0), [replica_set("a", 8), replica_set("b", 2)], {"a": 0, "b": 0}, id="to nothing"),
        pytest.param(
            deployment(11, 0, 1),
            [
                replica_set("old", 5, most=10),
                replica_set("new", 5, most=10, created="1970-01-01T00:00:09Z"),
            ],
            {"old": 5, "new": 6},
            id="of equals the newer grows",
        ),
        pytest.param(
            deployment(9, 0, 1),
            [
                replica_set("old", 5, most=10),
                replica_set("new", 5, most=10, created="1970-01-01T00:00:09Z"),
            ],
            {"old": 4, "new": 5},
            id="of equals the older shrinks",
        ),
        pytest.param(
            deployment(4, 0, 1, status=2), [replica_set("a", 1), replica_set("b", 1)], {"a": 2, "b": 2}, id="unnoted"
        ),
    ],
)
def test_share_scaling_distributes_replicas_proportionally(
    item: Deployment, sets: list[ReplicaSet], want: dict[str, int]
) -> None:
    assert share_scaling(item, sets) == want


@given(
    sizes=st.lists(st.integers(1, 50), min_size=2, max_size=6),
    replicas=st.integers(0, 200),
    surge=st.integers(0, 20),
)
def test_shared_sizes_add_up_to_the_allowed_total(sizes: list[int], replicas: int, surge: int) -> None:
    # The rounding error is taken from the first set, but at most its size. If that is too little, the sum stays too
    # large, as upstream.
    sets = [replica_set(str(number), size, most=sum(sizes)) for number, size in enumerate(sizes)]
    got = share_scaling(deployment(replicas, surge, 1), sets)
    allowed = replicas + surge if replicas else 0
    assert sum(got.values()) == allowed or (sum(got.values()) > allowed and 0 in got.values())
    assert min(got.values()) >= 0


@pytest.mark.parametrize(
    ("text", "want"),
    [("7", 7), ("", None), ("-1", None), ("x", None), ("2147483648", None), ("99999999999", None)],
)
def test_invalid_counts_in_annotations_are_ignored(text: str, want: int | None) -> None:
    metadata = ObjectMeta(annotations={DESIRED_REPLICAS_ANNOTATION: text})
    assert read_count(ReplicaSet(metadata=metadata), DESIRED_REPLICAS_ANNOTATION) == want
