"""Pods that run together: their run time counts from when the last of them has started."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from bayplan.base.errors import InputError
from bayplan.cluster.start_groups import StartGroups
from bayplan.objects.pod import Pod
from bayplan.sim.operations import Apply, Delete
from bayplan.testing import make_pod
from tests.sim.simulations import MINUTE, SECOND, START, node, simulate


def worker(name: str, job: str = "a", *, runs_with: str = "job=2") -> Pod:
    return (
        make_pod(name)
        .label(job=job)
        .annotation(**{"bayplan.io/run-time": "10m", "bayplan.io/runs-with": runs_with})
        .obj()
    )


def ends(*operations: tuple[int, Apply | Delete]) -> dict[str, int | None]:
    """Return when each pod ended, in seconds since the start."""
    result = simulate((0, node("n")), *operations)
    return {
        each.key.removeprefix("default/"): None if each.ended_ns is None else (each.ended_ns - START) // SECOND
        for each in result.pods
    }


@pytest.mark.parametrize(
    ("operations", "want"),
    [
        pytest.param([(0, Apply(worker("p")))], {"p": None}, id="a single pod waits forever"),
        pytest.param(
            [(0, Apply(worker("p"))), (MINUTE, Apply(worker("q")))],
            {"p": 660, "q": 660},
            id="both count from when the second starts",
        ),
        pytest.param(
            [(0, Apply(worker("p"))), (0, Apply(worker("q", "b")))],
            {"p": None, "q": None},
            id="pods of another job are not waited for",
        ),
        pytest.param(
            [(0, Apply(worker("p"))), (0, Apply(worker("q"))), (MINUTE, Apply(worker("r")))],
            {"p": 600, "q": 600, "r": 660},
            id="a pod that starts after all others begins immediately",
        ),
        pytest.param(
            [
                (0, Apply(worker("p"))),
                (MINUTE, Delete(Pod, "default/p")),
                (2 * MINUTE, Apply(worker("q"))),
                (3 * MINUTE, Apply(worker("r"))),
            ],
            {"p": 60, "q": 780, "r": 780},
            id="a pod that is gone is waited for again",
        ),
        pytest.param(
            [
                (0, Apply(worker("p"))),
                (0, Apply(worker("q"))),
                (MINUTE, Delete(Pod, "default/p")),
                (2 * MINUTE, Apply(worker("r"))),
                (20 * MINUTE, Delete(Pod, "default/q")),
                (20 * MINUTE, Delete(Pod, "default/r")),
                (30 * MINUTE, Apply(worker("s"))),
                (40 * MINUTE, Apply(worker("t"))),
            ],
            {"p": 60, "q": 600, "r": 720, "s": 3000, "t": 3000},
            id="when all pods are deleted, the next pods wait for each other again",
        ),
    ],
)
def test_run_times_start_when_the_last_pod_of_the_job_starts(
    operations: list[tuple[int, Apply | Delete]], want: dict[str, int | None]
) -> None:
    assert ends(*operations) == want


@pytest.mark.parametrize("text", ["job", "=2", "job=", "job=0", "job=two"])
def test_an_invalid_runs_with_annotation_is_reported(text: str) -> None:
    with pytest.raises(InputError, match=r"Pod default/p \$.metadata.annotations.* expected LABEL=COUNT") as raised:
        ends((0, Apply(worker("p", runs_with=text))))
    assert repr(text) in str(raised.value)


def test_groups_are_forgotten_with_their_last_pod_even_if_labels_change() -> None:
    groups = StartGroups()
    first, second = worker("p"), worker("q")
    first, second = (replace(each, metadata=replace(each.metadata, uid=each.metadata.name)) for each in (first, second))
    assert groups.started(first) == []
    assert groups.started(second) == [first, second]
    for each in (first, second, second):
        groups.remove(replace(each, metadata=replace(each.metadata, labels={}, annotations={})))
    assert len(groups) == 0
