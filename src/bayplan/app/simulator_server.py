"""The simulator as a server: API, controllers, kubelet and scheduler in one process, on one clock, with a record of every decision.

This is the wiring. The API, the bridge with its controllers, and the executor of the scheduler's actions run on the event loop;
the engine has its own thread (docs/simulator.md).
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from functools import partial

import msgspec
from msgspec.structs import replace

from bayplan.apiserver.bridge.bridge import Bridge, BridgeOptions
from bayplan.apiserver.bridge.driver import BridgeDriver
from bayplan.apiserver.rest.api import Api
from bayplan.apiserver.rest.backend import Backend
from bayplan.app.action_loop import ActionLoop
from bayplan.app.annotation_reader import AnnotationReader
from bayplan.app.annotator import Annotator
from bayplan.app.named_snapshots import NamedSnapshot, NamedSnapshots
from bayplan.app.scheduler_setup import SchedulerOptions, SchedulerSetup, read_setup
from bayplan.app.sleep_watch import catch_up_after_sleep
from bayplan.base.clock import Clock
from bayplan.base.errors import InputError
from bayplan.client.pre_bind import bind_limits
from bayplan.engine.actions import Action
from bayplan.engine.records import RecordLevel
from bayplan.engine.scheduler import Scheduler
from bayplan.live.decision_store import DecisionStore, Retention
from bayplan.live.instrumented_queue import InstrumentedQueue
from bayplan.live.metrics import SchedulerMetrics
from bayplan.live.plugin_runner import DEFAULT_DEADLINE_SECONDS, PluginRunner
from bayplan.live.queue_metrics import figures_of
from bayplan.live.scheduler_thread import SchedulerThread
from bayplan.live.switch_interval import short_switch_interval
from bayplan.live.ticker import Ticker

TICK_SECONDS = 1.0
SETTLE_SECONDS = 2.0
NO_SCHEDULER = "none.bayplan.io"
"""The scheduler name of the built-in scheduler if all pods are left to external schedulers; no pod has it."""

MAX_JUMPS = 1000
"""Maximum number of instants without a decision that `step_decision` skips before it returns False."""


class SimulatorOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of the simulator.

    Attributes:
        scheduler: see `SchedulerOptions`.
        schedules: whether to schedule; False leaves all pods to external schedulers.
        bridge: which controllers run, and whether nodes are simulated.
        record_level: the detail of recorded decisions.
        retention: the limits of stored records.
        annotations: whether to write results on the pods, as kube-scheduler-simulator does.
        plugin_deadline_seconds: the maximum duration of a call of a custom plugin.
    """

    scheduler: SchedulerOptions = msgspec.field(default_factory=SchedulerOptions)
    schedules: bool = True
    bridge: BridgeOptions = msgspec.field(default_factory=BridgeOptions)
    record_level: RecordLevel = RecordLevel.SUMMARY
    retention: Retention = msgspec.field(default_factory=Retention)
    annotations: bool = False
    plugin_deadline_seconds: float = DEFAULT_DEADLINE_SECONDS


