"""Revision history of the templates of StatefulSets and DaemonSets.

Upstream stores revisions as ControllerRevision objects. Scheduling does not read those, so the history is in memory
only. On a recorded cluster, the revision label of the pods is taken as the revision of the current template
(`RevisionHistory.adopt`).
"""

from __future__ import annotations

import msgspec

from bayplan.cluster.naming import template_hash
from bayplan.objects.workloads import PodTemplateSpec

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
        """Return the revision with an equal template, created if there is none, and make it the newest."""
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
