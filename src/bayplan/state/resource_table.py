"""The row of each resource in the matrices: cpu, memory and ephemeral-storage first, the others as they appear."""

CPU = 0
MEMORY = 1
EPHEMERAL_STORAGE = 2

FIRST_RESOURCES = ("cpu", "memory", "ephemeral-storage")
PODS = "pods"
"""Counted separately from resources, as upstream does (AllowedPodNumber)."""


class ResourceTable:
    """Numbers of resources by name. Amounts are in milli-CPU for cpu, and plain values for all others."""

    __slots__ = ("_index", "names")

    def __init__(self) -> None:
        self.names: list[str] = list(FIRST_RESOURCES)
        self._index: dict[str, int] = {name: number for number, name in enumerate(self.names)}

    def __len__(self) -> int:
        return len(self.names)

    def find(self, name: str) -> int | None:
        """Return the number of a resource, or None."""
        return self._index.get(name)

    def register(self, name: str) -> int:
        """Return the number of a resource; assign the next one if it has none."""
        number = self._index.get(name)
        if number is None:
            number = self._index[name] = len(self.names)
            self.names.append(name)
        return number

    def copy(self) -> "ResourceTable":
        """Return an independent copy."""
        other = ResourceTable()
        other.names = list(self.names)
        other._index = dict(self._index)
        return other
