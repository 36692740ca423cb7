"""Timestamps, owners, and the functions that copy structs."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.base.errors import InputError
from bayplan.base.go_text.times import parse_time_ns
from bayplan.objects.meta import ObjectMeta, OwnerReference, changed, mapped
from bayplan.objects.node import Node
from bayplan.objects.pod import Pod

SECOND = 1_000_000_000


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("1970-01-01T00:00:00Z", 0, id="the epoch"),
        pytest.param("1970-01-01T00:00:01.5Z", 1_500_000_000, id="a fraction"),
        pytest.param("1970-01-01T00:00:00.123456789Z", 123_456_789, id="nanoseconds"),
        pytest.param("1970-01-01T00:00:00.1234567899Z", 123_456_789, id="digits past nanoseconds are cut off"),
        pytest.param("1970-01-01T00:00:00,5Z", 500_000_000, id="a comma"),
        pytest.param("1970-01-01T01:00:00+01:00", 0, id="east of Greenwich"),
        pytest.param("1969-12-31T22:30:00-01:30", 0, id="west of Greenwich"),
        pytest.param("1969-12-31T23:59:59Z", -SECOND, id="before the epoch"),
        pytest.param("2024-02-29T00:00:00Z", 1_709_164_800 * SECOND, id="a leap day"),
    ],
)
def test_timestamps_are_parsed_to_nanoseconds(text: str, want: int) -> None:
    assert parse_time_ns(text) == want


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("2026-01-01", id="a day alone"),
        pytest.param("2026-01-01T00:00:00", id="no offset"),
        pytest.param("2026-01-01 00:00:00Z", id="a space"),
        pytest.param("2026-01-01t00:00:00z", id="small letters"),
        pytest.param("2026-02-30T00:00:00Z", id="no such day"),
        pytest.param("2026-01-01T24:00:00Z", id="no such hour"),
        pytest.param("2026-01-01T00:00:60Z", id="a leap second"),
        pytest.param("2026-01-01T00:00:00+25:00", id="no such offset"),
        pytest.param("2026-01-01T00:00:00.Z", id="a point without digits"),
        pytest.param("", id="nothing"),
    ],
)
def test_invalid_timestamps_are_refused(text: str) -> None:
    with pytest.raises(InputError, match="timestamp: expected"):
        parse_time_ns(text)


@given(
    st.datetimes(min_value=datetime(1, 1, 2), max_value=datetime(9999, 12, 30)),
    st.integers(-23 * 60, 23 * 60),
)
def test_parse_time_ns_matches_the_standard_library(moment: datetime, offset_minutes: int) -> None:
    zoned = moment.replace(tzinfo=timezone(timedelta(minutes=offset_minutes)))
    want = (zoned - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1) * 1000
    assert parse_time_ns(zoned.isoformat()) == want


def test_the_controller_is_the_first_owner_marked_as_controller() -> None:
    owners = (
        OwnerReference(name="a"),
        OwnerReference(name="b", controller=False),
        OwnerReference(name="c", controller=True),
        OwnerReference(name="d", controller=True),
    )
    assert ObjectMeta(owner_references=owners).controller() is owners[2]
    assert ObjectMeta(owner_references=owners[:2]).controller() is None


def test_keys_contain_the_namespace_if_present() -> None:
    assert Pod(metadata=ObjectMeta(name="p", namespace="n")).key == "n/p"
    assert Node(metadata=ObjectMeta(name="n")).key == "n"


def test_changed_returns_the_same_object_if_nothing_changes() -> None:
    meta = ObjectMeta(name="a", labels={"x": "1"})
    assert changed(meta, name="a", labels={"x": "1"}) is meta
    assert changed(meta, name="b").name == "b"
    assert meta.name == "a"


def test_mapped_returns_the_same_tuple_if_nothing_changes() -> None:
    items = ("a", "b")
    assert mapped(lambda item: item, items) is items
    assert mapped(str.upper, items) == ("A", "B")
    assert mapped(str.upper, ()) == ()
