"""Handlers for questions about the current cluster: explain, unblock, capacity, what-if, and why pods wait."""

from __future__ import annotations

import uuid
from http import HTTPStatus

import msgspec
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response

from bayplan.answers.answer_text import capacity_text, difference_text
from bayplan.answers.capacity import DEFAULT_LIMIT, parse_mix
from bayplan.answers.capacity import capacity as find_capacity
from bayplan.answers.changes import Change, parse_change
from bayplan.answers.configuration_changes import changed_configuration, is_profile_change
from bayplan.answers.explain_now import explain_now
from bayplan.answers.pod_differences import WORST_FIRST
from bayplan.answers.unblock import unblock as find_suggestions
from bayplan.answers.waiting_reasons import equal_pods, waiting_reasons, waiting_sentence
from bayplan.answers.what_if import Answer as Differences
from bayplan.answers.what_if import Reschedule
from bayplan.answers.what_if import what_if as find_differences
from bayplan.base.counted_nouns import format_count
from bayplan.base.errors import InputError
from bayplan.base.go_arithmetic import whole_number
from bayplan.base.go_text.times import format_instant
from bayplan.framework.configuration.loading import SchedulerConfiguration
from bayplan.http_api.answers import json_answer
from bayplan.http_api.bodies import read_struct
from bayplan.http_api.configuration_facts import check
from bayplan.http_api.contract.answer import whole
from bayplan.http_api.contract.questions import Capacity, WaitingReasons, WhatIfList, WhatIfReport, WhatIfSummary
from bayplan.http_api.errors import RequestError
from bayplan.http_api.fork_routes import begin
from bayplan.http_api.forks import ForkRequest
from bayplan.http_api.query import Query
from bayplan.http_api.questions import Inquiry
from bayplan.http_api.server_state import ServerState
from bayplan.objects.defaults import default_object
from bayplan.objects.kinds import decode
from bayplan.objects.meta import KubernetesObject

MAX_SEEDS = 20
MAX_CHANGES = 50
MAX_ADDED = 5_000
"""Maximum number of nodes or replicas that one change of a request may add."""

MAX_DIFFERENCES = 2_000
"""Maximum number of differing pods in a response, the worst differences first."""

MAX_KEPT = 32
MAX_EVALUATED = 200
"""Maximum number of groups of equal waiting pods to evaluate, the largest first."""


def _target(query: Query) -> str:
    target = query.text("workload")
    if not target:
        raise RequestError(
            HTTPStatus.BAD_REQUEST, "workload", got="nothing", wanted="a workload, or pod/NAMESPACE/NAME"
        )
    return target


async def explain(state: ServerState, request: Request, query: Query) -> Response:
    """Explain a pod in the present cluster; with a node, also all its rejections and the smallest change that resolves each."""
    target, node, best = _target(query), query.text("node"), query.number("best", 5, least=1, most=200)

    def answer(inquiry: Inquiry) -> Response:
        life = inquiry.pod_of(target)
        try:
            with inquiry.cluster.trial() as trial:
                found = explain_now(trial, inquiry.timelines, life, node=node, best=best, now_ns=inquiry.cluster.now_ns)
        except InputError as problem:
            if problem.what != "--node":
                raise
            raise RequestError(
                HTTPStatus.NOT_FOUND, "node", got=problem.got, wanted=problem.wanted, hint=problem.hint
            ) from problem
        return json_answer(request, replace(found, assumptions=inquiry.assumptions))

    return await state.questions.run(request, answer)


async def unblock(state: ServerState, request: Request, query: Query) -> Response:
    """Return suggestions to get a waiting pod, or a workload's waiting pods, placed. Each was verified in a fork."""
    target = _target(query)

    def answer(inquiry: Inquiry) -> Response:
        pods = inquiry.waiting_pods(target)
        with inquiry.cluster.trial() as trial:
            found = find_suggestions(trial, pods, others=len(inquiry.cluster.waiting) - len(pods))
        return json_answer(request, replace(found, assumptions=inquiry.assumptions))

    return await state.questions.run(request, answer)


