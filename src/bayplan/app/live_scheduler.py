"""A scheduler for a cluster with an API server: the wiring of feed, engine, dispatcher, leader election, probes and metrics.

The engine has its own thread; everything else runs on one event loop. A pod passes through: watch, decision, binding, the watch
event that confirms the binding, and the Kubernetes event.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import signal
import socket
import uuid
from collections.abc import Callable, Coroutine, Iterator, Sequence
from functools import partial
from pathlib import Path

import msgspec

from bayplan.apiserver.http.limits import ConnectionTable, HttpLimits
from bayplan.apiserver.http.protocol import limited_protocol
from bayplan.app.scheduler_setup import SchedulerOptions, SchedulerSetup, read_setup
from bayplan.app.sleep_watch import watch_for_sleep
from bayplan.base.clock import Clock
from bayplan.base.durations import SECOND_NS
from bayplan.base.errors import InputError, ServerUnavailable
from bayplan.base.termination import exit_on_sigterm
from bayplan.client.cluster_access import ClusterAccess, open_access
from bayplan.client.connection import ApiConnection
from bayplan.client.pre_bind import bind_limits
from bayplan.client.request_steps import drive
from bayplan.client.requests import USER_AGENT
from bayplan.engine.actions import Action
from bayplan.engine.records import RecordLevel, Records
from bayplan.engine.scheduler import Scheduler
from bayplan.framework.configuration.document import ClientConnectionConfiguration
from bayplan.live.cluster_feed import ClusterFeed, ObjectChange
from bayplan.live.dispatcher import Dispatcher
from bayplan.live.engine_calls import LastCalls
from bayplan.live.health import LEADER_GRACE_SECONDS, HealthServer
from bayplan.live.instrumented_queue import InstrumentedQueue
from bayplan.live.leader_election import LeaderElectionOptions, LeaderElector
from bayplan.live.metrics import SchedulerMetrics
from bayplan.live.plugin_runner import DEFAULT_DEADLINE_SECONDS, PluginRunner
from bayplan.live.queue_metrics import QueueFigures, figures_of
from bayplan.live.scheduler_thread import SchedulerThread
from bayplan.live.switch_interval import short_switch_interval

DRAIN_SECONDS = 5.0
WATCHDOG_SECONDS = 0.5
MAX_PAUSE_SECONDS = 30.0
"""Maximum time between two attempts to reach the API server at the start, plus jitter of the same length."""

_log = logging.getLogger("bayplan.app")


class LiveOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of a live scheduler.

    Attributes:
        kubeconfig, context: the cluster; see `bayplan.client.cluster_access.open_access`.
        scheduler: the configuration, plugins, gates and seed.
        leader_elect: whether to use leader election; None for the value in the configuration.
        qps, burst: override the configuration's `clientConnection`.
        listen, port: the address and port of the probe and metrics endpoints; port -1 disables them.
        certificate, key: the TLS certificate and key of these endpoints.
        plugin_deadline_seconds: the maximum duration of a call of a custom plugin.
    """

    kubeconfig: Path | None = None
    context: str | None = None
    scheduler: SchedulerOptions = msgspec.field(default_factory=SchedulerOptions)
    leader_elect: bool | None = None
    qps: float | None = None
    burst: int | None = None
    listen: str = "127.0.0.1"
    port: int = 10259
    certificate: Path | None = None
    key: Path | None = None
    plugin_deadline_seconds: float = DEFAULT_DEADLINE_SECONDS

    def kubeconfig_for(self, declared: ClientConnectionConfiguration) -> Path | None:
        """Return the kubeconfig: of the options or else of the configuration; None for kubectl's search path."""
        return self.kubeconfig or (Path(declared.kubeconfig) if declared.kubeconfig else None)

    def rate_limit(self, declared: ClientConnectionConfiguration) -> tuple[float, int]:
        """Return requests per second and burst: of the options or else of the configuration.

        Raises:
            InputError: the burst is not positive, so that no request could be sent.
        """
        qps = declared.qps if self.qps is None else self.qps
        burst = declared.burst if self.burst is None else self.burst
        if burst < 1 and qps >= 0:
            name = "clientConnection.burst" if self.burst is None else "--kube-api-burst"
            raise InputError(name, got=str(burst), wanted="a positive number, or a negative rate for no limit")
        return qps, burst


