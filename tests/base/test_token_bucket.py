"""The token bucket: bursts, the long run, and no limit at all."""

from __future__ import annotations

import pytest

from bayplan.base.token_bucket import TokenBucket


def test_a_burst_passes_immediately_and_further_requests_at_the_rate() -> None:
    limiter = TokenBucket(10.0, 3, 0.0)
    assert [round(limiter.reserve(0.0), 3) for _ in range(6)] == [0.0, 0.0, 0.0, 0.1, 0.2, 0.3]


def test_the_bucket_refills_over_time_up_to_the_burst() -> None:
    limiter = TokenBucket(10.0, 3, 0.0)
    for _ in range(5):
        limiter.reserve(0.0)
    assert limiter.reserve(0.1) == pytest.approx(0.2)
    assert [limiter.reserve(100.0) for _ in range(3)] == [0.0, 0.0, 0.0]
    assert limiter.reserve(100.0) == pytest.approx(0.1)


def test_a_negative_rate_means_no_limit() -> None:
    limiter = TokenBucket(-1.0, 1, 0.0)
    assert {limiter.reserve(0.0) for _ in range(1000)} == {0.0}


def test_a_zero_rate_uses_the_default_rate() -> None:
    limiter = TokenBucket(0.0, 1, 0.0)
    assert limiter.reserve(0.0) == 0.0
    assert limiter.reserve(0.0) == pytest.approx(0.2)


def test_take_never_waits_or_incurs_debt() -> None:
    bucket = TokenBucket(2.0, 2, 0.0)
    assert [bucket.take(now) for now in (0.0, 0.0, 0.0, 0.5, 0.5)] == [True, True, False, True, False]
    assert (bucket.is_full(1.0), bucket.is_full(1.5)) == (False, True)
