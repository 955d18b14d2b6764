"""The daily limits of what a language model may be asked, and the size of the profile."""

from datetime import UTC, datetime, timedelta

import pytest

from klaw_core import estimate_tokens
from klaw_facts import Facts, FactsOptions
from klaw_facts.asking import is_spent
from klaw_facts.values import Batch
from klaw_testing.language_model import ScriptedModel

NOON = datetime(2026, 2, 24, 12, tzinfo=UTC)


def batch(calls=1, tokens=(0, 0), recorded_at=NOON):
    return Batch(
        "b",
        "c",
        "",
        "",
        "model:m",
        "done",
        calls=calls,
        tokens_in=tokens[0],
        tokens_out=tokens[1],
        recorded_at=recorded_at,
    )


@pytest.mark.parametrize(
    ("batches", "spent"),
    [
        ([], False),
        ([batch(2)], False),
        ([batch(3)], True),
        ([batch(2), batch(1)], True),
        ([batch(3, recorded_at=NOON - timedelta(1))], False),
        ([batch(tokens=(99, 0))], False),
        ([batch(tokens=(60, 40))], True),
        ([batch(tokens=(0, 60)), batch(tokens=(40, 0))], True),
        ([batch(tokens=(0, 100), recorded_at=NOON + timedelta(1))], False),
    ],
)
def test_a_day_is_spent_when_its_calls_or_its_tokens_are(batches, spent):
    assert is_spent(batches, FactsOptions(max_calls_per_day=3, max_tokens_per_day=100), NOON) == spent


@pytest.mark.parametrize("limit", ["max_calls_per_day", "max_tokens_per_day"])
@pytest.mark.parametrize("what", ["extract", "compress"])
def test_without_calls_or_tokens_left_no_model_is_asked(open_memory, say, limit, what):
    model = ScriptedModel(['{"facts": []}'] * 9)
    memory = open_memory(model, extractor="model", compressor="model", **{limit: 0})
    say(memory, "I moved to Lyon with Eve.")
    report = getattr(memory.extension(Facts), what)()
    assert model.prompts == []
    assert report.problem == "today's limit of model calls or tokens is reached"


def test_extraction_stops_when_its_answers_used_the_tokens_of_the_day(open_memory, say):
    model = ScriptedModel(['{"facts": []}'] * 9)
    memory = open_memory(model, extractor="model", window_tokens=100, max_tokens_per_day=300)
    for day in range(6):
        say(memory, f"It was a quiet day number {day}. " * 12, days=day)
    report = memory.extension(Facts).extract()
    assert 0 < len(model.prompts) < 6
    assert "limit" in report.problem


@pytest.mark.parametrize("most", [0, 12, 400])
def test_the_profile_is_no_larger_than_allowed(open_memory, most):
    facts = open_memory(profile_tokens=most).extension(Facts)
    for number in range(3):
        facts.remember(f"I like tea number {number}", category="preference")
    facts.compress()
    lines = [line for _, line in facts.state().profile]
    assert sum(estimate_tokens(lines)) <= most
    assert len(lines) == {0: 0, 12: 2, 400: 3}[most]
