"""Validation rules of the status of a Job: consistent fields, and allowed changes.

Most rules apply only if an update changes their fields, so that controllers can repair an inconsistent status.

Source: k8s.io/kubernetes v1.36.3, pkg/apis/batch/validation, pkg/registry/batch/job.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import NamedTuple

from bayplan.apiserver.model.errors import Cause, duplicate, invalid_value, required
from bayplan.apiserver.validation.engine import Causes, go_value, sent
from bayplan.apiserver.validation.formats import nonnegative
from bayplan.base.go_text.json import json_text
from bayplan.base.go_text.times import parse_time_ns
from bayplan.base.plain_data import Document, part, parts
from bayplan.objects.selectors import quote

_ATOI = re.compile(r"[+-]?[0-9]+", re.ASCII)
_TERMINAL = ("Failed", "Complete", "FailureTarget")


class _Side(NamedTuple):
    """A Job before or after an update."""

    spec: Document
    status: Document

    @classmethod
    def of(cls, job: Document) -> _Side:
        """Return the spec and status of a Job."""
        return cls(part(job, "spec"), part(job, "status"))

    def has(self, kind: str, status: str = "True") -> bool:
        """Return whether the condition of this type has this status."""
        return any(
            each.get("type") == kind and each.get("status") == status for each in parts(self.status, "conditions")
        )

    @property
    def is_finished(self) -> bool:
        """Whether the Job is complete or has failed."""
        return self.has("Complete") or self.has("Failed")

    def count(self, name: str) -> int:
        """Return a counter in the status, 0 if it is missing."""
        found = self.status.get(name)
        return found if isinstance(found, int) else 0


def job_status(new: Document, old: Document, out: Causes) -> None:
    """Check a status update of a Job."""
    after, before = _Side.of(new), _Side.of(old)
    for name in ("active", "succeeded", "failed"):
        nonnegative(after.count(name), f"status.{name}", out)
    for name in ("ready", "terminating"):
        if after.status.get(name) is not None:
            nonnegative(after.count(name), f"status.{name}", out)
    _uncounted(after, out)
    _complete(after, before, out)
    _finished(after, before, out)
    _indexes(after, before, out)
    _pods(after, before, out)
    _criteria(after, out)
    _check_terminal_conditions(after, before, out)


def _conditions(detail: str, out: Causes) -> None:
    out.append(Cause("FieldValueInvalid", f"Invalid value: {detail}", "status.conditions"))


def _changed(after: _Side, before: _Side, *names: str) -> bool:
    return any((after.status.get(name) or None) != (before.status.get(name) or None) for name in names)


def _turned(after: _Side, before: _Side, *conditions: str) -> bool:
    return any(after.has(name) != before.has(name) for name in conditions)


def _uncounted(after: _Side, out: Causes) -> None:
    uncounted = part(after.status, "uncountedTerminatedPods")
    seen: set[object] = set()
    for name in ("succeeded", "failed"):
        found = uncounted.get(name)
        for index, uid in enumerate(found if isinstance(found, list) else ()):
            path = f"status.uncountedTerminatedPods.{name}[{index}]"
            if not uid:
                out.append(invalid_value(path, '""', "must not be empty"))
            elif uid in seen:
                out.append(duplicate(path, go_value(uid)))
            seen.add(uid)


def _complete(after: _Side, before: _Side, out: Causes) -> None:
    """Check the conditions Complete and Failed and the completion time."""
    complete, failed = after.has("Complete"), after.has("Failed")
    completion, start = after.status.get("completionTime"), after.status.get("startTime")
    if complete and failed and _turned(after, before, "Complete", "Failed"):
        _conditions("cannot set Complete=True and Failed=true conditions", out)
    if complete and after.has("FailureTarget") and _turned(after, before, "Complete", "FailureTarget"):
        _conditions("cannot set Complete=True and FailureTarget=true conditions", out)
    moved = _turned(after, before, "Complete") or _changed(after, before, "completionTime")
    at = "status.completionTime"
    if moved and completion is not None and not complete:
        detail = "cannot set completionTime when there is no Complete=True condition"
        out.append(invalid_value(at, go_value(completion), detail))
    if moved and completion is None and complete:
        out.append(required(at, "completionTime is required for Complete jobs"))
    if _changed(after, before, "startTime", "completionTime") and _is_before(completion, start):
        out.append(invalid_value(at, go_value(completion), "must be equal to or after `startTime`"))
    if (
        failed
        and not after.has("FailureTarget")
        and (_turned(after, before, "Failed") or _changed(after, before, "failedIndexes"))
    ):
        _conditions("cannot set Failed=True condition without the FailureTarget=true condition", out)
    if complete and not after.has("SuccessCriteriaMet") and _turned(after, before, "Complete", "SuccessCriteriaMet"):
        _conditions("cannot set Complete=True condition without the SuccessCriteriaMet=true condition", out)


def _is_before(one: object, other: object) -> bool:
    return isinstance(one, str) and isinstance(other, str) and parse_time_ns(one) < parse_time_ns(other)


def _finished(after: _Side, before: _Side, out: Causes) -> None:
    turned = after.is_finished != before.is_finished
    if not after.is_finished:
        return
    if after.count("active") > 0 and (turned or after.count("active") != before.count("active")):
        out.append(invalid_value("status.active", str(after.count("active")), "active>0 is invalid for finished job"))
    never_started = after.spec.get("suspend") is True and after.spec.get("completions") == 0
    if after.status.get("startTime") is None and (turned or _changed(after, before, "startTime")) and not never_started:
        out.append(required("status.startTime", "startTime is required for finished job"))
    uncounted = after.status.get("uncountedTerminatedPods")
    if any(part({"": uncounted}, "").values()) and (turned or _changed(after, before, "uncountedTerminatedPods")):
        names = ("succeeded", "failed")
        shown = json_text({name.capitalize(): part({"": uncounted}, "").get(name) for name in names})
        out.append(invalid_value("status.uncountedTerminatedPods", shown, "must be empty for finished job"))


def _indexes(after: _Side, before: _Side, out: Causes) -> None:
    """Check the lists of completed and failed indexes."""
    completions = after.spec.get("completions")
    completed, failed = str(after.status.get("completedIndexes") or ""), sent(after.status, "failedIndexes")
    new_completed = completed != str(before.status.get("completedIndexes") or "")
    new_failed = failed != sent(before.status, "failedIndexes")
    limited = after.spec.get("backoffLimitPerIndex") is not None
    if isinstance(completions, int):
        for name, text, checked in (
            ("completedIndexes", completed, new_completed),
            ("failedIndexes", failed, new_failed and limited),
        ):
            problem = _list_problem(text, completions) if checked and isinstance(text, str) else ""
            if problem:
                out.append(invalid_value(f"status.{name}", quote(str(text)), f"error parsing {name}: {problem}"))
    if new_completed and completed and after.spec.get("completionMode") != "Indexed":
        detail = "cannot set non-empty completedIndexes when non-indexed completion mode"
        out.append(invalid_value("status.completedIndexes", quote(completed), detail))
    if new_failed and failed is not None and not limited:
        detail = "cannot set non-null failedIndexes when backoffLimitPerIndex is null"
        out.append(invalid_value("status.failedIndexes", go_value(failed), detail))
    if (new_failed or new_completed) and isinstance(failed, str) and isinstance(completions, int):
        both = _first_in_both(completed, failed, completions)
        if both is not None:
            detail = f"failedIndexes and completedIndexes overlap at index: {both}"
            out.append(invalid_value("status.failedIndexes", quote(failed), detail))


class _IndexProblem(Exception):
    """An interval in a list of indexes is invalid."""


def _interval(text: str, completions: int) -> tuple[int, int]:
    """Return the first and last index of an interval in a list of indexes.

    Raises:
        _IndexProblem: the interval is invalid.
    """
    limits = text.split("-")
    if len(limits) > 2:
        what = "violates the requirement that an index interval can have at most two parts separated by '-'"
        raise _IndexProblem(f"the fragment {quote(text)} {what}")
    numbers = []
    for limit in limits:
        if not _ATOI.fullmatch(limit):
            raise _IndexProblem(f"cannot convert string to integer for index: {quote(limit)}")
        numbers.append(int(limit))
        if numbers[-1] >= completions:
            raise _IndexProblem(f"too large index: {quote(limit)}")
    if len(numbers) > 1 and numbers[0] >= numbers[1]:
        raise _IndexProblem(f"non-increasing order, previous: {numbers[0]}, current: {numbers[1]}")
    return numbers[0], numbers[-1]


def _list_problem(text: str, completions: int) -> str:
    if not text:
        return ""
    previous: int | None = None
    for piece in text.split(","):
        try:
            first, last = _interval(piece, completions)
        except _IndexProblem as problem:
            return str(problem)
        if previous is not None and previous >= first:
            return f"non-increasing order, previous: {previous}, current: {first}"
        previous = last
    return ""


def _first_in_both(completed: str, failed: str, completions: int) -> int | None:
    """Return the first index that is in both lists, or None; invalid intervals are skipped."""
    if not completed or not failed:
        return None
    marked: list[tuple[int, int, bool]] = []
    for text, is_failed in ((completed, False), (failed, True)):
        for piece in text.split(","):
            try:
                marked.append((*_interval(piece, completions), is_failed))
            except _IndexProblem:
                continue
    marked.sort()
    for one, other in pairwise(marked):
        if one[2] != other[2] and other[0] <= one[1]:
            return other[0]
    return None


def _pods(after: _Side, before: _Side, out: Causes) -> None:
    turned = after.is_finished != before.is_finished
    terminating = after.count("terminating")
    if after.is_finished and terminating > 0 and (turned or _changed(after, before, "terminating")):
        out.append(invalid_value("status.terminating", str(terminating), "terminating>0 is invalid for finished job"))
    ready = after.status.get("ready")
    moved = ready != before.status.get("ready") or after.count("active") != before.count("active")
    if moved and isinstance(ready, int) and ready > after.count("active"):
        out.append(invalid_value("status.ready", str(ready), "cannot set more ready pods than active"))


def _criteria(after: _Side, out: Causes) -> None:
    met = after.has("SuccessCriteriaMet")
    if met and after.has("Failed"):
        _conditions("cannot set SuccessCriteriaMet=True and Failed=true conditions", out)
    if met and after.has("FailureTarget"):
        _conditions("cannot set SuccessCriteriaMet=True and FailureTarget=true conditions", out)
    if after.spec.get("successPolicy") is not None and not met and after.has("Complete"):
        _conditions("cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True", out)


def _check_terminal_conditions(after: _Side, before: _Side, out: Causes) -> None:
    for name in _TERMINAL:
        if before.has(name) and not after.has(name):
            _conditions(f"cannot disable the terminal {name}=True condition", out)
    if after.count("failed") < before.count("failed"):
        out.append(invalid_value("status.failed", str(after.count("failed")), "cannot decrease the failed counter"))
    elastic = after.spec.get("completionMode") == "Indexed" and after.spec.get("completions") == after.spec.get(
        "parallelism"
    )
    if not elastic and after.count("succeeded") < before.count("succeeded"):
        detail = "cannot decrease the succeeded counter"
        out.append(invalid_value("status.succeeded", str(after.count("succeeded")), detail))
    completion, completion_before = after.status.get("completionTime"), before.status.get("completionTime")
    if completion is not None and completion_before is not None and completion != completion_before:
        out.append(invalid_value("status.completionTime", go_value(completion), "field is immutable"))
    start, start_before = after.status.get("startTime"), before.status.get("startTime")
    resumes = before.has("Suspended") and after.has("Suspended", "False")
    if start_before is not None and start != start_before and not after.spec.get("suspend") and not resumes:
        detail = "field is immutable for unsuspended job once set"
        out.append(invalid_value("status.startTime", go_value(start), detail))
    if before.has("SuccessCriteriaMet") and not after.has("SuccessCriteriaMet"):
        _conditions("cannot disable the SuccessCriteriaMet=True condition", out)
    if before.has("Complete") and not before.has("SuccessCriteriaMet") and after.has("SuccessCriteriaMet"):
        _conditions("cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions", out)
