"""Handlers that control the running server: clock and steps, queue, configuration, plugins, snapshots."""

from __future__ import annotations

from http import HTTPStatus
from typing import Literal

import msgspec
from msgspec.structs import asdict
from starlette.requests import Request
from starlette.responses import Response

from bayplan.base.errors import ConfigurationError
from bayplan.base.go_text.times import format_instant
from bayplan.engine.scheduler import Scheduler
from bayplan.framework.configuration.extension_points import in_tree_extension_points
from bayplan.http_api.answers import json_answer
from bayplan.http_api.bodies import read_struct, read_text
from bayplan.http_api.configuration_facts import (
    check,
    configuration_document,
    default_document,
    error_of,
    validation_document,
)
from bayplan.http_api.contract.answer import whole
from bayplan.http_api.contract.cluster import SourceList
from bayplan.http_api.contract.configuration import PluginIncident, PluginList, PluginRow
from bayplan.http_api.contract.decisions import ClockStep
from bayplan.http_api.contract.queue import Moved
from bayplan.http_api.contract.runs import Restored, SnapshotList, SnapshotRow
from bayplan.http_api.errors import RequestError
from bayplan.http_api.overview import clock_document
from bayplan.http_api.pod_table import PodStatus
from bayplan.http_api.query import Query
from bayplan.http_api.server_context import NamedSnapshot
from bayplan.http_api.server_state import ServerState
from bayplan.http_api.sources import sources_of

QUEUE_SECONDS = 2.0
"""Maximum time to wait for the engine to change its queue."""

DOCUMENTATION = "https://kubernetes.io/docs/reference/scheduling/config/#scheduling-plugins"


# --- clock ------------------------------------------------------------------------------------------------------------


class ClockChange(msgspec.Struct, forbid_unknown_fields=True):
    """New settings of the clock. Absent fields are unchanged."""

    paused: bool | None = None
    speed: float | None = None


class Step(msgspec.Struct, forbid_unknown_fields=True):
    """Whether to step by one decision or to the next event."""

    by: Literal["decision", "event"] = "decision"


async def set_clock(state: ServerState, request: Request, query: Query) -> Response:
    """Pause or resume the clock, or set its speed."""
    wanted, clock = await read_struct(request, ClockChange), state.server.clock
    if wanted.speed is not None:
        clock.set_speed(wanted.speed)
    if wanted.paused is not None and wanted.paused != clock.paused:
        if wanted.paused:
            clock.pause()
        else:
            clock.resume()
    return json_answer(request, clock_document(clock))


async def step_clock(state: ServerState, request: Request, query: Query) -> Response:
    """Make one decision, or advance to the next event, and leave the clock paused."""
    step, server = await read_struct(request, Step), state.server
    before = len(server.decisions)
    done = await (server.step_decision() if step.by == "decision" else server.step_event())
    state.queue.forget()
    decisions = range(before, len(server.decisions))
    items = await state.off_loop(lambda: state.summaries.of(decisions[-20:]))
    return json_answer(request, ClockStep(**asdict(clock_document(server.clock)), done=done, decisions=items))


# --- queue ------------------------------------------------------------------------------------------------------------


async def flush_queue(state: ServerState, request: Request, query: Query) -> Response:
    """Retry all pods in backoff and all unschedulable pods now. Gated pods stay gated."""
    now_ns = state.server.clock.now_ns()

    def flush(scheduler: Scheduler) -> int:
        queue = scheduler.queue
        pods = {
            queued.key: queued.pod
            for queued in (*queue.backing_off(), *queue.unschedulable())
            if not queued.gating_plugin
        }
        return queue.activate(pods.values(), now_ns)

    moved = await state.off_loop(lambda: state.server.engine.call(flush, QUEUE_SECONDS))
    state.queue.forget()
    return json_answer(request, Moved(moved=moved))


async def retry_pod(state: ServerState, request: Request, query: Query) -> Response:
    """Retry one waiting pod now."""
    key = f"{request.path_params['namespace']}/{request.path_params['name']}"
    now_ns = state.server.clock.now_ns()

    def retry(scheduler: Scheduler) -> int | None:
        queued = scheduler.queue.get(key)
        return None if queued is None else scheduler.queue.activate([queued.pod], now_ns)

    moved = await state.off_loop(lambda: state.server.engine.call(retry, QUEUE_SECONDS))
    if moved is None:
        raise RequestError(HTTPStatus.NOT_FOUND, "pod", got=f"'{key}'", wanted="a pod in the scheduling queue")
    state.queue.forget()
    return json_answer(request, Moved(moved=moved))


# --- configuration and plugins ----------------------------------------------------------------------------------------


async def config(state: ServerState, request: Request, query: Query) -> Response:
    """Return the configuration in use."""
    setup = state.server.setup
    return await state.off_loop(lambda: json_answer(request, configuration_document(setup)))


async def default_config(state: ServerState, request: Request, query: Query) -> Response:
    """Return the default configuration."""
    setup = state.server.setup
    return await state.off_loop(lambda: json_answer(request, default_document(setup)))


