"""Bodies of HTTP responses with a size limit, even if they are compressed."""

from __future__ import annotations

import zlib

_GZIP = 16 + zlib.MAX_WBITS


class BodyTooLarge(Exception):
    """Raised when a body is longer than its limit; callers catch it."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        super().__init__(f"the answer is longer than {limit:,} bytes")


class BoundedBody:
    """Collects the pieces of a body, up to a size.

    HTTP libraries decompress each piece as a whole: 64 kB can become 64 MB, and much more if a server compressed twice.
    Here decompression stops at the limit.

    Args:
        limit: the maximum size in bytes, after decompression.
        encoding: the encoding of the body, from its header `Content-Encoding`. Only gzip is decoded, as in Go's client.
    """

    def __init__(self, limit: int, encoding: str = "") -> None:
        self._limit = limit
        self._pieces: list[bytes] = []
        self._size = 0
        self._decoder = zlib.decompressobj(_GZIP) if encoding.strip().lower() == "gzip" else None

    def add(self, piece: bytes) -> None:
        """Add a received piece.

        Raises:
            BodyTooLarge: the body is longer than the limit.
            zlib.error: the piece is not valid gzip.
        """
        if self._decoder is not None:
            piece = self._decoder.decompress(piece, self._limit - self._size + 1)
        self._size += len(piece)
        if self._size > self._limit:
            raise BodyTooLarge(self._limit)
        self._pieces.append(piece)

    def joined(self) -> bytes:
        """Return the bytes received so far."""
        return b"".join(self._pieces)
