"""Try and compare: forks of the cluster, and two runs side by side."""

from __future__ import annotations

import asyncio
from http import HTTPStatus

import httpx
import msgspec
from starlette.requests import Request
from starlette.responses import Response

from bayplan.engine.decision import Decision, Outcome
from bayplan.service.answers import json_answer
from bayplan.service.bodies import read_struct
from bayplan.service.comparison import KINDS, Side, comparison_document
from bayplan.service.configuration_facts import check
from bayplan.service.forks import (
    SECOND_NS,
    Fork,
    ForkRequest,
    ForkSetup,
    changed_objects,
    objects_now,
    objects_of,
)
from bayplan.service.instants import format_instant
from bayplan.service.observation import Observation
from bayplan.service.pod_table import PodColumns, PodStatus
from bayplan.service.query import Query
from bayplan.service.refusal import Refusal
from bayplan.service.subject import Decisions
from bayplan.sim.result import PodFate, SimulationResult

NOW = "now"
REMOTE_SECONDS = 10.0
"""So long another server may take for its whole answer."""

MOST_REMOTE_BYTES = 64 << 20
"""So long its answer may be: that of 100,000 pods takes some megabytes."""

Plain = dict[str, object]


class Placements(msgspec.Struct):
    """The node of each pod, as another server tells it.

    Attributes:
        pods: ``namespace/name``. nodes: their nodes, "" for those that wait. instance: of the server.
    """

    pods: list[str]
    nodes: list[str]
    instance: str = ""


# --- forks ------------------------------------------------------------------------------------------------------------


def fork_document(fork: Fork) -> Plain:
    """Return a fork as plain data."""
    progress = fork.progress
    return {
        "id": fork.id,
        "name": fork.name,
        "from": fork.origin,
        "state": fork.state,
        "created_at": format_instant(fork.created_ns),
        "message": fork.message,
        "progress": None
        if progress is None
        else {"now": format_instant(progress.now_ns), "decisions": progress.decisions, "waiting": progress.waiting},
        "facts": None if fork.facts is None else fork.facts.as_dict(),
    }


async def forks(observation: Observation, request: Request, query: Query) -> Response:
    """List forks."""
    items = [fork_document(fork) for fork in observation.forks.all()]
    page = {"items": items, "total": len(items), "total_is_exact": True, "offset": 0, "limit": len(items)}
    return json_answer(request, page)


async def fork(observation: Observation, request: Request, query: Query) -> Response:
    """Tell about one fork."""
    return json_answer(request, fork_document(observation.forks.get(request.path_params["id"])))


async def delete_fork(observation: Observation, request: Request, query: Query) -> Response:
    """Throw a fork away."""
    observation.forks.delete(request.path_params["id"])
    return await forks(observation, request, query)


async def begin_fork(observation: Observation, request: Request, query: Query) -> Response:
    """Copy the cluster, change something, and let it run in virtual time."""
    wanted, subject = await read_struct(request, ForkRequest), observation.subject
    settings, text = subject.settings, wanted.config
    if wanted.until is not None and not 0 <= wanted.until <= 10**9:
        raise Refusal(HTTPStatus.UNPROCESSABLE_ENTITY, "until", got=str(wanted.until), wanted="seconds, from 0 on")
    configuration = settings.configuration
    if text is not None:
        configuration = await observation.off_loop(lambda: check(settings, text))
    if wanted.origin == NOW:
        now = objects_now(subject.bridge.store)
        objects = await observation.off_loop(lambda: changed_objects(now, wanted.objects, wanted.delete))
    else:
        contents = next((each.contents for each in subject.snapshots() if each.name == wanted.origin), None)
        if contents is None:
            known = ", ".join((NOW, *(each.name for each in subject.snapshots())))
            raise Refusal(HTTPStatus.NOT_FOUND, "from", got=f"'{wanted.origin}'", wanted=f"one of {known}")
        objects = await observation.off_loop(
            lambda: changed_objects(objects_of(contents), wanted.objects, wanted.delete)
        )
    setup = ForkSetup(
        objects=lambda: objects,
        configuration=configuration,
        registry=settings.registry,
        feature_gates=settings.feature_gates,
        seed=settings.seed if wanted.seed is None else wanted.seed,
        start_ns=subject.clock.now_ns(),
        until_ns=None if wanted.until is None else int(wanted.until * SECOND_NS),
    )
    begun = observation.forks.begin(wanted, setup, subject.clock.now_ns())
    return json_answer(request, fork_document(begun), HTTPStatus.CREATED)


# --- compare ----------------------------------------------------------------------------------------------------------


async def placements(observation: Observation, request: Request, query: Query) -> Response:
    """Return the node of every pod in one answer, for those who compare."""
    columns = await observation.view.pod_columns()
    instance = observation.subject.instance

    def make() -> Response:
        nodes = nodes_of(columns)
        return json_answer(request, Placements([*nodes], [*nodes.values()], instance))

    return await observation.off_loop(make)


