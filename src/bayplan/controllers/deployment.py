"""The Deployment controller: a ReplicaSet for each revision of the template, and rollouts from one revision to the next.

A rolling update adds pods of the new template up to the surge, and removes old pods as far as availability allows.
Recreate waits until the old pods are gone. Scaling in the middle of a rollout is distributed among the ReplicaSets.
Each reconcile does one step; status changes of the ReplicaSets cause the next.

Not implemented: rollback through ``spec.rollbackTo``, which apps/v1 lacks. (If an older template is applied again, the
controller finds its ReplicaSet.) Source: pkg/controller/deployment v1.36.3 and
https://kubernetes.io/docs/concepts/workloads/controllers/deployment/
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import is_

from msgspec.structs import replace

from bayplan.base.go_arithmetic import whole_number
from bayplan.base.go_text.times import format_time
from bayplan.cluster.naming import replica_set_name, template_hash
from bayplan.cluster.owned_pods import is_finished
from bayplan.controllers.controller import Controller, ControllerTools
from bayplan.controllers.pod_factory import controller_reference
from bayplan.controllers.replica_set import REPLICA_FAILURE
from bayplan.controllers.rollout_arithmetic import (
    DESIRED_REPLICAS_ANNOTATION,
    MAX_REPLICAS_ANNOTATION,
    desired_replicas,
    is_rolling_update,
    new_set_size,
    read_count,
    rollout_limits,
    set_replicas,
    share_scaling,
)
from bayplan.objects.meta import Condition, LabelSelector, ObjectMeta
from bayplan.objects.workloads import (
    DEFAULT_REVISION_HISTORY_LIMIT,
    Deployment,
    PodTemplateSpec,
    ReplicaSet,
    ReplicaSetSpec,
)

TEMPLATE_HASH_LABEL = "pod-template-hash"
REVISION_ANNOTATION = "deployment.kubernetes.io/revision"
REVISION_HISTORY_ANNOTATION = "deployment.kubernetes.io/revision-history"
_MAX_HISTORY_CHARS = 2000
"""Maximum length of the annotation, as upstream's maxRevHistoryLengthInChars; older revisions are dropped."""

_UNLIMITED = 2**31 - 1
_NOT_COPIED = frozenset(
    (
        "kubectl.kubernetes.io/last-applied-configuration",
        REVISION_ANNOTATION,
        REVISION_HISTORY_ANNOTATION,
        DESIRED_REPLICAS_ANNOTATION,
        MAX_REPLICAS_ANNOTATION,
        "deprecated.deployment.rollback.to",
    )
)


