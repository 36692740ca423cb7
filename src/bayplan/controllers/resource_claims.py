"""Release of unused resource claims: removes reservations, frees devices, and deletes claims created for a pod.

The other half of upstream's claim controller, which creates claims from templates, is `pod_claims`. Not implemented:
pod groups as consumers. Source: pkg/controller/resourceclaim v1.36.3,
https://kubernetes.io/docs/concepts/scheduling-eviction/dynamic-resource-allocation/
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from bayplan.cluster.owned_pods import is_finished
from bayplan.cluster.store import DELETED, ChangeEvent
from bayplan.controllers.controller import Controller, ControllerTools
from bayplan.objects.meta import OwnerReference
from bayplan.objects.pod import Pod
from bayplan.objects.resource import ResourceClaim, ResourceClaimConsumerReference

DELETE_PROTECTION = "resource.kubernetes.io/delete-protection"
"""The finalizer that prevents the deletion of an allocated claim."""


class ResourceClaimController(Controller):
    """Reconciles resource claims, by key."""

    kind = ResourceClaim
    watches = (ResourceClaim,)

    def __init__(self, tools: ControllerTools) -> None:
        super().__init__(tools)
        self._has_claims = False

    @property
    def watches_pods(self) -> bool:
        """Whether any claim was ever observed; until then the controller needs no events of pods."""
        return self._has_claims

    def keys_for(self, event: ChangeEvent) -> Iterable[str]:
        """Return the key of a new or changed claim, or the keys of the claims of a pod that no longer needs them."""
        item = event.object
        if not isinstance(item, Pod):
            self._has_claims = True
            return (item.key,) if event.type != DELETED else ()
        if event.type != DELETED and not _is_done(item):
            return ()
        return self._claims_of(item)

    def _claims_of(self, pod: Pod) -> list[str]:
        """Return the keys of a pod's claims: named and generated claims, and the claim for its extended resources."""
        namespace = pod.metadata.namespace
        named = [entry.resource_claim_name for entry in pod.spec.resource_claims]
        keys = [f"{namespace}/{name}" for name in named if name]
        return [*keys, *(claim.key for claim in self.store.dependents(pod.metadata.uid, ResourceClaim))]

    def reconcile(self, key: str, now_ns: int) -> int | None:
        """Remove ended consumers from a claim, and release its devices when the last consumer has ended.

        Delete the claim if its pod has ended.
        """
        claim = self.store.get(ResourceClaim, key)
        if claim is None:
            return None
        users = claim.status.reserved_for
        left = tuple(user for user in users if self._still_uses(claim, user))
        if len(left) < len(users):
            # Devices are released with the last consumer: a claim that never had a consumer may stay allocated.
            gives_back = not left and DELETE_PROTECTION in claim.metadata.finalizers
            claim = self._write(claim, left, is_allocated=not gives_back)
        elif not left and claim.metadata.deletion_timestamp is not None:
            claim = self._write(claim, left, is_allocated=False)
        if claim.status.allocation is None and (
            len(left) < len(users) or claim.metadata.deletion_timestamp is not None
        ):
            self.writer.drop_finalizer(claim, DELETE_PROTECTION)
        claim = self.store.get(ResourceClaim, key)
        owner = _owning_pod(claim) if claim is not None and not left else None
        if claim is not None and owner is not None and self._owner_is_done(claim, owner):
            self.writer.delete(claim, now_ns)
        return None

    def _write(
        self, claim: ResourceClaim, users: tuple[ResourceClaimConsumerReference, ...], *, is_allocated: bool
    ) -> ResourceClaim:
        allocation = claim.status.allocation if is_allocated else None
        status = replace(claim.status, reserved_for=users, allocation=allocation)
        if not is_allocated:
            # A driver's device status is meaningless without an allocation; the API server drops it.
            status = replace(status, devices=())
        return claim if status == claim.status else self.writer.update(replace(claim, status=status))

    def _still_uses(self, claim: ResourceClaim, user: ResourceClaimConsumerReference) -> bool:
        """Return whether a reservation is still valid; reservations of consumers other than pods always are."""
        if user.api_group or user.resource != "pods":
            return True
        pod = self.store.pods.get(f"{claim.metadata.namespace}/{user.name}")
        return pod is not None and pod.metadata.uid == user.uid and not _is_done(pod)

    def _owner_is_done(self, claim: ResourceClaim, owner: OwnerReference) -> bool:
        """Return whether a claim's pod was replaced or has ended.

        The garbage collector handles claims of deleted pods.
        """
        pod = self.store.pods.get(f"{claim.metadata.namespace}/{owner.name}")
        return pod is not None and (pod.metadata.uid != owner.uid or _is_done(pod))


def _is_done(pod: Pod) -> bool:
    """Return whether a pod has finished, or is being deleted without a node, so that it never runs again."""
    return is_finished(pod) or (pod.metadata.deletion_timestamp is not None and not pod.spec.node_name)


def _owning_pod(claim: ResourceClaim) -> OwnerReference | None:
    owner = claim.metadata.controller()
    return owner if owner is not None and owner.kind == "Pod" and owner.api_version == "v1" else None