class LiveScheduler:
    """One scheduler process, scheduling or waiting for the lease.

    Args:
        options: see `LiveOptions`.
        print_line: the function to call with each line to show to users.

    Raises:
        InputError: a configuration or a plugin is invalid.
    """

    def __init__(self, options: LiveOptions, print_line: Callable[[str], None]) -> None:
        self.options = options
        self._print_line = print_line
        self._clock = Clock()
        self._runner = PluginRunner(options.plugin_deadline_seconds, now_ns=self._clock.now_ns)
        self.setup: SchedulerSetup = read_setup(options.scheduler, runner=self._runner)
        self._metrics = SchedulerMetrics(self._figures, self.setup.feature_gates)
        self._engine: SchedulerThread | None = None
        self._feed: ClusterFeed | None = None
        self._elector: LeaderElector | None = None
        self._stop = asyncio.Event()
        self._lease_lost = False

    def run(self) -> int:
        """Run until SIGINT or SIGTERM, or until the lease is lost. Return the exit code: 1 if the lease was lost, else 0.

        Raises:
            InputError: the kubeconfig or address cannot be used, or the API server denies access.
        """
        try:
            with short_switch_interval(), exit_on_sigterm():
                asyncio.run(self._run())
        finally:
            self._runner.close()
            self.setup.connections.close()
        return int(self._lease_lost)

    # --- start and stop -----------------------------------------------------------------------------------------------

    async def _run(self) -> None:
        kubeconfig = self.options.kubeconfig_for(self.setup.configuration.declared.client_connection)
        access = await open_access(kubeconfig, self.options.context)
        async with self._connection(access) as main, self._connection(access) as events:
            feed = self._feed = ClusterFeed(main, self._apply_changes)
            health = self._health()
            with stopping_signals(self._stop):
                try:
                    if health is not None:
                        health.start()
                        self._print_line(f"probes and metrics at {health.url}")
                    # A server that does not respond must not keep the process from ending.
                    await unless_stopped(self._stop, _open(feed))
                    if self._stop.is_set():
                        return
                    self._print_line(f"watching {access.url}")
                    await unless_stopped(self._stop, feed.watch_during(self._schedule(access, main, events, feed)))
                finally:
                    if health is not None:
                        await health.stop()

    def _connection(self, access: ClusterAccess, request_seconds: float = 60.0) -> ApiConnection:
        qps, burst = self.options.rate_limit(self.setup.configuration.declared.client_connection)
        return ApiConnection(
            access,
            user_agent=USER_AGENT,
            qps=qps,
            burst=burst,
            request_seconds=request_seconds,
            observer=self._metrics.requests,
        )

    async def _schedule(
        self, access: ClusterAccess, main: ApiConnection, events: ApiConnection, feed: ClusterFeed
    ) -> None:
        if not self.setup.configuration.declared.delay_cache_until_active:
            await feed.wait_until_synced()
        if not self._elects:
            await self._work(main, events, feed)
            return
        options = self._election()
        async with self._connection(access, options.renew_deadline_seconds / 2) as leases:
            elector = self._elector = self._candidate(options)
            name = options.resource_name
            self._metrics.set_leading(name, leads=False)
            self._print_line(f"waiting for the lease {options.resource_namespace}/{name} as {elector.identity}")
            try:
                await drive(elector.acquire(), leases.send, asyncio.sleep)
                self._metrics.set_leading(name, leads=True)
                self._print_line("leading")
                announcing = asyncio.ensure_future(drive(elector.announce(), events.send, asyncio.sleep))
                holding = asyncio.ensure_future(self._hold(elector, leases))
                working = asyncio.ensure_future(self._work(main, events, feed))
                try:
                    done, _ = await asyncio.wait((working, holding), return_when=asyncio.FIRST_COMPLETED)
                    for task in done:
                        task.result()
                finally:
                    for task in (announcing, working, holding):
                        task.cancel()
                    await asyncio.gather(announcing, working, holding, return_exceptions=True)
            finally:
                self._metrics.set_leading(name, leads=False)
                if elector.leads:
                    with contextlib.suppress(TimeoutError):
                        async with asyncio.timeout(options.renew_deadline_seconds):
                            await drive(elector.release(), leases.send, asyncio.sleep)

    async def _hold(self, elector: LeaderElector, leases: ApiConnection) -> None:
        """Renew the lease; return when it is lost."""
        options = elector.options
        renewing = asyncio.ensure_future(drive(elector.renew(), leases.send, asyncio.sleep))
        longest_ns = int((options.renew_deadline_seconds + options.retry_period_seconds) * SECOND_NS)
        try:
            while not renewing.done() and self._clock.now_ns() - elector.renewed_ns < longest_ns:
                await asyncio.wait((renewing,), timeout=WATCHDOG_SECONDS)
        finally:
            renewing.cancel()
        elector.leads = False
        self._lease_lost = True
        self._print_line("the lease was lost")

    async def _work(self, main: ApiConnection, events: ApiConnection, feed: ClusterFeed) -> None:
        """Schedule until cancelled, then finish pending work."""
        await feed.wait_until_synced()
        dispatcher = Dispatcher(main, events, feed, host_name=socket.gethostname(), now_ns=self._clock.now_ns)
        dispatcher.executor.limits = bind_limits(self.setup.configuration.profiles)
        engine = self._engine = self._make_engine(dispatcher)
        dispatcher.connect(engine)
        feed.begin()
        engine.start()
        self._print_line("scheduling")
        try:
            await watch_for_sleep(self._clock)
        finally:
            # Stop deciding, then send the last decisions to the cluster, and the events when the cluster confirms them. If
            # the lease was lost, another process may be the leader now: send nothing more.
            engine.calls = LastCalls()
            seconds = 0.0 if self._lease_lost else DRAIN_SECONDS
            await dispatcher.drain(seconds, lambda: engine.status().pending_bindings > 0)
            await asyncio.to_thread(engine.stop)

    def _make_engine(self, dispatcher: Dispatcher) -> SchedulerThread:
        def make() -> Scheduler:
            return self.setup.make(start_ns=self._clock.now_ns(), queue_type=InstrumentedQueue)

        scheduler = make()
        # Nothing reads the decisions of this process, and their summaries would take up to a gigabyte.
        scheduler.records = Records(RecordLevel.OFF)
        engine = SchedulerThread(
            scheduler, self._clock, partial(self._take_actions, dispatcher), remake=make, runner=self._runner
        )
        self._metrics.attach(engine)
        return engine

    def _take_actions(self, dispatcher: Dispatcher, actions: Sequence[Action]) -> None:
        self._metrics.on_actions(actions, self._clock.now_ns())
        dispatcher.submit(actions)

    def _apply_changes(self, changes: Sequence[ObjectChange]) -> None:
        if self._engine is not None:
            self._engine.post(changes)

    # --- leader election ----------------------------------------------------------------------------------------------

    @property
    def _elects(self) -> bool:
        wanted = self.options.leader_elect
        return self.setup.configuration.declared.leader_election.leader_elect if wanted is None else wanted

    def _election(self) -> LeaderElectionOptions:
        declared = self.setup.configuration.declared.leader_election
        return LeaderElectionOptions(
            resource_name=declared.resource_name,
            resource_namespace=declared.resource_namespace,
            lease_duration_seconds=declared.lease_duration_ns // SECOND_NS,
            renew_deadline_seconds=declared.renew_deadline_ns / SECOND_NS,
            retry_period_seconds=declared.retry_period_ns / SECOND_NS,
        )

    def _candidate(self, options: LeaderElectionOptions) -> LeaderElector:
        return LeaderElector(
            options,
            identity=f"{socket.gethostname()}_{uuid.uuid4()}",
            controller=self.setup.configuration.profiles[0].scheduler_name,
            now_ns=self._clock.now_ns,
            jitter=random.random,
        )

    # --- probes and metrics -------------------------------------------------------------------------------------------

    def _health(self) -> HealthServer | None:
        options = self.options
        if options.port == -1:
            return None
        alive = {"ping": lambda: "", "leaderElection": self._lease_problem, "engine": self._engine_problem}
        ready = {
            "leaderElection": self._lease_problem,
            "shutdown": lambda: "process is shutting down" if self._stop.is_set() else "",
            "sched-handler-sync": self._sync_problem,
        }
        return HealthServer(
            {"healthz": alive, "livez": alive, "readyz": ready},
            self._metrics.text,
            listen=options.listen,
            port=options.port,
            certificate=options.certificate,
            key=options.key,
            protocol=limited_protocol(ConnectionTable(HttpLimits())),
        )

    def _lease_problem(self) -> str:
        late = self._elector.expired_for_seconds() if self._elector is not None else 0.0
        return "failed election to renew leadership on lease" if late > LEADER_GRACE_SECONDS else ""

    def _engine_problem(self) -> str:
        return "stopped by an exception" if self._engine is not None and self._engine.status().broken else ""

    def _sync_problem(self) -> str:
        synced = self._feed is not None and self._feed.is_synced
        return "" if synced else "handlers are not fully synchronized"

    def _figures(self) -> QueueFigures | None:
        return None if self._engine is None else figures_of(self._engine)