class DeploymentController(Controller):
    """Reconciles Deployments."""

    kind = Deployment
    component = "deployment-controller"

    def __init__(self, tools: ControllerTools) -> None:
        super().__init__(tools)
        self._stable: dict[str, list[object]] = {}

    def reconcile(self, key: str, now_ns: int) -> int | None:
        """Take one step of a rollout or of scaling, then write the status."""
        deployment = self.store.get(Deployment, key)
        if deployment is None:
            self._forget_deleted()
            return None
        sets = self._sets(deployment)
        if deployment.metadata.deletion_timestamp is None and not self._is_stable(deployment, sets):
            if deployment.spec.paused or _is_scaling(deployment, sets):
                self._rescale(deployment, sets, now_ns)
            elif is_rolling_update(deployment):
                self._roll(deployment, sets, now_ns)
            else:
                self._recreate(deployment, sets, now_ns)
            deployment = self.store.get(Deployment, key) or deployment
            sets = self._sets(deployment)
            self._record_stable(deployment, sets)
        self._write_status(deployment, sets, now_ns)
        return None

    # --- rest ---------------------------------------------------------------------------------------------------------

    def _is_stable(self, deployment: Deployment, sets: list[ReplicaSet]) -> bool:
        """Return whether the rollout is finished and nothing has changed since, so that only the status can differ.

        The pods of a large Deployment are bound one after the other, and each binding causes a reconcile of the
        Deployment.
        """
        known = self._stable.get(deployment.metadata.uid)
        if known is None:
            return False
        parts = _parts(deployment, sets)
        return len(parts) == len(known) and all(map(is_, parts, known))

    def _record_stable(self, deployment: Deployment, sets: list[ReplicaSet]) -> None:
        new = _find_new(deployment, sets)
        finished = (
            new is not None
            and not deployment.spec.paused
            and set_replicas(new) == desired_replicas(deployment)
            and not any(set_replicas(item) for item in sets if item is not new)
        )
        if finished:
            self._stable[deployment.metadata.uid] = _parts(deployment, sets)
        else:
            self._stable.pop(deployment.metadata.uid, None)

    def _forget_deleted(self) -> None:
        stored = {item.metadata.uid for item in self.store.all(Deployment)}
        self._stable = {uid: parts for uid, parts in self._stable.items() if uid in stored}

    def _sets(self, deployment: Deployment) -> list[ReplicaSet]:
        """Return the ReplicaSets that a Deployment controls, oldest first."""
        uid = deployment.metadata.uid
        owned = [item for item in self.store.dependents(uid, ReplicaSet) if _is_controlled_by(item, uid)]
        return sorted(owned, key=lambda item: (item.metadata.creation_timestamp or "", item.metadata.name))

    # --- rolling update -----------------------------------------------------------------------------------------------

    def _roll(self, deployment: Deployment, sets: list[ReplicaSet], now_ns: int) -> None:
        new, old = self._new_and_old(deployment, sets)
        if new is None:
            new = self._create_set(deployment, old, now_ns)
        size, desired = set_replicas(new), desired_replicas(deployment)
        if size > desired:
            self._scale(deployment, new, desired)
            return
        if size < desired:
            wanted = new_set_size(deployment, size, size + sum(map(set_replicas, old)))
            if wanted != size:
                self._scale(deployment, new, wanted)
                return
        if not self._shrink_old(deployment, new, old) and _is_complete(deployment):
            self._clean_up(deployment, old, now_ns)

    def _shrink_old(self, deployment: Deployment, new: ReplicaSet, old: list[ReplicaSet]) -> bool:
        """Remove old pods, unavailable pods first, as far as availability allows. Return whether any were removed."""
        active = [item for item in old if set_replicas(item) > 0]
        if not active:
            return False
        least = desired_replicas(deployment) - rollout_limits(deployment)[1]
        missing_new = set_replicas(new) - new.status.available_replicas
        most = set_replicas(new) + sum(map(set_replicas, active)) - least - missing_new
        if most <= 0:
            return False
        removed = 0
        sizes = {item.metadata.name: set_replicas(item) for item in active}
        for item in active:
            unhealthy = min(most - removed, sizes[item.metadata.name] - item.status.available_replicas)
            if removed < most and unhealthy > 0:
                sizes[item.metadata.name] -= unhealthy
                removed += unhealthy
        spare = new.status.available_replicas + sum(item.status.available_replicas for item in active) - least
        for item in active:
            healthy = min(sizes[item.metadata.name], spare)
            if healthy > 0:
                sizes[item.metadata.name] -= healthy
                spare -= healthy
                removed += healthy
        for item in active:
            self._scale(deployment, item, sizes[item.metadata.name])
        return removed > 0

    # --- recreate -----------------------------------------------------------------------------------------------------

    def _recreate(self, deployment: Deployment, sets: list[ReplicaSet], now_ns: int) -> None:
        new, old = self._new_and_old(deployment, sets)
        active = [item for item in old if set_replicas(item) > 0]
        if active:
            for item in active:
                self._scale(deployment, item, 0)
            return
        if any(item.status.replicas > 0 or self._has_running_pods(item) for item in old):
            return
        if new is None:
            new = self._create_set(deployment, old, now_ns)
        self._scale(deployment, new, desired_replicas(deployment))
        if _is_complete(deployment):
            self._clean_up(deployment, old, now_ns)

    def _has_running_pods(self, item: ReplicaSet) -> bool:
        return any(not is_finished(pod) for pod in self.store.owned_pods(item.metadata.uid))

    # --- scaling ------------------------------------------------------------------------------------------------------

    def _rescale(self, deployment: Deployment, sets: list[ReplicaSet], now_ns: int) -> None:
        """Scale the ReplicaSets to a new number of replicas without advancing the rollout."""
        new, old = self._new_and_old(deployment, sets)
        every = [*old, new] if new is not None else old
        active = [item for item in every if set_replicas(item) > 0]
        desired = desired_replicas(deployment)
        if len(active) <= 1:
            # The only active set, or the newest if none is active, gets all replicas.
            only = active[0] if active else new if new is not None else old[-1] if old else None
            if only is not None:
                self._scale(deployment, only, desired)
        elif new is not None and _is_saturated(deployment, new):
            for item in old:
                self._scale(deployment, item, 0)
        elif is_rolling_update(deployment):
            sizes = share_scaling(deployment, active)
            for item in active:
                self._scale(deployment, item, sizes[item.metadata.name], annotate=True)
        if deployment.spec.paused:
            self._clean_up(deployment, old, now_ns)

    def _scale(self, deployment: Deployment, item: ReplicaSet, size: int, *, annotate: bool = False) -> None:
        """Set the size of a ReplicaSet, and its annotations with the current scale of the Deployment."""
        same_size = set_replicas(item) == size
        if same_size and not annotate:
            return
        annotations = {**item.metadata.annotations, **_scale_annotations(deployment)}
        if same_size and annotations == item.metadata.annotations:
            return
        metadata = replace(item.metadata, annotations=annotations)
        if not same_size:
            metadata = replace(metadata, generation=metadata.generation + 1)
        before = item.spec.replicas or 0
        self.writer.update(replace(item, metadata=metadata, spec=replace(item.spec, replicas=size)))
        if size != before:
            direction = "up" if size > before else "down"
            text = f"Scaled {direction} replica set {item.metadata.name} from {before} to {size}"
            self.record(deployment, "ScalingReplicaSet", text)

    # --- the ReplicaSet of the newest template ------------------------------------------------------------------------

    def _new_and_old(
        self, deployment: Deployment, sets: list[ReplicaSet]
    ) -> tuple[ReplicaSet | None, list[ReplicaSet]]:
        """Return the ReplicaSet with the Deployment's template, up to date, or None; and the others, oldest first."""
        new = _find_new(deployment, sets)
        old = [item for item in sets if item is not new]
        if new is not None:
            new = self._sync_set(deployment, new, _next_revision(old))
            self._note_revision(deployment, new)
        return new, old

    def _create_set(self, deployment: Deployment, old: list[ReplicaSet], now_ns: int) -> ReplicaSet:
        """Create the ReplicaSet with the Deployment's template; `old` are the others."""
        metadata, spec = deployment.metadata, deployment.spec
        collisions = deployment.status.collision_count
        digest = template_hash(spec.template, collisions)
        while self.store.get(ReplicaSet, f"{metadata.namespace}/{replica_set_name(metadata.name, digest)}") is not None:
            # The name is taken, by a different template with the same hash or by another owner's ReplicaSet.
            collisions = (collisions or 0) + 1
            digest = template_hash(spec.template, collisions)
        if collisions != deployment.status.collision_count:
            self.writer.update(replace(deployment, status=replace(deployment.status, collision_count=collisions)))
        labels = {**spec.template.metadata.labels, TEMPLATE_HASH_LABEL: digest}
        selector = spec.selector if spec.selector is not None else LabelSelector()
        replica_set = ReplicaSet(
            metadata=ObjectMeta(
                name=replica_set_name(metadata.name, digest),
                namespace=metadata.namespace,
                labels=labels,
                annotations={
                    **_copied_annotations(deployment),
                    REVISION_ANNOTATION: str(_next_revision(old)),
                    **_scale_annotations(deployment),
                },
                owner_references=(controller_reference(deployment),),
                generation=1,
            ),
            spec=ReplicaSetSpec(
                replicas=new_set_size(deployment, 0, sum(map(set_replicas, old))),
                min_ready_seconds=spec.min_ready_seconds,
                selector=replace(selector, match_labels={**selector.match_labels, TEMPLATE_HASH_LABEL: digest}),
                template=replace(spec.template, metadata=replace(spec.template.metadata, labels=labels)),
            ),
        )
        created = self.writer.create(replica_set, now_ns)
        if created.spec.replicas:
            text = f"Scaled up replica set {created.metadata.name} from 0 to {created.spec.replicas}"
            self.record(deployment, "ScalingReplicaSet", text)
        self._note_revision(deployment, created)
        return created

    def _sync_set(self, deployment: Deployment, item: ReplicaSet, revision: int) -> ReplicaSet:
        """Update the fields that a ReplicaSet copies from its Deployment; the revision never decreases."""
        annotations = {**item.metadata.annotations, **_copied_annotations(deployment)}
        if (older := _revision(item)) < revision:
            annotations[REVISION_ANNOTATION] = str(revision)
            if older:
                # The Deployment returns to this ReplicaSet.
                annotations[REVISION_HISTORY_ANNOTATION] = _with_revision(annotations, older)
        min_ready_seconds = deployment.spec.min_ready_seconds
        if annotations == item.metadata.annotations and min_ready_seconds == item.spec.min_ready_seconds:
            return item
        metadata, spec = replace(item.metadata, annotations=annotations), item.spec
        if min_ready_seconds != spec.min_ready_seconds:
            spec = replace(spec, min_ready_seconds=min_ready_seconds)
            metadata = replace(metadata, generation=metadata.generation + 1)
        return self.writer.update(replace(item, metadata=metadata, spec=spec))

    def _note_revision(self, deployment: Deployment, new: ReplicaSet) -> None:
        revision = new.metadata.annotations.get(REVISION_ANNOTATION, "")
        stored = self.store.get(Deployment, deployment.key) or deployment
        if revision and stored.metadata.annotations.get(REVISION_ANNOTATION) != revision:
            annotations = {**stored.metadata.annotations, REVISION_ANNOTATION: revision}
            self.writer.update(replace(stored, metadata=replace(stored.metadata, annotations=annotations)))

    def _clean_up(self, deployment: Deployment, old: list[ReplicaSet], now_ns: int) -> None:
        """Delete the oldest empty ReplicaSets beyond the revision history limit."""
        limit = deployment.spec.revision_history_limit
        limit = DEFAULT_REVISION_HISTORY_LIMIT if limit is None else limit
        if limit == _UNLIMITED:
            return
        alive = [item for item in old if item.metadata.deletion_timestamp is None]
        surplus = max(len(alive) - limit, 0)
        for item in sorted(alive, key=_revision)[:surplus]:
            seen = item.metadata.generation <= item.status.observed_generation
            if seen and item.status.replicas == 0 and set_replicas(item) == 0:
                self.writer.delete(item, now_ns)

    # --- status -------------------------------------------------------------------------------------------------------

    def _write_status(self, deployment: Deployment, sets: list[ReplicaSet], now_ns: int) -> None:
        new = _find_new(deployment, sets)
        available = sum(item.status.available_replicas for item in sets)
        least = desired_replicas(deployment) - rollout_limits(deployment)[1]
        conditions = _with_availability(deployment.status.conditions, available >= least, now_ns)
        if not deployment.spec.paused and deployment.metadata.deletion_timestamp is None:
            conditions = _with_failure(conditions, sets if new is None else (new, *sets))
        status = replace(
            deployment.status,
            observed_generation=deployment.metadata.generation,
            replicas=sum(item.status.replicas for item in sets),
            updated_replicas=new.status.replicas if new is not None else 0,
            ready_replicas=sum(item.status.ready_replicas for item in sets),
            available_replicas=available,
            unavailable_replicas=max(sum(map(set_replicas, sets)) - available, 0),
            terminating_replicas=sum(item.status.terminating_replicas or 0 for item in sets),
            conditions=conditions,
        )
        if status != deployment.status:
            # Clean up after a complete rollout now: this change of the status does not cause another reconcile.
            changed = self.writer.update(replace(deployment, status=status))
            if _is_complete(changed) and not changed.spec.paused and changed.metadata.deletion_timestamp is None:
                self._clean_up(changed, [item for item in sets if item is not new], now_ns)


