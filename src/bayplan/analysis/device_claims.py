"""Why the resource claims of a pod can't be allocated: no device matches them, or the matching devices are taken."""

from __future__ import annotations

from bayplan.analysis.surroundings import Surroundings


def unallocated_claims(surroundings: Surroundings) -> str:
    """Return why no node has free devices for the claims of a pod."""
    matching = surroundings.nodes_with_devices()
    if matching is None:
        return "no node has free devices that match all of its resource claims"
    if not matching:
        return "no node has devices that match all of its resource claims, not even taken ones"
    where = matching[0] if len(matching) == 1 else f"{len(matching):,} nodes"
    return f"the devices that match all of its resource claims, on {where}, are taken"
