"""Build the matrix of one attempt, or say why there is none. Runs on a worker thread."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import asdict, replace

from bayplan.analysis.decision_detail import extender_reports
from bayplan.analysis.explanation import Attempt
from bayplan.analysis.verdict import decision_text, unattended_text
from bayplan.engine.decision import Decision, Outcome
from bayplan.engine.records import RecordLevel
from bayplan.framework.configuration.loading import SchedulerConfiguration
from bayplan.framework.status import Code
from bayplan.http_api.contract.matrix import (
    AnyMatrix,
    ColumnMatrix,
    LateAnswer,
    Matrix,
    MatrixFacts,
    MatrixPoints,
    PreFilterAnswer,
    PreScoreAnswer,
    RowMatrix,
)
from bayplan.http_api.decision_summaries import margin_of
from bayplan.http_api.matrix import MatrixLayout, MatrixQuery, no_matrix, skipped_plugins
from bayplan.http_api.pod_page import PodPage, chosen_attempt
from bayplan.http_api.server_context import Decisions
from bayplan.live.attempt_results import late_answers
from bayplan.sim.result import PodFate


class MatrixPlugins(NamedTuple):
    """Facts of the scheduler's configuration that the matrix of an attempt needs.

    Attributes:
        by_profile: by profile, the names of the plugins at the points ``filter`` and ``score``.
        max_score: the largest normalised score.
    """

    by_profile: Mapping[str, Mapping[str, Sequence[str]]]
    max_score: int


def matrix_plugins(configuration: SchedulerConfiguration) -> MatrixPlugins:
    """Return the facts of a configuration that matrices need."""
    by_profile = {
        profile.scheduler_name: {point: profile.names(point) for point in ("filter", "score")}
        for profile in configuration.profiles
    }
    return MatrixPlugins(by_profile, configuration.max_score)


def attempt_matrix(
    page: PodPage,
    attempt: str,
    wanted: Callable[[Decision], MatrixQuery],
    asked: MatrixPlugins,
    decisions: Decisions | None,
) -> AnyMatrix:
    """Return the matrix of an attempt, or why there is none.

    Args:
        page: the page of the pod.
        attempt: the number of the attempt, or ``latest``.
        wanted: returns the query for the matrix of a decision.
        asked: see `matrix_plugins`.
        decisions: the decisions of the running server, which have the results from Reserve to Bind; None for a fork.

    Raises:
        RequestError: there is no such attempt.
    """
    chosen = chosen_attempt(page.attempts, attempt, page.key)
    level = page.source.level.name.lower()
    if chosen is None:
        return no_matrix(-1, level, _annotation_problem(page, decisions) or _why_never_tried(page))
    chosen, decision = page.recorded(chosen)
    if decision is None:
        return no_matrix(chosen.number, level, _why_nothing(page, chosen.number), chosen.attempt)
    skipped = skipped_plugins(decision, asked.by_profile.get(page.life.scheduler_name, {}))
    layout = MatrixLayout(page.source, chosen.number, decision, page.life)
    matrix = _matrix(layout, chosen, wanted(decision), _points(decision), skipped, asked.max_score)
    if decisions is not None and decision.record.outcome is Outcome.SCHEDULED:
        matrix = replace(matrix, points=_with_late_points(matrix.points, decisions, chosen.number))
    if decisions is not None and decisions.is_annotated(chosen.number):
        matrix = _annotated(decision, matrix)
    return matrix


def _matrix(
    layout: MatrixLayout, chosen: Attempt, query: MatrixQuery, points: MatrixPoints, skipped: list[str], max_score: int
) -> Matrix:
    decision = layout.decision
    margin, page = margin_of(decision), layout.page(query)
    facts = MatrixFacts(
        number=chosen.number,
        record_level="full",
        nodes=len(decision.names),
        counts=layout.counts(),
        winner=decision.record.node,
        runner_up=margin.runner_up,
        margin=margin.points,
        tie_set=sorted(decision.ties),
        pre_filters=page.pre_filters,
        filters=list(decision.filters),
        scorers=layout.scorers(),
        statuses=layout.statuses(),
        total=page.total,
        total_is_exact=True,
        offset=query.offset,
        limit=query.limit,
        attempt=chosen.attempt,
        summary=decision_text(decision.record, margin.points),
        skipped=skipped,
        max_score=max_score,
        points=points,
    )
    if isinstance(page.rows, list):
        return RowMatrix(**asdict(facts), rows=page.rows)
    return ColumnMatrix(**asdict(facts), rows=page.rows)


def _why_never_tried(page: PodPage) -> str:
    """Return why the pod has no attempts."""
    life = page.life
    if life.imported:
        return "the pod already had a node when it was loaded"
    if life.fate is PodFate.UNATTENDED:
        return unattended_text(life.scheduler_name)
    if life.pod is not None and life.pod.spec.scheduling_gates and not life.node:
        return "the pod was never tried: it is held back by scheduling gates"
    return "the pod was never tried" if page.source.level else "the record level is off"


def _annotation_problem(page: PodPage, decisions: Decisions | None) -> str:
    """Return why another scheduler's annotations can't be shown; "" if they can, or if there are none."""
    problem = "" if decisions is None else decisions.annotation_problems.get(page.key, "")
    return f"its result annotations can't be read: {problem}" if problem else ""


def _annotated(decision: Decision, matrix: Matrix) -> Matrix:
    """Mark a matrix as another scheduler's: its weights and profile are unknown."""
    results = [(each.plugin, each.code) for each in decision.pre_filters] + list(decision.pre_scores)
    used = {*decision.filters, *decision.scorers}
    return replace(
        matrix,
        annotated=True,
        scorers=[replace(scorer, weight=None) for scorer in matrix.scorers],
        skipped=sorted({plugin for plugin, code in results if code is Code.SKIP and plugin not in used}),
    )


