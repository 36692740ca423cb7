"""Revision history of the templates of StatefulSets and DaemonSets.

Upstream stores revisions as ControllerRevision objects. Scheduling does not read those, so the history is in memory
only. For a recorded cluster without them, the hash of the current template's revision is taken from the status and the
pods (`observed_stateful_set_hash`, `observed_daemon_set_hash`), so that loading a dump restarts no updated pods.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator

import msgspec

from bayplan.cluster.naming import template_hash
from bayplan.cluster.owned_pods import is_active
from bayplan.controllers.daemon_nodes import target_node
from bayplan.objects.pod import Pod
from bayplan.objects.workloads import (
    DEFAULT_REVISION_HISTORY_LIMIT,
    DaemonSet,
    DaemonSetStatus,
    PodTemplateSpec,
    StatefulSet,
)

REVISION_LABEL = "controller-revision-hash"


class Revision(msgspec.Struct, frozen=True):
    """One revision of a template.

    Attributes:
        hash: the revision label of its pods (DaemonSet), or the end of that label (StatefulSet).
        template: the template.
    """

    hash: str
    template: PodTemplateSpec


StoredRevisions = Callable[[StatefulSet | DaemonSet], list[Revision]]
"""Returns the revisions of a set that an earlier process stored, oldest first."""


def no_stored_revisions(item: StatefulSet | DaemonSet) -> list[Revision]:
    """Return no revisions: nothing stores them."""
    return []


class RevisionHistory:
    """The revisions of one object, the most recently used at the end."""

    def __init__(self) -> None:
        self.revisions: list[Revision] = []

    def adopt(self, hash_: str, template: PodTemplateSpec) -> None:
        """Reset the history to one revision, with a hash that existing pods have."""
        self.revisions = [Revision(hash_, template)]

    def current(self, template: PodTemplateSpec) -> Revision:
        """Return the revision with an equal template, and make it the newest; create it if there is none."""
        revisions = self.revisions
        if revisions and revisions[-1].template is template:
            return revisions[-1]
        for revision in reversed(revisions):
            if revision.template == template:
                # Going back to an older revision makes it the newest again, under its old hash.
                revisions.remove(revision)
                break
        else:
            revision = Revision(self._free_hash(template), template)
        revisions.append(revision)
        return revision

    def find(self, hash_: str) -> Revision | None:
        """Return the revision with a hash, or None."""
        return next((revision for revision in self.revisions if revision.hash == hash_), None)

    def truncate(self, limit: int | None, live: set[str]) -> None:
        """Drop the oldest unused revisions beyond a limit; None is the default limit.

        The newest revision and those whose hash is in `live` are in use and do not count.
        """
        limit = DEFAULT_REVISION_HISTORY_LIMIT if limit is None else limit
        unused = [revision for revision in self.revisions[:-1] if revision.hash not in live]
        for revision in unused[: max(len(unused) - limit, 0)]:
            self.revisions.remove(revision)

    def _free_hash(self, template: PodTemplateSpec) -> str:
        collisions = 0
        taken = [revision.hash for revision in self.revisions]
        while (digest := template_hash(template, collisions)) in taken:
            collisions += 1
        return digest


def observed_stateful_set_hash(item: StatefulSet) -> str:
    """Return the hash of the current template's revision as the status names it; "" if the status is of an older generation."""
    return hash_in(item.status.update_revision) if _is_observed(item) else ""


def observed_daemon_set_hash(item: DaemonSet, pods: Iterable[Pod]) -> str:
    """Return the hash of the current template's revision, derived from the status and the pods of a DaemonSet; "" if unknown.

    The status only contains the number of nodes whose oldest pod is updated (`updatedNumberScheduled`), so return the
    hash of the oldest pods on that many nodes. If several hashes or none have this count, the newest pod decides.

    Args:
        item: the DaemonSet. The hash is unknown if its status is of an older generation, or counts no updated pod.
        pods: its active pods.
    """
    if not _is_observed(item) or not item.status.updated_number_scheduled:
        return ""
    labelled = [pod for pod in pods if REVISION_LABEL in pod.metadata.labels]
    labelled.sort(key=lambda pod: (pod.metadata.creation_timestamp or "", pod.metadata.name))
    oldest: dict[str, str] = {}
    for pod in labelled:
        oldest.setdefault(target_node(pod) or pod.key, pod.metadata.labels[REVISION_LABEL])
    counts = Counter(oldest.values())
    newest_first = [pod.metadata.labels[REVISION_LABEL] for pod in reversed(labelled)]
    matching = (hash_ for hash_ in newest_first if counts[hash_] == item.status.updated_number_scheduled)
    return next(matching, newest_first[0] if newest_first else "")


def unknown_revisions(daemon_sets: Iterable[DaemonSet], pods: Iterable[Pod]) -> Iterator[tuple[DaemonSet, str]]:
    """Yield the DaemonSets of a recorded cluster whose pods a rolling update replaces, and what happens to the pods and why.

    If the hash of the current revision is unknown (see `observed_daemon_set_hash`), all pods count as outdated. This is
    often so in a dump that was written by hand.

    Args:
        daemon_sets: the DaemonSets, with their defaults.
        pods: the pods of the cluster.
    """
    by_owner: dict[str, list[Pod]] = {}
    for pod in pods:
        owner = pod.metadata.controller()
        if owner is not None and owner.kind == DaemonSet.__name__ and is_active(pod):
            by_owner.setdefault(owner.uid, []).append(pod)
    for item in daemon_sets:
        owned = by_owner.get(item.metadata.uid, ()) if item.metadata.uid else ()
        if not owned or item.spec.update_strategy.type not in ("", "RollingUpdate"):
            continue
        if observed_daemon_set_hash(item, owned):
            continue
        if item.status == DaemonSetStatus():
            reason = "without a status"
        elif not any(REVISION_LABEL in pod.metadata.labels for pod in owned):
            reason = f"without the label {REVISION_LABEL}"
        elif not _is_observed(item):
            reason = "with a status of another generation"
        else:
            reason = "with a status that counts no updated pod"
        count, whose = (f"its {len(owned):,} pods are", "their") if len(owned) > 1 else ("its pod is", "its")
        yield item, f"{count} replaced, because {reason} the revision of {whose} template is unknown"


def _is_observed(item: StatefulSet | DaemonSet) -> bool:
    return item.status.observed_generation == item.metadata.generation


def hash_in(name: str) -> str:
    """Return the hash at the end of a revision's name."""
    return name.rpartition("-")[2] if name else ""
