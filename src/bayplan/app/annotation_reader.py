"""Read the results that other schedulers write on pods as annotations, and add their attempts to the decision records.

The format is that of kube-scheduler-simulator, whose debuggable scheduler can use this API; imported pods may have such
annotations, too. Attempts are read on a separate thread, in the order in which they were written. Annotations of this server
(`bayplan.app.annotator`) are ignored.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from typing import NamedTuple

import msgspec

from bayplan.app.pod_task import Job, PodTask, store_problem
from bayplan.base.clock import Clock
from bayplan.base.errors import InputError
from bayplan.engine.scheduler import Scheduler
from bayplan.formats.result_annotations import HISTORY, PREFIX, SELECTED_NODE, decode, has_results, history_of, renamed
from bayplan.live.annotated_attempts import annotated_attempt
from bayplan.live.decision_store import AnnotatedAttempt, DecisionStore
from bayplan.live.object_mirror import Change
from bayplan.objects.pod import Pod, waiting_message

MAX_OWN_ENTRIES = 64
"""Maximum number of attempts per pod that are remembered as written by this server.

Each is read back soon afterwards.
"""

_log = logging.getLogger("bayplan.annotation_reader")

Entry = Mapping[str, str]


class _Seen(msgspec.Struct):
    """The entries of a pod's history read so far: the hashes of those in the last version, and their total number."""

    hashes: list[int] = msgspec.field(default_factory=list)
    count: int = 0


class _Update(NamedTuple):
    """A version of a pod to read.

    `nodes`: the names of the cluster's nodes; empty if the newest attempt may be older than this server.
    """

    pod: Pod
    nodes: Sequence[str]


class AnnotationReader:
    """Reads the attempts in pods' annotations, and adds them to the decision records.

    Args:
        decisions: the records that attempts and problems are added to.
        submit: the function that runs a function on the engine's thread, which owns `decisions`.
        clock: the clock. The annotations have no times, so an attempt gets the time at which it was read.
        node_names: the function that returns the nodes of the cluster; called on the loop.
    """

    def __init__(
        self,
        decisions: DecisionStore,
        submit: Callable[[Callable[[Scheduler], None]], Future[None]],
        clock: Clock,
        node_names: Callable[[], Sequence[str]],
    ) -> None:
        self._decisions = decisions
        self._submit = submit
        self._clock = clock
        self._node_names = node_names
        self._seen: dict[str, _Seen] = {}
        self._own: dict[str, deque[int]] = {}
        self._waiting: deque[_Update | str] = deque()  # A string is the uid of a deleted pod.
        self._task = PodTask(self._next_job, self._fail, (InputError,), _log, "reading the annotations")

    @property
    def is_idle(self) -> bool:
        """Whether nothing waits to be read."""
        return self._task.is_idle

    # --- on the loop --------------------------------------------------------------------------------------------------

    def take(self, changes: Sequence[Change]) -> None:
        """Queue the pods whose annotations have changed."""
        for change in changes:
            old, new = change.old, change.new
            if isinstance(old, Pod) and new is None:
                # Queue the deletion after the pod's versions, because reading those stores state about the pod.
                self._waiting.append(old.metadata.uid)
            elif isinstance(new, Pod) and has_results(new.metadata.annotations):
                if isinstance(old, Pod) and old.metadata.annotations == new.metadata.annotations:
                    continue
                # Annotations of a new pod may be older than this server or come from another cluster.
                self._waiting.append(_Update(new, self._node_names() if isinstance(old, Pod) else ()))
        if self._waiting:
            self._task.start()

    def expect_own(self, uid: str, annotations: Entry) -> None:
        """Remember the newest attempt in annotations that this server is about to write, to ignore it when read."""
        own = self._own.setdefault(uid, deque(maxlen=MAX_OWN_ENTRIES))
        own.append(hash(_entry_key(_entries(annotations)[-1])))

    @property
    def cached_pods(self) -> int:
        """The number of pods about which state is stored."""
        return len(self._seen.keys() | self._own.keys())

    def forget(self, uid: str) -> None:
        """Drop the state of a deleted pod."""
        self._seen.pop(uid, None)
        self._own.pop(uid, None)

    def _next_job(self) -> Job | None:
        while self._waiting:
            update = self._waiting.popleft()
            if isinstance(update, _Update):
                return update.pod.key, partial(self._read, update)
            self.forget(update)
        return None

    async def _read(self, update: _Update) -> None:
        found = await asyncio.to_thread(self._new_attempts, update)
        await asyncio.wrap_future(self._submit(partial(self._add, found)))
        self._decisions.annotation_problems.pop(update.pod.key, None)

    def _add(self, attempts: Sequence[AnnotatedAttempt], scheduler: Scheduler) -> None:
        for attempt in attempts:
            self._decisions.add_annotated(attempt)

    def _fail(self, key: str, problem: str) -> None:
        _log.warning("the result annotations of pod %s can't be read: %s", key, problem)
        store_problem(self._decisions.annotation_problems, key, problem)

    # --- on a worker thread -------------------------------------------------------------------------------------------

    def _new_attempts(self, update: _Update) -> list[AnnotatedAttempt]:
        """Return the attempts in a version of a pod that have not been read before, oldest first."""
        pod, uid = update.pod, update.pod.metadata.uid
        entries = _entries(renamed(pod.metadata.annotations))
        seen = self._seen.setdefault(uid, _Seen())
        hashes = [hash(_entry_key(entry)) for entry in entries]
        known = known_entries(seen.hashes, hashes)
        seen.hashes = hashes
        found = []
        for place in range(known, len(entries)):
            seen.count += 1
            if hashes[place] in self._own.get(uid, ()):
                continue
            newest = place == len(entries) - 1
            try:
                attempt = annotated_attempt(
                    decode(entries[place]),
                    pod=pod.key,
                    attempt=seen.count,
                    time_ns=self._clock.now_ns(),
                    scheduler_name=pod.spec.scheduler_name,
                    nodes=update.nodes if newest else (),
                    message=_message(pod) if newest else "",
                )
            except OverflowError:
                raise InputError(
                    f"annotation {PREFIX}score-result",
                    got="a larger one",
                    wanted="64-bit scores",
                ) from None
            found.append(attempt)
        return found


def _entries(annotations: Entry) -> list[Entry]:
    """Return the attempts in annotations, oldest first; without a history, only the newest attempt."""
    newest = {key: text for key, text in annotations.items() if key.startswith(PREFIX) and key != HISTORY}
    history: list[Entry] = [*history_of(annotations)]
    # Entries without results are not attempts, and 256 KiB of annotations can hold 87,000 of them.
    return [entry for entry in history or [newest] if has_results(entry)]


def _entry_key(entry: Entry) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(entry.items()))


def known_entries(before: Sequence[int], now: Sequence[int]) -> int:
    """Return how many entries at the start of a history have been read before.

    Histories get new entries at the end and drop old ones.

    This is the length of the longest suffix of `before` that is a prefix of `now`, found in linear time (Knuth, Morris
    and Pratt).
    """
    shorter = [0] * len(now)
    length = 0
    for place in range(1, len(now)):
        while length and now[place] != now[length]:
            length = shorter[length - 1]
        length += now[place] == now[length]
        shorter[place] = length
    length = 0
    for each in before:
        while length and (length == len(now) or now[length] != each):
            length = shorter[length - 1]
        length += length < len(now) and now[length] == each
    return length


def _message(pod: Pod) -> str:
    """Return why a pod has no node, according to its status; "" if its annotations name a selected node."""
    if pod.metadata.annotations.get(SELECTED_NODE):
        return ""
    return waiting_message(pod)
