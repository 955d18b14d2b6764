"""The messages of the person whom a question names come before those of the others, after the best messages."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klaw_facts.arranging import speakers
from klaw_facts.arranging.speakers import prefer_named_speaker
from klaw_tools import ContextItem

DAY = "conversations/telegram_42/2026-02-23.jsonl"


def item(line, text, last=None):
    return ContextItem(text, source=f"{DAY}:{line}-{last or line}")


def chat(*speakers):
    return [item(line, f"{speaker}: Well.") for line, speaker in enumerate(speakers, 1)]


def order(items, question):
    return [int(moved.source.rpartition("-")[2]) for moved in prefer_named_speaker(items, question)]


def test_the_rank_of_messages_of_others_is_doubled_after_the_best_six():
    items = chat("Bo", "Bo", "Bo", "Bo", "Bo", "Bo", "Bo", "Ada", "Ada", "Bo", "Ada")
    assert order(items, "What does Ada collect?") == [1, 2, 3, 4, 5, 6, 8, 9, 11, 7, 10]


@pytest.mark.parametrize(
    ("speaker", "question", "is_named"),
    [
        ("Ada", "what is ada's boat called", True),
        ("Ada Lovelace", "What did Lovelace write?", True),
        ("Ada", "What was in Adam's letter?", False),
        ("Маша", "Что купила маша?", True),
        ("Маша", "Что мы подарили Маше?", True),
        ("Мария", "Марина звонила?", False),
        ("小明", "小明喜欢什么？", True),
        ("小明", "小红喜欢什么？", False),
        ("User", "Which user interface did we choose?", False),
    ],
)
def test_a_name_is_recognised_in_its_forms(speaker, question, is_named):
    items = chat(*["Bo"] * 7, speaker)
    assert (order(items, question) == [1, 2, 3, 4, 5, 6, 8, 7]) == is_named


@pytest.mark.parametrize(
    ("speaker", "question", "is_named"),
    [
        ("Will", "Will it rain tomorrow?", False),
        ("Will", "What will Ada bring?", False),
        ("Will", "What did Will bring?", True),
        ("Will", "when is will's birthday", True),
        ("Will", "WHAT WILL IT COST", False),
        ("May", "What happened in May?", False),
        ("May", "Where were we on 5 May 2024?", False),
        ("May", "What may we bring?", False),
        ("May", "What does May collect?", True),
        ("Grace", "How long is the grace period?", False),
        ("Grace", "Ask Grace. Does it work?", True),
        ("Mark Twain", "Mark the date. What did Twain say?", True),
        ("Вера", "Вера в успех помогает?", False),
        ("Вера", "Что такое вера?", False),
        ("Вера", "Что купила Вера?", True),
        ("Вера", "Когда мы видели Веру?", True),
        ("Роман", "Какой роман мы читали?", False),
    ],
)
def test_a_name_that_is_an_ordinary_word_needs_a_capital_letter_or_a_possessive(speaker, question, is_named):
    items = chat(*["Bo"] * 7, speaker)
    assert (order(items, question) == [1, 2, 3, 4, 5, 6, 8, 7]) == is_named


def test_nothing_moves_if_two_speakers_are_named_or_all_messages_are_of_one():
    items = chat(*["Bo"] * 7, "Ada")
    assert order(items, "What do Ada and Bo collect?") == list(range(1, 9))
    assert order(chat(*["Ada"] * 8), "What does Ada collect?") == list(range(1, 9))


def test_the_text_before_a_word_is_read_only_up_to_a_limit(monkeypatch):
    """Otherwise a message of some ten thousand words takes many seconds."""
    read = []

    class Counted:
        def __init__(self, pattern):
            self.pattern = pattern

        def search(self, text, start=0, end=None):
            read.append((len(text) if end is None else end) - start)
            return self.pattern.search(text, start, len(text) if end is None else end)

    for name in ("_SENTENCE_START", "_BEFORE_MONTH"):
        monkeypatch.setattr(speakers, name, Counted(getattr(speakers, name)))
    message = "ask Will whether he may go " * 100
    assert order(chat(*["Bo"] * 7, "Will"), message) == [1, 2, 3, 4, 5, 6, 8, 7]
    assert len(read) >= 200
    assert max(read) <= 40


def test_chunks_of_several_messages_and_other_items_keep_their_places():
    items = chat(*["Bo"] * 8, "Ada")
    items[6:6] = [item(20, "Bo: Well.", 22), ContextItem("Bo: Well.", source="notes/a.md:30-30")]
    assert order(items, "Ada?") == [1, 2, 3, 4, 5, 6, 22, 30, 9, 7, 8]


_texts = st.sampled_from(["Ada: Yes.", "Bo: No.", "Cy: Ada?", "No name."])
_sources = st.one_of(
    st.builds(lambda line, more: f"{DAY}:{line}-{line + more}", st.integers(1, 30), st.integers(0, 1)),
    st.sampled_from(["", "facts/f-1", "notes/a.md:1-2"]),
)


@given(st.lists(st.builds(ContextItem, _texts, source=_sources), max_size=30), st.sampled_from(["Ada?", "Bo", "Who?"]))
def test_items_are_only_moved_and_each_speakers_messages_keep_their_order(items, question):
    moved = prefer_named_speaker(items, question)
    assert sorted(map(id, moved)) == sorted(map(id, items))
    for name in ("Ada", "Bo", "Cy", "No"):
        own = [item for item in items if item.text.startswith(name) and _is_one_message(item)]
        assert [id(item) for item in moved if item in own] == [id(item) for item in own] or len(set(own)) < len(own)
    assert [(place, item) for place, item in enumerate(moved) if not _is_one_message(item)] == [
        (place, item) for place, item in enumerate(items) if not _is_one_message(item)
    ]


def _is_one_message(item):
    path, _, lines = item.source.rpartition(":")
    first, _, last = lines.partition("-")
    return path == DAY and first == last and ":" in item.text