def nodes_of(pods: PodColumns) -> dict[str, str]:
    """Return the node of each pod that is not finished, "" for those that wait."""
    names, found = pods.nodes, {}
    finished = int(PodStatus.FINISHED)
    for key, code, status in zip(pods.keys, pods.node.tolist(), pods.status.tolist(), strict=True):
        if key and status != finished:
            found[key] = names[code]
    return found


async def compare(observation: Observation, request: Request, query: Query) -> Response:
    """Compare two runs: ``now``, a fork, or another server by its address."""
    kind, (offset, limit) = query.one_of("kind", KINDS), query.page()
    names = [query.text(name, NOW) for name in ("a", "b")]
    if any(_is_remote(name) for name in names) and request.headers.get("sec-fetch-site") == "cross-site":
        # An image in somebody else's page could make this server ask any address that it reaches.
        raise Refusal(HTTPStatus.FORBIDDEN, "compare", got="a request from another site's page", wanted="one from ours")
    sides = [await _side(observation, name) for name in names]
    return await observation.off_loop(
        lambda: json_answer(request, comparison_document(sides[0], sides[1], kind, offset, limit))
    )


def _is_remote(name: str) -> bool:
    return name.startswith(("http://", "https://"))


async def _side(observation: Observation, name: str) -> Side:
    if name == NOW:
        pods = await observation.view.pod_columns()
        decisions = observation.subject.decisions
        nodes = await observation.off_loop(lambda: nodes_of(pods))
        facts: Plain = {"kind": NOW, "at": format_instant(observation.subject.clock.now_ns())}
        return Side(name=NOW, nodes=nodes, facts=facts, decision=lambda pod: _decision(decisions, pod))
    if _is_remote(name):
        told = await _ask(name.rstrip("/"))
        facts = {"kind": "server", "url": name, "instance": told.instance}
        return Side(name=name, nodes=dict(zip(told.pods, told.nodes, strict=True)), facts=facts)
    fork, result = observation.forks.get(name), observation.forks.finished(name)
    numbers = await observation.off_loop(lambda: _last_numbers(result))
    nodes = {life.key: life.node for life in result.pods if life.ended_ns is None and life.fate is not PodFate.DELETED}
    facts = {"kind": "fork", "at": format_instant(result.end_ns), "digest": result.digest, "id": fork.id}

    def decision(pod: str) -> Decision | None:
        number = numbers.get(pod)
        return None if number is None or result.records[number].frame < 0 else result.records.decision(number)

    return Side(name=fork.name or fork.id, nodes=nodes, facts=facts, decision=decision)


def _last_numbers(result: SimulationResult) -> dict[str, int]:
    """Return the number of the last decision about each pod that is not left out as being none."""
    return {record.pod: number for number, record in enumerate(result.records) if record.outcome is not Outcome.SKIPPED}


def _decision(decisions: Decisions, pod: str) -> Decision | None:
    for number in reversed(decisions.numbers_of(pod)):
        try:
            return decisions.decision(number)
        except LookupError:
            continue
    return None


async def _ask(url: str) -> Placements:
    """Ask another server for its placements.

    Raises:
        Refusal: it does not answer in time, answers too much, or is no such server.
    """
    try:
        async with asyncio.timeout(REMOTE_SECONDS), httpx.AsyncClient(timeout=REMOTE_SECONDS) as client:
            told = msgspec.json.decode(await _read(client, url), type=Placements)
    except (httpx.HTTPError, httpx.InvalidURL, msgspec.DecodeError, TimeoutError) as problem:
        got = f"{type(problem).__name__}: {problem}"
        raise Refusal(HTTPStatus.BAD_GATEWAY, url, got=got, wanted="a server of this kind that answers") from problem
    if len(told.pods) != len(told.nodes):
        got = f"{len(told.pods)} pods and {len(told.nodes)} nodes"
        raise Refusal(HTTPStatus.BAD_GATEWAY, url, got=got, wanted="a node for each pod")
    return told


async def _read(client: httpx.AsyncClient, url: str) -> bytes:
    """Return the placements of another server as it tells them.

    Raises:
        Refusal: they are too long.
    """
    found = bytearray()
    async with client.stream("GET", f"{url}/bayplan/v1/placements") as answer:
        answer.raise_for_status()
        async for piece in answer.aiter_bytes():
            found += piece
            if len(found) > MOST_REMOTE_BYTES:
                wanted = f"at most {MOST_REMOTE_BYTES:,} bytes"
                raise Refusal(HTTPStatus.BAD_GATEWAY, url, got="a longer answer", wanted=wanted)
    return bytes(found)
