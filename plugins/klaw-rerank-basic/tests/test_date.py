"""What day a question asks about, and what is preferred for it."""

import re
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klaw_core import Filters, Memory, Preference, load_config
from klaw_core.searching.preferring import prefer
from klaw_core.values.search import Hit
from klaw_core.values.text import Chunk, StoredChunk
from klaw_rerank_basic.date import Dates, preferred_days
from klaw_rerank_basic.plugin import QUESTIONS
from klaw_testing.extension import ExtensionContract
from klaw_words.days import named_day


@pytest.fixture
def memory(tmp_path):
    config = load_config(data_dir=tmp_path / "data", overrides={"memory": {"embedding": {"type": "none"}}})
    with Memory.open(config) as memory:
        yield memory


TODAY = date(2026, 11, 23)  # a Monday
DAY = date(2025, 5, 10)


@pytest.mark.parametrize(
    "question",
    [
        "2025-05-10",
        "2025/5/10",
        "what did I do on 10 May 2025?",
        "10th of May, 2025",
        "May 10, 2025: the kiln",
        "what was decided on 10.05.2025",
        "Saturday 10 MAY 2025",
    ],
)
def test_a_complete_date_is_that_day(question):
    preference = preferred_days(question, TODAY)
    assert (preference.first, preference.last, preference.is_named) == (DAY, DAY, True)


@pytest.mark.parametrize("question", ["10 May", "on May 10th"])
def test_a_date_without_a_year_is_that_day_of_any_year(question):
    preference = preferred_days(question, TODAY)
    assert preference.holds(DAY)
    assert preference.holds(DAY.replace(year=2019))
    assert not preference.holds(DAY + timedelta(days=1))


@pytest.mark.parametrize(
    ("question", "first", "last"),
    [
        ("what happened yesterday?", (2026, 11, 22), (2026, 11, 22)),
        ("the day before yesterday", (2026, 11, 21), (2026, 11, 21)),
        ("today", (2026, 11, 23), (2026, 11, 23)),
        ("what did she say last Tuesday", (2026, 11, 17), (2026, 11, 17)),
        ("last monday", (2026, 11, 16), (2026, 11, 16)),
        ("3 days ago", (2026, 11, 20), (2026, 11, 20)),
        ("two weeks ago", (2026, 11, 9), (2026, 11, 15)),
        ("на прошлой неделе", (2026, 11, 16), (2026, 11, 22)),
        ("昨天", (2026, 11, 22), (2026, 11, 22)),
        ("this week", (2026, 11, 23), (2026, 11, 29)),
        ("last week", (2026, 11, 16), (2026, 11, 22)),
        ("last month", (2026, 10, 1), (2026, 10, 31)),
        ("last year", (2025, 1, 1), (2025, 12, 31)),
        ("in February 2024", (2024, 2, 1), (2024, 2, 29)),
        ("plans for 2024-12", (2024, 12, 1), (2024, 12, 31)),
    ],
)
def test_a_relative_day_or_a_month_is_a_hint(question, first, last):
    preference = preferred_days(question, TODAY)
    assert (preference.first, preference.last) == (date(*first), date(*last))
    assert not preference.is_named
    about = preferred_days(f"kilns {question}", TODAY)
    assert (about.first, about.last, about.is_alone) == (date(*first), date(*last), False)
    assert about.weight < preferred_days("notes of 2025-05-10 about kilns", TODAY).weight


@pytest.mark.parametrize(
    "question",
    [
        "",
        "how do kilns work",
        "RFC 2094",
        "version 1.2.2025.7",
        "2025-13-45",
        "127.0.0.1:2025",
        "5 mayors",
    ],
)
def test_other_questions_have_no_day(question):
    assert preferred_days(question, TODAY) is None


@given(st.text(max_size=40) | st.from_regex(r"\d{1,4}[-./ ](\d|may|feb){1,3}[-./ ]\d{1,4}"))
def test_any_question_is_accepted(question):
    found = preferred_days(question, TODAY)
    assert found is None or (found.first <= found.last and 0 < found.weight <= 1)


def prefer_days(days, found):
    notices = []
    ordered = prefer("date", Preference(days.weight, days.has), found, notices, lambda hit: hit.relevance)
    assert notices == []
    return ordered


def chunk(key, *, title="", heading=(), metadata=None, created=date(2026, 1, 1), chat=None):
    moment = datetime(created.year, created.month, created.day, 9, tzinfo=UTC)
    text = Chunk(f"{key}", "text", 0, 4, 1, 1, heading, title=title)
    return StoredChunk(key, text, f"notes/{key}.md", "s", moment, chat, metadata=metadata or {})


