"""Dry runs: compare Bayplan's decisions with those of a cluster's scheduler, without writing to the cluster.

Bayplan's scheduler does not see a pending pod until the cluster's scheduler has bound or rejected it. Then it decides, on
the cluster as it was before that, and the cluster's decision is applied, so that one difference does not cause others.
If several nodes are equally good, it adopts the cluster's choice.

Bindings arrive in a different order than they were decided, because each has its own thread. Verdicts therefore wait
for `COMPARE_DELAY_NS` and are then compared in queue order. A verdict that differs waits longer (`PATIENCE_NS`), because it
may depend on bindings that arrive later. Bayplan scores all nodes, even if the cluster's scheduler uses a sample.

Pods that the cluster's scheduler has nominated to a node count there for Bayplan, too, although they are not in its queue.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from bayplan.cluster.owned_pods import is_active
from bayplan.engine.cycle import ScheduleResult
from bayplan.engine.plan import Plan
from bayplan.engine.queued_pod import uid_of
from bayplan.engine.records import Record, RecordLevel, Records
from bayplan.engine.scheduler import Scheduler
from bayplan.live.cluster_feed import ObjectChange
from bayplan.objects.meta import KubernetesObject
from bayplan.objects.pod import Pod, not_scheduled
from bayplan.state.cluster_state import ClusterState

COMPARE_DELAY_NS = 1_000_000_000
"""The time that a verdict waits for the verdicts of earlier pods."""

PATIENCE_NS = 10_000_000_000
"""The time that a differing verdict waits for verdicts of pods that the cluster may have decided before."""

MAX_REPORTED_TIES = 10


class Verdict(Struct, frozen=True, gc=False):
    """The decisions of the cluster's scheduler and of Bayplan about a pod.

    Attributes:
        pod: ``namespace/name``.
        at: the time at which the cluster's decision was seen, nanoseconds since 1970.
        node: the cluster's choice; "" if it found no node.
        message: the cluster's reasons for finding no node.
        agrees: whether the cluster's node is one of Bayplan's best nodes, or neither scheduler found a node.
        same_message: whether Bayplan's reasons have the same wording; True if there is a node.
        our_node: Bayplan's choice; the cluster's node if that is one of the best.
        ties: the number of best nodes.
        best: the names of the first `MAX_REPORTED_TIES` best nodes.
        our_message: Bayplan's reasons for finding no node, or "".
    """

    pod: str
    at: int
    node: str
    message: str
    agrees: bool
    same_message: bool
    our_node: str
    ties: int
    best: tuple[str, ...]
    our_message: str


class Agreement(Struct):
    """The counts of agreement between both schedulers.

    Attributes:
        placed, placed_alike: pods that the cluster bound, and those whose node is one of Bayplan's best.
        refused, refused_alike: attempts in which the cluster found no node, and those in which Bayplan found none, either.
        same_message: the number of the latter with the same message.
        differences: the number of differences, by kind.
    """

    placed: int = 0
    placed_alike: int = 0
    refused: int = 0
    refused_alike: int = 0
    same_message: int = 0
    differences: Counter[str] = field(default_factory=Counter)

    def add(self, verdict: Verdict) -> None:
        """Count a verdict."""
        if verdict.node:
            self.placed += 1
            self.placed_alike += verdict.agrees
        else:
            self.refused += 1
            self.refused_alike += verdict.agrees
            self.same_message += verdict.agrees and verdict.same_message
        if not verdict.agrees:
            what = (
                "it finds no node, but Bayplan does"
                if not verdict.node
                else "Bayplan finds no node"
                if verdict.our_message
                else "another node"
            )
            self.differences[what] += 1

    def summary(self) -> str:
        """Return the counts as one line."""
        text = f"{self.placed_alike:,} of {self.placed:,} placed pods went to one of Bayplan's best nodes"
        if self.refused:
            text += f"; of {self.refused:,} attempts without a node, Bayplan agrees with {self.refused_alike:,}"
            text += f", {self.same_message:,} of them with the same message"
        return text


class _Answer(Struct, frozen=True, gc=False):
    """Bayplan's decision about a pod: the best nodes and the node chosen from them, or the message."""

    node: str
    best: tuple[str, ...]
    message: str


