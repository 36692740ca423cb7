"""The verdicts of all filters about a waiting pod, even if PreFilter or a gate ends the attempt before filters run."""

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
"""Maximum number of plugins that reject the pod as a whole, one after another."""


@dataclass(frozen=True)
class Judgement:
    """A waiting pod with the results of all filters.

    Attributes:
        pod: the pod that waits.
        decision: the last decision, with plugins disabled that reject the pod as a whole. None if no scheduler is responsible.
        matrix: the matrix of all filters and nodes.
        cause: why the pod fits nowhere; meaningless if it fits.
        fits: whether it fits some node unchanged.
    """

    pod: Pod
    decision: Decision | None
    matrix: FilterMatrix
    cause: RootCause
    fits: bool


def judge(trial: Trial, pod: Pod) -> Judgement:
    """Run all plugins on a pod. A plugin that rejects it as a whole is recorded and disabled for the next run.

    Raises:
        InputError: no profile has the pod's scheduler name.
    """
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
        # The error ended the attempt, whatever filters found.
        message = error_text(trial, pod, decision.record.message)
        cause = replace(cause, plugin="", sentence=message, headline=message, everywhere=[], sole=[])
    fits = not whole and decision is not None and bool(decision.record.node)
    return Judgement(pod, decision, matrix, cause, fits)
