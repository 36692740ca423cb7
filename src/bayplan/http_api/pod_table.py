"""The pods as columns, in sync with the cluster, so that lists of 50,000 pods can be filtered, sorted and counted quickly.

The event loop writes; worker threads read frozen copies (`PodColumns`). Copying the arrays takes a millisecond, while a
reader could hold a lock for a tenth of a second.

A write only updates the pod's timeline. The columns are filled from the timelines of the changed pods before they are
read: most of the time, nobody reads them.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from itertools import islice

import numpy as np

from bayplan.base.go_text.times import parse_instant
from bayplan.engine.decision import Outcome, Record
from bayplan.http_api.named_rows import NamedRows, NameOrder, TextCodes
from bayplan.objects.pod import Pod, waiting_message
from bayplan.objects.requests import Amounts, RequestGates, accounted_requests
from bayplan.sim.result import FATES, PodFate, PodTimeline
from bayplan.state.arrays import Bools, Index, Ints

MAX_DELETED = 10_000
"""Maximum number of deleted pods to remember, for their pages and to compute past free capacity."""

NEVER = np.iinfo(np.int64).max
"""A time later than any other."""

_FIRST_ROWS = 1024
_SPARE_MESSAGES = 10_000


class PodStatus(IntEnum):
    """The status of a pod, in the order of lists."""

    WAITING = 0
    GATED = 1
    PLACED = 2
    TERMINATING = 3
    FINISHED = 4

    @property
    def text(self) -> str:
        """Return the name of the status in the API."""
        return self.name.lower()


STATUS_NAMES = {status.text: status for status in PodStatus}


def status_of(pod: Pod) -> PodStatus:
    """Return the status of a pod, derived from the object alone."""
    if pod.status.phase in FATES:
        return PodStatus.FINISHED
    if pod.metadata.deletion_timestamp is not None:
        return PodStatus.TERMINATING
    if pod.spec.node_name:
        return PodStatus.PLACED
    return PodStatus.GATED if pod.spec.scheduling_gates else PodStatus.WAITING


@dataclass(frozen=True, eq=False)
class PodColumns:
    """A frozen copy of all pods. Rows without a pod have an empty key.

    Attributes:
        version: changes with every write.
        keys_version: changes when pods are added or removed.
        keys: the key ``namespace/name`` of each row.
        lives: the timeline of each row.
        rows: the row of each key.
        used: bool[rows], whether the row has a pod.
        born: int64[rows], the `keys_version` in which the pod was added.
        status: int64[rows], values of `PodStatus`.
        node, namespace, message: int64[rows], indexes into `nodes`, `namespaces` and `messages`.
        cpu, memory, priority, attempts, created_ns: int64[rows].
        scheduler: int64[rows], indexes into `schedulers`.
        configured: the scheduler names that have a profile; None if unknown.
        bound_ns, ended_ns: int64[rows], the times when the pod got and released its node; `NEVER` if it has not.
        imported: int64[rows], 1 for pods that were imported with their node.
        shape: int64[rows], indexes into `shapes`.
        shapes: the distinct requests of pods.
    """

    version: int
    keys_version: int
    keys: Sequence[str]
    lives: Sequence[PodTimeline | None]
    rows: Mapping[str, int]
    used: Bools
    born: Ints
    status: Ints
    node: Ints
    namespace: Ints
    message: Ints
    cpu: Ints
    memory: Ints
    priority: Ints
    attempts: Ints
    created_ns: Ints
    bound_ns: Ints
    ended_ns: Ints
    imported: Ints
    shape: Ints
    scheduler: Ints
    nodes: Sequence[str]
    namespaces: Sequence[str]
    messages: Sequence[str]
    schedulers: Sequence[str]
    configured: frozenset[str] | None
    shapes: Sequence[Amounts]
    order: NameOrder

    def by_name(self) -> Index:
        """Return the rows that have a pod, ordered by key (``namespace/name``)."""
        return self.order.at(self.keys_version, self.keys, self.used, self.born)

    def is_unattended(self, scheduler_name: str) -> bool:
        """Return whether it is known that no profile has this scheduler name."""
        return self.configured is not None and scheduler_name not in self.configured

    def unattended(self) -> dict[str, Bools]:
        """Map each scheduler name without a profile to bool[rows]: the waiting pods with this name that have no message."""
        silent = self.used & (self.status == PodStatus.WAITING) & (self.message == 0)
        codes = np.unique(self.scheduler[silent]).tolist()
        names = {code: self.schedulers[code] for code in codes}
        return {name: silent & (self.scheduler == code) for code, name in names.items() if self.is_unattended(name)}

    def counts(self) -> dict[str, int]:
        """Return the number of pods by status."""
        found = np.bincount(self.status[self.used], minlength=len(PodStatus))
        return {status.text: int(found[status]) for status in PodStatus}


_COLUMNS = (
    "status", "node", "namespace", "message", "cpu", "memory", "priority", "attempts", "created_ns",
    "bound_ns", "ended_ns", "imported", "shape", "scheduler",
)  # fmt: skip


class PodTable:
    """The pods of the cluster, and the most recently deleted ones. Use on one thread.

    Args:
        gates: the feature gates that determine a pod's requests.
        profiles: returns the scheduler names that have a profile; None if unknown.

    Attributes:
        version: changes with every write.
        deleted: the timelines of deleted pods by key; keys whose pods were deleted longest ago come first.
        shapes: the distinct requests of pods, in units of the state.
    """

    def __init__(self, gates: RequestGates, profiles: Callable[[], frozenset[str]] | None = None) -> None:
        self.version = 0
        self._profiles = profiles
        self.deleted: OrderedDict[str, list[PodTimeline]] = OrderedDict()
        self._gates = gates
        self._columns = {name: np.zeros(_FIRST_ROWS, dtype=np.int64) for name in _COLUMNS}
        self._named = NamedRows(_FIRST_ROWS, self._columns)
        self._lives: list[PodTimeline | None] = []
        self._nodes, self._namespaces, self._messages = TextCodes(), TextCodes(), TextCodes()
        self._schedulers = TextCodes()
        self.shapes: list[Amounts] = []
        self._shape_codes: dict[tuple[tuple[str, int], ...], int] = {}
        # Rows whose timeline has changed since their columns were filled.
        self._changed: dict[int, None] = {}
        self._order = NameOrder()
        self._frozen: PodColumns | None = None
        self._count_deleted = 0

    def __len__(self) -> int:
        return len(self._named.rows)

    @property
    def changed(self) -> int:
        """Return the number of rows whose columns are out of date."""
        return len(self._changed)

    # --- reading ------------------------------------------------------------------------------------------------------

    def life(self, key: str) -> PodTimeline | None:
        """Return the timeline of an existing pod, or None."""
        row = self._named.rows.get(key)
        return None if row is None else self._lives[row]

    def timelines_of(self, key: str) -> list[PodTimeline]:
        """Return all remembered timelines of pods with this key, the newest last."""
        found = list(self.deleted.get(key, ()))
        now = self.life(key)
        return [*found, now] if now is not None else found

    def requests_of(self, pod: Pod | None) -> Amounts:
        """Return a pod's requests, in units of the state; {} for None."""
        return {} if pod is None else accounted_requests(pod, self._gates).requests

    def fill(self, rows: int) -> None:
        """Fill the columns of at most `rows` changed rows.

        Call on the writing thread, before `freeze` if many pods may have changed: a row takes a few microseconds.
        """
        changed = self._changed
        chosen = list(changed) if len(changed) <= rows else list(islice(changed, rows))
        if chosen:
            self._fill(chosen)
        for row in chosen:
            del changed[row]

    def freeze(self) -> PodColumns:
        """Return a frozen copy of the columns. Call on the writing thread."""
        self.fill(len(self._changed))
        frozen = self._frozen
        configured = None if self._profiles is None else self._profiles()
        if frozen is not None and frozen.version == self.version and frozen.configured == configured:
            return frozen
        named, count = self._named, len(self._named.names)
        columns = {name: values[:count].copy() for name, values in self._columns.items()}
        rows: Mapping[str, int]
        if frozen is not None and frozen.keys_version == named.version:
            keys, lives, rows = frozen.keys, frozen.lives, frozen.rows
        else:
            keys, lives, rows = named.names.copy(), self._lives.copy(), named.rows.copy()
        self._frozen = PodColumns(
            version=self.version,
            keys_version=named.version,
            keys=keys,
            lives=lives,
            rows=rows,
            used=named.used[:count].copy(),
            born=named.born[:count].copy(),
            nodes=self._nodes.texts,
            namespaces=self._namespaces.texts,
            messages=self._messages.texts,
            schedulers=self._schedulers.texts,
            configured=configured,
            shapes=self.shapes,
            order=self._order,
            **columns,
        )
        return self._frozen

    # --- writing ------------------------------------------------------------------------------------------------------

    def put(self, pod: Pod, workload: str, now_ns: int, *, arrived_ns: int | None = None) -> None:
        """Add or update a pod.

        Args:
            pod: the pod.
            workload: its workload.
            now_ns: the time of the change.
            arrived_ns: when the pod was added to the cluster; by default, its creation time.
        """
        metadata, spec = pod.metadata, pod.spec
        key = f"{metadata.namespace}/{metadata.name}"
        row = self._named.rows.get(key)
        if row is not None:
            life = self._lives[row]
            if life is not None and life.uid != metadata.uid:
                self.remove(key, now_ns)
                row = None
        if row is None:
            row = self._new_row(key, pod, workload, now_ns, arrived_ns)
        life = self._lives[row]
        assert life is not None
        life.workload = workload
        self._follow(life, pod, now_ns)
        message = "" if spec.node_name else waiting_message(pod)
        if message:
            life.message = message
        self.version += 1
        self._changed[row] = None

    def set_workload(self, pod: Pod, workload: str) -> None:
        """Set the workload of a pod, unless the table does not contain the pod yet."""
        row = self._named.rows.get(pod.key)
        life = None if row is None else self._lives[row]
        if row is not None and life is not None and life.uid == pod.metadata.uid and life.workload != workload:
            life.workload = workload
            self.version += 1
            self._changed[row] = None

    def _new_row(self, key: str, pod: Pod, workload: str, now_ns: int, arrived_ns: int | None) -> int:
        row = self._named.add(key)
        if row == len(self._lives):
            self._lives.append(None)
        metadata, spec = pod.metadata, pod.spec
        if arrived_ns is None:
            created_ns = parse_instant(metadata.creation_timestamp)
            # The creation time is in whole seconds, so that the previous pod of this name may have been there then.
            before_ns = max((life.ended_ns or 0 for life in self.deleted.get(key, ())), default=0)
            arrived_ns = min(now_ns, max(now_ns if created_ns is None else created_ns, before_ns + 1))
        self._lives[row] = PodTimeline(
            key=key,
            uid=metadata.uid,
            workload=workload,
            priority=spec.priority or 0,
            scheduler_name=spec.scheduler_name,
            arrived_ns=arrived_ns,
            imported=bool(spec.node_name),
        )
        return row

    def _fill(self, rows: list[int]) -> None:
        """Fill the columns of rows from their timelines: all of them, or none if an exception is raised."""
        at = np.array(rows, dtype=np.intp)
        lives = [life for life in map(self._lives.__getitem__, rows) if life is not None]
        pods = [life.pod for life in lives if life.pod is not None]
        assert len(pods) == len(lives) == len(rows)
        shapes = [self.shape_of(pod) for pod in pods]
        amounts = [self.shapes[shape] for shape in shapes]
        created = [parse_instant(pod.metadata.creation_timestamp) for pod in pods]
        values: dict[str, Sequence[int]] = {
            "status": [status_of(pod) for pod in pods],
            "node": [self._nodes.code(pod.spec.node_name) for pod in pods],
            "namespace": [self._namespaces.code(pod.metadata.namespace) for pod in pods],
            "message": self._message_codes(lives),
            "cpu": [each.get("cpu", 0) for each in amounts],
            "memory": [each.get("memory", 0) for each in amounts],
            "priority": [pod.spec.priority or 0 for pod in pods],
            "attempts": [life.attempts for life in lives],
            "created_ns": [
                life.arrived_ns if created_ns is None else created_ns
                for created_ns, life in zip(created, lives, strict=True)
            ],
            "bound_ns": [NEVER if life.bound_ns is None else life.bound_ns for life in lives],
            "ended_ns": [NEVER if life.ended_ns is None else life.ended_ns for life in lives],
            "imported": [life.imported for life in lives],
            "shape": shapes,
            "scheduler": [self._schedulers.code(pod.spec.scheduler_name) for pod in pods],
        }
        filled = {name: np.array(values[name], dtype=np.int64) for name in _COLUMNS}
        for name in _COLUMNS:
            self._columns[name][at] = filled[name]

    def shape_of(self, pod: Pod) -> int:
        """Return the index of a pod's requests in `shapes`. Call on the writing thread."""
        amounts = accounted_requests(pod, self._gates).requests
        shape = self._shape_codes.setdefault((*amounts.items(),), len(self.shapes))
        if shape == len(self.shapes):
            self.shapes.append(amounts)
        return shape

    def _message_codes(self, lives: Sequence[PodTimeline]) -> list[int]:
        """Return the codes of the messages of pods that have no node. Drop unused messages first if there are many."""
        messages = self._messages
        if len(messages) > _SPARE_MESSAGES + 4 * len(self):
            column = self._columns["message"]
            column[~self._named.used] = 0
            column[:] = messages.keep_only(np.unique(column).tolist())[column]
        return [0 if life.node else messages.code(life.message) for life in lives]

    def _follow(self, life: PodTimeline, pod: Pod, now_ns: int) -> None:
        life.pod = pod
        phase = pod.status.phase
        if pod.spec.node_name and life.bound_ns is None:
            life.bound_ns, life.node, life.fate = now_ns, pod.spec.node_name, PodFate.PLACED
        if phase == "Running":
            life.started_ns = life.started_ns or now_ns
        elif life.ended_ns is None and phase in FATES:
            life.ended_ns, life.fate = now_ns, FATES[phase]
        if life.fate in (PodFate.PENDING, PodFate.GATED):
            life.fate = PodFate.GATED if pod.spec.scheduling_gates else PodFate.PENDING

    def remove(self, key: str, now_ns: int) -> None:
        """Remove a deleted pod, and remember its timeline."""
        row = self._named.remove(key)
        if row is None:
            return
        life = self._lives[row]
        assert life is not None
        if life.ended_ns is None:
            life.ended_ns, life.fate = now_ns, PodFate.DELETED
        self.version += 1
        self._changed.pop(row, None)
        self._lives[row] = None
        self._remember(life)

    def _remember(self, life: PodTimeline) -> None:
        self.deleted.setdefault(life.key, []).append(life)
        self.deleted.move_to_end(life.key)
        self._count_deleted += 1
        while self._count_deleted > MAX_DELETED:
            oldest = next(iter(self.deleted))
            self.deleted[oldest].pop(0)
            self._count_deleted -= 1
            if not self.deleted[oldest]:
                del self.deleted[oldest]

    def take_record(self, record: Record) -> None:
        """Process the summary record of a decision about a pod, unless it is about an earlier pod of the same name."""
        row = self._named.rows.get(record.pod)
        if row is None:
            return
        life = self._lives[row]
        assert life is not None
        if record.time_ns < life.arrived_ns:
            return
        self.version += 1
        self._changed[row] = None
        life.attempts = record.attempt
        if record.outcome is Outcome.SCHEDULED:
            # The pod has had its node since the decision, which is earlier than the API's update.
            if life.node == record.node and life.bound_ns is not None and not life.imported:
                life.bound_ns = min(life.bound_ns, record.time_ns)
        elif record.message:
            life.last_failure_ns = record.time_ns
            if not life.node:
                life.message = record.message