class _LastCycle(Records):
    """Stores the decision of the last cycle."""

    def __init__(self, state: ClusterState) -> None:
        super().__init__(RecordLevel.OFF)
        self._state = state
        self.answer: _Answer | None = None

    def add(self, record: Record, plan: Plan | None, result: ScheduleResult | None) -> None:
        names = self._state.nodes.names
        ties = () if result is None or not record.node else sorted(names[int(row)] or "" for row in result.ties)
        self.answer = _Answer(record.node, tuple(ties), record.message)


class _Waiting(Struct):
    """A pending pod of the cluster.

    Attributes:
        pod: its current version.
        place: its position in queue order: (negated priority, number of arrival).
        last_message: the last known rejection message.
        asked: the version that the cluster's scheduler decides about: without a nomination for the node it chose.
    """

    pod: Pod
    place: tuple[int, int]
    last_message: str
    asked: Pod


class _Open(Struct, eq=False):
    """A verdict of the cluster's scheduler that has not been compared yet.

    Attributes:
        heard_ns: when it arrived.
        place: the position of the pod in queue order.
        asked: the pod as it was when it was pending.
        pod: its current version.
        message: the rejection message.
    """

    heard_ns: int
    place: tuple[int, int]
    asked: Pod
    pod: Pod
    message: str = ""

    @property
    def nominates(self) -> bool:
        """Whether the cluster's scheduler found no node, but makes room on one."""
        return not self.pod.spec.node_name and bool(self.pod.status.nominated_node_name)


