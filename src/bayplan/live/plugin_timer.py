"""Durations of plugins, measured in a sample of cycles: one in ten, as in upstream.

For a sampled cycle, the plugins' methods are replaced by timed ones and restored afterwards, so that other cycles cost
nothing. All calls of a plugin in a cycle at one extension point count as one execution: a call processes many nodes,
and only those that have changed since the last call.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from functools import partial
from threading import get_ident
from typing import Any, Protocol, cast

from bayplan.engine.actions import CycleReport
from bayplan.engine.records import Outcome
from bayplan.engine.scheduler import Scheduler
from bayplan.framework.plugin import Plugin
from bayplan.framework.status import Code, Status
from bayplan.live.engine_calls import EngineCalls
from bayplan.objects.pod import Pod

SAMPLED = 0.1
"""The fraction of cycles that are sampled."""

_POINTS = {
    "sign_pod": "Sign",
    "compile": "PreFilter",
    "observe": "PreFilter",
    "pre_filter": "PreFilter",
    "filter": "Filter",
    "post_filter": "PostFilter",
    "pre_score": "PreScore",
    "score": "Score",
    "scale": "ScoreExtensionNormalize",
    "scale_over": "ScoreExtensionNormalize",
    "normalize": "ScoreExtensionNormalize",
    "reserve": "Reserve",
    "unreserve": "Unreserve",
    "permit": "Permit",
    "pre_bind": "PreBind",
    "updates": "updates",
    "bind": "Bind",
    "post_bind": "PostBind",
}
"""Extension points by method, with upstream's names; `updates` belongs to PreBind, or to PostFilter if that has run."""

_UPDATES = "updates"
_IN_SCORE = "ScoreExtensionNormalize"
"""The point of normalizing; `observe_point` counts it as a part of Score."""


class DurationObserver(Protocol):
    """The receiver of durations: `bayplan.live.metrics.SchedulerMetrics`."""

    def observe_plugin(self, plugin: str, point: str, status: str, seconds: float) -> None:
        """Record the duration of one plugin at one extension point."""
        ...

    def observe_point(self, point: str, profile: str, status: str, seconds: float) -> None:
        """Record the duration of all plugins at one extension point."""
        ...


class PluginTimer(EngineCalls):
    """Runs cycles, and measures the plugins in some of them. Used only by the engine's thread.

    Args:
        receiver: the receiver of the durations.
        share: the fraction of cycles that are sampled.
        draw: the function that returns a random number in [0, 1); seeded by default.
    """

    def __init__(
        self, receiver: DurationObserver, *, share: float = SAMPLED, draw: Callable[[], float] | None = None
    ) -> None:
        self._receiver = receiver
        self._share = share
        self._draw = draw or random.Random(0).random
        self._scheduler: Scheduler | None = None
        self._timed: list[tuple[dict[str, object], dict[str, object], dict[str, object]]] = []
        self._is_inside = False
        self._thread = 0
        # Seconds and status of the current cycle, by plugin and extension point.
        self._seconds: dict[tuple[str, str], float] = {}
        self._statuses: dict[tuple[str, str], str] = {}

    def schedule(self, scheduler: Scheduler, now_ns: int) -> CycleReport | None:
        """Schedule the next pod; see `Scheduler.schedule_one`."""
        if self._draw() >= self._share or not scheduler.queue.has_next:
            return scheduler.schedule_one(now_ns)
        if self._scheduler is not scheduler:
            self._scheduler = scheduler
            self._timed = [self._methods_of(plugin) for plugin in _plugins_of(scheduler)]
        self._thread = get_ident()
        for own, timed, _ in self._timed:
            own.update(timed)
        plans = scheduler.plans
        plans.results.timer = self._call
        try:
            report = scheduler.schedule_one(now_ns)
        finally:
            plans.results.timer = None
            for own, timed, before in self._timed:
                for name in timed:
                    del own[name]
                own.update(before)
        if report is not None and report.outcome is Outcome.SCHEDULED:
            self._add_skipped(scheduler, report.pod)
        self._report(report.pod.spec.scheduler_name if report is not None else "")
        return report

    def _add_skipped(self, scheduler: Scheduler, pod: Pod) -> None:
        """Add the Reserve and PreBind plugins that were not called because they had nothing to do, as upstream does."""
        profile = scheduler.profiles[pod.spec.scheduler_name]
        points: list[tuple[str, Sequence[Plugin[Any]]]] = [("Reserve", profile.reserve)]
        if scheduler.waiting_pods.get(pod.key) is None:
            points.append(("PreBind", profile.pre_bind))
        for point, plugins in points:
            for plugin in plugins:
                if not plugin.binds_skipped_pods:
                    self._seconds.setdefault((plugin.name, point), 0.0)

    def _methods_of(self, plugin: Plugin[Any]) -> tuple[dict[str, object], dict[str, object], dict[str, object]]:
        """Return the plugin's attributes, the timed methods to set in them, and the attributes that these replace."""
        own = cast("dict[str, object]", plugin.__dict__)
        timed: dict[str, object] = {}
        for method, point in _POINTS.items():
            function = getattr(plugin, method, None)
            # Default methods of the base classes are not timed.
            if function is not None and getattr(function, "__module__", "") != Plugin.__module__:
                timed[method] = partial(self._call, (plugin.name, point), function)
        return own, timed, {name: own[name] for name in timed if name in own}

    def _call(self, which: tuple[str, str], function: Callable[..., object], *arguments: Any, **named: Any) -> object:
        if self._is_inside or get_ident() != self._thread:
            # The outer call already includes a call by another method; another thread is reading an earlier decision.
            return function(*arguments, **named)
        self._is_inside = True
        began = time.perf_counter()
        try:
            answer = function(*arguments, **named)
        except BaseException:
            self._statuses[which] = Code.ERROR.text
            raise
        finally:
            self._is_inside = False
            self._seconds[which] = self._seconds.get(which, 0.0) + time.perf_counter() - began
        status = _status_in(answer)
        if status is not None:
            self._statuses[which] = status.code.text
        return answer

    def _report(self, profile: str) -> None:
        for plugin, _ in [which for which in self._seconds if which[1] == _UPDATES]:
            which = (plugin, "PostFilter" if (plugin, "PostFilter") in self._seconds else "PreBind")
            self._seconds[which] = self._seconds.get(which, 0.0) + self._seconds.pop((plugin, _UPDATES))
        points: dict[str, float] = {}
        statuses: dict[str, str] = {}
        for which, seconds in self._seconds.items():
            plugin, point = which
            status = self._statuses.get(which, Code.SUCCESS.text)
            self._receiver.observe_plugin(plugin, point, status, seconds)
            point = "Score" if point == _IN_SCORE else point
            points[point] = points.get(point, 0.0) + seconds
            if status not in (Code.SUCCESS.text, Code.SKIP.text):
                statuses[point] = status
        for point, seconds in points.items():
            self._receiver.observe_point(point, profile, statuses.get(point, Code.SUCCESS.text), seconds)
        self._seconds.clear()
        self._statuses.clear()


def _plugins_of(scheduler: Scheduler) -> Sequence[Plugin[object]]:
    return [plugin for profile in scheduler.profiles.values() for plugin in profile.plugins.values()]


def _status_in(answer: object) -> Status | None:
    """Return the status in a method's result; None if it has no status, which means success."""
    if isinstance(answer, tuple):
        return next((each for each in answer if isinstance(each, Status)), None)
    return answer if isinstance(answer, Status) else None