def _parts(deployment: Deployment, sets: list[ReplicaSet]) -> list[object]:
    """Return the objects that a rollout depends on, except the status of the ReplicaSets."""
    parts: list[object] = [deployment.spec, deployment.metadata.annotations]
    for item in sets:
        parts += (item.spec, item.metadata.annotations)
    return parts


def _find_new(deployment: Deployment, sets: list[ReplicaSet]) -> ReplicaSet | None:
    """Return the oldest ReplicaSet that has the Deployment's template, or None."""
    template = deployment.spec.template
    return next((item for item in sets if _same_template(item.spec.template, template)), None)


def _is_controlled_by(item: ReplicaSet, uid: str) -> bool:
    controller = item.metadata.controller()
    return controller is not None and controller.uid == uid


def _same_template(one: PodTemplateSpec, other: PodTemplateSpec) -> bool:
    """Return whether two templates are equal except for the hash label."""
    if one.spec is not other.spec and one.spec != other.spec:
        return False
    labels, other_labels = dict(one.metadata.labels), dict(other.metadata.labels)
    labels.pop(TEMPLATE_HASH_LABEL, None)
    other_labels.pop(TEMPLATE_HASH_LABEL, None)
    return labels == other_labels and replace(one.metadata, labels=labels) == replace(other.metadata, labels=labels)


