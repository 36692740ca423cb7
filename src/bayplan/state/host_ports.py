"""The host ports in use on each node."""

from bayplan.objects.requests import HostPort

ANY_IP = "0.0.0.0"


class HostPorts:
    """The ports in use, by row.

    A set, like upstream's HostPortInfo: a port of two pods is freed when one of them leaves.
    """

    __slots__ = ("_used",)

    def __init__(self) -> None:
        self._used: dict[int, dict[HostPort, None]] = {}

    def add(self, row: int, ports: tuple[HostPort, ...]) -> None:
        """Mark `ports` as used on a row."""
        self._used.setdefault(row, {}).update(dict.fromkeys(ports))

    def remove(self, row: int, ports: tuple[HostPort, ...]) -> None:
        """Free `ports` on a row."""
        used = self._used.get(row, {})
        for port in ports:
            used.pop(port, None)

    def restore(self, row: int, ports: list[HostPort]) -> None:
        """Set the ports in use on a row, to undo changes."""
        self._used[row] = dict.fromkeys(ports)

    def clear(self, row: int) -> None:
        """Clear a row whose node was removed."""
        self._used.pop(row, None)

    def used(self, row: int) -> list[HostPort]:
        """Return the ports in use on a row."""
        return list(self._used.get(row, ()))

    def conflict_on(self, row: int, wanted: HostPort) -> bool:
        """Return whether `wanted` conflicts with a used port on a row."""
        used = self._used.get(row)
        return used is not None and any(collide(wanted, port) for port in used)

    def copy(self) -> "HostPorts":
        """Return an independent copy."""
        other = HostPorts()
        other._used = {row: dict(ports) for row, ports in self._used.items()}
        return other


def collide(wanted: HostPort, used: HostPort) -> bool:
    """Return whether two ports conflict: same protocol and number, and the same or any address."""
    same_port = wanted.protocol == used.protocol and wanted.port == used.port
    return same_port and (wanted.ip == used.ip or wanted.ip == ANY_IP or used.ip == ANY_IP)
