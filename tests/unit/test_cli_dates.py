"""Moments as people type them."""

import time
from datetime import UTC, datetime, timedelta

import pytest

from klaw_core.cli import dates
from klaw_core.cli.moments import parse_moment

NOW = datetime(2026, 3, 1, 12, 30, tzinfo=UTC)


@pytest.fixture
def clock_of(monkeypatch):
    def set_zone(name):
        monkeypatch.setenv("TZ", name)
        time.tzset()

    yield set_zone
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-02-24", datetime(2026, 2, 24, tzinfo=UTC)),
        ("2026-02-24T10:30", datetime(2026, 2, 24, 10, 30, tzinfo=UTC)),
        ("2026-02-24 10:30", datetime(2026, 2, 24, 10, 30, tzinfo=UTC)),
        ("2026-02-24T10:30+02:00", datetime(2026, 2, 24, 8, 30, tzinfo=UTC)),
        ("2026-02-24T10", datetime(2026, 2, 24, 10, tzinfo=UTC)),
        ("2026-02-24T10:30Z", datetime(2026, 2, 24, 10, 30, tzinfo=UTC)),
        ("today", datetime(2026, 3, 1, tzinfo=UTC)),
        (" Yesterday ", datetime(2026, 2, 28, tzinfo=UTC)),
        ("6h", datetime(2026, 3, 1, 6, 30, tzinfo=UTC)),
        ("7d", datetime(2026, 2, 22, 12, 30, tzinfo=UTC)),
        ("2W", datetime(2026, 2, 15, 12, 30, tzinfo=UTC)),
        ("1y", datetime(2025, 3, 1, 12, 30, tzinfo=UTC)),
        ("3 days ago", datetime(2026, 2, 26, 12, 30, tzinfo=UTC)),
        ("a Week  ago", datetime(2026, 2, 22, 12, 30, tzinfo=UTC)),
        ("an hour ago", datetime(2026, 3, 1, 11, 30, tzinfo=UTC)),
        ("2 months", datetime(2025, 12, 31, 12, 30, tzinfo=UTC)),
    ],
)
def test_a_date_or_a_time_ago_becomes_a_moment(text, moment):
    found = parse_moment(text, NOW)
    assert (found, found.tzinfo) == (moment, UTC)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-02-24", datetime(2026, 2, 25, tzinfo=UTC)),
        ("today", datetime(2026, 3, 2, tzinfo=UTC)),
        ("2026-02-24T10:30", datetime(2026, 2, 24, 10, 30, tzinfo=UTC)),
        ("7d", datetime(2026, 2, 22, 12, 30, tzinfo=UTC)),
    ],
)
def test_until_a_day_includes_that_day(text, moment):
    assert parse_moment(text, NOW, day="end") == moment


@pytest.mark.parametrize(
    "text",
    ["", "soon", "2026-02-30", "2026-13", "24.2.2026", "7", "0000", "-7d", "999999y", "last", "days ago", "next week"],
)
def test_an_invalid_date_is_rejected(text):
    with pytest.raises(ValueError, match="write 2026-02-24, 2026-02, 2026, "):
        parse_moment(text, NOW)


@pytest.mark.parametrize(
    ("text", "begin", "following"),
    [
        ("2024", "2024-01-01", "2025-01-01"),
        *(("2024-02", "2024-02-01", "2024-03-01"), ("2024/12", "2024-12-01", "2025-01-01")),
        *(("this week", "2026-02-23", "2026-03-02"), ("Last Week", "2026-02-16", "2026-02-23")),
        *(("this month", "2026-03-01", "2026-04-01"), ("last month", "2026-02-01", "2026-03-01")),
        *(("this year", "2026-01-01", "2027-01-01"), ("last year", "2025-01-01", "2026-01-01")),
        *(("today", "2026-03-01", "2026-03-02"), ("yesterday", "2026-02-28", "2026-03-01")),
    ],
)
def test_a_period_is_from_its_first_to_its_last_day(clock_of, text, begin, following):
    clock_of("UTC")
    start, end = (datetime.fromisoformat(f"{day}T00:00+00:00") for day in (begin, following))
    assert parse_moment(text, NOW) == parse_moment(text, NOW, day="first") == start
    assert parse_moment(text, NOW, day="end") == end
    assert parse_moment(text, NOW, day="last") == end - timedelta(milliseconds=1)
    clock_of("Asia/Tokyo")
    assert parse_moment(text, NOW, day="first") <= start
    assert parse_moment(text, NOW, day="end") >= end


