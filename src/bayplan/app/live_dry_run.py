"""Compare each decision of a cluster's scheduler with Bayplan's, without writing to the cluster."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import msgspec

from bayplan.app.live_scheduler import LiveOptions, stopping_signals, unless_stopped
from bayplan.app.scheduler_setup import SchedulerSetup, read_setup
from bayplan.base.clock import Clock
from bayplan.base.termination import exit_on_sigterm
from bayplan.client.cluster_access import open_access
from bayplan.client.connection import ApiConnection
from bayplan.client.requests import USER_AGENT
from bayplan.engine.scheduler import Scheduler
from bayplan.live.cluster_feed import ClusterFeed
from bayplan.live.dry_run import Agreement, DryRun, Verdict
from bayplan.live.plugin_runner import PluginRunner

TURN_SECONDS = 0.1
PROGRESS_SECONDS = 10.0
_encode = msgspec.json.encode


class LiveDryRun:
    """One dry run against a live cluster.

    Args:
        options: the options of scheduling; those about writing are ignored.
        print_line: the function to call with each line to show to users.
        report: the file that all comparisons are written to, as JSON Lines; None for no report.

    Raises:
        InputError: a configuration or a plugin is invalid.
    """

    def __init__(self, options: LiveOptions, print_line: Callable[[str], None], report: Path | None = None) -> None:
        self.options = options
        self._print_line = print_line
        self._report = report
        self._clock = Clock()
        self._runner = PluginRunner(options.plugin_deadline_seconds, now_ns=self._clock.now_ns)
        self.setup: SchedulerSetup = read_setup(options.scheduler, runner=self._runner)
        self._stop = asyncio.Event()

    def run(self) -> Agreement:
        """Observe until SIGINT or SIGTERM; return the agreement.

        Raises:
            InputError: the kubeconfig, API server or report cannot be used.
        """
        try:
            with exit_on_sigterm():
                return asyncio.run(self._run())
        finally:
            self._runner.close()
            self.setup.connections.close()

    async def _run(self) -> Agreement:
        declared = self.setup.configuration.declared.client_connection
        qps, burst = self.options.rate_limit(declared)
        access = await open_access(self.options.kubeconfig_for(declared), self.options.context)
        opened = self._report.open("wb") if self._report is not None else nullcontext(None)
        async with ApiConnection(access, user_agent=USER_AGENT, qps=qps, burst=burst) as connection:
            with opened as file, stopping_signals(self._stop):

                def write(verdict: Verdict) -> None:
                    if file is not None:
                        file.write(_encode(verdict) + b"\n")

                dry_run = DryRun(self._make(), write)
                feed = ClusterFeed(connection, lambda changes: dry_run.apply(changes, self._clock.now_ns()))
                # A server that does not respond must not keep the process from ending.
                await unless_stopped(self._stop, feed.open())
                if not self._stop.is_set():
                    await unless_stopped(self._stop, feed.watch_during(self._watch(feed, dry_run, access.url)))
                dry_run.compare_due(self._clock.now_ns(), at_once=True)
        self._print_line(dry_run.agreement.summary())
        return dry_run.agreement

    async def _watch(self, feed: ClusterFeed, dry_run: DryRun, url: str) -> None:
        """Compare decisions until canceled."""
        await feed.wait_until_synced()
        feed.begin()
        dry_run.compare_due(self._clock.now_ns(), at_once=True)
        self._print_line(f"watching the scheduler of {url}; nothing is written there")
        printed, printed_at = 0, time.monotonic()
        while True:
            await asyncio.sleep(TURN_SECONDS)
            dry_run.compare_due(self._clock.now_ns())
            found = dry_run.agreement.placed + dry_run.agreement.refused
            if found != printed and time.monotonic() - printed_at > PROGRESS_SECONDS:
                printed, printed_at = found, time.monotonic()
                self._print_line(dry_run.agreement.summary())

    def _make(self) -> Scheduler:
        return self.setup.make(start_ns=self._clock.now_ns(), sampling=False)
