"""Durations of plugins are reported for a sample of cycles, without changing them."""

from __future__ import annotations

from threading import Thread
from typing import Any, cast

import pytest

from bayplan.engine.scheduler import Scheduler
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.plugin import BindPlugin, Plugin
from bayplan.framework.status import SUCCESS, Code, Status
from bayplan.live.plugin_guard import guard
from bayplan.live.plugin_runner import PluginRunner
from bayplan.live.plugin_timer import PluginTimer
from bayplan.objects.pod import Pod
from bayplan.testing import make_node, make_pod
from tests.engine.recorders import SECOND, make_recorder, make_scheduler
from tests.live.hosts import Cluster, make_faulty_plugin, small_pod


class RecordedTimes:
    """The reported durations, by plugin and extension point, or by extension point."""

    def __init__(self) -> None:
        self.plugins: dict[tuple[str, str], list[str]] = {}
        self.points: dict[str, list[str]] = {}
        self.plugin_seconds: dict[str, float] = {}
        self.point_seconds: dict[str, float] = {}

    def observe_plugin(self, plugin: str, point: str, status: str, seconds: float) -> None:
        self.plugins.setdefault((plugin, point), []).append(status)
        self.plugin_seconds[point] = self.plugin_seconds.get(point, 0.0) + seconds

    def observe_point(self, point: str, profile: str, status: str, seconds: float) -> None:
        assert profile == "default-scheduler"
        self.points.setdefault(point, []).append(status)
        self.point_seconds[point] = seconds


def scheduler_with(*pods: Pod, nodes: int = 3) -> Scheduler:
    scheduler = Cluster().make()
    for number in range(nodes):
        scheduler.handle(None, make_node(f"n{number}").capacity(cpu="4", memory="8Gi", pods="20").obj(), 0)
    for pod in pods:
        scheduler.handle(None, pod, 0)
    return scheduler


def outcomes(scheduler: Scheduler, timer: PluginTimer | None) -> list[tuple[str, str, str]]:
    """Schedule all pods that are ready; return the outcome of each."""
    found = []
    while scheduler.queue.has_next:
        report = scheduler.schedule_one(1) if timer is None else timer.schedule(scheduler, 1)
        assert report is not None
        found.append((report.pod.metadata.name, report.node_name, report.message))
    return found


def spread(name: str) -> Pod:
    labels: dict[str, str | list[str]] = {"app": "web"}
    return make_pod(name).uid(name).req(cpu="1").label(app="web").spread(labels, "kubernetes.io/hostname").obj()


PODS = [small_pod("a"), small_pod("large", cpu="9"), small_pod("b", cpu="2"), small_pod("c")]


def test_each_plugin_and_extension_point_is_timed_once_per_cycle() -> None:
    reported = RecordedTimes()
    outcomes(scheduler_with(small_pod("a")), PluginTimer(reported, share=1.0))
    assert reported.plugins["NodeResourcesFit", "Filter"] == ["Success"]
    assert reported.plugins["NodeResourcesFit", "Score"] == ["Success"]
    assert reported.plugins["NodeResourcesBalancedAllocation", "Score"] == ["Success"]
    assert reported.plugins["DefaultBinder", "Bind"] == ["Success"]
    assert {"PreFilter", "Filter", "PreScore", "Score", "Reserve", "PreBind", "Bind"} <= reported.points.keys()
    assert all(len(statuses) == 1 for statuses in [*reported.plugins.values(), *reported.points.values()])
    of_plugins = reported.plugin_seconds
    # Normalizing is a part of the duration of Score.
    of_plugins["Score"] += of_plugins.pop("ScoreExtensionNormalize", 0.0)
    assert reported.point_seconds == pytest.approx(of_plugins)


@pytest.mark.parametrize(
    ("permit", "want"),
    [
        pytest.param((SUCCESS, 0), ["Reserve", "PreBind"], id="Reserve and PreBind"),
        pytest.param((Status(Code.WAIT), SECOND), ["Reserve"], id="only Reserve while the pod waits at Permit"),
    ],
)
def test_points_count_for_plugins_that_have_nothing_to_do(permit: object, want: list[str]) -> None:
    reported = RecordedTimes()
    recorder = make_recorder("A", [], {"permit": permit})
    scheduler = make_scheduler(recorder, in_tree=("NodeResourcesFit", "VolumeBinding"), nodes=("n1",))
    scheduler.handle(None, small_pod("p"), 0)
    PluginTimer(reported, share=1.0).schedule(scheduler, 0)
    points = ("Reserve", "PreBind")
    assert [point for point in points if ("VolumeBinding", point) in reported.plugins] == want


