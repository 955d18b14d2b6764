"""The reply to a question is shown with the question."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klaw_facts.arranging.replies import put_replies_after_questions
from klaw_tools import ContextItem

DAY = "conversations/telegram_42/2026-02-23.jsonl"
_sources = st.one_of(
    st.builds(lambda line, more: f"{DAY}:{line}-{line + more}", st.integers(1, 9), st.integers(0, 1)),
    st.sampled_from(["", "facts/f-1", "notes/a.md:1-2", "conversations/", f"{DAY}:x-y"]),
)
_items = st.lists(st.builds(ContextItem, st.sampled_from(["Why?", "为什么？", "So."]), source=_sources), max_size=12)


def item(line, text, last=None):
    return ContextItem(text, source=f"{DAY}:{line}-{last or line}")


@pytest.mark.parametrize("question", ["What did you paint?", "What did you paint? I am curious.", "你画了什么？"])
def test_the_next_message_follows_a_message_that_asks(question):
    asked, other, reply = item(3, question, 4), item(9, "Painting is fun."), item(5, "A sunrise.")
    assert put_replies_after_questions([asked, other, reply]) == [asked, reply, other]


@pytest.mark.parametrize("text", ["I painted.", "What a day!"])
def test_a_message_without_a_question_moves_nothing(text):
    given_items = [item(3, text), item(9, "Painting is fun."), item(4, "A sunrise.")]
    assert put_replies_after_questions(given_items) == given_items


def test_only_questions_among_the_best_move_their_replies():
    others = [item(number, "So.") for number in range(20, 25)]
    given_items = [*others, item(3, "Why?"), item(9, "Well."), item(4, "Because.")]
    assert put_replies_after_questions(given_items) == given_items
    assert put_replies_after_questions(given_items[1:])[4:6] == [given_items[5], given_items[7]]


@given(_items)
def test_items_are_only_moved_and_others_than_chunks_of_conversations_keep_their_order(items):
    moved = put_replies_after_questions(items)
    assert sorted(map(id, moved)) == sorted(map(id, items))
    fixed = [item for item in items if not item.source.startswith(f"{DAY}:")]
    assert [item for item in moved if not item.source.startswith(f"{DAY}:")] == fixed


@pytest.mark.parametrize("arrange", [True, False])
def test_a_small_context_holds_the_reply_if_it_is_arranged(open_memory, say, arrange):
    memory = open_memory(arrange=arrange)
    say(memory, "What did Mel paint at the art class? Mel, tell us what you did paint at the art class, do!")
    say(memory, "A sunrise over the lake, in oil colours of my own making.")
    for day in range(1, 9):
        say(memory, f"What did Mel paint at the art class, we wondered {day} times.", days=day)
    memory.index()
    context = memory.context("What did Mel paint at the art class?", budget=80)
    assert ("A sunrise" in context.volatile) == arrange
