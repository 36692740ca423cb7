"""The StatefulSet controller: creates pods by ordinal, in order or in parallel, and updates from the highest ordinal.

OrderedReady sets create a pod only when all pods before it are running and ready, and delete from the highest ordinal,
one at a time. Parallel sets do not wait. An update replaces the pods of older revisions from the highest ordinal down
to the partition.

An ordered set stops at its first rejected write. A parallel set processes its pods in batches of 1, 2, 4 and so on, and
stops after the batch in which a write was rejected.

In an ordered set of 1,000 pods, each start requires that all pods before it are ready. The controller stores the
ordinal up to which it has checked and continues from there; a change of a pod below that ordinal resets it.

Not implemented: ``maxUnavailable`` of rolling updates (a disabled gate). Source: pkg/controller/statefulset v1.36.3.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TypeVar

from msgspec.structs import replace

from bayplan.base.durations import SECOND_NS
from bayplan.base.go_text.times import parse_time_ns
from bayplan.cluster.naming import revision_name
from bayplan.cluster.owned_pods import OwnedPods, condition_time, is_finished, is_ready
from bayplan.cluster.store import ChangeEvent
from bayplan.controllers.adoption import is_orphan
from bayplan.controllers.availability import count_available, is_available
from bayplan.controllers.controller import Controller, ControllerTools, ReconcileResult, RejectedWrites
from bayplan.controllers.pod_factory import PreparedTemplate, controller_reference
from bayplan.controllers.revisions import (
    REVISION_LABEL,
    Revision,
    RevisionHistory,
    StoredRevisions,
    hash_in,
    no_stored_revisions,
    observed_stateful_set_hash,
)
from bayplan.controllers.stateful_pods import StatefulPods, first_ordinal, ordinal_of
from bayplan.objects.meta import KubernetesObject
from bayplan.objects.pod import Pod
from bayplan.objects.selectors import SelectorError, compile_label_selector
from bayplan.objects.workloads import PodTemplateSpec, StatefulSet

T = TypeVar("T")

_MAX_BATCH = 500
"""Maximum number of pods that a parallel set processes after a rejected write, as upstream's `MaxBatchSize`."""


class _State:
    """Cached state of one StatefulSet; all pods with an ordinal less than `healthy_below` are healthy."""

    def __init__(self) -> None:
        self.history = RevisionHistory()
        self.by_revision: Counter[str] = Counter()
        self.healthy_below = 0
        self.seen: object = None
        self.prepared: dict[str, PreparedTemplate] = {}


