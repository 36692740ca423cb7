"""Evaluate the checks of scenarios on the current cluster."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec

from bayplan.analysis.units import format_duration, format_list, format_share
from bayplan.analysis.waits import percentile
from bayplan.base.counted_nouns import format_count
from bayplan.base.errors import InputError
from bayplan.base.long_durations import read_long_duration
from bayplan.base.near_names import near_name
from bayplan.objects.requests import node_amounts
from bayplan.scenarios.scenario import (
    Check,
    CostCheck,
    EvictionsCheck,
    NodesCheck,
    OnNodesCheck,
    PlacedCheck,
    SpreadCheck,
    UtilisationCheck,
    WaitingCheck,
    WaitingTimeCheck,
)
from bayplan.scenarios.targets import select_nodes, select_pods
from bayplan.sim.result import PodFate, PodTimeline
from bayplan.sim.scaling import ScalingSummary
from bayplan.sim.simulator import Simulator
from bayplan.state.pod_info import FIRST_RESOURCE, POD_COUNT
from bayplan.state.resource_table import PODS

EVERYTHING = "*"
_SHOWN = 6
"""Maximum number of pods shown in a result."""


class Facts(NamedTuple):
    """The inputs of checks besides the simulator.

    Attributes:
        explain: given the key of a waiting pod, returns why it waits.
        scaling: returns the results of the autoscaler so far; None without an autoscaler.
    """

    explain: Callable[[str], str]
    scaling: Callable[[], ScalingSummary | None]


class CheckResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a check.

    Attributes:
        ok: whether the check is true.
        check: the check in words: ``placed deployment/web``.
        wanted, got: the expected and the actual state, in words.
        waiting: the keys of waiting pods that explain the result.
        details: further lines about the result.
    """

    ok: bool
    check: str
    wanted: str
    got: str
    waiting: Sequence[str] = ()
    details: Sequence[str] = ()


def evaluate(check: Check, simulator: Simulator, facts: Facts) -> CheckResult:
    """Evaluate a check on the current cluster.

    Args:
        check: the check, with exactly one field set.
        simulator: the simulator with the cluster.
        facts: see `Facts`.
    """
    return _Evaluation(simulator, facts).of(check)


