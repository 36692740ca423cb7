"""Cron schedules as the CronJob controller parses them: five fields, names, ``@hourly`` and similar, time zones.

The rules are those of the library that kube-controller-manager uses (robfig/cron v3, ``ParseStandard``), quirks
included: ``*/2`` counts as a restriction of its field (so day of month and day of week are then alternatives), Sunday
is 0 and never 7, ``?`` equals ``*``, and ``@every`` counts from the last time rather than from the epoch. Local times
are resolved as Go's ``time.Date`` resolves them, so that a schedule in a daylight-saving gap or overlap fires when the
schedule of a real cluster does.

Time is integer nanoseconds since the Unix epoch. Documentation:
https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/
"""

from __future__ import annotations

import re
from calendar import timegm
from datetime import UTC, datetime, timedelta, tzinfo

import msgspec

from bayplan.base.durations import SECOND_NS
from bayplan.base.errors import InputError
from bayplan.base.go_arithmetic import whole_number
from bayplan.base.go_text.durations import read_duration

_HOUR = 3600
_YEARS_TO_SEARCH = 5

_MONTH_NAMES = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_DAY_NAMES = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]
_MONTHS = {name: number for number, name in enumerate(_MONTH_NAMES, start=1)}
_DAYS = {name: number for number, name in enumerate(_DAY_NAMES)}

_DESCRIPTORS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}

_INTEGER = re.compile(r"\+?[0-9]+", re.ASCII)


class _Field(msgspec.Struct, frozen=True):
    """The values of one field; `star`: whether the field contains ``*`` or ``?`` without a step."""

    values: frozenset[int]
    star: bool