# Eight in the morning on the first of March in Tokyo, six in the evening on the last of February in New York.
ELSEWHERE = datetime(2026, 2, 28, 23, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("zone", "today"), [("Asia/Tokyo", 1), ("UTC", 28), ("America/New_York", 28), ("Pacific/Kiritimati", 1)]
)
def test_an_interval_of_days_has_every_moment_of_the_local_day_and_the_notes_of_that_day(clock_of, zone, today):
    clock_of(zone)
    begin, end = parse_moment("today", ELSEWHERE, day="first"), parse_moment("today", ELSEWHERE, day="end")
    local = ELSEWHERE.astimezone()
    assert local.day == today
    assert begin <= local.replace(hour=0) < local.replace(hour=23, minute=59) < end
    note = datetime(local.year, local.month, local.day, tzinfo=UTC)
    assert begin <= note < end
    assert end - begin <= timedelta(days=1, hours=14)
    assert parse_moment("today", ELSEWHERE) == note
    assert parse_moment(note.date().isoformat(), ELSEWHERE, day="first") == begin
    assert parse_moment("yesterday", ELSEWHERE, day="first") == begin - timedelta(days=1)
    assert parse_moment("today", ELSEWHERE, day="last") == note + timedelta(days=1) - timedelta(milliseconds=1)


@pytest.mark.parametrize(("zone", "hours"), [("Asia/Tokyo", -9), ("UTC", 0), ("America/New_York", 5)])
def test_a_time_without_a_zone_is_that_of_the_clock(clock_of, zone, hours):
    clock_of(zone)
    noon = datetime(2026, 2, 24, 12, tzinfo=UTC)
    assert parse_moment("2026-02-24T12:00", ELSEWHERE) == noon + timedelta(hours=hours)
    assert parse_moment("2026-02-24T12:00Z", ELSEWHERE) == noon


@pytest.mark.parametrize("zone", ["<+26>-26", "<-26>+26", "<+24>-24"])
def test_a_clock_whose_zone_is_none_is_in_utc(clock_of, zone):
    clock_of("UTC")
    texts = ("2026-02", "2026-02-24", "2026-02-24T12:00", "7d", "yesterday", "last month")
    days = ("begin", "last", "first", "end")
    expected = [parse_moment(text, ELSEWHERE, day=day) for text in texts for day in days]
    clock_of(zone)
    assert [parse_moment(text, ELSEWHERE, day=day) for text in texts for day in days] == expected


@pytest.mark.parametrize("zone", ["Asia/Tokyo", "UTC", "America/New_York"])
def test_the_first_and_the_last_day_of_the_calendar_are_days(clock_of, zone):
    clock_of(zone)
    first = parse_moment("0001-01-01", ELSEWHERE, day="first")
    assert first.replace(tzinfo=None) - datetime(1, 1, 1) <= timedelta(hours=5)  # noqa: DTZ001  # years have no zone
    assert parse_moment("9999-12-31", ELSEWHERE, day="end") > datetime(9999, 12, 31, 23, tzinfo=UTC)


@pytest.mark.parametrize(("option", "day"), [(dates.when, 24), (dates.since, 24), (dates.until, 25)])
def test_an_option_is_the_beginning_of_its_day_and_until_is_the_end(clock_of, option, day):
    clock_of("UTC")
    assert option(None, None, "2026-02-24") == datetime(2026, 2, day, tzinfo=UTC)
    assert option(None, None, None) is None


def test_an_option_since_a_day_begins_with_the_earlier_of_both_beginnings(clock_of):
    clock_of("Asia/Tokyo")
    assert dates.since(None, None, "2026-02-24") == datetime(2026, 2, 23, 15, tzinfo=UTC)
    assert dates.when(None, None, "2026-02-24") == datetime(2026, 2, 24, tzinfo=UTC)
