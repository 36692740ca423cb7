"""The pods without a node, grouped by the scheduler's message about them."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from bayplan.analysis.waits import WAITING
from bayplan.engine.scheduler import Scheduler
from bayplan.sim.result import PodFate, PodTimeline

EXAMPLES = 3
"""Maximum number of pods named per group."""

NOT_TRIED = "not tried yet"


class PendingFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Waiting pods with the same message.

    Attributes:
        fate: pending, gated or unattended.
        message: the scheduler's message.
        pods: the number of pods.
        examples: the keys of the first of these pods.
    """

    fate: str
    message: str
    pods: int
    examples: list[str]


def waiting_message(pod: PodTimeline, scheduler: Scheduler) -> str:
    """Return why a pod has no node, in upstream's words: the message of its last attempt or, for a gated pod, of PreEnqueue."""
    if pod.fate is PodFate.UNATTENDED:
        return f'no profile for scheduler name "{pod.scheduler_name}"'
    if pod.fate is PodFate.GATED and pod.pod is not None:
        for plugin in scheduler.profiles[pod.scheduler_name].pre_enqueue:
            status = plugin.pre_enqueue(pod.pod)
            if not status.ok:
                return status.message
    return pod.message or NOT_TRIED


def pending_groups(pods: Iterable[PodTimeline], scheduler: Scheduler) -> list[PendingFacts]:
    """Return the waiting pods grouped by fate and message, the largest group first."""
    groups: dict[tuple[str, str], list[str]] = {}
    for pod in pods:
        if pod.fate in WAITING:
            groups.setdefault((pod.fate.value, waiting_message(pod, scheduler)), []).append(pod.key)
    largest_first = sorted(groups.items(), key=lambda group: (-len(group[1]), group[0]))
    return [
        PendingFacts(fate=fate, message=message, pods=len(keys), examples=keys[:EXAMPLES])
        for (fate, message), keys in largest_first
    ]