class StatefulSetController(Controller):
    """Reconciles StatefulSets.

    Args:
        tools: see `ControllerTools`.
        stored_revisions: restores the history of a set when it is first reconciled.
    """

    kind = StatefulSet
    component = "statefulset-controller"
    follows_pods = True

    def __init__(self, tools: ControllerTools, stored_revisions: StoredRevisions = no_stored_revisions) -> None:
        super().__init__(tools)
        self._stored_revisions = stored_revisions
        self._stateful_pods = StatefulPods(self)
        self._states: dict[str, _State] = {}

    def pod_changed(self, key: str, event: ChangeEvent) -> None:
        """Count pods by revision, and reset `healthy_below` to the ordinal of the changed pod."""
        for pod, step in ((event.old, -1), (event.new, 1)):
            if not isinstance(pod, Pod):
                continue
            controller = pod.metadata.controller()
            if controller is None:
                continue
            state = self._states.setdefault(controller.uid, _State())
            if pod.metadata.deletion_timestamp is None:
                state.by_revision[pod.metadata.labels.get(REVISION_LABEL, "")] += step
            state.healthy_below = min(state.healthy_below, max(ordinal_of(pod.metadata.name), 0))

    def reconcile(self, key: str, now_ns: int) -> ReconcileResult:
        """Take the steps that the pod management policy allows, then write the status."""
        item = self.store.get(StatefulSet, key)
        if item is None:
            self._forget_deleted()
            return None
        state = self._states.setdefault(item.metadata.uid, _State())
        update = self._revision(item, state)
        current = state.history.find(hash_in(item.status.current_revision)) or update
        run = _Run(self, item, state, current, update, now_ns)
        if item.metadata.deletion_timestamp is None:
            with run.rejected:
                run.step()
        self._write_status(item, state, current, update, now_ns)
        return run.rejected.result(run.again_ns, now_ns)

    def _forget_deleted(self) -> None:
        """Drop the cached state of sets that no longer exist and have no pods."""
        stored = {item.metadata.uid for item in self.store.all(StatefulSet)}
        for uid in list(self._states):
            if uid not in stored and not self.store.owned_pods(uid):
                del self._states[uid]

    def delete_pod(self, owner: KubernetesObject, pod: Pod, now_ns: int) -> None:
        """Delete a pod of a set and record an event about it."""
        self.writer.delete(pod, now_ns)
        text = f"Delete Pod {pod.metadata.name} in StatefulSet {owner.metadata.name} successful"
        self.record(owner, "SuccessfulDelete", text)

    # --- revisions ----------------------------------------------------------------------------------------------------

    def _revision(self, item: StatefulSet, state: _State) -> Revision:
        history = state.history
        if not history.revisions:
            history.revisions = self._stored_revisions(item)
        if not history.revisions:
            known = observed_stateful_set_hash(item)
            if known:
                history.adopt(known, item.spec.template)
        revision = history.current(item.spec.template)
        live = {hash_in(name) for name, count in state.by_revision.items() if count > 0}
        live.add(hash_in(item.status.current_revision))
        history.truncate(item.spec.revision_history_limit, live)
        return revision

    def prepared(self, item: StatefulSet, state: _State, template: PodTemplateSpec, name: str) -> PreparedTemplate:
        """Return the data that the pods of one revision share, prepared once."""
        known = state.prepared.get(name)
        if known is None or not self.pods.is_current(known, template):
            known = state.prepared[name] = self.pods.prepare(item, template)
        return known

    @property
    def stateful_pods(self) -> StatefulPods:
        """The part of the controller that creates pods and claims."""
        return self._stateful_pods

    # --- status -------------------------------------------------------------------------------------------------------

    def _write_status(self, item: StatefulSet, state: _State, current: Revision, update: Revision, now_ns: int) -> None:
        item = self.store.get(StatefulSet, item.key) or item
        owned = self.store.owned_pods(item.metadata.uid)
        current_name, update_name = _name(item, current), _name(item, update)
        ready = available = len(owned.ready) + sum(map(is_ready, owned.terminating.values()))
        if item.spec.min_ready_seconds > 0:
            available, _ = count_available(owned, item.spec.min_ready_seconds, now_ns)
        status = replace(
            item.status,
            observed_generation=item.metadata.generation,
            replicas=len(owned),
            ready_replicas=ready,
            available_replicas=available,
            current_replicas=state.by_revision[current_name],
            updated_replicas=state.by_revision[update_name],
            current_revision=current_name,
            update_revision=update_name,
            collision_count=0,
        )
        if _rolls(item) and status.updated_replicas == ready == len(owned) == _replicas(item):
            status = replace(status, current_replicas=status.updated_replicas, current_revision=update_name)
        if status != item.status:
            self.writer.update(replace(item, status=status))


