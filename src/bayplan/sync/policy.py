"""What a user may say about following a cluster. Each default is the one with which results here mean something."""

from __future__ import annotations

from dataclasses import dataclass

SOURCE_UID = "bayplan.io/source-uid"
"""The annotation that says of which object in the source an object here is the copy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncPolicy:
    """How the source is followed.

    Attributes:
        keep_nodes: let pods that run in the source when following begins keep their nodes. They are what the scheduler here finds,
            as the one there did; without them, it would be asked to place everything anew on an empty cluster.
        update_scheduled_pods: apply what changes in the source about pods that are scheduled there: labels, annotations,
            tolerations, resources. By default such changes stay away, because they would reach a pod that may be elsewhere here.
        namespaces: only these; empty for all.
        selector: of labels of pods; "" for all pods.
    """

    keep_nodes: bool = True
    update_scheduled_pods: bool = False
    namespaces: tuple[str, ...] = ()
    selector: str = ""
