"""What a person repeats, quotes, denies or pretends states no slot; what the person says does."""

import tomllib
from datetime import UTC, datetime
from pathlib import Path

import pytest

from klaw_facts.extracting import rule_extractor
from klaw_facts.extracting.candidates import SourceMessage
from klaw_facts.extracting.extraction import make_fact

MESSAGES = tomllib.loads((Path(__file__).parent / "own_words.toml").read_text("utf-8"))["message"]
SAID = datetime(2026, 11, 20, 12, tzinfo=UTC)


def slots_in(text):
    """Return the slots that the rules take from a message."""
    message = SourceMessage("tg_1", "m1", "user", "user", text, SAID)
    facts = [make_fact(candidate, [message]) for candidate in rule_extractor.extract([message])]
    return {fact.slot: fact.value for fact in facts if fact is not None and fact.slot}


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: message["text"][:40])
def test_only_what_a_person_says_of_himself_is_a_slot(message):
    assert slots_in(message["text"]) == message.get("slots", {})