class _Run:
    """One reconcile of one set."""

    def __init__(
        self,
        controller: StatefulSetController,
        item: StatefulSet,
        state: _State,
        current: Revision,
        update: Revision,
        now_ns: int,
    ) -> None:
        self._controller = controller
        self._item = item
        self._state = state
        self._current = current
        self._update = update
        self._now_ns = now_ns
        self._ordered = item.spec.pod_management_policy != "Parallel"
        self._start = first_ordinal(item)
        self._end = self._start + _replicas(item)
        self._uid = item.metadata.uid
        self._pod_prefix = f"{item.metadata.namespace}/{item.metadata.name}-"
        self._acted = 0
        self.rejected = RejectedWrites()
        self.again_ns: int | None = None

    def step(self) -> None:
        """Create missing pods, then remove surplus pods, then update pods; an ordered set stops at the first wait."""
        self._adopt()
        if self._fill() or self._shrink():
            return
        if self._item.spec.update_strategy.type != "OnDelete":
            self._roll()

    def _run_for_all(self, items: Sequence[T], process: Callable[[T], bool], *, done: int = 0) -> bool:
        """Process items; return whether to stop after this step.

        Args:
            items: ordinals or pods, in the order in which to process them.
            process: processes one, and returns whether an ordered set must wait for it.
            done: the number of items at the beginning that need no processing.
        """
        start, size = 0, 1
        while start < len(items):
            for each in items[max(start, done) : start + size]:
                if self._acted >= self._controller.burst:
                    self.again_ns = self._now_ns
                    return True
                waits = False
                with self.rejected:
                    waits = process(each)
                if self._ordered and (waits or self.rejected.problem is not None):
                    return True
            if self.rejected.problem is not None:
                return True
            start, size = start + size, min(2 * size, _MAX_BATCH)
        return False

    # --- creating -----------------------------------------------------------------------------------------------------

    def _adopt(self) -> None:
        """Adopt the orphans of a new or changed set, see `_pod`."""
        state, asked = self._state, (self._item.spec, self._update)
        if state.seen != asked:
            for ordinal in range(self._start, self._end):
                self._pod(ordinal)
            state.healthy_below = self._start
            state.seen = asked

    def _fill(self) -> bool:
        """Create missing pods and delete finished pods, from the lowest ordinal; return whether to stop after this step."""
        state = self._state
        state.healthy_below = max(state.healthy_below if self._item.spec.min_ready_seconds == 0 else 0, self._start)
        healthy = state.healthy_below - self._start
        return self._run_for_all(range(self._start, self._end), self._process_ordinal, done=healthy)

    def _process_ordinal(self, ordinal: int) -> bool:
        """Create the pod of an ordinal if it is missing, or delete it if it is finished.

        Return whether the following ordinals must wait for it.
        """
        item, controller = self._item, self._controller
        pod = self._pod(ordinal)
        if pod is None:
            self._create(ordinal)
            self._acted += 1
            return True
        if is_finished(pod):
            if pod.metadata.deletion_timestamp is None:
                controller.delete_pod(self._item, pod, self._now_ns)
            return True
        if pod.status.phase == "Pending":
            controller.stateful_pods.create_missing_claims(item, pod.metadata.name, self._now_ns)
            controller.stateful_pods.own_claims(item, pod, condemned=False)
        terminating = pod.metadata.deletion_timestamp is not None
        is_healthy = not terminating and pod.status.phase == "Running" and self._available(pod)
        if self._ordered and not is_healthy:
            return True
        controller.stateful_pods.fix_identity(item, pod, ordinal, self._now_ns)
        controller.stateful_pods.own_claims(item, pod, condemned=False)
        if is_healthy and self._state.healthy_below == ordinal:
            self._state.healthy_below = ordinal + 1
        return not is_healthy

    def _create(self, ordinal: int) -> None:
        item = self._item
        strategy = item.spec.update_strategy.rolling_update
        if strategy is not None:
            older = ordinal < self._start + (strategy.partition or 0)
        else:
            older = _rolls(item) and ordinal < self._start + item.status.current_replicas
        revision = self._current if older else self._update
        name = _name(item, revision)
        prepared = self._controller.prepared(item, self._state, revision.template, name)
        self._controller.stateful_pods.create(item, prepared, name, ordinal, self._now_ns)

    # --- removing -----------------------------------------------------------------------------------------------------

    def _shrink(self) -> bool:
        """Delete pods whose ordinals are out of range, from the highest; return whether to stop after this step."""
        owned = self._controller.store.owned_pods(self._uid)
        if len(owned) <= self._end - self._start:
            return False
        condemned = sorted(self._condemned(owned), key=lambda pod: -ordinal_of(pod.metadata.name))
        unhealthy = next((pod for pod in reversed(condemned) if self._is_unavailable(pod)), None)
        policy = self._item.spec.persistent_volume_claim_retention_policy
        if policy is not None and policy.when_scaled == "Delete" and self._run_for_all(condemned, self._own_claims):
            return True
        return self._run_for_all(condemned, lambda pod: self._remove(pod, unhealthy))

    def _own_claims(self, condemned: Pod) -> bool:
        self._controller.stateful_pods.own_claims(self._item, condemned, condemned=True)
        return False

    def _remove(self, pod: Pod, unhealthy: Pod | None) -> bool:
        """Delete a pod whose ordinal is out of range; return whether the next pods of an ordered set wait for it."""
        if pod.metadata.deletion_timestamp is not None:
            return True
        # In an ordered set, only healthy pods and the first unhealthy pod are deleted; the next pods wait.
        if self._ordered and self._is_unavailable(pod) and pod is not unhealthy:
            return True
        self._controller.delete_pod(self._item, pod, self._now_ns)
        self._acted += 1
        return True

    def _condemned(self, owned: OwnedPods) -> list[Pod]:
        ordinals = range(self._start, self._end)
        return [pod for pod in owned if (ordinal := ordinal_of(pod.metadata.name)) >= 0 and ordinal not in ordinals]

    # --- updating -----------------------------------------------------------------------------------------------------

    def _roll(self) -> None:
        """Delete the highest pod of another revision, unless a pod above it is not available yet."""
        update_name = _name(self._item, self._update)
        strategy = self._item.spec.update_strategy.rolling_update
        lowest = self._start + ((strategy.partition or 0) if strategy is not None else 0)
        if self._state.by_revision[update_name] >= self._end - lowest and lowest == self._start:
            return
        for ordinal in range(self._end - 1, lowest - 1, -1):
            pod = self._pod(ordinal)
            if pod is None:
                return
            terminating = pod.metadata.deletion_timestamp is not None
            if pod.metadata.labels.get(REVISION_LABEL) != update_name and not terminating:
                self._controller.delete_pod(self._item, pod, self._now_ns)
                return
            if self._is_unavailable(pod):
                return

    # --- look-up ------------------------------------------------------------------------------------------------------

    def _pod(self, ordinal: int) -> Pod | None:
        """Return the pod with an ordinal if it belongs to the set, or None.

        In a simulation, which has no `ownership`, adopt an orphan with that name if its labels match: names are unique,
        so a recreated set must adopt the orphans of the old set.
        """
        pod = self._controller.store.pods.get(f"{self._pod_prefix}{ordinal}")
        if pod is None:
            return None
        metadata = pod.metadata
        controller = metadata.controller()
        if controller is not None:
            return pod if controller.uid == self._uid else None
        if self._controller.ownership is not None or not is_orphan(pod) or not self._selects(metadata.labels):
            return None
        owners = (*metadata.owner_references, controller_reference(self._item))
        return self._controller.writer.update(replace(pod, metadata=replace(metadata, owner_references=owners)))

    def _selects(self, labels: dict[str, str]) -> bool:
        try:
            return compile_label_selector(self._item.spec.selector).matches(labels)
        except SelectorError:
            return False

    def _available(self, pod: Pod) -> bool:
        seconds = self._item.spec.min_ready_seconds
        if is_available(pod, seconds, self._now_ns):
            return True
        since = condition_time(pod, "Ready", "True")
        if seconds > 0 and since is not None:
            available_ns = parse_time_ns(since) + seconds * SECOND_NS
            self.again_ns = available_ns if self.again_ns is None else min(self.again_ns, available_ns)
        return False

    def _is_unavailable(self, pod: Pod) -> bool:
        return pod.metadata.deletion_timestamp is not None or not self._available(pod)


def _replicas(item: StatefulSet) -> int:
    return 1 if item.spec.replicas is None else item.spec.replicas


def _rolls(item: StatefulSet) -> bool:
    return item.spec.update_strategy.type in ("", "RollingUpdate")


def _name(item: StatefulSet, revision: Revision) -> str:
    return revision_name(item.metadata.name, revision.hash)
