"""The verdicts of all filters about a waiting pod, even if PreFilter or a gate would end the attempt before filters run."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from msgspec.structs import replace

from bayplan.analysis.filter_matrix import FilterMatrix, filter_matrix
from bayplan.analysis.root_cause import RootCause, root_cause
from bayplan.analysis.scheduler_surroundings import SchedulerSurroundings
from bayplan.answers.score_errors import error_text
from bayplan.answers.trial import Trial
from bayplan.engine.decision import Decision, Outcome
from bayplan.framework.status import Status
from bayplan.objects.pod import Pod
from bayplan.objects.requests import accounted_requests

_MAX_REJECTIONS = 12
"""Maximum number of plugins to disable, one after another, because they reject the pod as a whole."""


@dataclass(frozen=True)
class PodDiagnosis:
    """A waiting pod with the results of all filters.

    Attributes:
        pod: the waiting pod.
        decision: the last decision, with the plugins disabled that reject the pod as a whole; None if another PreEnqueue
        plugin still keeps the pod out of the queue.
        matrix: the matrix of all filters and nodes.
        cause: why the pod fits on no node; meaningless if `fits`.
        fits: whether the unchanged pod fits on a node.
    """

    pod: Pod
    decision: Decision | None
    matrix: FilterMatrix
    cause: RootCause
    fits: bool


def diagnose_pod(trial: Trial, pod: Pod) -> PodDiagnosis:
    """Run all plugins on a pod. Record a plugin that rejects the pod as a whole, and run again without it."""
    whole: dict[str, Status] = {}
    decision: Decision | None = None
    for _ in range(_MAX_REJECTIONS):
        gate = trial.gate(pod)
        if gate is not None and gate.plugin not in whole:
            whole[gate.plugin] = gate
        decision = trial.decide(pod, whole)
        if decision is None:
            break
        rejection = decision.pre_filter
        if rejection is None or not rejection.plugin or rejection.plugin in whole:
            break
        whole[rejection.plugin] = rejection
    if decision is None:
        matrix = FilterMatrix((), tuple(whole), np.ones((len(whole), 0), np.bool_), np.ones(0, np.bool_), whole, None)
    else:
        matrix = filter_matrix(decision, whole)
    nodes = {node.metadata.name: node for node in trial.nodes()}
    requests = accounted_requests(pod, trial.state.request_gates).requests
    cause = root_cause(matrix, pod, nodes, requests, SchedulerSurroundings(trial.scheduler, pod, trial.unread))
    if decision is not None and decision.record.outcome is Outcome.ERROR:
        # An error ends the attempt, whatever the filters found.
        message = error_text(trial, pod, decision.record.message)
        cause = replace(cause, plugin="", summary=message, headline=message, everywhere=[], sole=[])
    fits = not whole and decision is not None and bool(decision.record.node)
    return PodDiagnosis(pod, decision, matrix, cause, fits)
