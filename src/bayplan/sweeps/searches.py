"""The parameter sets that a sweep tries: all of a grid, random ones, or those that Optuna suggests from earlier scores.

A search yields candidates in batches, and gets the scores of a batch before it yields the next. The size of a batch
does not depend on the executor. So a sweep tries the same candidates wherever its trials run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from bayplan.base.extras import named_extras
from bayplan.base.random_streams import RandomStreams, stream_seed
from bayplan.sweeps.objectives import OBJECTIVES
from bayplan.sweeps.plan import SweepPlan
from bayplan.sweeps.space import Choice, Parameters, grid, random_sets

OPTUNA_BATCH = 8
"""Number of candidates that Optuna suggests before it gets their scores."""


class Search(Protocol):
    """A source of candidates.

    Attributes:
        number: the number of candidates.
    """

    number: int

    def batches(self) -> Iterator[list[Parameters]]:
        """Yield batches of parameter sets."""
        ...

    def take_scores(self, scores: Sequence[float | None]) -> None:
        """Take the scores of the last batch, in the order of its candidates; None for a candidate that could not run."""
        ...


class FixedSearch:
    """Candidates that do not depend on scores: those of a grid, or random ones."""

    def __init__(self, candidates: list[Parameters]) -> None:
        self.number = len(candidates)
        self._candidates = candidates

    def batches(self) -> Iterator[list[Parameters]]:
        """Yield all candidates at once."""
        yield self._candidates

    def take_scores(self, scores: Sequence[float | None]) -> None:
        """Ignore the scores."""


class OptunaSearch:
    """Candidates suggested by Optuna's tree-structured Parzen estimator (TPE).

    Args:
        plan: the plan of the sweep.

    Raises:
        MissingExtra: Optuna is not installed.
    """

    def __init__(self, plan: SweepPlan) -> None:
        with named_extras():
            import optuna

        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self.number = plan.trials
        self._plan = plan
        seed = stream_seed(plan.seeds[0], "optuna") % 2**32
        directions = optuna.study.StudyDirection
        direction = directions.MAXIMIZE if OBJECTIVES[plan.objective].maximise else directions.MINIMIZE
        self._study = optuna.create_study(direction=direction, sampler=optuna.samplers.TPESampler(seed=seed))
        self._failed = optuna.trial.TrialState.FAIL
        self._asked: list[Any] = []

    def batches(self) -> Iterator[list[Parameters]]:
        """Yield batches until the number of candidates in the plan is reached."""
        left = self.number
        while left > 0:
            self._asked = [self._study.ask() for _ in range(min(OPTUNA_BATCH, left))]
            left -= len(self._asked)
            yield [self._suggested(trial) for trial in self._asked]

    def _suggested(self, trial: Any) -> Parameters:
        found: dict[str, Any] = {}
        for name, domain in self._plan.space.items():
            if isinstance(domain, Choice):
                found[name] = trial.suggest_categorical(name, domain.values)
            elif domain.whole:
                found[name] = trial.suggest_int(name, int(domain.lowest), int(domain.highest), log=domain.log)
            else:
                found[name] = trial.suggest_float(name, domain.lowest, domain.highest, log=domain.log)
        return found

    def take_scores(self, scores: Sequence[float | None]) -> None:
        """Pass the scores of the last batch to Optuna."""
        for trial, score in zip(self._asked, scores, strict=True):
            if score is None:
                self._study.tell(trial, state=self._failed)
            else:
                self._study.tell(trial, score)


def make_search(plan: SweepPlan) -> Search:
    """Return the search that a plan names.

    Raises:
        InputError: the search is a grid, and a parameter is a range.
        MissingExtra: Optuna is not installed.
    """
    if plan.search == "optuna":
        return OptunaSearch(plan)
    if plan.search == "grid":
        return FixedSearch(list(grid(plan.space)))
    random = RandomStreams(plan.seeds[0]).stream("sweep").random
    return FixedSearch(random_sets(plan.space, plan.trials, random))
