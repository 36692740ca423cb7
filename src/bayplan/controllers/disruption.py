"""The disruption controller: computes how many disruptions each PodDisruptionBudget currently allows.

Preemption reads ``status.disruptionsAllowed`` when it chooses victims, so a budget without a status would forbid all
evictions. The counts are updated event by event; a change of one pod does not recount the others.

If the expected number of pods can't be computed, a budget allows no disruptions, as upstream. There is one exception: a
recorded cluster may lack the owners of its pods, so a recorded status stays until the controller has computed one.

Not implemented: ``disruptedPods``, which the eviction API writes. Source: pkg/controller/disruption v1.36.3 and
https://kubernetes.io/docs/concepts/workloads/pods/disruptions/
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from msgspec.structs import replace

from bayplan.base.errors import InputError
from bayplan.base.go_text.times import format_time
from bayplan.cluster.owned_pods import is_ready
from bayplan.cluster.store import DELETED, ChangeEvent, object_key
from bayplan.controllers.controller import Controller, ControllerTools
from bayplan.controllers.rollout_arithmetic import scaled_value
from bayplan.controllers.writer import WARNING
from bayplan.objects.kinds import find_kind
from bayplan.objects.meta import Condition, LabelSelector, OwnerReference
from bayplan.objects.pod import Pod
from bayplan.objects.policy import PodDisruptionBudget, PodDisruptionBudgetStatus
from bayplan.objects.selectors import NOTHING, SelectorError, compile_label_selector
from bayplan.objects.workloads import Deployment, ReplicaSet, ReplicationController, StatefulSet

_ALLOWED = "DisruptionAllowed"
_Scalable = ReplicationController | ReplicaSet | StatefulSet
_SCALABLE: dict[str, type[_Scalable]] = {
    "ReplicationController": ReplicationController,
    "ReplicaSet": ReplicaSet,
    "StatefulSet": StatefulSet,
}
_NEVER_SYNCED = PodDisruptionBudgetStatus()
_MEMO_SIZE = 10_000


_UNMANAGED = (
    "Pods selected by this PodDisruptionBudget (selector: {}) were found to be unmanaged. As a result, the status of the PDB "
    "cannot be calculated correctly, which may result in undefined behavior. To account for these pods please set "
    '".spec.minAvailable" field of the PDB to an integer value.'
)


class _UnknownScaleError(Exception):
    """The scale of a pod's controller is unknown; the text is upstream's."""


class _MissingOwnerError(_UnknownScaleError):
    """A pod's controller is not stored, or its kind is unknown."""


class _State:
    """The pods that one budget selects, and how many of them are healthy."""

    def __init__(self, selector: LabelSelector | None) -> None:
        self.selector = selector
        try:
            self._compiled = compile_label_selector(selector)
        except SelectorError:
            self._compiled = NOTHING
        self._matches: dict[int, tuple[dict[str, str], bool]] = {}
        self.healthy: dict[str, bool] = {}
        self.healthy_count = 0
        self.owners: Counter[OwnerReference] = Counter()
        self._owner_of: dict[str, OwnerReference] = {}

    def follow(self, key: str, pod: Pod | None) -> bool:
        """Record the current state of a pod (None: deleted); return whether the budget's counts change."""
        if pod is None or not self._selects(pod.metadata.labels):
            return self._drop(key)
        healthy = pod.metadata.deletion_timestamp is None and is_ready(pod)
        known = self.healthy.get(key)
        has_new_owner = self._set_owner(key, pod.metadata.controller())
        if known == healthy:
            return has_new_owner
        self.healthy[key] = healthy
        self.healthy_count += healthy - bool(known)
        return True

    def _drop(self, key: str) -> bool:
        known = self.healthy.pop(key, None)
        if known is None:
            return False
        self.healthy_count -= known
        self._set_owner(key, None)
        return True

    def _set_owner(self, key: str, owner: OwnerReference | None) -> bool:
        """Record the controller of a pod; return whether it has changed. Pods are adopted and released."""
        known = self._owner_of.get(key)
        if owner is known or owner == known:
            return False
        if known is not None:
            del self._owner_of[key]
            self.owners[known] -= 1
            if not self.owners[known]:
                del self.owners[known]
        if owner is not None:
            self._owner_of[key] = owner
            self.owners[owner] += 1
        return True

    @property
    def has_unmanaged(self) -> bool:
        """Whether any pod has no controller."""
        return len(self._owner_of) < len(self.healthy)

    def pod_of(self, owner: OwnerReference) -> str:
        """Return the name of one of the pods that the owner controls."""
        return next(key.rpartition("/")[2] for key, known in self._owner_of.items() if known == owner)

    def _selects(self, labels: dict[str, str]) -> bool:
        # Keyed by identity, because the pods of a template share their dict of labels.
        known = self._matches.get(id(labels))
        if known is None:
            if len(self._matches) >= _MEMO_SIZE:
                self._matches.clear()
            known = self._matches[id(labels)] = (labels, self._compiled.matches(labels))
        return known[1]


