"""Pending bindings: when they are too many, and those of pods that were deleted before the watch confirmed them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from bayplan.engine.actions import Action, Emit
from bayplan.engine.scheduler import Scheduler
from bayplan.live.pending_bindings import MAX_PENDING_BINDINGS, RESUMED_AFTER, PendingBindings
from tests.live.hosts import Cluster, small_cluster, small_pod


class CountedDict(dict[str, Any]):
    """A dictionary that counts how often its values are read."""

    reads = 0

    def values(self) -> Any:
        self.reads += 1
        return super().values()


def scheduler_with(plain: int, with_volumes: int) -> tuple[Scheduler, CountedDict]:
    waits = [*([()] * plain), *([("VolumeBinding",)] * with_volumes)]
    pending = CountedDict({str(number): SimpleNamespace(pre_bind=wait) for number, wait in enumerate(waits)})
    return cast("Scheduler", SimpleNamespace(bindings=SimpleNamespace(pending=pending))), pending


@pytest.mark.parametrize(
    ("plain", "with_volumes", "want"),
    [
        pytest.param(MAX_PENDING_BINDINGS - 1, 0, False, id="few bindings are pending"),
        pytest.param(MAX_PENDING_BINDINGS, 0, True, id="many bindings are pending"),
        pytest.param(
            MAX_PENDING_BINDINGS - 1, MAX_PENDING_BINDINGS, False, id="pods that wait for volumes do not delay others"
        ),
    ],
)
def test_a_backlog_of_bindings(plain: int, with_volumes: int, want: bool) -> None:
    assert PendingBindings().check_backlog(scheduler_with(plain, with_volumes)[0]) is want


def test_bindings_are_rarely_counted_and_never_too_many() -> None:
    scheduler, pending = scheduler_with(1000, 5000)
    bindings = PendingBindings()
    started = 0
    while not bindings.check_backlog(scheduler):
        pending[f"new{started}"] = SimpleNamespace(pre_bind=())
        started += 1
    assert (started, pending.reads) == (MAX_PENDING_BINDINGS - 1000, 2)
    for number in range(RESUMED_AFTER):
        assert bindings.check_backlog(scheduler)
        del pending[f"new{number}"]
    assert not bindings.check_backlog(scheduler)
    assert pending.reads == 3


def lost_pod() -> Cluster:
    """Return a cluster with a pod whose binding was requested."""
    cluster = small_cluster()
    cluster.add(small_pod("p"))
    cluster.host.schedule_current_instant()
    return cluster


def scheduled(cluster: Cluster) -> list[str]:
    return [action.pod.metadata.name for action in cluster.actions if isinstance(action, Emit)]


@pytest.mark.parametrize("responds_first", [True, False])
def test_a_binding_whose_pod_is_deleted_before_its_confirmation_ends(responds_first: bool) -> None:
    cluster = lost_pod()
    if responds_first:
        cluster.host.binding_written(small_pod("p"))
        cluster.host.schedule_current_instant()
        assert scheduled(cluster) == []
    cluster.delete(small_pod("p"))
    cluster.host.schedule_current_instant()
    if not responds_first:
        assert cluster.host.status().pending_bindings == 1
        cluster.host.binding_written(small_pod("p"))
        cluster.host.schedule_current_instant()
    assert cluster.host.status().pending_bindings == 0
    assert scheduled(cluster) == ["p"]


def test_a_status_is_published_although_a_binding_cannot_be_finished(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> list[Action]:
        raise KeyError("zone")

    cluster = lost_pod()
    monkeypatch.setattr(PendingBindings, "finish_deleted", fail)
    cluster.host.run_slice()
    # The published status contains the failure.
    assert [failure.doing for failure in cluster.host.status().engine_failures] == ["finishing bindings"]


def test_a_binding_that_the_watch_confirms_ends_once() -> None:
    cluster = lost_pod()
    cluster.host.binding_written(small_pod("p"))
    cluster.run()
    cluster.delete(small_pod("p"))
    cluster.host.schedule_current_instant()
    assert scheduled(cluster) == ["p"]


def test_the_binding_of_an_earlier_pod_of_the_same_name_is_ignored() -> None:
    cluster = lost_pod()
    cluster.delete(small_pod("p"))
    cluster.host.binding_written(small_pod("q"))
    cluster.host.binding_written(small_pod("p"), generation=7)
    cluster.host.schedule_current_instant()
    assert cluster.host.status().pending_bindings == 1
