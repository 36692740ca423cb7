"""Write the results of attempts on pods as annotations, in the format of kube-scheduler-simulator.

An attempt is written when the pod is bound, or when its status reports why it is not bound. Texts are rendered on a
separate thread, because those of a large cluster take time. If they exceed Kubernetes' size limit, the least
interesting parts are omitted.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections import OrderedDict
from functools import partial
from typing import cast

from bayplan.apiserver.rest.api import Api
from bayplan.apiserver.rest.messages import Request, Response
from bayplan.app.annotation_reader import AnnotationReader
from bayplan.app.pod_task import Job, PodTask, store_problem
from bayplan.base.errors import InputError, PluginFailure
from bayplan.engine.decision import Outcome
from bayplan.formats.result_annotations import Written, write
from bayplan.live.attempt_results import attempt_results, nodes_by_interest
from bayplan.live.decision_store import DecisionStore
from bayplan.objects.pod import Pod

MAX_REMEMBERED = 100_000
_log = logging.getLogger("bayplan.annotator")
_HEADERS = {"content-type": "application/merge-patch+json", "user-agent": "simulator/bayplan"}


class Annotator:
    """Writes the results of attempts as annotations of pods.

    Args:
        api: the API through which pods are patched.
        decisions: the records, at level full.
        extended: whether the configuration has extenders.
        reader: the reader of other schedulers' annotations, which must know the annotations that this class writes.

    Attributes:
        failures: the latest problem of writing annotations, by key of the pod.
    """

    def __init__(
        self, api: Api, decisions: DecisionStore, *, extended: bool, reader: AnnotationReader | None = None
    ) -> None:
        self.extended = extended
        self.failures: dict[str, str] = {}
        self._api = api
        self._decisions = decisions
        self._reader = reader
        self._written: OrderedDict[str, int] = OrderedDict()
        self._waiting: OrderedDict[str, str] = OrderedDict()
        self._task = PodTask(
            self._next_job, self._fail, (InputError, LookupError, PluginFailure), _log, "writing the annotations"
        )

    def take(self, pod: Pod) -> None:
        """Queue a pod whose binding or status was written, if it has a new decision; call on the loop."""
        numbers = self._own_numbers(pod.key)
        if not numbers or self._written.get(pod.key) == numbers[-1]:
            return
        self._waiting[pod.key] = pod.metadata.uid
        self._task.start()

    def _own_numbers(self, key: str) -> list[int]:
        """Return the numbers of a pod's decisions, except those of other schedulers."""
        return [it for it in self._decisions.numbers_of(key) if not self._decisions.is_annotated(it)]

    @property
    def is_idle(self) -> bool:
        """Whether no write is pending."""
        return self._task.is_idle

    def _next_job(self) -> Job | None:
        if not self._waiting:
            return None
        key, uid = self._waiting.popitem(last=False)
        return key, partial(self._write, key, uid)

    async def _write(self, key: str, uid: str) -> None:
        namespace, _, name = key.partition("/")
        document = self._api.backend.find("pods", namespace, name)
        numbers = self._own_numbers(key)
        if document is None or not numbers or self._written.get(key) == numbers[-1]:
            return
        latest = self._decisions[numbers[-1]]
        spec, metadata = cast("dict[str, object]", document["spec"]), cast("dict[str, object]", document["metadata"])
        if metadata["uid"] != uid:
            # A different pod has the name now.
            return
        if latest.outcome is Outcome.SCHEDULED and spec.get("nodeName") != latest.node:
            # The binding was rejected or is pending; its outcome queues the pod again.
            return
        present = cast("dict[str, str]", metadata.get("annotations") or {})
        written = await asyncio.to_thread(self._made, numbers[-1], present)
        if self._reader is not None:
            self._reader.expect_own(uid, written.annotations)
        patch = {"metadata": {"uid": metadata["uid"], "annotations": written.annotations}}
        path = f"/api/v1/namespaces/{namespace}/pods/{name}"
        answer = await self._api.handle(Request("PATCH", path, {}, _HEADERS, json.dumps(patch).encode()))
        if isinstance(answer, Response) and answer.status >= 400:
            if self._reader is not None and answer.status == 404:
                # The reader may have processed the deletion before it expected the annotations.
                self._reader.forget(uid)
            self._fail(key, answer.body.decode(errors="replace"))
            return
        self._written[key] = numbers[-1]
        self._written.move_to_end(key)
        if len(self._written) > MAX_REMEMBERED:
            self._written.popitem(last=False)

    def _made(self, number: int, present: dict[str, str]) -> Written:
        """Return the annotations of the attempt that ended with a decision."""
        decisions = self._decisions
        record = decisions[number]
        first = number
        if record.frame < 0:
            # The pod was rejected after a node had been selected: the attempt began with the previous decision.
            earlier = [it for it in self._own_numbers(record.pod) if it < number]
            if earlier and decisions[earlier[-1]].attempt == record.attempt:
                first = earlier[-1]
        decision = decisions.decision(first)
        points = decisions.late_points(first)
        if points is None:
            raise LookupError(f"the full record of decision {first} of {record.pod} was dropped")
        results = attempt_results(decision, points, decisions.late_results(first), extended=self.extended)
        return write(results, present, by_interest=partial(nodes_by_interest, decision))

    def _fail(self, key: str, problem: str) -> None:
        store_problem(self.failures, key, problem)