class DisruptionController(Controller):
    """Reconciles PodDisruptionBudgets."""

    kind = PodDisruptionBudget
    component = "controllermanager"
    watches = (PodDisruptionBudget,)

    def __init__(self, tools: ControllerTools) -> None:
        super().__init__(tools)
        self._states: dict[str, _State] = {}
        # The budgets whose status this controller has computed.
        self._computed: dict[str, None] = {}

    @property
    def watches_pods(self) -> bool:
        """Whether any budgets exist; without budgets, the controller needs no events of pods."""
        return bool(self._states)

    def keys_for(self, event: ChangeEvent) -> Iterable[str]:
        """Return the keys of the budgets to reconcile: the changed budget, or all budgets that the change of a pod may affect."""
        item = event.object
        key = object_key(item.metadata)
        if isinstance(item, Pod):
            return self._budgets_of(item, key, is_deleted=event.type == DELETED)
        if event.type == DELETED:
            self._states.pop(key, None)
            self._computed.pop(key, None)
        elif isinstance(item, PodDisruptionBudget):
            self._follow_budget(key, item)
        return (key,)

    def _budgets_of(self, pod: Pod, key: str, *, is_deleted: bool) -> list[str]:
        """Return the budgets whose counts a pod changes; record an event if several budgets select the pod."""
        prefix = f"{pod.metadata.namespace}/"
        changed: list[str] = []
        selecting: list[str] = []
        for budget, state in self._states.items():
            if not budget.startswith(prefix):
                continue
            was_selected = key in state.healthy
            if state.follow(key, None if is_deleted else pod):
                changed.append(budget)
            if was_selected if is_deleted else key in state.healthy:
                selecting.append(budget)
        if self._reports and len(selecting) > 1:
            name, chosen = pod.metadata.name, selecting[0].removeprefix(prefix)
            text = f'Pod "{prefix[:-1]}"/"{name}" matches multiple PodDisruptionBudgets.  Chose "{chosen}" arbitrarily.'
            self.record(pod, "MultiplePodDisruptionBudgets", text, type_=WARNING)
        return changed

    def _follow_budget(self, key: str, item: PodDisruptionBudget) -> None:
        state = self._states.get(key)
        if state is not None and state.selector == item.spec.selector:
            return
        state = self._states[key] = _State(item.spec.selector)
        for pod_key, pod in self.store.pods.items():
            if pod.metadata.namespace == item.metadata.namespace:
                state.follow(pod_key, pod)

    def reconcile(self, key: str, now_ns: int) -> int | None:
        """Write the status of a budget."""
        item = self.store.get(PodDisruptionBudget, key)
        state = self._states.get(key)
        if item is None or state is None:
            return None
        if not state.healthy:
            self.record(item, "NoPods", "No matching pods found")
        try:
            expected, desired = self._wanted(item, state)
        except _UnknownScaleError as problem:
            text = f"Failed to calculate the number of expected pods: {problem}"
            self.record(item, "CalculateExpectedPodCountFailed", text, type_=WARNING)
            is_recorded = key not in self._computed and replace(item.status, conditions=()) != _NEVER_SYNCED
            if not (is_recorded and isinstance(problem, _MissingOwnerError)):
                condition = _condition(item, item.status.observed_generation, False, "SyncFailed", str(problem), now_ns)
                self._write(item, replace(item.status, disruptions_allowed=0, conditions=(condition,)))
            return None
        except InputError as problem:
            raise InputError(f"PodDisruptionBudget {key}", wanted=problem.wanted, got=problem.got) from None
        self._computed[key] = None
        allowed = max(state.healthy_count - desired, 0) if expected > 0 else 0
        if self._reports and state.has_unmanaged and _is_relative(item):
            self.record(item, "UnmanagedPods", _UNMANAGED.format(_go_text(item.spec.selector)), type_=WARNING)
        reason = "SufficientPods" if allowed > 0 else "InsufficientPods"
        self._write(
            item,
            replace(
                item.status,
                current_healthy=state.healthy_count,
                desired_healthy=desired,
                expected_pods=expected,
                disruptions_allowed=allowed,
                observed_generation=item.metadata.generation,
                conditions=(_condition(item, item.metadata.generation, allowed > 0, reason, "", now_ns),),
            ),
        )
        return None

    def _write(self, item: PodDisruptionBudget, status: PodDisruptionBudgetStatus) -> None:
        if status != item.status:
            self.writer.update(replace(item, status=status))

    def _wanted(self, item: PodDisruptionBudget, state: _State) -> tuple[int, int]:
        """Return the expected number of pods, and how many of them must be healthy."""
        spec, namespace = item.spec, item.metadata.namespace
        if spec.max_unavailable is not None:
            expected = self._scale(namespace, state)
            return expected, max(expected - scaled_value(spec.max_unavailable, expected, round_up=True), 0)
        if isinstance(spec.min_available, str):
            expected = self._scale(namespace, state)
            return expected, scaled_value(spec.min_available, expected, round_up=True)
        if spec.min_available is not None:
            return len(state.healthy), spec.min_available
        return 0, 0

    def _scale(self, namespace: str, state: _State) -> int:
        """Return the sum of the replicas of the pods' controllers; pods without a controller do not count."""
        scales: dict[str, int] = {}
        for owner in state.owners:
            found = self._scale_of(owner, namespace)
            if found is None:
                raise _MissingOwnerError(f'found no controllers for pod "{state.pod_of(owner)}"')
            uid, replicas = found
            scales[uid] = replicas
        return sum(scales.values())

    def _scale_of(self, owner: OwnerReference, namespace: str) -> tuple[str, int] | None:
        """Return uid and replicas of a pod's controller, or None if the controller is not stored.

        If the controller is a ReplicaSet of a Deployment, return uid and replicas of the Deployment.
        """
        kind = _SCALABLE.get(owner.kind)
        if kind is None:
            row = find_kind(owner.api_version, owner.kind)
            if row is None:
                return None
            resource = f"{row.plural}.{row.group}" if row.group else row.plural
            raise _UnknownScaleError(f"{resource} does not implement the scale subresource")
        found = self.store.get(kind, f"{namespace}/{owner.name}")
        if found is None or found.metadata.uid != owner.uid:
            return None
        parent = found.metadata.controller()
        if isinstance(found, ReplicaSet) and parent is not None and parent.kind == "Deployment":
            deployment = self.store.get(Deployment, f"{namespace}/{parent.name}")
            if deployment is None or deployment.metadata.uid != parent.uid:
                return None
            return parent.uid, 1 if deployment.spec.replicas is None else deployment.spec.replicas
        replicas = found.spec.replicas
        return owner.uid, 1 if replicas is None else replicas


