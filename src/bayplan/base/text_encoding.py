"""The encoding of a text of unknown origin: UTF-8, or UTF-16 with a byte order mark (as YAML allows)."""

from __future__ import annotations

import codecs


def is_utf16(data: bytes) -> bool:
    """Return whether a text begins with the byte order mark of UTF-16."""
    return data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))


def decode_leniently(data: bytes) -> str:
    """Return a text without its byte order mark; invalid bytes are replaced."""
    return data.decode("utf-16" if is_utf16(data) else "utf-8-sig", "replace")
