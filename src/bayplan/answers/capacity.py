"""Capacity: how many further copies of a workload, or of a mix of workloads, fit, and which resource runs out first.

Copies are scheduled one after another, in the proportions of the mix, until one finds no node. Nothing is estimated:
the scheduler itself decides, with spreading, affinity, volumes and quotas.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import msgspec
import numpy as np

from bayplan.analysis.filter_matrix import LOAD, VOLUME_FILTERS
from bayplan.analysis.nearness import INSUFFICIENT
from bayplan.analysis.rows import Rows
from bayplan.analysis.volume_places import placed_volumes, volume_exclusion
from bayplan.answers.copies import Template, admission_of, quota_namespaces, replacement_of_victim, templates_of
from bayplan.answers.instant_host import Eviction
from bayplan.answers.node_groups import Group, group_of
from bayplan.answers.question_cluster import QuestionCluster
from bayplan.answers.trial import Trial
from bayplan.base.counted_nouns import format_count, is_or_are
from bayplan.base.errors import InputError
from bayplan.base.go_arithmetic import whole_number
from bayplan.cluster.namespace_policies import PodForbidden
from bayplan.engine.cycle import first_failures
from bayplan.engine.filtered_rows import PASSES
from bayplan.engine.first_failures import FirstFailures
from bayplan.engine.plan import Plan
from bayplan.framework.cycle_state import CycleState
from bayplan.objects.meta import KubernetesObject
from bayplan.objects.pod import Pod
from bayplan.state.arrays import Bools
from bayplan.state.cluster_state import ClusterState

DEFAULT_LIMIT = 10_000
"""Default maximum number of copies to place."""

QUOTA = "quota"
"""The only key of `runs_out` if admission rejects the next copy."""

NO_PREEMPTION = "copies do not evict other pods"


class Share(msgspec.Struct, frozen=True):
    """A workload in a mix.

    Attributes:
        workload: the name of the workload, as for `find_workload`.
        count: the number of copies of the workload in one mix.
    """

    workload: str
    count: int = 1


def parse_mix(text: str) -> list[Share]:
    """Parse a mix, i.e. workloads with their proportions: ``deployment/web=3,db``. Proportions of equal names are added.

    Raises:
        InputError: a proportion is not a number from 1 to 1,000, or a workload has no name.
    """
    counts = dict[str, int]()
    for part in text.split(","):
        name, equals, number = part.strip().partition("=")
        if not name or (
            equals and (not number.isascii() or not number.isdecimal() or not 1 <= whole_number(number) <= 1000)
        ):
            raise InputError(
                "workloads", got=repr(part), wanted="WORKLOAD or WORKLOAD=N, N from 1 to 1000", hint="web=3,db=1"
            )
        counts[name] = counts.get(name, 0) + (int(number) if equals else 1)
    return [Share(name, count) for name, count in counts.items()]


class WorkloadCapacity(msgspec.Struct, frozen=True, kw_only=True):
    """The number of further copies of one workload that fit.

    Attributes:
        workload: the name of the workload, e.g. ``deployment/shop/web``.
        copies: the number of copies that were placed.
        share: the number of copies in one mix.
    """

    workload: str
    copies: int
    share: int


class GroupCapacity(msgspec.Struct, frozen=True, kw_only=True):
    """The result for one group of nodes.

    Attributes:
        zone, pool: the zone and pool of the nodes.
        nodes: the number of nodes.
        nodes_with_room: the number of these nodes with room, before the first copy, for the workload that ended the
            search.
        nodes_left: the number of nodes that still have room for it afterwards.
        copies: the number of copies that were placed on these nodes.
        runs_out: why nodes that had room or took a copy reject the next copy, with node counts, the most frequent
            reason first. If no node had room, why all nodes reject it.
    """

    zone: str
    pool: str
    nodes: int
    nodes_with_room: int
    nodes_left: int
    copies: int
    runs_out: dict[str, int]


class Placement(msgspec.Struct, frozen=True, kw_only=True):
    """A copy and the node that it was placed on."""

    copy: str
    workload: str
    node: str
    zone: str
    pool: str


class VictimRow(msgspec.Struct, frozen=True, kw_only=True):
    """A pod that was evicted for a copy.

    Attributes:
        pod, node, preemptor, priority, controller: see `Eviction`.
        new_node: the final node of the pod that the controller creates as a replacement; "" if it finds no node.
    """

    pod: str
    node: str
    preemptor: str
    priority: int
    controller: str
    new_node: str


class CapacityAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The number of further copies that fit.

    Attributes:
        copies: the number of copies of all workloads together.
        mixes: the number of complete mixes.
        reached_limit: whether the search ended at the limit, before a copy found no node.
        workloads, groups, placements, victims: see the types of their rows.
        stopped_by: the workload whose next copy found no node; "" if `reached_limit`.
        message: why that copy found no node, from the scheduler or a quota.
        exceeded_quota: the name of the quota that this copy would exceed, or "".
        short_of: the resource that most nodes lack for this copy, if no other reason is more frequent; else "".
        runs_out: as for a group of nodes, but over all groups; see `GroupCapacity`.
        by_seed: the number of copies by seed, if several seeds were requested.
        assumptions: the assumptions behind the answer, in sentences.
    """

    copies: int
    mixes: int
    reached_limit: bool
    workloads: Rows[WorkloadCapacity]
    groups: Rows[GroupCapacity]
    placements: Rows[Placement]
    victims: Rows[VictimRow]
    stopped_by: str
    message: str
    exceeded_quota: str
    short_of: str
    runs_out: dict[str, int]
    by_seed: dict[int, int]
    assumptions: Sequence[str]


