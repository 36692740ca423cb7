"""Shortages of nodes, which rank the nodes that reject a pod."""

from __future__ import annotations

import pytest

from bayplan.analysis.shortage import shortage, shortages
from bayplan.objects.requests import Amounts


@pytest.mark.parametrize(
    ("requests", "free", "want"),
    [
        pytest.param({"cpu": 1000, "memory": 4}, {"cpu": 1000, "memory": 4}, 0, id="enough of everything"),
        pytest.param({"cpu": 1000, "memory": 4}, {"cpu": 250, "memory": 4}, 750, id="thousandths of the request"),
        pytest.param({"cpu": 1000, "memory": 4}, {"cpu": 250, "memory": 3}, 1000, id="summed over resources"),
        pytest.param({"example.com/gpu": 1}, {}, 1000, id="a resource that the node lacks"),
        pytest.param({"cpu": 0}, {"cpu": -5}, 0, id="a request of zero"),
        pytest.param({"cpu": 1}, {"cpu": -1000}, 1_000_000, id="at most a thousand requests per resource"),
    ],
)
def test_shortages_are_summed_in_thousandths_of_the_requests(requests: Amounts, free: Amounts, want: int) -> None:
    assert shortage(requests, free) == want


def test_overcommitted_amounts_do_not_increase_a_shortage() -> None:
    assert shortages({"cpu": 3, "memory": 2, "pods": 1}, {"cpu": -4, "memory": 1, "pods": 1}) == {"cpu": 3, "memory": 1}
