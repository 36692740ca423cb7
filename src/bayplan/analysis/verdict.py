"""The verdict about a pod: where it is or why it waits, in one sentence."""

from __future__ import annotations

from collections.abc import Sequence

from bayplan.analysis.explanation import Attempt
from bayplan.analysis.run_source import RunSource
from bayplan.analysis.units import format_list
from bayplan.sim.result import PodTimeline

SHOWN_VICTIMS = 3
"""So many victims are named."""


def pod_verdict(source: RunSource, pod: PodTimeline, attempts: Sequence[Attempt]) -> str:
    """Return where a pod is or why it waits, in one sentence: what ``bayplan explain``, our API and the page begin with.

    Args:
        source: the run. pod: one life of the pod. attempts: of that life, in order.
    """
    fate = pod.fate.value
    if pod.bound_ns is None and fate != "deleted":
        return f"{pod.key} {'waits' if fate == 'pending' else f'is {fate}'}: {source.message_of(pod)}"
    if pod.bound_ns is None:
        said = f": {pod.message}" if pod.message else ""
        return f"{pod.key} was deleted before it got a node{said}"
    ends = {"placed": "is on", "succeeded": "has succeeded on", "failed": "has failed on", "deleted": "was on"}
    place = f"{pod.key} {ends.get(fate, 'is on')} {pod.node}"
    if pod.imported:
        return f"{place}, with which it came; no decision was taken about it"
    won = next((each for each in reversed(attempts) if each.node == pod.node), None)
    return place if won is None else f"{place}: {_why_there(won, attempts)}"


def _why_there(won: Attempt, attempts: Sequence[Attempt]) -> str:
    for each in reversed(attempts):
        if each.number < won.number and each.nominated_node == won.node and each.victims:
            return f"it made room there in attempt {each.attempt:,}, for which {_named(each.victims)} had to go"
    if won.evaluated_nodes == 1 and won.feasible_nodes == 1:
        return "the only node that was looked at"
    if won.feasible_nodes == 1:
        return f"the only one of {won.evaluated_nodes:,} nodes that it fits on"
    text = f"{won.feasible_nodes:,} of {won.evaluated_nodes:,} nodes fit"
    if won.ties > 1:
        return f"{text}, {won.ties:,} of them are best with a total of {won.total:,}, and the seed chose this one"
    return f"{text}, and it is the best of them with a total of {won.total:,}"


def _named(pods: Sequence[str]) -> str:
    """Return pods as a sentence lists them; of many the first and how many more."""
    # One that is left over is named: to count it takes as much room.
    shown = pods if len(pods) <= SHOWN_VICTIMS + 1 else pods[:SHOWN_VICTIMS]
    return format_list(shown, more=len(pods) - len(shown))
