"""The engine decides as when the decision hashes were recorded: each benchmark at size small, and no row is missing."""

from __future__ import annotations

import pytest
from benchmarks.hash_rows import SIZES, Hashes, Row, combined, hash_rows
from benchmarks.hashes import BASELINE, difference, load_baseline, recorded, selected, time_limit

ROWS = {row.name: row for row in hash_rows() if "small" in row.sizes}


@pytest.mark.parametrize("name", ROWS)
def test_a_row_reproduces_its_recorded_hashes_at_size_small(name: str) -> None:
    wanted = recorded(load_baseline(), "small", name)
    assert wanted is not None, f"run: python -m benchmarks.hashes record --rows '{name}'"
    assert difference(wanted, ROWS[name].run("small")) == ""


@pytest.mark.parametrize("size", SIZES)
def test_each_row_is_recorded_or_omitted_with_a_reason(size: str) -> None:
    baseline = load_baseline()
    names = {row.name for row in selected("*", size)}
    kept, left_out = baseline["rows"][size], baseline["left_out"].get(size, {})
    assert kept.keys() | left_out.keys() == names
    assert not kept.keys() & left_out.keys()
    assert all(left_out.values())


@pytest.mark.parametrize(
    ("wanted", "found", "want"),
    [
        pytest.param(Hashes("a", "b"), Hashes("a", "b"), "", id="equal hashes"),
        pytest.param(Hashes("a", "b"), Hashes("c", "b"), "DECISIONS DIFFER", id="another node"),
        pytest.param(Hashes("a", "b"), Hashes("a", "c"), "RECORDS DIFFER", id="same nodes, another message"),
    ],
)
def test_a_hash_difference_is_described(wanted: Hashes, found: Hashes, want: str) -> None:
    assert difference(wanted, found).startswith(want)
    assert bool(want) is bool(difference(wanted, found))


def test_row_names_are_unique_and_the_baseline_exists() -> None:
    rows: list[Row] = list(hash_rows())
    assert len({row.name for row in rows}) == len(rows)
    assert BASELINE.is_file()


def test_the_combined_hash_depends_on_every_row() -> None:
    one = {"a": Hashes("1", "2"), "b": Hashes("3", "4")}
    assert combined(one) == combined(dict(reversed(one.items())))
    assert combined(one) != combined({**one, "b": Hashes("3", "5")})


def run_for_ever() -> None:
    while True:
        pass


def test_a_row_over_the_time_limit_raises_timeout_error() -> None:
    with time_limit(1), pytest.raises(TimeoutError, match="took longer than 1 s of processor time"):
        run_for_ever()
