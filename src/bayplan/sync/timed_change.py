"""What a recording holds, whatever wrote it: changes of a cluster, each with its time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol, TypeAlias

from bayplan.base.plain_data import Document
from bayplan.sync.feed import Changed, Listed


class Applied(NamedTuple):
    """An object of any kind that was applied, or deleted, by a user: a workload whose controller makes the pods."""

    document: Document
    deleted: bool = False


RecordedChange: TypeAlias = Listed | Changed | Applied


class TimedChange(NamedTuple):
    """A change, and how many nanoseconds after the beginning of the recording it came."""

    offset_ns: int
    change: RecordedChange


class RecordingHeader(NamedTuple):
    """What a recording is.

    Attributes:
        format: which program wrote it: ``bayplan``, ``kube-scheduler-simulator`` or ``simkube``.
        started_ns: when it begins, nanoseconds since 1970.
        kinds: plural names of the kinds of which it has lists.
        kubernetes: the version of the cluster, "" where nobody knows.
        redacted: whether only what scheduling reads was kept.
        applies: whether it holds workloads that were applied, rather than a cluster that is followed.
    """

    format: str
    started_ns: int
    kinds: tuple[str, ...]
    kubernetes: str = ""
    redacted: bool = False
    applies: bool = False


class Recording(Protocol):
    """A recording that can be read from its beginning, as often as one likes."""

    @property
    def header(self) -> RecordingHeader:
        """What it is."""
        ...

    def changes(self) -> Iterator[TimedChange]:
        """Read all changes, in order.

        Raises:
            InputError: a line can't be read; with its number.
        """
        ...
