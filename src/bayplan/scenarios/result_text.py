"""Results of scenarios as text: a line for each scenario, and for each failed step the expected and actual values."""

from __future__ import annotations

from collections.abc import Sequence

from bayplan.analysis.units import format_count, format_duration
from bayplan.scenarios.runner import FailedCheck, Outcome, ScenarioResult, StepResult


def result_lines(results: Sequence[ScenarioResult]) -> list[str]:
    """Return the results of scenarios, a line each, with the failed steps of those that did not pass."""
    lines: list[str] = []
    for result in results:
        lines += _scenario_lines(result)
    failed = sum(not result.passed for result in results)
    total = format_count(len(results), "scenario")
    lines.append(f"{total}: {len(results) - failed:,} passed, {failed:,} failed")
    return lines


def _scenario_lines(result: ScenarioResult) -> list[str]:
    verdict = "passed" if result.passed else "FAILED"
    done = [step for step in result.steps if step.outcome is not Outcome.NOT_RUN]
    amounts = (
        f"{len(done)} of {format_count(len(result.steps), 'step')}, {format_count(result.checks, 'assertion')}, "
        f"{format_count(result.decisions, 'decision')} in {format_duration(result.duration_ns)}"
    )
    lines = [f"{verdict} {result.file}: {result.name} ({amounts})"]
    for step in result.steps:
        if step.outcome in (Outcome.FAILED, Outcome.BROKEN):
            lines += ["", *(f"  {line}".rstrip() for line in failure_lines(step)), ""]
    return lines


def failure_lines(step: StepResult) -> list[str]:
    """Return the errors of a step: its position, each false check with both sides, and why pods wait."""
    lines = [f'{step.where} step {step.number} "{step.name}" at {format_duration(step.time_ns)}']
    if step.problem:
        lines.append(f"  {step.problem}")
    for failed in step.failed:
        lines += [f"  {line}" for line in _check_lines(failed)]
    return lines


def _check_lines(failed: FailedCheck) -> list[str]:
    result = failed.result
    lines = [f"{failed.where} {result.check}", f"  - wanted {result.wanted}", f"  + got    {result.got}"]
    lines += [f"    {detail}" for detail in result.details]
    for each in failed.explained:
        others = f" (and {format_count(each.others, 'pod')} like it)" if each.others else ""
        lines.append(f"    {each.reason}{others}")
    return lines
