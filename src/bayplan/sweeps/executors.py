"""Executors run the trials: in this process, in several processes on this machine, or on a Ray cluster."""

from __future__ import annotations

import gc
import logging
import multiprocessing
import os
import pickle
import signal
import traceback
from collections.abc import Iterator, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from typing import Any, Protocol

from bayplan.base.errors import InputError
from bayplan.base.extras import named_extras
from bayplan.base.garbage_collector import frozen_objects
from bayplan.sweeps.plan import SweepPlan
from bayplan.sweeps.trials import Outcome, SharedInput, Trial, read_shared_input, run_trial

EXECUTORS = ("local", "processes", "ray")
MAX_RETRIES = 10
"""Number of retries of a trial whose machine or process was lost."""

_log = logging.getLogger("bayplan.sweeps")


class Executor(Protocol):
    """Runs trials. The outcomes may come in any order."""

    def run(self, trials: Sequence[Trial]) -> Iterator[Outcome]:
        """Run trials; yield each outcome when its trial finishes."""
        ...

    def close(self) -> None:
        """Stop the workers."""
        ...


class LocalExecutor:
    """Runs trials one after another in this process."""

    def __init__(self, plan: SweepPlan) -> None:
        self._plan = plan
        self._shared = read_shared_input(plan)

    def run(self, trials: Sequence[Trial]) -> Iterator[Outcome]:
        """Run trials; yield their outcomes in the same order."""
        for trial in trials:
            yield _run_and_free(self._plan, self._shared, trial)

    def close(self) -> None:
        """Do nothing: there are no workers."""


class _WorkerLost(Exception):
    """A worker process was killed in the middle of a trial; the text is the signal."""


class _Worker:
    """A process that runs one trial at a time.

    Args:
        context: how to start it.
        plan, shared: the plan and the input, which a forked process shares with this one.
        others: the connections to the other workers.

    Attributes:
        connection: readable when the trial has ended, or the process.
    """

    def __init__(self, context: Any, plan: SweepPlan, shared: SharedInput, others: Sequence[Connection]) -> None:
        self.connection, theirs = context.Pipe()
        inherited = [self.connection, *others] if context.get_start_method() == "fork" else []
        self._process = context.Process(target=_serve, args=(theirs, inherited, plan, shared), daemon=True)
        # The garbage collector writes to every object that it traverses, and a forked worker copies each page that it
        # writes to.
        with frozen_objects():
            self._process.start()
        theirs.close()

    def begin(self, trial: Trial) -> None:
        """Start a trial."""
        # If the process has ended, `outcome` reports it.
        with suppress(BrokenPipeError):
            self.connection.send(trial)

    def outcome(self, trial: Trial) -> Outcome:
        """Return the outcome of the trial that was started last.

        Raises:
            _WorkerLost: the process was killed.
            InputError: the process ended by itself, as a plugin can cause.
            Exception: the trial raised it.
        """
        try:
            result = self.connection.recv()
        except (EOFError, OSError):
            self._process.join()
            code: int = self._process.exitcode
            if code < 0:
                raise _WorkerLost(signal.Signals(-code).name) from None
            got = f"a process that ended with exit code {code}"
            raise InputError(f"trial {trial.number}", wanted="a result", got=got) from None
        if isinstance(result, Exception):
            raise result
        assert isinstance(result, Outcome)
        return result

    def stop(self) -> None:
        """Terminate the process."""
        self._process.terminate()
        self._process.join()
        self.connection.close()


