"""Handlers that read the cluster as a whole: overview, nodes, decisions, queue, clock."""

from __future__ import annotations

from http import HTTPStatus

import numpy as np
from msgspec import UNSET
from msgspec.structs import asdict, replace
from starlette.requests import Request
from starlette.responses import Response

from bayplan.analysis.cluster_sentences import node_sentence
from bayplan.base.build import build_name
from bayplan.base.durations import SECOND_NS
from bayplan.base.errors import PluginFailure
from bayplan.base.go_text.times import format_instant, parse_instant
from bayplan.base.version import KUBERNETES_VERSION, __version__
from bayplan.http_api.answers import json_answer
from bayplan.http_api.contract.cluster import Root
from bayplan.http_api.contract.decisions import DecisionList
from bayplan.http_api.contract.nodes import NodeBlock, NodeCondition, NodeList, NodePage, PodsRejected
from bayplan.http_api.decision_timeline import MAX_BINS, TimelineColumns, density_document
from bayplan.http_api.errors import RequestError
from bayplan.http_api.node_query import SORTS, NodeFilter, cells_document, facets_of, find_nodes, metrics_of, node_row
from bayplan.http_api.node_table import CORDONED, FULL_CELL, NOT_READY, NodeColumns
from bayplan.http_api.node_timeline import MAX_LANE_BINS, MAX_LANES, lifetimes_on_nodes, node_lanes
from bayplan.http_api.overview import clock_document
from bayplan.http_api.pod_page import event_row
from bayplan.http_api.pod_query import PodFilter, find_pods
from bayplan.http_api.pod_table import PodColumns, PodStatus
from bayplan.http_api.query import MAX_ROWS, Deadline, Query
from bayplan.http_api.queue_view import TIERS, queue_document
from bayplan.http_api.server_state import ServerState
from bayplan.sim.result import SimulatedEvent
from bayplan.state.resource_table import PODS

MAX_BLOCKS = 100
MAX_NODES_WITH_BLOCKS = 60
REJECTED_SECONDS = 0.1
NODE_FLAGS = {"": 0, "cordoned": CORDONED, "not_ready": NOT_READY}


async def root(state: ServerState, request: Request, query: Query) -> Response:
    """Return the server's versions and the paths of the API."""
    server = state.server
    names = (
        "overview",
        "nodes",
        "pods",
        "decisions",
        "queue",
        "clock",
        "config",
        "snapshots",
        "forks",
        "plugins",
        "what-if",
    )
    document = Root(
        version=__version__,
        kubernetes_version=KUBERNETES_VERSION,
        build=build_name(),
        instance=server.instance,
        started_at=format_instant(state.start_ns),
        links={name: f"/bayplan/v1/{name}" for name in (*names, "stream", "openapi.json")},
    )
    return json_answer(request, document)


async def overview(state: ServerState, request: Request, query: Query) -> Response:
    """Return a summary of the cluster and its problems."""
    return json_answer(request, await state.overview())


# --- nodes ------------------------------------------------------------------------------------------------------------


def _node_filter(query: Query) -> NodeFilter:
    zone, pool = (query.text(name, "\0") for name in ("zone", "pool"))
    return NodeFilter(
        words=query.text("q").split(),
        zone=None if zone == "\0" else zone,
        pool=None if pool == "\0" else pool,
        label=query.text("label"),
        flags=NODE_FLAGS[query.one_of("state", [*NODE_FLAGS])],
    )


async def nodes(state: ServerState, request: Request, query: Query) -> Response:
    """List the matching nodes, sorted, one page at a time."""
    wanted, (offset, limit) = _node_filter(query), query.page()
    model = await state.read_model(query.text("run"))
    columns = model.nodes
    sort = query.sort((*SORTS, *metrics_of(columns)), "name")
    blocks = query.switch("blocks")
    if blocks and limit > MAX_NODES_WITH_BLOCKS:
        raise RequestError(
            400, "limit", got=str(limit), wanted=f"at most {MAX_NODES_WITH_BLOCKS} if blocks are requested"
        )
    pods = model.pods if blocks else None

    def make() -> Response:
        rows = find_nodes(columns, wanted, sort)
        items = [node_row(columns, row) for row in rows[offset : offset + limit].tolist()]
        if pods is not None:
            items = [replace(item, blocks=_blocks(item.name, pods)) for item in items]
        page = NodeList(
            version=columns.version,
            items=items,
            total=len(rows),
            total_is_exact=True,
            offset=offset,
            limit=limit,
            facets=facets_of(columns, rows) if query.switch("facets") else UNSET,
        )
        return json_answer(request, page)

    return await state.off_loop(make)


