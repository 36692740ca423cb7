"""What the engine asks its host to do. The host carries it out, and what changes comes back as events."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from bayplan.objects.pod import Pod


@dataclass(frozen=True, slots=True)
class Bind:
    """Bind a pod to a node."""

    pod: Pod
    node_name: str


@dataclass(frozen=True, slots=True)
class Nominate:
    """Set, or with the empty name clear, a pod's ``status.nominatedNodeName``."""

    pod: Pod
    node_name: str


@dataclass(frozen=True, slots=True)
class Evict:
    """Delete a victim of preemption."""

    pod: Pod
    preemptor: Pod
    node_name: str


@dataclass(frozen=True, slots=True)
class SetCondition:
    """Set the pod's condition PodScheduled to False with a reason (``Unschedulable`` or ``SchedulerError``) and a message."""

    pod: Pod
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Emit:
    """Record a Kubernetes event about a pod: type ``Normal`` or ``Warning``, reason, action and note."""

    pod: Pod
    type: str
    reason: str
    action: str
    note: str


Action: TypeAlias = Bind | Nominate | Evict | SetCondition | Emit
