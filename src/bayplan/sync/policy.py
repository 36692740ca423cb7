"""What a user may say about following a cluster. Each default is the one with which results here mean something."""

from __future__ import annotations

from dataclasses import dataclass

SOURCE_APPLIED = "bayplan.io/source-applied"
"""The annotation that says what of a copy was written last, by hashes: see `bayplan.sync.applied_fields`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncPolicy:
    """How the source is followed.

    Attributes:
        keep_nodes: let pods that run in the source when following begins keep their nodes. They are what the scheduler here finds,
            as the one there did; without them, it would be asked to place everything anew on an empty cluster.
        update_scheduled_pods: apply what changes in the source about pods that are scheduled there: labels, annotations,
            tolerations, resources. By default such changes stay away, because they would reach a pod that may be elsewhere here.
        follow: whether the source is followed after the beginning. Else claims that have no volume there get one here.
        source_volumes: let claims that wait for their first consumer come with the volumes that the source makes for them, when
            it has. By default volumes are made here for them, because where they are is a decision of the scheduler.
        namespaces: only these; empty for all.
        selector: of labels of pods; "" for all pods.
    """

    keep_nodes: bool = True
    update_scheduled_pods: bool = False
    follow: bool = True
    source_volumes: bool = False
    namespaces: tuple[str, ...] = ()
    selector: str = ""