def _is_scaling(deployment: Deployment, sets: list[ReplicaSet]) -> bool:
    """Return whether a Deployment was scaled since its active ReplicaSets were last resized."""
    desired = desired_replicas(deployment)
    for item in sets:
        noted = read_count(item, DESIRED_REPLICAS_ANNOTATION)
        if set_replicas(item) > 0 and noted is not None and noted != desired:
            return True
    return False


def _is_saturated(deployment: Deployment, item: ReplicaSet) -> bool:
    desired = desired_replicas(deployment)
    noted = read_count(item, DESIRED_REPLICAS_ANNOTATION)
    return set_replicas(item) == desired == noted and item.status.available_replicas == desired


def _is_complete(deployment: Deployment) -> bool:
    status, desired = deployment.status, desired_replicas(deployment)
    return (
        status.updated_replicas == status.replicas == status.available_replicas == desired
        and status.observed_generation >= deployment.metadata.generation
    )


def _next_revision(old: list[ReplicaSet]) -> int:
    return max(map(_revision, old), default=0) + 1


def _revision(item: ReplicaSet) -> int:
    text = item.metadata.annotations.get(REVISION_ANNOTATION, "")
    return whole_number(text) if text.isascii() and text.isdecimal() else 0


def _with_revision(annotations: dict[str, str], older: int) -> str:
    """Return the former revisions of a ReplicaSet, extended by one; the oldest are dropped if the text gets too long."""
    revisions = [each for each in annotations.get(REVISION_HISTORY_ANNOTATION, "").split(",") if each]
    revisions.append(str(older))
    while len(",".join(revisions)) > _MAX_HISTORY_CHARS:
        del revisions[0]
    return ",".join(revisions)


