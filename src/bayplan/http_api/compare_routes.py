"""Handlers for comparisons: the placements of two runs, and the plugin results for one pod in both runs."""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from bayplan.answers.decisive_plugin import DecisionOutput, PluginOutput, decisive_plugin
from bayplan.base.go_text.times import format_instant
from bayplan.engine.decision import Decision, Outcome
from bayplan.http_api.answers import json_answer
from bayplan.http_api.attempt_matrix import attempt_matrix, matrix_plugins
from bayplan.http_api.comparison import KINDS, MatrixOutput, Side, comparison_document
from bayplan.http_api.contract.matrix import AnyMatrix, NoMatrix
from bayplan.http_api.contract.runs import ComparedMatrix, ComparedRun, Placements, PodComparison
from bayplan.http_api.errors import RequestError
from bayplan.http_api.forks import NOW
from bayplan.http_api.matrix import MAX_ROWS, MatrixQuery
from bayplan.http_api.pod_page import PodPage
from bayplan.http_api.pod_table import PodColumns, PodStatus
from bayplan.http_api.query import Query
from bayplan.http_api.remote_server import RemoteServer
from bayplan.http_api.server_context import Decisions
from bayplan.http_api.server_state import ServerState
from bayplan.http_api.sources import source_facts, sources_of
from bayplan.sim.result import PodFate, SimulationResult


async def placements(state: ServerState, request: Request, query: Query) -> Response:
    """Return the node of every unfinished pod, so that another server can compare the runs."""
    columns = await state.view.pod_columns()
    instance = state.server.instance

    def make() -> Response:
        nodes = nodes_of(columns)
        return json_answer(request, Placements(pods=[*nodes], nodes=[*nodes.values()], instance=instance))

    return await state.off_loop(make)


def nodes_of(pods: PodColumns) -> dict[str, str]:
    """Return the node of each unfinished pod by key; "" if the pod waits."""
    names, found = pods.nodes, {}
    finished = int(PodStatus.FINISHED)
    for key, code, status in zip(pods.keys, pods.node.tolist(), pods.status.tolist(), strict=True):
        if key and status != finished:
            found[key] = names[code]
    return found


async def compare(state: ServerState, request: Request, query: Query) -> Response:
    """Compare the placements of two runs. A run is ``now``, a fork, or another server, given by its URL."""
    kind, (offset, limit) = query.one_of("kind", KINDS), query.page()
    names = _sides(request, query)
    sides = [await _side(state, name) for name in names]
    return await state.off_loop(
        lambda: json_answer(request, comparison_document(sides[0], sides[1], kind, offset, limit))
    )


async def compare_pod(state: ServerState, request: Request, query: Query) -> Response:
    """Compare the plugin results for one pod in the last attempts of two runs."""
    namespace, name = request.path_params["namespace"], request.path_params["name"]
    sides = _sides(request, query)
    a, b = await asyncio.gather(*(_matrix(state, side, namespace, name) for side in sides))

    def make() -> Response:
        a_node, b_node = ("" if isinstance(side.matrix, NoMatrix) else side.matrix.winner for side in (a, b))
        answer = PodComparison(
            pod=f"{namespace}/{name}",
            a_node=a_node,
            b_node=b_node,
            decisive_plugin=decisive_plugin(a.output, b.output, a_node, b_node),
            a=ComparedMatrix(name=sides[0], matrix=a.matrix),
            b=ComparedMatrix(name=sides[1], matrix=b.matrix),
        )
        return json_answer(request, answer)

    return await state.off_loop(make)


def _sides(request: Request, query: Query) -> list[str]:
    names = [query.text(name, NOW) for name in ("a", "b")]
    site = request.headers.get("sec-fetch-site", "none")
    if any(_is_remote(name) for name in names) and site not in ("none", "same-origin"):
        # An image on another site's page could otherwise make this server send requests to any address that it can
        # reach. Another port counts as another site.
        raise RequestError(
            HTTPStatus.FORBIDDEN,
            "compare",
            got="a request from another site's page",
            wanted="a request from this server's page",
        )
    return names