def _is_relative(item: PodDisruptionBudget) -> bool:
    """Return whether a budget depends on the scales of the controllers, which pods without a controller do not have."""
    return item.spec.max_unavailable is not None or isinstance(item.spec.min_available, str)


def _go_text(selector: LabelSelector | None) -> str:
    """Return a label selector as Go prints the struct."""
    if selector is None:
        return "nil"
    labels = "".join(f"{key}: {value}," for key, value in sorted(selector.match_labels.items()))
    requirements = "".join(
        f"LabelSelectorRequirement{{Key:{each.key},Operator:{each.operator},Values:[{' '.join(each.values)}],}},"
        for each in selector.match_expressions
    )
    listed = f"[]LabelSelectorRequirement{{{requirements}}}"
    return f"&LabelSelector{{MatchLabels:map[string]string{{{labels}}},MatchExpressions:{listed},}}"


def _condition(
    item: PodDisruptionBudget, generation: int, allowed: bool, reason: str, message: str, now_ns: int
) -> Condition:
    """Return the DisruptionAllowed condition of a budget; the transition time only changes together with the status."""
    status = "True" if allowed else "False"
    since = format_time(now_ns)
    for present in item.status.conditions:
        if present.type == _ALLOWED and present.status == status and present.last_transition_time is not None:
            since = present.last_transition_time
    return Condition(
        type=_ALLOWED,
        status=status,
        reason=reason,
        message=message,
        observed_generation=generation,
        last_transition_time=since,
    )
