"""Plugins as an HTTP extender: answers a stock kube-scheduler with the plugins of a profile. Does not depend on HTTP.

The answers have the fields of upstream's ExtenderFilterResult, HostPriorityList and ExtenderPreemptionResult.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from bayplan.base.errors import InputError
from bayplan.engine.filtered_rows import PASSES
from bayplan.engine.plan import Plan, score_over
from bayplan.engine.scheduler import Scheduler
from bayplan.engine.select_host import mask_of
from bayplan.engine.what_if import Trial
from bayplan.framework.cycle_state import CycleState
from bayplan.framework.extender import MAX_EXTENDER_PRIORITY
from bayplan.framework.plugin import MAX_NODE_SCORE
from bayplan.framework.profile import Profile
from bayplan.framework.status import Code, Status, error
from bayplan.objects.defaults import default_object
from bayplan.objects.kinds import convert
from bayplan.objects.node import Node
from bayplan.objects.pod import Pod
from bayplan.state.arrays import Index

UNKNOWN_NODE = "node(s) not in the extender's files"
"""The reason for rejecting nodes that are sent by name but are not in the scheduler's state."""

FORGET_SECONDS = 86_400.0
"""Time after which a node is forgotten if no request contains it. Schedulers send only the nodes that passed their own
filters, so a node that one request lacks still exists, and a full one may be a candidate of preemption much later. A
forgotten node that is sent again is stored again."""

Json = Mapping[str, object]
Answer = dict[str, object]


