"""Which date a text names, from the day on which it was said."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klaw_words.dates import resolve, resolve_relative

WEDNESDAY = datetime(2026, 11, 25, 12, tzinfo=UTC)
ROWS = [
    tuple(line.split(" | ", 1))
    for line in (Path(__file__).parent / "dates.txt").read_text("utf-8").splitlines()
    if not line.startswith("#")
]


def test_the_table_is_long_enough():
    assert len(ROWS) >= 300


@pytest.mark.parametrize(("expected", "text"), ROWS)
def test_a_date_is_computed_or_unknown(expected, text):
    when = resolve(text, WEDNESDAY)
    assert ("-" if when is None else f"{when.first} {when.precision}") == expected


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("I will move in two weeks", "2026-12-07"),
        ("I will move in three months", "2027-02-01"),
        ("через неделю перееду", "2026-11-30"),
        ("через 3 дня", "2026-11-28"),
        ("三天后", "2026-11-28"),
        ("I will move in May", "2027-05-01"),
        ("We will meet this Friday", "2026-11-27"),
        ("Мы встретимся в эту пятницу", "2026-11-27"),
        ("in drei Wochen", "2026-12-14"),
    ],
)
def test_a_text_about_the_future_names_what_is_ahead(text, day):
    assert str(resolve(text, WEDNESDAY, forward=True).first) == day


@pytest.mark.parametrize(
    ("question", "first"),
    [
        ("what did I do on Monday", "2026-11-23"),
        ("am Freitag", "2026-11-20"),
        ("notes of November", "2026-11-01"),
        ("last December", "2025-12-01"),
    ],
)
def test_a_question_looks_back(question, first):
    when, _ = resolve_relative(question, WEDNESDAY)
    assert str(when.first) == first


def test_what_is_not_relative_is_left_to_others():
    assert resolve_relative("on 24 May 2024", WEDNESDAY) is None
    when, rest = resolve_relative("what did I read last week about kilns", WEDNESDAY)
    assert (str(when.first), str(when.last), rest.split()) == (
        "2026-11-16",
        "2026-11-22",
        ["what", "did", "I", "read", "about", "kilns"],
    )


PHRASES = r"(?i)(last|past|this|next|in|через|上)? ?\d{0,4} ?(day|week|年|月|год)s?( ago)?"


@pytest.mark.parametrize("text", ["This Friday I moved.", "В эту пятницу я переехал.", "On Monday I moved."])
def test_a_weekday_that_may_be_ahead_or_behind_is_unknown(text):
    assert resolve(text, WEDNESDAY) is None


COUNTS = "einer zwei drei vier fünf sechs sieben acht neun zehn"


@pytest.mark.parametrize(("count", "name"), list(enumerate(COUNTS.split(), start=1)))
def test_german_numbers_are_read(count, name):
    when, _ = resolve_relative(f"vor {name} Woche{'' if count == 1 else 'n'}", WEDNESDAY)
    assert when.first == WEDNESDAY.date() - timedelta(days=2, weeks=count)


MONTHS = "Januar Februar März April Mai Juni Juli August September Oktober November Dezember"


@pytest.mark.parametrize(("number", "name"), list(enumerate(MONTHS.split(), start=1)))
def test_german_months_are_read(number, name):
    when, _ = resolve_relative(f"Notizen im {name}", WEDNESDAY)
    assert (when.first.month, when.precision) == (number, "month")


@given(st.text(max_size=40) | st.from_regex(PHRASES))
def test_any_text_is_accepted(text):
    when = resolve(text, WEDNESDAY, forward=True)
    assert when is None or when.first <= when.last <= when.first + timedelta(days=365)
