"""A text means the same wherever it is said: in a message, and as a fact that somebody states."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from klaw_core import Chat, Memory, Message, load_config
from klaw_facts import Facts

NOON = datetime(2026, 11, 28, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    "text",
    [
        "I live in Oslo.",
        "From 15 January 2027 I live in Oslo.",
        "I moved to Bern in 2019.",
        "I moved to Berlin last month.",
        "I have lived in Rome since 2021.",
        "I moved to Brest tomorrow.",
        "I moved to Lima on 31 February.",
        "I live in Lyon. I lied.",
        "Я переехал в Москву в 2019 году.",
        "我去年搬到上海。",
        "My name is Ada.",
    ],
)
def test_a_text_means_the_same_as_a_message_and_as_a_statement(tmp_path, text):
    """At both doors, what is true since when: a stated text was said now."""
    found = []
    for way in ("said", "stated"):
        overrides = {"memory": {"embedding": {"type": "none"}}, "extensions": {"facts": {"extractor": "rules"}}}
        settings_ = load_config(data_dir=tmp_path / way, overrides=overrides, environment={"KLAW_CONFIG": "/dev/null"})
        with Memory.open(settings_) as memory:
            facts = memory.extension(Facts)
            if way == "stated":
                facts.keeper.now = lambda: NOON
                facts.remember(text)
            else:
                memory.conversations.append(Message("user", text, NOON, meta=Chat("t", "1").meta))
                facts.extract()
            slots = [fact for fact in facts.list(everything=True) if fact.slot]
            found.append([(fact.slot, fact.value, fact.valid_from, fact.precision) for fact in slots])
    assert found[0] == found[1]
