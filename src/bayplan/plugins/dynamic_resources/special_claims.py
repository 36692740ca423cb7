"""Find the claim that an earlier attempt made for a pod's extended resources, without looking at all claims."""

from __future__ import annotations

from bayplan.objects.pod import Pod
from bayplan.objects.resource import ResourceClaim
from bayplan.plugins.dynamic_resources.claim_tracker import ClaimTracker
from bayplan.plugins.dynamic_resources.extended_resources import find_special_claim, owners_of_special_claim


class SpecialClaims:
    """The special claims of a cluster by owner; reads the claims that were written since the last question."""

    def __init__(self, tracker: ClaimTracker) -> None:
        self._tracker = tracker
        self._seen: tuple[int, int, int] | None = None
        self._owners: dict[str, list[tuple[str, str]]] = {}
        self._keys: dict[tuple[str, str], dict[str, None]] = {}

    def find(self, pod: Pod) -> ResourceClaim | None:
        """Return the special claim of a pod, or None."""
        self._refresh()
        keys = self._keys.get((pod.metadata.name, pod.metadata.uid), {})
        if len(keys) > 1:
            # The first in the order in which they came.
            return find_special_claim(pod, self._tracker.all())
        for key in keys:
            return self._tracker.get(key)
        return None

    def _refresh(self) -> None:
        tracker, seen = self._tracker, self._seen
        if tracker.version == seen:
            return
        changed = tracker.changed_since(seen) if seen is not None else None
        self._seen = tracker.version
        if changed is None:
            self._owners.clear()
            self._keys.clear()
        for key in [claim.key for claim in tracker.all()] if changed is None else changed[0]:
            for owner in self._owners.pop(key, ()):
                del self._keys[owner][key]
                if not self._keys[owner]:
                    del self._keys[owner]
            claim = tracker.get(key)
            owners = owners_of_special_claim(claim) if claim is not None else []
            if owners:
                self._owners[key] = owners
                for owner in owners:
                    self._keys.setdefault(owner, {})[key] = None
