"""Units of time in nanoseconds; names of values in nanoseconds end in `_ns`."""

MILLISECOND_NS = 1_000_000
SECOND_NS = 1_000 * MILLISECOND_NS
MINUTE_NS = 60 * SECOND_NS
HOUR_NS = 60 * MINUTE_NS
DAY_NS = 24 * HOUR_NS
