"""The report that a server prints once the cluster it was given has come to rest."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from bayplan.analysis.cluster_report import cluster_facts, render_cluster_report
from bayplan.analysis.report import print_parts, report_console
from bayplan.app.api_service import Service
from bayplan.base.errors import EngineBusy

LONGEST_WAIT_SECONDS = 10.0
REST_SECONDS = 0.3
"""A cluster has come to rest when for so long nothing was decided, and nothing waits to be written."""

_tasks: set[asyncio.Task[None]] = set()


def begin_report(service: Service, then: Callable[[], None]) -> None:
    """Print the report when the cluster has come to rest, or after `LONGEST_WAIT_SECONDS`; called on the loop.

    Args:
        service: that runs. then: is called afterwards.
    """
    task = asyncio.get_running_loop().create_task(_report(service, then))
    # The loop itself holds tasks only weakly.
    _tasks.add(task)
    task.add_done_callback(_tasks.discard)


async def _report(service: Service, then: Callable[[], None]) -> None:
    try:
        await _come_to_rest(service)
        await _print(service)
    finally:
        then()


async def _print(service: Service) -> None:
    simulator = service.simulator
    status = simulator.engine.status()
    decisions = {
        "scheduled": status.scheduled,
        "unschedulable": status.unschedulable,
        "errors": status.errors,
        "skipped": status.skipped,
    }
    question = simulator.engine.submit(lambda scheduler: cluster_facts(scheduler, decisions))
    try:
        facts = await asyncio.wait_for(asyncio.wrap_future(question), LONGEST_WAIT_SECONDS)
    except (TimeoutError, EngineBusy):
        print("the scheduler is busy: no report")
    else:
        print_parts(report_console(), render_cluster_report(facts))


async def _come_to_rest(service: Service) -> None:
    simulator = service.simulator
    end = time.monotonic() + LONGEST_WAIT_SECONDS
    seen, since = -1, time.monotonic()
    while time.monotonic() < end:
        await asyncio.sleep(REST_SECONDS / 6)
        status = simulator.engine.status()
        if status.decisions != seen or status.pending_bindings or not simulator.pump.is_idle:
            seen, since = status.decisions, time.monotonic()
        elif time.monotonic() - since >= REST_SECONDS:
            return