async def capacity(state: ServerState, request: Request, query: Query) -> Response:
    """Return how many further copies of a workload, or of a mix of workloads, fit."""
    mix, preempts = parse_mix(_target(query)), query.switch("preempt")
    limit = query.number("limit", 1_000, least=1, most=DEFAULT_LIMIT)
    seeds = query.number("seeds", 1, least=1, most=MAX_SEEDS)

    def answer(inquiry: Inquiry) -> Response:
        cluster = inquiry.cluster
        more = range(cluster.seed, cluster.seed + seeds) if seeds > 1 else ()
        found = find_capacity(cluster, mix, preempts=preempts, limit=limit, seeds=more)
        document = Capacity(
            summary=capacity_text(found)[0],
            copies=found.copies,
            mixes=found.mixes,
            reached_limit=found.reached_limit,
            workloads=list(found.workloads),
            groups=sorted(found.groups, key=lambda each: -each.copies),
            victims=list(found.victims),
            stopped_by=found.stopped_by,
            message=found.message,
            runs_out=found.runs_out,
            seeds={str(seed): copies for seed, copies in found.by_seed.items()},
            assumptions=[*inquiry.assumptions, *found.assumptions],
        )
        return json_answer(request, document)

    return await state.questions.run(request, answer)


async def waiting(state: ServerState, request: Request, query: Query) -> Response:
    """Return why pods wait, sorted by the number of pods that have no other reason."""

    def answer(inquiry: Inquiry) -> Response:
        pods = list(inquiry.cluster.waiting.values())
        groups = sorted(equal_pods(pods), key=len, reverse=True)[:MAX_EVALUATED]
        evaluated = [pod for group in groups for pod in group]
        with inquiry.cluster.trial() as trial:
            items = list(waiting_reasons(trial, evaluated)) if evaluated else []
        gated, cluster_state = sum(bool(pod.spec.scheduling_gates) for pod in pods), inquiry.cluster.state
        document = WaitingReasons(
            **whole(items),
            items=items,
            summary=waiting_sentence(
                items,
                waiting=len(pods) - gated,
                gated=gated,
                pods=len(pods) + len(cluster_state.pods),
                nodes=len(cluster_state.nodes),
            ),
            evaluated=len(evaluated),
            waiting=len(pods),
            assumptions=inquiry.assumptions,
        )
        return json_answer(request, document)

    return await state.questions.run(request, answer)


# --- what if ----------------------------------------------------------------------------------------------------------


class WhatIfRequest(msgspec.Struct, forbid_unknown_fields=True):
    """The changes to try.

    Attributes:
        changes: as for ``bayplan what-if``: ``drain=NODE``, ``scale=WORKLOAD:N``, ``weight=PLUGIN:N``,
            ``disable=PLUGIN``.
        config: another configuration of the scheduler; None for the server's.
        objects: documents of objects to create or replace.
        reschedule: placed pods to schedule again on both sides: none (the default), ``["*"]`` for all, or pods and
            workloads.
        name: a label for users.
        keep: whether to store the answer, and to start a fork from the changed cluster.
    """

    changes: list[str] = []
    config: str | None = None
    objects: list[dict[str, object]] = []
    reschedule: list[str] = []
    name: str = ""
    keep: bool = False


async def what_if(state: ServerState, request: Request, query: Query) -> Response:
    """Compare the current cluster, pod by pod, before and after changes."""
    wanted = await read_struct(request, WhatIfRequest)
    if len(wanted.changes) > MAX_CHANGES:
        raise RequestError(422, "changes", got=str(len(wanted.changes)), wanted=f"at most {MAX_CHANGES}")
    if wanted.keep and len(state.what_ifs) >= MAX_KEPT:
        raise RequestError(
            HTTPStatus.CONFLICT,
            f"there are already {MAX_KEPT} stored what-if answers, the maximum",
            hint="to delete one",
        )
    changes = [_bounded(parse_change(text)) for text in wanted.changes if not is_profile_change(text)]
    if wanted.objects:
        items = tuple(
            default_object(decode(document, where=f"objects[{number}]"))
            for number, document in enumerate(wanted.objects)
        )
        changes.append(Change("apply", format_count(len(items), "object"), objects=items))
    configuration = await _configuration(state, wanted)

    changed: list[KubernetesObject] = []

    def answer(inquiry: Inquiry) -> WhatIfReport:
        these = [each for each in wanted.reschedule if each != "*"]
        mode = Reschedule.ALL if "*" in wanted.reschedule else Reschedule.THESE if these else Reschedule.NEW
        labels = [text for text in wanted.changes if is_profile_change(text)]
        found = find_differences(
            inquiry.cluster,
            changes,
            scheduler=None if configuration is None else inquiry.scheduler(configuration),
            scheduler_label=", ".join([*labels, *(["another configuration"] if wanted.config is not None else [])]),
            reschedule=mode,
            these=these,
            after=(lambda trial: changed.extend(trial.objects())) if wanted.keep else None,
        )
        return _report(found, wanted, inquiry)

    report = await state.questions.run(request, answer)
    if wanted.keep:
        request_of_fork = ForkRequest(name=wanted.name or report.summary[:80])
        fork = begin(state, request_of_fork, changed, configuration)
        report = replace(report, id=uuid.uuid4().hex[:8], fork=fork.id)
        state.what_ifs[report.id] = report
    return await state.off_loop(lambda: json_answer(request, report))