def capacity(
    cluster: QuestionCluster,
    mix: Sequence[Share],
    *,
    preempts: bool = False,
    limit: int = DEFAULT_LIMIT,
    seeds: Sequence[int] = (),
) -> CapacityAnswer:
    """Return how many further copies of workloads fit.

    Args:
        cluster: the current cluster.
        mix: the workloads with their proportions.
        preempts: whether copies may evict pods of lower priority.
        limit: the maximum number of copies to place.
        seeds: further seeds for tie-breaking, to find the range of the answer.

    Raises:
        InputError: a workload does not exist, can't be copied, or occurs twice.
    """
    if not mix or any(share.count < 1 for share in mix) or limit < 1:
        raise InputError(
            "capacity",
            got="a number below 1" if mix else "no workload",
            wanted="at least one workload, and counts and a limit of at least 1",
        )
    templates = templates_of([share.workload for share in mix], cluster)
    filling = _Filling(cluster, templates, [share.count for share in mix], preempts=preempts, limit=limit)
    return filling.run(cluster.seed, seeds)


class _Filling:
    """A search: fills a cluster with copies until one finds no node."""

    def __init__(
        self,
        cluster: QuestionCluster,
        templates: Sequence[Template],
        counts: Sequence[int],
        *,
        preempts: bool,
        limit: int,
    ) -> None:
        self._cluster = cluster
        self._templates = templates
        self._counts = counts
        self._preempts = preempts
        self._limit = limit
        self._has_quotas = any(each.pod.metadata.namespace in quota_namespaces(cluster) for each in templates)

    def run(self, seed: int, seeds: Sequence[int]) -> CapacityAnswer:
        """Return the answer for the first seed, with only the number of copies for each of the other seeds."""
        answer = self._run(seed)
        if not seeds:
            return answer
        by_seed = {seed: answer.copies} | {each: self._run(each).copies for each in seeds if each != seed}
        return msgspec.structs.replace(answer, by_seed=by_seed)

    def _order(self) -> Iterator[int]:
        """Yield the indexes of the workloads of a mix forever, in rounds.

        In a round, the workloads take turns; one that occurs N times in the mix is yielded N times.
        """
        turns = [
            number for place in range(max(self._counts)) for number, count in enumerate(self._counts) if place < count
        ]
        while True:
            yield from turns

    def _run(self, seed: int) -> CapacityAnswer:
        for template in self._templates:
            template.begin()
        namespaces = [each.pod.metadata.namespace for each in self._templates]
        admission = admission_of(self._cluster, namespaces) if self._has_quotas else None
        placed: list[tuple[int, str]] = []
        stopped, message, refusal = -1, "", None
        with self._cluster.trial(preempts=self._preempts, seed=seed) as trial:
            rooms = [rows_with_room(trial, _next_copy(trial, template)) for template in self._templates]
            for template in self._templates:
                template.begin()
            for number in self._order():
                if len(placed) >= self._limit:
                    break
                items = self._templates[number].next()
                key = items[-1].key
                assert key not in trial.scheduler.pods
                if admission is not None:
                    try:
                        admission.charge(_pod_of(items))
                    except PodForbidden as problem:
                        stopped, message, refusal = number, problem.got, problem
                        break
                if not trial.place(items):
                    stopped, message = number, trial.waiting_message(_pod_of(items))
                    trial.remove_pod(key)
                    break
                placed.append((number, key))
            answer = self._answer(trial, placed, rooms, stopped, message)
            if refusal is None:
                return answer
            return msgspec.structs.replace(answer, runs_out={QUOTA: 1}, exceeded_quota=refusal.exceeded, short_of="")

    def _answer(
        self, trial: Trial, placed: Sequence[tuple[int, str]], rooms: Sequence[Bools], stopped: int, message: str
    ) -> CapacityAnswer:
        # A copy does not count if a later copy of higher priority has evicted it.
        kept = [(number, key) for number, key in placed if trial.node_of(key)]
        state = trial.state
        alive = [node for node in state.nodes.nodes if node is not None]
        nodes = {node.metadata.name: group_of(node.metadata.labels) for node in alive}
        placements = []
        for number, key in kept:
            node = trial.node_of(key)
            zone, pool = nodes[node]
            placements.append(
                Placement(copy=key, workload=self._templates[number].label, node=node, zone=zone, pool=pool)
            )
        counts = Counter(number for number, _ in kept)
        asked = max(stopped, 0)
        copy = _next_copy(trial, self._templates[asked])
        left = rows_with_room(trial, copy)
        # Nodes that had room at first, or on which a copy was placed since.
        used = rooms[asked].copy()
        used[[state.nodes.row_of[row.node] for row in placements]] = True
        if not used.any():
            used[[state.nodes.row_of[name] for name in nodes]] = True
        reasons = _reasons(trial, copy, used)
        groups = _groups(state, nodes, rooms[asked], left, reasons, Counter(nodes[row.node] for row in placements))
        runs_out = Counter[str]()
        for group in groups:
            runs_out.update(group.runs_out)
        return CapacityAnswer(
            copies=len(kept),
            mixes=min(counts[number] // count for number, count in enumerate(self._counts)),
            reached_limit=stopped < 0,
            workloads=Rows(
                [
                    WorkloadCapacity(workload=template.label, copies=counts[number], share=self._counts[number])
                    for number, template in enumerate(self._templates)
                ],
                WorkloadCapacity,
            ),
            groups=Rows(groups, GroupCapacity),
            placements=Rows(placements, Placement),
            victims=Rows(_victims(trial, self._cluster), VictimRow),
            stopped_by=self._templates[stopped].label if stopped >= 0 else "",
            message=message,
            exceeded_quota="",
            short_of=_resource_of(state, next(iter(dict(runs_out.most_common())), "")),
            runs_out=dict(runs_out.most_common()),
            by_seed={},
            assumptions=self._assumptions(trial),
        )

    def _assumptions(self, trial: Trial) -> list[str]:
        found = [f"copies of {each.label} are like {each.comes_from}" for each in self._templates]
        found.append(
            "copies may evict pods of lower priority; evicted pods are scheduled again at the end"
            if self._preempts
            else NO_PREEMPTION
        )
        waiting = len(self._cluster.waiting) - sum(
            bool(pod.status.nominated_node_name) for pod in self._cluster.waiting.values()
        )
        if waiting:
            found.append(f"{format_count(waiting, 'pending pod')} {is_or_are(waiting)} ignored")
        found += self._cluster.terminating_note()
        if trial.ended:
            found.append(f"copies wait for the end of {format_count(len(trial.ended), 'terminating pod')}")
        if any(each.provisions for each in self._templates):
            found.append("volumes that are provisioned before their pods are scheduled are reachable from every node")
        if any(each.pod.spec.scheduling_gates for each in self._templates):
            found.append("scheduling gates of copies stay closed")
        return found


def _pod_of(items: Sequence[KubernetesObject]) -> Pod:
    pod = items[-1]
    assert isinstance(pod, Pod)
    return pod


def _next_copy(trial: Trial, template: Template) -> Pod:
    """Return the pod of a workload's next copy, and add the claims that belong to it alone, but not the pod."""
    *claims, pod = template.next()
    for claim in claims:
        trial.put(claim)
    assert isinstance(pod, Pod)
    return pod


def rows_with_room(trial: Trial, pod: Pod) -> Bools:
    """Return bool[rows]: the nodes that pass all filters for a pod now. Nominated pods count as for the scheduler."""
    state = trial.state
    count = state.nodes.count
    profile = trial.scheduler.profiles.get(pod.spec.scheduler_name)
    nothing: Bools = np.zeros(count, dtype=np.bool_)
    if profile is None or not len(state.nodes):
        return nothing
    plan = trial.scheduler.plans.plan_for(profile, pod)
    if plan.run_pre_filter_plugins(CycleState(trial.now_ns)).status is not None:
        return nothing
    plan.refresh_filters()
    failures = _nominated_failures(trial, plan, pod)
    return (plan.filtered.feasible if failures is None else failures.feasible)[:count].copy()


def _nominated_failures(trial: Trial, plan: Plan, pod: Pod) -> FirstFailures | None:
    """Return the first failures of a pod if nominated pods count, too; None if there are none. The filters must have run."""
    lister = trial.scheduler.nominated_pods
    nominated = lister(pod)
    return first_failures(plan, nominated, lister.log) if nominated else None


def _reasons(trial: Trial, pod: Pod, rows: Bools) -> dict[int, tuple[str, ...]]:
    """Return by row why a pod does not fit on each of the given rows.

    As in root causes, the first filter on node properties decides, even if the node is also full: its reason remains if
    other pods leave. For a volume elsewhere, the reason is its location.
    """
    profile = trial.scheduler.profiles.get(pod.spec.scheduler_name)
    if profile is None or not rows.any():
        return {}
    plan = trial.scheduler.plans.plan_for(profile, pod)
    status = plan.run_pre_filter_plugins(CycleState(trial.now_ns)).status
    if status is not None:
        return {int(row): status.reasons for row in rows.nonzero()[0]}
    plan.refresh_filters()
    filtered, examined = plan.filtered, plan.filtered.examined()
    first, lasting = filtered.first_failures(), filtered.first_failures(LOAD)
    failures = _nominated_failures(trial, plan, pod)
    overrides = {} if failures is None else failures.overrides
    volumes = placed_volumes(pod, trial.catalog, [node for node in trial.state.nodes.nodes if node is not None])
    known: dict[int, tuple[str, ...]] = {}
    found: dict[int, tuple[str, ...]] = {}
    for row in rows.nonzero()[0].tolist():
        failure = int(lasting[row])
        if failure == PASSES and not examined[row]:
            found[row] = ("excluded by PreFilter",)
            continue
        if failure == PASSES:
            failure = overrides.get(row, int(first[row]))
        if failure == PASSES:
            continue
        if filtered.results[failure >> 16].name in VOLUME_FILTERS:
            place = volume_exclusion(volumes, trial.state.nodes.names[row] or "")
            if place:
                found[row] = (place,)
                continue
        if failure not in known:
            known[failure] = plan.status_of(failure).reasons
        found[row] = known[failure]
    return found


def _groups(
    state: ClusterState,
    nodes: dict[str, Group],
    room: Bools,
    left: Bools,
    reasons: dict[int, tuple[str, ...]],
    copies: Counter[Group],
) -> list[GroupCapacity]:
    members: dict[Group, list[int]] = {}
    for name, group in nodes.items():
        members.setdefault(group, []).append(state.nodes.row_of[name])
    found = []
    for group, rows in sorted(members.items()):
        index = np.array(rows, dtype=np.intp)
        counts = Counter(reason for row in rows for reason in reasons.get(row, ()))
        found.append(
            GroupCapacity(
                zone=group.zone,
                pool=group.pool,
                nodes=len(rows),
                nodes_with_room=int(room[index].sum()),
                nodes_left=int(left[index].sum()),
                copies=copies[group],
                runs_out=dict(sorted(counts.items(), key=lambda each: (-each[1], each[0]))),
            )
        )
    return found


def _resource_of(state: ClusterState, reason: str) -> str:
    """Return the resource whose lack is the reason of NodeResourcesFit for rejecting a node; "" for any other reason."""
    return next((name for name in state.nodes.resources if reason == f"{INSUFFICIENT}{name}"), "")


def _victims(trial: Trial, cluster: QuestionCluster) -> list[VictimRow]:
    """Schedule the replacements of the evicted pods without preemption, and return all victims with their new nodes."""
    evictions: Sequence[Eviction] = tuple(trial.evictions)
    if not evictions:
        return []
    for pod in list(trial.victims.values()):
        if cluster.get(Pod, pod.key) is not None:
            trial.add_all(replacement_of_victim(pod, cluster))
    trial.settle(preempts=False)
    return [
        VictimRow(
            pod=each.pod,
            node=each.node,
            preemptor=each.preemptor,
            priority=each.priority,
            controller=each.controller,
            new_node=trial.node_of(each.pod),
        )
        for each in evictions
    ]