class DryRun:
    """Compares the decisions of a cluster's scheduler with Bayplan's.

    Args:
        scheduler: Bayplan's scheduler, for an empty cluster; it scores all nodes.
        on_verdict: the function to call with every comparison.

    Attributes:
        agreement: the counts so far.
    """

    def __init__(self, scheduler: Scheduler, on_verdict: Callable[[Verdict], None]) -> None:
        self.agreement = Agreement()
        self._on_verdict = on_verdict
        self._scheduler = scheduler
        scheduler.survives_plugins = True
        scheduler.records = self._last = _LastCycle(scheduler.state)
        self._waiting: dict[str, _Waiting] = {}
        self._open: list[_Open] = []
        self._nominated: dict[str, Pod] = {}
        self._seen = 0
        # Bayplan's decisions for equal pods, until the cluster changes. The pod is stored because the key has ids of its
        # parts.
        self._answers: dict[object, tuple[_Answer, Pod]] = {}

    # --- changes of the cluster ---------------------------------------------------------------------------------------

    def apply(self, changes: Sequence[ObjectChange], now_ns: int) -> None:
        """Process changes of the cluster, in order."""
        for change in changes:
            old, new = change
            if isinstance(old, Pod) or isinstance(new, Pod):
                self._take_pod(old if isinstance(old, Pod) else None, new if isinstance(new, Pod) else None, now_ns)
            else:
                self._apply_to_ours(old, new, now_ns)

    def _apply_to_ours(self, old: KubernetesObject | None, new: KubernetesObject | None, now_ns: int) -> None:
        """Apply a change to Bayplan's scheduler, after comparing all earlier verdicts."""
        if self._open:
            self._close_agreed(now_ns, now_ns)
        self._scheduler.handle(old, new, now_ns)
        self._answers.clear()

    def _take_pod(self, old: Pod | None, new: Pod | None, now_ns: int) -> None:
        known = new or old
        key = known.key if known is not None else ""
        waiting = self._waiting.get(key)
        if new is not None and self._is_waiting(new):
            self._take_waiting(waiting, new, now_ns)
        elif waiting is not None:
            del self._waiting[key]
            if new is not None and new.spec.node_name:
                self._open.append(_Open(now_ns, waiting.place, waiting.asked, new))
            else:
                self._nominate(key, None)
        elif not any(verdict.pod.key == key for verdict in self._open):
            self._apply_to_ours(old, new, now_ns)
        else:
            self._take_decided(key, old, new, now_ns)

    def _take_waiting(self, waiting: _Waiting | None, new: Pod, now_ns: int) -> None:
        """Process a new version of a pending pod."""
        message = _refusal(new)
        if waiting is None:
            # A message from before the pod was first seen refers to a state of the cluster that was not seen.
            self._seen += 1
            self._waiting[new.key] = _Waiting(new, (-(new.spec.priority or 0), self._seen), message, new)
            self._nominate(new.key, new)
            return
        before = waiting.pod
        refuses = bool(message) and message != waiting.last_message
        if refuses:
            self._open.append(_Open(now_ns, waiting.place, waiting.asked, new, message))
        nominated = new.status.nominated_node_name
        is_chosen = bool(nominated) and new.status.conditions == before.status.conditions and _may_await_claims(new)
        if nominated == before.status.nominated_node_name or is_chosen:
            # If chosen, the cluster's scheduler binds the pod to this node when its volumes or devices are ready. Without
            # claims, a nomination is from elsewhere, such as an autoscaler, and the scheduler tries this node first.
            nominated = waiting.asked.status.nominated_node_name
        waiting.asked = replace(new, status=replace(new.status, nominated_node_name=nominated))
        waiting.pod, waiting.last_message = new, message
        self._update_nomination(new.key)

    def _update_nomination(self, key: str) -> None:
        """Count a pending pod on its nominated node; room that a preemption makes, when its refusal has been compared."""
        waiting = self._waiting.get(key)
        pod = None if waiting is None else waiting.pod
        if key not in self._nominated and (pod is None or not pod.status.nominated_node_name):
            return
        if not any(verdict.nominates and verdict.pod.key == key for verdict in self._open):
            self._nominate(key, pod)

    def _nominate(self, key: str, pod: Pod | None) -> None:
        """Count a pending pod on the node to which the cluster has nominated it; None if it is no longer pending."""
        before = self._nominated.pop(key, None)
        if before is not None:
            self._scheduler.queue.nominator.remove(uid_of(before))
            del self._scheduler.pods[key]
        if pod is not None and pod.status.nominated_node_name and not pod.spec.scheduling_gates:
            # Without the queue, from which the pod would be scheduled.
            self._nominated[key] = self._scheduler.pods[key] = pod
            self._scheduler.queue.nominator.add(pod)
        if key in self._nominated or before is not None:
            self._answers.clear()

    def _take_decided(self, key: str, old: Pod | None, new: Pod | None, now_ns: int) -> None:
        """Process a change of a pod with an open verdict: update the verdict, or close it."""
        if new is not None:
            for verdict in self._open:
                if verdict.pod.key == key and verdict.pod.spec.node_name:
                    verdict.pod = new
            return
        self._close_agreed(now_ns, now_ns)
        mine = [verdict for verdict in self._open if verdict.pod.key == key]
        self._open = [verdict for verdict in self._open if verdict.pod.key != key]
        for verdict in mine:
            self._close(verdict, now_ns)
        self._apply_to_ours(old, None, now_ns)

    def _is_waiting(self, pod: Pod) -> bool:
        return not pod.spec.node_name and is_active(pod) and pod.spec.scheduler_name in self._scheduler.profiles

    # --- verdicts -----------------------------------------------------------------------------------------------------

    def compare_due(self, now_ns: int, *, at_once: bool = False) -> None:
        """Compare the verdicts that are due; with `at_once`, all of them."""
        before_ns = now_ns if at_once else now_ns - COMPARE_DELAY_NS
        self._close_agreed(now_ns, before_ns)
        while late := [verdict for verdict in self._open if at_once or verdict.heard_ns + PATIENCE_NS <= now_ns]:
            self._open.remove(late[0])
            self._close(late[0], now_ns)
            self._close_agreed(now_ns, before_ns)

    def _close_agreed(self, now_ns: int, before_ns: int) -> None:
        """Close, in queue order, the verdicts that arrived until `before_ns` and agree with Bayplan's decisions.

        Preemptions come last: the room that they take may be the reason of a disagreement, but of no agreement.
        """
        ready = sorted((verdict for verdict in self._open if verdict.heard_ns <= before_ns), key=_order)
        place = 0
        while place < len(ready):
            verdict = ready[place]
            if _is_shared(verdict, self._answer(verdict.asked, now_ns)):
                del ready[place]
                self._open.remove(verdict)
                self._close(verdict, now_ns)
                # Placing or nominating this pod may make other verdicts agree.
                place = 0 if verdict.pod.spec.node_name or verdict.nominates else place
            else:
                place += 1

    def _answer(self, pod: Pod, now_ns: int) -> _Answer:
        """Return Bayplan's decision about a pending pod. The decision is undone."""
        scheduler, last = self._scheduler, self._last
        alike = (*_shared_parts(pod), (pod.key, pod.metadata.resource_version) if self._is_special(pod) else None)
        known = self._answers.get(alike)
        if known is not None:
            return known[0]
        last.answer = None
        scheduler.handle(None, pod, now_ns)
        scheduler.schedule_one(now_ns)
        for plugin in scheduler.profiles[pod.spec.scheduler_name].pre_enqueue:
            # A preemption would gate the pod until its victims, which are not evicted here, terminate.
            plugin.stop_waiting(pod)
        scheduler.handle(pod, None, now_ns)
        scheduler.bindings.pending.pop(pod.key, None)
        self._restore_nominations()
        answer = last.answer or _Answer("", (), "Bayplan does not admit it to its queue")
        self._answers[alike] = answer, pod
        return answer

    def _is_special(self, pod: Pod) -> bool:
        """Return whether no equal pod has the same decision, because of the pod's nomination or claims."""
        spec, status = pod.spec, pod.status
        has_claims = spec.resource_claims or status.extended_resource_claim_status is not None
        has_own_volumes = any(volume.ephemeral is not None for volume in spec.volumes)
        return pod.key in self._nominated or bool(has_claims) or has_own_volumes

    def _restore_nominations(self) -> None:
        """Nominate again the pods whose nominations Bayplan's decision has cleared."""
        nominator = self._scheduler.queue.nominator
        for key, pod in self._nominated.items():
            self._scheduler.pods[key] = pod
            if nominator.node_by_uid.get(uid_of(pod)) != pod.status.nominated_node_name:
                nominator.add(pod)

    def _close(self, verdict: _Open, now_ns: int) -> None:
        """Compare a verdict, and apply the cluster's decision to Bayplan's scheduler."""
        node, answer = verdict.pod.spec.node_name, self._answer(verdict.asked, now_ns)
        shared = _is_shared(verdict, answer)
        if node:
            self._nominate(verdict.pod.key, None)
            self._scheduler.handle(None, verdict.pod, now_ns)
            self._answers.clear()
        elif verdict.nominates:
            self._update_nomination(verdict.pod.key)
        compared = Verdict(
            pod=verdict.pod.key,
            at=verdict.heard_ns,
            node=node,
            message=verdict.message,
            agrees=shared,
            same_message=bool(node) or verdict.message == answer.message,
            our_node=node if node and shared else answer.node,
            ties=len(answer.best),
            best=answer.best[:MAX_REPORTED_TIES],
            our_message="" if answer.node else answer.message,
        )
        self.agreement.add(compared)
        self._on_verdict(compared)


def _shared_parts(pod: Pod) -> tuple[object, ...]:
    """Return what equal pods have in common. The decoder shares these parts, so their ids identify equal pods."""
    metadata = pod.metadata
    parts = (pod.spec, metadata.labels, metadata.annotations, metadata.owner_references)
    return (*map(id, parts), metadata.namespace, pod.status.nominated_node_name)


def _may_await_claims(pod: Pod) -> bool:
    """Return whether a scheduler may nominate a pod for its chosen node, because PreBind waits for volumes or devices."""
    volumes = pod.spec.volumes
    has_claims = any(volume.persistent_volume_claim is not None or volume.ephemeral is not None for volume in volumes)
    return has_claims or bool(pod.spec.resource_claims)


def _order(verdict: _Open) -> tuple[bool, tuple[int, int]]:
    return verdict.nominates, verdict.place


def _is_shared(verdict: _Open, answer: _Answer) -> bool:
    node = verdict.pod.spec.node_name
    return node in answer.best if node else not answer.node


def _refusal(pod: Pod) -> str:
    """Return why the cluster's scheduler found no node for a pod; "" if there is no such condition."""
    condition = not_scheduled(pod)
    return condition.message if condition is not None and condition.reason == "Unschedulable" else ""
