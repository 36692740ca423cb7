"""Checks of the conformance kit that compare evaluation forms: all rows as arrays, some rows, one row."""

from __future__ import annotations

from typing import Any

import numpy as np

from bayplan.state.views import Rows
from bayplan.testing.plugin_subject import Make, PluginFault, Subject
from bayplan.testing.sample_clusters import SampleCluster


def filter_answers_alike_in_every_form(make: Make, sample: SampleCluster) -> None:
    """All rows at once, rows in any order, and one row at a time give the same verdicts."""
    subject = make(sample)
    params = subject.filter_params() if subject.filters else None
    if params is None:
        return
    every = _array(subject, "filter()", subject.verdicts(params), np.uint16)

    def fail(row: int, got: object, form: str) -> None:
        whole = subject.describe(params, int(every[row]))
        raise PluginFault(
            f"filter() of {subject.name(row)}: all rows at once return {whole}, {form} returns {_shown(subject, params, got)}"
        )

    index = np.array(subject.rows[::-1], dtype=np.intp)
    some = _array(subject, "filter()", subject.verdicts(params, Rows(subject.state, index)), np.uint16, len(index))
    for row, got in zip(index.tolist(), some.tolist(), strict=True):
        if got != every[row]:
            fail(row, got, "an array of some rows")
    for row in subject.rows:
        got = _number(subject, "filter()", subject.verdicts(params, subject.one_row(row)))
        if got != every[row]:
            fail(row, got, "an array of one row")


def score_answers_alike_in_every_form(make: Make, sample: SampleCluster) -> None:
    """All rows at once, rows in any order, and one row at a time give the same raw scores."""
    subject = make(sample)
    params = subject.score_params() if subject.scores else None
    if params is None:
        return
    every = _array(subject, "score()", subject.raw(params), np.int64)
    index = np.array(subject.rows[::-1], dtype=np.intp)
    some = _array(subject, "score()", subject.raw(params, Rows(subject.state, index)), np.int64, len(index))
    for row, got in zip(index.tolist(), some.tolist(), strict=True):
        if got != every[row]:
            raise PluginFault(
                f"score() of {subject.name(row)}: all rows at once return {every[row]}, an array of some rows returns {got}"
            )
    for row in subject.rows:
        got = _number(subject, "score()", subject.raw(params, subject.one_row(row)))
        if got != every[row]:
            text = f"score() of {subject.name(row)}: all rows at once return {every[row]}, an array of one row returns {got}"
            raise PluginFault(text)


def _array(subject: Subject, point: str, values: Any, dtype: type[np.generic], count: int | None = None) -> Any:
    count = subject.state.nodes.count if count is None else count
    if not isinstance(values, np.ndarray) or values.dtype != dtype or values.shape != (count,):
        got = f"{values.dtype}{list(values.shape)}" if isinstance(values, np.ndarray) else repr(values)
        raise PluginFault(f"{point} returned {got}, not {dtype.__name__}[{count}]")
    return values


def _number(subject: Subject, point: str, value: Any) -> int:
    return int(_array(subject, point, value, np.uint16 if point == "filter()" else np.int64, 1)[0])


def _shown(subject: Subject, params: Any, got: object) -> str:
    return subject.describe(params, got) if isinstance(got, int) else repr(got)
