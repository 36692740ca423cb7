"""The DaemonSet controller: one pod on every matching node, and rolling updates of the template.

Pods are created unbound, with a required node affinity to the name of their node; the scheduler binds them.
`daemon_nodes` selects the nodes, `daemon_set_state` caches the results of earlier checks, and `daemon_rollout` selects the
pods that an update replaces next. Source: pkg/controller/daemon v1.36.3.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from msgspec.structs import replace

from bayplan.base.durations import SECOND_NS
from bayplan.base.go_text.times import parse_time_ns
from bayplan.cluster.owned_pods import condition_time, is_finished, is_ready
from bayplan.cluster.store import DELETED, MODIFIED, ChangeEvent, object_key
from bayplan.controllers.availability import is_available
from bayplan.controllers.controller import Controller, ControllerTools, ReconcileResult, RejectedWrites
from bayplan.controllers.daemon_nodes import daemon_template, pinned_spec, target_node
from bayplan.controllers.daemon_rollout import rollout_of
from bayplan.controllers.daemon_set_state import DaemonSetState, NodeTally
from bayplan.controllers.pod_factory import PreparedTemplate
from bayplan.controllers.revisions import (
    REVISION_LABEL,
    Revision,
    StoredRevisions,
    no_stored_revisions,
    observed_daemon_set_hash,
)
from bayplan.controllers.rollout_arithmetic import scaled_value
from bayplan.objects.node import Node
from bayplan.objects.pod import Pod
from bayplan.objects.workloads import DaemonSet

_FIRST_BACKOFF_NS = SECOND_NS
_MAX_BACKOFF_NS = 15 * 60 * SECOND_NS
_GENERATION_ANNOTATION = "deprecated.daemonset.template.generation"
_GENERATION_LABEL = "pod-template-generation"


class DaemonSetController(Controller):
    """Reconciles DaemonSets.

    Args:
        tools: see `ControllerTools`.
        stored_revisions: restores the history of a set when it is first reconciled.
    """

    kind = DaemonSet
    component = "daemonset-controller"
    watches = (Node,)
    follows_pods = True

    def __init__(self, tools: ControllerTools, stored_revisions: StoredRevisions = no_stored_revisions) -> None:
        super().__init__(tools)
        self._stored_revisions = stored_revisions
        self._states: dict[str, DaemonSetState] = {}

    def pod_changed(self, key: str, event: ChangeEvent) -> None:
        """Record a change of a pod, so that the next reconcile of its DaemonSet checks the pod's node."""
        controller = event.object.metadata.controller()
        if controller is not None:
            self._state(controller.uid).follow_pod(event)

    def keys_for(self, event: ChangeEvent) -> Iterable[str]:
        """Mark a changed node for a check, and return the keys of all DaemonSets.

        Return no keys if the labels and taints of the node are unchanged.
        """
        old, new = event.old, event.new
        if event.type == MODIFIED and isinstance(old, Node) and isinstance(new, Node):
            same_labels = old.metadata.labels is new.metadata.labels or old.metadata.labels == new.metadata.labels
            if same_labels and old.spec.taints == new.spec.taints:
                return ()
        name = event.object.metadata.name
        keys = []
        for item in self.store.all(DaemonSet):
            state = self._state(item.metadata.uid)
            state.dirty[name] = None
            if event.type == DELETED:
                state.forget_node(name)
            keys.append(object_key(item.metadata))
        return keys

    def _state(self, uid: str) -> DaemonSetState:
        state = self._states.get(uid)
        if state is None:
            state = self._states[uid] = DaemonSetState()
        return state

    def reconcile(self, key: str, now_ns: int) -> ReconcileResult:
        """Create and delete pods on the nodes that changed, continue a rolling update, then write the status."""
        item = self.store.get(DaemonSet, key)
        if item is None:
            self._forget_deleted()
            return None
        if item.metadata.deletion_timestamp is not None:
            return None
        state = self._state(item.metadata.uid)
        revision = self._revision(item, state)
        if state.follow_template(item.spec.template):
            state.dirty.update(dict.fromkeys(self.store.nodes))
            state.dirty.update(dict.fromkeys(state.pods))
        if not state.is_halfway:
            state.dirty.update(state.waiting)
            state.dirty.update(state.retry)
            state.dirty.update(islice(state.refused.items(), 1))
            state.retry.clear()
            state.rejected = RejectedWrites()
            state.is_blocked = False
            state.again_ns = None
        busy = self._check_nodes(item, state, revision, now_ns)
        rolls = not (busy or state.is_blocked) and _rolls(item) and _is_outdated(state, revision)
        if rolls and self._roll(item, state, revision, now_ns):
            state.again_ns = now_ns
        self._write_status(item, state)
        if state.is_halfway:
            return now_ns
        if state.refused and state.rejected.problem is None:
            # The first of them has its pod now, so the others are tried again, too.
            state.dirty.update(state.refused)
            return now_ns
        return state.rejected.result(state.again_ns, now_ns)

    def _check_nodes(self, item: DaemonSet, state: DaemonSetState, revision: Revision, now_ns: int) -> bool:
        """Create and delete pods on up to `burst` dirty nodes; return whether it did, or whether dirty nodes are left.

        After the first rejected creation, no further pods are created in this pass, but all nodes are counted.
        """
        dirty = list(state.dirty)[: self.burst]
        state.is_halfway = busy = len(state.dirty) > len(dirty)
        for name in dirty:
            node = self.store.nodes.get(name)
            state.refused.pop(name, None)
            acted, alarm_ns = self._manage(item, state, revision, name, node, now_ns)
            busy = busy or acted
            state.again_ns = _earlier(state.again_ns, alarm_ns)
            state.again_ns = _earlier(state.again_ns, self._count(item, state, revision, name, node, now_ns))
            del state.dirty[name]
        return busy

    def _forget_deleted(self) -> None:
        stored = {item.metadata.uid for item in self.store.all(DaemonSet)}
        for uid in list(self._states):
            if uid not in stored and not self._states[uid].pods:
                del self._states[uid]

    def _revision(self, item: DaemonSet, state: DaemonSetState) -> Revision:
        history = state.history
        if not history.revisions:
            history.revisions = self._stored_revisions(item)
        if not history.revisions:
            known = observed_daemon_set_hash(item, self.store.owned_pods(item.metadata.uid).active.values())
            if known:
                history.adopt(known, item.spec.template)
        revision = history.current(item.spec.template)
        live = {hash_ for hash_, count in state.by_hash.items() if count > 0}
        history.truncate(item.spec.revision_history_limit, live)
        return revision

    # --- one node -----------------------------------------------------------------------------------------------------

    def _manage(
        self, item: DaemonSet, state: DaemonSetState, revision: Revision, name: str, node: Node | None, now_ns: int
    ) -> tuple[bool, int | None]:
        """Create or delete pods for one node; return whether it did, and the time (ns) of the next check or None."""
        pods = self._pods_on(state, name)
        if node is None:
            # Pod garbage collection deletes the pods that ran on the missing node, but not pending pods, which would
            # wait forever.
            stranded = [pod for pod in pods if not pod.spec.node_name and pod.metadata.deletion_timestamp is None]
            return self._delete(item, state, stranded, now_ns), None
        should_run, may_stay = state.eligibility_of(node)
        if should_run and not pods:
            return self._create(item, state, revision, name, now_ns), None
        present = [pod for pod in pods if pod.metadata.deletion_timestamp is None]
        if not may_stay:
            return self._delete(item, state, present, now_ns), None
        surplus: list[Pod] = []
        running: list[Pod] = []
        again_ns: int | None = None
        for pod in present:
            if not is_finished(pod):
                running.append(pod)
            elif pod.status.phase == "Failed" and (wait_ns := _back_off(state, name, now_ns)) > 0:
                again_ns = _earlier(again_ns, now_ns + wait_ns)
                state.retry[name] = None
            else:
                surplus.append(pod)
        surplus += self._too_many(item, revision, running, now_ns)
        acted = self._delete(item, state, surplus, now_ns)
        if not running and should_run and _surges(item):
            acted = self._create(item, state, revision, name, now_ns) or acted
        return acted, again_ns

    def _too_many(self, item: DaemonSet, revision: Revision, running: list[Pod], now_ns: int) -> list[Pod]:
        """Return the surplus pods on one node: all except the oldest.

        With a surge, the oldest updated and the oldest outdated pod stay, but the outdated pod is surplus if it is not
        ready or the updated pod is available.
        """
        if len(running) <= 1:
            return []
        running = sorted(running, key=_age)
        if not _surges(item):
            return running[1:]
        updated = [pod for pod in running if pod.metadata.labels.get(REVISION_LABEL) == revision.hash]
        outdated = [pod for pod in running if pod.metadata.labels.get(REVISION_LABEL) != revision.hash]
        surplus = updated[1:] + outdated[1:]
        if updated and outdated:
            new_serves = is_available(updated[0], item.spec.min_ready_seconds, now_ns)
            if not is_ready(outdated[0]) or new_serves:
                surplus.append(outdated[0])
        return surplus

    def _create(self, item: DaemonSet, state: DaemonSetState, revision: Revision, name: str, now_ns: int) -> bool:
        """Create a pod for a node, unless a creation was rejected in this pass; return whether it was created."""
        if not state.is_blocked:
            with state.rejected:
                self._create_on(item, state, revision, name, now_ns)
                return True
            state.is_blocked = True
        state.refused[name] = None
        return False

    def _create_on(self, item: DaemonSet, state: DaemonSetState, revision: Revision, name: str, now_ns: int) -> None:
        prepared = self._prepared(item, state, revision)
        self.create_pod(item, prepared, now_ns, spec=pinned_spec(prepared.spec, name))

    def _prepared(self, item: DaemonSet, state: DaemonSetState, revision: Revision) -> PreparedTemplate:
        prepared = state.prepared
        if prepared is None or not self.pods.is_current(prepared, item.spec.template):
            template = item.spec.template
            labels = {**template.metadata.labels, REVISION_LABEL: revision.hash}
            generation = item.metadata.annotations.get(_GENERATION_ANNOTATION)
            if generation is not None:
                labels[_GENERATION_LABEL] = generation
            prepared = self.pods.prepare(item, daemon_template(template), labels=labels)
            prepared = state.prepared = prepared.of_template(template)
        return prepared

    def _delete(self, item: DaemonSet, state: DaemonSetState, pods: list[Pod], now_ns: int) -> bool:
        """Delete pods; return whether any was deleted."""
        deleted = False
        for pod in pods:
            with state.rejected:
                self.delete_pod(item, pod, now_ns)
                deleted = True
                continue
            state.refused[target_node(pod)] = None
        return deleted

    def _pods_on(self, state: DaemonSetState, name: str) -> list[Pod]:
        """Return the set's pods on a node, except finished pods that are being deleted already."""
        stored = self.store.pods
        found = [stored[key] for key in state.pods.get(name, ()) if key in stored]
        return [pod for pod in found if pod.metadata.deletion_timestamp is None or not is_finished(pod)]

    # --- rolling update -----------------------------------------------------------------------------------------------

    def _roll(self, item: DaemonSet, state: DaemonSetState, revision: Revision, now_ns: int) -> bool:
        """Delete outdated pods and create surge pods; return whether `burst` leaves pods for the next call."""
        rollout = rollout_of(item, revision.hash, state.totals.desired, now_ns)
        names = dict.fromkeys((*self.store.nodes, *state.pods))
        # Otherwise these nodes would take the places of others within maxUnavailable or maxSurge in every pass.
        last = [name for name in state.postponed if name in names]
        for name in (*(name for name in names if name not in state.postponed), *last):
            node = self.store.nodes.get(name)
            should_run = node is not None and state.eligibility_of(node).should_run
            pods = self._pods_on(state, name)
            if should_run or pods:
                rollout.add_node(name, pods, should_run=should_run)
        outdated, surging = rollout.pods_to_delete(), rollout.nodes_to_surge()
        for pod in outdated[: self.burst]:
            with state.updating(target_node(pod)):
                self.delete_pod(item, pod, now_ns)
        for name in surging[: self.burst]:
            with state.updating(name):
                self._create_on(item, state, revision, name, now_ns)
            if name in state.postponed:
                break
        return max(len(outdated), len(surging)) > self.burst

    # --- status -------------------------------------------------------------------------------------------------------

    def _count(
        self, item: DaemonSet, state: DaemonSetState, revision: Revision, name: str, node: Node | None, now_ns: int
    ) -> int | None:
        """Set the contribution of a node to the status; return the time when its pod will become available, or None."""
        if node is None:
            state.forget_node(name)
            return None
        should_run = state.eligibility_of(node).should_run
        pods = self._pods_on(state, name)
        if not should_run or not pods:
            state.tally(name, NodeTally(desired=int(should_run), misscheduled=int(bool(pods) and not should_run)))
            return None
        pod = pods[0] if len(pods) == 1 else min(pods, key=_age)
        ready = is_ready(pod)
        available = is_available(pod, item.spec.min_ready_seconds, now_ns)
        updated = pod.metadata.labels.get(REVISION_LABEL) == revision.hash
        state.tally(
            name, NodeTally(desired=1, current=1, ready=int(ready), available=int(available), updated=int(updated))
        )
        # The node may also have a surge pod, which replaces the counted pod once it is available.
        waiting = [
            each for each in pods if is_ready(each) and not is_available(each, item.spec.min_ready_seconds, now_ns)
        ]
        if not waiting:
            state.waiting.pop(name, None)
            return None
        state.waiting[name] = None
        times = [since for each in waiting if (since := condition_time(each, "Ready", "True")) is not None]
        return min(map(parse_time_ns, times)) + item.spec.min_ready_seconds * SECOND_NS if times else None

    def _write_status(self, item: DaemonSet, state: DaemonSetState) -> None:
        totals = state.totals
        status = replace(
            item.status,
            desired_number_scheduled=totals.desired,
            current_number_scheduled=totals.current,
            number_misscheduled=totals.misscheduled,
            number_ready=totals.ready,
            number_available=totals.available,
            number_unavailable=totals.desired - totals.available,
            updated_number_scheduled=totals.updated,
            observed_generation=item.metadata.generation,
        )
        if status != item.status:
            self.writer.update(replace(item, status=status))


