"""Handlers for forks of the cluster."""

from __future__ import annotations

from collections.abc import Sequence
from http import HTTPStatus

from starlette.requests import Request
from starlette.responses import Response

from bayplan.base.durations import SECOND_NS
from bayplan.base.go_text.times import format_instant
from bayplan.framework.configuration.loading import SchedulerConfiguration
from bayplan.http_api.answers import json_answer
from bayplan.http_api.bodies import read_struct
from bayplan.http_api.configuration_facts import check
from bayplan.http_api.contract.answer import whole
from bayplan.http_api.contract.runs import ForkList, ForkProgress, ForkStatus
from bayplan.http_api.errors import RequestError
from bayplan.http_api.forks import NOW, Fork, ForkRequest, ForkSetup, changed_objects, objects_now, objects_of
from bayplan.http_api.query import Query
from bayplan.http_api.server_state import ServerState
from bayplan.objects.meta import KubernetesObject


def fork_document(fork: Fork) -> ForkStatus:
    """Return the status of a fork."""
    progress = fork.progress
    return ForkStatus(
        id=fork.id,
        name=fork.name,
        origin=fork.origin,
        state=fork.state,
        created_at=format_instant(fork.created_ns),
        message=fork.message,
        progress=None
        if progress is None
        else ForkProgress(now=format_instant(progress.now_ns), decisions=progress.decisions, waiting=progress.waiting),
        facts=fork.facts,
    )


async def forks(state: ServerState, request: Request, query: Query) -> Response:
    """List the forks."""
    items = [fork_document(fork) for fork in state.forks.all()]
    return json_answer(request, ForkList(**whole(items), items=items))


async def fork(state: ServerState, request: Request, query: Query) -> Response:
    """Return one fork."""
    return json_answer(request, fork_document(state.forks.get(request.path_params["id"])))


async def delete_fork(state: ServerState, request: Request, query: Query) -> Response:
    """Delete a fork, and return the remaining ones."""
    state.forks.delete(request.path_params["id"])
    return await forks(state, request, query)


async def begin_fork(state: ServerState, request: Request, query: Query) -> Response:
    """Copy the cluster, apply changes to the copy, and run it in virtual time."""
    wanted, server = await read_struct(request, ForkRequest), state.server
    setup, text = server.setup, wanted.config
    if wanted.until is not None and not 0 <= wanted.until <= 10**9:
        raise RequestError(
            HTTPStatus.UNPROCESSABLE_ENTITY, "until", got=str(wanted.until), wanted="seconds, at least 0"
        )
    configuration = setup.configuration
    if text is not None:
        configuration = await state.off_loop(lambda: check(setup, text))
    if wanted.origin == NOW:
        now = objects_now(server.bridge.store)
        objects = await state.off_loop(lambda: changed_objects(now, wanted.objects, wanted.delete, wanted.reschedule))
    else:
        contents = next((each.contents for each in server.snapshots() if each.name == wanted.origin), None)
        if contents is None:
            known = ", ".join((NOW, *(each.name for each in server.snapshots())))
            raise RequestError(HTTPStatus.NOT_FOUND, "from", got=f"'{wanted.origin}'", wanted=f"one of {known}")
        objects = await state.off_loop(
            lambda: changed_objects(objects_of(contents), wanted.objects, wanted.delete, wanted.reschedule)
        )
    begun = begin(state, wanted, objects, configuration)
    return json_answer(request, fork_document(begun), HTTPStatus.CREATED)


def begin(
    state: ServerState,
    wanted: ForkRequest,
    objects: Sequence[KubernetesObject],
    configuration: SchedulerConfiguration | None,
) -> Fork:
    """Start a fork with the given objects, and the given configuration or the server's.

    Raises:
        RequestError: there are too many forks.
    """
    server, now_ns = state.server.setup, state.server.clock.now_ns()
    setup = ForkSetup(
        objects=lambda: objects,
        server=server,
        configuration=server.configuration if configuration is None else configuration,
        seed=server.seed if wanted.seed is None else wanted.seed,
        start_ns=now_ns,
        until_ns=None if wanted.until is None else int(wanted.until * SECOND_NS),
    )
    return state.forks.begin(wanted, setup, now_ns)
