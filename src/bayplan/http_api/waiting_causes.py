"""Why pods wait, by the last attempt of each: the root cause that a pod's page and ``bayplan explain`` show. On a worker thread."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from bayplan.analysis.cluster_sentences import CommonCause
from bayplan.analysis.explain import attempts_of
from bayplan.analysis.verdict import last_cause, pod_verdict
from bayplan.http_api.pod_page import PodSource
from bayplan.http_api.pod_table import PodColumns, PodStatus
from bayplan.http_api.query import Deadline
from bayplan.plugins.pod_claims import claim_name_of
from bayplan.state.arrays import Bools

MAX_JUDGED = 1_000
"""Maximum number of waiting pods whose causes are sought for the overview, which the page requests often."""


class WaitingCause(NamedTuple):
    """Why a pod waits.

    Attributes:
        text: the verdict of its page, without the pod's name.
        common: the same in words that all pods share that wait for this reason; "" if the last attempt has no full record.
    """

    text: str
    common: str


def waiting_rows(pods: PodColumns, rows: Sequence[int] | Bools) -> list[int]:
    """Return those of some rows (or of a mask) whose pods wait after an attempt, at most `MAX_JUDGED`."""
    wanted = np.flatnonzero(rows).tolist() if isinstance(rows, np.ndarray) else rows
    tried = (row for row in wanted if pods.status[row] == PodStatus.WAITING and pods.message[row])
    return [row for row, _ in zip(tried, range(MAX_JUDGED), strict=False)]


def waiting_causes(
    source: PodSource, pods: PodColumns, rows: Sequence[int], deadline: Deadline
) -> Mapping[int, WaitingCause]:
    """Return why pods wait, by row; rows for which time runs out are missing.

    Pods of one workload with the same requests and the same message have the same cause, unless they preempted or have claims
    of their own: such groups are examined once.

    Args:
        source: the run.
        pods: its pods.
        rows: those of waiting pods, see `waiting_rows`.
        deadline: when to end.
    """
    found: dict[int, WaitingCause] = {}
    alike: dict[tuple[str, int, int], WaitingCause] = {}
    for row in rows:
        life = pods.lives[row]
        group = ("" if life is None else life.workload, int(pods.message[row]), int(pods.shape[row]))
        known = alike.get(group)
        if known is not None:
            found[row] = known
            continue
        lives = [] if deadline.is_over else source.lives_of(pods.keys[row])
        if not lives:
            continue
        life = lives[-1]
        attempts = attempts_of(source, life, lives)
        preempts = bool(attempts) and bool(attempts[-1].nominated_node)
        cause = None if preempts else last_cause(source, life, attempts)
        if cause is None:
            text = pod_verdict(source, life, attempts).removeprefix(f"{life.key} ").removeprefix("waits: ")
            found[row] = WaitingCause(text, "")
            continue
        found[row] = WaitingCause(cause.headline, cause.sentence)
        has_claims = life.pod is None or any(
            claim_name_of(life.pod.metadata.name, volume) for volume in life.pod.spec.volumes
        )
        if group[0] and not has_claims:
            alike[group] = found[row]
    return found


def common_cause(causes: Mapping[int, WaitingCause]) -> CommonCause | None:
    """Return the cause of most pods; None if no cause is known."""
    counts = Counter(each.common for each in causes.values() if each.common)
    most = counts.most_common(1)
    return CommonCause(*most[0]) if most else None