def _earlier(one: int | None, other: int | None) -> int | None:
    if one is None or other is None:
        return other if one is None else one
    return min(one, other)


def _age(pod: Pod) -> tuple[bool, str, str]:
    """Return the sort key: scheduled pods first, then the oldest, then by name."""
    metadata = pod.metadata
    return not pod.spec.node_name, metadata.creation_timestamp or "", metadata.name


def _rolls(item: DaemonSet) -> bool:
    return item.spec.update_strategy.type in ("", "RollingUpdate")


def _surges(item: DaemonSet) -> bool:
    rolling = item.spec.update_strategy.rolling_update
    return _rolls(item) and rolling is not None and scaled_value(rolling.max_surge, 1, round_up=True) > 0


def _is_outdated(state: DaemonSetState, revision: Revision) -> bool:
    """Return whether any pod that is not being deleted has a hash other than the revision's."""
    return any(count > 0 and hash_ != revision.hash for hash_, count in state.by_hash.items())


def _back_off(state: DaemonSetState, name: str, now_ns: int) -> int:
    """Return how long (ns) a failed pod on a node must stay. If 0, double the delay for the next failure."""
    known = state.backoff.get(name)
    if known is None or now_ns - known[1] > 2 * _MAX_BACKOFF_NS:
        state.backoff[name] = (_FIRST_BACKOFF_NS, now_ns)
        return 0
    delay_ns, since_ns = known
    left_ns = delay_ns - (now_ns - since_ns)
    if left_ns > 0:
        return left_ns
    state.backoff[name] = (min(2 * delay_ns, _MAX_BACKOFF_NS), now_ns)
    return 0
