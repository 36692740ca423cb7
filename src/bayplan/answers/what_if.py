"""What-if questions: compare a cluster, pod by pod, before and after some changes, or under another configuration.

Both sides are scheduled by the same rules: waiting pods are tried on the current cluster (before) and on the changed
one (after), so that all differences are effects of the changes. Pods that lose their node are recreated by their
controllers, or as copies if they have none, and keep their names. Evicted pods are recreated, too; those of DaemonSets
wait for their node.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from enum import StrEnum

import msgspec
import numpy as np
from msgspec.structs import replace

from bayplan.analysis.decision_detail import chose_nominated_node_alone
from bayplan.analysis.fragmentation import PodShape, shapes_fragmentation, shapes_of_pods
from bayplan.analysis.rows import Rows
from bayplan.analysis.units import format_first
from bayplan.answers.changed_cluster import ChangedCluster, Effect
from bayplan.answers.changes import CHANGES, Change, apply_change, missing_change
from bayplan.answers.copies import replacement, replacement_of_victim
from bayplan.answers.decisive_plugin import DecisionOutput
from bayplan.answers.displaced_pods import as_waiting, is_recreated_elsewhere
from bayplan.answers.instant_host import Eviction
from bayplan.answers.pod_differences import DifferenceKind, PodDifference, Side, differences
from bayplan.answers.question_cluster import QuestionCluster, SchedulerFactory
from bayplan.answers.trial import Trial
from bayplan.answers.workloads import find_workload
from bayplan.base.counted_nouns import format_count, is_or_are
from bayplan.base.errors import InputError
from bayplan.base.html_table import table
from bayplan.engine.records import RecordLevel, Records
from bayplan.objects.pod import Pod
from bayplan.state.pod_info import FIRST_RESOURCE, POD_COUNT

MAX_EXPLAINED = 500
"""Maximum number of moved pods for which to find the decisive plugin. Each takes one cycle on each side."""

MAX_RECORDED = 5_000
"""Maximum number of pods to schedule with full records."""

TERMINATED = "it was terminating, and another pod waited for its end"
"""Why a terminating pod is gone."""

SHOWN = 3
"""Maximum number of pods to name in a sentence."""

MAX_ROUNDS = 5
"""Maximum number of times to schedule evicted pods again, as they may evict others in turn."""


class Reschedule(StrEnum):
    """Which placed pods are scheduled again, on both sides."""

    NEW = "new"
    ALL = "all"
    THESE = "these"


class Measure(msgspec.Struct, frozen=True, kw_only=True):
    """A measurement of the cluster before and after: counts, and requested or fragmented amounts as fractions of 1."""

    name: str
    before: float
    after: float


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """The effects of changes.

    Attributes:
        changes: the changes that were tried.
        pods: the number of pods that exist on either side.
        differences, measures, evictions: see the types of their rows. `evictions` are those on the changed side.
        counts: the number of pods by kind of difference, in the order of `DifferenceKind`.
        explained: the number of moved pods with a known reason.
        assumptions: the assumptions behind the answer, in sentences.
        warnings: what a real cluster does differently, and where pods are now if not where they are before the changes.
        changed: the objects that differ in other ways than a pod's node, in words; only when two clusters are compared.
    """

    changes: Sequence[str]
    pods: int
    differences: Rows[PodDifference]
    measures: Rows[Measure]
    evictions: Rows[Eviction]
    counts: dict[str, int]
    explained: int
    assumptions: Sequence[str]
    warnings: Sequence[str] = ()
    changed: Sequence[str] = ()

    def _repr_html_(self) -> str:
        counts = ", ".join(f"{count:,} {kind}" for kind, count in self.counts.items() if count)
        counts = counts or ("other differences" if self.changed else "no difference")
        caption = f"{', '.join(self.changes)}: of {self.pods:,} pods, {counts}"
        figures = [(each.name, f"{each.before:g}", f"{each.after:g}") for each in self.measures]
        pods = [(each.pod, each.kind, each.before, each.after, each.plugin, each.reason) for each in self.differences]
        heads = ("pod", "", "before", "after", "plugin", "reason")
        others = table(("other differences",), [(each,) for each in self.changed]) if self.changed else ""
        return table(("", "before", "after"), figures, caption=caption) + others + table(heads, pods)


def what_if(
    cluster: QuestionCluster,
    changes: Sequence[Change] = (),
    *,
    scheduler: SchedulerFactory | None = None,
    scheduler_label: str = "",
    reschedule: Reschedule = Reschedule.NEW,
    these: Collection[str] = (),
    explained: int = MAX_EXPLAINED,
    after: Callable[[Trial], None] | None = None,
) -> Answer:
    """Return the effects of changes.

    Args:
        cluster: the current cluster.
        changes: the changes, in order.
        scheduler: the scheduler that decides after the changes; None for the same one.
        scheduler_label: the name of this scheduler in the answer.
        reschedule: which placed pods are scheduled again, on both sides.
        these: the pods or workloads to schedule again, for `Reschedule.THESE`.
        explained: the maximum number of moved pods for which to find the decisive plugin.
        after: called with the changed cluster, before the changes are undone.

    Raises:
        InputError: a change names an object that does not exist, or there is nothing to try.
    """
    if not changes and scheduler is None:
        raise missing_change(CHANGES)
    again = _pods_to_reschedule(cluster, reschedule, these)
    shapes = shapes_of_pods(cluster.all(Pod))
    effect = Effect()
    other = cluster if scheduler is None else cluster.with_scheduler(scheduler)
    b = _run(other, changes, again, shapes, effect, after=after)
    a = _run(cluster, (), again, shapes, Effect(), explain=_moved(cluster, b, explained))
    rows, looked_at = differences(cluster, a, b, effect.gone)
    rows = [replace(row, workload=row.workload or effect.added.get(row.pod, "")) for row in rows]
    names = [str(change) for change in changes] + ([scheduler_label or "another configuration"] if scheduler else [])
    assumptions = _assumptions(cluster, effect, reschedule, again, scheduler is not None)
    answer = answer_of(names, a, b, rows, looked_at, assumptions)
    return replace(answer, warnings=[*effect.warnings, *_scheduled_first(cluster, rows, again)])


def answer_of(
    changes: Sequence[str],
    a: Side,
    b: Side,
    rows: Sequence[PodDifference],
    looked_at: int,
    assumptions: Sequence[str],
) -> Answer:
    """Combine two sides and their differences into an answer."""
    counts = {kind.value: sum(row.kind == kind for row in rows) for kind in DifferenceKind}
    figures = [
        Measure(name=name, before=a.measures.get(name, 0.0), after=b.measures.get(name, 0.0))
        for name in dict.fromkeys((*a.measures, *b.measures))
    ]
    return Answer(
        changes=changes,
        pods=len(a.nodes.keys() | b.nodes.keys()),
        differences=Rows(rows, PodDifference),
        measures=Rows(figures, Measure),
        evictions=Rows(b.evictions, Eviction),
        counts=counts,
        explained=looked_at,
        assumptions=assumptions,
    )


# --- one side ---------------------------------------------------------------------------------------------------------


def _pods_to_reschedule(cluster: QuestionCluster, reschedule: Reschedule, these: Collection[str]) -> list[Pod]:
    if reschedule is Reschedule.NEW:
        return []
    if reschedule is Reschedule.ALL:
        pods = [info.pod for info in cluster.state.pods.values()]
    else:
        if not these:
            raise InputError(
                "reschedule", got="no pod or workload", wanted="pods or workloads", hint="--reschedule deployment/web"
            )
        named = {pod.key: pod for text in these for pod in find_workload(text, cluster).pods}
        pods = [pod for pod in named.values() if pod.key in cluster.state.pods]
    found = [pod for pod in pods if is_recreated_elsewhere(pod)]
    # In order of creation; the queue puts pods of higher priority first.
    return sorted(found, key=lambda pod: (pod.metadata.creation_timestamp or "", pod.key))


def _run(
    cluster: QuestionCluster,
    changes: Sequence[Change],
    again: Sequence[Pod],
    shapes: Sequence[PodShape],
    effect: Effect,
    *,
    explain: Mapping[str, str] | None = None,
    after: Callable[[Trial], None] | None = None,
) -> Side:
    """Schedule one side: the waiting pods, the pods to schedule again, and the pods that changes displace."""
    level = RecordLevel.FULL if len(again) + len(cluster.waiting) <= MAX_RECORDED else RecordLevel.OFF
    with cluster.trial(preempts=True, records=level) as trial:
        for pod in again:
            trial.remove_pod(pod.key)
        changed = ChangedCluster(cluster, trial, effect, again)
        for change in changes:
            apply_change(change, changed)
        if len(effect.displaced) + len(again) > MAX_RECORDED:
            trial.begin_records(RecordLevel.OFF)
        for pod in changed.waiting.values():
            if pod.key in trial.nominated or pod.key not in trial.scheduler.pods:
                trial.put(pod)
        for pod in (*changed.again.values(), *effect.displaced.values()):
            trial.add_all(replacement(pod, changed))
        trial.settle()
        _recreate_victims(trial, changed)
        trial.retry_outdated()
        side = side_of(trial, effect.gone)
        side.measures = measures(trial, side, shapes)
        if after is not None:
            after(trial)
        if explain:
            hypothetical_decisions(trial, side, explain)
        return side


def _recreate_victims(trial: Trial, changed: ChangedCluster) -> None:
    done = 0
    for number in range(MAX_ROUNDS):
        if len(trial.evictions) == done:
            return
        fresh = trial.evictions[done:]
        done = len(trial.evictions)
        for eviction in fresh:
            if eviction.pod not in trial.scheduler.pods and eviction.pod not in changed.effect.gone:
                trial.add_all(replacement_of_victim(trial.victims[eviction.pod], changed))
        # No replacement may be missing at the end, so in the last round no pod is evicted.
        trial.settle(preempts=False if number == MAX_ROUNDS - 1 else None)


def side_of(trial: Trial, gone: Mapping[str, str] | None = None) -> Side:
    """Return one side: the nodes, messages and evictions at the end of a trial. Its measures are empty."""
    names = trial.state.nodes.names
    nodes = {key: names[info.row] or "" for key, info in trial.state.pods.items()}
    messages = dict(trial.messages)
    for key, pod in trial.scheduler.pods.items():
        if key not in nodes and not pod.spec.node_name:
            nodes[key] = ""
            messages[key] = trial.waiting_message(pod)
    return Side(
        nodes,
        messages,
        {**dict.fromkeys(trial.ended, TERMINATED), **(gone or {})},
        _recorded(trial.scheduler.records, dict(trial.last_decision)),
        tuple(trial.evictions),
        {},
        frozenset(trial.state.nodes.row_of),
    )


def _recorded(records: Records, numbers: Mapping[str, int]) -> Callable[[str], DecisionOutput | None]:
    """Return a function that returns the recorded decision about the pod with a key, or None.

    A decision that examined only the pod's nominated node, after a preemption, says nothing about other nodes.
    """

    def decision_of(key: str) -> DecisionOutput | None:
        number = numbers.get(key)
        if number is None or records.level is not RecordLevel.FULL or records[number].frame < 0:
            return None
        decision = records.decision(number)
        return None if chose_nominated_node_alone(decision) else DecisionOutput(decision)

    return decision_of


def hypothetical_decisions(trial: Trial, side: Side, pods: Iterable[str]) -> None:
    """Decide again about placed pods, each alone on the current cluster, to get the results of all plugins.

    Pods that were already decided in this trial with a full record are left out. The trial can't be used afterwards.
    """
    decided = side.decision_of
    wanted = [key for key in pods if decided(key) is None]
    trial.begin_records(RecordLevel.FULL)
    for key in wanted:
        pod = trial.remove_pod(key)
        if pod is not None:
            # Without preemption: only results of filters and scores are needed, and a search for victims examines all
            # pods.
            trial.put(as_waiting(pod))
            trial.settle(preempts=False)
            trial.remove_pod(key)
            trial.put(pod)
    hypothetical = _recorded(trial.scheduler.records, dict(trial.last_decision))
    side.decision_of = lambda key: hypothetical(key) or decided(key)


def measures(trial: Trial, side: Side, shapes: Sequence[PodShape]) -> dict[str, float]:
    """Return the measurements of the cluster at the end of a trial, by name."""
    state = trial.state
    count = state.nodes.count
    alive = state.nodes.alive[:count]
    placed = sum(bool(node) for node in side.nodes.values())
    found: dict[str, float] = {
        "nodes": len(state.nodes),
        "nodes without pods": int((state.usage[POD_COUNT, :count][alive] == 0).sum()),
        "pods placed": placed,
        "pods pending": len(side.nodes) - placed,
        "preempted": len(side.evictions),
    }
    for name, number in state.nodes.resources.items():
        offered = int(state.nodes.allocatable[number, :count][alive].sum())
        if offered:
            taken = int(np.asarray(state.usage[FIRST_RESOURCE + number, :count])[alive].sum())
            if taken:
                found[f"{name} requested"] = round(taken / offered, 6)
    for each in shapes_fragmentation(shapes, trial.scheduler):
        found[f"{each.resource} fragmented"] = each.share
    return found


# --- both sides -------------------------------------------------------------------------------------------------------


def _moved(cluster: QuestionCluster, b: Side, most: int) -> dict[str, str]:
    """Return the old node, by pod, of at most `most` pods that get another node on side b although the old one exists there."""
    names = cluster.state.nodes.names
    found: dict[str, str] = {}
    for key, info in cluster.state.pods.items():
        node, after = names[info.row] or "", b.nodes.get(key)
        if after and after != node and node in b.node_names:
            found[key] = node
    return {key: found[key] for key in sorted(found)[:most]}


def _scheduled_first(cluster: QuestionCluster, rows: Sequence[PodDifference], again: Sequence[Pod]) -> list[str]:
    """Return a sentence with the current nodes of pods that pending pods move or evict, or that get a node, before the changes."""
    names, others = cluster.state.nodes.names, {pod.key for pod in again}
    found = []
    for row in rows:
        info = cluster.state.pods.get(row.pod)
        now = (names[info.row] or "") if info is not None else ""
        if now != row.before and row.kind != DifferenceKind.NEW and row.pod not in others:
            found.append(f"{row.pod} is {f'on {now}' if now else 'pending'}")
    if not found:
        return []
    return [f"BEFORE is the cluster once its pending pods are scheduled; now, {format_first(found, SHOWN)}"]


def _assumptions(
    cluster: QuestionCluster, effect: Effect, reschedule: Reschedule, again: Sequence[Pod], configured: bool
) -> list[str]:
    found = list(effect.notes)
    if effect.displaced:
        found.append("pods that lose their node are recreated at once with the same names")
    if reschedule is Reschedule.NEW and configured:
        found.append(
            "placed pods keep their nodes; only new and displaced pods are scheduled (--reschedule all, or WORKLOAD)"
        )
    elif again:
        start = "an empty cluster" if reschedule is Reschedule.ALL else "a cluster without them"
        pods = f"{format_count(len(again), 'pod')} {is_or_are(len(again))}"
        found.append(f"{pods} scheduled again in both cases, in the order of their creation, starting from {start}")
    found += cluster.terminating_note()
    if cluster.waiting:
        count = len(cluster.waiting)
        found.append(f"the scheduler tries to place {format_count(count, 'pending pod')} in both cases")
    return found
