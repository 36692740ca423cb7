"""The decisions of a long-running scheduler, by number and by pod, within limits.

The engine's thread writes; any thread may read at the same time. A summary outlives the full record of its cycle. Above a
limit, the oldest records are dropped first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from types import MappingProxyType
from typing import NamedTuple

from msgspec.structs import replace

from bayplan.base.errors import InputError
from bayplan.engine.cycle import ScheduleResult
from bayplan.engine.decision import Decision, Frame, KeyframeValues, Record, rebuild
from bayplan.engine.keyframe import Keyframe
from bayplan.engine.plan import Plan
from bayplan.engine.queue import SchedulingQueue
from bayplan.engine.records import DIGEST_BLOCK, RecordLevel, Records
from bayplan.framework.profile import Profile
from bayplan.framework.status import Status
from bayplan.live.instrumented_queue import InstrumentedQueue, Origin

SUMMARY_BYTES = 600
"""Approximate size of a summary in bytes, including its message and its entry in the index by pod."""

FRAME_BYTES = 650
KEYFRAME_BYTES = 1200
ARRAY_BYTES = 112
TIE_BYTES = 36
"""Approximate sizes in bytes: of a frame; of a keyframe (its lists, and the specs and params of plugins that it
references) without its arrays; of an array without its numbers; and of a row of a stored tie set.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """Limits of the stored records.

    Attributes:
        summaries: the maximum number of summaries.
        full: the maximum number of full records.
        full_bytes: the approximate maximum size of all full records.
        full_age_ns: the maximum age of a full record, by the scheduler's clock; None: unlimited.
    """

    summaries: int = 500_000
    full: int = 100_000
    full_bytes: int = 512 << 20
    full_age_ns: int | None = None

    def __post_init__(self) -> None:
        for name, least in (("summaries", 1), ("full", 0), ("full_bytes", 0)):
            if getattr(self, name) < least:
                raise InputError(f"retention: {name}", got=str(getattr(self, name)), wanted=f"at least {least}")


class PointResult(NamedTuple):
    """A plugin's status after a cycle: of PostFilter if it made room, of later points unless it is plain success.

    Attributes:
        point: ``PostFilter``, ``Reserve``, ``Permit``, ``PreBind`` or ``Bind``.
        plugin: the name of the plugin; "" if only the host knows it.
        status: the status.
        timeout_ns: the timeout of Permit; 0 for other points.
    """

    point: str
    plugin: str
    status: Status
    timeout_ns: int


@dataclass(frozen=True, slots=True)
class LatePoints:
    """The plugins of a profile at the extension points after filtering and scoring, in the order of execution."""

    scheduler_name: str
    post_filter: tuple[str, ...]
    reserve: tuple[str, ...]
    permit: tuple[str, ...]
    pre_bind: tuple[str, ...]
    bind: tuple[str, ...]
    post_bind: tuple[str, ...]


class _KeyframeUse:
    """The number of stored records that use a keyframe, and its approximate size: initially, and when last counted."""

    __slots__ = ("counted", "frames", "initial")

    def __init__(self, initial: int) -> None:
        self.frames = 0
        self.initial = initial
        self.counted = 0


class AnnotatedAttempt(NamedTuple):
    """An attempt of another scheduler, read by `bayplan.live.annotated_attempts`.

    Attributes:
        record: the summary.
        frame: the full record.
        points, late_results: the plugins and results at the extension points after scoring.
        nbytes: the size of the keyframe in bytes.
        refusal: the record of the rejection if the pod lost its chosen node again, else None.
    """

    record: Record
    frame: Frame
    points: LatePoints
    late_results: tuple[PointResult, ...]
    nbytes: int
    refusal: Record | None


class _Full(NamedTuple):
    frame: Frame
    points: LatePoints


