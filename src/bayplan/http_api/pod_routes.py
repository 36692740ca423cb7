"""Handlers that read pods: the table, one pod, its attempts and their plugin results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec
from msgspec import UNSET
from starlette.requests import Request
from starlette.responses import Response

from bayplan.apiserver.rest.backend import decode_item
from bayplan.engine.decision import Decision
from bayplan.http_api.answers import json_answer
from bayplan.http_api.attempt_matrix import attempt_matrix, matrix_plugins
from bayplan.http_api.contract.answer import Facet
from bayplan.http_api.contract.decisions import AttemptList
from bayplan.http_api.contract.matrix import AnyMatrix
from bayplan.http_api.contract.pods import PodFacets, PodList
from bayplan.http_api.contract.pods import PodPage as PodPageAnswer
from bayplan.http_api.errors import RequestError
from bayplan.http_api.matrix import MAX_ROWS as MAX_MATRIX_ROWS
from bayplan.http_api.matrix import ONLY, SORTS, MatrixQuery
from bayplan.http_api.pod_page import PodPage, TrialSource
from bayplan.http_api.pod_query import SORTS as POD_SORTS
from bayplan.http_api.pod_query import Found, PodFilter, find_pods
from bayplan.http_api.pod_table import STATUS_NAMES
from bayplan.http_api.query import DEADLINE_SECONDS, Deadline, Query
from bayplan.http_api.questions import Inquiry
from bayplan.http_api.server_state import CAUSES_SECONDS, ServerState
from bayplan.http_api.waiting_causes import waiting_rows
from bayplan.objects.kinds import encode
from bayplan.sim.result import PodFate

NOW = "now"
"""Stands for a hypothetical attempt: a trial in the current cluster."""

MARGIN_SECONDS = 0.06
"""Maximum time that a page of pods may spend on reading full records for margins."""


async def pods(state: ServerState, request: Request, query: Query) -> Response:
    """List the matching pods, sorted, one page at a time."""
    priority = query.text("priority")
    wanted = PodFilter(
        words=query.text("q").split(),
        status=query.one_of("status", [*STATUS_NAMES]),
        reason=query.text("reason"),
        namespace=query.text("namespace"),
        node=query.text("node"),
        priority=query.number("priority", 0, least=-(2**31)) if priority else None,
        workload=query.text("workload"),
    )
    sort, (offset, limit), facets = query.sort(POD_SORTS, "name"), query.page(), query.switch("facets")
    model = await state.read_model(query.text("run"))
    columns = model.pods

    def find() -> Found:
        deadline = Deadline(DEADLINE_SECONDS - MARGIN_SECONDS)
        return find_pods(columns, wanted, sort=sort, offset=offset, limit=limit, facets=facets, deadline=deadline)

    found = await state.off_loop(find)
    waiting = waiting_rows(columns, found.rows)
    source = model.source_of(waiting)

    def make() -> Response:
        causes = model.rows.causes.of(source, columns, model.nodes, waiting, Deadline(CAUSES_SECONDS))
        page = PodList(
            version=columns.version,
            items=model.rows.rows(columns, found.rows, Deadline(MARGIN_SECONDS), causes),
            total=found.total,
            total_is_exact=found.is_exact,
            offset=offset,
            limit=limit,
            facets=UNSET if found.facets is None else _facets(found.facets),
        )
        return json_answer(request, page)

    return await state.off_loop(make)


def _facets(values: Mapping[str, Sequence[tuple[str, int]]]) -> PodFacets:
    counted = {name: [Facet(value=value, count=count) for value, count in pairs] for name, pairs in values.items()}
    return PodFacets(**counted)


def _key(request: Request) -> str:
    return f"{request.path_params['namespace']}/{request.path_params['name']}"


async def _with_page(
    state: ServerState,
    request: Request,
    query: Query,
    make: Callable[[PodPage], msgspec.Struct | None],
) -> Response:
    """Build a response from a pod's page on a worker thread. `make`: returns the document for the page."""
    key, run = _key(request), query.text("run")
    source = None if run else await state.source_of(key)

    def answer() -> Response:
        if source is not None:
            return json_answer(request, make(PodPage(source, key, state.summaries)))
        fork = state.forks.read_model_of(run)
        return json_answer(request, make(PodPage(fork.source, key, fork.read_model.summaries)))

    return await state.off_loop(answer)


