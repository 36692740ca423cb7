"""The used host ports of each node, and conflict columns for the ports that rules need."""

import numpy as np

from bayplan.objects.requests import HostPort
from bayplan.state.arrays import Bools

ANY_IP = "0.0.0.0"


class HostPorts:
    """Ports in use per row. Like upstream's HostPortInfo a set: a port of two pods is free when one of them leaves."""

    __slots__ = ("_columns", "_used")

    def __init__(self) -> None:
        self._used: dict[int, dict[HostPort, None]] = {}
        self._columns: dict[HostPort, Bools] = {}

    def add(self, row: int, ports: tuple[HostPort, ...]) -> list[HostPort]:
        """Mark `ports` as used on a row; return those that were free before (to be released by an undo)."""
        used = self._used.setdefault(row, {})
        fresh = [port for port in ports if port not in used]
        used.update(dict.fromkeys(ports))
        self._refresh(row, ports)
        return fresh

    def remove(self, row: int, ports: tuple[HostPort, ...] | list[HostPort]) -> list[HostPort]:
        """Free `ports` on a row; return those that were used before."""
        used = self._used.get(row, {})
        freed = [port for port in ports if used.pop(port, 0) is None]
        self._refresh(row, ports)
        return freed

    def clear(self, row: int) -> None:
        """Clear a row whose node was removed."""
        ports = tuple(self._used.pop(row, ()))
        self._refresh(row, ports)

    def used(self, row: int) -> list[HostPort]:
        """Return the ports in use on a row."""
        return list(self._used.get(row, ()))

    def conflicts(self, wanted: HostPort, used: list[HostPort]) -> bool:
        """Return whether `wanted` conflicts with a used port: same protocol and number, and the same or any address."""
        return any(collide(wanted, port) for port in used)

    def conflict_on(self, row: int, wanted: HostPort) -> bool:
        """Return whether `wanted` conflicts on one row."""
        used = self._used.get(row)
        return used is not None and any(collide(wanted, port) for port in used)

    def column(self, wanted: HostPort, capacity: int) -> Bools:
        """Return bool[capacity]: whether `wanted` conflicts on each row. Maintained from the first call on."""
        column = self._columns.get(wanted)
        if column is None or len(column) != capacity:
            column = np.zeros(capacity, dtype=np.bool_)
            for row in self._used:
                column[row] = self.conflict_on(row, wanted)
            self._columns[wanted] = column
        return column

    def _refresh(self, row: int, ports: tuple[HostPort, ...] | list[HostPort]) -> None:
        if not self._columns:
            return
        touched = {(port.protocol, port.port) for port in ports}
        for wanted, column in self._columns.items():
            if (wanted.protocol, wanted.port) in touched:
                column[row] = self.conflict_on(row, wanted)

    def copy(self) -> "HostPorts":
        """Return an independent copy."""
        other = HostPorts()
        other._used = {row: dict(ports) for row, ports in self._used.items()}
        return other


def collide(wanted: HostPort, used: HostPort) -> bool:
    """Return whether two ports conflict: same protocol and number, and the same or any address."""
    same_port = wanted.protocol == used.protocol and wanted.port == used.port
    return same_port and (wanted.ip == used.ip or wanted.ip == ANY_IP or used.ip == ANY_IP)
