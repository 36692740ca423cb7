"""Format amounts, durations and shares. The same number always yields the same text."""

from __future__ import annotations

from collections.abc import Sequence

from bayplan.base.durations import DAY_NS, HOUR_NS, MILLISECOND_NS, MINUTE_NS, SECOND_NS

_BINARY = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")


def is_bytes(resource: str) -> bool:
    """Return whether amounts of a resource are bytes."""
    return resource in ("memory", "ephemeral-storage") or resource.startswith("hugepages-")


def format_amount(resource: str, amount: int) -> str:
    """Format an amount of the state (milli-CPU, bytes, counts) as a readable quantity: ``1.5``, ``3.2Gi``, ``12``.

    CPU is exact below 10 and has one decimal above; bytes have one decimal.
    """
    if resource == "cpu":
        if amount % 1000 == 0:
            return f"{amount // 1000:,}"
        return f"{amount / 1000:,.1f}" if abs(amount) >= 10_000 else f"{amount / 1000:.3f}".rstrip("0")
    if not is_bytes(resource):
        return f"{amount:,}"
    sign, amount = ("-", -amount) if amount < 0 else ("", amount)
    power = 0
    while amount >= 1024 << 10 * power and power < len(_BINARY) - 1:
        power += 1
    unit = 1 << 10 * power
    if amount % unit == 0:
        return f"{sign}{amount // unit:,}{_BINARY[power]}"
    return f"{sign}{amount / unit:,.1f}{_BINARY[power]}"


def format_duration(duration_ns: int) -> str:
    """Return a duration with its two largest units: ``0 s``, ``2 ns``, ``350 ms``, ``12.5 s``, ``3 min 20 s``, ``2 d 4 h``."""
    if duration_ns < 0:
        return f"-{format_duration(-duration_ns)}"
    if duration_ns == 0:
        return "0 s"
    for name, size in (("ns", 1), ("\u00b5s", 1_000), ("ms", MILLISECOND_NS)):
        # Rounded to three digits, as in the comparison, so that there is no "1e+03 ms".
        if duration_ns < 999.5 * size:
            return f"{duration_ns / size:.3g} {name}"
    if duration_ns < SECOND_NS:
        return "1 s"
    if duration_ns < MINUTE_NS:
        return f"{duration_ns // (SECOND_NS // 10) / 10:g} s"
    units = (("d", DAY_NS), ("h", HOUR_NS), ("min", MINUTE_NS), ("s", SECOND_NS))
    first = next(place for place, (_, size) in enumerate(units) if duration_ns >= size)
    name, size = units[first]
    text = f"{duration_ns // size:,} {name}"
    below, small = units[first + 1]
    rest = duration_ns % size // small
    return f"{text} {rest} {below}" if rest else text


def format_share(share: float) -> str:
    """Format a share of 1 in percent, with a decimal if it is small: ``0 %``, ``0.4 %``, ``57 %``; never rounded up to 100 %."""
    percent = share * 100
    if 0 < percent < 9.95:
        return "< 0.1 %" if percent < 0.05 else f"{percent:.1f} %"
    return "99 %" if 99 < percent < 100 else f"{percent:.0f} %"


def format_list(items: Sequence[str], *, more: int = 0) -> str:
    """Format items as in a sentence: ``a``, ``a and b``, ``a, b and 3 more``. `more` is the number of items that are not listed."""
    return _joined([*items, f"{more:,} more"] if more else items, "and")


def format_first(items: Sequence[str], most: int) -> str:
    """Format at most `most` items as in a sentence, and the number of the others; see `format_list`."""
    return format_list(items[:most], more=max(0, len(items) - most))


def format_choice(items: Sequence[str], *, more: int = 0) -> str:
    """Format alternatives as in a sentence: ``a``, ``a or b``, ``a, b or 3 more``. `more` is as in `format_list`."""
    return _joined([*items, f"{more:,} more"] if more else items, "or")


def _joined(items: Sequence[str], last: str) -> str:
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} {last} {items[-1]}"
