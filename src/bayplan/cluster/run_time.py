"""Annotations for a pod's run time and exit code, and the restart policies of pods that end by themselves."""

from __future__ import annotations

from typing import cast

from bayplan.base.plain_data import Document

RUN_TIME_ANNOTATION = "bayplan.io/run-time"
EXIT_CODE_ANNOTATION = "bayplan.io/exit-code"

FOREVER = "forever"
"""The run time of pods that run until they are deleted, whatever their restart policy."""

ENDS_BY_ITSELF = ("Never", "OnFailure")
"""Restart policies of pods that are expected to end by themselves."""


def run_forever(pod: Document) -> None:
    """Annotate a pod from another cluster so that no default run time applies to it.

    A pod that already has a run time is not changed.

    Args:
        pod: the document of the pod, modified in place.
    """
    spec = cast("Document", pod.get("spec") or {})
    if spec.get("restartPolicy") not in ENDS_BY_ITSELF:
        return
    metadata = cast("Document", pod.setdefault("metadata", {}))
    annotations = cast("Document", metadata.get("annotations") or {})
    if RUN_TIME_ANNOTATION not in annotations:
        metadata["annotations"] = {**annotations, RUN_TIME_ANNOTATION: FOREVER}