async def pod(state: ServerState, request: Request, query: Query) -> Response:
    """Return the details of one pod."""
    manifest = None
    key = request.path_params["namespace"], request.path_params["name"]
    item = state.server.backend.store.get("pods", key)
    if item is not None and not query.text("run"):
        manifest = {"apiVersion": "v1", "kind": "Pod", **decode_item(item)}

    def make(page: PodPage) -> PodPageAnswer:
        if not query.text("run"):
            return page.document(state.queue_or_none(), manifest)
        there = page.life.pod if page.life.fate is not PodFate.DELETED else None
        return page.document(None, None if there is None else encode(there))

    return await _with_page(state, request, query, make)


async def attempts(state: ServerState, request: Request, query: Query) -> Response:
    """List the attempts of a pod, one page at a time."""
    offset, limit = query.page(default=200)

    def make(page: PodPage) -> AttemptList:
        found = page.attempt_list()
        items = found[offset : offset + limit]
        return AttemptList(items=items, total=len(found), total_is_exact=True, offset=offset, limit=limit)

    return await _with_page(state, request, query, make)


async def matrix(state: ServerState, request: Request, query: Query) -> Response:
    """Return the plugin results of one attempt, nodes by plugins. The attempt ``now`` is a trial in the present cluster."""
    offset, limit = query.page(MAX_MATRIX_ROWS, 200)
    form, only = query.one_of("form", ("rows", "columns"), "rows"), query.one_of("only", ONLY, "all")
    text, exhaustive, run = query.text("q"), query.switch("exhaustive"), query.text("run")
    attempt, decisions = request.path_params["attempt"], None if run else state.server.decisions
    if attempt == NOW:
        # A trial ends with the choice of a node, so no results of later plugins exist.
        attempt, decisions = "latest", None
    asked = matrix_plugins(state.server.setup.configuration)

    def make(page: PodPage) -> AnyMatrix:
        def wanted(decision: Decision) -> MatrixQuery:
            sort = query.sort((*SORTS, *decision.scorers, *decision.filters), "rank")
            return MatrixQuery(
                only=only,
                text=text,
                sort=sort,
                offset=offset,
                limit=limit,
                columns=form == "columns",
                exhaustive=exhaustive,
            )

        return attempt_matrix(page, attempt, wanted, asked, decisions)

    if request.path_params["attempt"] != NOW:
        return await _with_page(state, request, query, make)
    if run:
        raise RequestError(
            400, "attempt", got="now (only for the cluster, not for a fork)", wanted="a number or latest"
        )
    key, summaries = _key(request), state.summaries

    def answer(inquiry: Inquiry) -> Response:
        with inquiry.cluster.trial() as trial:
            source = TrialSource(trial, inquiry.timelines, inquiry.timeline(key), inquiry.cluster.now_ns)
            return json_answer(request, make(PodPage(source, key, summaries)))

    return await state.questions.run(request, answer)


async def preemption(state: ServerState, request: Request, query: Query) -> Response:
    """Return the result of the search for preemption victims; null if there was none."""
    return await _with_page(state, request, query, lambda page: page.preemption(request.path_params["attempt"]))


async def explanation(state: ServerState, request: Request, query: Query) -> Response:
    """Return the output of ``bayplan explain --json`` for the pod."""
    attempt, node, best = query.maybe_number("attempt"), query.text("node"), query.number("best", 5, least=1, most=200)
    return await _with_page(state, request, query, lambda page: page.explanation(attempt, node, best))
