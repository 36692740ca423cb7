"""The resource claims of a pod, the reasons why it can't use them, and the hints about claims (KEP-4247)."""

from __future__ import annotations

from collections.abc import Sequence

from bayplan.base.go_text.quoting import quote
from bayplan.framework.events import hint
from bayplan.objects.pod import Pod, PodResourceClaim
from bayplan.objects.resource import ResourceClaim
from bayplan.plugins.dynamic_resources.claim_tracker import ClaimTracker, uid_of


class ClaimsUnusable(Exception):
    """A pod can't use its claims now; the text is upstream's reason. Caught in this package."""


def claim_of(pod: Pod, entry: PodResourceClaim) -> tuple[str | None, bool]:
    """Return the name of the claim for an entry of a pod's spec, and whether the pod must own the claim.

    The name is None if the template of the entry needs no claim.

    Raises:
        ClaimsUnusable: the claim of a template has not been created yet, or the entry is empty.
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
        ClaimsUnusable: a claim does not exist, is being deleted, or was created for another pod.
    """
    metadata = pod.metadata
    found = []
    for entry in pod.spec.resource_claims:
        name, must_own = claim_of(pod, entry)
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


class ClaimHints:
    """The queueing hints about claims."""

    def __init__(self, tracker: ClaimTracker) -> None:
        self._tracker = tracker

    @hint(ResourceClaim, new=True)
    def is_schedulable_after_claim_change(self, pod: Pod, before: ResourceClaim | None, after: ResourceClaim) -> bool:
        """Queue a pod whose claims all exist, if one is new or changed its status, or any claim was deallocated."""
        try:
            claims = pod_claims(pod, self._tracker)
        except ClaimsUnusable:
            return False
        if before is not None and before.status.allocation is not None and after.status.allocation is None:
            return True
        is_own = any(uid_of(claim) == uid_of(after) for claim in claims)
        return is_own and (before is None or before.status != after.status)

    @hint(Pod, new=True)
    def is_schedulable_after_pod_change(self, pod: Pod, before: Pod | None, after: Pod) -> bool:
        """Queue the pod if it is the changed pod, and all its claims exist now."""
        if pod.metadata.uid != after.metadata.uid:
            return False
        try:
            pod_claims(after, self._tracker)
        except ClaimsUnusable:
            return False
        return True
