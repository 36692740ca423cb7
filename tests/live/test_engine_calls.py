"""The calls of a scheduler that is about to end."""

from __future__ import annotations

from bayplan.engine.actions import Emit
from bayplan.live.engine_calls import LastCalls
from tests.live.hosts import small_cluster, small_pod


def test_last_calls_end_bindings_but_start_none() -> None:
    cluster = small_cluster()
    cluster.add(small_pod("p"))
    cluster.host.schedule_current_instant()
    cluster.host.calls = LastCalls()
    cluster.add(small_pod("q"))
    cluster.run()
    assert cluster.nodes_of() == {"p": "n0", "q": ""}
    assert [action.reason for action in cluster.actions if isinstance(action, Emit)] == ["Scheduled"]
