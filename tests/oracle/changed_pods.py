"""The pods after a sequence of what-if changes, in a cluster where every pod fits on every usable node.

A pod is a set of places: nodes, `QUEUED` (the scheduler tries it at the next opportunity) or `LATER` (it is tried after
all changes). More than one place means that the scheduler may choose.
"""

from __future__ import annotations

from dataclasses import dataclass, field

QUEUED, LATER = "queued", "later"


@dataclass
class ChangedPods:
    """Two nodes, n1 in zone a with a harmless taint, and n2; a pod of the workload web on n1 and one of db on n2."""

    usable: dict[str, set[str]] = field(default_factory=lambda: {"n1": {"old"}, "n2": set()})
    places: dict[str, set[str]] = field(default_factory=lambda: {"web-1": {"n1"}, "db-1": {"n2"}})
    priority: dict[str, int] = field(default_factory=lambda: {"web-1": 0, "db-1": 0})
    web_priority: int = 0
    copies: int = 0

    def apply(self, kind: str, number: int = 0) -> bool:
        """Apply a change to n1 or web. Return whether it is possible."""
        web = [key for key in self.places if key.startswith("web")]
        if kind in ("lose-zone", "remove-nodes", "drain", "cordon", "uncordon", "taint", "untaint", "resize"):
            return "n1" in self.usable and self._node(kind)
        if kind == "add-nodes":
            self.usable[f"added-{sum(name.startswith('added') for name in self.usable) + 1}"] = set()
        elif kind == "scale" and number:
            for _ in range(number - len(web)):
                self._put(f"web-copy-{self.copies}", {QUEUED}, self.web_priority)
                self.copies += 1
        elif kind in ("scale", "delete"):
            for key in web:
                del self.places[key]
        elif kind == "priority":
            self.priority.update(dict.fromkeys(web, number))
            self.web_priority = number if web else self.web_priority
        elif kind == "restart":
            self._restart(web)
        elif kind == "apply" and "extra" not in self.places:
            # The second time, nothing differs.
            self._put("web-1", {LATER} if "web-1" in self.places else {QUEUED}, 0)
            self._put("extra", {QUEUED}, 0)
            self.web_priority = 0
        return True

    def _put(self, key: str, places: set[str], priority: int) -> None:
        self.places[key], self.priority[key] = places, priority

    def _node(self, kind: str) -> bool:
        flags = self.usable["n1"]
        if kind == "untaint":
            if "old" not in flags:
                return False
            flags.remove("old")
        elif kind == "uncordon":
            flags.discard("cordon")
        elif kind != "resize":
            flags.add("taint" if kind == "taint" else "cordon")
        if kind in ("lose-zone", "remove-nodes"):
            del self.usable["n1"]
        if kind in ("lose-zone", "remove-nodes", "drain", "taint"):
            for places in self.places.values():
                if "n1" in places:
                    places.remove("n1")
                    places.add(LATER)
        return True

    def _open(self) -> set[str]:
        return {name for name, flags in self.usable.items() if flags <= {"old"}}

    def _restart(self, web: list[str]) -> None:
        in_trial = [key for key in web if self.places[key] != {LATER}]
        for key in self.places if in_trial else ():
            if QUEUED in self.places[key] or key in in_trial:
                self.places[key] = self._open() or {QUEUED}

    def nodes(self) -> dict[str, set[str]]:
        """Return the possible nodes of each pod after all changes; "" for none."""
        waiting = self._open() or {""}
        return {
            key: set().union(*(waiting if place in (QUEUED, LATER) else {place} for place in places))
            for key, places in self.places.items()
        }