class EverySchedule(msgspec.Struct, frozen=True):
    """``@every <duration>``: a constant delay in whole seconds, at least one."""

    delay_seconds: int

    def next_after(self, time_ns: int) -> int | None:
        """Return ``time_ns`` plus the delay, rounded down to a whole second."""
        return (time_ns // SECOND_NS + self.delay_seconds) * SECOND_NS


class FieldSchedule(msgspec.Struct, frozen=True):
    """A schedule by fields, in a time zone."""

    minute: _Field
    hour: _Field
    day: _Field
    month: _Field
    weekday: _Field
    zone: tzinfo

    def next_after(self, time_ns: int) -> int | None:
        """Return the first matching time after ``time_ns``, or None if there is none within five years (31 February)."""
        if not all(field.values for field in (self.minute, self.hour, self.day, self.month, self.weekday)):
            return None  # A field with only commas is accepted, and never matches.
        search = _Search(self, time_ns // SECOND_NS + 1)
        last_year = search.local.year + _YEARS_TO_SEARCH
        while search.local.year <= last_year:
            if search.advance():
                return search.seconds * SECOND_NS
        return None


class _Search:
    """The search for the next time that matches a schedule.

    Attributes:
        seconds: the time reached, in Unix seconds.
        local: the same time in the schedule's zone.
    """

    def __init__(self, schedule: FieldSchedule, seconds: int) -> None:
        self._schedule = schedule
        self._moved = False
        self._go_to(seconds)

    def advance(self) -> bool:
        """Move each field to its next match in turn, coarse to fine. Return False if a move wraps into a coarser field.

        The first move resets the finer fields.
        """
        return self._to_month() and self._to_day() and self._to_hour() and self._to_minute() and self._to_second()

    def _go_to(self, seconds: int) -> None:
        self.seconds = seconds
        self.local = datetime.fromtimestamp(seconds, self._schedule.zone)

    def _reset(self, start: datetime) -> None:
        """Before the first move, go to the start of a period."""
        if not self._moved:
            self._moved = True
            self._go_to(self._instant(start))

    def _to_month(self) -> bool:
        while self.local.month not in self._schedule.month.values:
            self._reset(datetime(self.local.year, self.local.month, 1))
            local = self.local
            year, month = (local.year + 1, 1) if local.month == 12 else (local.year, local.month + 1)
            # Like AddDate: the time of day is preserved, and a day that the month lacks overflows into the next month.
            first = datetime(year, month, 1, local.hour, local.minute, local.second)
            self._go_to(self._instant(first + timedelta(days=local.day - 1)))
            if self.local.month == 1:
                return False
        return True

    def _to_day(self) -> bool:
        while not self._day_matches():
            self._reset(datetime(self.local.year, self.local.month, self.local.day))
            before = self.seconds
            self._go_to(self._instant(self.local.replace(tzinfo=None, fold=0) + timedelta(days=1)))
            hour = self.local.hour
            if hour != 0:
                # Midnight does not exist on this day, or occurs twice: use the nearest start of a day.
                self._go_to(self.seconds + (24 - hour if hour > 12 else -hour) * _HOUR)
            if self.seconds <= before:
                # The zone skipped a whole day (Samoa, 30 December 2011), where robfig/cron loops forever.
                self._go_to(before + 24 * _HOUR)
            if self.local.day == 1:
                return False
        return True

    def _to_hour(self) -> bool:
        while self.local.hour not in self._schedule.hour.values:
            self._reset(datetime(self.local.year, self.local.month, self.local.day, self.local.hour))
            self._go_to(self.seconds + _HOUR)
            if self.local.hour == 0:
                return False
        return True

    def _to_minute(self) -> bool:
        while self.local.minute not in self._schedule.minute.values:
            if not self._moved:
                self._moved = True
                self._go_to(self.seconds - self.seconds % 60)
            self._go_to(self.seconds + 60)
            if self.local.minute == 0:
                return False
        return True

    def _to_second(self) -> bool:
        """Go to second 0, the only one at which a five-field schedule fires."""
        second = self.local.second
        if second:
            self._moved = True
            self._go_to(self.seconds + 60 - second)
        return not second

    def _day_matches(self) -> bool:
        day, weekday = self._schedule.day, self._schedule.weekday
        by_day, by_weekday = self.local.day in day.values, self.local.isoweekday() % 7 in weekday.values
        return by_day and by_weekday if day.star or weekday.star else by_day or by_weekday

    def _instant(self, civil: datetime) -> int:
        """Convert a local time to Unix seconds as Go's ``time.Date`` does.

        Read it as UTC, subtract the zone's offset at that time, and correct the offset once.
        """
        reading = timegm(civil.timetuple())
        offset = self._offset(reading)
        return reading - self._offset(reading - offset)

    def _offset(self, seconds: int) -> int:
        delta = datetime.fromtimestamp(seconds, self._schedule.zone).utcoffset()
        return 0 if delta is None else int(delta.total_seconds())


CronSchedule = EverySchedule | FieldSchedule


def parse_cron_schedule(text: str, *, time_zone: str | None = None) -> CronSchedule:
    """Parse ``spec.schedule`` of a CronJob.

    Args:
        text: five fields or a descriptor. A leading ``TZ=`` or ``CRON_TZ=`` takes precedence over ``time_zone``.
        time_zone: ``spec.timeZone``, an IANA name; None is UTC, the zone of kube-controller-manager.

    Raises:
        InputError: the schedule or the time zone is invalid.
    """
    zone_name = time_zone
    rest = text
    if text.startswith(("TZ=", "CRON_TZ=")):
        head, _, rest = text.partition(" ")
        zone_name = head.partition("=")[2]
        rest = rest.strip()
    zone = load_time_zone(zone_name)
    if rest.startswith("@every "):
        duration_ns = max(read_duration(rest.removeprefix("@every ")), SECOND_NS)
        return EverySchedule(duration_ns // SECOND_NS)
    if rest.startswith("@"):
        try:
            rest = _DESCRIPTORS[rest]
        except KeyError:
            raise InputError(
                "cron schedule", got=repr(rest), wanted=f"one of {', '.join(_DESCRIPTORS)}, @every"
            ) from None
    fields = rest.split()
    if len(fields) != 5:
        raise InputError("cron schedule", got=repr(text), wanted="exactly 5 fields", hint="'0 * * * *'")
    return FieldSchedule(
        minute=_parse_field(fields[0], 0, 59, {}),
        hour=_parse_field(fields[1], 0, 23, {}),
        day=_parse_field(fields[2], 1, 31, {}),
        month=_parse_field(fields[3], 1, 12, _MONTHS),
        weekday=_parse_field(fields[4], 0, 6, _DAYS),
        zone=zone,
    )


def load_time_zone(name: str | None) -> tzinfo:
    """Return the time zone of an IANA name. For None, "" and ``UTC``, return UTC without reading from disk.

    Raises:
        InputError: this machine does not know the name.
    """
    if not name or name == "UTC":
        return UTC
    # Imported here, because simulations rarely need it.
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise InputError(
            "time zone", got=repr(name), wanted="an IANA time zone known to this machine", hint="'Europe/Berlin'"
        ) from None


def _parse_field(text: str, low: int, high: int, names: dict[str, int]) -> _Field:
    values: set[int] = set()
    star = False
    for part in filter(None, text.split(",")):
        span, is_star = _parse_range(part, low, high, names)
        values.update(span)
        star = star or is_star
    return _Field(frozenset(values), star)


def _parse_range(text: str, low: int, high: int, names: dict[str, int]) -> tuple[range, bool]:
    """Parse ``*``, ``N`` or ``N-M``, each with an optional ``/step``; ``N/step`` extends to the end of the field."""
    bounds, *steps = text.split("/")
    ends = bounds.split("-")
    star = ends[0] in ("*", "?")
    if star:
        first, last = low, high
    else:
        first = last = _parse_number(ends[0], text, names)
        if len(ends) == 2:
            last = _parse_number(ends[1], text, names)
    if len(steps) > 1 or (len(ends) > 2 and not star):
        raise InputError("cron field", got=repr(text), wanted="a number, a range or a step")
    step = 1
    if steps:
        step = _parse_number(steps[0], text, {})
        if len(ends) == 1:
            last = high
        if step > 1:
            star = False
    if not (low <= first <= last <= high) or step == 0:
        raise InputError("cron field", got=repr(text), wanted=f"values from {low} to {high} in ascending order")
    return range(first, last + 1, step), star


def _parse_number(text: str, field: str, names: dict[str, int]) -> int:
    named = names.get(text.lower())
    if named is not None:
        return named
    if not _INTEGER.fullmatch(text):
        raise InputError("cron field", got=repr(field), wanted="integers" + (" or names" if names else ""))
    return whole_number(text)
