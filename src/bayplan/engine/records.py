"""Decision records: the decision of every cycle and, at level full, the result of every plugin on every node.

The size of a full record is proportional to the rows that changed since the plan's last decision, and its time to the
nodes: a plan's verdicts and scores are written whole once (a keyframe), then row by row. `Decision` rebuilds them as arrays.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import IntEnum
from hashlib import blake2b

import numpy as np
from msgspec.structs import replace

from bayplan.engine.cycle import ScheduleResult
from bayplan.engine.decision import Decision, Frame, Outcome, Record, rebuild
from bayplan.engine.keyframe import FrameHistory, Keyframe, plugin_outputs
from bayplan.engine.plan import Plan
from bayplan.framework.preemption.account import PreemptionAccount
from bayplan.framework.status import Status
from bayplan.state.arrays import Index
from bayplan.state.cluster_state import ClusterState

__all__ = ["Decision", "Outcome", "Record", "RecordLevel", "Records"]

DIGEST_BLOCK = 4096
"""Number of records hashed at a time."""


class RecordLevel(IntEnum):
    """The level of detail: nothing, one line per cycle, or every verdict and score."""

    OFF = 0
    SUMMARY = 1
    FULL = 2


_OFF, _FULL = RecordLevel.OFF, RecordLevel.FULL


class Records:
    """The records of a run, in the order of the cycles."""

    def __init__(self, level: RecordLevel) -> None:
        self.level = level
        self._summaries: list[Record] = []
        self._frames: list[Frame] = []
        # At level OFF, records live only until they are hashed.
        self._hash = blake2b(digest_size=8)
        self._names: tuple[str | None, ...] = ()
        self._names_position = -1
        self._order: Index = np.zeros(0, dtype=np.intp)
        self._bare: Keyframe | None = None

    def __len__(self) -> int:
        return 0 if self.level is RecordLevel.OFF else len(self._summaries)

    def __iter__(self) -> Iterator[Record]:
        return iter(() if self.level is RecordLevel.OFF else self._summaries)

    def __getitem__(self, number: int) -> Record:
        return self._summaries[number]

    def add(self, record: Record, plan: Plan | None, result: ScheduleResult | None) -> None:
        """Record a cycle, before the decision is applied to the state.

        `plan` and `result` are those behind the decision, for full records; None if the cycle did not start.
        """
        if self.level is _OFF and len(self._summaries) >= DIGEST_BLOCK:
            self._hash.update(_digest_text(self._summaries))
            self._summaries.clear()
        if self.level is _FULL and plan is not None and result is not None:
            record = replace(record, frame=len(self._frames))
            self._frames.append(self._frame(plan, result))
        self._summaries.append(record)

    def report(self, pod: str, point: str, plugin: str, status: Status, timeout_ns: int = 0) -> None:
        """Receive a plugin's result after the cycle: of PostFilter, or other than Success in the binding cycle.

        Does nothing here; hosts that show single attempts override it. `timeout_ns` is the timeout that a Permit plugin
        returned.
        """

    def _frame(self, plan: Plan, result: ScheduleResult) -> Frame:
        state = plan.state
        names = self._node_names(state)
        if not state.nodes.row_of or plan.pre.status is not None:
            # No filter ran: the plan's cached results are those of an earlier cycle.
            if self._bare is None or self._bare.names is not names:
                self._bare = Keyframe(state, names, self._order, np.zeros(len(names), dtype=np.bool_))
            status = plan.pre.status if state.nodes.row_of else None
            outputs = plan.pre_filters.recorded_results() if state.nodes.row_of else ()
            return Frame(self._bare, 0, False, (), (), (), status, preemption=_preemption(result), pre_filters=outputs)
        scored_by = result.scored_by if result.failure is None else None
        keyframe = self._keyframe_of(plan, names, scored_by)
        failures = sorted(result.nominated_failures.items())
        if result.rejected_row >= 0 and not plan.filtered.examined()[result.rejected_row]:
            # PreFilter excluded the nominated node, but it was evaluated before the others.
            failures.append((result.rejected_row, result.rejection))
        overrides = tuple([(row, failure >> 16, failure & 0xFFFF) for row, failure in failures])
        sample = result.sample
        own_ties = scored_by is not plan or result.extended is not None
        return Frame(
            keyframe,
            len(keyframe.rows),
            scored_by is not None,
            tuple(scored_by.totals.scales) if scored_by is not None else (),
            overrides,
            tuple(map(int, result.ties)) if own_ties else None,
            None,
            result.row if result.chose_nominated_node_alone else -1,
            None if sample is None else (sample.start, sample.visited),
            None if result.extended is None else result.extended.results,
            _preemption(result),
            result.check_all,
            plan.pre_filters.recorded_results(),
            scored_by.pre_scores.recorded_results() if scored_by is not None else (),
        )

    def _keyframe_of(self, plan: Plan, names: tuple[str | None, ...], scored_by: Plan | None) -> Keyframe:
        """Return the keyframe of the plan's last such results extended with the changes since, or a new one."""
        histories = plan.histories
        kind = "filters" if scored_by is None else "own scores" if scored_by is plan else "other scores"
        outputs = plugin_outputs(plan, scored_by)
        history: FrameHistory | None = histories.get(kind)
        if history is None or not history.record_changes(plan, outputs):
            moving = frozenset[int]() if history is None else history.moving
            keyframe = Keyframe(plan.state, names, self._order, None)
            history = histories[kind] = FrameHistory(plan, keyframe, outputs, moving)
        return history.keyframe

    def _node_names(self, state: ClusterState) -> tuple[str | None, ...]:
        """Return the names of all rows: the same tuple until a node is added or removed."""
        if self._names_position != state.node_log.end:
            self._names_position = state.node_log.end
            names = tuple(state.nodes.names)
            if names != self._names:
                self._names = names
            self._order = state.nodes.tree.order(state.nodes.row_of)
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

    def frame(self, number: int) -> Frame | None:
        """Return the reference to a cycle's full record, or None if it has none. For hosts that store full records."""
        frame = self._summaries[number].frame
        return self._frames[frame] if frame >= 0 else None

    def digest(self) -> str:
        """Return a hash (16 hexadecimal digits) of all decisions: time, pod, outcome, and node or message."""
        found = self._hash.copy()
        for start in range(0, len(self._summaries), DIGEST_BLOCK):
            found.update(_digest_text(self._summaries[start : start + DIGEST_BLOCK]))
        return found.hexdigest()

    @property
    def nbytes(self) -> int:
        """Return the approximate size of all records, in bytes."""
        keyframes = {id(it.keyframe): it.keyframe for it in self._frames if isinstance(it.keyframe, Keyframe)}.values()
        names = {id(keyframe.names): 8 * len(keyframe.names) for keyframe in keyframes}
        whole = sum(it.whole_nbytes + 8 * (len(it.rows) + len(it.values)) for it in keyframes)
        return 310 * len(self._summaries) + 150 * len(self._frames) + sum(names.values()) + whole


def _preemption(result: ScheduleResult) -> PreemptionAccount | None:
    """Return the account of preemption, or None if it did not run."""
    diagnosis = result.diagnosis
    return diagnosis.preemption() if diagnosis is not None and diagnosis.preemption is not None else None


def _digest_text(records: Iterable[Record]) -> bytes:
    lines = [f"{it.time_ns}\t{it.pod}\t{int(it.outcome)}\t{it.node or it.message}\n" for it in records]
    return "".join(lines).encode()
