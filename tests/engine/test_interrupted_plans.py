"""A plugin that raises leaves columns, counters and plans unchanged: the next cycle decides correctly."""

from __future__ import annotations

from random import Random
from typing import ClassVar

import numpy as np
import pytest

from bayplan.engine.plan import Plan
from bayplan.engine.rule_result import RuleResults
from bayplan.engine.scheduler import Scheduler
from bayplan.framework.plugin import FilterPlugin, NormalizePlugin, Params, Reads
from bayplan.objects.pod import Pod
from bayplan.state.arrays import Codes, Ints
from bayplan.state.cluster_state import ClusterState
from bayplan.state.views import Rows
from bayplan.testing.builders import make_pod
from tests.engine.clusters import random_node, random_pod
from tests.engine.plan_histories import change_something, plan_results
from tests.schedulers import default_scheduler


class Spec:
    key = 0


class OutOfSortsError(Exception):
    """The exception of `Moody`."""


class Moody(FilterPlugin[Spec], NormalizePlugin[Spec]):
    """Rejects nodes with more than two pods, and raises in the methods that `fails` names."""

    name: ClassVar[str] = "Moody"
    reads: ClassVar[Reads] = Reads.NODES | Reads.USAGE
    fails: ClassVar[set[str]] = set()

    def compile(self, pod: Pod, cluster: ClusterState) -> Spec:
        return Spec()

    def filter(self, spec: Spec, params: Params | None, rows: Rows) -> Codes:
        self._maybe_raise("filter")
        return rows.verdicts((rows.pod_count() > 2, 1))

    def reasons(self, spec: Spec, params: Params | None, verdict: int) -> tuple[str, ...]:
        return ("node(s) were crowded",)

    def score(self, spec: Spec, params: Params | None, rows: Rows) -> Ints:
        self._maybe_raise("score")
        return rows.pod_count() * 3

    def scale(self, spec: Spec, params: Params | None, raw: Ints) -> Params:
        self._maybe_raise("scale")
        return (int(raw.max()),)

    def normalize(self, spec: Spec, scale: Params, raw: Ints, rows: Rows) -> Ints:
        self._maybe_raise("normalize")
        (most,) = scale
        assert isinstance(most, int)
        return rows.quotient(raw * 100, most) if most else np.zeros(len(rows), dtype=np.int64)

    def _maybe_raise(self, point: str) -> None:
        if point in self.fails:
            raise OutOfSortsError(point)


def moody_scheduler() -> Scheduler:
    return default_scheduler([Moody])


@pytest.mark.parametrize("point", ["filter", "score", "scale", "normalize"])
@pytest.mark.parametrize("seed", range(4))
def test_a_plan_matches_a_new_plan_after_an_exception(seed: int, point: str) -> None:
    random, scheduler = Random(seed), moody_scheduler()
    for number in range(20):
        scheduler.handle(None, random_node(random, f"n{number:02}"), 0)
    results, profile = RuleResults(scheduler.state), scheduler.profiles["default-scheduler"]
    probes = [random_pod(random, f"probe-{number}") for number in range(4)]
    plans = [Plan(profile, pod, scheduler.state, results) for pod in probes]
    raised = 0
    for step in range(60):
        scheduler.handle(None, random_pod(random, f"p{step}"), step)
        scheduler.schedule_one(step)
        change_something(random, scheduler, step)
        plan = random.choice(plans)
        if random.random() < 0.5:
            Moody.fails = {point}
            try:
                plan_results(plan)
            except OutOfSortsError:
                raised += 1
            finally:
                Moody.fails = set()
            scheduler.state.check_invariants()
            if random.random() < 0.5:
                state = scheduler.state
                pod = make_pod(f"more{step}").req(cpu="1").obj()
                state.place(state.pod_info(pod), random.choice(sorted(state.nodes.row_of.values())))
        fresh = Plan(profile, plan.pod, scheduler.state, RuleResults(scheduler.state))
        assert plan_results(plan) == plan_results(fresh)
    assert raised > 3