@pytest.mark.parametrize(
    "preferred",
    [
        chunk(9, title=named_day(DAY)),
        chunk(9, heading=("Log", "10 May 2025")),
        chunk(9, heading=("2025-05-10",)),
        chunk(9, metadata={"date": "2025-05-10T08:00:00"}),
        chunk(9, metadata={"date": "May 10, 2025"}),
        chunk(9, metadata={"Published": 20250510}),
        chunk(9, created=DAY, chat="telegram_1"),
    ],
)
def test_a_note_of_the_day_ranks_before_a_note_that_links_to_it(preferred):
    others = [(chunk(key, created=DAY), Hit(key, 1 / key)) for key in (1, 2)]
    found = [*others, (preferred, Hit(9, 0.1))]
    ordered = prefer_days(preferred_days("2025-05-10", TODAY), found)
    assert [stored.key for stored, _ in ordered] == [9, 1, 2]
    (part,) = ordered[0][1].contributions
    assert (part.component, part.rank) == ("date", 1)
    assert ordered[0][1].score == pytest.approx(0.1 + part.value)
    assert ordered[1:] == others


def test_a_hint_does_not_outweigh_a_much_better_match():
    found = [(chunk(1), Hit(1, 1.0)), (chunk(2), Hit(2, 0.9)), (chunk(3), Hit(3, 0.3))]
    yesterday = TODAY - timedelta(days=1)
    found[1:] = [(chunk(key, created=yesterday), hit) for key, (_, hit) in enumerate(found[1:], start=2)]
    ordered = prefer_days(preferred_days("the harbour yesterday", TODAY), found)
    assert [stored.key for stored, _ in ordered] == [2, 1, 3]


@pytest.mark.parametrize(
    "question",
    [
        *("What did I do yesterday?", "what did we talk about yesterday", "yesterday's notes", "messages of yesterday"),
        *("Что я делал вчера?", "昨天", "Was habe ich gestern gemacht?"),
    ],
)
def test_a_question_that_contains_only_a_day_finds_what_is_of_that_day(memory, tmp_path, question):
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "copied.md").write_text("what did I do, yesterday, вчера, 昨天, gestern\n")  # its time is that of the copy
    for back in range(4):
        day = date.today() - timedelta(days=back)  # noqa: DTZ011
        (notes / f"{day}.md").write_text(
            f"# {day}\n\nA word of day {back}: what did I do, yesterday, вчера, 昨天, gestern\n"
        )
    memory.index(notes)
    found = memory.search(question)
    assert found[0].path == f"notes/{date.today() - timedelta(days=1)}.md"  # noqa: DTZ011
    assert not found.nothing_fits
    assert any(notice.startswith("read as ") for notice in found.notices)


def test_a_question_with_only_a_day_finds_what_was_written_on_another(memory, tmp_path):
    today = date.today()  # noqa: DTZ011
    notes = tmp_path / "notes"
    notes.mkdir()
    diary = "".join(f"## {today - timedelta(days=back)}\n\nHarbour {back}.\n\n" for back in range(1, 40))
    (notes / "diary.md").write_text(f"# Diary\n\n{diary}")
    (notes / "plans.md").write_text(f"# Plans\n\nDentist on {today + timedelta(days=1)}.\n")
    memory.index(notes)
    assert "Harbour 1." in memory.search("what did I do yesterday?")[0].content
    assert "Dentist" in memory.search("what meetings do I have tomorrow?")[0].content
    assert memory.search("what did I do yesterday?", filters=Filters(since=datetime.now(UTC) - timedelta(days=9)))


def test_an_empty_result_stays_empty():
    assert prefer_days(preferred_days("2025-05-10", TODAY), ()) == ()


@given(
    st.from_regex(
        r"\A(\w{0,3} )?\d{1,4}(st|th)?( of)?[-./, ]{1,2}(\d|may|FEB|sept\.){1,3}[-./, ]{1,2}\d{1,4}( \w{0,3})?\Z"
    )
)
def test_it_is_asked_about_every_date(question):
    if Dates().prefer(question) is not None:
        assert re.search(QUESTIONS, question, re.IGNORECASE)


def test_it_is_asked_about_every_relative_day():
    days = Path(__file__).parents[2] / "klaw-words" / "tests" / "dates.txt"
    texts = [line.split(" | ")[1] for line in days.read_text("utf-8").splitlines() if " | " in line]
    missed = [text for text in texts if Dates().prefer(text) and not re.search(QUESTIONS, text, re.IGNORECASE)]
    assert (missed, len(texts) > 300) == ([], True)


WORDS = ["this", "last", "past", "the", "week", "Month", "year", "Friday", "days", "two", "3", "ago", "today", "May"]


@given(st.lists(st.sampled_from(WORDS), max_size=5), st.sampled_from([" ", ", ", "-", "\n", "_"]))
def test_it_is_not_asked_only_about_questions_without_a_day(words, separator):
    question = separator.join(words)
    if not re.search(QUESTIONS, question, re.IGNORECASE):
        assert Dates().prefer(question) is None


class TestDates(ExtensionContract):
    name = "date"

    @pytest.fixture
    def memory(self, memory):
        memory.save("The harbour was frozen.")
        return memory