def _blocks(node_name: str, pods: PodColumns) -> list[NodeBlock]:
    """Return the pods on a node with their requests, the largest first, at most `MAX_BLOCKS`."""
    on_node = pods.used & np.isin(pods.status, (PodStatus.PLACED, PodStatus.TERMINATING))
    code = next((code for code, text in enumerate(pods.nodes) if text == node_name), -1)
    rows = np.flatnonzero(on_node & (pods.node == code))
    rows = rows[np.lexsort((-pods.memory[rows], -pods.cpu[rows]))][:MAX_BLOCKS]
    return [
        NodeBlock(
            namespace=pods.keys[row].partition("/")[0],
            name=pods.keys[row].partition("/")[2],
            cpu=int(pods.cpu[row]),
            memory=int(pods.memory[row]),
            priority=int(pods.priority[row]),
        )
        for row in rows.tolist()
    ]


async def cells(state: ServerState, request: Request, query: Query) -> Response:
    """Return the heat map of all matching nodes."""
    wanted = _node_filter(query)
    columns = (await state.read_model(query.text("run"))).nodes
    metric = query.one_of("metric", metrics_of(columns), "cpu")
    by = query.text("by", "zone")

    def make() -> Response:
        rows = find_nodes(columns, wanted, ("name", False))
        return json_answer(request, cells_document(columns, rows, metric, by))

    return await state.off_loop(make)


async def node(state: ServerState, request: Request, query: Query) -> Response:
    """Return the details of one node."""
    offset, limit = query.page(default=MAX_ROWS)
    name = request.path_params["name"]
    columns = await state.view.node_columns()
    row = columns.rows.get(name)
    if row is None:
        raise RequestError(HTTPStatus.NOT_FOUND, "node", got=f"'{name}'", wanted="a node of the cluster")
    pods = await state.view.pod_columns()
    events = [SimulatedEvent(name, *event) for event in state.events.of("Node", "default", name)]

    def make() -> Response:
        found = find_pods(
            pods,
            PodFilter(node=name),
            sort=("name", False),
            offset=offset,
            limit=limit,
            facets=False,
            deadline=Deadline(),
        )
        rejected, exact, missing = _rejected(state, pods, name)
        facts = asdict(node_row(columns, row))
        for name_of_row_only in ("pods", "blocks"):
            del facts[name_of_row_only]
        item = columns.nodes[row]
        assert item is not None
        page = NodePage(
            **facts,
            version=columns.version,
            summary=_node_sentence(columns, row, sum(each.pods for each in rejected)),
            labels=dict(item.metadata.labels),
            conditions=[
                NodeCondition(type=each.type, status=each.status, reason=each.reason, message=each.message)
                for each in item.status.conditions
            ],
            pods=state.rows.rows(pods, found.rows, Deadline(0.1)),
            pods_total=found.total,
            events=[event_row(event) for event in events],
            rejected=rejected,
            rejected_is_exact=exact,
            rejected_missing=missing,
        )
        return json_answer(request, page)

    return await state.off_loop(make)


def _node_sentence(columns: NodeColumns, row: int, named_by: int) -> str:
    flags = int(columns.flags[row])
    full_by, free = [], []
    for resource in metrics_of(columns):
        offered, asked = columns.amounts(resource)
        if not offered[row]:
            continue
        if columns.cells(resource)[row] == FULL_CELL:
            full_by.append(resource)
        left = max(int(offered[row]) - int(asked[row]), 0)
        if resource != PODS or resource in full_by:
            free.append((resource, left, int(offered[row])))
    free.sort(key=lambda each: each[1] / each[2])
    return node_sentence(
        name=columns.names[row],
        ready=not flags & NOT_READY,
        cordoned=bool(flags & CORDONED),
        pods=int(columns.amounts(PODS)[1][row]),
        full_by=full_by,
        free=free,
        named_by=named_by,
    )


def _rejected(state: ServerState, pods: PodColumns, node_name: str) -> tuple[list[PodsRejected], bool, str]:
    """Return why a node rejected waiting pods in their last attempts, whether the list is complete, and a plugin's failure or "".

    The list is incomplete if time ran out, or if a plugin failed to give its reason.
    """
    deadline, decisions = Deadline(REJECTED_SECONDS), state.server.decisions
    rejected: dict[str, list[str]] = {}
    rows = np.flatnonzero(pods.used & (pods.status == PodStatus.WAITING)).tolist()
    exact, missing = True, ""
    for row in rows:
        # Stop at the first failure: each failing call may take as long as plugins are allowed to.
        if deadline.is_over or missing:
            exact = False
            break
        numbers = decisions.numbers_of(pods.keys[row])
        if not numbers:
            continue
        try:
            decision = decisions.decision(numbers[-1])
        except LookupError:
            continue
        if node_name not in decision.names:
            continue
        try:
            status = decision.first_failure(decision.names.index(node_name))
        except PluginFailure as failure:
            exact, missing = False, str(failure)
            continue
        if status is not None:
            text = status.message or status.code.text
            rejected.setdefault(text, []).append(pods.keys[row])
    found = [PodsRejected(text=text, pods=len(keys), example=keys[0]) for text, keys in rejected.items()]
    return sorted(found, key=lambda each: (-each.pods, each.text)), exact, missing


# --- decisions --------------------------------------------------------------------------------------------------------

