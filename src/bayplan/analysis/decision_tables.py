"""Decisions as data frames: Arrow tables that pandas, Polars and DuckDB read."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
from msgspec.structs import astuple

from bayplan.analysis.result_layout import DECISIONS
from bayplan.engine.decision import Decision, Record


def records_table(records: Iterable[Record]) -> pa.Table:
    """Return a table with one row per record, and the columns of ``decisions.parquet``."""
    columns: list[list[object]] = [[] for _ in DECISIONS]
    for record in records:
        values = astuple(record)
        frame = record.frame if record.frame >= 0 else None
        row = (*values[:3], record.outcome.name.lower(), *values[4:-1], frame)
        for column, value in zip(columns, row, strict=True):
            column.append(value)
    arrays = [pa.array(column, type=field.type) for column, field in zip(columns, DECISIONS, strict=True)]
    return pa.Table.from_arrays(arrays, schema=DECISIONS)


def decision_table(decision: Decision) -> pa.Table:
    """Return a table with one row per node: the results and scores of every plugin in one cycle.

    Columns:

    - ``node``, ``feasible``, ``chosen``, ``tied`` (whether the node is in the tie set)
    - ``plugin`` and ``reason``: the first plugin that rejected the node, and its message; null if none did
    - ``total``: null if the node is infeasible or was not scored
    - ``filter.NAME`` for each filter: whether the node passes; null if no filter ran on the node
    - ``raw.NAME``, ``normalized.NAME`` and ``weighted.NAME`` for each score plugin: null like ``total``
    """
    failures = [decision.first_failure(row) for row in range(len(decision.names))]
    ties = frozenset(decision.ties)
    unscored = decision.total < 0
    columns: dict[str, pa.Array] = {
        "node": pa.array(decision.names, type=pa.string()),
        "feasible": pa.array(decision.feasible),
        "plugin": pa.array([None if status is None else status.plugin for status in failures], type=pa.string()),
        "reason": pa.array([None if status is None else status.message for status in failures], type=pa.string()),
        "chosen": pa.array([name == decision.record.node for name in decision.names], type=pa.bool_()),
        "tied": pa.array([name in ties for name in decision.names], type=pa.bool_()),
        "total": pa.array(decision.total, mask=unscored),
    }
    hidden = ~decision.examined
    for number, name in enumerate(decision.filters):
        columns[f"filter.{name}"] = pa.array(decision.codes[number] == 0, mask=hidden)
    for kind, scores in (("raw", decision.raw), ("normalized", decision.normalized), ("weighted", decision.weighted)):
        for number, name in enumerate(decision.scorers):
            columns[f"{kind}.{name}"] = pa.array(np.ascontiguousarray(scores[number]), mask=unscored)
    return pa.table(columns)
