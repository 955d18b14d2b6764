"""A context never has a message and the summary that covers it: the one that was found first stays."""

from datetime import UTC, datetime, timedelta

import pytest

from klaw_core import Memory, load_config
from klaw_facts.facts import Facts
from klaw_facts.overlap import Overlap
from klaw_journals import Chat, Message
from klaw_tools import ContextItem

NOON = datetime(2026, 2, 24, 12, tzinfo=UTC)
CHAT = Chat("telegram", "1")


@pytest.fixture
def memory(tmp_path):
    config = load_config(data_dir=tmp_path / "data", environment={"KLAW_EMBEDDER": "none"})
    with Memory.open(config) as opened:
        for number in range(12):
            text = f"we bake loaf number {number} in the bakery, and we decided on rye"
            opened.conversations.append(Message("user", text, NOON + timedelta(minutes=number), meta=CHAT.meta))
        yield opened


def covered(memory, context):
    """Return the lines of the chat's messages in a context that a summary in it covers."""
    last = memory.conversations.summaries(CHAT)[-1].to_message_id
    said = list(memory.conversations.read(CHAT))
    through = next(number for number, line in enumerate(said, 1) if line.message.id == last)
    places = [item.source for item in context.items]
    lines = [int(place.rpartition(":")[2].split("-")[0]) for place in places if "2026-02-24.jsonl" in place]
    has_summary = any("/summaries.jsonl" in place for place in places)
    return [line for line in lines if has_summary and line <= through]


@pytest.mark.parametrize("keep", [0, 3, 11])
@pytest.mark.parametrize("query", ["which loaf in the bakery", "rye decided", "loaf number 2"])
def test_no_message_is_in_a_context_beside_its_summary(memory, keep, query):
    memory.extension(Facts).compact("telegram_1", keep)
    memory.index()
    context = memory.context(query, budget=5000)
    assert context.items
    assert covered(memory, context) == []


def test_messages_after_the_summary_stay_beside_it(memory):
    memory.extension(Facts).compact("telegram_1", 6)
    memory.index()
    items = [
        ContextItem("s", source="conversations/telegram_1/summaries.jsonl:1-1", created_at=NOON),
        *(
            ContextItem(
                str(number),
                source=f"conversations/telegram_1/2026-02-24.jsonl:{number + 1}-{number + 1}",
                created_at=NOON + timedelta(minutes=number),
            )
            for number in range(12)
        ),
        ContextItem("other", source="conversations/telegram_2/2026-02-24.jsonl:1-1", created_at=NOON),
        ContextItem("note", source="notes/a.md:1-1", created_at=NOON),
    ]
    overlap = Overlap(lambda: memory.conversations)
    assert [item.text for item in overlap.without(items)] == ["s", *map(str, range(6, 12)), "other", "note"]
    first, summary, *rest = items[1:2] + items[:1] + items[2:]
    kept = [item.text for item in overlap.without([first, summary, *rest])]
    assert kept == [*map(str, range(12)), "other", "note"]