_OUTCOMES = ("scheduled", "unschedulable", "error", "skipped")


async def decisions(state: ServerState, request: Request, query: Query) -> Response:
    """List the matching decisions, the newest last."""
    limit = query.number("limit", 50, least=1, most=MAX_ROWS)
    after, before = query.maybe_number("after"), query.maybe_number("before")
    outcome, pod, node_name = query.one_of("outcome", _OUTCOMES), query.text("pod"), query.text("node")
    model = await state.read_model(query.text("run"))

    def make() -> Response:
        records = model.decisions
        low = max(records.oldest, 0 if after is None else after + 1)
        high = len(records) if before is None else min(before, len(records))
        numbers = [each for each in records.numbers_of(pod) if low <= each < high] if pod else range(low, high)
        deadline, found, exact = Deadline(), [], True
        # With only `after`, page forwards from it; otherwise page back from the newest decision.
        forwards = after is not None and before is None
        for count, number in enumerate(numbers if forwards else reversed(numbers)):
            if count % 1000 == 999 and deadline.is_over:
                exact = False
                break
            try:
                record = records[number]
            except LookupError:
                continue
            if outcome and record.outcome.name.lower() != outcome:
                continue
            if node_name and node_name not in (record.node, record.nominated_node):
                continue
            found.append(number)
            if len(found) == limit:
                break
        page = DecisionList(
            version=len(records),
            items=model.summaries.of(sorted(found), deadline),
            total=len(records) - records.oldest if not (pod or outcome or node_name) else len(found),
            total_is_exact=exact and not (outcome or node_name),
            oldest=records.oldest_full,
            oldest_summary=records.oldest,
            next=len(records),
            limit=limit,
        )
        return json_answer(request, page)

    return await state.off_loop(make)


async def density(state: ServerState, request: Request, query: Query) -> Response:
    """Count decisions in equal parts of a span of time or of decision numbers, for a timeline."""
    bins = query.number("bins", 200, least=1, most=MAX_BINS)
    axis = query.one_of("axis", ("time", "number"))
    by_time = axis == "time" or bool(query.text("from_at") or query.text("to_at"))
    await state.view.catch_up()
    timeline = state.view.timeline.freeze()
    if by_time:
        span = _time_span(state, query, timeline)
    else:
        newest = timeline.first + len(timeline.times_ns) - 1
        span = (query.number("from", timeline.first), query.number("to", max(newest, 0)))
    if span[0] > span[1] and len(timeline.times_ns):
        raise RequestError(400, "from", got=str(span[0]), wanted=f"at most {span[1]}, the value of 'to'")
    changes = [change.at_ns for change in state.view.node_changes]
    return await state.off_loop(
        lambda: json_answer(request, density_document(timeline, changes, span, bins, by_time=by_time))
    )


def _time_span(state: ServerState, query: Query, timeline: TimelineColumns) -> tuple[int, int]:
    """Return the requested span; by default from the first decision in memory to one second after the last."""
    times, now_ns = timeline.times_ns, state.server.clock.now_ns()
    first, last = (int(times[0]), int(times[-1])) if len(times) else (state.start_ns, now_ns)
    begin = _instant(query, "from_at", first)
    return begin, _instant(query, "to_at", max(last, begin) + SECOND_NS)


async def lanes(state: ServerState, request: Request, query: Query) -> Response:
    """Count pods that ran on, were placed on and left each node in equal parts of a time span, for a timeline."""
    bins = query.number("bins", 200, least=1, most=MAX_LANE_BINS)
    offset, limit = query.page(MAX_LANES, 20)
    words = query.text("q").split()
    pods = await state.view.pod_columns()
    span = _time_span(state, query, state.view.timeline.freeze())
    if span[0] > span[1]:
        raise RequestError(400, "from_at", got=str(span[0]), wanted="a time at or before to_at")
    deleted = [life for lives in state.view.pods.deleted.values() for life in lives]
    return await state.off_loop(
        lambda: json_answer(
            request, node_lanes(lifetimes_on_nodes(pods, deleted), words, span, bins, offset=offset, limit=limit)
        )
    )


def _instant(query: Query, name: str, default: int) -> int:
    text = query.text(name)
    if not text:
        return default
    found = parse_instant(text)
    if found is None:
        raise RequestError(400, name, got=f"'{text}'", wanted="a time", hint="'2026-11-21T12:00:00Z'")
    return found


# --- queue and clock --------------------------------------------------------------------------------------------------


async def queue(state: ServerState, request: Request, query: Query) -> Response:
    """List the pods in the scheduling queue, one page at a time."""
    tier, (offset, limit) = query.one_of("tier", TIERS), query.page()
    now_ns = state.server.clock.now_ns()
    return await state.off_loop(
        lambda: json_answer(request, queue_document(state.queue.copy(), tier, offset, limit, now_ns))
    )


async def clock(state: ServerState, request: Request, query: Query) -> Response:
    """Return the state of the clock."""
    return json_answer(request, clock_document(state.server.clock))
