"""Decision records: what every cycle decided, and at level full what every plugin said about every node.

A full record costs about as much as the rows that changed since the plan's last decision: a plan's verdicts and scores are
written whole once (a keyframe), then row by row. `Decision` puts them together again as arrays.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np

from bayplan.engine.cycle import ScheduleResult, absent_status
from bayplan.engine.full_pass import ScoreTable
from bayplan.engine.plan import Plan
from bayplan.framework.plugin import FilterPlugin, NormalizePlugin, Params, ScorePlugin
from bayplan.framework.status import Status, verdict_code
from bayplan.state.arrays import Bools, Codes, Ints
from bayplan.state.cluster_state import ClusterState
from bayplan.state.views import Rows

DIGEST_BLOCK = 4096
"""How many records are hashed at once."""


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
        names: node names by row; None in freed rows. Shared by the keyframes between two changes of the nodes.
        examined: bool[rows], nodes that PreFilter left to the filters; None for all there are.
        absent: the status of the other nodes, or None.
        verdicts: per filter part its verdicts. raw: per score part its raw scores. In the narrowest type that holds them; one
            element stands for as many equal ones.
        filters: per filter part its plugin, its spec and the params that its reasons need.
        scorers: per score part its plugin, its spec and its weight.
        floor: what a feasible node scores before any plugin is asked: 1 where the profile has no score plugin.
        rows: rows that changed later, in order; values: for each of them the verdicts of all filters, then all raw scores.
    """

    __slots__ = (
        "absent",
        "examined",
        "filters",
        "floor",
        "names",
        "raw",
        "rows",
        "scored",
        "scorers",
        "state",
        "values",
        "verdicts",
    )

    def __init__(self, state: ClusterState, names: tuple[str | None, ...]) -> None:
        self.state = state
        self.names = names
        self.examined: Bools | None = np.zeros(len(names), dtype=np.bool_)
        self.absent: Status | None = None
        self.verdicts: list[Any] = []
        self.filters: list[tuple[FilterPlugin[Any], Any, Params | None]] = []
        self.scored = False
        self.floor = 0
        self.scorers: list[tuple[ScorePlugin[Any], Any, int]] = []
        self.raw: list[Any] = []
        self.rows = array("q")
        self.values = array("q")

    def take_filters(self, plan: Plan) -> None:
        """Copy the verdicts of a plan. The plan itself is not kept: its arrays are to go when scheduling needs them no more."""
        count = len(self.names)
        self.examined = None if plan.pre.node_names is None else plan.examined()[:count].copy()
        self.absent = absent_status(plan)
        self.verdicts = [_narrow(part.values[:count]) for part in plan.filter_parts]
        self.filters = [(part.plugin, part.spec, part.params) for part in plan.filter_parts]

    def take_scores(self, plan: Plan) -> None:
        """Copy the raw scores of a plan."""
        self.scored = True
        self.floor = 0 if plan.profile.score else 1
        weighted = zip(plan.score_parts, plan.weights, strict=True)
        self.scorers = [(part.plugin, part.spec, weight) for part, weight in weighted]
        self.raw = [_narrow(part.values[: len(self.names)]) for part in plan.score_parts]

    def take_table(self, plan: Plan, table: ScoreTable) -> None:
        """Copy raw scores that are not the plan's own."""
        self.scored = True
        self.floor = 0 if plan.profile.score else 1
        self.scorers = [(scores.plugin, scores.spec, scores.weight) for scores in table.scores.values()]
        self.raw = [_narrow(scores.raw) for scores in table.scores.values()]

    def explain(self, number: int, verdict: int) -> Status:
        """Return the status of a verdict of the filter with this number."""
        plugin, spec, params = self.filters[number]
        return Status(verdict_code(verdict), plugin.reasons(spec, params, verdict), plugin.name)

    def normalize(self, number: int, scale: Params | None, raw: Ints) -> Ints:
        """Return the normalised scores of the scorer with this number, for raw scores of any rows."""
        plugin, spec, _ = self.scorers[number]
        if scale is None or not isinstance(plugin, NormalizePlugin):
            return raw
        return plugin.normalize(spec, scale, raw, Rows(self.state))

    def values_until(self, changes: int) -> tuple[Codes, Ints]:
        """Return uint16[filters, rows] and int64[scorers, rows] as they were after so many changes."""
        filters, count = len(self.verdicts), len(self.names)
        codes = np.zeros((filters, count), dtype=np.uint16)
        raw = np.zeros((len(self.raw), count), dtype=np.int64)
        for number, verdicts in enumerate(self.verdicts):
            codes[number] = verdicts
        for number, scores in enumerate(self.raw):
            raw[number] = scores
        if changes:
            width = filters + len(self.raw)
            rows = np.array(self.rows[:changes], dtype=np.intp)
            values = np.array(self.values[: changes * width], dtype=np.int64).reshape(-1, width)
            # The last change of a row counts; NumPy assigns in order.
            codes[:, rows] = values[:, :filters].T
            raw[:, rows] = values[:, filters:].T
        return codes, raw

    @property
    def nbytes(self) -> int:
        """Return about how many bytes this keyframe and its changes take, names left out."""
        examined = 0 if self.examined is None else self.examined.nbytes
        whole = sum(int(values.nbytes) for values in (*self.verdicts, *self.raw))
        return 500 + examined + whole + self.rows.itemsize * len(self.rows) + self.values.itemsize * len(self.values)


