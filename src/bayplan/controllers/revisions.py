"""Revision history of the templates of StatefulSets and DaemonSets.

Upstream stores them as ControllerRevision objects. Scheduling does not read those, so here the controller keeps them in memory. On
a recorded cluster the revision label of the pods is taken as the revision of the current template (`RevisionHistory.adopt`).
"""

from __future__ import annotations

import msgspec

from bayplan.cluster.naming import template_hash
from bayplan.objects.workloads import PodTemplateSpec

REVISION_LABEL = "controller-revision-hash"


class Revision(msgspec.Struct, frozen=True):
    """One version of a template.

    Attributes:
        hash: what its pods carry (DaemonSet), or the end of what they carry (StatefulSet).
        template: the version.
    """

    hash: str
    template: PodTemplateSpec


class RevisionHistory:
    """Versions in the order in which they were last asked for, newest at the end."""

    def __init__(self) -> None:
        self.revisions: list[Revision] = []

    def adopt(self, hash_: str, template: PodTemplateSpec) -> None:
        """Start with a version that pods carry already."""
        self.revisions = [Revision(hash_, template)]

    def current(self, template: PodTemplateSpec) -> Revision:
        """Return the version of a template: the newest if it is that, an older one made newest, or a new one."""
        revisions = self.revisions
        if revisions and revisions[-1].template is template:
            return revisions[-1]
        for revision in reversed(revisions):
            if revision.template == template:
                # Going back to an older version makes it the newest again, under its old hash.
                revisions.remove(revision)
                break
        else:
            revision = Revision(self._free_hash(template), template)
        revisions.append(revision)
        return revision

    def find(self, hash_: str) -> Revision | None:
        """Return the version with a hash, or None."""
        return next((revision for revision in self.revisions if revision.hash == hash_), None)

    def truncate(self, limit: int, live: set[str]) -> None:
        """Forget the oldest versions that no pod and no status names, past a limit."""
        unused = [revision for revision in self.revisions[:-1] if revision.hash not in live]
        for revision in unused[: max(len(unused) - limit, 0)]:
            self.revisions.remove(revision)

    def _free_hash(self, template: PodTemplateSpec) -> str:
        collisions = 0
        taken = [revision.hash for revision in self.revisions]
        while (digest := template_hash(template, collisions)) in taken:
            collisions += 1
        return digest
