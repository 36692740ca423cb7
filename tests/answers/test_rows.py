"""Rows as Arrow tables: types by the fields, times that pandas reads without loss."""

from __future__ import annotations

import msgspec
import pyarrow as pa

from bayplan.analysis.rows import Rows
from bayplan.answers.capacity import Share, capacity
from bayplan.answers.start_times import Start
from tests.answers.clusters import cluster_of, node, running


class Example(msgspec.Struct, frozen=True):
    name: str
    at_ns: int
    starts_at_ns: int | None
    wait_ns: int | None
    share: float
    reasons: dict[str, int]


def test_times_keep_their_nanoseconds() -> None:
    rows = Rows([Example("p", 1, 1_767_225_600_000_000_001, None, 0.5, {"x": 1})], Example)
    table = rows.to_arrow()
    assert table.column_names == ["name", "at", "starts_at", "wait", "share", "reasons"]
    assert table.schema.field("starts_at").type == pa.timestamp("ns", tz="UTC")
    assert table.schema.field("wait").type == pa.duration("ns")
    assert table.column("starts_at").cast(pa.int64()).to_pylist() == [1_767_225_600_000_000_001]
    assert table.column("reasons").to_pylist() == ['{"x":1}']


def test_an_empty_table_has_its_types() -> None:
    assert Rows([], Start).to_arrow().schema.field("starts_at").type == pa.timestamp("ns", tz="UTC")


def test_an_answer_is_a_table() -> None:
    answer = capacity(cluster_of(node("n1"), running("web-1", "n1").obj()), [Share("web")])
    table = answer.placements.to_arrow()
    assert table.column("node").to_pylist() == ["n1", "n1", "n1"]
    assert answer.groups.to_arrow().column("copies").to_pylist() == [3]
