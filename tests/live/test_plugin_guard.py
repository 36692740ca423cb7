"""A plugin may fail at each extension point, in each way: its cycle ends in an error, and everything else continues."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bayplan.base.errors import PluginError
from bayplan.engine.records import Outcome
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.plugin import FilterPlugin, Params, PermitPlugin, ReservePlugin
from bayplan.framework.status import SUCCESS, Code, Status
from bayplan.objects.pod import Pod
from bayplan.state.arrays import Codes
from bayplan.state.cluster_state import ClusterState
from bayplan.state.views import Rows
from tests.engine.recorders import RecorderSpec
from tests.live.hosts import SECOND, incidents, make_faulty_plugin, small_cluster, small_pod

CYCLE = ("sign_pod", "compile", "pre_filter", "filter", "pre_score", "score")
"""Methods whose failure ends the cycle before the pod has a node."""

LATER = ("reserve", "permit", "pre_bind", "bind")
"""Methods whose failure takes the node back."""

POINTS = {
    "sign_pod": "PreFilter",
    "compile": "PreFilter",
    "pre_filter": "PreFilter",
    "pre_score": "PreScore",
    "pre_bind": "PreBind",
}


def point_of(at: str) -> str:
    return POINTS.get(at, at.capitalize())


RAISED, CUT_OFF = "KeyError: 'zone' (hosts.py:", "cut off after 1s at method() (hosts.py:"


@pytest.mark.parametrize(
    ("at", "how", "want"),
    [
        *(pytest.param(at, "raise", RAISED, id=f"{at} raises an exception") for at in (*CYCLE, *LATER)),
        *(pytest.param(at, "sleep", CUT_OFF, id=f"{at} sleeps") for at in (*CYCLE, *LATER)),
        # For the runner, a loop differs from a sleep only in how it is interrupted.
        pytest.param("filter", "loop", CUT_OFF, id="filter loops"),
    ],
)
def test_a_plugin_failure_ends_only_its_own_cycle_with_an_error(at: str, how: str, want: str) -> None:
    cluster = small_cluster(make_faulty_plugin(at, how), deadline_seconds=1.0)
    cluster.add(small_pod("bad"), small_pod("good"))
    cluster.run()
    assert cluster.nodes_of() == {"bad": "", "good": "n0"}
    *_, message = cluster.messages_of("bad")
    assert message.startswith(f'running {point_of(at)} plugin "Trouble": {want}')
    number = cluster.decisions.numbers_of("default/bad")[-1]
    assert cluster.decisions[number].outcome is Outcome.ERROR
    assert cluster.host.status().queue["backoff"] == 1
    assert {reported[0] for reported in incidents(cluster)} == {point_of(at)}
    cluster.check()
    assert not cluster.host.status().engine_failures


@pytest.mark.parametrize("at", [*CYCLE, *LATER])
def test_a_failed_pod_is_scheduled_once_the_plugin_works_again(at: str) -> None:
    plugin = make_faulty_plugin(at, "raise")
    cluster = small_cluster(plugin)
    cluster.add(small_pod("bad"), small_pod("good"))
    cluster.run()
    plugin.how = "well"
    cluster.pass_seconds(15)
    assert cluster.nodes_of()["bad"]
    cluster.check()


@pytest.mark.parametrize(
    ("at", "want"),
    [
        ("filter", "filter() returned 42, expected an array of 2 integers"),
        ("score", "score() returned 42, expected an array of 2 integers"),
        ("pre_filter", "pre_filter() returned 42, expected a PreFilterResult, or a Status that skips or rejects"),
        ("scale", "scale() returned 42, expected a tuple"),
        ("reserve", "returned 42, expected a Status"),
        ("permit", "returned 42, expected a pair of Status and timeout in nanoseconds"),
        ("pre_bind", "returned 42, expected a Status"),
        ("bind", "returned 42, expected a Status"),
    ],
)
def test_an_invalid_return_value_is_a_plugin_failure(at: str, want: str) -> None:
    cluster = small_cluster(make_faulty_plugin(at, "nonsense"))
    cluster.add(small_pod("bad"))
    cluster.run()
    assert want in cluster.messages_of("bad")[-1]
    cluster.check()


def test_a_failing_gate_keeps_the_pod_gated_until_the_next_event() -> None:
    plugin = make_faulty_plugin("pre_enqueue", "raise")
    cluster = small_cluster(plugin)
    cluster.add(small_pod("bad"), small_pod("good"))
    cluster.run()
    assert cluster.nodes_of() == {"bad": "", "good": "n0"}
    assert cluster.host.status().queue["gated"] == 1
    point, text = incidents(cluster)[0][:2]
    assert (point, text.endswith(" for pod default/bad")) == ("PreEnqueue", True)
    plugin.how = "well"
    cluster.add(small_pod("other"))
    cluster.run()
    assert cluster.nodes_of()["bad"]


@pytest.mark.parametrize("at", ["unreserve", "post_bind", "post_filter", "stop_waiting"])
def test_exceptions_in_unreserve_post_bind_and_post_filter_do_not_block_pods(at: str) -> None:
    cluster = small_cluster(make_faulty_plugin(at, "raise"))
    cluster.refuses.add("default/bad")
    cluster.add(small_pod("bad"), small_pod("bad-and-big", cpu="100"), small_pod("good"))
    cluster.run()
    cluster.refuses.clear()
    cluster.pass_seconds(10)
    assert {name: bool(node) for name, node in cluster.nodes_of().items()} == {
        "bad": True,
        "bad-and-big": False,
        "good": True,
    }
    cluster.check()


def test_a_guarded_method_may_be_called_with_keywords() -> None:
    class Delegates(ReservePlugin[Any], FilterPlugin[Any]):
        def filter(self, spec: Any, params: Params | None, rows: Rows, limit: int = 0) -> Codes:
            return np.zeros(len(rows), np.uint16) if limit else self.filter(spec, limit=1, rows=rows, params=params)

        def compile(self, pod: Pod, cluster: ClusterState) -> Any:
            return RecorderSpec("", pod)

        def reserve(self, state: CycleState, pod: Pod, node_name: str = "") -> Status:
            return self.reserve(state, node_name="", pod=pod) if node_name else SUCCESS

        def unreserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
            return None

    cluster = small_cluster(Delegates)
    cluster.add(small_pod("good"))
    cluster.run()
    assert (cluster.nodes_of()["good"], incidents(cluster)) == ("n0", [])


def test_a_timeout_of_numpy_is_an_ordinary_number_to_the_scheduler() -> None:
    class Waits(PermitPlugin[Any]):
        def permit(self, state: CycleState, pod: Pod, node_name: str) -> tuple[Status, int]:
            return Status(Code.WAIT), np.int64(2 * SECOND)  # type: ignore[return-value]

    cluster = small_cluster(Waits)
    cluster.add(small_pod("good"))
    cluster.run()
    (waiting,) = cluster.host.call(lambda scheduler: list(scheduler.waiting_pods))
    assert [type(number) for number in (*waiting.deadlines.values(), *waiting.timeouts.values())] == [int, int]
    cluster.pass_seconds(2)
    assert cluster.messages_of("good")[-1].endswith("rejected due to timeout after waiting 2s at plugin Waits.")


def test_texts_that_are_not_strings_are_refused() -> None:
    with pytest.raises(PluginError, match=r"Trouble\.texts: expected a mapping of verdicts to texts, got \{1: 2\}"):
        small_cluster(type("Trouble", (make_faulty_plugin("filter", "well"),), {"name": "Trouble", "texts": {1: 2}}))


def test_an_exception_in_reasons_ends_the_cycle() -> None:
    plugin = make_faulty_plugin("reasons", "raise")
    plugin.says = {"refuses": ("n0", "n1")}
    cluster = small_cluster(plugin)
    cluster.add(small_pod("bad"))
    cluster.run()
    assert cluster.messages_of("bad")[-1].startswith('running Filter plugin "Trouble": KeyError')
    cluster.check()


def test_a_plugin_with_too_many_unfinished_calls_is_not_called() -> None:
    plugin = make_faulty_plugin("reserve", "sleep")
    cluster = small_cluster(plugin, deadline_seconds=0.05)
    cluster.add(*(small_pod(f"bad-{number}") for number in range(6)), small_pod("good"))
    cluster.run()
    assert [reported[1] for reported in incidents(cluster)][-1] == "not called: 4 earlier calls are still running"
    # It is unknown which of the plugin's calls would end, so the plugin is disabled as a whole, and its pods wait.
    assert cluster.nodes_of()["good"] == ""
    cluster.check()
