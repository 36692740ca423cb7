"""Pods that start working together, such as the workers of one training job.

With the annotation ``bayplan.io/runs-with: LABEL=COUNT``, a pod's run time starts when COUNT pods of its namespace with
the same value of LABEL have started. Until then, possibly forever, the pod occupies its node and does nothing.
When all pods of the group are deleted, pods with the same value of LABEL form a new group.
"""

from __future__ import annotations

import msgspec

from bayplan.base.errors import InputError
from bayplan.base.go_arithmetic import whole_number
from bayplan.objects.pod import Pod

RUNS_WITH_ANNOTATION = "bayplan.io/runs-with"


_Key = tuple[str, str, str]
"""Namespace, label key and label value of the pods of a group."""


class StartGroup(msgspec.Struct):
    """The pods of one group.

    Attributes:
        size: the number of pods that have started and are not deleted.
        waiting: those of them that wait for the others, by UID.
        complete: whether all were present at some time; later pods start working at once.
    """

    size: int = 0
    waiting: dict[str, Pod] = msgspec.field(default_factory=dict)
    complete: bool = False


class StartGroups:
    """All groups of pods with the annotation. A group is forgotten when all its pods are deleted."""

    def __init__(self) -> None:
        self._groups: dict[_Key, StartGroup] = {}
        self._key_of: dict[str, _Key] = {}

    def __len__(self) -> int:
        return len(self._groups)

    def started(self, pod: Pod) -> list[Pod]:
        """Record that a pod has started. Return the pods whose run time starts now: the whole group, the pod alone, or none.

        Raises:
            InputError: the annotation is invalid.
        """
        text = pod.metadata.annotations.get(RUNS_WITH_ANNOTATION)
        if text is None:
            return [pod]
        label, count = _read(text, pod)
        uid, key = pod.metadata.uid, (pod.metadata.namespace, label, pod.metadata.labels.get(label, ""))
        # The pod may have started before, with another label.
        self.remove(pod)
        self._key_of[uid] = key
        group = self._groups.setdefault(key, StartGroup())
        group.size += 1
        if group.complete:
            return [pod]
        group.waiting[uid] = pod
        if len(group.waiting) < count:
            return []
        group.complete = True
        begins, group.waiting = [*group.waiting.values()], {}
        return begins

    def remove(self, pod: Pod) -> None:
        """Record that a pod was deleted. If its group is incomplete, the other pods wait for a replacement."""
        uid = pod.metadata.uid
        key = self._key_of.pop(uid, None)
        if key is None:
            return
        group = self._groups[key]
        group.waiting.pop(uid, None)
        group.size -= 1
        if not group.size:
            del self._groups[key]


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
