"""Calls with a deadline: a plugin that raises, sleeps or loops fails, and the caller continues."""

from __future__ import annotations

import sys
import threading
import time
import weakref
from collections.abc import Callable

import pytest

from bayplan.base.errors import PluginFailure
from bayplan.live.plugin_runner import MAX_RUNAWAYS, Overrun, PluginRunner
from bayplan.testing.builders import make_pod
from tests.apiserver.serving import wait_until


def fails(runner: PluginRunner, function: Callable[[], object], plugin: str = "A") -> str:
    with pytest.raises(PluginFailure) as caught:
        runner.call(plugin, "Filter", function)
    assert (caught.value.plugin, caught.value.point) == (plugin, "Filter")
    return caught.value.text


def raises() -> None:
    raise ValueError("no such zone")


def loops_for_ever() -> None:
    while True:
        pass


def test_call_returns_the_plugin_result() -> None:
    runner = PluginRunner()
    assert runner.call("A", "Score", lambda left, right: left + right, 3, 4) == 7
    assert runner.failures == {}
    runner.close()


def test_an_exception_is_reported_with_its_line_and_traceback() -> None:
    runner = PluginRunner(now_ns=lambda: 77)
    assert fails(runner, raises).startswith("ValueError: no such zone (test_plugin_runner.py:")
    (incident,) = runner.incidents()
    assert (incident.plugin, incident.point, incident.at_ns, incident.overran) == ("A", "Filter", 77, False)
    assert 'raise ValueError("no such zone")' in incident.traceback
    assert "plugin_runner.py:" not in incident.traceback.replace("test_plugin_runner.py:", "")
    assert runner.failures == {"A": 1}


def test_a_call_is_cut_off_at_its_deadline() -> None:
    runner = PluginRunner(0.05)
    assert fails(runner, lambda: time.sleep(3600)).startswith(
        "cut off after 0.05s at <lambda>() (test_plugin_runner.py:"
    )
    assert runner.incidents()[0].overran
    assert runner.call("A", "Filter", lambda: "still works") == "still works"


@pytest.mark.parametrize("point", ["PreEnqueue", "QueueSort", "QueueingHint"])
def test_failures_outside_of_cycles_name_the_pod(point: str) -> None:
    runner, pod = PluginRunner(0.05), make_pod("p").obj()
    for function, text in (
        (lambda pod: {}[pod.metadata.name], "KeyError: 'p' "),
        (lambda pod: time.sleep(9), "cut off "),
    ):
        with pytest.raises(PluginFailure) as failed:
            runner.call("A", point, function, pod)
        assert str(failed.value).startswith(f'running {point} plugin "A": {text}')
        assert str(failed.value).endswith(" for pod default/p")
        assert runner.incidents()[-1].exception == failed.value.text
    runner.close()


def test_an_endless_loop_stops_after_its_deadline() -> None:
    runner = PluginRunner(0.05)
    assert "loops_for_ever()" in fails(runner, loops_for_ever)
    wait_until(lambda: not any(_is_looping(thread) for thread in threading.enumerate()))


def _is_looping(thread: threading.Thread) -> bool:
    frame = sys._current_frames().get(thread.ident or 0)
    while frame is not None:
        if frame.f_code is loops_for_ever.__code__:
            return True
        frame = frame.f_back
    return False


def test_a_plugin_that_catches_the_interrupt_is_not_called_until_its_calls_end() -> None:
    runner = PluginRunner(0.02)
    stop = threading.Event()

    def stubborn() -> None:
        while not stop.is_set():
            try:
                time.sleep(0.01)
            except Overrun:
                continue

    for _ in range(MAX_RUNAWAYS):
        assert fails(runner, stubborn).startswith("cut off")
    assert fails(runner, lambda: None) == f"not called: {MAX_RUNAWAYS} earlier calls are still running"
    # Calls of other plugins still work.
    assert runner.call("B", "Filter", lambda: 1) == 1
    stop.set()

    def is_called_again() -> bool:
        try:
            return runner.call("A", "Filter", lambda: 2) == 2
        except PluginFailure:
            return False

    wait_until(is_called_again)


def test_nested_plugin_calls_run_on_the_same_thread() -> None:
    runner = PluginRunner()

    def outer() -> tuple[int, int]:
        here = threading.get_ident()
        return here, runner.call("A", "Filter", threading.get_ident)

    here, inner = runner.call("A", "Filter", outer)
    assert here == inner != threading.get_ident()


def test_plugins_can_be_called_from_several_threads() -> None:
    runner, found = PluginRunner(), list[int]()
    both = threading.Barrier(2, timeout=5)

    def call(number: int) -> None:
        found.append(runner.call("A", "Filter", lambda: both.wait() * 0 + number))

    threads = [threading.Thread(target=call, args=(number,)) for number in (1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == [1, 2]


def test_a_blocking_plugin_call_is_reported_as_running() -> None:
    runner, release = PluginRunner(), threading.Event()
    thread = threading.Thread(target=runner.call, args=("A", "Permit", release.wait))
    thread.start()
    wait_until(lambda: runner.running() is not None)
    running = runner.running()
    assert running is not None
    assert (running.plugin, running.point) == ("A", "Permit")
    release.set()
    thread.join()
    assert runner.running() is None


def test_idle_workers_do_not_keep_arguments_and_results_alive() -> None:
    class State:
        pass

    runner, state = PluginRunner(), State()
    alive = weakref.ref(state)
    assert runner.call("A", "Filter", lambda each: each, state) is state
    del state
    assert alive() is None
    runner.close()
