"""Histograms and counters that a single thread writes."""

from __future__ import annotations

from prometheus_client import CollectorRegistry

from bayplan.live.series import Distribution, Tally, exponential


def test_a_value_at_the_upper_bound_of_a_bucket_counts_in_that_bucket() -> None:
    registry = CollectorRegistry()
    distribution = Distribution("d", "text", ["kind"], buckets=exponential(1, 2, 2), registry=registry)
    for value in (0.5, 1.0, 2.0, 3.0):
        distribution.observe(value, "a")
    found = {
        bound: registry.get_sample_value("d_bucket", {"kind": "a", "le": bound}) for bound in ("1.0", "2.0", "+Inf")
    }
    assert found == {"1.0": 2, "2.0": 3, "+Inf": 4}
    assert registry.get_sample_value("d_sum", {"kind": "a"}) == 6.5


def test_a_counter_without_labels_starts_at_zero() -> None:
    registry = CollectorRegistry()
    tally = Tally("t", "text", registry=registry)
    assert registry.get_sample_value("t_total") == 0
    tally.add()
    assert registry.get_sample_value("t_total") == 1
