"""Rows of answers as tables."""

from __future__ import annotations

import sys

import msgspec
import pytest

from bayplan import InputError
from bayplan.analysis.rows import Rows


class Point(msgspec.Struct, frozen=True):
    """A row."""

    name: str
    x: int
    tags: list[str] = []
    more: list[dict[str, int]] = []


ROWS = Rows([Point("a", 1, ["t"], [{"y": 2}]), Point("<b>", 2)], Point)


def test_rows_are_a_sequence_and_convert_to_an_arrow_table() -> None:
    assert (len(ROWS), ROWS[1].name, [row.x for row in ROWS], ROWS[:1]) == (2, "<b>", [1, 2], (ROWS[0],))
    table = ROWS.to_arrow()
    assert table.column_names == ["name", "x", "tags", "more"]
    assert table.column("tags").to_pylist() == [["t"], []]
    assert table.column("more").to_pylist() == ['[{"y":2}]', "[]"]


def test_an_empty_table_has_columns() -> None:
    assert Rows[Point]([], Point).to_arrow().column_names == ["name", "x", "tags", "more"]


def test_html_is_escaped() -> None:
    assert "<td>&lt;b&gt;</td>" in ROWS._repr_html_()


def test_to_pandas_requires_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    assert list(ROWS.to_pandas()["x"]) == [1, 2]
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(InputError, match=r"to_pandas\(\): pandas is not installed; try pip install"):
        ROWS.to_pandas()
