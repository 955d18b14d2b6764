"""Moments as people type them."""

from datetime import UTC, datetime, timedelta

import pytest

from klaw_core.values.moments import parse_moment

NOW = datetime(2026, 3, 1, 12, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-02-24", datetime(2026, 2, 24, tzinfo=UTC)),
        ("2026-02-24T10:30", datetime(2026, 2, 24, 10, 30, tzinfo=UTC)),
        ("2026-02-24 10:30", datetime(2026, 2, 24, 10, 30, tzinfo=UTC)),
        ("2026-02-24T10:30+02:00", datetime(2026, 2, 24, 8, 30, tzinfo=UTC)),
        ("2026-02-24T10:30Z", datetime(2026, 2, 24, 10, 30, tzinfo=UTC)),
        ("today", datetime(2026, 3, 1, tzinfo=UTC)),
        (" Yesterday ", datetime(2026, 2, 28, tzinfo=UTC)),
        ("6h", datetime(2026, 3, 1, 6, 30, tzinfo=UTC)),
        ("7d", datetime(2026, 2, 22, 12, 30, tzinfo=UTC)),
        ("2W", datetime(2026, 2, 15, 12, 30, tzinfo=UTC)),
        ("1y", datetime(2025, 3, 1, 12, 30, tzinfo=UTC)),
    ],
)
def test_a_date_or_a_time_ago_becomes_a_moment(text, moment):
    assert parse_moment(text, NOW) == moment


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
    assert parse_moment(text, NOW, timedelta(days=1)) == moment


@pytest.mark.parametrize("text", ["", "soon", "2026-02-30", "24.2.2026", "7", "-7d", "999999y"])
def test_an_invalid_date_is_rejected(text):
    with pytest.raises((ValueError, OverflowError)):
        parse_moment(text, NOW)
