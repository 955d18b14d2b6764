"""What results look like for a person: other places of a note, relevance, and weak matches."""

from datetime import UTC, datetime

import pytest
from attrs import evolve

from klaw_core.cli.results import ResultStyle, as_markdown, show, show_one
from klaw_core.values.search import Contribution, SearchResult


class Lines:
    def __init__(self):
        self.shown = []

    def line(self, *parts, indent=0):
        self.shown.append(" " * indent + "".join(map(str, (getattr(part, "text", part) for part in parts))))

    def rows(self, rows, **_options):
        self.shown.extend(map(str, rows))


def shown(places):
    also = tuple(f"notes/a.md:{first}-{first + 3}" for first in range(10, 10 + 10 * places, 10))
    when = datetime(2026, 2, 24, tzinfo=UTC)
    result = SearchResult("harbour", "notes/a.md", 1, 2, (), 0.5, "a.md", when, "id", also=also)
    out = Lines()
    show_one(out, result, ResultStyle("harbour"))
    return out.shown[-1].strip()


def test_few_other_places_are_all_shown():
    assert shown(2) == "also in lines 10-13, 20-23"


def test_five_of_many_other_places_are_shown():
    assert shown(8) == "also in lines 10-13, 20-23, 30-33, 40-43, 50-53 and 3 more places"


def test_a_score_is_not_shown_as_a_relevance():
    when = datetime(2026, 2, 24, tzinfo=UTC)
    result = SearchResult(
        "harbour",
        "notes/a.md",
        1,
        2,
        (),
        0.0102,
        "a.md",
        when,
        "id",
        explain=(Contribution("fts5", 1, 2.0, 1.0, 0.0102),),
    )
    lines = []
    for relevance in (0.98, None):
        out = Lines()
        show_one(out, evolve(result, relevance=relevance), ResultStyle("harbour"))
        lines.append(out.shown[0].strip())
    assert lines == ["notes/a.md:1-2  0.98", "notes/a.md:1-2"]


def test_what_no_question_found_has_its_day():
    when = datetime(2026, 2, 24, tzinfo=UTC)
    out = Lines()
    show_one(
        out, SearchResult("harbour", "notes/a.md", 1, 2, (), 0.0, "a.md", when, "id"), ResultStyle("", explain=True)
    )
    assert out.shown[0].strip() == "notes/a.md:1-2  2026-02-24"


def all_shown(*relevances, **style):
    when = datetime(2026, 2, 24, tzinfo=UTC)
    results = [
        SearchResult(
            f"text {value}", f"{value}.md", 1, 2, (f"about {value}",), 0.5, "a.md", when, "id", relevance=value
        )
        for value in relevances
    ]
    out = Lines()
    show(out, results, ResultStyle("harbour", **style))
    return [line for line in out.shown if line]


def test_weak_matches_are_shown_in_one_line_each_after_good_ones_with_their_ranks():
    lines = all_shown(0.9, 0.01, 0.8, 0.02)
    assert lines[:6] == [
        "1. 0.9.md:1-2  0.90",
        "   about 0.9",
        "   text 0.9",
        "3. 0.8.md:1-2  0.80",
        "   about 0.8",
        "   text 0.8",
    ]
    assert lines[6:] == [
        "weak matches:",
        "2. 0.01.md:1-2  0.01  about 0.01: text 0.01",
        "4. 0.02.md:1-2  0.02  about 0.02: text 0.02",
    ]


def test_without_good_matches_three_weak_ones_are_shown_in_full():
    lines = all_shown(0.05, 0.04, 0.03, 0.02, 0.01)
    assert lines[0] == "no good match; weak matches:"
    assert [line for line in lines if line.startswith("   text")] == ["   text 0.05", "   text 0.04", "   text 0.03"]
    assert lines[-2:] == ["4. 0.02.md:1-2  0.02  about 0.02: text 0.02", "5. 0.01.md:1-2  0.01  about 0.01: text 0.01"]


@pytest.mark.parametrize("style", [{"full": True}, {"explain": True}])
def test_weak_matches_are_shown_in_full_on_request(style):
    assert sum("text" in line for line in all_shown(0.9, 0.01, 0.02, **style)) == 3


def test_a_message_that_is_a_result_above_is_not_repeated_before_the_next():
    question, answer = "User: why was the lock dropped?", "Assistant: It deadlocked with the flush."
    when = datetime(2026, 2, 24, tzinfo=UTC)
    first = SearchResult(question, "chats/a", 1, 1, (), 1.0, "a", when, "one", relevance=0.9)
    second = SearchResult(answer, "chats/a", 2, 2, (), 0.9, "a", when, "two", relevance=0.9, context=question)
    both, alone = Lines(), Lines()
    show(both, [first, second], ResultStyle("why was the lock dropped"))
    show(alone, [second], ResultStyle("why was the lock dropped"))
    assert "\n".join(both.shown).count(question) == 1
    assert "\n".join(alone.shown).count(question) == 1


@pytest.mark.parametrize(
    ("title", "heading", "shown"),
    [
        ("The Long Plan", (), "The Long Plan"),
        ("The Long Plan", ("Boiler",), "The Long Plan > Boiler"),
        ("Sign In", ("Boiler",), "Boiler"),  # the file name says it
        ("sign-in.md", (), ""),
        ("The long plan!", ("The Long Plan", "Boiler"), "The Long Plan > Boiler"),
        ("Plan\n\x1b[31mof\x1b[0m  two lines", (), "Plan �[31mof�[0m two lines"),
        ("long " * 40, (), "long " * 11 + "long…"),
        (2026, (), ""),
        (("a", "b"), (), ""),
        (None, (), ""),
    ],
)
def test_a_title_that_the_file_name_does_not_say_is_shown_before_the_headings(title, heading, shown):
    when = datetime(2026, 2, 24, tzinfo=UTC)
    metadata = {} if title is None else {"title": title}
    result = SearchResult(
        "harbour", "notes/sign_in.md", 1, 2, heading, 0.5, "a", when, "id", metadata=metadata, relevance=0.9
    )
    out = Lines()
    show_one(out, result, ResultStyle("harbour"))
    assert [line.strip() for line in out.shown] == [
        "notes/sign_in.md:1-2  0.90",
        *([shown] if shown else []),
        "harbour",
    ]
    quoted = as_markdown([result], ResultStyle("harbour"))
    assert ("*" in quoted) == bool(shown)
    weak = Lines()
    show(weak, [evolve(result, relevance=0.9), evolve(result, relevance=0.1)], ResultStyle("harbour"))
    last = shown.rpartition(" > ")[2]
    assert weak.shown[-1].endswith(f"  {last}: harbour"[:62].strip() if last else "  harbour") or len(last) > 50


def test_the_title_of_a_chat_is_not_shown():
    when = datetime(2026, 2, 24, tzinfo=UTC)
    result = SearchResult("hi", "c/a", 1, 2, (), 0.5, "a", when, "id", chat_id="t_1", metadata={"title": "Work"})
    out = Lines()
    show_one(out, result, ResultStyle("hi"))
    assert not any("Work" in line for line in out.shown[:2])
    assert len(out.shown) == 2
