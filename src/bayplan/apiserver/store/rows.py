"""Rows of a store's file: one document each, with a checksum over everything that the row holds."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import msgspec

from bayplan.apiserver.store.item import Item

FORMAT = 2
"""Version of the file, in SQLite's `user_version`. Files of format 1, which is 0 there, have no checksums."""

APPLICATION_ID = 0x42617970  # "Bayp", so that another program's database is not taken for a store.

SCHEMA = """
CREATE TABLE IF NOT EXISTS documents (
    resource TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL, revision INTEGER NOT NULL, uid TEXT NOT NULL,
    facts BLOB NOT NULL, raw BLOB NOT NULL, checksum INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (resource, namespace, name)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS counter (
    id INTEGER PRIMARY KEY CHECK (id = 0), revision INTEGER NOT NULL, checksum INTEGER NOT NULL DEFAULT 0);
"""

Row = tuple[str, str, str, int, str, bytes, bytes, int]
PUT = "INSERT OR REPLACE INTO documents VALUES "
ROW = "(?, ?, ?, ?, ?, ?, ?, ?)"

_TYPES = (str, str, str, int, str, bytes, bytes, int)
_decode = msgspec.msgpack.Decoder(tuple[dict[str, str], dict[str, str]]).decode


def row_of(table: str, item: Item) -> Row:
    """Return the row of a document."""
    facts = msgspec.msgpack.encode((item.labels, item.fields))
    key = f"{table}\0{item.namespace}\0{item.name}\0{item.revision}\0{item.uid}\0{len(facts)}\0".encode()
    checksum = zlib.crc32(item.raw, zlib.crc32(facts, zlib.crc32(key)))
    return (table, item.namespace, item.name, item.revision, item.uid, facts, item.raw, checksum)


def is_intact(row: Sequence[object]) -> bool:
    """Return whether a row holds what was written: values of the right types, and a checksum that fits."""
    if len(row) != len(_TYPES) or any(type(value) is not kind for value, kind in zip(row, _TYPES, strict=True)):
        return False
    table, namespace, name, revision, uid, facts, raw, checksum = row
    assert isinstance(facts, bytes)
    assert isinstance(raw, bytes)
    key = f"{table}\0{namespace}\0{name}\0{revision}\0{uid}\0{len(facts)}\0".encode("utf-8", "surrogatepass")
    return zlib.crc32(raw, zlib.crc32(facts, zlib.crc32(key))) == checksum


def item_of(row: Row) -> Item:
    """Return the document of an intact row."""
    _, namespace, name, revision, uid, facts, raw, _ = row
    labels, fields = _decode(facts)
    return Item(raw, revision, namespace, name, uid, labels, fields)


def counter_checksum(revision: int) -> int:
    """Return the checksum of the counter, which has the last revision."""
    return zlib.crc32(b"%d" % revision)
