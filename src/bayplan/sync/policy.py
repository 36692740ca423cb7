"""Options of a sync. With the defaults, the local scheduling results are meaningful."""

from __future__ import annotations

from dataclasses import dataclass

SOURCE_APPLIED = "bayplan.io/source-applied"
"""The annotation with hashes of the last written fields of a copy: see `bayplan.sync.applied_fields`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncPolicy:
    """Options of a sync.

    Attributes:
        keep_nodes: whether pods that run in the source when the sync begins keep their nodes. They are the existing
            load for the local scheduler; without them, it would place all pods on an empty cluster.
        update_scheduled_pods: whether to apply changes of scheduled pods of the source: labels, annotations,
            tolerations, resources. By default they are ignored, because the local pod may be on a different node.
        follow: whether changes are synced after the initial objects. If not, claims without a volume get a volume
            locally, because the source can't bind them later.
        source_volumes: whether to copy the volumes of claims with WaitForFirstConsumer once the source has bound
            the claims. By default their volumes are created locally, because the location of a volume is a scheduling
            decision.
        namespaces: the namespaces to sync; empty for all.
        selector: the label selector of pods; "" for all pods.
    """

    keep_nodes: bool = True
    update_scheduled_pods: bool = False
    follow: bool = True
    source_volumes: bool = False
    namespaces: tuple[str, ...] = ()
    selector: str = ""
