"""Read full records from the files of a result directory: frames and keyframes, loaded on first use."""

from __future__ import annotations

from collections import OrderedDict
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from bayplan.analysis.record_writer import NOT_NORMALIZED
from bayplan.analysis.result_layout import FILTER, SCORE
from bayplan.base.errors import InputError
from bayplan.engine.decision import Frame
from bayplan.engine.extenders import ExtenderResult
from bayplan.framework.plugin import Params
from bayplan.framework.preemption.account import PreemptionAccount
from bayplan.framework.status import Code, Status
from bayplan.state.arrays import Bools, Codes, Index, Ints

Value = TypeVar("Value")

KEPT_KEYFRAMES = 32
"""Maximum number of keyframes cached in memory."""


def read_table(path: Path) -> pa.Table:
    """Return the table in a Parquet file.

    Raises:
        InputError: the file does not exist, or is not a Parquet file.
    """
    try:
        return pq.read_table(path, partitioning=None)
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except pa.ArrowInvalid as problem:
        got = str(problem).partition("\n")[0]
        raise InputError("file of a result", where=str(path), wanted="a Parquet file", got=got) from None


class StoredKeyframe:
    """A keyframe from files, with the interface of `bayplan.engine.decision.KeyframeValues`."""

    def __init__(self, records: StoredRecords, number: int, row: dict[str, Any], parts: list[dict[str, Any]]) -> None:
        self.names, self.order = records.node_set(row["node_set"])
        examined = row["examined"]
        self.examined: Bools | None = None if examined is None else np.array(examined, dtype=np.bool_)
        self.absent = status_of(row["absent"])
        self.floor: int = row["floor"]
        self._records = records
        self._rows = np.array(row["rows"], dtype=np.intp)
        self._filters = [part for part in parts if part["kind"] == FILTER]
        self._scorers = [part for part in parts if part["kind"] == SCORE]
        self._statuses = records.statuses(number, [part["plugin"] for part in self._filters])

    @property
    def filter_names(self) -> tuple[str, ...]:
        """Return the names of the filters, by number."""
        return tuple(part["plugin"] for part in self._filters)

    @property
    def scorer_weights(self) -> tuple[tuple[str, int], ...]:
        """Return (name, weight) of the score plugins, by number."""
        return tuple((part["plugin"], part["weight"]) for part in self._scorers)

    def explain(self, number: int, verdict: int) -> Status:
        """Return the status for a filter's verdict."""
        return self._statuses[number, verdict]

    def normalize(self, number: int, scale: Params | None, raw: Ints) -> Ints:
        """Return normalised scores for raw scores. The scale is the number of a stored table, or None for no normalisation."""
        if scale is None:
            return raw
        known, normalized = self._records.normalization(int(str(scale[0])))
        return normalized if known is None else normalized[np.searchsorted(known, raw)]

    def values_until(self, changes: int) -> tuple[Codes, Ints]:
        """Return verdicts and raw scores, each as an array [plugins, rows], after the given number of changes."""
        return self._values(self._filters, changes).astype(np.uint16), self._values(self._scorers, changes)

    def _values(self, parts: list[dict[str, Any]], changes: int) -> Ints:
        values: Ints = np.zeros((len(parts), len(self.names)), dtype=np.int64)
        rows = self._rows[:changes]
        for number, part in enumerate(parts):
            values[number] = part["values"]
            # If a row changed several times, the last change counts: NumPy assigns in order.
            if len(part["changes"]):
                values[number, rows] = part["changes"][:changes]
        return values


