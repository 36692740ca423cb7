"""What tells of a cluster: lists of whole kinds, then changes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import NamedTuple, Protocol, TypeAlias

from bayplan.base.plain_data import Document
from bayplan.sync.followed_kinds import ObjectRef


class RawDocuments(Collection[Document]):
    """Documents that are decoded one by one, whenever they are gone through: a decoded one takes five times the room.

    Args:
        raws: their JSON. decode: makes a document of it.
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
    """All objects of a kind, as they are at a revision (0 where the feed has none).

    Attributes:
        told: those that parts of the list have told as they are; `documents` are the others.
    """

    plural: str
    documents: Collection[Document]
    revision: int = 0
    told: Collection[ObjectRef] = ()


class PartListed(NamedTuple):
    """Objects of a kind of which the first list is coming. Some may have gone until it is complete."""

    plural: str
    documents: Collection[Document]


class Changed(NamedTuple):
    """One object that was added or changed, or is gone; a document of what is gone may hold nothing but its name."""

    plural: str
    document: Document
    deleted: bool = False


class Reached(NamedTuple):
    """All that has become of a kind up to a revision was told, although not each thing: what came and went meanwhile was not."""

    plural: str
    revision: int


FeedChange: TypeAlias = Listed | PartListed | Changed | Reached
Take: TypeAlias = Callable[[FeedChange], None]


class Feed(Protocol):
    """A cluster that can be followed.

    Attributes:
        kinds: plural names of the kinds that it tells about; each is listed first.
        left_out: kinds that are not told about, and why.
        problems: what is wrong at the moment, by kind.
    """

    kinds: tuple[str, ...]
    left_out: dict[str, str]

    @property
    def problems(self) -> dict[str, str]:
        """What is wrong at the moment, by kind; empty where all is well."""
        ...

    async def open(self) -> None:
        """Find out which kinds there are.

        Raises:
            InputError: the cluster or the file can't be read.
        """
        ...

    async def run(self, take: Take) -> None:
        """Tell everything, in order; ends when there is nothing more to come, which for a live cluster is never."""
        ...