def test_post_filter_is_timed_for_an_infeasible_pod() -> None:
    reported = RecordedTimes()
    outcomes(scheduler_with(small_pod("large", cpu="9")), PluginTimer(reported, share=1.0))
    assert reported.plugins["DefaultPreemption", "PostFilter"] == ["Unschedulable"]
    assert reported.points["PostFilter"] == ["Unschedulable"]
    assert "Score" not in reported.points
    assert "PreBind" not in reported.points
    assert ("DynamicResources", "PostFilter") in reported.plugins


@pytest.mark.parametrize(
    ("draws", "want"),
    [
        pytest.param([0.05, 0.5, 0.09, 0.1], 2, id="draws below the share are sampled"),
        pytest.param([0.5, 0.5, 0.5, 0.5], 0, id="no cycle is sampled if the draw is above the share"),
    ],
)
def test_a_sample_of_cycles_is_timed(draws: list[float], want: int) -> None:
    reported = RecordedTimes()
    outcomes(scheduler_with(*PODS), PluginTimer(reported, draw=iter(draws).__next__))
    assert len(reported.points.get("PreFilter", [])) == want


def test_timed_cycles_make_the_same_decisions() -> None:
    pods = [*PODS, *(spread(f"s{number}") for number in range(6))]
    assert outcomes(scheduler_with(*pods), PluginTimer(RecordedTimes(), share=1.0)) == outcomes(
        scheduler_with(*pods), None
    )


def test_plugin_methods_are_restored_after_a_timed_cycle() -> None:
    runner = PluginRunner(1.0, now_ns=lambda: 0)
    scheduler = scheduler_with(*PODS)
    plugins: list[Plugin[Any]] = [plugin for each in scheduler.profiles.values() for plugin in each.plugins.values()]
    guarded = make_faulty_plugin("filter", "well")(None, scheduler.profiles["default-scheduler"].handle)
    guard(guarded, runner)
    scheduler.profiles["default-scheduler"].plugins["Trouble"] = cast("Plugin[object]", guarded)
    before = [dict(plugin.__dict__) for plugin in [*plugins, guarded]]
    outcomes(scheduler, PluginTimer(RecordedTimes(), share=1.0))
    after = [
        {name: plugin.__dict__[name] for name in known}
        for plugin, known in zip([*plugins, guarded], before, strict=True)
    ]
    methods = [{name for name, each in known.items() if callable(each)} for known in before]
    for known, now, names in zip(before, after, methods, strict=True):
        assert {name: known[name] for name in names} == {name: now[name] for name in names}
    assert all("filter" not in plugin.__dict__ for plugin in plugins)
    runner.close()


def test_plugin_calls_on_other_threads_are_not_timed() -> None:
    reported = RecordedTimes()
    scheduler = scheduler_with(small_pod("large", cpu="9"))
    plugins = scheduler.profiles["default-scheduler"].plugins
    answers: list[object] = []
    fit = plugins["NodeResourcesFit"]
    binder, before = cast("BindPlugin[Any]", plugins["DefaultBinder"]), fit.reasons  # type: ignore[attr-defined]

    def bind_on_another_thread(*arguments: Any) -> object:
        # During the cycle, but outside all timed calls: `reasons` is not timed.
        thread = Thread(target=lambda: answers.append(binder.bind(CycleState(), small_pod("b"), "n0")))
        thread.start()
        thread.join()
        return before(*arguments)

    fit.reasons = bind_on_another_thread  # type: ignore[attr-defined]
    outcomes(scheduler, PluginTimer(reported, share=1.0))
    assert answers
    assert reported.plugins["NodeResourcesFit", "PreFilter"] == ["Success"]
    assert ("DefaultBinder", "Bind") not in reported.plugins
