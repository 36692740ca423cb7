"""The report that a server prints once its initial cluster is idle."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from bayplan.analysis.cluster_report import cluster_facts, render_cluster_report
from bayplan.analysis.report import print_parts, report_console
from bayplan.app.api_service import Service
from bayplan.base.errors import EngineBusy
from bayplan.base.standard_output import discard_output

MAX_WAIT_SECONDS = 10.0
REST_SECONDS = 0.3
"""A cluster counts as idle when, for this long, no work was due and no decision was made."""

_tasks: set[asyncio.Task[None]] = set()


def begin_report(service: Service, then: Callable[[], None]) -> None:
    """Print the report when the cluster is idle, or after `MAX_WAIT_SECONDS`; call on the loop.

    Args:
        service: the running service.
        then: the function to call afterwards, even if the report can't be printed.
    """
    task = asyncio.get_running_loop().create_task(_report(service, then))
    # The loop itself has only weak references to tasks.
    _tasks.add(task)
    task.add_done_callback(_tasks.discard)


async def _report(service: Service, then: Callable[[], None]) -> None:
    try:
        try:
            await _come_to_rest(service)
            await _print(service)
        finally:
            then()
    except BrokenPipeError:
        discard_output()


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
        facts = await asyncio.wait_for(asyncio.wrap_future(question), MAX_WAIT_SECONDS)
    except (TimeoutError, EngineBusy):
        print("the scheduler is busy: no report")
    else:
        print_parts(report_console(), render_cluster_report(facts))


async def _come_to_rest(service: Service) -> None:
    engine = service.simulator.engine
    end = time.monotonic() + MAX_WAIT_SECONDS
    before, now = -1, 0
    while before != now and time.monotonic() < end:
        before = now
        await service.simulator.settle(end - time.monotonic())
        # Controllers and the kubelet may have work shortly afterwards.
        await asyncio.sleep(REST_SECONDS)
        now = await asyncio.wrap_future(engine.submit(lambda scheduler: len(scheduler.records)))
