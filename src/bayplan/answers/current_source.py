"""The present cluster as a source of explanations: one new attempt for one pod, without history."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property

from bayplan.analysis.run_source import RecordSequence
from bayplan.analysis.scheduler_surroundings import SchedulerSurroundings, nominated_amounts
from bayplan.analysis.surroundings import Surroundings
from bayplan.answers.displaced_pods import MIRROR, as_waiting
from bayplan.answers.score_errors import error_text
from bayplan.answers.trial import Trial
from bayplan.answers.workloads import WorkloadObjects, workload_of
from bayplan.base.errors import InputError
from bayplan.base.go_text.times import parse_time_ns
from bayplan.engine.decision import Decision, Outcome, Record
from bayplan.engine.records import RecordLevel
from bayplan.objects.meta import KubernetesObject
from bayplan.objects.node import Node
from bayplan.objects.object_lookup import ObjectLookup
from bayplan.objects.pod import Pod, waiting_message
from bayplan.objects.requests import Amounts, accounted_requests
from bayplan.objects.workloads import Job, ReplicaSet
from bayplan.sim.result import FATES, PodFate, PodTimeline, SimulatedEvent
from bayplan.state.pod_info import FIRST_RESOURCE, POD_COUNT
from bayplan.state.resource_table import PODS


def current_pods(objects: Iterable[KubernetesObject], profiles: Collection[str]) -> list[PodTimeline]:
    """Return the timelines of all pods of a cluster, with their workloads, in order.

    Owners that the source lacks are inferred from names: a ReplicaSet ``web-5d8f`` whose pods have the template hash
    ``5d8f`` belongs to the Deployment ``web``.
    """
    listed = list(objects)
    owners = WorkloadObjects(item for item in listed if isinstance(item, ReplicaSet | Job))
    return [_timeline(item, owners, profiles) for item in listed if isinstance(item, Pod)]


def _timeline(pod: Pod, owners: WorkloadObjects, profiles: Collection[str]) -> PodTimeline:
    node, name = pod.spec.node_name, pod.spec.scheduler_name
    kind, owner = workload_of(pod, owners)
    fate = FATES.get(pod.status.phase) or (PodFate.PLACED if node else PodFate.PENDING)
    if fate is PodFate.PENDING and name not in profiles:
        fate = PodFate.UNATTENDED
    elif fate is PodFate.PENDING and pod.metadata.deletion_timestamp is not None:
        fate = PodFate.DELETED
    elif fate is PodFate.PENDING and pod.spec.scheduling_gates:
        fate = PodFate.GATED
    arrived_ns = _time_ns(pod.metadata.creation_timestamp)
    started_ns = _time_ns(pod.status.start_time) or arrived_ns
    return PodTimeline(
        key=pod.key,
        uid=pod.metadata.uid or pod.key,
        workload="" if kind == "Pod" else f"{kind} {pod.metadata.namespace}/{owner}",
        priority=pod.spec.priority or 0,
        scheduler_name=name,
        arrived_ns=arrived_ns,
        bound_ns=started_ns if node else None,
        started_ns=started_ns if node else None,
        node=node,
        imported=bool(node),
        fate=fate,
        message=waiting_message(pod),
        pod=pod,
    )


def _time_ns(text: str | None) -> int:
    try:
        return parse_time_ns(text) if text else 0
    except InputError:
        return 0


class CurrentSource:
    """One pod with the scheduler's present decision about it, as a `bayplan.analysis.run_source.RunSource`.

    Args:
        trial: the cluster.
        pods: all pods, see `current_pods`.
        life: the pod to explain.
        now_ns: the present time.
    """

    def __init__(self, trial: Trial, pods: Sequence[PodTimeline], life: PodTimeline, now_ns: int) -> None:
        self.level = RecordLevel.FULL
        self.start_ns = life.arrived_ns
        self.end_ns = now_ns
        self.pods = pods
        self.events: Sequence[SimulatedEvent] = ()
        self._trial = trial
        self._life = life
        self._decision = self._decide()

    def _decide(self) -> Decision | None:
        pod, trial = self._life.pod, self._trial
        if pod is None or self._life.fate not in (PodFate.PENDING, PodFate.PLACED):
            return None
        if pod.spec.scheduler_name not in trial.profiles:
            return None
        if not pod.spec.node_name:
            return trial.decide(pod)
        if pod.metadata.deletion_timestamp is not None or MIRROR in pod.metadata.annotations:
            # Nothing would schedule it again.
            return None
        bound = trial.bound(pod.key)
        return None if bound is None else trial.decide_after(as_waiting(pod), [(bound, None)])

    @property
    def records(self) -> RecordSequence:
        """Return the record of the one attempt; [] if the scheduler would not try the pod."""
        return [self._decision.record] if self._decision is not None else []

    @cached_property
    def nodes(self) -> Mapping[str, Node]:
        """Return the nodes of the cluster, by name."""
        return {node.metadata.name: node for node in self._trial.nodes()}

    @property
    def catalog(self) -> ObjectLookup:
        """Return the lookup of claims, volumes and other objects."""
        return self._trial.catalog

    @property
    def surroundings(self) -> Surroundings:
        """Return the current cluster of the scheduler."""
        return SchedulerSurroundings(self._trial.scheduler, self._life.pod or Pod(), self._trial.unread)

    def records_of(self, key: str) -> Iterable[tuple[int, Record]]:
        """Return the record of the one attempt, numbered 0, if the key is that of the explained pod."""
        return list(enumerate(self.records)) if key == self._life.key else []

    def decision(self, number: int) -> Decision:
        """Return the decision of the one attempt."""
        if self._decision is None:
            raise LookupError("no attempt was made")
        return self._decision

    def message_of(self, pod: PodTimeline) -> str:
        """Return why a pod has no node: of a gated pod, the gate's message; of the explained pod, that of the attempt."""
        if pod.fate is PodFate.GATED and pod.pod is not None:
            gate = self._trial.gate(pod.pod)
            return gate.message if gate is not None else pod.message
        if pod.key == self._life.key and self._decision is not None:
            record = self._decision.record
            if record.outcome is not Outcome.ERROR or pod.pod is None:
                return record.message
            return error_text(self._trial, as_waiting(pod.pod), record.message)
        if pod.key == self._life.key and pod.fate is PodFate.PENDING and pod.pod is not None:
            # A PreEnqueue plugin other than SchedulingGates keeps the pod out of the queue.
            gate = self._trial.gate(pod.pod)
            return gate.message if gate is not None else pod.message
        return pod.message

    def requests_of(self, pod: PodTimeline) -> Amounts:
        """Return a pod's requests; {} if the pod is unknown."""
        return {} if pod.pod is None else accounted_requests(pod.pod, self._trial.state.request_gates).requests

    def requested_before(self, number: int, nodes: Collection[str]) -> Mapping[str, Amounts]:
        """Return the amounts requested on nodes, by node and resource, without the explained pod and with nominated pods."""
        state, found = self._trial.state, dict[str, Amounts]()
        names = state.nodes.resources
        own = self._trial.bound(self._life.key)
        for name in nodes:
            row = state.nodes.row_of.get(name)
            if row is None:
                continue
            amounts = {resource: state.usage.item(FIRST_RESOURCE + place, row) for place, resource in enumerate(names)}
            amounts[PODS] = state.usage.item(POD_COUNT, row)
            if own is not None and own.spec.node_name == name:
                # The pod was taken off its node for this attempt.
                for resource, amount in {**self.requests_of(self._life), PODS: 1}.items():
                    amounts[resource] -= amount
            if self._life.pod is not None:
                for resource, amount in nominated_amounts(self._trial.scheduler, self._life.pod, name).items():
                    amounts[resource] = amounts.get(resource, 0) + amount
            found[name] = amounts
        return found
