"""Create pods and machines of a trace from amounts, constraints and priority: typed pods and nodes that share equal parts."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping

import msgspec

from bayplan.base.errors import InputError
from bayplan.objects.affinity import Affinity, NodeAffinity, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from bayplan.objects.defaults import default_pod_spec
from bayplan.objects.meta import ObjectMeta, ResourceList
from bayplan.objects.node import Node, NodeStatus
from bayplan.objects.pod import Container, PodSpec, ResourceRequirements
from bayplan.objects.pod_defaults import rounded
from bayplan.objects.quantity import milli_value, value

GPU_COUNT = "alibabacloud.com/gpu-count"
GPU_MILLI = "alibabacloud.com/gpu-milli"
GPU_MODEL = "alibabacloud.com/gpu-card-model"
NAMESPACE = "default"
JOB = "trace.bayplan.io/job"
"""The annotation with the name of a pod's job in the trace."""

MILLI = 1000
_VALID = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_ODD = re.compile(r"[^a-z0-9]+")
_MAX_NAME = 240

Amounts = tuple[tuple[str, str], ...]
"""Pairs of a resource and its quantity."""


class Shape(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The properties that pods with equal requests share.

    Attributes:
        amounts: the requests.
        annotations: the annotations of each pod.
        requirements: the requirements of the required node affinity.
        priority: the priority of the pods; None to use their PriorityClass.
        limited: whether the requests are also limits.
        image: the image of the container.
    """

    amounts: Amounts
    annotations: tuple[tuple[str, str], ...] = ()
    requirements: tuple[NodeSelectorRequirement, ...] = ()
    priority: int | None = None
    limited: bool = False
    image: str = "trace"

    def spec(self) -> PodSpec:
        """Return the spec of a pod."""
        amounts: ResourceList = dict(self.amounts)
        resources = ResourceRequirements(limits=amounts if self.limited else {}, requests=amounts)
        container = Container(name="main", image=self.image, resources=resources)
        affinity = None
        if self.requirements:
            required = NodeSelector(node_selector_terms=(NodeSelectorTerm(match_expressions=self.requirements),))
            affinity = Affinity(
                node_affinity=NodeAffinity(required_during_scheduling_ignored_during_execution=required)
            )
        spec = PodSpec(containers=(container,), affinity=affinity, priority=self.priority)
        return default_pod_spec(spec)


class MachineSize(msgspec.Struct, frozen=True, kw_only=True):
    """The size of a machine, for traces whose amounts are fractions of a machine.

    Attributes:
        cpu_milli, memory_bytes, gpus, pods: the allocatable amounts.
    """

    cpu_milli: int
    memory_bytes: int
    gpus: int
    pods: int

    @classmethod
    def of(cls, *, cpu: str, memory: str, gpus: int, pods: int) -> MachineSize:
        """Create a size from quantities.

        Raises:
            InputError: ``Trace $.machine.cpu`` or ``.memory`` is not a quantity above 0.
        """
        found = []
        for name, text, number in (("cpu", cpu, milli_value), ("memory", memory, value)):
            try:
                amount = number(text)
            except InputError:
                amount = 0
            if amount <= 0:
                raise InputError(f"Trace $.machine.{name}", wanted="a quantity above 0", got=repr(text))
            found.append(amount)
        return cls(cpu_milli=found[0], memory_bytes=found[1], gpus=gpus, pods=pods)


def cpu_text(cores: float) -> str:
    """Format a number of cores as a quantity in milli-CPU. A number above 0 is at least ``1m``."""
    return f"{_at_least_one(cores * MILLI)}m"


def mebibytes_text(amount: float) -> str:
    """Format an amount of memory in MiB as a quantity. An amount above 0 is at least ``1Mi``."""
    return f"{_at_least_one(amount)}Mi"


def share_text(share: float, whole: int) -> str:
    """Format a fraction of an amount as an integer. A fraction above 0 is at least 1."""
    return str(_at_least_one(share * whole))


def _at_least_one(amount: float) -> int:
    return max(round(amount), 1) if amount > 0 else 0


def gpu_amounts(percent: float) -> tuple[Amounts, tuple[tuple[str, str], ...]]:
    """Return the requests and annotations for a percentage of a GPU: 50 is half a GPU, 800 is eight GPUs.

    As in `openb`, a share of a GPU requests only thousandths, and whole GPUs also a count. A percentage that is not a
    whole number of GPUs is divided evenly among its GPUs.
    """
    if percent <= 0:
        return (), ()
    count = math.ceil(percent / 100)
    milli = _at_least_one(percent * 10 / count)
    amounts: Amounts = ((GPU_MILLI, str(count * milli)),)
    if milli == MILLI:
        amounts += ((GPU_COUNT, str(count)),)
    return amounts, ((GPU_MILLI, str(milli)), (GPU_COUNT, str(count)))


def machine(
    name: str, amounts: Iterable[tuple[str, str]], labels: Mapping[str, str], shared: dict[str, NodeStatus]
) -> Node:
    """Return a node. Nodes with equal amounts share their status.

    Args:
        name: the name in the trace.
        amounts: the allocatable amounts.
        labels: further labels besides those of every node; empty values are omitted.
        shared: the statuses so far, by amounts; modified in place.
    """
    name = object_name(name)
    all_labels = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux"}
    all_labels.update({key: text for key, text in labels.items() if text})
    amounts = tuple(amounts)
    key = str(amounts)
    status = shared.get(key)
    if status is None:
        found = rounded(dict(amounts))
        status = shared[key] = NodeStatus(capacity=found, allocatable=found)
    return Node(metadata=ObjectMeta(name=name, labels=all_labels), status=status)


def object_name(text: str) -> str:
    """Convert a name of the trace to a valid name in Kubernetes: lowercase letters, digits and ``-``. Valid names are unchanged."""
    if _VALID.fullmatch(text) and len(text) <= _MAX_NAME:
        return text
    return _ODD.sub("-", text.lower()).strip("-")[:_MAX_NAME] or "x"