class PluginExtender:
    """Answers with the filter and score plugins of a scheduler.

    Nodes that are sent as objects are stored in the scheduler's state for `FORGET_SECONDS`. Of the nodes that are sent by
    name, those that are not in it are rejected: other nodes must still get pods when one is added to the cluster.

    Args:
        scheduler: provides state, plans and profiles; pods are neither queued nor assumed.
        clock: returns the seconds since any start.
    """

    def __init__(self, scheduler: Scheduler, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._scheduler = scheduler
        self._clock = clock
        # When each node was last sent as an object, the oldest first. Nodes of files are not in it.
        self._sent_at: dict[str, float] = {}

    def filter(self, arguments: Json) -> Answer:
        """Answer the filter verb: the nodes that fit the pod, and why the others do not.

        Raises:
            InputError: the arguments do not match the verb.
        """
        pod = _pod_of(arguments)
        names, items = self._nodes_of(arguments)
        by_name = items is None
        answer: Answer = {
            "Nodes": None,
            "NodeNames": None,
            "FailedNodes": {},
            "FailedAndUnresolvableNodes": {},
            "Error": "",
        }
        known, unknown = self._split(names)
        statuses = self._statuses(pod, known)
        if isinstance(statuses, Status):
            return answer | {"Error": statuses.message}
        passing = [name for name, status in statuses.items() if status is None]
        rejected = {name: status for name, status in statuses.items() if status is not None}
        final = {name for name, status in rejected.items() if status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE}
        answer["FailedNodes"] = {name: status.message for name, status in rejected.items() if name not in final}
        answer["FailedAndUnresolvableNodes"] = {
            **{name: rejected[name].message for name in rejected if name in final},
            **dict.fromkeys(unknown, UNKNOWN_NODE),
        }
        if by_name:
            answer["NodeNames"] = passing
        else:
            passing_names = frozenset(passing)
            answer["Nodes"] = {"metadata": {}, "items": [item for name, item in items or () if name in passing_names]}
        return answer

    def prioritize(self, arguments: Json) -> list[Answer]:
        """Answer the prioritize verb: the weighted mean of the plugins' scores, as a number from 0 to 10.

        Raises:
            InputError: the arguments do not match the verb.
            ScoringError: a plugin failed; the verb can report this only by a failed request.
        """
        pod = _pod_of(arguments)
        names, unknown = self._split(self._nodes_of(arguments)[0])
        plan = self._plan(pod)
        weight = sum(entry.weight for entry in plan.profile.score)
        unscored: list[Answer] = [{"Host": name, "Score": 0} for name in unknown]
        if not weight or not names:
            return [*({"Host": name, "Score": 0} for name in names), *unscored]
        rows = self._rows(names)
        plan.run_pre_filter_plugins(CycleState())
        scored = score_over(plan, mask_of(rows, plan.state.nodes.capacity))
        if scored.failure is not None:
            raise ScoringError(scored.failure.message)
        # A node has at most 100 points times the sum of the weights. Divide by that sum and by 10, and round to the
        # nearest.
        unit = weight * MAX_NODE_SCORE // MAX_EXTENDER_PRIORITY
        scores = (2 * scored.totals.total[rows] + unit) // (2 * unit)
        scored_nodes = zip(names, scores.tolist(), strict=True)
        return [*({"Host": name, "Score": int(score)} for name, score in scored_nodes), *unscored]

    def preempt(self, arguments: Json) -> Answer:
        """Answer the preempt verb: the candidates on which the pod passes the plugins' filters without the victims.

        Victims that the server does not know (no cluster was loaded, or it has changed) are ignored: such a candidate
        remains if the pod passes now.

        Raises:
            InputError: the arguments do not match the verb.
        """
        pod = _pod_of(arguments)
        left: Answer = {}
        victims = _victims_of(arguments)
        self._refresh(name for name, _, _ in victims)
        for name, uids, violations in victims:
            if self._fits_without(pod, name, frozenset(uids)):
                left[name] = {"Pods": [{"UID": uid} for uid in uids], "NumPDBViolations": violations}
        return {"NodeNameToMetaVictims": left}

    def _fits_without(self, pod: Pod, name: str, uids: frozenset[str]) -> bool:
        state = self._scheduler.state
        row = state.nodes.row_of.get(name)
        if row is None:
            return True
        plan = self._plan(pod)
        pre = plan.run_pre_filter_plugins(CycleState())
        if pre.status is not None or (pre.node_names is not None and name not in pre.node_names):
            return False
        plan.refresh_filters()
        trial = Trial(plan)
        try:
            for info in list(state.pods_on[row].values()):
                if info.pod.metadata.uid in uids:
                    trial.moves.remove(info, row)
            return trial.first_failure(row) == PASSES
        finally:
            trial.close()

    def _statuses(self, pod: Pod, names: Sequence[str]) -> dict[str, Status | None] | Status:
        """Return why each node does not fit the pod (None if it fits), or a plugin's error."""
        plan = self._plan(pod)
        pre = plan.run_pre_filter_plugins(CycleState())
        if pre.status is not None:
            return dict.fromkeys(names, pre.status) if pre.status.code.rejects else pre.status
        plan.refresh_filters()
        rows = self._rows(names)
        examined, narrowing = plan.filtered.examined(), " ".join(sorted(pre.narrowed_by))
        left_out = Status(
            Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (f"node(s) didn't satisfy plugin(s) [{narrowing}]",), narrowing
        )
        failures = plan.filtered.first_failures()
        found: dict[str, Status | None] = {}
        for name, row in zip(names, rows.tolist(), strict=True):
            failure = int(failures[row])
            if not examined[row]:
                found[name] = left_out
                continue
            found[name] = status = None if failure == PASSES else plan.status_of(failure)
            if status is not None and status.code is Code.ERROR:
                return error(f'running "{status.plugin}" filter plugin: {status.message}')
        return found

    def _plan(self, pod: Pod) -> Plan:
        """Return the plan of a pod for its profile, or for the first profile if none has its scheduler name."""
        profiles = self._scheduler.profiles
        profile: Profile = profiles.get(pod.spec.scheduler_name) or next(iter(profiles.values()))
        return self._scheduler.plans.plan_for(profile, pod)

    def _split(self, names: Sequence[str]) -> tuple[list[str], list[str]]:
        """Return the names of known nodes, and of others."""
        row_of = self._scheduler.state.nodes.row_of
        return [name for name in names if name in row_of], [name for name in names if name not in row_of]

    def _rows(self, names: Sequence[str]) -> Index:
        row_of = self._scheduler.state.nodes.row_of
        return np.array([row_of[name] for name in names], dtype=np.intp)

    def _nodes_of(self, arguments: Json) -> tuple[list[str], list[tuple[str, Json]] | None]:
        """Return the names of the nodes in a request, and the nodes themselves if they were sent as objects."""
        names = _field(arguments, "NodeNames")
        if isinstance(names, list):
            for name in names:
                if not isinstance(name, str):
                    raise InputError("NodeNames", wanted="names of nodes", got=repr(name))
            self._refresh(names)
            return list(dict.fromkeys(names)), None
        listed = _field(_field(arguments, "Nodes"), "items")
        if listed is not None and not isinstance(listed, list):
            raise InputError("Nodes.items", wanted="a list of nodes", got=type(listed).__name__)
        now = self._clock()
        items: list[tuple[str, Json]] = [(self._store_node(item, now), item) for item in listed or ()]
        self._forget_nodes(now)
        return [name for name, _ in items], items

    def _refresh(self, names: Iterable[str]) -> None:
        """Note that nodes still exist, because a request names them."""
        now = self._clock()
        for name in names:
            if self._sent_at.pop(name, None) is not None:
                self._sent_at[name] = now

    def _forget_nodes(self, now: float) -> None:
        """Remove the nodes that were last sent too long ago: they may have been removed from the cluster."""
        while self._sent_at:
            name, sent_at = next(iter(self._sent_at.items()))
            if now - sent_at <= FORGET_SECONDS:
                return
            del self._sent_at[name]
            nodes = self._scheduler.state.nodes
            self._scheduler.handle(nodes.nodes[nodes.row_of[name]], None, 0)

    def _store_node(self, item: Json, now: float) -> str:
        """Store a node in the state as it was sent; return its name."""
        node = default_object(convert(item, Node, what="Node"))
        state, name = self._scheduler.state, node.metadata.name
        row = state.nodes.row_of.get(name)
        old = None if row is None else state.nodes.nodes[row]
        if old is None or name in self._sent_at:
            self._sent_at.pop(name, None)
            self._sent_at[name] = now
        if old != node:
            self._scheduler.handle(old, node, 0)
        return name


class ScoringError(Exception):
    """Scoring failed because of a plugin; the message has the reason."""


def _pod_of(arguments: Json) -> Pod:
    pod = _field(arguments, "Pod")
    if not isinstance(pod, dict):
        raise InputError("Pod", wanted="a pod", got="none" if pod is None else type(pod).__name__)
    return default_object(convert(pod, Pod, what="Pod"))


def _victims_of(arguments: Json) -> list[tuple[str, list[str], int]]:
    """Return (node name, uids of the victims, number of violated budgets) from either form of the arguments."""
    whole, meta = _field(arguments, "NodeNameToVictims"), _field(arguments, "NodeNameToMetaVictims")
    found = []
    for name, victims in (whole if isinstance(whole, dict) else meta if isinstance(meta, dict) else {}).items():
        pods = _field(victims, "Pods")
        uids = [_uid_of(pod) for pod in (pods if isinstance(pods, list) else ())]
        violations = _field(victims, "NumPDBViolations")
        found.append((name, uids, violations if isinstance(violations, int) else 0))
    return found


def _uid_of(pod: object) -> str:
    """Return the uid of a victim, which is a pod or a MetaPod."""
    uid = _field(pod, "UID") or _field(_field(pod, "metadata"), "uid")
    return uid if isinstance(uid, str) else ""


def _field(value: object, name: str) -> object:
    """Return a field as Go's decoder finds it: an exact match of the name, or else one that ignores case."""
    if not isinstance(value, Mapping):
        return None
    if name in value:
        return value[name]
    return next((found for key, found in value.items() if isinstance(key, str) and key.lower() == name.lower()), None)
