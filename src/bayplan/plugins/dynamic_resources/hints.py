"""The queueing hints of DynamicResources: which events may help a pod whose claims could not be served. Source: KEP-4247."""

from __future__ import annotations

from bayplan.framework.events import HintAnswer, objects_of
from bayplan.objects.pod import Pod
from bayplan.objects.resource import ResourceClaim
from bayplan.plugins.dynamic_resources.claim_tracker import ClaimTracker, uid_of
from bayplan.plugins.dynamic_resources.claims import ClaimsUnusable, pod_claims


class ClaimHints:
    """The hints, for the claims of a cluster."""

    def __init__(self, tracker: ClaimTracker) -> None:
        self._tracker = tracker

    def is_schedulable_after_claim_change(self, pod: Pod, old: object | None, new: object | None) -> HintAnswer:
        """Queue a pod whose claims all exist where one of them came or changed, or where any claim gave its devices back."""
        objects = objects_of(ResourceClaim, old, new)
        if objects is None:
            return HintAnswer.ERROR
        before, after = objects
        if after is None:
            return HintAnswer.ERROR
        try:
            claims = pod_claims(pod, self._tracker)
        except ClaimsUnusable:
            return HintAnswer.SKIP
        if before is not None and before.status.allocation is not None and after.status.allocation is None:
            return HintAnswer.QUEUE
        if all(uid_of(claim) != uid_of(after) for claim in claims):
            return HintAnswer.SKIP
        return HintAnswer(before is None or before.status != after.status)

    def is_schedulable_after_pod_change(self, pod: Pod, old: object | None, new: object | None) -> HintAnswer:
        """Queue the pod if all of its own claims exist now."""
        objects = objects_of(Pod, None, new)
        if objects is None or objects[1] is None:
            return HintAnswer.ERROR
        after = objects[1]
        if pod.metadata.uid != after.metadata.uid:
            return HintAnswer.SKIP
        try:
            pod_claims(after, self._tracker)
        except ClaimsUnusable:
            return HintAnswer.SKIP
        return HintAnswer.QUEUE