async def validate_config(state: ServerState, request: Request, query: Query) -> Response:
    """Return the errors of a configuration, or what applying it would change, without applying it."""
    text, setup = await read_text(request), state.server.setup
    pods = await state.view.pod_columns()
    waiting = pods.counts()[PodStatus.WAITING.text]
    return await state.off_loop(lambda: json_answer(request, validation_document(setup, text, waiting)))


async def put_config(state: ServerState, request: Request, query: Query) -> Response:
    """Apply another configuration, completely or not at all."""
    text, server = await read_text(request), state.server
    setup = server.setup
    await state.off_loop(lambda: check(setup, text))
    try:
        await server.configure(text)
    except ConfigurationError as problem:
        raise error_of(problem) from problem
    state.queue.forget()
    setup = server.setup
    return await state.off_loop(lambda: json_answer(request, configuration_document(setup)))


async def plugins(state: ServerState, request: Request, query: Query) -> Response:
    """List the available plugins and their failures."""
    return json_answer(request, _plugins(state))


async def reload_plugins(state: ServerState, request: Request, query: Query) -> Response:
    """Reload the files of custom plugins."""
    await state.server.reload_plugins()
    state.queue.forget()
    return json_answer(request, _plugins(state))


def _plugins(state: ServerState) -> PluginList:
    setup = state.server.setup
    enabled: dict[str, list[str]] = {}
    for profile in setup.configuration.profiles:
        for point, of_point in profile.plugins.items():
            for plugin in of_point:
                points = enabled.setdefault(plugin.name, [])
                if point not in points:
                    points.append(point)
    failures = _incidents(state)
    items = [
        PluginRow(
            name=name,
            points=list(setup.registry.extension_points_of(name)),
            enabled=enabled.get(name, []),
            file=setup.plugin_files.get(name) or None,
            built_in=name not in setup.plugin_files,
            failures=failures.get(name, []),
            documentation=None if in_tree_extension_points(name) is None else DOCUMENTATION,
        )
        for name in sorted(setup.registry)
    ]
    return PluginList(**whole(items), items=items)


def _incidents(state: ServerState) -> dict[str, list[PluginIncident]]:
    """Return the failures by plugin: each exception once per extension point, with the number of times it was raised."""
    found: dict[str, dict[tuple[str, str], PluginIncident]] = {}
    for failure in state.server.engine.status().plugin_failures:
        of_plugin = found.setdefault(failure.plugin, {})
        known = of_plugin.get((failure.point, failure.exception))
        of_plugin[failure.point, failure.exception] = PluginIncident(
            at=format_instant(failure.at_ns),
            point=failure.point,
            exception=failure.exception,
            traceback=failure.traceback,
            count=1 + (0 if known is None else known.count),
        )
    return {plugin: [*incidents.values()] for plugin, incidents in found.items()}


# --- snapshots --------------------------------------------------------------------------------------------------------


class SnapshotName(msgspec.Struct, forbid_unknown_fields=True):
    """The name for a new snapshot."""

    name: str


def _snapshot(kept: NamedSnapshot) -> SnapshotRow:
    return SnapshotRow(name=kept.name, taken_at=format_instant(kept.taken_ns), revision=kept.revision)


def _snapshots(state: ServerState) -> SnapshotList:
    items = [_snapshot(kept) for kept in state.server.snapshots()]
    return SnapshotList(**whole(items), items=items)


async def snapshots(state: ServerState, request: Request, query: Query) -> Response:
    """List the snapshots."""
    return json_answer(request, _snapshots(state))


async def take_snapshot(state: ServerState, request: Request, query: Query) -> Response:
    """Take a snapshot of the cluster."""
    wanted = await read_struct(request, SnapshotName)
    if any(kept.name == wanted.name for kept in state.server.snapshots()):
        raise RequestError(
            HTTPStatus.CONFLICT,
            "snapshot",
            wanted="a new name",
            got=f"'{wanted.name}', which already exists",
            hint="another name",
        )
    state.server.take_snapshot(wanted.name)
    kept = next(kept for kept in state.server.snapshots() if kept.name == wanted.name)
    return json_answer(request, _snapshot(kept), HTTPStatus.CREATED)


def _known(state: ServerState, request: Request) -> str:
    name: str = request.path_params["name"]
    names = [kept.name for kept in state.server.snapshots()]
    if name not in names:
        known = ", ".join(names) or "none"
        raise RequestError(
            HTTPStatus.NOT_FOUND, "snapshot", got=f"'{name}'", wanted=f"one of the existing snapshots: {known}"
        )
    return name


async def restore_snapshot(state: ServerState, request: Request, query: Query) -> Response:
    """Restore a snapshot."""
    state.server.restore_snapshot(_known(state, request))
    return json_answer(request, Restored(revision=state.server.backend.store.revision))


async def delete_snapshot(state: ServerState, request: Request, query: Query) -> Response:
    """Delete a snapshot."""
    state.server.delete_snapshot(_known(state, request))
    return json_answer(request, _snapshots(state))


async def reset(state: ServerState, request: Request, query: Query) -> Response:
    """Reset the cluster to its state when the server became ready."""
    state.server.reset()
    return json_answer(request, Restored(revision=state.server.backend.store.revision))


async def sources(state: ServerState, request: Request, query: Query) -> Response:
    """List the sources that import, sync and replay read."""
    items = sources_of(state.server.backend)
    return json_answer(request, SourceList(**whole(items), items=items))
