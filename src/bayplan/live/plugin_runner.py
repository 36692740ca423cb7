"""Call custom plugins on separate threads with a deadline: a plugin that sleeps, loops or raises fails only its call.

The calling thread passes a call to a worker and waits. A call that exceeds the deadline is abandoned: an exception is
raised in the worker at its next line of Python, another worker replaces it, and the caller gets a failure. A call into
C that holds the GIL can't be interrupted.
"""

from __future__ import annotations

import ctypes
import sys
import time
import traceback
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Lock, Thread, current_thread
from threading import __file__ as threading_file
from typing import Any, TypeVar, cast

from bayplan.base.errors import PluginFailure
from bayplan.objects.pod import Pod

T = TypeVar("T")

DEFAULT_DEADLINE_SECONDS = 10.0

MAX_RUNAWAYS = 4
"""Maximum number of abandoned calls of a plugin that still run. Above it, the plugin is not called until one ends."""

MAX_INCIDENTS = 100

_POINTS_OUTSIDE_CYCLES = ("PreEnqueue", "QueueSort", "QueueingHint")
"""Points that are called for other pods than that of the current cycle. Their first argument is the pod, which failures name."""

_OUR_FILES = (__file__, str(Path(__file__).with_name("plugin_guard.py")), threading_file)


class Overrun(BaseException):
    """Raised in a plugin's code at its deadline. Not an Exception, so that plugins don't catch it accidentally."""


@dataclass(frozen=True, slots=True)
class PluginIncident:
    """A failure of a plugin.

    Attributes:
        plugin, point: the plugin and the extension point.
        exception: the type and message, with file and line of the plugin.
        traceback: the complete traceback; the stack at the deadline if the call was abandoned.
        at_ns: the time of the failure, nanoseconds since 1970.
        overran: whether the call exceeded the deadline.
    """

    plugin: str
    point: str
    exception: str
    traceback: str
    at_ns: int
    overran: bool


@dataclass(frozen=True, slots=True)
class RunningCall:
    """A call in progress. `since` is the `time.monotonic` of its start."""

    plugin: str
    point: str
    since: float


class _Worker(Thread):
    """A thread that runs calls one after another, until one of them is abandoned."""

    def __init__(self) -> None:
        super().__init__(name="bayplan-plugin", daemon=True)
        self.go, self.done = Lock(), Lock()
        self.go.acquire()
        self.done.acquire()
        self.call: Callable[[], object] | None = None
        self.result: object = None
        self.problem: BaseException | None = None
        self.given_up = False
        self.start()

    def run(self) -> None:
        while True:
            try:
                self.go.acquire()
                if self.call is None:
                    return
                self.result = self.call()
            except BaseException as problem:
                self.problem = problem
            if self.given_up:
                return
            self.done.release()