class _Evaluation:
    """Evaluates checks on the current cluster."""

    def __init__(self, simulator: Simulator, facts: Facts) -> None:
        self._simulator = simulator
        self._explain = facts.explain
        self._scaling = facts.scaling

    def of(self, check: Check) -> CheckResult:
        """Return the result of a check. A target that matches nothing makes the check false."""
        name = next(field for field in check.__struct_fields__ if getattr(check, field) is not None)
        part = getattr(check, name)
        target = getattr(part, "pods", EVERYTHING)
        text = name.replace("_", " ") if target == EVERYTHING else f"{name.replace('_', ' ')} {target}"
        evaluators: dict[type, Callable[..., CheckResult]] = {
            PlacedCheck: self._placed,
            WaitingCheck: self._waiting,
            SpreadCheck: self._spread,
            OnNodesCheck: self._on,
            EvictionsCheck: self._evictions,
            WaitingTimeCheck: self._waiting_time,
            UtilisationCheck: self._utilisation,
            NodesCheck: self._nodes,
            CostCheck: self._cost,
        }
        try:
            return evaluators[type(part)](part, text)
        except InputError as problem:
            wanted = problem.wanted or "objects that the scenario names"
            details = [f"try {problem.hint}"] if problem.hint else []
            got = f"{problem.what} {problem.got}".strip()
            return CheckResult(ok=False, check=text, wanted=wanted, got=got, details=details)

    def _pods(self, text: str) -> list[PodTimeline]:
        """Return the timelines of the selected pods that have not been deleted."""
        simulator = self._simulator
        if text == EVERYTHING:
            return [pod for pod in simulator.pods if pod.fate is not PodFate.DELETED]
        return [pod for pod in select_pods(text, simulator.pods) if pod.fate is not PodFate.DELETED]

    # --- pods ---------------------------------------------------------------------------------------------------------

    def _placed(self, part: PlacedCheck, text: str) -> CheckResult:
        pods = self._pods(part.pods)
        placed = [pod for pod in pods if pod.bound_ns is not None]
        waiting = [pod.key for pod in pods if pod.bound_ns is None]
        got = f"{len(placed):,} placed, {len(waiting):,} pending"
        if part.count is None and part.at_least is None and part.at_most is None:
            wanted = f"all {format_count(len(pods), 'pod')} placed" if pods else "pods, all of them placed"
            return CheckResult(
                ok=bool(pods) and not waiting,
                check=text,
                wanted=wanted,
                got=got if pods else "no pods",
                waiting=waiting,
            )
        ok = _in_range(part, len(placed))
        return CheckResult(ok=ok, check=text, wanted=f"{_range_text(part)} placed", got=got, waiting=waiting)

    def _waiting(self, part: WaitingCheck, text: str) -> CheckResult:
        pods = self._pods(part.pods)
        waiting = [pod for pod in pods if pod.bound_ns is None]
        details: list[str] = []
        matching = waiting
        if part.reason:
            matching = [pod for pod in waiting if part.reason in pod.message or part.reason in self._explain(pod.key)]
            others = [pod for pod in waiting if pod not in matching]
            details = [f"{pod.key} is pending: {self._explain(pod.key)}" for pod in others[:1]]
        placed = [pod for pod in pods if pod.bound_ns is not None]
        because = f" because of '{part.reason}'" if part.reason else ""
        details += [f"{pod.key} is on {pod.node}" for pod in placed[:_SHOWN]]
        got = f"{len(matching):,} pending{because}, {len(waiting) - len(matching):,} for other reasons, {len(placed):,} placed"
        if not part.reason:
            got = f"{len(waiting):,} pending, {len(placed):,} placed"
        if part.count is None and part.at_least is None and part.at_most is None:
            ok = bool(pods) and len(matching) == len(pods)
            wanted = f"all {format_count(len(pods), 'pod')} pending{because}" if pods else f"pods pending{because}"
        else:
            ok, wanted = _in_range(part, len(matching)), f"{_range_text(part)} pending{because}"
        return CheckResult(ok=ok, check=text, wanted=wanted, got=got if pods else "no pods", details=details)

    def _spread(self, part: SpreadCheck, text: str) -> CheckResult:
        pods = [pod for pod in self._pods(part.pods) if pod.bound_ns is not None and pod.ended_ns is None]
        nodes = self._simulator.cluster.store.nodes
        counts: dict[str, int] = {}
        for node in nodes.values():
            domain = node.metadata.labels.get(part.over)
            if domain is not None:
                counts.setdefault(domain, 0)
        for pod in pods:
            node_of_pod = nodes.get(pod.node)
            domain = node_of_pod.metadata.labels.get(part.over) if node_of_pod is not None else None
            if domain is not None:
                counts[domain] += 1
        skew = max(counts.values(), default=0) - min(counts.values(), default=0)
        used = sum(bool(count) for count in counts.values())
        shown = [f"{name}: {count}" for name, count in sorted(counts.items())]
        wanted = f"a skew of at most {part.max_skew} over {part.over}"
        if part.domains is not None:
            wanted += f", in at least {format_count(part.domains, 'domain')}"
        got = f"a skew of {skew}: {', '.join(shown)}" if counts else f"no node with the label {part.over}"
        ok = bool(counts) and bool(pods) and skew <= part.max_skew and used >= (part.domains or 0)
        labels = (key for node in nodes.values() for key in node.metadata.labels)
        close = "" if counts else near_name(part.over, dict.fromkeys(labels))
        details = [f"try {close}"] if close else []
        got = got if pods else "no pods placed"
        return CheckResult(ok=ok, check=text, wanted=wanted, got=got, details=details)

    def _on(self, part: OnNodesCheck, text: str) -> CheckResult:
        pods = self._pods(part.pods)
        names = {node.metadata.name for node in select_nodes(part.nodes, self._simulator.cluster.store)}
        elsewhere = [pod for pod in pods if pod.bound_ns is not None and pod.node not in names]
        waiting = [pod.key for pod in pods if pod.bound_ns is None]
        wanted = f"all {format_count(len(pods), 'pod')} on {part.nodes}"
        got = f"{len(pods) - len(elsewhere) - len(waiting):,} there, {len(elsewhere):,} elsewhere, {len(waiting):,} pending"
        details = [f"{pod.key} is on {pod.node}" for pod in elsewhere[:_SHOWN]]
        ok = bool(pods) and not elsewhere and not waiting
        return CheckResult(
            ok=ok, check=text, wanted=wanted, got=got if pods else "no pods", waiting=waiting, details=details
        )

    def _evictions(self, part: EvictionsCheck, text: str) -> CheckResult:
        pods = self._simulator.pods
        chosen = pods if part.pods == EVERYTHING else select_pods(part.pods, pods)
        evicted = [pod for pod in chosen if pod.disruption]
        details = [f"{pod.key} was evicted from {pod.node}: {pod.disruption}" for pod in evicted[:_SHOWN]]
        if len(evicted) > _SHOWN:
            details.append(f"and {len(evicted) - _SHOWN:,} more")
        got = format_count(len(evicted), "eviction")
        ok = _in_range(part, len(evicted))
        return CheckResult(ok=ok, check=text, wanted=_range_text(part, "eviction"), got=got, details=details)

    def _waiting_time(self, part: WaitingTimeCheck, text: str) -> CheckResult:
        most_ns = read_long_duration(part.at_most, what="waitingTime")
        simulator = self._simulator
        pods = simulator.pods if part.pods == EVERYTHING else select_pods(part.pods, simulator.pods)
        # A pod that was created again, as those of StatefulSets are, has waited several times.
        waits: list[tuple[str, int]] = []
        for pod in pods:
            if pod.wait_ns is not None:
                waits.append((pod.key, pod.wait_ns))
            elif pod.bound_ns is None:
                waits.append((pod.key, (pod.ended_ns or simulator.now_ns) - pod.arrived_ns))
        waiting = [pod.key for pod in pods if pod.bound_ns is None and pod.fate is not PodFate.DELETED]
        which = "longest waiting time" if part.percentile == 100 else f"waiting time at percentile {part.percentile}"
        wanted = f"a {which} of at most {format_duration(most_ns)}"
        if not waits:
            return CheckResult(ok=False, check=text, wanted=wanted, got="no pods that waited")
        found = percentile(sorted(wait for _, wait in waits), part.percentile)
        slowest = sorted(waits, key=lambda each: -each[1])[:3]
        details = [f"{key} waited {format_duration(wait)}" for key, wait in slowest]
        got = f"{format_duration(found)} of {format_count(len(waits), 'pod')}"
        return CheckResult(
            ok=found <= most_ns, check=text, wanted=wanted, got=got, waiting=waiting[:_SHOWN], details=details
        )

    # --- nodes --------------------------------------------------------------------------------------------------------

    def _utilisation(self, part: UtilisationCheck, text: str) -> CheckResult:
        chosen = select_nodes(part.nodes, self._simulator.cluster.store)
        state = self._simulator.scheduler.state
        resources = list(state.nodes.resources)
        offered = sum(node_amounts(node.status.allocatable).get(part.resource, 0) for node in chosen)
        used = 0
        if part.resource == PODS or part.resource in resources:
            number = POD_COUNT if part.resource == PODS else FIRST_RESOURCE + resources.index(part.resource)
            used = sum(int(state.usage[number, state.nodes.row_of[node.metadata.name]]) for node in chosen)
        share = used / offered if offered else 0.0
        limits = [
            f"{words} {format_share(limit)}"
            for words, limit in (("at least", part.at_least), ("at most", part.at_most))
            if limit is not None
        ]
        where = "" if part.nodes == EVERYTHING else f" on {part.nodes}"
        ok = bool(offered) and (part.at_least or 0.0) <= share and (part.at_most is None or share <= part.at_most)
        got = format_share(share) if offered else f"no {part.resource} on {format_count(len(chosen), 'node')}"
        wanted = f"{format_list(limits)} of {part.resource} requested{where}"
        close = "" if offered else near_name(part.resource, [*resources, PODS])
        details = [f"try {close}"] if close and close != part.resource else []
        return CheckResult(ok=ok, check=f"{text} of {part.resource}", wanted=wanted, got=got, details=details)

    def _nodes(self, part: NodesCheck, text: str) -> CheckResult:
        store = self._simulator.cluster.store
        try:
            count = len(select_nodes(part.nodes, store))
        except InputError:
            count = 0
        name = text if part.nodes == EVERYTHING else f"{text} {part.nodes}"
        return CheckResult(
            ok=_in_range(part, count), check=name, wanted=_range_text(part, "node"), got=format_count(count, "node")
        )

    def _cost(self, part: CostCheck, text: str) -> CheckResult:
        summary = self._scaling()
        wanted = f"a cost of at most {part.at_most:g}"
        costs = [] if summary is None else [each for each in summary.costs if part.group in (EVERYTHING, each.group)]
        if not costs:
            return CheckResult(ok=False, check=text, wanted=wanted, got="no autoscaler with this node group")
        cost = sum(each.cost for each in costs)
        details = [f"{each.group}: {each.node_hours:.2f} node hours, {each.cost:.2f}" for each in costs]
        return CheckResult(ok=cost <= part.at_most, check=text, wanted=wanted, got=f"{cost:.2f}", details=details)


_Ranged = PlacedCheck | WaitingCheck | EvictionsCheck | NodesCheck


def _in_range(part: _Ranged, found: int) -> bool:
    return (
        (part.count is None or found == part.count)
        and (part.at_least is None or found >= part.at_least)
        and (part.at_most is None or found <= part.at_most)
    )


def _range_text(part: _Ranged, noun: str = "pod") -> str:
    texts = [
        f"{words}{format_count(number, noun)}"
        for words, number in (("", part.count), ("at least ", part.at_least), ("at most ", part.at_most))
        if number is not None
    ]
    return " and ".join(texts)
