"""Rows of answers as tables."""

from __future__ import annotations

import sys

import msgspec
import pytest

from bayplan import InputError
from bayplan.analysis.rows import MAX_SHOWN_ROWS, Rows


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


def test_the_representation_abridges_long_values_and_many_rows() -> None:
    assert repr(Rows([], Point)) == "Rows([])"
    long = Rows([Point("a" * 200, 1, list("abcdef"), [{"y": 1}] * 9)] * (MAX_SHOWN_ROWS + 3), Point)
    lines = repr(long).splitlines()
    assert len(lines) == 1 + MAX_SHOWN_ROWS + 2
    assert lines[0] == "Rows(["
    assert lines[1].startswith("    Point(")
    assert max(map(len, lines)) < 250
    assert "'c', ...]" in lines[1]
    assert lines[1].count("{'y': 1}") == 3
    assert lines[-2:] == ["    ... 3 more", "])"]


def test_html_has_texts_in_full_and_other_values_abridged() -> None:
    shown = Rows([Point("a" * 200, 1, list("abcdef"))], Point)._repr_html_()
    assert f"<td>{'a' * 200}</td>" in shown
    assert "..., " not in shown
    assert "&#x27;c&#x27;, ...]</td>" in shown


def test_html_is_escaped() -> None:
    assert "<td>&lt;b&gt;</td>" in ROWS._repr_html_()


def test_to_pandas_requires_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    assert list(ROWS.to_pandas()["x"]) == [1, 2]
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(InputError, match="pandas is not installed; try pip install"):
        ROWS.to_pandas()
