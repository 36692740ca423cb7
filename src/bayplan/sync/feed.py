"""Feeds of a cluster: lists of whole kinds, followed by changes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import NamedTuple, Protocol, TypeAlias

from bayplan.base.plain_data import Document
from bayplan.sync.followed_kinds import ObjectRef


class RawDocuments(Collection[Document]):
    """Documents that are decoded one by one during iteration, because decoded documents take five times the memory.

    Args:
        raws: the JSON of the documents.
        decode: the function that decodes a document.
    """

    def __init__(self, raws: Sequence[bytes], decode: Callable[[bytes], Document]) -> None:
        self._raws = raws
        self._decode = decode

    def __len__(self) -> int:
        return len(self._raws)

    def __iter__(self) -> Iterator[Document]:
        return map(self._decode, self._raws)

    def __contains__(self, document: object) -> bool:
        return any(each == document for each in self)


class Listed(NamedTuple):
    """All objects of a kind at a revision (0 if the feed has no revisions).

    Attributes:
        documents: the objects that earlier parts of the list (`PartListed`) did not contain.
        emitted: references to the objects that earlier parts of the list contained unchanged.
    """

    plural: str
    documents: Collection[Document]
    revision: int = 0
    emitted: Collection[ObjectRef] = ()


class PartListed(NamedTuple):
    """A part of the first list of a kind. Some of its objects may be deleted before the list is complete."""

    plural: str
    documents: Collection[Document]


class Changed(NamedTuple):
    """An object that was added, changed or deleted; the document of a deleted object may have only its name."""

    plural: str
    document: Document
    deleted: bool = False


class Bookmark(NamedTuple):
    """A bookmark: the state of a kind up to a revision is known, except objects that were created and deleted in between."""

    plural: str
    revision: int


FeedChange: TypeAlias = Listed | PartListed | Changed | Bookmark
OnChange: TypeAlias = Callable[[FeedChange], None]


class Feed(Protocol):
    """A source of lists and changes.

    Attributes:
        kinds: the plural names of its kinds; each kind is listed before its changes.
        left_out: the reasons why kinds are skipped, by plural name.
        problems: the current problems, by plural name.
    """

    kinds: tuple[str, ...]
    left_out: dict[str, str]

    @property
    def problems(self) -> dict[str, str]:
        """Current problems, by kind."""
        ...

    async def open(self) -> None:
        """Discover the kinds.

        Raises:
            InputError: the cluster or the file can't be read.
        """
        ...

    async def run(self, on_change: OnChange) -> None:
        """Emit everything in order; return at the end of the feed, which a live cluster does not reach."""
        ...
