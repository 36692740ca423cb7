"""Decision records: what every cycle decided, and at level full what every plugin said about every node.

A full record costs about as much as the rows that changed since the plan's last decision: a plan's verdicts and scores are
written whole once (a keyframe), then row by row. `Decision` puts them together again as arrays.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np

from bayplan.engine.cycle import ScheduleResult
from bayplan.engine.plan import Plan
from bayplan.framework.plugin import NormalizePlugin, Params
from bayplan.framework.status import Status, verdict_code
from bayplan.state.arrays import Bools, Ints
from bayplan.state.views import Rows


class RecordLevel(IntEnum):
    """How much is recorded: nothing, one line a cycle, or every verdict and score."""

    OFF = 0
    SUMMARY = 1
    FULL = 2


class Outcome(IntEnum):
    """How a cycle ended."""

    SCHEDULED = 0
    UNSCHEDULABLE = 1
    ERROR = 2
    SKIPPED = 3


class Record(NamedTuple):
    """One cycle.

    Attributes:
        time_ns: when it ran. pod: ``namespace/name``. attempt: the how manieth of this pod.
        outcome: how it ended. node: the chosen node, or "".
        feasible_nodes, evaluated_nodes: how many could hold the pod, how many were looked at.
        ties: size of the tie set. total: its total score; 0 where nothing had to be scored.
        message: why there is no node; "" where there is one.
        nominated_node: the node that preemption made room on, or "".
        frame: number of the full record in `Records`; -1 where there is none.
    """

    time_ns: int
    pod: str
    attempt: int
    outcome: Outcome
    node: str
    feasible_nodes: int
    evaluated_nodes: int
    ties: int
    total: int
    message: str
    nominated_node: str
    frame: int


class Keyframe:
    """All that the plugins of one plan said about all nodes at one moment, and what changed row by row since then.

    Attributes:
        names: node names by row; None in freed rows.
        examined: bool[rows], nodes that PreFilter left to the filters.
        verdicts: per filter part uint16[rows]; raw: per score part int64[rows] (narrower where that holds them).
        filters: per filter part its plugin, its spec and the params that its reasons need.
        scorers: per score part its plugin, its spec and its weight.
        rows: rows that changed later, in order; values: for each of them the verdicts of all filters, then all raw scores.
    """

    __slots__ = ("examined", "filters", "names", "raw", "rows", "scored", "scorers", "state", "values", "verdicts")

    def __init__(self, plan: Plan, *, scored: bool) -> None:
        # The plan itself is not kept: its arrays are to go when nobody needs it for scheduling any more.
        count = plan.state.nodes.count
        self.state = plan.state
        self.names = list(plan.state.nodes.names)
        self.examined: Bools = plan.examined()[:count].copy()
        self.verdicts = [part.values[:count].copy() for part in plan.filter_parts]
        self.filters = [(part.plugin, part.spec, part.params) for part in plan.filter_parts]
        self.scored = scored
        weighted = zip(plan.score_parts, plan.weights, strict=True)
        self.scorers = [(part.plugin, part.spec, weight) for part, weight in weighted] if scored else []
        self.raw: list[Any] = [_narrow(part.values[:count]) for part in plan.score_parts] if scored else []
        self.rows = array("l")
        self.values = array("q")

    def explain(self, number: int, verdict: int) -> Status:
        """Return the status of a verdict of the filter with this number."""
        plugin, spec, params = self.filters[number]
        return Status(verdict_code(verdict), plugin.reasons(spec, params, verdict), plugin.name)

    def normalize(self, number: int, scale: Params | None, raw: Ints) -> Ints:
        """Return the normalised scores of the scorer with this number."""
        plugin, spec, _ = self.scorers[number]
        if scale is None or not isinstance(plugin, NormalizePlugin):
            return raw
        return plugin.normalize(spec, scale, raw, Rows(self.state))

    @property
    def nbytes(self) -> int:
        """Return about how many bytes this keyframe and its changes take."""
        whole = sum(int(values.nbytes) for values in (*self.verdicts, *self.raw, self.examined))
        return whole + 8 * len(self.names) + self.rows.itemsize * len(self.rows) + 8 * len(self.values)


class Frame(NamedTuple):
    """Where a full record is: its keyframe, how many of its changes had been made, and what was particular to the cycle."""

    keyframe: Keyframe
    changes: int
    scored: bool
    scales: tuple[Params | None, ...]
    overrides: tuple[tuple[int, int, int], ...]
    ties: tuple[int, ...] | None
    pre_filter: Status | None


@dataclass(frozen=True)
class Decision:
    """One cycle as arrays, rows being the nodes of `names`.

    Attributes:
        record: the summary.
        names: node names, one a row.
        filters, scorers: plugin names. weights: of the scorers.
        codes: uint16[filters, rows], packed verdicts, 0 passes. examined: bool[rows].
        raw, normalized: int64[scorers, rows]; meaningful where `feasible`.
        feasible: bool[rows]. total: int64[rows], -1 where not feasible.
        ties: names of the tie set, in row order.
        pre_filter: the rejection by PreFilter, or None.
    """

    record: Record
    names: tuple[str, ...]
    filters: tuple[str, ...]
    scorers: tuple[str, ...]
    weights: tuple[int, ...]
    examined: Bools
    codes: Any
    raw: Ints
    normalized: Ints
    feasible: Bools
    total: Ints
    ties: tuple[str, ...]
    pre_filter: Status | None
    statuses: dict[tuple[int, int], Status]
    overrides: dict[int, tuple[int, int]]

    @property
    def weighted(self) -> Ints:
        """Return int64[scorers, rows]: normalised scores times weights."""
        return self.normalized * np.array(self.weights, dtype=np.int64).reshape(-1, 1)

    def first_failure(self, row: int) -> Status | None:
        """Return the status with which a node was rejected: that of its first failing filter, or of PreFilter."""
        if self.pre_filter is not None:
            return self.pre_filter
        if row in self.overrides:
            return self.statuses[self.overrides[row]]
        for number in range(len(self.filters)):
            verdict = int(self.codes[number, row])
            if verdict and self.examined[row]:
                return self.statuses[number, verdict]
        return None


class Records:
    """The records of a run, in the order of the cycles."""

    def __init__(self, level: RecordLevel) -> None:
        self.level = level
        self._summaries: list[Record] = []
        self._frames: list[Frame] = []

    def __len__(self) -> int:
        return len(self._summaries)

    def __iter__(self) -> Iterator[Record]:
        return iter(self._summaries)

    def __getitem__(self, number: int) -> Record:
        return self._summaries[number]

    def add(
        self,
        *,
        time_ns: int,
        pod: str,
        attempt: int,
        outcome: Outcome,
        node: str,
        message: str,
        nominated_node: str,
        plan: Plan | None,
        result: ScheduleResult | None,
    ) -> None:
        """Record a cycle. Must be called before the decision is applied to the state."""
        if self.level is RecordLevel.OFF:
            return
        frame = -1
        if self.level is RecordLevel.FULL and plan is not None and result is not None:
            frame = len(self._frames)
            self._frames.append(self._frame(plan, result))
        counts = (0, 0, 0, 0)
        if result is not None:
            counts = (result.feasible_nodes, result.evaluated_nodes, len(result.ties), result.total)
        self._summaries.append(Record(time_ns, pod, attempt, outcome, node, *counts, message, nominated_node, frame))

    def _frame(self, plan: Plan, result: ScheduleResult) -> Frame:
        scored = result.scored and result.failure is None
        keyframe = plan.keyframe if isinstance(plan.keyframe, Keyframe) else None
        rows = plan.take_changes()
        if keyframe is None or rows is None or (scored and not keyframe.scored):
            plan.keyframe = keyframe = Keyframe(plan, scored=scored)
        elif rows:
            columns: list[Any] = [part.values for part in plan.filter_parts]
            if keyframe.scored:
                columns += [part.values for part in plan.score_parts]
            for row in rows:
                keyframe.rows.append(row)
                keyframe.values.extend([column.item(row) for column in columns])
            if keyframe.scored and not scored:
                # Scores of these rows were not brought up to date, nor are they read here: the next cycle records them again.
                plan.keep_changes(rows)
        overrides = tuple((row, number, verdict) for row, (number, verdict) in result.overrides.items())
        own_ties = not scored or bool(overrides)
        return Frame(
            keyframe,
            len(keyframe.rows),
            scored,
            tuple(plan.scales) if scored else (),
            overrides,
            tuple(result.ties.tolist()) if own_ties else None,
            plan.pre.status,
        )

    def decision(self, number: int) -> Decision:
        """Return a full record as arrays.

        Raises:
            LookupError: the cycle has no full record.
        """
        record = self._summaries[number]
        if record.frame < 0:
            raise LookupError(f"cycle {number} of {record.pod} has no full record; run with the record level full")
        return rebuild(record, self._frames[record.frame])

    def decisions_of(self, pod: str) -> list[int]:
        """Return the numbers of the cycles of one pod."""
        return [number for number, record in enumerate(self._summaries) if record.pod == pod]

    @property
    def nbytes(self) -> int:
        """Return about how many bytes all records take."""
        keyframes = {id(frame.keyframe): frame.keyframe for frame in self._frames}
        return 200 * len(self._summaries) + 120 * len(self._frames) + sum(k.nbytes for k in keyframes.values())


def rebuild(record: Record, frame: Frame) -> Decision:
    """Put a decision together from its keyframe and the changes up to it."""
    keyframe = frame.keyframe
    filters = len(keyframe.verdicts)
    codes = np.array(keyframe.verdicts, dtype=np.uint16).reshape(filters, len(keyframe.names))
    raw = np.array(keyframe.raw, dtype=np.int64).reshape(len(keyframe.raw), len(keyframe.names))
    width = filters + len(keyframe.raw)
    if frame.changes:
        rows = np.array(keyframe.rows[: frame.changes], dtype=np.intp)
        values = np.array(keyframe.values[: frame.changes * width], dtype=np.int64).reshape(-1, width)
        # The last change of a row counts; NumPy assigns in order.
        codes[:, rows] = values[:, :filters].T
        raw[:, rows] = values[:, filters:].T
    overrides = {row: (number, verdict) for row, number, verdict in frame.overrides}
    feasible = keyframe.examined & ~codes.any(axis=0)
    feasible[list(overrides)] = False
    scorers = keyframe.scorers if frame.scored else []
    raw = raw[: len(scorers)]
    normalized = raw.copy()
    for number, scale in enumerate(frame.scales):
        normalized[number] = keyframe.normalize(number, scale, raw[number])
    weights = tuple(weight for _, _, weight in scorers)
    total = np.full(len(keyframe.names), -1, dtype=np.int64)
    if scorers:
        weighted = normalized * np.array(weights, dtype=np.int64).reshape(-1, 1)
        total[feasible] = weighted.sum(axis=0)[feasible]
    ties: Sequence[int] = (
        frame.ties if frame.ties is not None else np.flatnonzero(total == total.max(initial=0)).tolist()
    )
    statuses = _statuses(keyframe, codes, overrides)
    kept = [row for row, name in enumerate(keyframe.names) if name is not None]
    place = {row: number for number, row in enumerate(kept)}
    return Decision(
        record=record,
        names=tuple(keyframe.names[row] or "" for row in kept),
        filters=tuple(plugin.name for plugin, _, _ in keyframe.filters),
        scorers=tuple(plugin.name for plugin, _, _ in scorers),
        weights=weights,
        examined=keyframe.examined[kept],
        codes=codes[:, kept],
        raw=raw[:, kept],
        normalized=normalized[:, kept],
        feasible=feasible[kept],
        total=total[kept],
        ties=tuple(keyframe.names[row] or "" for row in ties),
        pre_filter=frame.pre_filter,
        statuses=statuses,
        overrides={place[row]: verdict for row, verdict in overrides.items() if row in place},
    )


def _statuses(keyframe: Keyframe, codes: Any, overrides: dict[int, tuple[int, int]]) -> dict[tuple[int, int], Status]:
    found = {verdict: keyframe.explain(*verdict) for verdict in overrides.values()}
    for number in range(len(codes)):
        for verdict in np.unique(codes[number]).tolist():
            if verdict:
                found[number, verdict] = keyframe.explain(number, verdict)
    return found


def _narrow(values: Ints) -> Any:
    """Return a copy in the narrowest type that holds all values."""
    if not len(values):
        return values.copy()
    low, high = int(values.min()), int(values.max())
    for dtype in (np.int8, np.int16, np.int32):
        info = np.iinfo(dtype)
        if info.min <= low and high <= info.max:
            return values.astype(dtype)
    return values.copy()
