"""JUnit XML of scenario results: a suite for each scenario, a case for each step with a check."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree import ElementTree

from bayplan.scenarios.result_text import failure_lines
from bayplan.scenarios.runner import Outcome, ScenarioResult, StepResult


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
    """Return the steps that can fail by themselves, and those that did; all of them if none has a check."""
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
