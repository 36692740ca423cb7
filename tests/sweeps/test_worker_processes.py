"""Worker processes of sweeps: processes that are killed, and exceptions in them."""

from __future__ import annotations

import logging
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
            os.kill(os.getpid(), signal.SIGKILL)
        return Spec()

    def score(self, spec, params, rows):
        return np.zeros(len(rows), np.int64)
"""


def killed_plan(folder: Path, *, once: bool) -> SweepPlan:
    """Return a plan with a plugin that kills its process, as the system does when memory is short: once or always."""
    text = PLUGIN.replace("PATH", repr(str(folder / "killed")))
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
    want = f"trial 0 can't run: got a process that ended {MAX_RETRIES + 1} times, last by SIGKILL"
    with pytest.raises(InputError, match=want):
        run(killed_plan(folder, once=False), 1)


def test_an_exception_in_a_worker_is_raised_with_its_traceback(plan: SweepPlan) -> None:
    executor = ProcessExecutor(plan, 2)
    bad = Trial(number=0, candidate=0, parameters={"percentageOfNodesToScore": cast("int", 1j)}, seed=0)
    try:
        with pytest.raises(TypeError, match="complex") as caught:
            list(executor.run([bad, *trials(4)]))
    finally:
        executor.close()
    assert "in trial_setup" in caught.value.__notes__[-1]
