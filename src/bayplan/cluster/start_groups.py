"""Pods that start working together, such as the workers of one training job.

With the annotation ``bayplan.io/runs-with: LABEL=COUNT``, a pod's run time starts when COUNT pods of its namespace with
the same value of LABEL have started. Until then, possibly forever, the pod occupies its node and does nothing.
"""

from __future__ import annotations

import msgspec

from bayplan.base.errors import InputError
from bayplan.base.go_arithmetic import whole_number
from bayplan.objects.pod import Pod

RUNS_WITH_ANNOTATION = "bayplan.io/runs-with"


class StartGroup(msgspec.Struct):
    """The pods of one group.

    Attributes:
        count: the number of pods that must have started.
        present: the started pods that wait for the others, by UID.
        complete: whether all were present at some time; later pods start working at once.
    """

    count: int
    present: dict[str, Pod] = msgspec.field(default_factory=dict)
    complete: bool = False


class StartGroups:
    """All groups of pods with the annotation."""

    def __init__(self) -> None:
        self._groups: dict[tuple[str, str, str], StartGroup] = {}

    def started(self, pod: Pod) -> list[Pod]:
        """Record that a pod has started. Return the pods whose run time starts now: the whole group, the pod alone, or none.

        Raises:
            InputError: the annotation is invalid.
        """
        text = pod.metadata.annotations.get(RUNS_WITH_ANNOTATION)
        if text is None:
            return [pod]
        label, count = _read(text, pod)
        key = (pod.metadata.namespace, label, pod.metadata.labels.get(label, ""))
        group = self._groups.setdefault(key, StartGroup(count))
        if group.complete:
            return [pod]
        group.present[pod.metadata.uid] = pod
        if len(group.present) < count:
            return []
        group.complete = True
        begins, group.present = [*group.present.values()], {}
        return begins

    def remove(self, pod: Pod) -> None:
        """Record that a pod was deleted. If its group is incomplete, the other pods wait for a replacement."""
        text = pod.metadata.annotations.get(RUNS_WITH_ANNOTATION)
        if text is not None:
            label, _ = _read(text, pod)
            group = self._groups.get((pod.metadata.namespace, label, pod.metadata.labels.get(label, "")))
            if group is not None:
                group.present.pop(pod.metadata.uid, None)


def _read(text: str, pod: Pod) -> tuple[str, int]:
    label, _, count = text.rpartition("=")
    if label and count.isascii() and count.isdigit() and whole_number(count) > 0:
        return label, whole_number(count)
    raise InputError(
        f"Pod {pod.key} $.metadata.annotations['{RUNS_WITH_ANNOTATION}']",
        wanted="LABEL=COUNT",
        got=repr(text),
        hint="'example.com/job=4'",
    )