def _why_nothing(page: PodPage, number: int) -> str:
    record = page.source.records[number]
    if record.outcome is Outcome.SKIPPED:
        return "no plugin ran in this attempt"
    if record.frame >= 0:
        again = "" if page.life.node else "; have the pod scheduled again to see it"
        return f"the matrix was dropped, the summary was kept{again}"
    if record.outcome is Outcome.ERROR:
        return "the attempt ended with an error, so no results were recorded"
    if page.source.level is RecordLevel.FULL:
        return "no plugin ran in this attempt, or the record level was lower then"
    return "only summaries are recorded at this record level"


def _points(decision: Decision) -> MatrixPoints:
    """Return the recorded results of PreFilter, PreScore and extenders."""
    return MatrixPoints(
        pre_filter=[
            PreFilterAnswer(
                plugin=plugin, status=code.text, message=message, nodes=None if names is None else len(names)
            )
            for plugin, code, message, names in decision.pre_filters
        ],
        pre_score=[PreScoreAnswer(plugin=plugin, status=code.text) for plugin, code in decision.pre_scores],
        extenders=extender_reports(decision),
    )


def _with_late_points(points: MatrixPoints, decisions: Decisions, number: int) -> MatrixPoints:
    """Add the results from Reserve to Bind, if they are recorded."""
    late = decisions.late_points(number)
    if late is None:
        return points
    found: dict[str, list[LateAnswer]] = {"reserve": [], "permit": [], "pre_bind": [], "bind": []}
    keys = dict(zip(("Reserve", "Permit", "PreBind", "Bind"), found, strict=True))
    for point, plugin, result in late_answers(late, decisions.late_results(number)):
        status = Code.SUCCESS.text if result is None else result.status.code.text
        message = "" if result is None else result.status.message
        found[keys[point]].append(LateAnswer(plugin=plugin, status=status, message=message))
    return replace(points, **found)
