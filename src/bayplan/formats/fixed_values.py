"""Fields with a fixed set of allowed values, such as operators: find values that kube-apiserver rejects."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple, TypeAlias

from bayplan.base.errors import InputError
from bayplan.base.near_names import near_name
from bayplan.formats.manifest import shown
from bayplan.objects.kinds import describe

Shape: TypeAlias = "Mapping[str, Shape | tuple[str, ...]]"
"""The fields of an object to check: maps each field to its allowed values, or to the shape of the object (or objects) in it."""

_REQUIRED, _PREFERRED = (
    "requiredDuringSchedulingIgnoredDuringExecution",
    "preferredDuringSchedulingIgnoredDuringExecution",
)
_LABEL_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_HONOR = ("Honor", "Ignore")
_ACCESS_MODES = ("ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod")
_VOLUME_MODES = ("Filesystem", "Block")
_PREEMPTION_POLICIES = ("PreemptLowerPriority", "Never")

_LABEL_SELECTOR: Shape = {"matchExpressions": {"operator": _LABEL_OPERATORS}}
_NODE_TERM: Shape = {
    "matchExpressions": {"operator": (*_LABEL_OPERATORS, "Gt", "Lt")},
    "matchFields": {"operator": ("In", "NotIn")},
}
_NODE_SELECTOR: Shape = {"nodeSelectorTerms": _NODE_TERM}
_POD_TERM: Shape = {"labelSelector": _LABEL_SELECTOR, "namespaceSelector": _LABEL_SELECTOR}
_POD_AFFINITY: Shape = {_REQUIRED: _POD_TERM, _PREFERRED: {"podAffinityTerm": _POD_TERM}}
_POD_SPEC: Shape = {
    "restartPolicy": ("Always", "OnFailure", "Never"),
    "preemptionPolicy": _PREEMPTION_POLICIES,
    "tolerations": {"operator": ("Equal", "Exists", "Lt", "Gt"), "effect": _EFFECTS},
    "topologySpreadConstraints": {
        "whenUnsatisfiable": ("DoNotSchedule", "ScheduleAnyway"),
        "nodeAffinityPolicy": _HONOR,
        "nodeTaintsPolicy": _HONOR,
        "labelSelector": _LABEL_SELECTOR,
    },
    "affinity": {
        "nodeAffinity": {_REQUIRED: _NODE_SELECTOR, _PREFERRED: {"preference": _NODE_TERM}},
        "podAffinity": _POD_AFFINITY,
        "podAntiAffinity": _POD_AFFINITY,
    },
}
_WORKLOAD: Shape = {"spec": {"selector": _LABEL_SELECTOR, "template": {"spec": _POD_SPEC}}}
_KINDS: dict[str, Shape] = {
    "Pod": {"spec": _POD_SPEC},
    "PodTemplate": {"template": {"spec": _POD_SPEC}},
    "CronJob": {"spec": {"jobTemplate": _WORKLOAD}},
    "Deployment": _WORKLOAD,
    "ReplicaSet": _WORKLOAD,
    "StatefulSet": _WORKLOAD,
    "DaemonSet": _WORKLOAD,
    "Job": _WORKLOAD,
    "ReplicationController": {"spec": {"template": {"spec": _POD_SPEC}}},
    "Node": {"spec": {"taints": {"effect": _EFFECTS}}},
    "PodDisruptionBudget": {"spec": {"selector": _LABEL_SELECTOR}},
    "PriorityClass": {"preemptionPolicy": _PREEMPTION_POLICIES},
    "StorageClass": {"volumeBindingMode": ("Immediate", "WaitForFirstConsumer")},
    "PersistentVolumeClaim": {
        "spec": {"accessModes": _ACCESS_MODES, "volumeMode": _VOLUME_MODES, "selector": _LABEL_SELECTOR}
    },
    "PersistentVolume": {
        "spec": {
            "accessModes": _ACCESS_MODES,
            "volumeMode": _VOLUME_MODES,
            "nodeAffinity": {"required": _NODE_SELECTOR},
        }
    },
    "ResourceSlice": {"spec": {"nodeSelector": _NODE_SELECTOR}},
}


class WrongValue(NamedTuple):
    """A value that its field does not allow.

    Attributes:
        path: the path of the value in the document.
        value: the value as written.
        allowed: the allowed values.
    """

    path: str
    value: object
    allowed: tuple[str, ...]


def wrong_values(document: Mapping[str, object]) -> Iterator[WrongValue]:
    """Yield the values of a document that kube-apiserver rejects because their fields don't allow them.

    Args:
        document: a valid document of a known kind.
    """
    shape = _KINDS.get(str(document.get("kind")))
    return iter(()) if shape is None else _wrong(shape, document, "$")


def check_values(document: Mapping[str, object], where_of: Callable[[str], str]) -> None:
    """Refuse a document with a value that its field does not allow, as kube-apiserver does.

    Args:
        document: a valid document of a known kind.
        where_of: returns the file and line of a path, for errors.

    Raises:
        InputError: a value is not allowed.
    """
    for wrong in wrong_values(document):
        what, close = f"{describe(document)} {wrong.path}", near_name(str(wrong.value), wrong.allowed)
        *most, last = (f"'{each}'" for each in wrong.allowed)
        raise InputError(
            what,
            where=where_of(wrong.path),
            wanted=f"{', '.join(most)} or {last}",
            got=shown(wrong.value),
            hint=f"'{close}'" if close else "",
        )


def _wrong(shape: Shape, value: Mapping[str, object], at: str) -> Iterator[WrongValue]:
    for name, inner in shape.items():
        item = value.get(name)
        if not item:
            continue
        path = f"{at}.{name}"
        values = [(path, item)]
        if isinstance(item, list):
            values = [(f"{path}[{index}]", each) for index, each in enumerate(item)]
        for place, each in values:
            if isinstance(inner, tuple):
                if each not in inner:
                    yield WrongValue(place, each, inner)
            elif isinstance(each, Mapping):
                yield from _wrong(inner, each, place)
