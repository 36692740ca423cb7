"""The result of loading manifests: typed objects, each with its document and position, and all warnings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, TypeVar

import msgspec

from bayplan.base.plain_data import Document
from bayplan.objects.kinds import ResourceKind
from bayplan.objects.meta import KubernetesObject
from bayplan.objects.node import Node
from bayplan.objects.pod import Pod

if TYPE_CHECKING:
    from bayplan.formats.documents import Source

Item = TypeVar("Item", bound=KubernetesObject)


class WarningKind(StrEnum):
    """The kind of a warning. Its value is the name in reports."""

    UNKNOWN_KIND = "unknown kind"
    NO_OBJECT = "no object"
    UNKNOWN_FIELD = "unknown field"
    DUPLICATE_FIELD = "duplicate field"
    DUPLICATE_OBJECT = "duplicate object"
    MISSING_NODE = "missing node"
    ODD_AMOUNT = "unusual quantity"
    UNUSED_KIND = "unused kind"
    INFERRED_KIND = "inferred kind"
    GENERATED_NAME = "generated name"
    SKIPPED_ROWS = "skipped rows"
    UNKNOWN_REVISION = "unknown revision"
    UNREAD_TABLES = "unread tables"

    @property
    def is_note(self) -> bool:
        """Whether the warning is only informational: a strict load refuses warnings, but not notes."""
        return self in _NOTES


_NOTES = frozenset(
    {
        WarningKind.UNUSED_KIND,
        WarningKind.INFERRED_KIND,
        WarningKind.GENERATED_NAME,
        WarningKind.SKIPPED_ROWS,
        WarningKind.UNKNOWN_REVISION,
    }
)


class LoadWarning(msgspec.Struct, frozen=True, kw_only=True):
    """A problem of the input that does not stop the load.

    Attributes:
        kind: the kind of the warning.
        where: `file:line` of the object, or of the field if its line is known.
        what: the object, and the path of a field in it: `Pod default/web $.spec.containrs`.
        problem: the problem in words.
        hint: a suggestion, or "".
    """

    kind: WarningKind
    where: str
    what: str
    problem: str
    hint: str = ""

    def __str__(self) -> str:
        text = f"{self.where} {self.what}: {self.problem}"
        return f"{text}; try {self.hint}" if self.hint else text


class PlainObject(msgspec.Struct, frozen=True):
    """An undecoded object of the input, for the API server and a sync, which decode objects themselves.

    Attributes:
        value: the document; if it is an item of a typed list, with apiVersion and kind added.
        where: `file:line` of the object.
    """

    value: Document
    where: str


class LoadedObject(msgspec.Struct, frozen=True):
    """An object of the input, both undecoded and typed with the API's defaults.

    Attributes:
        kind: the row of the object's kind in the table of kinds.
        typed: the typed object, with defaults, and with a namespace if its kind is namespaced.
        source: the position of the object.
        raw: the document as written, as compact JSON.
    """

    kind: ResourceKind
    typed: KubernetesObject
    source: Source
    raw: bytes

    @property
    def document(self) -> dict[str, object]:
        """The document as plain data. It is decoded at each use, so callers may modify it."""
        return msgspec.json.decode(self.raw, type=dict[str, object])


class UnusedObject(msgspec.Struct, frozen=True):
    """An object of the input that Bayplan has no type for, such as a custom resource or a ConfigMap.

    Attributes:
        api_version, kind, namespace, name: the names as written; "" if the document has none.
        source: the position of the object.
        raw: the document as written, as compact JSON.
    """

    api_version: str
    kind: str
    namespace: str
    name: str
    source: Source
    raw: bytes

    @property
    def document(self) -> dict[str, object]:
        """The document as plain data."""
        return msgspec.json.decode(self.raw, type=dict[str, object])


class Manifest(msgspec.Struct, kw_only=True):
    """All objects that were loaded, in the order of the input.

    Attributes:
        loaded: the objects of kinds that Bayplan knows; of duplicate objects, only the last.
        unused: the objects of kinds that Bayplan has no type for.
        replaced: the objects that a later object of the same kind and name replaced.
        warnings: the warnings, in the order of the input. Whatever is not in `loaded` is in `unused`, or mentioned in a
            warning.
        files: the files that were read.
    """

    loaded: list[LoadedObject] = msgspec.field(default_factory=list)
    unused: list[UnusedObject] = msgspec.field(default_factory=list)
    replaced: list[LoadedObject] = msgspec.field(default_factory=list)
    warnings: list[LoadWarning] = msgspec.field(default_factory=list)
    files: list[str] = msgspec.field(default_factory=list)

    def of(self, struct: type[Item]) -> list[Item]:
        """Return the typed objects of one kind, e.g. `manifest.of(PersistentVolume)`."""
        return [each.typed for each in self.loaded if isinstance(each.typed, struct)]

    @property
    def pods(self) -> list[Pod]:
        """The pods, in the order of the input."""
        return self.of(Pod)

    @property
    def nodes(self) -> list[Node]:
        """The nodes, in the order of the input."""
        return self.of(Node)

    def objects(self) -> Iterator[KubernetesObject]:
        """Yield all typed objects."""
        return (each.typed for each in self.loaded)

    def counts(self) -> dict[str, int]:
        """Return the number of objects by kind, in the order of their first object."""
        return dict(Counter(each.kind.kind for each in self.loaded))

    def warning_counts(self) -> dict[WarningKind, int]:
        """Return the number of warnings and notes by kind, in the order of `WarningKind`."""
        counts = Counter(each.kind for each in self.warnings)
        return {kind: counts[kind] for kind in WarningKind if counts[kind]}


def shown(value: object) -> str:
    """Format a value for an error message, using at most 80 characters."""
    if isinstance(value, list):
        return f"a list of {len(value)}"
    text = "an object" if isinstance(value, Mapping) else repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