def _bounded(change: Change) -> Change:
    """Return the change. Refuse it if it adds too many nodes or replicas, or is ``apply``."""
    number = {"add-nodes": change.target, "scale": change.value}.get(change.kind, "")
    if number.isdecimal() and whole_number(number) > MAX_ADDED:
        raise RequestError(422, change.kind, got=number, wanted=f"at most {MAX_ADDED:,}")
    if change.kind == "apply":
        raise RequestError(422, "changes", got=str(change), wanted="objects in the body", hint='"objects": [...]')
    return change


async def _configuration(state: ServerState, wanted: WhatIfRequest) -> SchedulerConfiguration | None:
    """Return the configuration to try; None for the server's."""
    setup, text = state.server.setup, wanted.config
    profile_changes = [change for change in wanted.changes if is_profile_change(change)]
    if text is None and not profile_changes:
        return None
    configuration = setup.configuration
    if text is not None:
        configuration = await state.off_loop(lambda: check(setup, text))
    for change in profile_changes:
        configuration = changed_configuration(configuration, change)
    return configuration


def _report(found: Differences, wanted: WhatIfRequest, inquiry: Inquiry) -> WhatIfReport:
    sentence = difference_text(found)[0]
    rows = sorted(found.differences, key=lambda each: WORST_FIRST.index(each.kind))
    return WhatIfReport(
        id="",
        fork="",
        name=wanted.name,
        at=format_instant(inquiry.cluster.now_ns),
        changes=[*wanted.changes, *([format_count(len(wanted.objects), "object")] if wanted.objects else [])],
        configuration=wanted.config,
        reschedule=wanted.reschedule,
        summary=sentence,
        effect=sentence.removeprefix(f"{', '.join(found.changes)}: "),
        pods=found.pods,
        counts=found.counts,
        differences=rows[:MAX_DIFFERENCES],
        left_out=max(0, len(rows) - MAX_DIFFERENCES),
        measures=list(found.measures),
        evictions=list(found.evictions),
        warnings=list(found.warnings),
        assumptions=[*inquiry.assumptions, *found.assumptions],
    )


async def what_ifs(state: ServerState, request: Request, query: Query) -> Response:
    """List the stored what-if answers."""
    items = [
        WhatIfSummary(id=each.id, name=each.name, at=each.at, changes=each.changes, summary=each.summary)
        for each in state.what_ifs.values()
    ]
    return json_answer(request, WhatIfList(**whole(items), items=items))


def _known(state: ServerState, request: Request) -> str:
    found: str = request.path_params["id"]
    if found not in state.what_ifs:
        known = ", ".join(state.what_ifs) or "none"
        raise RequestError(
            HTTPStatus.NOT_FOUND, "what-if", got=f"'{found}'", wanted=f"one of the existing what-ifs: {known}"
        )
    return found


async def stored_what_if(state: ServerState, request: Request, query: Query) -> Response:
    """Return a stored what-if answer."""
    report = state.what_ifs[_known(state, request)]
    return await state.off_loop(lambda: json_answer(request, report))


async def delete_what_if(state: ServerState, request: Request, query: Query) -> Response:
    """Delete a stored what-if answer and its fork."""
    report = state.what_ifs.pop(_known(state, request))
    if any(fork.id == report.fork for fork in state.forks.all()):
        state.forks.delete(report.fork)
    return await what_ifs(state, request, query)
