"""Why pods wait, from the last attempt of each: the root cause that pod pages and ``bayplan explain`` show. On a worker thread."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from bayplan.analysis.cluster_sentences import CommonCause
from bayplan.analysis.explain import attempts_of
from bayplan.analysis.verdict import last_cause, waiting_reason
from bayplan.http_api.node_table import NodeColumns
from bayplan.http_api.pod_page import PodSource
from bayplan.http_api.pod_table import PodColumns, PodStatus
from bayplan.http_api.query import Deadline
from bayplan.plugins.pod_claims import claim_name_of
from bayplan.sim.result import PodTimeline
from bayplan.state.arrays import Bools

MAX_EVALUATED = 1_000
"""Maximum number of waiting pods whose causes are computed for the overview, which the page requests often."""

MAX_CACHED = 10_000
"""Maximum number of cached causes. When it is reached, all are dropped."""


class WaitingCause(NamedTuple):
    """Why a pod waits.

    Attributes:
        text: the sentence on the pod's page, without the pod's name.
        common: the reason in words that are equal for all pods that wait for it; "" if the last attempt has no full
            record.
        is_shared: whether pods of the same workload with the same message and requests wait for the same reason.
    """

    text: str
    common: str
    is_shared: bool


def waiting_rows(pods: PodColumns, rows: Sequence[int] | Bools) -> list[int]:
    """Return those of the rows (or of a mask) whose pods wait after an attempt, at most `MAX_EVALUATED`."""
    wanted = np.flatnonzero(rows).tolist() if isinstance(rows, np.ndarray) else rows
    tried = (row for row in wanted if pods.status[row] == PodStatus.WAITING and pods.message[row])
    return [row for row, _ in zip(tried, range(MAX_EVALUATED), strict=False)]


class WaitingCauses:
    """Finds and caches why the pods of one run wait. For any thread.

    Computing a cause takes 6 ms on 1,000 nodes, and the page requests the overview with every change. Each cause is
    therefore cached until the pod is tried again, or nodes are added, removed or relabelled.

    Attributes:
        found: the number of causes that were computed.
        cached: the number of causes found in the cache.
    """

    def __init__(self) -> None:
        self.found = self.cached = 0
        self._known: dict[str, tuple[tuple[int, int], WaitingCause]] = {}

    def of(
        self, source: PodSource, pods: PodColumns, nodes: NodeColumns, rows: Sequence[int], deadline: Deadline
    ) -> Mapping[int, WaitingCause]:
        """Return why pods wait, by row. Rows for which time runs out are missing.

        Pods of one workload with the same requests and the same message have the same cause, unless they preempted or
        have claims. Only one pod of such a group is examined.

        Args:
            source: the run.
            pods, nodes: the pods and nodes of the run.
            rows: the rows of waiting pods, see `waiting_rows`.
            deadline: when to stop.
        """
        causes: dict[int, WaitingCause] = {}
        alike: dict[tuple[str, int, int], WaitingCause] = {}
        for row in rows:
            known = pods.lives[row]
            group = ("" if known is None else known.workload, int(pods.message[row]), int(pods.shape[row]))
            cause = alike.get(group)
            if cause is None:
                cause = self._cause(source, pods.keys[row], nodes.names_version, deadline)
                if cause is None:
                    continue
                if group[0] and cause.is_shared:
                    alike[group] = cause
            causes[row] = cause
        return causes

    def _cause(self, source: PodSource, key: str, names_version: int, deadline: Deadline) -> WaitingCause | None:
        records = source.records_of(key)
        version = (max((number for number, _ in records), default=-1), names_version)
        known = self._known.get(key)
        if known is not None and known[0] == version:
            self.cached += 1
            return known[1]
        lives = [] if deadline.is_over else source.timelines_of(key)
        if not lives:
            return None
        self.found += 1
        if len(self._known) >= MAX_CACHED:
            self._known.clear()
        cause = _cause_of(source, lives)
        self._known[key] = (version, cause)
        return cause


def _cause_of(source: PodSource, lives: Sequence[PodTimeline]) -> WaitingCause:
    """Return why the pod with these timelines waits."""
    life = lives[-1]
    attempts = attempts_of(source, life, lives)
    preempts = bool(attempts) and bool(attempts[-1].nominated_node)
    cause = None if preempts else last_cause(source, life, attempts)
    if cause is None or life.pod is None:
        return WaitingCause(waiting_reason(source, life, attempts), "", is_shared=False)
    has_claims = any(claim_name_of(life.pod.metadata.name, volume) for volume in life.pod.spec.volumes)
    return WaitingCause(cause.headline, cause.summary, is_shared=not has_claims)


def common_cause(causes: Mapping[int, WaitingCause], waiting: int) -> CommonCause | None:
    """Return the cause that most pods share; None if fewer than half of the `waiting` pods have been examined."""
    if 2 * len(causes) < waiting:
        return None
    counts = Counter(each.common for each in causes.values() if each.common)
    most = counts.most_common(1)
    return CommonCause(*most[0]) if most else None
