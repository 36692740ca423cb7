"""The state of a running server as handlers read it, and the worker threads for queries."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

from bayplan.analysis.volume_places import StoredObjects, bound_volumes, claims_of
from bayplan.base.errors import EngineBusy
from bayplan.engine.assemble import request_gates
from bayplan.http_api.cluster_view import ClusterView
from bayplan.http_api.contract.cluster import Overview
from bayplan.http_api.contract.questions import WhatIfReport
from bayplan.http_api.decision_summaries import DecisionSummaries
from bayplan.http_api.document_batch import BatchWriter
from bayplan.http_api.event_index import EventIndex
from bayplan.http_api.forks import Forks
from bayplan.http_api.live_source import LiveSource
from bayplan.http_api.node_table import NodeColumns
from bayplan.http_api.overview import UtilisationHistory, overview_document
from bayplan.http_api.pod_rows import PodRows
from bayplan.http_api.pod_table import PodColumns
from bayplan.http_api.query import Deadline
from bayplan.http_api.questions import Questions
from bayplan.http_api.queue_view import QueueCopy, QueueView
from bayplan.http_api.read_models import ReadModel
from bayplan.http_api.server_context import ServerContext
from bayplan.http_api.sources import sources_of
from bayplan.http_api.waiting_causes import common_cause, waiting_rows
from bayplan.objects.meta import KubernetesObject
from bayplan.objects.pod import Pod

THREADS = 2

CAUSES_SECONDS = 0.05
"""Maximum time that a list of pods, or the overview, may spend on the root causes of waiting pods."""

T = TypeVar("T")


class ServerState:
    """The state of a running server, as handlers read it.

    Args:
        server: the server.

    Attributes:
        server: the server.
        view: pods and nodes as columns.
        events: the Kubernetes events by object.
        queue: cached copies of the scheduling queue.
        summaries, rows: create the rows of lists from decisions and pods.
        history: the history of utilisation.
        forks: the forks of the cluster.
        questions: answers questions about the current cluster.
        what_ifs: the stored what-if answers by ID.
        batches: the batch writer.
        start_ns: when the service started, by the clock.
    """

    def __init__(self, server: ServerContext) -> None:
        self.server = server
        self.start_ns = server.clock.now_ns()
        self.view = ClusterView(server, request_gates(server.setup.feature_gates))
        self.events = EventIndex(server.backend)
        self.queue = QueueView(server.engine)
        self.summaries = DecisionSummaries(server.decisions)
        self.rows = PodRows(server.decisions, self.summaries)
        self.history = UtilisationHistory()
        self.forks = Forks()
        self.questions = Questions(server)
        self.what_ifs: dict[str, WhatIfReport] = {}
        self.batches = BatchWriter(server.backend)
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="bayplan-query")

    async def off_loop(self, work: Callable[[], T]) -> T:
        """Run a function on a worker thread."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    def close(self) -> None:
        """Stop the forks, the questions and the worker threads."""
        self.forks.close()
        self.questions.close()
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def source_of(self, key: str) -> LiveSource:
        """Return the source for explanations of a pod."""
        pods = await self.view.pod_columns()
        nodes = await self.view.node_columns()
        events = self.events.of_pod(key)
        return LiveSource(self.server, self.start_ns, self.view.pods, pods, nodes, events, self._volumes_of([key]))

    def source_of_all(self, pods: PodColumns, nodes: NodeColumns, rows: Sequence[int]) -> LiveSource:
        """Return the source for the root causes of the pods in these rows. Call on the event loop."""
        volumes = self._volumes_of(pods.keys[row] for row in rows)
        return LiveSource(self.server, self.start_ns, self.view.pods, pods, nodes, catalog=volumes)

    def _volumes_of(self, keys: Iterable[str]) -> StoredObjects:
        """Return a lookup of the claims of pods and their volumes. Call on the event loop."""
        store = self.server.bridge.store
        found: dict[tuple[type[KubernetesObject], str], KubernetesObject] = {}
        for pod in (store.get(Pod, key) for key in keys):
            if pod is not None and pod.spec.volumes:
                volumes = (volume for _, volume in bound_volumes(pod, store))
                found |= {(type(item), item.key): item for item in (*claims_of(pod, store), *volumes)}
        return StoredObjects(found)

    async def read_model(self, run: str) -> ReadModel:
        """Return the read model of a run.

        Args:
            run: the ID of a fork; "" for the server itself.

        Raises:
            RequestError: there is no such fork, or it is not done.
        """
        if run:
            return (await self.off_loop(lambda: self.forks.read_model_of(run))).read_model
        pods = await self.view.pod_columns()
        nodes = await self.view.node_columns()
        source_of = partial(self.source_of_all, pods, nodes)
        return ReadModel(pods, nodes, self.server.decisions, self.summaries, self.rows, source_of)

    def queue_or_none(self) -> QueueCopy | None:
        """Return a copy of the queue, or None if the engine does not respond. Call on a worker thread."""
        try:
            return self.queue.copy()
        except EngineBusy:
            return None

    async def overview(self) -> Overview:
        """Return the overview of the cluster."""
        pods = await self.view.pod_columns()
        nodes = await self.view.node_columns()
        self.history.note(nodes, self.server.clock.now_ns())
        sources = sources_of(self.server.backend)
        rows = waiting_rows(pods, pods.used)
        source = self.source_of_all(pods, nodes, rows)

        def make() -> Overview:
            queue = self.queue_or_none()
            causes = self.rows.causes.of(source, pods, nodes, rows, Deadline(CAUSES_SECONDS))
            cause = common_cause(causes, len(rows))
            return overview_document(self.server, pods, nodes, queue, self.history, self.summaries, sources, cause)

        return await self.off_loop(make)
