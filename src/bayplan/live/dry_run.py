"""Decide beside the scheduler of a cluster, without a word to the cluster, and compare pod by pod.

A pod that waits is kept from our scheduler until the cluster's has spoken: bound it, or said why not. Then ours decides on the
cluster as it was, and what the cluster really did is what it knows from then on; so one difference does not lead to others. Where
several nodes are equally good, the cluster's choice among them is ours, too.

Bindings arrive in another order than that in which they were decided: each has a thread of its own. So verdicts wait a moment and
are then looked at in the order of their pods, which is that of a queue; one that ours does not share is left open for longer: it
may have come after others that arrive later. All nodes are scored, also where the cluster's scheduler looks at a sample.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from msgspec import Struct, field

from bayplan.engine.cycle import ScheduleResult
from bayplan.engine.plan import Plan
from bayplan.engine.records import Record, RecordLevel, Records
from bayplan.engine.scheduler import Scheduler
from bayplan.live.cluster_feed import ObjectChange
from bayplan.objects.meta import KubernetesObject
from bayplan.objects.pod import Pod
from bayplan.state.cluster_state import ClusterState

SETTLE_NS = 1_000_000_000
"""So long a verdict waits for those of pods that came before its own."""

PATIENCE_NS = 10_000_000_000
"""So long a verdict that ours does not share waits for others that may belong before it."""

MOST_TIES_TOLD = 10


class Verdict(Struct, frozen=True, gc=False):
    """What the cluster's scheduler did with a pod, and what ours would have done.

    Attributes:
        pod: ``namespace/name``.
        at: when it was seen, nanoseconds since 1970.
        node: where the cluster put it; "" where it found no node.
        message: why it found none, in its words.
        agrees: the node is one of our best, or we find none either.
        same_message: we give the same reasons; True where there is a node.
        our_node: where we would have put it; the cluster's node where that is one of the best.
        ties: how many nodes are best; best: the first of their names.
        our_message: why we find no node, "" where we do.
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
    """How often both schedulers agree.

    Attributes:
        placed, placed_alike: pods that the cluster bound, and those whose node is one of our best.
        refused, refused_alike: attempts that found no node, and those where we find none either.
        same_message: of these, those with the same words.
        differences: by what differs.
    """

    placed: int = 0
    placed_alike: int = 0
    refused: int = 0
    refused_alike: int = 0
    same_message: int = 0
    differences: Counter[str] = field(default_factory=Counter)

    def take(self, verdict: Verdict) -> None:
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
                "it finds no node, we do"
                if not verdict.node
                else "we find no node"
                if verdict.our_message
                else "another node"
            )
            self.differences[what] += 1

    def sentence(self) -> str:
        """Return the figures as a line."""
        text = f"{self.placed_alike:,} of {self.placed:,} placed pods went to one of our best nodes"
        if self.refused:
            text += f"; of {self.refused:,} attempts without a node we agree with {self.refused_alike:,}"
            text += f", {self.same_message:,} of them in the same words"
        return text


class _Answer(Struct, frozen=True, gc=False):
    """What ours would do with a pod: the best nodes by name, one of them drawn; or none and why."""

    node: str
    best: tuple[str, ...]
    message: str


class _LastCycle(Records):
    """Keeps what came out of the last cycle."""

    def __init__(self, state: ClusterState) -> None:
        super().__init__(RecordLevel.OFF)
        self._state = state
        self.answer: _Answer | None = None

    def add(self, record: Record, plan: Plan | None, result: ScheduleResult | None) -> None:
        names = self._state.nodes.names
        ties = () if result is None or not record.node else sorted(names[int(row)] or "" for row in result.ties)
        self.answer = _Answer(record.node, tuple(ties), record.message)


class _Waiting(Struct):
    """A pod that waits in the cluster.

    Attributes:
        pod: as it waits. place: in the order of a queue. told: the last refusal that was heard of.
    """

    pod: Pod
    place: tuple[int, int]
    told: str


class _Open(Struct, eq=False):
    """A verdict of the cluster's scheduler that has not been compared yet.

    Attributes:
        heard_ns: when it came. place: of the pod in the order of a queue. asked: the pod as it waited. pod: as it is since.
        message: why it found no node.
    """

    heard_ns: int
    place: tuple[int, int]
    asked: Pod
    pod: Pod
    message: str = ""