class PluginRunner:
    """Calls plugins' code. Any thread may use it.

    Args:
        deadline_seconds: the maximum duration of a call.
        now_ns: the function that returns the time of incidents.

    Attributes:
        failures: the number of failed calls by plugin.
    """

    def __init__(
        self, deadline_seconds: float = DEFAULT_DEADLINE_SECONDS, *, now_ns: Callable[[], int] = time.time_ns
    ) -> None:
        self.deadline_seconds = deadline_seconds
        self.failures: dict[str, int] = {}
        self._now_ns = now_ns
        self._idle: list[_Worker] = []
        self._runaways: dict[str, list[_Worker]] = {}
        self._incidents: deque[PluginIncident] = deque(maxlen=MAX_INCIDENTS)
        self._running: dict[int, RunningCall] = {}

    def call(self, plugin: str, point: str, function: Callable[..., T], *arguments: Any) -> T:
        """Call a plugin's function, and return its result.

        Raises:
            PluginFailure: the function raised an exception or exceeded the deadline, or was not called because earlier
                calls still run.
        """
        if isinstance(current_thread(), _Worker):
            # A plugin's code calls a guarded method; the outer call already has a deadline.
            return function(*arguments)
        pod = cast("Pod", arguments[0]) if arguments and point in _POINTS_OUTSIDE_CYCLES else None
        if plugin in self._runaways:
            self._check_runaways(plugin, point)
        try:
            worker = self._idle.pop()
        except IndexError:
            # Checking first would not help: another thread may take the worker in between.
            worker = _Worker()
        worker.call = lambda: function(*arguments)
        running = self._running[id(worker)] = RunningCall(plugin, point, time.monotonic())
        worker.go.release()
        in_time = worker.done.acquire(timeout=self.deadline_seconds)
        del self._running[id(worker)]
        if not in_time:
            raise self._give_up(worker, running, pod)
        problem, result = worker.problem, worker.result
        # Idle workers keep nothing alive: a call refers to its arguments, and these to the whole cluster state.
        worker.problem = worker.result = worker.call = None
        self._idle.append(worker)
        if problem is not None:
            raise self._failed(plugin, point, problem, pod)
        return cast("T", result)

    def running(self) -> RunningCall | None:
        """Return the call that has been running longest, or None."""
        return min(self._running.copy().values(), key=lambda it: it.since, default=None)

    def incidents(self) -> Sequence[PluginIncident]:
        """Return the latest failures, oldest first."""
        return tuple(self._incidents)

    def forget_incidents(self) -> None:
        """Forget the failures so far, because the plugins that failed are replaced; their numbers in `failures` remain."""
        self._incidents.clear()

    def close(self) -> None:
        """End idle threads. Running calls are on daemon threads and end with the process."""
        while self._idle:
            worker = self._idle.pop()
            worker.call = None
            worker.go.release()

    def _check_runaways(self, plugin: str, point: str) -> None:
        left = self._runaways[plugin] = [worker for worker in self._runaways.get(plugin, ()) if worker.is_alive()]
        for worker in left:
            _interrupt(worker)
        if len(left) >= MAX_RUNAWAYS:
            text = f"not called: {len(left)} earlier calls are still running"
            raise self._note(plugin, point, text, "", None, overran=False)
        if not left:
            self._runaways.pop(plugin, None)

    def _give_up(self, worker: _Worker, running: RunningCall, pod: Pod | None) -> PluginFailure:
        worker.given_up = True
        where = _stack_of(worker)
        _interrupt(worker)
        self._runaways.setdefault(running.plugin, []).append(worker)
        text = f"cut off after {self.deadline_seconds:g}s"
        if where:
            text += f" at {where[-1].name}() ({where[-1].filename.rpartition('/')[2]}:{where[-1].lineno})"
        whole = "".join(traceback.format_list(where))
        return self._note(running.plugin, running.point, text, whole, pod, overran=True)

    def _failed(self, plugin: str, point: str, problem: BaseException, pod: Pod | None) -> PluginFailure:
        if isinstance(problem, PluginFailure):
            return problem
        frames = [frame for frame in traceback.extract_tb(problem.__traceback__) if not _is_own_code(frame)]
        text = f"{type(problem).__name__}: {problem}" if str(problem) else type(problem).__name__
        if frames:
            text += f" ({frames[-1].filename.rpartition('/')[2]}:{frames[-1].lineno})"
        whole = "".join(traceback.format_list(frames)) + "".join(traceback.format_exception_only(problem))
        return self._note(plugin, point, text, whole, pod, overran=False)

    def _note(self, plugin: str, point: str, text: str, whole: str, pod: Pod | None, *, overran: bool) -> PluginFailure:
        if pod is not None:
            text = f"{text} for pod {pod.key}"
        self.failures[plugin] = self.failures.get(plugin, 0) + 1
        self._incidents.append(PluginIncident(plugin, point, text, whole, self._now_ns(), overran))
        return PluginFailure(plugin, point, text)


def _is_own_code(frame: traceback.FrameSummary) -> bool:
    return frame.filename in _OUR_FILES


def _stack_of(worker: _Worker) -> list[traceback.FrameSummary]:
    """Return the stack of a thread, outermost frame first, without Bayplan's own frames."""
    frame = sys._current_frames().get(worker.ident or 0)
    stack = traceback.extract_stack(frame) if frame is not None else []
    return [each for each in stack if not _is_own_code(each)]


def _interrupt(worker: _Worker) -> None:
    """Raise an exception in a thread at its next line of Python."""
    if worker.ident is not None and worker.is_alive():
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(worker.ident), ctypes.py_object(Overrun))
