"""What the engine asks its host to do. The host carries it out, and what changes comes back as events."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from msgspec import Struct

from bayplan.engine.records import Outcome
from bayplan.objects.meta import KubernetesObject
from bayplan.objects.pod import Pod


class Bind(Struct, frozen=True, gc=False):
    """Bind a pod to a node.

    `extender` names the extender that has bound it already in the API server, "" stands for none: then a host of a real cluster
    only waits for the pod to come back bound; a host that keeps the cluster itself binds all the same.
    """

    pod: Pod
    node_name: str
    extender: str = ""


class Update(Struct, frozen=True, gc=False):
    """Write a new version of an object that a pod needs on a node, before the pod is bound there.

    Without a node: an attempt has failed, and what is written may help the next one (a claim gives its allocation up).
    """

    pod: Pod
    node_name: str
    item: KubernetesObject


class Nominate(Struct, frozen=True, gc=False):
    """Set, or with the empty name clear, a pod's ``status.nominatedNodeName``."""

    pod: Pod
    node_name: str


class Evict(Struct, frozen=True, gc=False):
    """Delete a victim of preemption."""

    pod: Pod
    preemptor: Pod
    node_name: str


class SetCondition(Struct, frozen=True, gc=False):
    """Set the pod's condition PodScheduled to False with a reason (``Unschedulable`` or ``SchedulerError``) and a message."""

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
    """What a scheduling cycle did: the pod, how the cycle ended, and what the host is to do."""

    pod: Pod
    outcome: Outcome
    node_name: str
    message: str
    actions: Sequence[Action]