class DecisionStore(Records):
    """The decisions of a scheduler, numbered from 0 in the order of its cycles.

    Args:
        level: the detail of recorded decisions; it must not be changed later.
        retention: the limits.

    Attributes:
        annotation_problems: why the result annotations of a pod are invalid, by key of the pod; written on the event
            loop.
        oldest: the number of the oldest stored summary.
        oldest_full: the number of the oldest full record; the number of the next decision if there is none.
    """

    def __init__(self, level: RecordLevel, retention: Retention | None = None) -> None:
        super().__init__(level)
        self.retention = retention or Retention()
        self.annotation_problems: dict[str, str] = {}
        self.oldest = 0
        self.oldest_full = 0
        self._count = 0
        self._stored: dict[int, Record] = {}
        self._full: dict[int, _Full] = {}
        self._late_results: dict[int, tuple[PointResult, ...]] = {}
        self._by_pod: dict[str, tuple[int, ...]] = {}
        self._keyframes: dict[int, _KeyframeUse] = {}
        self._full_bytes = 0
        self._points: dict[int, tuple[Profile, LatePoints]] = {}
        self._origins: dict[int, Origin] = {}
        self._annotated: set[int] = set()
        self._origin_of: Callable[[str], Origin | None] = lambda key: None
        self._digest = blake2b(digest_size=8)
        self._unhashed: list[str] = []

    # --- reading, from any thread -------------------------------------------------------------------------------------

    def __len__(self) -> int:
        """Return the number of decisions, including dropped ones."""
        return self._count

    def __iter__(self) -> Iterator[Record]:
        """Iterate over the stored summaries, oldest first."""
        for number in range(self.oldest, self._count):
            record = self._stored.get(number)
            if record is not None:
                yield record

    def __getitem__(self, number: int) -> Record:
        """Return the summary of a decision.

        Raises:
            LookupError: the decision does not exist, or was dropped.
        """
        record = self._stored.get(number)
        if record is None:
            why = "was dropped" if 0 <= number < self.oldest else "does not exist"
            stored = f"{self.oldest} to {self._count - 1} are stored" if self._stored else "none is stored"
            raise LookupError(f"decision {number} {why}; {stored}")
        return record

    def numbers_of(self, pod: str) -> Sequence[int]:
        """Return the numbers of the stored decisions about a pod (``namespace/name``), oldest first."""
        return self._by_pod.get(pod, ())

    def decision(self, number: int) -> Decision:
        """Return the full record of a decision as arrays.

        Raises:
            LookupError: the decision does not exist, was dropped, or has only a summary.
            PluginFailure: a custom plugin failed to convert its verdicts to reasons.
        """
        record, full = self[number], self._full.get(number)
        if full is None:
            why = (
                "was dropped; its summary is still stored"
                if record.frame >= 0
                else "was not recorded at this record level"
            )
            raise LookupError(f"the full record of decision {number} of {record.pod} {why}")
        return rebuild(record, full.frame)

    def frame(self, number: int) -> Frame | None:
        """Return the full record of a decision, or None."""
        full = self._full.get(number)
        return None if full is None else full.frame

    def late_points(self, number: int) -> LatePoints | None:
        """Return the plugins after filtering and scoring of a decision, or None if it has no full record."""
        full = self._full.get(number)
        return None if full is None else full.points

    def late_results(self, number: int) -> tuple[PointResult, ...]:
        """Return the statuses of plugins after a decision, except plain success; oldest first."""
        return self._late_results.get(number, ())

    def origin(self, number: int) -> Origin | None:
        """Return the event that moved the pod to the active queue before a decision, and the queue it was popped from.

        None if unknown or not stored.
        """
        return self._origins.get(number)

    @property
    def nbytes(self) -> int:
        """The approximate size of all records in bytes."""
        return SUMMARY_BYTES * len(self._stored) + self._full_bytes

    def memory(self) -> Mapping[str, int]:
        """Return the numbers of summaries, full records and keyframes, and their approximate sizes in bytes."""
        return MappingProxyType(
            {
                "summaries": len(self._stored),
                "summary_bytes": SUMMARY_BYTES * len(self._stored),
                "full": len(self._full),
                "full_bytes": self._full_bytes,
                "keyframes": len(self._keyframes),
            }
        )

    def digest(self) -> str:
        """Return a hash (16 hexadecimal digits) of all decisions, including dropped ones, as `Records.digest`."""
        found = self._digest.copy()
        found.update("".join(self._unhashed).encode())
        return found.hexdigest()

    # --- writing, from the engine's thread ----------------------------------------------------------------------------

    def follow(self, queue: SchedulingQueue) -> None:
        """Use a queue as the source of origins, if it records origins."""
        if isinstance(queue, InstrumentedQueue):
            self._origin_of = queue.origin_of

    def add(self, record: Record, plan: Plan | None, result: ScheduleResult | None) -> None:
        """Record a cycle; see `Records.add`."""
        number, pod = self._count, record.pod
        if self.level is RecordLevel.FULL and plan is not None and result is not None:
            frame = self._frame(plan, result)
            self._store_full(number, frame, self._late_points(plan.profile), _initial_size(frame.keyframe))
            record = replace(record, frame=number)
        if self.level is not RecordLevel.OFF:
            origin = self._origin_of(pod)
            if origin is not None:
                self._origins[number] = origin
        self._store_summary(number, record)
        self._unhashed.append(f"{record.time_ns}\t{pod}\t{int(record.outcome)}\t{record.node or record.message}\n")
        if len(self._unhashed) >= DIGEST_BLOCK:
            self._digest.update("".join(self._unhashed).encode())
            self._unhashed.clear()
        self._expire_after(record)

    def add_annotated(self, attempt: AnnotatedAttempt) -> None:
        """Record an attempt of another scheduler, read from annotations. It does not count in the digest."""
        number, record = self._count, attempt.record
        if self.level is RecordLevel.FULL:
            self._store_full(number, attempt.frame, attempt.points, attempt.nbytes)
            record = replace(record, frame=number)
            if attempt.late_results:
                self._late_results[number] = attempt.late_results
        for each in (record, attempt.refusal):
            if each is not None:
                if self.level is not RecordLevel.OFF:
                    self._annotated.add(self._count)
                self._store_summary(self._count, each)
                self._expire_after(each)

    def is_annotated(self, number: int) -> bool:
        """Return whether a decision was read from another scheduler's annotations."""
        return number in self._annotated

    def _store_summary(self, number: int, record: Record) -> None:
        if self.level is not RecordLevel.OFF:
            self._stored[number] = record
            self._by_pod[record.pod] = (*self._by_pod.get(record.pod, ()), number)
        else:
            self.oldest = number + 1
        # Readers read the count first, so the record must be stored before it.
        self._count = number + 1

    def _expire_after(self, record: Record) -> None:
        if len(self._stored) > self.retention.summaries:
            self._drop_summary()
        if record.frame >= 0:
            self.expire(record.time_ns)

    def report(self, pod: str, point: str, plugin: str, status: Status, timeout_ns: int = 0) -> None:
        """Record a plugin's status for a pod after its latest decision, unless it is plain success."""
        numbers = self._by_pod.get(pod)
        if numbers:
            self._late_results[numbers[-1]] = (
                *self._late_results.get(numbers[-1], ()),
                PointResult(point, plugin, status, timeout_ns),
            )

    def expire(self, now_ns: int) -> None:
        """Drop the oldest full records while they exceed a limit; called for every full record, and periodically."""
        retention, full = self.retention, self._full
        while full:
            oldest = self.oldest_full
            if len(full) <= retention.full and self._full_bytes <= retention.full_bytes:
                if retention.full_age_ns is None:
                    return
                record = self._stored.get(oldest)
                if record is not None and record.time_ns + retention.full_age_ns >= now_ns:
                    return
            self._drop_full(oldest)

    def _store_full(self, number: int, frame: Frame, points: LatePoints, initial: int) -> None:
        """Store a full record; `initial` is the size of its keyframe in bytes."""
        if not self._full:
            self.oldest_full = number
        self._full[number] = _Full(frame, points)
        keyframe = frame.keyframe
        known = self._keyframes.get(id(keyframe))
        if known is None:
            # Frames reference their keyframe, so its id is not reused.
            known = self._keyframes[id(keyframe)] = _KeyframeUse(initial)
        size = known.initial + _size_of_changes(keyframe)
        self._full_bytes += _frame_size(frame) + size - known.counted
        known.frames += 1
        known.counted = size

    def _drop_full(self, number: int) -> None:
        full = self._full.pop(number)
        known = self._keyframes[id(full.frame.keyframe)]
        known.frames -= 1
        self._full_bytes -= _frame_size(full.frame)
        if not known.frames:
            self._full_bytes -= known.counted
            del self._keyframes[id(full.frame.keyframe)]
        number += 1
        while number < self._count and number not in self._full:
            number += 1
        self.oldest_full = number

    def _drop_summary(self) -> None:
        number = self.oldest
        while number not in self._stored:
            number += 1
        record = self._stored.pop(number)
        if number in self._full:
            self._drop_full(number)
        self._late_results.pop(number, None)
        self._origins.pop(number, None)
        self._annotated.discard(number)
        left = self._by_pod[record.pod][1:]
        if left:
            self._by_pod[record.pod] = left
        else:
            del self._by_pod[record.pod]
        self.oldest = number + 1

    def _late_points(self, profile: Profile) -> LatePoints:
        known = self._points.get(id(profile))
        if known is None or known[0] is not profile:
            points = LatePoints(
                profile.scheduler_name,
                tuple(plugin.name for plugin in profile.post_filter),
                tuple(plugin.name for plugin in profile.reserve),
                tuple(plugin.name for plugin in profile.permit),
                tuple(plugin.name for plugin in profile.pre_bind),
                tuple(plugin.name for plugin in profile.bind),
                tuple(plugin.name for plugin in profile.post_bind),
            )
            known = self._points[id(profile)] = (profile, points)
        return known[1]


def _frame_size(frame: Frame) -> int:
    return FRAME_BYTES + TIE_BYTES * (len(frame.ties or ()) + len(frame.overrides))


def _initial_size(keyframe: KeyframeValues) -> int:
    """Return the approximate size of a keyframe in bytes."""
    if not isinstance(keyframe, Keyframe):
        return 0
    return KEYFRAME_BYTES + keyframe.whole_nbytes + ARRAY_BYTES * len(keyframe.arrays)


def _size_of_changes(keyframe: KeyframeValues) -> int:
    return 8 * (len(keyframe.rows) + len(keyframe.values)) if isinstance(keyframe, Keyframe) else 0