async def _open(feed: ClusterFeed) -> None:
    """Open a feed, and retry while the API server is unavailable: in a new control plane, it may start later."""
    pause, logged = 1.0, ""
    while True:
        try:
            await feed.open()
        except ServerUnavailable as problem:
            if problem.what != logged:
                _log.warning("%s; retrying", problem.what)
            logged = problem.what
        else:
            return
        await asyncio.sleep(pause * (1.0 + random.random()))
        pause = min(2 * pause, MAX_PAUSE_SECONDS)


@contextlib.contextmanager
def stopping_signals(stop: asyncio.Event) -> Iterator[None]:
    """Set an event when SIGTERM or SIGINT arrives, while the context is active."""
    loop = asyncio.get_running_loop()
    caught = (signal.SIGTERM, signal.SIGINT)
    for number in caught:
        loop.add_signal_handler(number, stop.set)
    try:
        yield
    finally:
        for number in caught:
            loop.remove_signal_handler(number)


async def unless_stopped(stop: asyncio.Event, work: Coroutine[object, object, None]) -> None:
    """Run a coroutine until it ends or the event is set; then cancel it, and await its cleanup."""
    task = asyncio.ensure_future(work)
    stopped = asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait((task, stopped), return_when=asyncio.FIRST_COMPLETED)
    finally:
        stopped.cancel()
        task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
