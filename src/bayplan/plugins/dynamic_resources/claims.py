"""The scheduler's view of claims, and the resource claims of a pod.

Reserve chooses devices long before the API receives the allocation. Until PreBind has written it, the allocation is *in
flight*: no other pod may use the claim or its devices. The claims that PreBind wrote replace those of the cluster until
the cluster has newer ones. Both are stored in the catalog, so that all profiles of a scheduler see them, and forks of
the state contain them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from bayplan.base.go_text.quoting import quote
from bayplan.objects.pod import Pod, PodResourceClaim
from bayplan.objects.resource import AllocationResult, ResourceClaim
from bayplan.state.object_catalog import ObjectCatalog


def uid_of(claim: ResourceClaim) -> str:
    """Return the identifier of a claim: its UID, or its key if it has no UID."""
    return claim.metadata.uid or claim.key


class InFlightClaim(msgspec.Struct, frozen=True):
    """A claim whose allocation has been chosen but not written yet.

    Attributes:
        claim: the claim with the allocation.
        sharers: the number of pods that wait for the allocation.
        written_as: the key under which the special claim is being created; "" before that, and for other claims.
        version: the catalog's version of claims when the creation began.
    """

    claim: ResourceClaim
    sharers: int = 1
    written_as: str = ""
    version: int = 0


class AssumedClaim(msgspec.Struct, frozen=True):
    """The scheduler's version of a claim, and the cluster's version on which it is based."""

    base: ResourceClaim
    claim: ResourceClaim


class ClaimTracker:
    """Reads and writes the claims of a catalog."""

    __slots__ = ("_catalog",)

    def __init__(self, catalog: ObjectCatalog) -> None:
        self._catalog = catalog

    @property
    def version(self) -> tuple[int, int, int]:
        """Return a value that changes whenever any claim may have changed."""
        catalog = self._catalog
        return (catalog.version(ResourceClaim), catalog.version(InFlightClaim), catalog.version(AssumedClaim))

    def get(self, key: str) -> ResourceClaim | None:
        """Return a claim by its key, or None: the assumed version if there is one, else that of the cluster."""
        claim = self._catalog.get(ResourceClaim, key)
        return None if claim is None else self._latest(claim)

    def all(self) -> Iterator[ResourceClaim]:
        """Yield all claims; assumed versions replace those of the cluster."""
        for claim in self._catalog.all(ResourceClaim):
            yield self._latest(claim)

    def changed_since(self, version: tuple[int, int, int]) -> tuple[list[str], list[str]] | None:
        """Return the keys and in-flight UIDs of the claims that may have changed since a `version`; None if unknown."""
        claims = self._catalog.written(ResourceClaim, version[0])
        in_flight = self._catalog.written(InFlightClaim, version[1])
        assumed = self._catalog.written(AssumedClaim, version[2])
        if claims is None or in_flight is None or assumed is None:
            return None
        return list(dict.fromkeys(claims + assumed)), list(dict.fromkeys(in_flight))

    def _latest(self, claim: ResourceClaim) -> ResourceClaim:
        entry = self._catalog.get(AssumedClaim, claim.key)
        return entry.claim if entry is not None and claim.is_version_of(entry.base) else claim

    def assume(self, claim: ResourceClaim) -> None:
        """Assume a version of a claim until the cluster has a newer one, if the cluster has the claim."""
        base = self._catalog.get(ResourceClaim, claim.key)
        if base is not None:
            self._catalog.put(claim.key, AssumedClaim(base, claim))

    def restore(self, key: str) -> None:
        """Drop the assumed version of a claim."""
        if self._catalog.get(AssumedClaim, key) is not None:
            self._catalog.remove(AssumedClaim, key)

    # In flight.

    def in_flight(self) -> Iterator[str]:
        """Yield the UIDs of the claims in flight."""
        return (uid_of(entry.claim) for entry in list(self._catalog.all(InFlightClaim)))

    def claim_in_flight(self, uid: str) -> tuple[ResourceClaim | None, str]:
        """Return a claim in flight with its allocation, or None, and the key under which it is being created, or "".

        A claim that has appeared in the cluster is no longer in flight.
        """
        entry = self._catalog.get(InFlightClaim, uid)
        if entry is None:
            return None, ""
        if self._is_known(entry):
            self._catalog.remove(InFlightClaim, uid)
            return None, ""
        return entry.claim, entry.written_as

    def pending_allocation(self, uid: str) -> AllocationResult | None:
        """Return a claim's allocation in flight, or None."""
        entry = self._catalog.get(InFlightClaim, uid)
        return None if entry is None or self._is_known(entry) else entry.claim.status.allocation

    def _is_known(self, entry: InFlightClaim) -> bool:
        """Return whether a claim that was being created has appeared in the cluster, even if it was deleted since."""
        if not entry.written_as:
            return False
        written = self._catalog.written(ResourceClaim, entry.version)
        return written is None or entry.written_as in written

    def write(self, uid: str, key: str) -> None:
        """Record the key under which a claim in flight is being created; it is in flight until the cluster has it."""
        entry = self._catalog.get(InFlightClaim, uid)
        if entry is not None:
            version = self._catalog.version(ResourceClaim)
            self._catalog.put(uid, msgspec.structs.replace(entry, written_as=key, version=version))

    def signal(self, claim: ResourceClaim) -> None:
        """Record an allocation in flight for one more pod; do not replace an earlier one of the same claim."""
        uid = uid_of(claim)
        entry = self._catalog.get(InFlightClaim, uid)
        self._catalog.put(uid, InFlightClaim(claim) if entry is None else InFlightClaim(entry.claim, entry.sharers + 1))

    def release(self, uid: str, *, force: bool = False) -> None:
        """Remove one pod from an allocation in flight, which ends with its last pod, or at once with `force`."""
        entry = self._catalog.get(InFlightClaim, uid)
        if entry is None:
            return
        if force or entry.sharers == 1:
            self._catalog.remove(InFlightClaim, uid)
        else:
            self._catalog.put(uid, InFlightClaim(entry.claim, entry.sharers - 1))


