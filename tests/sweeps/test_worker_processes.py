"""Worker processes of sweeps: processes that are killed, and exceptions in them."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import cast

import pytest

from bayplan.base.errors import InputError
from bayplan.sweeps.executors import MAX_RETRIES, ProcessExecutor
from bayplan.sweeps.plan import SweepPlan, read_plan
from bayplan.sweeps.trials import Trial

PLUGIN = """\
import os, pathlib, signal
import numpy as np
from bayplan.framework.plugin import Reads, ScorePlugin

MARK = pathlib.Path(PATH)

class Spec:
    key = ()

class Killer(ScorePlugin):
    name = "Killer"
    reads = Reads.NOTHING

    def compile(self, pod, cluster):
        if not MARK.exists():
            CREATE
            END
        return Spec()

    def score(self, spec, params, rows):
        return np.zeros(len(rows), np.int64)
"""


KILL = "os.kill(os.getpid(), signal.SIGKILL)"


def killed_plan(folder: Path, *, once: bool, end: str = KILL) -> SweepPlan:
    """Return a plan with a plugin that kills its process, as the system does when memory is short: once or always."""
    text = PLUGIN.replace("PATH", repr(str(folder / "killed"))).replace("END", end)
    (folder / "killer.py").write_text(text.replace("CREATE", "MARK.touch()" if once else "pass"))
    sweep = folder / "sweep.yaml"
    sweep.write_text(f"{sweep.read_text()}plugins: ['killer.py:Killer']\n")
    return read_plan(sweep)


def trials(count: int) -> list[Trial]:
    return [Trial(number=number, candidate=0, parameters={}, seed=number) for number in range(count)]


def run(plan: SweepPlan, count: int) -> list[int]:
    """Run trials in two processes, and return the numbers of those that ran."""
    executor = ProcessExecutor(plan, 2)
    try:
        return sorted(outcome.trial.number for outcome in executor.run(trials(count)) if not outcome.error)
    finally:
        executor.close()


def test_a_trial_runs_again_if_its_process_is_killed(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "bayplan.sweeps"):
        assert run(killed_plan(folder, once=True), 6) == list(range(6))
    # The processes of two trials may be killed before the mark exists.
    assert {record.getMessage().partition(" runs again: ")[2] for record in caplog.records} == {
        "its process ended by SIGKILL"
    }


def test_a_trial_whose_process_is_always_killed_ends_the_sweep(folder: Path) -> None:
    want = f"trial 0: expected a result, got a process that ended {MAX_RETRIES + 1} times, last by SIGKILL"
    with pytest.raises(InputError, match=want):
        run(killed_plan(folder, once=False), 1)


def test_a_process_that_ends_by_itself_is_not_started_again(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(InputError) as caught:
        run(killed_plan(folder, once=False, end="os._exit(3)"), 1)
    assert str(caught.value) == "trial 0: expected a result, got a process that ended with exit code 3"
    assert caplog.records == []


PARENT = """\
import os, pathlib, signal, sys
from bayplan.sweeps.executors import ProcessExecutor
from bayplan.sweeps.plan import read_plan

executor = ProcessExecutor(read_plan(pathlib.Path(sys.argv[1])), 3)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_workers_end_after_their_parent_was_killed(folder: Path) -> None:
    command = [sys.executable, "-c", PARENT, str(folder / "sweep.yaml")]
    parent = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
    try:
        # The workers have the same output, which ends with the last of them.
        output, _ = parent.communicate(timeout=60)
    except subprocess.TimeoutExpired:
        os.killpg(parent.pid, signal.SIGKILL)
        raise
    assert (output, parent.returncode) == (b"", -signal.SIGKILL)


class TwoArguments(Exception):
    """An exception that can be pickled, but not unpickled."""

    def __init__(self, what: str, reason: str) -> None:
        super().__init__(f"{what}: {reason}")


class BadName(str):
    """The name of a parameter that raises an exception when it is read."""

    def startswith(self, *_: object) -> bool:
        """Raise the exception."""
        raise TwoArguments("bad", "name")


def test_an_exception_that_cannot_be_pickled_is_raised_as_a_runtime_error(plan: SweepPlan) -> None:
    executor = ProcessExecutor(plan, 1)
    bad = Trial(number=0, candidate=0, parameters={BadName("weight"): 1}, seed=0)
    try:
        with pytest.raises(RuntimeError, match="TwoArguments: bad: name") as caught:
            list(executor.run([bad]))
    finally:
        executor.close()
    assert "in trial_setup" in caught.value.__notes__[-1]


def test_an_exception_in_a_worker_is_raised_with_its_traceback(plan: SweepPlan) -> None:
    executor = ProcessExecutor(plan, 2)
    bad = Trial(number=0, candidate=0, parameters={"percentageOfNodesToScore": cast("int", 1j)}, seed=0)
    try:
        with pytest.raises(TypeError, match="complex") as caught:
            list(executor.run([bad, *trials(4)]))
    finally:
        executor.close()
    assert "in trial_setup" in caught.value.__notes__[-1]