def _is_remote(name: str) -> bool:
    return name.startswith(("http://", "https://"))


async def _side(state: ServerState, name: str) -> Side:
    if name == NOW:
        pods = await state.view.pod_columns()
        server = state.server
        nodes = await state.off_loop(lambda: nodes_of(pods))
        followed = [source_facts(each) for each in sources_of(server.backend)]
        at = format_instant(server.clock.now_ns())
        facts = ComparedRun(name="this cluster", kind=NOW, at=at, sources=followed)
        return Side(nodes=nodes, facts=facts, output=lambda pod: _output(server.decisions, pod))
    if _is_remote(name):
        remote = RemoteServer(name)
        placements, sources = await asyncio.gather(remote.placements(), remote.sources())
        facts = ComparedRun(
            name=remote.url, kind="server", url=remote.url, instance=placements.instance, sources=sources
        )
        return Side(nodes=dict(zip(placements.pods, placements.nodes, strict=True)), facts=facts)
    fork, result = state.forks.get(name), state.forks.finished(name)
    numbers = await state.off_loop(lambda: _last_numbers(result))
    nodes = {life.key: life.node for life in result.pods if life.ended_ns is None and life.fate is not PodFate.DELETED}
    name, at = fork.name or f"fork {fork.id}", format_instant(result.end_ns)
    facts = ComparedRun(name=name, kind="fork", at=at, digest=result.digest, id=fork.id)

    def output(pod: str) -> PluginOutput | None:
        number = numbers.get(pod)
        if number is None or result.records[number].frame < 0:
            return None
        return DecisionOutput(result.records.decision(number))

    return Side(nodes=nodes, facts=facts, output=output)


def _last_numbers(result: SimulationResult) -> dict[str, int]:
    """Return the number of each pod's last decision, ignoring skipped ones."""
    return {record.pod: number for number, record in enumerate(result.records) if record.outcome is not Outcome.SKIPPED}


def _output(decisions: Decisions, pod: str) -> PluginOutput | None:
    for number in reversed(decisions.numbers_of(pod)):
        try:
            return DecisionOutput(decisions.decision(number))
        except LookupError:
            continue
    return None


class _MatrixWithOutput(NamedTuple):
    """The matrix of a decision in columns, and the decision's plugin results; None if there is no full record.

    In very large clusters the matrix is truncated. The plugin results therefore come from the full record, if it is on
    this server.
    """

    matrix: AnyMatrix
    output: PluginOutput | None


async def _matrix(state: ServerState, side: str, namespace: str, name: str) -> _MatrixWithOutput:
    """Return the matrix and plugin results of a pod's last attempt in a run."""
    if _is_remote(side):
        matrix = await RemoteServer(side).matrix(namespace, name, f"form=columns&limit={MAX_ROWS}")
        return _MatrixWithOutput(matrix, None if isinstance(matrix, NoMatrix) else MatrixOutput(matrix))
    key, asked = f"{namespace}/{name}", matrix_plugins(state.server.setup.configuration)
    source = await state.source_of(key) if side == NOW else None
    decisions = state.server.decisions if side == NOW else None

    def make() -> _MatrixWithOutput:
        if source is not None:
            page = PodPage(source, key, state.summaries)
        else:
            fork = state.forks.read_model_of(side)
            page = PodPage(fork.source, key, fork.read_model.summaries)
        output: PluginOutput | None = None

        def wanted(decision: Decision) -> MatrixQuery:
            nonlocal output
            output = DecisionOutput(decision)
            return MatrixQuery(columns=True, limit=MAX_ROWS)

        return _MatrixWithOutput(attempt_matrix(page, "latest", wanted, asked, decisions), output)

    return await state.off_loop(make)