class Frame(NamedTuple):
    """Where a full record is, and what was particular to the cycle.

    Attributes:
        keyframe, changes: the keyframe, and how many of its changes had been made.
        scored: whether nodes were scored. scales: per scorer what its scores were normalised by.
        overrides: (row, filter, verdict) of rows that pods nominated to them shut.
        ties: rows of the tie set; None where it follows from the totals.
        pre_filter: the rejection by PreFilter, or None.
        only: the one row that was looked at, because the pod was nominated to it; -1 where all were.
    """

    keyframe: Keyframe
    changes: int
    scored: bool
    scales: tuple[Params | None, ...]
    overrides: tuple[tuple[int, int, int], ...]
    ties: tuple[int, ...] | None
    pre_filter: Status | None
    only: int


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
        absent: the status of nodes that PreFilter kept from the filters, or None.
        statuses: what the verdicts mean, by (filter, verdict).
        overrides: rows that were shut by pods nominated to them, with (filter, verdict).
    """

    record: Record
    names: tuple[str, ...]
    filters: tuple[str, ...]
    scorers: tuple[str, ...]
    weights: tuple[int, ...]
    examined: Bools
    codes: Codes
    raw: Ints
    normalized: Ints
    feasible: Bools
    total: Ints
    ties: tuple[str, ...]
    pre_filter: Status | None
    absent: Status | None
    statuses: dict[tuple[int, int], Status]
    overrides: dict[int, tuple[int, int]]

    @property
    def weighted(self) -> Ints:
        """Return int64[scorers, rows]: normalised scores times weights."""
        return self.normalized * np.array(self.weights, dtype=np.int64).reshape(-1, 1)

    def first_failure(self, row: int) -> Status | None:
        """Return the status with which a node was rejected: PreFilter's, or that of its first failing filter; or None."""
        if self.pre_filter is not None:
            return self.pre_filter
        if not self.examined[row]:
            return self.absent
        if row in self.overrides:
            return self.statuses[self.overrides[row]]
        failing = self.codes[:, row].nonzero()[0]
        return self.statuses[int(failing[0]), int(self.codes[failing[0], row])] if len(failing) else None


class Records:
    """The records of a run, in the order of the cycles."""

    def __init__(self, level: RecordLevel) -> None:
        self.level = level
        self._summaries: list[Record] = []
        self._frames: list[Frame] = []
        # At level OFF records live only until they are hashed.
        self._hash = blake2b(digest_size=8)
        self._names: tuple[str | None, ...] = ()
        self._names_position = -1
        self._bare: Keyframe | None = None

    def __len__(self) -> int:
        return 0 if self.level is RecordLevel.OFF else len(self._summaries)

    def __iter__(self) -> Iterator[Record]:
        return iter(() if self.level is RecordLevel.OFF else self._summaries)

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
        if self.level is RecordLevel.OFF and len(self._summaries) >= DIGEST_BLOCK:
            self._hash.update(_digest_text(self._summaries))
            self._summaries.clear()
        frame = -1
        if self.level is RecordLevel.FULL and plan is not None and result is not None:
            frame = len(self._frames)
            self._frames.append(self._frame(plan, result))
        counts = (0, 0, 0, 0)
        if result is not None:
            counts = (result.feasible_nodes, result.evaluated_nodes, len(result.ties), result.total)
        self._summaries.append(Record(time_ns, pod, attempt, outcome, node, *counts, message, nominated_node, frame))

    def _frame(self, plan: Plan, result: ScheduleResult) -> Frame:
        state = plan.state
        names = self._node_names(state)
        if not state.nodes.row_of or plan.pre.status is not None:
            # No filter was asked: what the plan keeps is of an earlier cycle.
            if self._bare is None or self._bare.names is not names:
                self._bare = Keyframe(state, names)
            return Frame(self._bare, 0, False, (), (), (), plan.pre.status if state.nodes.row_of else None, -1)
        scored = result.scored and result.failure is None
        scales: tuple[Params | None, ...] = ()
        if result.table is not None and scored:
            keyframe = Keyframe(state, names)
            keyframe.take_filters(plan)
            keyframe.take_table(plan, result.table)
            scales = tuple(scores.scale for scores in result.table.scores.values())
        else:
            keyframe = self._keyframe_of(plan, names, scored)
            if scored:
                scales = tuple(plan.scales)
        overrides = tuple((row, number, verdict) for row, (number, verdict) in result.overrides.items())
        own_ties = not scored or result.table is not None
        return Frame(
            keyframe,
            len(keyframe.rows),
            scored,
            scales,
            overrides,
            tuple(result.ties.tolist()) if own_ties else None,
            None,
            result.row if result.tried_alone else -1,
        )

    def _keyframe_of(self, plan: Plan, names: tuple[str | None, ...], scored: bool) -> Keyframe:
        """Return the plan's keyframe with the changes since its last record added, or a new one."""
        keyframe = plan.keyframe if isinstance(plan.keyframe, Keyframe) else None
        rows = plan.take_changes()
        if keyframe is None or rows is None or (scored and not keyframe.scored):
            plan.keyframe = keyframe = Keyframe(plan.state, names)
            keyframe.take_filters(plan)
            if scored:
                keyframe.take_scores(plan)
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
        return keyframe

    def _node_names(self, state: ClusterState) -> tuple[str | None, ...]:
        """Return the names of all rows; the very same tuple while no node comes or goes."""
        if self._names_position != state.node_log.end:
            self._names_position = state.node_log.end
            names = tuple(state.nodes.names)
            if names != self._names:
                self._names = names
        return self._names

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

    def frame(self, number: int) -> Frame | None:
        """Return where the full record of a cycle is, or None where there is none. For whoever stores records whole."""
        frame = self._summaries[number].frame
        return self._frames[frame] if frame >= 0 else None

    def digest(self) -> str:
        """Return a hash (16 hexadecimal digits) of all decisions in order: when, which pod, how it ended, node or message.

        It is the same at every level.
        """
        found = self._hash.copy()
        for start in range(0, len(self._summaries), DIGEST_BLOCK):
            found.update(_digest_text(self._summaries[start : start + DIGEST_BLOCK]))
        return found.hexdigest()

    @property
    def nbytes(self) -> int:
        """Return about how many bytes all records take."""
        keyframes = {id(frame.keyframe): frame.keyframe for frame in self._frames}
        names = {id(keyframe.names): 8 * len(keyframe.names) for keyframe in keyframes.values()}
        whole = sum(names.values()) + sum(keyframe.nbytes for keyframe in keyframes.values())
        return 200 * len(self._summaries) + 150 * len(self._frames) + whole