class SimulatorServer:
    """A running cluster.

    Args:
        api: the API over a backend whose clock is `clock`.
        options: see `SimulatorOptions`.
        clock: the clock of the cluster.

    Attributes:
        instance: a random identifier, different after each start.
        annotator: writes results on pods; None if disabled.
        reader: reads the results of other schedulers from pods.
        api, backend, bridge, named_snapshots: the parts that must be used on the loop.
        engine, decisions, clock: the scheduler's thread, its decisions, and the clock; may be used on any thread.
        setup: the current setup of the scheduler.
        metrics: the scheduler's metrics, for Prometheus.

    Raises:
        InputError: a configuration or a plugin is invalid.
    """

    def __init__(self, api: Api, options: SimulatorOptions, clock: Clock) -> None:
        if options.annotations and options.record_level is not RecordLevel.FULL:
            level = options.record_level.name.lower()
            raise InputError("--annotations", got=f"--records {level}", wanted="--records full")
        self.instance = uuid.uuid4().hex
        self.options = options
        self.api = api
        self.backend: Backend = api.backend
        self.clock = clock
        self.runner = PluginRunner(options.plugin_deadline_seconds, now_ns=clock.now_ns)
        self.setup: SchedulerSetup = read_setup(options.scheduler, runner=self.runner)
        self.decisions = DecisionStore(options.record_level, options.retention)
        self.bridge = Bridge(self.backend, seed=options.scheduler.seed, options=options.bridge)
        if options.schedules:
            self.backend.runs.add("scheduler")
        self.driver = BridgeDriver(self.bridge, clock)
        self.named_snapshots = NamedSnapshots(self.backend.store, clock)
        self.action_loop = ActionLoop(api, self.bridge, clock)
        self.action_loop.executor.limits = bind_limits(self.setup.configuration.profiles)
        make = self._factory(self.setup)
        scheduler = make()
        scheduler.records = self.decisions
        self.engine = SchedulerThread(scheduler, clock, self._take_actions, remake=make, runner=self.runner)
        self.action_loop.connect(self.engine)
        self.metrics = SchedulerMetrics(partial(figures_of, self.engine), self.setup.feature_gates)
        self.metrics.attach(self.engine)
        self.reader = AnnotationReader(
            self.decisions, self.engine.submit, clock, lambda: tuple(self.bridge.store.nodes)
        )
        self.annotator: Annotator | None = None
        if options.annotations:
            self.annotator = Annotator(
                api, self.decisions, extended=bool(self.setup.connections.extenders), reader=self.reader
            )
            self.action_loop.executor.on_written = self.annotator.take
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ticker: Ticker | None = None
        # Apply one change at a time: the reported setup must be the last one that the engine received.
        self._changing = asyncio.Lock()
        self._until_stop = ExitStack()

    # --- start and stop, on the loop ----------------------------------------------------------------------------------

    def start(self) -> None:
        """Start the cluster and its scheduler; called on the loop once requests are accepted."""
        self._loop = asyncio.get_running_loop()
        self._until_stop.enter_context(short_switch_interval())
        self.named_snapshots.keep_first()
        self.bridge.listen(self.engine.post)
        self.engine.start()
        self.bridge.listen(self.reader.take)
        self.driver.start()
        self.action_loop.start(self._loop)
        self._ticker = Ticker(TICK_SECONDS, self._tick, partial(self.bridge.report_bug, "ticker"))

    def stop(self) -> None:
        """Shut down; may be called from any thread once no more requests are served."""
        if self._loop is not None and self._ticker is not None:
            # If the loop is already closed, it has stopped the bridge.
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._ticker.stop)
        self.engine.stop()
        self.setup.connections.close()
        self._until_stop.close()

    def _tick(self) -> None:
        catch_up_after_sleep(self.clock)
        self.action_loop.executor.tick()

    def _take_actions(self, actions: Sequence[Action]) -> None:
        self.metrics.on_actions(actions, self.clock.now_ns())
        self.action_loop.submit(actions)

    # --- reconfiguration ----------------------------------------------------------------------------------------------

    async def configure(self, text: str) -> None:
        """Switch to another configuration atomically; records are kept, and waiting pods are retried.

        Raises:
            ConfigurationError: the text is invalid; the old configuration stays in use.
            PluginError: a plugin cannot be created with it; the old configuration stays in use.
            EngineBusy: the current cycle does not end; the new configuration takes effect afterwards.
        """
        await self._change(lambda: self.setup.with_text(text))

    async def reload_plugins(self) -> None:
        """Reload the files of custom plugins; waiting pods are retried.

        Raises:
            PluginError: a plugin cannot be loaded or created; the old plugins stay in use.
            EngineBusy: as for `configure`.
        """
        await self._change(lambda: self.setup.with_plugins_read_again())

    def _factory(self, setup: SchedulerSetup) -> Callable[[], Scheduler]:
        """Return a function that creates a scheduler for an empty cluster."""
        if not self.options.schedules:
            configuration = setup.configuration
            profile = replace(configuration.profiles[0], scheduler_name=NO_SCHEDULER)
            setup = replace(setup, configuration=replace(configuration, profiles=(profile,)))
        return lambda: setup.make(start_ns=self.clock.now_ns(), queue_type=InstrumentedQueue)

    async def _change(self, read: Callable[[], SchedulerSetup]) -> None:
        # Loading plugins runs their files, and creating them runs their constructors: not on the loop.
        def change() -> None:
            setup = read()
            factory = self._factory(setup)
            first = [factory()]
            self.setup, before = setup, self.setup
            try:
                self.engine.replace(lambda: first.pop() if first else factory())
            finally:
                # The setup is in effect even if the engine is too busy to confirm it.
                self.action_loop.executor.limits = bind_limits(setup.configuration.profiles)
                if self.annotator is not None:
                    self.annotator.extended = bool(setup.connections.extenders)
                if before.connections is not setup.connections:
                    # The old scheduler may still be in a cycle, so close its connections after that; it starts no other
                    # cycle.
                    self.engine.submit(lambda scheduler: before.connections.close())

        async with self._changing:
            await asyncio.to_thread(change)

    # --- time ---------------------------------------------------------------------------------------------------------

    async def step_decision(self) -> bool:
        """Run one decision while the clock is paused.

        If no pod is ready, first advance to the time when the next pod becomes ready.

        Returns:
            True if a decision was made; False if no pod will become ready.
        """
        self.clock.pause()
        for _ in range(MAX_JUMPS):
            await self.settle()
            if await asyncio.wrap_future(self.engine.step_decision()):
                await self.settle()
                return True
            if not await self._jump():
                return False
        return False

    async def step_event(self) -> bool:
        """Advance to the next instant at which something is due, and run everything due then.

        Returns:
            True if something was due.
        """
        self.clock.pause()
        await self.settle()
        found = await self._jump()
        self.engine.schedule_current_instant()
        await self.settle()
        return found

    async def _jump(self) -> bool:
        """Set the clock to the next instant at which any component has work; return whether there is one."""
        engine_ns = await asyncio.wrap_future(self.engine.submit(self.engine.next_instant_of))
        due = [instant for instant in (engine_ns, self.bridge.next_wakeup()) if instant is not None]
        if not due:
            return False
        self.clock.jump(min(due))
        return True

    async def settle(self, seconds: float = SETTLE_SECONDS) -> None:
        """Wait until no work is left at this instant: all writes are processed, and all results are written."""
        end, quiet = time.monotonic() + seconds, 0
        # Check twice, because the second check finds work that one component passed to another during the first.
        while quiet < 2 and time.monotonic() < end:
            busy = await asyncio.wrap_future(self.engine.submit(self.engine.has_work))
            quiet = quiet + 1 if not busy and self.action_loop.is_idle and self.driver.is_idle else 0
            if not quiet:
                await asyncio.sleep(0.001)

    # --- snapshots, on the loop ---------------------------------------------------------------------------------------

    def snapshots(self) -> Sequence[NamedSnapshot]:
        """Return the snapshots, oldest first."""
        return self.named_snapshots.all()

    def take_snapshot(self, name: str) -> None:
        """Take a snapshot of the current cluster. Raises InputError if the name is taken."""
        self.named_snapshots.take(name)

    def restore_snapshot(self, name: str) -> None:
        """Restore a snapshot. Raises InputError if there is no snapshot with this name."""
        self.named_snapshots.restore(name)

    def delete_snapshot(self, name: str) -> None:
        """Delete a snapshot. Raises InputError if there is no snapshot with this name."""
        self.named_snapshots.delete(name)

    def reset(self) -> None:
        """Restore the cluster to its state at the start of the server."""
        self.named_snapshots.reset()
