"""Write full records that can be read without plugins: reasons as texts, normalised scores as tables by raw score."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from bayplan.analysis.result_layout import FILTER, RECORD_TABLES, SCORE
from bayplan.analysis.table_writer import TableWriter
from bayplan.engine.decision import Frame
from bayplan.engine.keyframe import Keyframe
from bayplan.engine.records import Records
from bayplan.framework.plugin import Params
from bayplan.framework.status import Status
from bayplan.state.arrays import Index, Ints

NOTHING: Ints = np.zeros(0, dtype=np.int64)

MAX_COMPARED = 256
"""Maximum number of distinct raw scores for which to check that equal raw scores have equal normalised scores."""

NOT_NORMALIZED = -1
"""Stands for the table number of a plugin whose scores are not normalised."""

BY_ROW = -2
"""While writing, stands for the table number of a plugin that needs a new table for each frame."""


def write_records(records: Records, directory: Path) -> None:
    """Write all full records to the tables of `RECORD_TABLES` in an existing directory."""
    with ExitStack() as stack:
        writers = {
            name: stack.enter_context(TableWriter(directory / f"{name}.parquet", schema))
            for name, schema in RECORD_TABLES.items()
        }
        _RecordWriter(writers).write(records)


class _RecordWriter:
    """Writes frames, and each keyframe, node set and normalisation once, numbered in order of appearance."""

    def __init__(self, writers: dict[str, TableWriter]) -> None:
        self._writers = writers
        self._keyframes: dict[int, int] = {}
        self._node_sets: dict[tuple[tuple[str | None, ...], bytes], int] = {}
        self._last: tuple[tuple[str | None, ...], Index, int] | None = None
        self._normalizations: dict[tuple[int, int, Params], int] = {}
        # Table numbers by keyframe and scales, for frames that need no new table: most frames have the scales of an
        # earlier frame.
        self._numbers: dict[tuple[int, tuple[Params | None, ...]], list[int]] = {}
        self._written = 0
        self._values: dict[tuple[int, int], Ints] = {}

    def write(self, records: Records) -> None:
        """Write the frames of all records in order, and keyframes in the order of their first frames."""
        shut: dict[int, dict[tuple[int, int], None]] = {}
        frames: list[tuple[int, Frame]] = []
        for number in range(len(records)):
            frame = records.frame(number)
            if frame is not None:
                frames.append((records[number].frame, frame))
                overrides = shut.setdefault(id(frame.keyframe), {})
                if frame.overrides:
                    overrides.update(dict.fromkeys((part, verdict) for _, part, verdict in frame.overrides))
        for number, frame in frames:
            keyframe = frame.keyframe
            assert isinstance(keyframe, Keyframe)
            if id(keyframe) not in self._keyframes:
                self._keyframe(keyframe, shut[id(keyframe)])
            self._frame(number, frame, keyframe)

    def _frame(self, number: int, frame: Frame, keyframe: Keyframe) -> None:
        row = (
            number,
            self._keyframes[id(keyframe)],
            frame.changes,
            frame.scored,
            self._normalizations_of(frame, keyframe),
            [{"row": row, "filter": part, "verdict": verdict} for row, part, verdict in frame.overrides],
            None if frame.ties is None else list(frame.ties),
            _status(frame.pre_filter),
            frame.only,
            None if frame.sample is None else list(frame.sample),
            None if frame.extenders is None else msgspec.json.encode(frame.extenders).decode(),
            None if frame.preemption is None else msgspec.json.encode(frame.preemption).decode(),
            frame.check_all,
        )
        self._writers["frames"].add(row, elements=len(frame.ties or ()))

    def _keyframe(self, keyframe: Keyframe, shut: dict[tuple[int, int], None]) -> None:
        number = self._keyframes[id(keyframe)] = len(self._keyframes)
        examined = None if keyframe.examined is None else keyframe.examined.tolist()
        rows = np.array(keyframe.rows, dtype=np.int32)
        node_set = self._node_set(keyframe.names, keyframe.order)
        entry = (number, node_set, examined, _status(keyframe.absent), keyframe.floor, rows)
        self._writers["keyframes"].add(entry, elements=len(rows) + len(examined or ()))
        parts: list[tuple[str, int, str, int | None, Any]] = [
            (FILTER, part, name, None, keyframe.filters[part].values) for part, name in enumerate(keyframe.filter_names)
        ]
        parts += [
            (SCORE, part, name, weight, keyframe.scorers[part].values)
            for part, (name, weight) in enumerate(keyframe.scorer_weights)
        ]
        for place, (kind, part, name, worth, values) in enumerate(parts):
            changed = keyframe.changes_of(place, len(rows))
            changed = NOTHING if changed is None else changed
            row = (number, kind, part, name, worth, values.astype(np.int64), changed)
            self._writers["parts"].add(row, elements=len(values) + len(changed))
            if kind == FILTER:
                self._reasons(keyframe, part, np.union1d(values, changed).tolist(), shut)

    def _reasons(self, keyframe: Keyframe, part: int, verdicts: list[int], shut: dict[tuple[int, int], None]) -> None:
        wanted = set(verdicts) | {verdict for other, verdict in shut if other == part}
        for verdict in sorted(wanted - {0}):
            status = keyframe.explain(part, verdict)
            row = (self._keyframes[id(keyframe)], part, verdict, status.code.name, list(status.reasons))
            self._writers["reasons"].add(row)

    def _node_set(self, names: tuple[str | None, ...], order: Index) -> int:
        if self._last is not None and names is self._last[0] and order is self._last[1]:
            return self._last[2]
        key = (names, order.tobytes())
        number = self._node_sets.get(key)
        if number is None:
            number = self._node_sets[key] = len(self._node_sets)
            visits: list[int | None] = [None] * len(names)
            for place, row in enumerate(order.tolist()):
                visits[row] = place
            rows = zip(names, visits, strict=True)
            self._writers["node_sets"].add_all((number, row, *described) for row, described in enumerate(rows))
        self._last = (names, order, number)
        return number

    def _normalizations_of(self, frame: Frame, keyframe: Keyframe) -> list[int]:
        """Return the number of the normalisation table of each scorer; see `_normalization`."""
        key = (id(keyframe), frame.scales)
        numbers = self._numbers.get(key)
        if numbers is None:
            numbers = [self._normalization(frame, keyframe, part, scale) for part, scale in enumerate(frame.scales)]
            kept = self._normalizations
            if all(
                scale is None or kept[id(keyframe), part, scale] != BY_ROW for part, scale in enumerate(frame.scales)
            ):
                self._numbers[key] = numbers
        return numbers

    def _normalization(self, frame: Frame, keyframe: Keyframe, part: int, scale: Params | None) -> int:
        """Return the number of the table of normalised scores; `NOT_NORMALIZED` if they equal the raw scores.

        A table maps raw to normalised scores, and all frames with the same scale share it. If a plugin uses more than
        the raw score (a node without a topology label scores 0), the table lists the scores of all rows, for this frame
        only.
        """
        if scale is None:
            return NOT_NORMALIZED
        key = (id(keyframe), part, scale)
        number = self._normalizations.get(key)
        if number is not None:
            return self._by_row(frame, keyframe, part, scale) if number == BY_ROW else number
        raw = self._raw_values(keyframe, part)
        if not _is_elementwise(keyframe, part, scale, raw):
            self._normalizations[key] = BY_ROW
            return self._by_row(frame, keyframe, part, scale)
        normalized = np.asarray(keyframe.normalize(part, scale, raw), dtype=np.int64)
        number = NOT_NORMALIZED if np.array_equal(raw, normalized) else self._add_table(raw, normalized)
        self._normalizations[key] = number
        return number

    def _by_row(self, frame: Frame, keyframe: Keyframe, part: int, scale: Params) -> int:
        raw = keyframe.values_until(frame.changes)[1][part]
        return self._add_table(None, np.asarray(keyframe.normalize(part, scale, raw), dtype=np.int64))

    def _add_table(self, raw: Ints | None, normalized: Ints) -> int:
        number = self._written
        self._written += 1
        self._writers["normalizations"].add((number, raw, normalized), elements=2 * len(normalized))
        return number

    def _raw_values(self, keyframe: Keyframe, part: int) -> Ints:
        """Return all distinct raw scores of a scorer in a keyframe and its changes, ascending."""
        key = (id(keyframe), part)
        known = self._values.get(key)
        if known is None:
            changes = keyframe.changes_of(len(keyframe.filters) + part, len(keyframe.rows))
            whole = keyframe.scorers[part].values.astype(np.int64)
            known = self._values[key] = np.unique(whole) if changes is None else np.union1d(whole, changes)
        return known


def _is_elementwise(keyframe: Keyframe, part: int, scale: Params, raw: Ints) -> bool:
    """Return whether nodes with equal raw scores always have equal normalised scores, by testing a sample of scores."""
    rows = len(keyframe.names)
    for value in raw[:: max(1, len(raw) // MAX_COMPARED)].tolist():
        same = np.asarray(keyframe.normalize(part, scale, np.full(rows, value, dtype=np.int64)))
        if len(same) and not (same == same[0]).all():
            return False
    return True


def _status(status: Status | None) -> dict[str, object] | None:
    if status is None:
        return None
    return {"code": status.code.name, "plugin": status.plugin, "reasons": list(status.reasons)}
