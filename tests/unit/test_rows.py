"""What a store changes: the chunks of a document, and messages of which two have one id."""

from datetime import UTC, date, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klaw_core import Chunk, Replacement
from klaw_journals import Session, StoredMessage, changed_rows

IDS = st.sampled_from("abcdef")
HELD = st.lists(IDS, max_size=6).map(lambda ids: [(10 + place, name) for place, name in enumerate(ids)])


def chunk(name, text="same"):
    return Chunk(name, text, 0, 4, 1, 1)


@given(st.lists(st.tuples(IDS, st.booleans()), max_size=8), HELD)
def test_law_each_chunk_stays_or_is_new_and_each_row_stays_or_goes(wanted, held):
    chunks = [chunk(name, "same" if is_same else "other") for name, is_same in wanted]
    kept, new, removed = Replacement.compare(chunks, held, lambda _key, chunk: chunk.text == "same")
    assert sorted([*(each.chunk_id for _, each in kept), *(each.chunk_id for each in new)]) == sorted(
        name for name, _ in wanted
    )
    assert sorted([*(key for key, _ in kept), *removed]) == [key for key, _ in held]
    assert [dict(held)[key] for key, _ in kept] == [each.chunk_id for _, each in kept]
    assert {each.chunk_id for _, each in kept} == {
        name for name, is_same in wanted if is_same and name in dict(held).values()
    }


def test_a_chunk_with_the_id_of_another_does_not_take_its_row():
    kept, new, removed = Replacement.compare(
        [chunk("a"), chunk("a"), chunk("b", "other")], [(1, "a"), (2, "b"), (3, "c")], lambda _, one: one.text == "same"
    )
    assert kept == [(1, chunk("a"))]
    assert new == [chunk("a"), chunk("b", "other")]
    assert removed == (2, 3)


def said(name, position, day=1):
    moment = datetime(2026, 2, day, tzinfo=UTC)
    return StoredMessage(name, "telegram", "telegram_1", "user", "x", moment, date(2026, 2, day), position)


@given(st.lists(st.tuples(IDS, st.integers(0, 9)), max_size=8), st.dictionaries(IDS, st.integers(0, 9)))
def test_law_of_one_id_in_a_chat_the_earliest_place_stays(given_messages, rows):
    messages = [said(name, position) for name, position in given_messages]

    def held(message):
        return (message.id, message.day, rows[message.id]) if message.id in rows else None

    new, removed, added = changed_rows(messages, held)
    after = {name: position for name, position in rows.items() if name not in removed}
    assert not after.keys() & {message.id for message in added}, "no id is there twice"
    after |= {message.id: message.position for message in added}
    places = [*given_messages, *rows.items()]
    assert after == {name: min(place for other, place in places if other == name) for name, _ in places}
    assert new == len({name for name, _ in given_messages} - rows.keys())


def test_an_earlier_day_is_an_earlier_place():
    assert changed_rows([said("a", 0, day=2), said("a", 50)], lambda _: None) == (1, [], [said("a", 50)])


@pytest.mark.parametrize(
    ("models", "model"),
    [([], ""), (["", None, 3, ["x"]], ""), ([None, "late", "early"], "late"), ([7, "only"], "only")],
)
def test_a_session_has_the_latest_model_and_begins_with_the_last_break(models, model):
    first, last = (datetime(2026, 2, day, tzinfo=UTC) for day in (1, 5))
    assert Session.of("telegram_1", first, None, iter(models)) == Session("telegram_1", model, first, first)
    assert Session.of("telegram_1", first, last, models) == Session("telegram_1", model, last, first)
