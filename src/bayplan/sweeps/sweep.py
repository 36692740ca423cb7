"""Run a sweep: take candidates from the search, run their trials on the executor, and store the outcomes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from bayplan.app.custom_plugins import load_custom_plugins
from bayplan.base.errors import InputError
from bayplan.base.garbage_collector import rare_collections
from bayplan.base.random_streams import RandomStreams
from bayplan.plugins.registry import in_tree_registry
from bayplan.sweeps.executors import Executor
from bayplan.sweeps.objectives import OBJECTIVES
from bayplan.sweeps.plan import SweepPlan
from bayplan.sweeps.searches import Search, make_search
from bayplan.sweeps.space import Parameters, Value
from bayplan.sweeps.store import SweepFolder
from bayplan.sweeps.trials import Outcome, Trial, check_plugins, trial_setup

Progress = Callable[[int, int], None]
"""Called with the number of finished trials and the number of all trials."""


class Candidate(NamedTuple):
    """A parameter set.

    Attributes:
        number: its number.
        parameters: its parameters.
        score: the objective's mean over the seeds; None if a trial could not run.
        error: why a trial could not run, or "".
        waiting: the most pods that are pending at the end of one of its trials.
    """

    number: int
    parameters: Parameters
    score: float | None
    error: str = ""
    waiting: int = 0


def run_sweep(
    plan: SweepPlan, folder: Path, make_executor: Callable[[], Executor], progress: Progress | None = None
) -> list[Candidate]:
    """Run all trials that are not in the folder yet; return the candidates, best first.

    Args:
        plan: the plan of the sweep.
        folder: the folder for the results; an interrupted sweep continues from it.
        make_executor: called once, when the first trial has to run.
        progress: called before each batch and after each trial.

    Raises:
        InputError: a parameter names an unknown plugin, the configuration is invalid with every parameter set, the folder
            belongs to another sweep or to other input, or the input cannot be read.
    """
    registry, _ = load_custom_plugins(plan.plugins, in_tree_registry())
    check_plugins(registry, plan.space)
    search = make_search(plan)
    batches = search.batches()
    first = next(batches)
    _check_configuration(plan, first)
    store = SweepFolder(folder, plan)
    store.check_input()
    # Executors collect garbage after each trial; those collections must not traverse the objects that existed before
    # the sweep.
    with rare_collections():
        try:
            candidates = _run_batches(plan, search, chain([first], batches), store, make_executor, progress)
        finally:
            store.write_table()
    sign = -1 if OBJECTIVES[plan.objective].maximise else 1
    return sorted(candidates, key=lambda each: (each.score is None, sign * (each.score or 0.0)))


def _check_configuration(plan: SweepPlan, batch: Sequence[Parameters]) -> None:
    """Report an error that all trials of the first batch would have before the first of them.

    Raises:
        InputError: the scheduler refuses all parameter sets of the batch.
    """
    first: InputError | None = None
    # In random order: in a grid, all sets with an invalid value of the first parameter come first.
    for parameters in RandomStreams(plan.seeds[0]).stream("sweep.check").sample(batch, len(batch)):
        try:
            trial_setup(plan, parameters).connections.close()
        except InputError as problem:
            first = first or problem
            continue
        return  # The trials report the errors of other parameter sets.
    if first is not None:
        raise first


def _run_batches(
    plan: SweepPlan,
    search: Search,
    batches: Iterable[list[Parameters]],
    store: SweepFolder,
    make_executor: Callable[[], Executor],
    progress: Progress | None,
) -> list[Candidate]:
    """Return the candidates in the order in which the search yields them."""
    total = search.number * len(plan.seeds)
    if plan.search == "optuna" and len(store.done) == total:
        return _ranked_again(plan, store)
    candidates: list[Candidate] = []
    executor: Executor | None = None
    try:
        for batch in batches:
            trials = _trials(plan, batch, len(candidates))
            store.forget_others(trials, total)
            left = [trial for trial in trials if trial.number not in store.done]
            if left and executor is None:
                executor = make_executor()
            if progress is not None:
                progress(len(store.done), total)
            for outcome in executor.run(left) if executor is not None and left else ():
                store.add(outcome)
                if progress is not None:
                    progress(len(store.done), total)
            scored = _scored(plan, [store.done[trial.number] for trial in trials])
            search.take_scores([each.score for each in scored])
            candidates += scored
    finally:
        if executor is not None:
            executor.close()
    return candidates


def distinct(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Return the first candidate of each parameter set: Optuna may try a set more than once."""
    found: dict[frozenset[tuple[str, Value]], Candidate] = {}
    for candidate in candidates:
        found.setdefault(frozenset(candidate.parameters.items()), candidate)
    return list(found.values())


def _trials(plan: SweepPlan, batch: Sequence[Parameters], first: int) -> list[Trial]:
    seeds = len(plan.seeds)
    return [
        Trial(number=number * seeds + place, candidate=number, parameters=dict(parameters), seed=seed)
        for number, parameters in enumerate(batch, first)
        for place, seed in enumerate(plan.seeds)
    ]


def _ranked_again(plan: SweepPlan, store: SweepFolder) -> list[Candidate]:
    """Return the candidates of a finished sweep with Optuna.

    The objective may be another than that of the sweep, for which Optuna would now suggest other sets.
    """
    return _scored(plan, [store.done[number] for number in sorted(store.done)])


def _scored(plan: SweepPlan, outcomes: Iterable[Outcome]) -> list[Candidate]:
    """Return the candidates of trials in their order."""
    by_candidate: dict[int, list[Outcome]] = {}
    for outcome in outcomes:
        by_candidate.setdefault(outcome.trial.candidate, []).append(outcome)
    return [
        Candidate(number, found[0].trial.parameters, *_score(plan, found)) for number, found in by_candidate.items()
    ]


def _score(plan: SweepPlan, outcomes: Sequence[Outcome]) -> tuple[float | None, str, int]:
    """Return score, error and pending pods of a parameter set, see `Candidate`; the error is that of its first failed trial."""
    figure = OBJECTIVES[plan.objective].figure
    error = next((outcome.error for outcome in outcomes if outcome.error), "")
    if error:
        return None, error, 0
    waiting = max(int(outcome.figures["waiting"]) for outcome in outcomes)
    return sum(outcome.figures[figure] for outcome in outcomes) / len(outcomes), "", waiting
