"""Reads the pages of an SQLite file without SQLite, to recover whatever is readable in a damaged file.

SQLite stops at the first invalid page. This module reads each page separately, so it finds the rows of all intact pages
and their positions. Source: the file format at sqlite.org/fileformat2.html.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import suppress

import msgspec

INTERIOR_INDEX, LEAF_INDEX = 2, 10
INTERIOR_TABLE, LEAF_TABLE = 5, 13
_TREES = (INTERIOR_INDEX, LEAF_INDEX, INTERIOR_TABLE, LEAF_TABLE)
_INTERIOR = (INTERIOR_INDEX, INTERIOR_TABLE)
_FILE_HEADER = 100
_MAX_PAYLOAD = 1 << 30
_INTEGER_SIZES = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8}


class PageError(Exception):
    """An invalid page, cell or record."""


class Cell(msgspec.Struct, frozen=True):
    """A cell of a page.

    Attributes:
        page, offset: the number of the page, and the offset of the cell from the start of the file.
        values: the values of the cell's record, empty if it has no record; None if they cannot be decoded.
        child: the number of the child page left of the cell, 0 for none.
        overflow: the numbers of the pages that contain the rest of the record.
    """

    page: int
    offset: int
    values: tuple[object, ...] | None
    child: int = 0
    overflow: tuple[int, ...] = ()


class Pages:
    """The pages of a file, numbered from 1.

    Args:
        data: the content of the whole file.
        page_size: the page size in bytes to assume if the file header is invalid.

    Attributes:
        page_size: the page size in bytes.
        count: the number of pages; the last one may be incomplete.
    """

    def __init__(self, data: bytes, page_size: int = 4096) -> None:
        self._data = data
        size = struct.unpack_from(">H", data, 16)[0] if len(data) >= _FILE_HEADER else 0
        size = 65536 if size == 1 else size
        self.page_size: int = size if 512 <= size <= 65536 and not size & (size - 1) else page_size
        reserved = data[20] if len(data) >= _FILE_HEADER else 0
        self._usable = self.page_size - (reserved if reserved <= self.page_size - 480 else 0)
        self.count = -(-len(data) // self.page_size)

    def kind(self, page: int) -> int:
        """Return the type of a B-tree page, or 0 for other pages."""
        start, _ = self._bounds(page)
        return self._data[start] if 0 <= start < len(self._data) and self._data[start] in _TREES else 0

    def cells(self, page: int) -> Iterator[Cell]:
        """Yield the cells of a page in order. A damaged cell has `values` None.

        Raises:
            PageError: the page itself is invalid.
        """
        start, base = self._bounds(page)
        kind = self.kind(page)
        if not kind:
            raise PageError(f"page {page} has no known type")
        count = self._u16(start + 3)
        pointers = start + (12 if kind in _INTERIOR else 8)
        if pointers + 2 * count > base + self._usable:
            raise PageError(f"page {page} claims {count} cells")
        for number in range(count):
            offset = base + self._u16(pointers + 2 * number)
            try:
                if not pointers + 2 * count <= offset < base + self._usable:
                    raise PageError("a cell outside its page")
                yield self.cell(page, offset, kind)
            except (PageError, IndexError, struct.error):
                child = self._u32(offset) if kind in _INTERIOR and offset + 4 <= base + self._usable else 0
                yield Cell(page, offset, None, child)

    def last_child(self, page: int) -> int:
        """Return the number of a page's right-most child, or 0 for a leaf."""
        return self._u32(self._bounds(page)[0] + 8) if self.kind(page) in _INTERIOR else 0

    def cell(self, page: int, offset: int, kind: int) -> Cell:
        """Return the cell at an offset from the start of the file.

        Raises:
            PageError, IndexError: there is no valid cell at the offset.
        """
        at, child = offset, 0
        if kind in _INTERIOR:
            child, at = self._u32(at), at + 4
        if kind == INTERIOR_TABLE:
            return Cell(page, offset, (), child)
        size, at = self._varint(at)
        if kind == LEAF_TABLE:
            _, at = self._varint(at)
        if not 0 < size < _MAX_PAYLOAD:
            raise PageError("a record of impossible size")
        local = self._local_size(size, kind)
        payload, overflow = self._data[at : at + local], list[int]()
        if at + local > page * self.page_size:
            raise PageError("a record that extends beyond its page")
        if local < size:
            payload, overflow = self._with_overflow(payload, size, self._u32(at + local))
        return Cell(page, offset, _record(payload), child, tuple(overflow))

    def freelist(self) -> set[int]:
        """Return the numbers of the unused pages, as far as the free list is intact."""
        found: set[int] = set()
        with suppress(PageError):
            trunk = self._u32(32)
            while 0 < trunk <= self.count and trunk not in found:
                found.add(trunk)
                base = (trunk - 1) * self.page_size
                count = min(self._u32(base + 4), self._usable // 4 - 2)
                found.update(self._u32(base + 8 + 4 * number) for number in range(count))
                trunk = self._u32(base)
        return found

    # --- bytes --------------------------------------------------------------------------------------------------------

    def _bounds(self, page: int) -> tuple[int, int]:
        """Return the offset of a page's header and the offset of the page, which differ only for the first page."""
        base = (page - 1) * self.page_size
        return (base + _FILE_HEADER if page == 1 else base), base

    def _u16(self, at: int) -> int:
        return self._number(">H", at)

    def _u32(self, at: int) -> int:
        return self._number(">I", at)

    def _number(self, form: str, at: int) -> int:
        try:
            return int(struct.unpack_from(form, self._data, at)[0])
        except struct.error:
            raise PageError("the file ends here") from None

    def _varint(self, at: int) -> tuple[int, int]:
        return _varint(self._data, at)

    def _local_size(self, size: int, kind: int) -> int:
        usable = self._usable
        most = usable - 35 if kind == LEAF_TABLE else (usable - 12) * 64 // 255 - 23
        least = (usable - 12) * 32 // 255 - 23
        if size <= most:
            return size
        local = least + (size - least) % (usable - 4)
        return local if local <= most else least

    def _with_overflow(self, payload: bytes, size: int, page: int) -> tuple[bytes, list[int]]:
        pieces, seen, left = [payload], list[int](), size - len(payload)
        while left > 0:
            if not 0 < page <= self.count or page in seen:
                raise PageError("a broken chain of pages")
            seen.append(page)
            base = (page - 1) * self.page_size
            pieces.append(self._data[base + 4 : base + 4 + min(left, self._usable - 4)])
            left -= self._usable - 4
            page = self._u32(base)
        return b"".join(pieces), seen


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for _ in range(8):
        byte = data[at]
        at += 1
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, at
    return value << 8 | data[at], at + 1


def _record(payload: bytes) -> tuple[object, ...]:
    end, at = _varint(payload, 0)
    if not 0 < end <= len(payload):
        raise PageError("a record that is shorter than its header")
    kinds = []
    while at < end:
        kind, at = _varint(payload, at)
        kinds.append(kind)
    values: list[object] = []
    for kind in kinds:
        size = _INTEGER_SIZES.get(kind, 8 if kind == 7 else 0) if kind < 12 else (kind - 12) // 2
        piece = payload[end : end + size]
        if len(piece) < size:
            raise PageError("a truncated record")
        end += size
        values.append(_value(kind, piece))
    return tuple(values)


def _value(kind: int, piece: bytes) -> object:
    if kind >= 12:
        return piece.decode("utf-8", "replace") if kind % 2 else piece
    if kind in _INTEGER_SIZES:
        return int.from_bytes(piece, "big", signed=True)
    return {8: 0, 9: 1}.get(kind)
