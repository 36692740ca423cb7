"""When the engine starts no cycle."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from bayplan.engine.actions import Emit
from bayplan.engine.scheduler import Scheduler
from bayplan.live.engine_calls import MAX_PENDING_BINDINGS, LastCalls, has_backlog
from tests.live.hosts import small_cluster, small_pod


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
    waits = [*([()] * plain), *([("VolumeBinding",)] * with_volumes)]
    pending: dict[str, Any] = {str(number): SimpleNamespace(pre_bind=wait) for number, wait in enumerate(waits)}
    scheduler = SimpleNamespace(bindings=SimpleNamespace(pending=pending))
    assert has_backlog(cast("Scheduler", scheduler)) is want


def test_last_calls_end_bindings_but_start_none() -> None:
    cluster = small_cluster()
    cluster.add(small_pod("p"))
    cluster.host.schedule_current_instant()
    cluster.host.calls = LastCalls()
    cluster.add(small_pod("q"))
    cluster.run()
    assert cluster.nodes_of() == {"p": "n0", "q": ""}
    assert [action.reason for action in cluster.actions if isinstance(action, Emit)] == ["Scheduled"]