class ClaimsUnusable(Exception):
    """A pod can't use its claims now; the text is upstream's reason. Caught in this package."""


def _claim_of(pod: Pod, entry: PodResourceClaim) -> tuple[str | None, bool]:
    """Return the name of the claim for an entry of a pod's spec, and whether the pod must own the claim.

    The name is None if the template of the entry needs no claim.
    """
    metadata = pod.metadata
    if entry.resource_claim_name is not None:
        return entry.resource_claim_name, False
    if entry.resource_claim_template_name is None:
        raise ClaimsUnusable(
            f'pod "{metadata.namespace}/{metadata.name}", spec.resourceClaim {quote(entry.name)}: '
            "none of the supported fields are set"
        )
    for status in pod.status.resource_claim_statuses:
        if status.name == entry.name:
            return status.resource_claim_name, True
    raise ClaimsUnusable(f'pod "{metadata.namespace}/{metadata.name}": ResourceClaim not created yet')


def pod_claims(pod: Pod, tracker: ClaimTracker) -> Sequence[ResourceClaim]:
    """Return the claims of a pod in the order of its spec.

    Raises:
        ClaimsUnusable: a claim does not exist, is being deleted, or was created for another pod, or an entry is empty.
    """
    metadata = pod.metadata
    found = []
    for entry in pod.spec.resource_claims:
        name, must_own = _claim_of(pod, entry)
        if name is None:
            continue
        claim = tracker.get(f"{metadata.namespace}/{name}")
        if claim is None:
            raise ClaimsUnusable(f'could not find ResourceClaim "{metadata.namespace}/{name}"')
        if claim.metadata.deletion_timestamp is not None:
            raise ClaimsUnusable(f"resourceclaim {quote(name)} is being deleted")
        if must_own:
            controller = claim.metadata.controller()
            if controller is None or controller.uid != metadata.uid:
                raise ClaimsUnusable(
                    f"ResourceClaim {metadata.namespace}/{name} was not created for "
                    f"Pod {metadata.namespace}/{metadata.name} (Pod is not owner)"
                )
        found.append(claim)
    return found


def is_reserved_for(pod: Pod, claim: ResourceClaim) -> bool:
    """Return whether a pod is among the users of a claim."""
    return any(consumer.uid == pod.metadata.uid for consumer in claim.status.reserved_for)
