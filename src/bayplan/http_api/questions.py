"""Questions about the current cluster, answered one after another on a separate thread, on a copy of the cluster.

The copy is made off the event loop and reused until an object changes. The time limit of a question, and whether the
client is still connected, are checked between scheduling cycles.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from http import HTTPStatus
from threading import Event
from time import monotonic
from typing import TypeVar

from starlette.requests import Request

from bayplan.answers.current_source import current_pods
from bayplan.answers.question_cluster import QuestionCluster
from bayplan.answers.workloads import find_workload
from bayplan.base.errors import BayplanError, InputError
from bayplan.base.go_text.times import format_instant
from bayplan.cluster.store import ChangeEvent
from bayplan.framework.configuration.loading import SchedulerConfiguration
from bayplan.http_api.errors import RequestError
from bayplan.http_api.forks import objects_now
from bayplan.http_api.server_context import ServerContext, Setup
from bayplan.http_api.trial_runner import TrialEnded, TrialRunner, deadline_of
from bayplan.objects.meta import KubernetesObject
from bayplan.objects.pod import Pod
from bayplan.sim.result import PodTimeline

ANSWER_SECONDS = 30.0
"""Time limit for one question."""

CALL_SECONDS = 1.0
"""Time limit for a call of a custom plugin. It is short because a client waits; a call that exceeds it ends the question."""

MAX_PENDING = 8
"""Maximum number of questions being answered or waiting."""

COPY_SECONDS = 60.0
"""Time after which an unused copy of the cluster is dropped."""

LISTEN_SECONDS = 0.2
"""Interval at which to check whether the client is still connected."""

T = TypeVar("T")


class QuestionEnded(BayplanError):
    """A question was ended before it was answered."""


class Inquiry:
    """One question: the cluster that it is about, and the means to answer it. Use on the question thread.

    Args:
        cluster: the present cluster.
        setup: the setup of the server's scheduler.
        runner: the runner of custom plugins.

    Attributes:
        cluster: the argument of this name.
    """

    def __init__(self, cluster: QuestionCluster, setup: Setup, runner: TrialRunner) -> None:
        self.cluster = cluster
        self._setup = setup
        self._runner = runner

    def scheduler(self, configuration: SchedulerConfiguration) -> Setup:
        """Return a factory of schedulers with another configuration. These schedulers call no extenders."""
        return self._setup.for_trial(configuration, self._runner)

    @cached_property
    def profiles(self) -> Collection[str]:
        """The scheduler names of the configured profiles."""
        return [profile.scheduler_name for profile in self._setup.configuration.profiles]

    @cached_property
    def timelines(self) -> Sequence[PodTimeline]:
        """The timelines of all pods, with their workloads."""
        objects = [item for items in self.cluster.objects.values() for item in items.values()]
        return current_pods(objects, self.profiles)

    def timeline(self, key: str) -> PodTimeline:
        """Return the timeline of a pod by ``namespace/name``.

        Raises:
            RequestError: no pod has this key.
        """
        for life in self.timelines:
            if life.key == key:
                return life
        raise RequestError(HTTPStatus.NOT_FOUND, "pod", got=f"'{key}'", wanted="a pod of the cluster")

    def pod_of(self, target: str) -> PodTimeline:
        """Return the timeline of the pod that a text names; for a workload, of its first waiting pod, or else of its first pod.

        Raises:
            InputError: the workload does not exist, or has no pods.
        """
        found = find_workload(target, self.cluster)
        waiting = [pod for pod in found.pods if pod.key in self.cluster.waiting]
        if not found.pods:
            raise InputError("workload", got=f"{found.label}, which has no pods", wanted="a workload with pods")
        return self.timeline((waiting or found.pods)[0].key)

    def waiting_pods(self, target: str) -> list[Pod]:
        """Return the waiting pods of the pod or workload that a text names.

        Raises:
            InputError: the pod or workload does not exist, or has no waiting pods.
        """
        found = find_workload(target, self.cluster)
        waiting = [pod for pod in found.pods if pod.key in self.cluster.waiting]
        if waiting:
            return waiting
        got = f"{found.label}, all of whose pods have a node" if found.pods else f"{found.label}, which has no pods"
        if found.kind == "Pod":
            got = f"{found.label}, which is on {self.cluster.node_of(found.pods[0].key)}"
        raise InputError("unblock", got=got, wanted="a pending pod")

    @property
    def assumptions(self) -> list[str]:
        """The assumptions behind every answer, in sentences."""
        found = [
            "this server's configuration applies"
            if self._setup.configuration_text
            else "kube-scheduler's defaults apply, because this server has no configuration",
            f"the cluster as of {format_instant(self.cluster.now_ns)}",
        ]
        if len(self.cluster.state.nodes) >= 100 and self._setup.configuration.percentage_of_nodes_to_score != 100:
            found.append("all nodes are examined, without the sampling of percentageOfNodesToScore")
        return found


class Questions:
    """Answers questions to a server. Use on the event loop.

    Args:
        server: the server.
    """

    def __init__(self, server: ServerContext) -> None:
        self._server = server
        self._version = 0
        self._copy: QuestionCluster | None = None
        self._copied = -1
        self._pending = 0
        self._used_at = 0.0
        self._closed = Event()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="bayplan-question")
        server.bridge.listen(self._take)

    def _take(self, changes: Sequence[ChangeEvent]) -> None:
        self._version += len(changes)

    def close(self) -> None:
        """Cancel the current question and those that wait for it."""
        self._closed.set()
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def run(self, request: Request, work: Callable[[Inquiry], T]) -> T:
        """Call a function on the question thread, and return its result.

        Args:
            request: the client's request; if the client disconnects, the question ends.
            work: the function that answers; it may only use its argument.

        Raises:
            RequestError: too many questions are pending, or this one took too long.
        """
        if self._pending >= MAX_PENDING:
            raise RequestError(
                HTTPStatus.SERVICE_UNAVAILABLE,
                f"there are already {self._pending} pending questions, the maximum",
                hint="again in a moment",
            )
        server, cancelled = self._server, Event()
        setup, now_ns, version = server.setup, server.clock.now_ns(), self._version
        objects = None if version == self._copied else list(objects_now(server.bridge.store).values())
        self._pending += 1
        running = asyncio.get_running_loop().run_in_executor(
            self._thread, lambda: self._answer(objects, version, setup, now_ns, cancelled, work)
        )
        try:
            while not (await asyncio.wait({running}, timeout=LISTEN_SECONDS))[0]:
                if await request.is_disconnected():
                    cancelled.set()
            return await running
        finally:
            cancelled.set()
            self._pending -= 1
            self._used_at = monotonic()
            asyncio.get_running_loop().call_later(COPY_SECONDS, self._drop_copy)

    def _drop_copy(self) -> None:
        if not self._pending and monotonic() - self._used_at >= COPY_SECONDS:
            self._copy, self._copied = None, -1

    # --- on the question thread ---------------------------------------------------------------------------------------

    def _answer(
        self,
        objects: Sequence[KubernetesObject] | None,
        version: int,
        setup: Setup,
        now_ns: int,
        cancelled: Event,
        work: Callable[[Inquiry], T],
    ) -> T:
        end = monotonic() + ANSWER_SECONDS

        def checkpoint() -> None:
            if cancelled.is_set() or self._closed.is_set():
                raise QuestionEnded("the client has disconnected")
            if monotonic() > end:
                raise QuestionEnded(f"the answer takes more than {ANSWER_SECONDS:.0f} s")

        runner = TrialRunner(
            min(CALL_SECONDS, deadline_of(setup.runner)),
            lambda: not cancelled.is_set() and not self._closed.is_set() and monotonic() < end,
        )
        try:
            checkpoint()
            trial = setup.for_trial(setup.configuration, runner, calls_extenders=True)
            with trial.connections:
                cluster = self._cluster(objects, version, trial).with_scheduler(trial)
                cluster.now_ns, cluster.seed, cluster.checkpoint = now_ns, setup.seed, checkpoint
                return work(Inquiry(cluster, setup, runner))
        except (QuestionEnded, TrialEnded) as problem:
            raise RequestError(
                HTTPStatus.SERVICE_UNAVAILABLE,
                "no answer",
                got=str(problem),
                hint="a question about fewer pods or nodes",
            ) from problem
        finally:
            runner.close()

    def _cluster(self, objects: Sequence[KubernetesObject] | None, version: int, scheduler: Setup) -> QuestionCluster:
        """Return the copy of the cluster; if `objects` are given and newer, create it from them."""
        if self._copy is None or (objects is not None and version != self._copied):
            if objects is None:
                raise QuestionEnded("the copy of the cluster was discarded")
            self._copy, self._copied = None, -1
            self._copy = QuestionCluster(objects, scheduler)
            self._copied = version
        return self._copy
