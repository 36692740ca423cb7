"""The content of recordings in any format: changes of a cluster, each with its time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol, TypeAlias

from bayplan.base.plain_data import Document
from bayplan.sync.feed import Changed, Listed


class Applied(NamedTuple):
    """An object of any kind that a user applied or deleted, such as a workload, whose controller creates the pods."""

    document: Document
    deleted: bool = False


RecordedChange: TypeAlias = Listed | Changed | Applied


class TimedChange(NamedTuple):
    """A change, and its time in nanoseconds after the start of the recording."""

    offset_ns: int
    change: RecordedChange


class RecordingHeader(NamedTuple):
    """The description of a recording.

    Attributes:
        format: the program that wrote it: ``bayplan``, ``kube-scheduler-simulator`` or ``simkube``.
        started_ns: the start of the recording, nanoseconds since 1970.
        kinds: the plural names of the listed kinds.
        kubernetes: the version of the cluster, "" if unknown.
        redacted: whether it has only the fields that scheduling reads.
        applies: whether it contains applied workloads instead of the objects of a cluster.
    """

    format: str
    started_ns: int
    kinds: tuple[str, ...]
    kubernetes: str = ""
    redacted: bool = False
    applies: bool = False


class Recording(Protocol):
    """A recording that can be read repeatedly from its start."""

    @property
    def header(self) -> RecordingHeader:
        """The description of the recording."""
        ...

    def changes(self) -> Iterator[TimedChange]:
        """Read all changes, in order.

        Raises:
            InputError: a line is invalid; the message has its number.
        """
        ...
