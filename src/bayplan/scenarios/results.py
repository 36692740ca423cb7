"""Format results of scenarios: as text, with the expected and actual values of failed checks, and as JUnit XML for CI."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree import ElementTree

from bayplan.analysis.units import format_duration
from bayplan.base.counted_nouns import format_count
from bayplan.scenarios.runner import FailedCheck, Outcome, ScenarioResult, StepResult


def result_lines(results: Sequence[ScenarioResult]) -> list[str]:
    """Return the results of scenarios as lines: one for each scenario, and more for its failed steps."""
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
    """Return the errors of a step as lines: its position, each false check with both sides, and why pods wait."""
    lines = [f'{step.where} step {step.number} "{step.name}" at {format_duration(step.time_ns)}']
    if step.problem:
        lines.append(f"  {step.problem}")
    for failed in step.failed:
        lines += [f"  {line}" for line in _check_lines(failed)]
    return lines


def _check_lines(failed: FailedCheck) -> list[str]:
    result = failed.result
    lines = [f"{failed.where} {result.check}", f"  - expected {result.wanted}", f"  + actual   {result.got}"]
    lines += [f"    {detail}" for detail in result.details]
    for each in failed.explained:
        others = f" (and {format_count(each.others, 'pod')} like it)" if each.others else ""
        lines.append(f"    {each.reason}{others}")
    return lines


def junit_xml(results: Sequence[ScenarioResult]) -> bytes:
    """Return the results of scenarios as a JUnit XML document."""
    root = ElementTree.Element("testsuites", name="bayplan test")
    totals = {"tests": 0, "failures": 0, "errors": 0, "skipped": 0}
    for result in results:
        suite = ElementTree.SubElement(
            root, "testsuite", name=result.name, file=result.file, time=f"{result.seconds:.3f}"
        )
        counts = dict.fromkeys(totals, 0)
        for step in _cases(result):
            _add_case(suite, result, step)
            counts["tests"] += 1
            counts["failures"] += bool(step.failed)
            counts["errors"] += step.outcome is Outcome.BROKEN and not step.failed
            counts["skipped"] += step.outcome is Outcome.NOT_RUN
        for name, count in counts.items():
            suite.set(name, str(count))
            totals[name] += count
    for name, count in totals.items():
        root.set(name, str(count))
    ElementTree.indent(root)
    text: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return text + b"\n"


def _cases(result: ScenarioResult) -> list[StepResult]:
    """Return the steps to list as test cases: those with checks and broken ones; all steps if there are none."""
    checking = [step for step in result.steps if step.action in ("assert", "") or step.outcome is Outcome.BROKEN]
    return checking or list(result.steps)


def _add_case(suite: ElementTree.Element, result: ScenarioResult, step: StepResult) -> None:
    file, _, line = step.where.rpartition(":")
    case = ElementTree.SubElement(
        suite, "testcase", name=f"step {step.number}: {step.name}", classname=result.name, file=file, line=line
    )
    if step.outcome is Outcome.NOT_RUN:
        ElementTree.SubElement(case, "skipped", message="an earlier step could not be done")
    elif step.outcome is not Outcome.PASSED:
        tag = "failure" if step.failed else "error"
        lines = failure_lines(step)
        first = step.problem or step.failed[0].result.check
        ElementTree.SubElement(case, tag, message=first).text = "\n".join(lines)
