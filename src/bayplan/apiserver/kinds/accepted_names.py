"""Index of the accepted names of CustomResourceDefinitions: which names are in use, and which definitions wait for one."""

from __future__ import annotations

from bayplan.apiserver.kinds.conditions import has_condition
from bayplan.base.plain_data import Document, part, texts

Name = tuple[bool, str]
"""A name of a custom resource, and whether it is a kind or list kind; other names never conflict with those."""


def resource_name(name: str) -> Name:
    """Return a plural, singular or short name for the index."""
    return (False, name)


def kind_name(name: str) -> Name:
    """Return a kind or list kind for the index."""
    return (True, name)


class AcceptedNames:
    """The accepted names of all stored definitions, by group.

    Writes of definitions keep it up to date, so that checking a definition does not read all others.
    """

    def __init__(self) -> None:
        # The definitions that use each name. Usually it is one, but clients can write a status with a name in use.
        self._users: dict[tuple[str, Name], set[str]] = {}
        # The accepted names of each definition, with its group.
        self._accepted: dict[str, tuple[str, frozenset[Name]]] = {}
        # By group and definition: the wanted names of definitions whose names are not accepted.
        self._waiting: dict[str, dict[str, frozenset[Name]]] = {}

    def clear(self) -> None:
        """Remove all definitions."""
        self._users.clear()
        self._accepted.clear()
        self._waiting.clear()

    def put(self, definition: Document) -> None:
        """Add or replace a definition."""
        name, group = str(part(definition, "metadata").get("name")), str(part(definition, "spec").get("group"))
        self.remove(name)
        accepted = _names(part(definition, "status", "acceptedNames"))
        self._accepted[name] = (group, accepted)
        for each in accepted:
            self._users.setdefault((group, each), set()).add(name)
        if has_condition(definition, "NamesAccepted", "False"):
            self._waiting.setdefault(group, {})[name] = _names(part(definition, "spec", "names"))

    def remove(self, name: str) -> list[str]:
        """Remove a definition, and return the sorted names of the definitions that wait for one of its names."""
        group, accepted = self._accepted.pop(name, ("", frozenset[Name]()))
        for each in accepted:
            users = self._users[(group, each)]
            users.remove(name)
            if not users:
                del self._users[(group, each)]
        waiting = self._waiting.get(group, {})
        waiting.pop(name, None)
        found = sorted(each for each, wanted in waiting.items() if not accepted.isdisjoint(wanted))
        if not waiting:
            self._waiting.pop(group, None)
        return found

    def in_use(self, group: str, name: Name) -> bool:
        """Return whether any definition of a group has an accepted name.

        A definition's own names count, too: its plural cannot become its short name.
        """
        return (group, name) in self._users


def _names(names: Document) -> frozenset[Name]:
    of_resources = [names.get("plural"), names.get("singular"), *texts(names, "shortNames")]
    of_kinds = [names.get("kind"), names.get("listKind")]
    found = [resource_name(str(each)) for each in of_resources if each]
    return frozenset([*found, *(kind_name(str(each)) for each in of_kinds if each)])
