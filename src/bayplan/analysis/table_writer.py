"""Write tables to Parquet row by row, in row groups of limited size, and without file metadata."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

ROWS_A_GROUP = 1 << 16
ELEMENTS_A_GROUP = 1 << 22
"""Maximum number of rows, and of list elements, in a row group."""

COMPRESSION = "zstd"


class TableWriter:
    """Writes one Parquet file; a context manager.

    Args:
        path: the file.
        schema: the columns. No other metadata is written, so that equal rows yield equal bytes.
    """

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self._schema = schema
        self._writer = pq.ParquetWriter(path, schema, compression=COMPRESSION)
        self._rows: list[Sequence[object]] = []
        self._elements = 0

    def add(self, row: Sequence[object], *, elements: int = 0) -> None:
        """Add a row with its values in the order of the schema; `elements` is the approximate number of elements in its lists."""
        self._rows.append(row)
        self._elements += elements
        if self._elements >= ELEMENTS_A_GROUP or len(self._rows) >= ROWS_A_GROUP:
            self._flush()

    def add_all(self, rows: Iterable[Sequence[object]]) -> None:
        """Add rows one by one; lists in them do not count towards the size of a row group."""
        for row in rows:
            self.add(row)

    def _flush(self) -> None:
        if not self._rows:
            return
        columns = zip(*self._rows, strict=True)
        arrays = [pa.array(values, type=field.type) for values, field in zip(columns, self._schema, strict=True)]
        self._writer.write_table(pa.Table.from_arrays(arrays, schema=self._schema), row_group_size=ROWS_A_GROUP)
        self._rows = []
        self._elements = 0

    def __enter__(self) -> TableWriter:
        return self

    def __exit__(self, *problem: object) -> None:
        if problem[0] is None:
            self._flush()
        self._writer.close()
