"""Revision history of the templates of StatefulSets and DaemonSets.

Upstream stores revisions as ControllerRevision objects. Scheduling does not read them, so the history is in memory
only. If a dump of a cluster has no ControllerRevisions, the revision that the cluster's controllers observed last
counts as the revision of the current template (`observed_hash`), so that loading the dump restarts no pods.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from bayplan.cluster.naming import template_hash
from bayplan.objects.pod import Pod
from bayplan.objects.workloads import DaemonSet, PodTemplateSpec, StatefulSet

REVISION_LABEL = "controller-revision-hash"


class Revision(msgspec.Struct, frozen=True):
    """One revision of a template.

    Attributes:
        hash: the revision label of its pods (DaemonSet), or the end of that label (StatefulSet).
        template: the template.
    """

    hash: str
    template: PodTemplateSpec


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

    def truncate(self, limit: int, live: set[str]) -> None:
        """Drop the oldest unused revisions beyond a limit.

        The newest revision and those whose hash is in `live` are in use and do not count.
        """
        unused = [revision for revision in self.revisions[:-1] if revision.hash not in live]
        for revision in unused[: max(len(unused) - limit, 0)]:
            self.revisions.remove(revision)

    def _free_hash(self, template: PodTemplateSpec) -> str:
        collisions = 0
        taken = [revision.hash for revision in self.revisions]
        while (digest := template_hash(template, collisions)) in taken:
            collisions += 1
        return digest


def observed_hash(item: StatefulSet | DaemonSet, pods: Iterable[Pod]) -> str:
    """Return the revision hash of the current template as the status and the pods of a set show it; "" if unknown.

    A StatefulSet names the revision in its status. A DaemonSet does not, so the hash is taken from its newest pod; pods
    older than the set had another owner before.

    Args:
        item: the set. If its status describes an older generation, the hash is unknown.
        pods: the active pods of the set.
    """
    if item.status.observed_generation != item.metadata.generation:
        return ""
    if isinstance(item, StatefulSet):
        return hash_in(item.status.update_revision)
    newest, found = item.metadata.creation_timestamp or "", ""
    for pod in pods:
        created = pod.metadata.creation_timestamp or newest
        if created >= newest:
            newest, found = created, pod.metadata.labels.get(REVISION_LABEL, "")
    return found


def hash_in(name: str) -> str:
    """Return the hash at the end of a revision's name."""
    return name.rpartition("-")[2] if name else ""
