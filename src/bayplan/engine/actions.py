"""Actions that the engine returns for its host to execute. Their effects reach the engine as events."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from msgspec import Struct

from bayplan.engine.records import Outcome
from bayplan.objects.meta import KubernetesObject
from bayplan.objects.pod import Pod

IN_MEMORY = " (in kube-scheduler memory)."
"""The end of the event of a victim that is not deleted, but returns to the queue."""


class Bind(Struct, frozen=True, gc=False):
    """Bind a pod to a node.

    `extender` names the extender that has already bound the pod through the API server; `""` if none has. With an
    extender, the host of a real cluster only waits until the pod is reported as bound; a host that owns the cluster
    state binds it anyway.
    """

    pod: Pod
    node_name: str
    extender: str = ""


class Update(Struct, frozen=True, gc=False):
    """Write a new version of an object, for example a claim, before its pod is bound to a node.

    If `node_name` is empty, the attempt has failed, and the update may help the next one.
    """

    pod: Pod
    node_name: str
    item: KubernetesObject


class Nominate(Struct, frozen=True, gc=False):
    """Set a pod's ``status.nominatedNodeName``; an empty name clears it."""

    pod: Pod
    node_name: str


class Evict(Struct, frozen=True, gc=False):
    """Delete `pod`, a victim of preemption, to make room for `preemptor` on its node.

    With `cancels_pre_bind`, a victim in its PreBind phase is not deleted; its binding is canceled.
    """

    pod: Pod
    preemptor: Pod
    node_name: str
    cancels_pre_bind: bool = True


class SetCondition(Struct, frozen=True, gc=False):
    """Set the pod's condition PodScheduled to False, with reason (`Unschedulable` or `SchedulerError`) and message."""

    pod: Pod
    reason: str
    message: str


class Emit(Struct, frozen=True, gc=False):
    """Record a Kubernetes event about a pod: type ``Normal`` or ``Warning``, reason, action and note."""

    pod: Pod
    type: str
    reason: str
    action: str
    note: str


Action: TypeAlias = Bind | Update | Nominate | Evict | SetCondition | Emit


class CycleReport(Struct, frozen=True, gc=False):
    """The result of a scheduling cycle. `node_name` is "" if the pod got no node; then `message` says why."""

    pod: Pod
    outcome: Outcome
    node_name: str
    message: str
    actions: Sequence[Action]