class DryRun:
    """Compares two schedulers.

    Args:
        scheduler: ours, for an empty cluster; it looks at all nodes.
        on_verdict: is given every comparison.

    Attributes:
        agreement: the figures so far.
    """

    def __init__(self, scheduler: Scheduler, on_verdict: Callable[[Verdict], None]) -> None:
        self.agreement = Agreement()
        self._on_verdict = on_verdict
        self._scheduler = scheduler
        scheduler.survives_plugins = True
        scheduler.records = self._last = _LastCycle(scheduler.state)
        self._waiting: dict[str, _Waiting] = {}
        self._open: list[_Open] = []
        self._seen = 0
        # Answers for pods that are alike, until the cluster changes; each with a pod, so that its parts live as long.
        self._answers: dict[object, tuple[_Answer, Pod]] = {}

    # --- what happens in the cluster ----------------------------------------------------------------------------------

    def take(self, changes: Sequence[ObjectChange], now_ns: int) -> None:
        """Take in changes of the cluster, in order."""
        for change in changes:
            old, new = change
            if isinstance(old, Pod) or isinstance(new, Pod):
                self._take_pod(old if isinstance(old, Pod) else None, new if isinstance(new, Pod) else None, now_ns)
            else:
                self._know(old, new, now_ns)

    def _know(self, old: KubernetesObject | None, new: KubernetesObject | None, now_ns: int) -> None:
        """Tell ours what is so; verdicts that it can share were given before."""
        if self._open:
            self._settle(now_ns, now_ns)
        self._scheduler.handle(old, new, now_ns)
        self._answers.clear()

    def _take_pod(self, old: Pod | None, new: Pod | None, now_ns: int) -> None:
        known = new or old
        key = known.key if known is not None else ""
        waiting = self._waiting.get(key)
        if new is not None and self._is_waiting(new):
            message = _refusal(new)
            if waiting is None:
                # What was said of it before it was seen, was said of a cluster that nobody has seen.
                self._seen += 1
                self._waiting[key] = _Waiting(new, (-(new.spec.priority or 0), self._seen), message)
            else:
                if message and message != waiting.told:
                    self._open.append(_Open(now_ns, waiting.place, waiting.pod, new, message))
                waiting.pod, waiting.told = new, message
        elif waiting is not None:
            del self._waiting[key]
            if new is not None and new.spec.node_name:
                self._open.append(_Open(now_ns, waiting.place, waiting.pod, new))
        elif not any(verdict.pod.key == key for verdict in self._open):
            self._know(old, new, now_ns)
        else:
            self._take_decided(key, old, new, now_ns)

    def _take_decided(self, key: str, old: Pod | None, new: Pod | None, now_ns: int) -> None:
        """Take in a change of a pod whose verdict is still open: it becomes a part of it, or ends it."""
        if new is not None:
            for verdict in self._open:
                if verdict.pod.key == key and verdict.pod.spec.node_name:
                    verdict.pod = new
            return
        self._settle(now_ns, now_ns)
        mine = [verdict for verdict in self._open if verdict.pod.key == key]
        self._open = [verdict for verdict in self._open if verdict.pod.key != key]
        for verdict in mine:
            self._close(verdict, now_ns)
        self._know(old, None, now_ns)

    def _is_waiting(self, pod: Pod) -> bool:
        return (
            not pod.spec.node_name
            and pod.metadata.deletion_timestamp is None
            and pod.status.phase not in ("Succeeded", "Failed")
            and pod.spec.scheduler_name in self._scheduler.profiles
        )

    # --- verdicts -----------------------------------------------------------------------------------------------------

    def turn(self, now_ns: int, *, at_once: bool = False) -> None:
        """Compare what can be compared; `at_once`: wait for nothing any more."""
        before_ns = now_ns if at_once else now_ns - SETTLE_NS
        self._settle(now_ns, before_ns)
        while late := [verdict for verdict in self._open if at_once or verdict.heard_ns + PATIENCE_NS <= now_ns]:
            self._open.remove(late[0])
            self._close(late[0], now_ns)
            self._settle(now_ns, before_ns)

    def _settle(self, now_ns: int, before_ns: int) -> None:
        """Close the verdicts heard before some instant that ours shares, each on what the ones before it have left."""
        ready = sorted((verdict for verdict in self._open if verdict.heard_ns <= before_ns), key=_place)
        place = 0
        while place < len(ready):
            verdict = ready[place]
            if _is_shared(verdict, self._answer(verdict.asked, now_ns)):
                del ready[place]
                self._open.remove(verdict)
                self._close(verdict, now_ns)
                # Where a pod has found its node, others may now be understood.
                place = 0 if verdict.pod.spec.node_name else place
            else:
                place += 1

    def _answer(self, pod: Pod, now_ns: int) -> _Answer:
        """Let ours decide about a pod as it waited, and take it back."""
        # The decoder gives pods that are alike the same parts, and keeps them.
        alike = (id(pod.spec), id(pod.metadata.labels), pod.metadata.namespace, pod.status.nominated_node_name)
        known = self._answers.get(alike)
        if known is not None:
            return known[0]
        scheduler, last = self._scheduler, self._last
        last.answer = None
        scheduler.handle(None, pod, now_ns)
        scheduler.schedule_one(now_ns)
        scheduler.handle(pod, None, now_ns)
        scheduler.bindings.pending.pop(pod.key, None)
        answer = last.answer or _Answer("", (), "our scheduler keeps it from its queue")
        self._answers[alike] = answer, pod
        return answer

    def _close(self, verdict: _Open, now_ns: int) -> None:
        """Compare a verdict, and let ours know what the cluster did."""
        node, answer = verdict.pod.spec.node_name, self._answer(verdict.asked, now_ns)
        shared = _is_shared(verdict, answer)
        if node:
            self._scheduler.handle(None, verdict.pod, now_ns)
            self._answers.clear()
        told = Verdict(
            pod=verdict.pod.key,
            at=verdict.heard_ns,
            node=node,
            message=verdict.message,
            agrees=shared,
            same_message=bool(node) or verdict.message == answer.message,
            our_node=node if node and shared else answer.node,
            ties=len(answer.best),
            best=answer.best[:MOST_TIES_TOLD],
            our_message="" if answer.node else answer.message,
        )
        self.agreement.take(told)
        self._on_verdict(told)


def _place(verdict: _Open) -> tuple[int, int]:
    return verdict.place


def _is_shared(verdict: _Open, answer: _Answer) -> bool:
    node = verdict.pod.spec.node_name
    return node in answer.best if node else not answer.node


def _refusal(pod: Pod) -> str:
    """Return why the cluster's scheduler found no node for a pod; "" where it has not said so."""
    for condition in pod.status.conditions:
        if condition.type == "PodScheduled" and condition.status == "False" and condition.reason == "Unschedulable":
            return condition.message
    return ""
