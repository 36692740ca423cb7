"""Parse a scheduler's message: ``0/5 nodes are available: 3 Insufficient cpu, 2 Too many pods.`` contains two reasons."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

MAX_REASON_LENGTH = 200

_HEAD = re.compile(r"0/\d+ nodes are available: ?")
_NEXT = re.compile(r", (?=\d+ )")
_COUNTED = re.compile(r"(\d+) (.+)", re.DOTALL)
# PostFilter plugins append their messages after a full stop: DynamicResources first, then preemption.
_POST_FILTER = re.compile(r"(?:^|\. )(?:no new claims to deallocate.*|(?:[^.]*, )?preemption: .*)$", re.DOTALL)


class Reason(NamedTuple):
    """One reason in a scheduler's message.

    Attributes:
        text: the reason in upstream's words.
        nodes: the number of nodes rejected for this reason; 0 if it concerns the pod as a whole.
    """

    text: str
    nodes: int


@lru_cache(maxsize=20_000)
def reasons_of(message: str) -> tuple[Reason, ...]:
    """Return the reasons in a message, the most nodes first; the whole message if it has no counts.

    The result of preemption is omitted, because it concerns the same nodes.
    """
    head = _HEAD.match(message)
    text = message[head.end() :] if head is not None else message
    if head is not None:
        text = _POST_FILTER.sub("", text, count=1)
    text = text.removesuffix(".")
    if not text:
        return (Reason(message.strip()[:MAX_REASON_LENGTH], 0),) if message.strip() else ()
    if head is None:
        return (Reason(text[:MAX_REASON_LENGTH], 0),)
    found = []
    for part in _NEXT.split(text):
        counted = _COUNTED.fullmatch(part)
        reason, nodes = (part, 0) if counted is None else (counted[2], int(counted[1]))
        found.append(Reason(reason[:MAX_REASON_LENGTH], nodes))
    return tuple(sorted(found, key=lambda reason: -reason.nodes))


def short_reasons(message: str, most: int = 2) -> str:
    """Return the first reasons with their counts, short enough for a table row: ``Insufficient cpu (4,640), ...``."""
    reasons = reasons_of(message)
    shown = [f"{each.text} ({each.nodes:,})" if each.nodes else each.text for each in reasons[:most]]
    return ", ".join(shown) + (", ..." if len(reasons) > most else "")


class ReasonCount(NamedTuple):
    """The number of pods that wait for a reason.

    Attributes:
        text: the reason in upstream's words.
        pods: the number of pods with this reason.
        main_pods: the number of pods for which this is the main reason, the one with the most nodes. Each pod has one.
    """

    text: str
    pods: int
    main_pods: int


def pods_by_reason(messages: Iterable[tuple[str, int]]) -> list[ReasonCount]:
    """Count pods by reason, sorted by the number of pods for which it is the main reason.

    Args:
        messages: the messages of pods, with the number of pods that have each message.
    """
    pods: dict[str, int] = {}
    main_pods: dict[str, int] = {}
    for message, count in messages:
        reasons = reasons_of(message)
        for reason in reasons:
            pods[reason.text] = pods.get(reason.text, 0) + count
        for reason in reasons[:1]:
            main_pods[reason.text] = main_pods.get(reason.text, 0) + count
    found = [ReasonCount(text, count, main_pods.get(text, 0)) for text, count in pods.items()]
    return sorted(found, key=lambda each: (-each.main_pods, -each.pods, each.text))