def _digest_text(records: Iterable[Record]) -> bytes:
    lines = [f"{it.time_ns}\t{it.pod}\t{int(it.outcome)}\t{it.node or it.message}\n" for it in records]
    return "".join(lines).encode()


def rebuild(record: Record, frame: Frame) -> Decision:
    """Put a decision together from its keyframe and the changes up to it."""
    keyframe = frame.keyframe
    codes, raw = keyframe.values_until(frame.changes)
    overrides = {row: (number, verdict) for row, number, verdict in frame.overrides}
    examined = keyframe.examined
    if examined is None:
        examined = np.array([name is not None for name in keyframe.names], dtype=np.bool_)
    if frame.only >= 0:
        examined = np.zeros_like(examined)
        examined[frame.only] = True
    feasible = examined & ~codes.any(axis=0)
    feasible[list(overrides)] = False
    scorers = keyframe.scorers if frame.scored else []
    raw = raw[: len(scorers)]
    normalized = raw.copy()
    for number, scale in enumerate(frame.scales):
        normalized[number] = keyframe.normalize(number, scale, raw[number])
    weights = tuple(weight for _, _, weight in scorers)
    total = np.full(len(keyframe.names), -1, dtype=np.int64)
    if frame.scored:
        weighted = normalized * np.array(weights, dtype=np.int64).reshape(-1, 1)
        total[feasible] = keyframe.floor + weighted.sum(axis=0)[feasible]
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
        examined=examined[kept],
        codes=codes[:, kept],
        raw=raw[:, kept],
        normalized=normalized[:, kept],
        feasible=feasible[kept],
        total=total[kept],
        ties=tuple(keyframe.names[row] or "" for row in ties),
        pre_filter=frame.pre_filter,
        absent=keyframe.absent,
        statuses=statuses,
        overrides={place[row]: verdict for row, verdict in overrides.items() if row in place},
    )


def _statuses(keyframe: Keyframe, codes: Codes, overrides: dict[int, tuple[int, int]]) -> dict[tuple[int, int], Status]:
    found = {verdict: keyframe.explain(*verdict) for verdict in overrides.values()}
    for number in range(len(codes)):
        for verdict in np.unique(codes[number]).tolist():
            if verdict:
                found[number, verdict] = keyframe.explain(number, verdict)
    return found


def _narrow(values: Any) -> Any:
    """Return a copy in the narrowest type that holds all values; one element where all are equal."""
    if not len(values):
        return values.copy()
    low, high = int(values.min()), int(values.max())
    if low == high:
        return values[:1].copy()
    for dtype in (np.int8, np.int16, np.int32):
        info = np.iinfo(dtype)
        if info.min <= low and high <= info.max:
            return values.astype(dtype)
    return values.copy()