def _copied_annotations(deployment: Deployment) -> dict[str, str]:
    annotations = deployment.metadata.annotations
    return {name: value for name, value in annotations.items() if name not in _NOT_COPIED}


def _scale_annotations(deployment: Deployment) -> dict[str, str]:
    desired = desired_replicas(deployment)
    return {
        DESIRED_REPLICAS_ANNOTATION: str(desired),
        MAX_REPLICAS_ANNOTATION: str(desired + rollout_limits(deployment)[0]),
    }


def _with_availability(conditions: tuple[Condition, ...], available: bool, now_ns: int) -> tuple[Condition, ...]:
    status = "True" if available else "False"
    if any(item.type == "Available" and item.status == status for item in conditions):
        return conditions
    condition = Condition(
        type="Available",
        status=status,
        reason="MinimumReplicasAvailable" if available else "MinimumReplicasUnavailable",
        message=f"Deployment {'has' if available else 'does not have'} minimum availability.",
        last_transition_time=format_time(now_ns),
    )
    return (*(item for item in conditions if item.type != "Available"), condition)


def _with_failure(conditions: tuple[Condition, ...], sets: Sequence[ReplicaSet]) -> tuple[Condition, ...]:
    """Return conditions with the first condition `REPLICA_FAILURE` of ReplicaSets, or without any.

    A condition with the same status and reason is not changed, as upstream.
    """
    found = next((each for item in sets for each in item.status.conditions if each.type == REPLICA_FAILURE), None)
    known = next((each for each in conditions if each.type == REPLICA_FAILURE), None)
    if found is known or (found and known and (found.status, found.reason) == (known.status, known.reason)):
        return conditions
    others = tuple(each for each in conditions if each.type != REPLICA_FAILURE)
    return others if found is None else (*others, found)
