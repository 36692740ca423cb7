"""Steps of a suggestion in words, with what the scheduler did in the trial."""

from __future__ import annotations

from collections.abc import Sequence

from bayplan.analysis.units import format_first
from bayplan.answers.steps import Step, StepKind
from bayplan.answers.trial import TrialResult
from bayplan.base.counted_nouns import is_or_are

SHOWN = 3
"""Maximum number of pods or nodes in a sentence."""


def step_text(step: Step, kind: StepKind, result: TrialResult, left: Sequence[str], nodes: Sequence[str]) -> str:
    """Return a step in words, with the new nodes of the pods that it moves, or the nodes on which the scheduler makes room."""
    if step.kind is StepKind.MOVE:
        # Without the pods that are preempted, which are named afterwards.
        moved = [f"{each.pod} to {each.node}" for each in result.displaced if each.node and each.pod in step.evicts]
        shown = [*moved, *(f"{key} would be pending" for key in left if key in step.evicts)]
        where = next(iter(step.nodes or ()), "")
        if kind is StepKind.EVICT:
            return f"evict {format_first(step.evicts, SHOWN)} from {where}"
        return f"move {format_first(shown, SHOWN)} (off {where})"
    if step.kind is StepKind.WAIT:
        return preemption_text(result.victims, named(nodes), result.ended)
    return step.text


def preemption_text(victims: Sequence[str], node: str, ended: Sequence[str] = ()) -> str:
    """Return the suggestion to wait until the scheduler has preempted these pods, or released the pod's own devices.

    `ended`: the terminating pods for whose end the pod waits, too.
    """
    if ended:
        ending = f"{named(ended)} {is_or_are(len(ended))} terminating"
        return (
            f"wait: the scheduler preempts {named(victims)} on {node} by itself, where {ending}"
            if victims
            else f"wait: {ending} on {node}, which makes room"
        )
    if not victims:
        return f"wait: the scheduler releases the devices of its claims and places it on {node} by itself"
    return f"wait: the scheduler preempts {named(victims)} on {node} by itself"


def named(names: Sequence[str]) -> str:
    """Return the first names, and the number of the others."""
    return format_first(names, SHOWN)
