"""Marks on statements that a later one supersedes: only of quantities that the question asks for."""

from datetime import UTC, datetime, timedelta

import pytest
from attrs import evolve
from hypothesis import example, given
from hypothesis import strategies as st

from klaw_facts.stale import mark_stale
from klaw_tools import ContextItem

MONDAY = datetime(2026, 2, 23, 10, tzinfo=UTC)


def items(*texts):
    return [ContextItem(text, created_at=MONDAY + timedelta(day), newest_first=True) for day, text in enumerate(texts)]


def marked(question, *texts):
    given = items(*texts)
    return [new.note != old.note for new, old in zip(mark_stale(given, question), given, strict=True)]


@pytest.mark.parametrize(
    ("question", "old", "new"),
    [
        (
            "How many sources are in my Zotero library?",
            "My Zotero library has 45 sources.",
            "My Zotero library now has 52 sources.",
        ),
        (
            "When is the deadline of the first sprint?",
            "The first sprint has a deadline of April 1, 2024.",
            "The deadline of the first sprint moved to April 5, 2024.",
        ),
        (
            "What is my annual budget for sneakers?",
            "My annual budget for sneakers is $600.",
            "I increased the annual budget for sneakers to $650.",
        ),
        (
            "WHEN is the deadline of the FIRST SPRINTS?",
            "THE FIRST SPRINT HAS A DEADLINE OF APRIL 1, 2024.",
            "The Deadline of the First Sprint MOVED to April 5, 2024.",
        ),
        (
            "Сколько книг в моей библиотеке дома?",
            "В моей библиотеке дома 45 книг.",
            "Теперь в моей библиотеке дома 52 книг.",
        ),
    ],
)
def test_a_later_quantity_of_the_same_kind_marks_the_earlier_one(question, old, new):
    assert marked(question, old, new) == [True, False]
    assert marked(question, new, old) == [False, False]  # the change was told first


@pytest.mark.parametrize(
    ("question", "old", "new"),
    [
        (
            "How do I sort the sources in my Zotero library?",
            "45 sources in my Zotero library",
            "now 52 sources in Zotero library",
        ),
        (
            "How many sources are in my Zotero library?",
            "My Zotero library has 45 sources.",
            "My Zotero library has now 3 folders.",
        ),
        (
            "How many sources are in my Zotero library?",
            "My Zotero library has 45 sources.",
            "My Zotero library has 45 sources now.",
        ),
        (
            "How many sources are in my Zotero library?",
            "My Zotero library has 45 sources.",
            "A museum now has 52 sources.",
        ),
        ("How many?", "My Zotero library has 45 sources.", "My Zotero library now has 52 sources."),
    ],
)
def test_an_equal_or_unrelated_quantity_is_not_marked(question, old, new):
    assert marked(question, old, new) == [False, False]


def test_a_mark_names_the_day_of_the_later_statement():
    found = mark_stale(
        items("My Zotero library has 45 sources.", "My Zotero library now has 52 sources."),
        "How many sources are in my Zotero library?",
    )
    assert found[0].note == " (perhaps outdated: see 2026-02-24)"


_quantities = st.builds(
    "My Zotero library {} {} sources{}".format,
    st.sampled_from(["has", "now has", "had"]),
    st.integers(40, 60),
    st.text("a1 $.%now5", max_size=10),
)


@given(
    st.lists(_quantities | st.text("a1 $.%now5sources library zotero", max_size=40), max_size=6), st.text(max_size=40)
)
@example(["My Zotero library has 45 sources.", "My Zotero library now has 52 sources."], "")
def test_law_marking_only_adds_a_note(texts, question):
    given = items(*texts)
    found = mark_stale(given, f"how many sources library zotero {question}")
    assert [evolve(new, note=old.note) for new, old in zip(found, given, strict=True)] == given
    for new in found:
        assert not new.note or new.note.startswith(" (perhaps outdated: see ")
    if texts == ["My Zotero library has 45 sources.", "My Zotero library now has 52 sources."] and not question:
        assert [bool(new.note) for new in found] == [True, False]
