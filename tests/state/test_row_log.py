"""The log of changed rows returns to each reader the rows since its last call, or that there were too many."""

import pytest

from bayplan.state.row_log import RowLog


@pytest.mark.parametrize(
    ("entries", "position", "want"),
    [
        pytest.param([], 0, [], id="nothing happened"),
        pytest.param([3, 1, 3], 0, [3, 1, 3], id="a new reader gets everything, repetitions too"),
        pytest.param([3, 1, 3], 2, [3], id="a reader gets what it missed"),
        pytest.param([3, 1, 3], 3, [], id="a reader that is up to date gets nothing"),
    ],
)
def test_since_returns_the_entries_after_a_position(entries: list[int], position: int, want: list[int]) -> None:
    log = RowLog()
    for row in entries:
        log.append(row)
    assert log.since(position) == want
    assert log.end == len(entries)


def test_since_returns_none_for_truncated_entries() -> None:
    log = RowLog(limit=10)
    for row in range(25):
        log.append(row)
    assert log.end == 25
    assert log.since(2) is None
    assert log.since(20) == [20, 21, 22, 23, 24]
