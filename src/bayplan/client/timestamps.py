"""Times as Kubernetes' clients write them: ``metav1.Time`` in whole seconds, ``metav1.MicroTime`` with six digits more."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def format_time(time_ns: int) -> str:
    """Return a time since 1970, cut to the second: ``2026-01-31T12:00:00Z``."""
    return format_micro_time(time_ns)[:19] + "Z"


def format_micro_time(time_ns: int) -> str:
    """Return a time since 1970, cut to the microsecond: ``2026-01-31T12:00:00.000000Z``."""
    moment = _EPOCH + timedelta(microseconds=time_ns // 1000)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