class StoredRecords:
    """The folder ``records`` of a result directory.

    Args:
        directory: the directory itself.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._kept: OrderedDict[int, StoredKeyframe] = OrderedDict()

    def frame(self, number: int) -> Frame:
        """Return a frame by its number. Its keyframe is read from files, or cached."""
        row = self._frames.slice(number, 1).to_pylist()[0]
        return Frame(
            self._keyframe(row["keyframe"]),
            row["changes"],
            row["scored"],
            tuple(None if table == NOT_NORMALIZED else (table,) for table in row["normalizations"]),
            tuple((it["row"], it["filter"], it["verdict"]) for it in row["overrides"]),
            None if row["ties"] is None else tuple(row["ties"]),
            status_of(row["pre_filter"]),
            row["only"],
            None if row["sample"] is None else (row["sample"][0], row["sample"][1]),
            _decoded(row.get("extenders"), tuple[ExtenderResult, ...]),
            _decoded(row.get("preemption"), PreemptionAccount),
            # Older results lack this column.
            bool(row.get("check_all")),
        )

    def node_set(self, number: int) -> tuple[tuple[str | None, ...], Index]:
        """Return the node names by row, and the rows in the order in which a search visits them."""
        return self._node_sets[number]

    def statuses(self, keyframe: int, filters: list[str]) -> dict[tuple[int, int], Status]:
        """Return the statuses of a keyframe's verdicts, by filter number and verdict."""
        rows = self._rows_of(self._reasons, "keyframe", keyframe).to_pylist()
        return {
            (row["filter"], row["verdict"]): Status(Code[row["code"]], tuple(row["reasons"]), filters[row["filter"]])
            for row in rows
        }

    def normalization(self, number: int) -> tuple[Ints | None, Ints]:
        """Return the distinct raw scores, ascending, and the normalised score of each.

        If the scores depend on more than the raw score, return None and the normalised scores of all rows.
        """
        row = self._normalizations.slice(number, 1)
        by_row = row.column("raw").null_count
        raw, normalized = (row.column(name).combine_chunks().flatten().to_numpy() for name in ("raw", "normalized"))
        return None if by_row else raw, normalized

    def _keyframe(self, number: int) -> StoredKeyframe:
        known = self._kept.get(number)
        if known is None:
            parts = []
            table = self._rows_of(self._parts, "keyframe", number)
            for place, row in enumerate(table.select(["kind", "plugin", "weight"]).to_pylist()):
                one = table.slice(place, 1)
                lists = {name: one.column(name).combine_chunks().flatten().to_numpy() for name in ("values", "changes")}
                parts.append(row | lists)
            row = self._keyframes.slice(number, 1).to_pylist()[0]
            known = self._kept[number] = StoredKeyframe(self, number, row, parts)
            if len(self._kept) > KEPT_KEYFRAMES:
                self._kept.popitem(last=False)
        return known

    def _rows_of(self, table: pa.Table, column: str, value: int) -> pa.Table:
        return table.filter(pc.equal(table.column(column), value))

    @cached_property
    def _frames(self) -> pa.Table:
        return read_table(self._directory / "frames.parquet")

    @cached_property
    def _keyframes(self) -> pa.Table:
        return read_table(self._directory / "keyframes.parquet")

    @cached_property
    def _parts(self) -> pa.Table:
        return read_table(self._directory / "parts.parquet")

    @cached_property
    def _reasons(self) -> pa.Table:
        return read_table(self._directory / "reasons.parquet")

    @cached_property
    def _normalizations(self) -> pa.Table:
        return read_table(self._directory / "normalizations.parquet")

    @cached_property
    def _node_sets(self) -> dict[int, tuple[tuple[str | None, ...], Index]]:
        rows: dict[int, list[dict[str, Any]]] = {}
        for row in read_table(self._directory / "node_sets.parquet").to_pylist():
            rows.setdefault(row["node_set"], []).append(row)
        return {number: _node_set(found) for number, found in rows.items()}


def _node_set(rows: list[dict[str, Any]]) -> tuple[tuple[str | None, ...], Index]:
    visited = sorted((row["visit"], row["row"]) for row in rows if row["visit"] is not None)
    return tuple(row["node"] for row in rows), np.array([row for _, row in visited], dtype=np.intp)


def _decoded(stored: str | None, kind: type[Value]) -> Value | None:
    """Return the decoded JSON value of a cell; None if the cell is null, or an older result lacks the column."""
    return None if stored is None else msgspec.json.decode(stored, type=kind)


def status_of(stored: dict[str, Any] | None) -> Status | None:
    """Return the status stored in a struct column; None if the cell is null."""
    if stored is None:
        return None
    return Status(Code[stored["code"]], tuple(stored["reasons"]), stored["plugin"])
