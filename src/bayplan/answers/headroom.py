"""Headroom over time: how many more copies of a workload would have fitted at several times of a simulation."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from bayplan.analysis.rows import Rows
from bayplan.answers.capacity import DEFAULT_LIMIT, NO_PREEMPTION, Share, capacity
from bayplan.answers.question_cluster import QuestionCluster
from bayplan.answers.workloads import find_workload


class Headroom(msgspec.Struct, frozen=True, kw_only=True):
    """The headroom at one time.

    Attributes:
        taken_at_ns: the time.
        copies: the number of copies that fitted at that time.
        reached_limit: whether the search ended at the limit, so that more copies may fit.
        placed, waiting: the number of pods with and without a node.
        runs_out: the resource or other reason for which most nodes rejected the next copy; "" if there is none.
    """

    taken_at_ns: int
    copies: int
    reached_limit: bool
    placed: int
    waiting: int
    runs_out: str


class HeadroomAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Headroom over time.

    Attributes:
        workloads: the names of the workloads whose copies are placed.
        times: the headroom at each time.
        least, most: the minimum and maximum number of copies over all times.
        assumptions: the assumptions behind the answer, in sentences.
    """

    workloads: str
    times: Rows[Headroom]
    least: int
    most: int
    assumptions: Sequence[str]


def headroom(
    cluster_at: Callable[[int], QuestionCluster],
    times_ns: Sequence[int],
    mix: Sequence[Share],
    *,
    preempts: bool = False,
    limit: int = DEFAULT_LIMIT,
) -> HeadroomAnswer:
    """Return how many additional copies would have fitted at each time.

    Args:
        cluster_at: returns the cluster at a time.
        times_ns: the times, ascending; the workloads must exist at the last of them.
        mix: the workloads with their proportions.
        preempts: whether copies may evict pods.
        limit: the maximum number of copies at each time.

    Raises:
        InputError: a workload does not exist.
    """
    last = cluster_at(times_ns[-1])
    models = [find_workload(share.workload, last) for share in mix]
    rows: list[Headroom] = []
    for time_ns in times_ns:
        cluster = cluster_at(time_ns) if time_ns != times_ns[-1] else last
        # If a workload does not exist yet at this time, copy its last version.
        cluster.add_missing(
            item for each in models for item in (each.item, *each.pods[-1:]) if item and cluster.is_new(item)
        )
        found = capacity(cluster, mix, preempts=preempts, limit=limit)
        rows.append(
            Headroom(
                taken_at_ns=time_ns,
                copies=found.copies,
                reached_limit=found.reached_limit,
                placed=len(cluster.state.pods),
                waiting=len(cluster.waiting),
                runs_out=found.short_of or next(iter(found.runs_out), ""),
            )
        )
    counts = [row.copies for row in rows]
    notes = ["nodes are those at the end of the simulation", "pods that are pending at a time are ignored"]
    if not preempts:
        notes.insert(0, NO_PREEMPTION)
    return HeadroomAnswer(
        workloads=", ".join(each.label for each in models),
        times=Rows(rows, Headroom),
        least=min(counts),
        most=max(counts),
        assumptions=notes,
    )
