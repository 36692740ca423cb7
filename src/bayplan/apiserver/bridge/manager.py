"""The controller manager of the bridge: one reconcile at a time, tries again what failed, and survives what a controller raises."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from bayplan.apiserver.bridge.narrator import Narrator
from bayplan.apiserver.bridge.object_writer import AwaitsAnswers
from bayplan.base.durations import SECOND_NS
from bayplan.cluster.admission import PodAdmission
from bayplan.cluster.controller_manager import ControllerManager
from bayplan.cluster.controllers.controller import Controller
from bayplan.cluster.controllers.node_lifecycle import NodeLifecycleController
from bayplan.cluster.controllers.pod_gc import PodGarbageCollector
from bayplan.cluster.store import ObjectStore

_log = logging.getLogger("bayplan.bridge")

_FIRST_WAIT_NS = SECOND_NS // 4
_ANSWER_WAIT_NS = 20 * 1_000_000
"""Until a webhook has answered, most likely."""
_LONGEST_WAIT_NS = 16 * SECOND_NS


class PacedManager(ControllerManager):
    """Runs controllers turn by turn.

    Args:
        store, controllers, others, garbage_collector, pod_gc, node_lifecycle, admission: see `ControllerManager`.
        narrator: is told whose turn it is.

    Attributes:
        problems: what controllers raised that was no `InputError`, by ``Controller key``: bugs of ours.
    """

    def __init__(
        self,
        store: ObjectStore,
        controllers: Sequence[Controller],
        *,
        others: Sequence[Controller],
        garbage_collector: Controller,
        pod_gc: PodGarbageCollector,
        node_lifecycle: NodeLifecycleController,
        admission: PodAdmission,
        narrator: Narrator,
    ) -> None:
        super().__init__(
            store,
            controllers,
            others=others,
            garbage_collector=garbage_collector,
            pod_gc=pod_gc,
            node_lifecycle=node_lifecycle,
            admission=admission,
        )
        self._narrator = narrator
        self._waits: dict[tuple[Controller, str], int] = {}
        self.problems: dict[str, Exception] = {}

    def ask(self, controller: Controller, key: str, now_ns: int) -> None:
        """Queue a reconcile that no typed event asks for."""
        self._add(controller, key)
        if self._due_ns is None:
            self._due_ns = now_ns

    def step(self, now_ns: int) -> bool:
        """Do one reconcile that is due by now; say whether there was one."""
        while (due := self._timers.pop_due(now_ns)) is not None:
            time_ns, work = due
            if self._alarms.get(work) == time_ns:
                del self._alarms[work]
                self._add(*work)
        if not self._queue:
            self._due_ns = None
            return False
        work = self._queue.popleft()
        self._queued.discard(work)
        self._narrator.actor = work[0]
        try:
            self._reconcile(work, now_ns)
        finally:
            self._narrator.actor = None
            self._observe_journal()
            self._due_ns = now_ns if self._queue else None
        return True

    def _reconcile(self, work: tuple[Controller, str], now_ns: int) -> None:
        controller, key = work
        try:
            super()._reconcile(work, now_ns)
        except Exception as problem:  # One controller's bug must not stop the others, nor the API.
            _log.exception("%s of %s", type(controller).__name__, key)
            self.problems[f"{type(controller).__name__} {key}"] = problem
            return
        if work not in self._failed:
            self._waits.pop(work, None)
            return
        failure = self.failures[f"{controller.kind.__name__} {key}"]
        self._narrator.failed(controller.kind, key, failure)
        wait_ns = self._waits.get(work, _FIRST_WAIT_NS)
        if isinstance(failure, AwaitsAnswers):
            wait_ns = _ANSWER_WAIT_NS
        else:
            self._waits[work] = min(2 * wait_ns, _LONGEST_WAIT_NS)
        self._alarms[work] = now_ns + wait_ns
        self._timers.set(now_ns + wait_ns, work)
