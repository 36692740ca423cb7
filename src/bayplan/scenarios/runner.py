"""Run a scenario: its steps one after the other, in virtual time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum

import msgspec

from bayplan.analysis.units import format_duration
from bayplan.base.errors import InputError
from bayplan.engine.scheduler import Scheduler
from bayplan.scenarios.actions import (
    cordon_nodes,
    delete_objects,
    drain_nodes,
    patch_object,
    put_objects,
    scale_workload,
    set_failed,
)
from bayplan.scenarios.checks import CheckResult, Facts, evaluate
from bayplan.scenarios.reading import ScenarioPlan, StepPlan
from bayplan.scenarios.scenario import SETTLED, Check, action_of
from bayplan.sim.result import PodTimeline
from bayplan.sim.simulator import Simulator

MAX_EXPLAINED = 3
"""Maximum number of workloads whose waiting pods a failed check explains."""

Configure = Callable[[StepPlan, Simulator], Scheduler]
"""Creates the scheduler for the configuration of a step, over the simulator's state. Raises InputError if it is invalid."""


class Outcome(StrEnum):
    """The outcome of a step. FAILED: an assertion is false. BROKEN: an action could not be executed, and later steps do not run."""

    PASSED = "passed"
    FAILED = "failed"
    BROKEN = "broken"
    NOT_RUN = "not run"


class Explained(msgspec.Struct, frozen=True):
    """Why pods of a workload wait: one of them, the number of the others, and the reason."""

    pod: str
    others: int
    reason: str


class FailedCheck(msgspec.Struct, frozen=True, kw_only=True):
    """A false check: its file and line, its result, and why the relevant pods wait."""

    where: str
    result: CheckResult
    explained: Sequence[Explained] = ()


class StepResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a step.

    Attributes:
        number: the 1-based number of the step.
        name: the name of the step, or its action.
        where: the file and line of the step.
        action: see `action_of`.
        outcome: see `Outcome`.
        time_ns: the virtual time at its end, since the start.
        checks: the number of checks.
        failed: the false checks.
        problem: why the step is broken; else "".
    """

    number: int
    name: str
    where: str
    action: str
    outcome: Outcome
    time_ns: int = 0
    checks: int = 0
    failed: Sequence[FailedCheck] = ()
    problem: str = ""


class ScenarioResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a scenario.

    Attributes:
        name, file: the name and file of the scenario.
        steps: the results of the steps, in order.
        duration_ns: the duration in virtual time.
        decisions: the number of scheduling cycles.
        digest: the digest of all decisions.
        seconds: the duration in wall-clock time.
    """

    name: str
    file: str
    steps: Sequence[StepResult]
    duration_ns: int
    decisions: int
    digest: str
    seconds: float = 0.0

    @property
    def passed(self) -> bool:
        """Return whether all steps passed."""
        return all(step.outcome is Outcome.PASSED for step in self.steps)

    @property
    def checks(self) -> int:
        """Return the number of assertions that were evaluated."""
        return sum(step.checks for step in self.steps)


class _Broken(Exception):
    """A step cannot be executed. The text says why; `failed` are the conditions that never became true."""

    def __init__(self, text: str, failed: Sequence[FailedCheck] = ()) -> None:
        super().__init__(text)
        self.failed = failed


def run_scenario(plan: ScenarioPlan, simulator: Simulator, configure: Configure, facts: Facts) -> ScenarioResult:
    """Run the steps of a scenario, and return the result.

    Args:
        plan: the scenario.
        simulator: the simulator with the initial cluster.
        configure: see `Configure`.
        facts: see `Facts`.
    """
    return ScenarioRun(plan, simulator, configure, facts).run()


