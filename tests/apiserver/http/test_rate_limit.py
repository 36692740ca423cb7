"""Rate limits: a client that sends too many requests has to wait; other clients are served."""

from __future__ import annotations

import pytest

from bayplan.apiserver.http import limits
from bayplan.apiserver.http.limits import RateLimit
from bayplan.apiserver.http.server import ApiServer, ServerOptions
from bayplan.base.errors import InputError
from tests.apiserver.serving import ask, serving


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.parametrize(
    ("waits", "want"),
    [
        pytest.param([0.0] * 5, "yyyyn", id="saved tokens are used at once"),
        pytest.param([0.0, 0.0, 0.0, 0.0, 0.5, 0.0], "yyyyyn", id="half a second is one request"),
        pytest.param([0.0, 60.0, 0.0, 0.0, 0.0, 0.0], "yyyyyn", id="no more than two seconds are saved up"),
    ],
)
def test_a_bucket_refills_over_time_up_to_two_seconds_of_requests(waits: list[float], want: str) -> None:
    clock = Clock()
    limit = RateLimit(2.0, clock=clock)
    found = ""
    for wait in waits:
        clock.now += wait
        found += "y" if limit.take("a") else "n"
    assert found == want
    assert limit.take("b")


def test_inactive_clients_are_dropped_above_the_client_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "_MAX_CLIENTS", 3)
    clock = Clock()
    limit = RateLimit(1.0, clock=clock)
    for name in "abc":
        clock.now += 1.0
        limit.take(name)
    limit.take("d")
    assert set(limit._buckets) == {"c", "d"}
    for name in "efghij":
        limit.take(name)
    assert len(limit._buckets) <= 3


def test_requests_above_the_rate_limit_return_429() -> None:
    with serving(rate_limit=2) as server:
        answers = [ask(f"{server.url}/readyz") for _ in range(6)]
    assert answers[0] == (200, b"ok")
    assert answers[-1] == (429, b"Too many requests, please try again later.\n")


def test_a_negative_rate_limit_is_refused() -> None:
    with pytest.raises(InputError, match="requests per second"):
        ApiServer(ServerOptions(rate_limit=-1))
