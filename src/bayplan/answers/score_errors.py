"""Complete the error about an invalid score by the node: kube-scheduler's message names only the plugin and the score."""

from __future__ import annotations

import numpy as np

from bayplan.answers.trial import Trial
from bayplan.framework.node_info import NodeInfo
from bayplan.framework.per_node_plugin import PerNodePlugin
from bayplan.framework.rule import MAX_NODE_SCORE, MIN_NODE_SCORE
from bayplan.objects.pod import Pod


def error_text(trial: Trial, pod: Pod, message: str) -> str:
    """Return the message of an attempt that ended with an error, with the node if a score is out of range.

    Args:
        trial: the cluster of the attempt.
        pod: the pod, as it was tried.
        message: the scheduler's message.
    """
    profile = trial.scheduler.profiles.get(pod.spec.scheduler_name)
    plugins = [each.plugin for each in profile.score] if profile is not None else []
    plugin = next((each for each in plugins if f"{_invalid(each.name)} " in message), None)
    if not isinstance(plugin, PerNodePlugin):
        return message
    bound = trial.bound(pod.key)
    decision = trial.decide_after(pod, [] if bound is None else [(bound, None)], (plugin.name,))
    if decision is None:
        return message
    for node in sorted(decision.names[row] for row in np.flatnonzero(decision.feasible).tolist()):
        score = plugin.score_node(pod, NodeInfo(trial.state, trial.state.nodes.row_of[node]))
        if f"{_invalid(plugin.name)} {score}," in message:
            wanted = f"scores are {MIN_NODE_SCORE} to {MAX_NODE_SCORE}"
            return f"{_invalid(plugin.name)} {score} for node {node}: {wanted}"
    return message


def _invalid(plugin: str) -> str:
    return f'plugin "{plugin}" returns an invalid score'