class ScenarioRun:
    """One run of a scenario. The arguments are those of `run_scenario`."""

    def __init__(self, plan: ScenarioPlan, simulator: Simulator, configure: Configure, facts: Facts) -> None:
        self._plan = plan
        self._simulator = simulator
        self._configure = configure
        self._facts = facts

    def run(self) -> ScenarioResult:
        """Run all steps. After a broken step, the others are not run."""
        simulator = self._simulator
        # Let the initial objects take effect before the first step.
        simulator.advance(simulator.start_ns)
        results: list[StepResult] = []
        for plan in self._plan.steps:
            broken = bool(results) and results[-1].outcome in (Outcome.BROKEN, Outcome.NOT_RUN)
            results.append(self._result(plan, Outcome.NOT_RUN) if broken else self._run_step(plan))
        return ScenarioResult(
            name=self._plan.name,
            file=self._plan.file,
            steps=results,
            duration_ns=simulator.now_ns - simulator.start_ns,
            decisions=simulator.counters.decisions,
            digest=simulator.scheduler.records.digest(),
        )

    def _result(
        self, plan: StepPlan, outcome: Outcome, *, failed: Sequence[FailedCheck] = (), problem: str = ""
    ) -> StepResult:
        action = action_of(plan.step)
        return StepResult(
            number=plan.number,
            name=plan.step.name or action or "when",
            where=plan.where,
            action=action,
            outcome=outcome,
            time_ns=self._simulator.now_ns - self._simulator.start_ns,
            checks=0 if outcome is Outcome.NOT_RUN else len(plan.step.assert_),
            failed=failed,
            problem=problem,
        )

    def _run_step(self, plan: StepPlan) -> StepResult:
        try:
            self._wait_for_begin(plan)
            failed = self._act(plan)
        except InputError as problem:
            return self._result(plan, Outcome.BROKEN, problem=str(problem))
        except _Broken as problem:
            return self._result(plan, Outcome.BROKEN, problem=str(problem), failed=problem.failed)
        return self._result(plan, Outcome.FAILED if failed else Outcome.PASSED, failed=failed)

    # --- when ---------------------------------------------------------------------------------------------------------

    def _wait_for_begin(self, plan: StepPlan) -> None:
        simulator, step = self._simulator, plan.step
        if plan.after_ns is not None:
            simulator.advance(simulator.now_ns + plan.after_ns)
        if plan.at_ns is not None:
            begin_ns = simulator.start_ns + plan.at_ns
            if begin_ns < simulator.now_ns:
                late = format_duration(simulator.now_ns - simulator.start_ns)
                raise _Broken(f"the step should begin at {step.at}, but the previous step ended at {late}")
            simulator.advance(begin_ns)
        if not step.when:
            return
        if self._holds(step.when) or simulator.advance(
            simulator.now_ns + plan.timeout_ns, stop=lambda: self._holds(step.when)
        ):
            return
        failed = self._failed(step.when, [plan.where] * len(step.when))
        raise _Broken(f"its checks did not become true within {step.timeout}", failed)

    def _holds(self, checks: Sequence[Check]) -> bool:
        return all(evaluate(check, self._simulator, self._facts).ok for check in checks)

    # --- what ---------------------------------------------------------------------------------------------------------

    def _act(self, plan: StepPlan) -> Sequence[FailedCheck]:
        """Execute the action of a step. Return the checks that are false afterwards."""
        simulator, step = self._simulator, plan.step
        if plan.act is not None:
            plan.act(simulator)
        elif step.create or step.apply:
            put_objects(simulator, plan.objects, new=bool(step.create))
        elif step.patch is not None:
            patch_object(simulator, step.patch)
        elif step.scale is not None:
            scale_workload(simulator, step.scale)
        elif step.delete:
            delete_objects(simulator, step.delete)
        elif step.drain is not None:
            self._drain(plan, step.drain)
        elif step.cordon is not None:
            cordon_nodes(simulator, step.cordon, unschedulable=True)
        elif step.uncordon is not None:
            cordon_nodes(simulator, step.uncordon, unschedulable=False)
        elif step.fail is not None:
            set_failed(simulator, step.fail, self._plan.scenario.rack_label, failed=True)
        elif step.restore is not None:
            set_failed(simulator, step.restore, self._plan.scenario.rack_label, failed=False)
        elif step.configure is not None:
            simulator.replace_scheduler(self._configure(plan, simulator))
        elif step.wait is not None:
            self._wait(plan)
        return self._failed(step.assert_, plan.check_places)

    def _drain(self, plan: StepPlan, nodes: str) -> None:
        simulator = self._simulator
        left = drain_nodes(simulator, nodes, simulator.now_ns + plan.timeout_ns)
        if left:
            more = f" (and {len(left) - 1:,} more)" if len(left) > 1 else ""
            raise _Broken(f"{nodes} was not drained within {plan.step.timeout}: {left[0]}{more}")

    def _wait(self, plan: StepPlan) -> None:
        simulator = self._simulator
        if plan.step.wait != SETTLED:
            simulator.advance(simulator.now_ns + (plan.wait_ns or 0))
            return
        if not simulator.settle(simulator.now_ns + plan.timeout_ns):
            never = "a CronJob, or pods that are recreated when they end, never stop"
            raise _Broken(f"the cluster did not become idle within {plan.step.timeout} ({never})")

    # --- checks -------------------------------------------------------------------------------------------------------

    def _failed(self, checks: Sequence[Check], places: Sequence[str]) -> list[FailedCheck]:
        found = []
        for check, where in zip(checks, places, strict=True):
            result = evaluate(check, self._simulator, self._facts)
            if not result.ok:
                found.append(FailedCheck(where=where, result=result, explained=self._explained(result.waiting)))
        return found

    def _explained(self, keys: Sequence[str]) -> list[Explained]:
        """Explain one waiting pod of each workload, for at most `MAX_EXPLAINED` workloads."""
        groups: dict[str, list[PodTimeline]] = {}
        wanted = set(keys)
        for pod in self._simulator.pods:
            if pod.key in wanted and pod.bound_ns is None and pod.ended_ns is None:
                groups.setdefault(pod.workload or pod.key, []).append(pod)
        return [
            Explained(pods[0].key, len(pods) - 1, self._facts.explain(pods[0].key))
            for pods in list(groups.values())[:MAX_EXPLAINED]
        ]
