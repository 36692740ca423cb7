"""Convert constraints of Borg's tasks to node affinity, and the attributes of machines that they name to labels.

Source: https://github.com/google/cluster-data, `MachineConstraint` and `MachineAttribute` of
clusterdata_trace_format_v3.proto. Names and values are hashes; those that are not valid in labels are hashed again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from hashlib import blake2b

import msgspec

from bayplan.objects.affinity import NodeSelectorRequirement

PREFIX = "attribute.trace.bayplan.io/"
_VALID = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_RELATIONS = (
    "EQUAL", "NOT_EQUAL", "LESS_THAN", "GREATER_THAN", "LESS_THAN_EQUAL", "GREATER_THAN_EQUAL", "PRESENT", "NOT_PRESENT",
)  # fmt: skip
RELATIONS: Mapping[int | str, str] = {
    key: name for number, name in enumerate(_RELATIONS) for key in (number, str(number), name)
}


class MachineConstraint(msgspec.Struct, gc=False):
    """A constraint of a task on an attribute of machines."""

    name: str
    value: str = ""
    relation: int | str = "EQUAL"


class MachineAttribute(msgspec.Struct):
    """A value that a machine's attribute has from `time` (in microseconds) on, or the deletion of the attribute."""

    machine_id: int
    name: str
    time: int = 0
    value: str = ""
    deleted: bool = False


class Attributes:
    """The attributes that constraints name, with the first value for each machine."""

    def __init__(self) -> None:
        self._needed: set[str] = set()
        self._values: dict[int, dict[str, tuple[int, str]]] = {}

    def need(self, constraints: Iterable[MachineConstraint]) -> None:
        """Record the attributes that constraints name. Call before `add`."""
        self._needed.update([each.name for each in constraints])

    def add(self, attribute: MachineAttribute) -> None:
        """Store an attribute if a constraint names it and it is not deleted. The earliest value for a machine counts."""
        if attribute.name not in self._needed or attribute.deleted:
            return
        values = self._values.setdefault(attribute.machine_id, {})
        known = values.get(attribute.name)
        if known is None or attribute.time < known[0]:
            values[attribute.name] = (attribute.time, attribute.value)

    def labels(self, machine: int) -> dict[str, str]:
        """Return the labels of a machine for its attributes."""
        return {_key(name): _valid(value) for name, (_, value) in self._values.get(machine, {}).items()}

    def requirements(self, constraints: Iterable[MachineConstraint]) -> tuple[NodeSelectorRequirement, ...]:
        """Return the node affinity requirements for constraints; () if no attributes were read, because no node would match."""
        if not self._values:
            return ()
        found = [_requirement(each) for each in constraints]
        return tuple(each for each in found if each is not None)


def _requirement(constraint: MachineConstraint) -> NodeSelectorRequirement | None:
    """Return the requirement for a constraint; None if the constraint compares an attribute with a value that is not an integer."""
    key, relation = _key(constraint.name), RELATIONS.get(constraint.relation, "EQUAL")
    if relation in ("PRESENT", "NOT_PRESENT"):
        return NodeSelectorRequirement(key=key, operator="Exists" if relation == "PRESENT" else "DoesNotExist")
    if relation in ("EQUAL", "NOT_EQUAL"):
        operator = "In" if relation == "EQUAL" else "NotIn"
        return NodeSelectorRequirement(key=key, operator=operator, values=(_valid(constraint.value),))
    try:
        number = int(constraint.value)
    except ValueError:
        return None
    if relation.startswith("LESS"):
        return NodeSelectorRequirement(key=key, operator="Lt", values=(str(number + relation.endswith("EQUAL")),))
    return NodeSelectorRequirement(key=key, operator="Gt", values=(str(number - relation.endswith("EQUAL")),))


def _key(name: str) -> str:
    return PREFIX + _valid(name)


def _valid(text: str) -> str:
    if not text or _VALID.fullmatch(text):
        return text
    return blake2b(text.encode(), digest_size=16, person=b"bayplan.traces").hexdigest()
