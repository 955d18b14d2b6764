"""Moments as people write them."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klaw_words.days import written_moment

MORNING = datetime(2021, 7, 5, 8, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        *((text, MORNING) for text in ("2021-07-05T08:30Z", "2021/7/5 8:30", "July 5, 2021 at 8:30", "5.7.2021 08:30")),
        *((text, MORNING) for text in ("<2021-07-05 Mon 08:30>", "Mon, 05 Jul 2021 10:30:00 +0200", "20210705T0830")),
        *(
            (text, MORNING.replace(hour=0, minute=0))
            for text in (
                "2021-07-05",
                "2021.07.05",
                "[2021-07-05 Mon]",
                "Jul 5th, 2021",
                "5 July 2021",
                "5th of july, 2021",
            )
        ),
        *((text, datetime(2021, 7, 1, tzinfo=UTC)) for text in ("2021-07", "2021/7", "July 2021", "jul. 2021")),
        *((text, datetime(2020, 9, 3, tzinfo=UTC)) for text in ("Sept 3, 2020", "sep 3 2020", "3. 9. 2020")),
        *((text, MORNING) for text in ("July 5, 2021 08:30 UTC", "5.7.2021 8:30Z", "Mon, 05 Jul 2021 14:00 +0530")),
        *((text, MORNING) for text in ("July 5, 2021 8:30 AM", "2021-07-05 8:30am", "5 July 2021, 08:30 CET")),
        *((text, MORNING.replace(hour=20)) for text in ("July 5, 2021 8:30 PM", "2021-07-05 08:30 p.m.")),
        *(
            (text, datetime(2021, 7, 15, tzinfo=UTC))
            for text in ("7/15/2021", "15/7/2021", "2021-07-15 99:00", "15.7.2021, soon")
        ),
        ("July 5, 2021 08:30:15", MORNING.replace(second=15)),
        ("2021/07/05 08:30:15.5", MORNING.replace(second=15, microsecond=500_000)),
        ("2021", datetime(2021, 1, 1, tzinfo=UTC)),
        *(
            (text, MORNING.replace(hour=0, minute=0))
            for text in (
                *("5. Juli 2021", "Montag, 5. Juli 2021", "5 juillet 2021", "5 de julio de 2021", "5 luglio 2021"),
                *(
                    "5 июля 2021",
                    "5-Jul-2021",
                    "2021年7月5日",
                    "2021 年 7 月 5 日",
                    "2021년 7월 5일",
                    "2021-W27",
                    "2021W271",
                ),
            )
        ),
        *(
            (text, datetime(2021, 3, 1, tzinfo=UTC))
            for text in ("1er mars 2021", "1. März 2021", "1º de março de 2021")
        ),
        ("2021年7月5日 08:30", MORNING),
        ("2021年7月", datetime(2021, 7, 1, tzinfo=UTC)),
    ],
)
def test_a_moment_is_read_as_people_write_it(text, moment):
    assert written_moment(text) == moment


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "soon",
            "12",
            "Ju 5, 2021",
            "Juneau 5, 2021",
            "5 jui 2021",
            "5-2021",
            "2021-W54",
            "2021-13",
            "31 June 2021",
            "07/05/2021",
            "2021-07 99:00",
            "1712112001234",
            "199012311234",
        ),
        *("1234", "0815", "July 5," + " " * 60 + "2021"),
        *("v2021", "version 2021-07", "x" * 100, "0001-01-01T00:00:00+05:00", "9999-12-31T23:00:00-05:00"),
    ],
)
def test_other_texts_are_no_moment(text):
    assert written_moment(text) is None


@given(st.text(max_size=40) | st.from_regex(r"\A[\[<]?\d{1,4}[-./ ](\d|may|feb){1,3}[-./ ]\d{1,4}( \d\d:\d\d)?"))
def test_any_text_has_a_moment_in_utc_or_none(text):
    found = written_moment(text)
    assert found is None or found.tzinfo is UTC