def _serve(connection: Connection, inherited: Sequence[Connection], plan: SweepPlan, shared: SharedInput) -> None:
    """Run the trials that the parent sends. Leave Ctrl-C to the parent, which ends its workers.

    Args:
        connection: the connection to the parent.
        inherited: the parent's ends of connections, of which a forked process has copies.
        plan, shared: the plan and the input.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    # The connection ends with the parent only if no other process has the parent's end open.
    for copy in inherited:
        copy.close()
    # Until the parent has ended.
    with suppress(EOFError, ConnectionError):
        while True:
            trial = connection.recv()
            try:
                result = pickle.dumps(_run_and_free(plan, shared, trial))
            except Exception as problem:
                result = _pickled(problem)
            connection.send_bytes(result)


def _pickled(problem: Exception) -> bytes:
    """Pickle an exception with its traceback as a note; if it does not support that, pickle a RuntimeError instead."""
    note = "".join(traceback.format_exception(problem))
    problem.add_note(note)
    try:
        result = pickle.dumps(problem)
        pickle.loads(result)
    except Exception:
        substitute = RuntimeError(f"{type(problem).__name__}: {problem}")
        substitute.add_note(note)
        return pickle.dumps(substitute)
    return result


class ProcessExecutor:
    """Runs trials in several processes on this machine. If the system can fork, the processes share the loaded input.

    If a process is killed, for example because memory is short, its trial runs again in a new one.

    Args:
        plan: the plan of the sweep.
        workers: the number of processes; 0 for one per processor.
    """

    def __init__(self, plan: SweepPlan, workers: int = 0) -> None:
        self._plan, self._shared = plan, read_shared_input(plan)
        forks = "fork" in multiprocessing.get_all_start_methods()
        self._context = multiprocessing.get_context("fork" if forks else "spawn")
        gc.collect()
        self._workers: list[_Worker] = []
        for _ in range(workers or _processors()):
            self._start()

    def _start(self) -> _Worker:
        others = [worker.connection for worker in self._workers]
        self._workers.append(_Worker(self._context, self._plan, self._shared, others))
        return self._workers[-1]

    def run(self, trials: Sequence[Trial]) -> Iterator[Outcome]:
        """Run trials; yield each outcome when its trial finishes.

        Raises:
            InputError: the process of a trial was killed again after `MAX_RETRIES` retries, or it ended by itself.
        """
        waiting, idle = list(reversed(trials)), list(self._workers)
        busy: dict[object, tuple[_Worker, Trial]] = {}
        losses: dict[int, int] = {}
        while waiting or busy:
            while waiting and idle:
                worker, trial = idle.pop(), waiting.pop()
                worker.begin(trial)
                busy[worker.connection] = worker, trial
            for connection in wait([worker.connection for worker, _ in busy.values()]):
                worker, trial = busy.pop(connection)
                try:
                    outcome = worker.outcome(trial)
                except _WorkerLost as lost:
                    losses[trial.number] = losses.get(trial.number, 0) + 1
                    if losses[trial.number] > MAX_RETRIES:
                        raise InputError(
                            f"trial {trial.number}",
                            wanted="a result",
                            got=f"a process that ended {MAX_RETRIES + 1} times, last by {lost}",
                            hint="fewer --workers, if memory is short",
                        ) from None
                    _log.warning("trial %d runs again: its process ended by %s", trial.number, lost)
                    waiting.append(trial)
                    idle.append(self._replace(worker))
                else:
                    idle.append(worker)
                    yield outcome

    def _replace(self, lost: _Worker) -> _Worker:
        """Start a worker instead of one whose process has ended."""
        lost.stop()
        self._workers.remove(lost)
        return self._start()

    def close(self) -> None:
        """Terminate the processes."""
        for worker in self._workers:
            worker.stop()


def _processors() -> int:
    """Return the number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class RayExecutor:
    """Runs trials on a Ray cluster. If a machine is lost, Ray runs its trials again on other machines.

    Args:
        plan: the plan of the sweep.
        address: the address of the Ray cluster; "" starts one on this machine.
        workers: the number of concurrent trials; 0 for one per processor of the cluster.

    Raises:
        MissingExtra: Ray is not installed.
    """

    def __init__(self, plan: SweepPlan, address: str = "", workers: int = 0) -> None:
        with named_extras():
            import ray

        self._ray: Any = ray
        if not ray.is_initialized():
            ray.init(address=address or None, log_to_driver=False, include_dashboard=False)
        self._workers = workers
        self._shared = ray.put((plan, read_shared_input(plan)))
        self._run_trial = ray.remote(_run_shared).options(num_cpus=1, max_retries=MAX_RETRIES)

    def run(self, trials: Sequence[Trial]) -> Iterator[Outcome]:
        """Run trials; yield each outcome when its trial finishes."""
        ray, waiting = self._ray, list(reversed(trials))
        running: list[Any] = []
        while waiting or running:
            most = self._workers or max(int(ray.cluster_resources().get("CPU", 1)), 1)
            while waiting and len(running) < most:
                running.append(self._run_trial.remote(self._shared, waiting.pop()))
            done, running = ray.wait(running, num_returns=1)
            yield from ray.get(done)

    def close(self) -> None:
        """Disconnect from the cluster."""
        self._ray.shutdown()


def _run_shared(shared: tuple[SweepPlan, SharedInput], trial: Trial) -> Outcome:
    """Run a trial on a Ray worker; Ray keeps the input of the sweep in shared memory."""
    return _run_and_free(*shared, trial)


def _run_and_free(plan: SweepPlan, shared: SharedInput, trial: Trial) -> Outcome:
    """Run a trial and free its memory.

    A finished simulation is full of reference cycles, and the garbage collector rarely runs. Without this collection,
    each trial on the OpenB trace leaves 35 MB behind, and a worker reaches 1.4 GB after forty of them. The collection
    takes 0.1 s of the 1.7 s of such a trial.
    """
    outcome = run_trial(plan, shared, trial)
    gc.collect()
    return outcome


def make_executor(name: str, plan: SweepPlan, *, workers: int = 0, address: str = "") -> Executor:
    """Return the executor of this name.

    Raises:
        InputError: the name is unknown, or the input cannot be read.
        MissingExtra: Ray is not installed.
    """
    if name == "local":
        return LocalExecutor(plan)
    if name == "processes":
        return ProcessExecutor(plan, workers)
    if name == "ray":
        return RayExecutor(plan, address, workers)
    raise InputError("--executor", got=repr(name), wanted=f"one of {', '.join(EXECUTORS)}")
