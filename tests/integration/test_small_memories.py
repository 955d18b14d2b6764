"""The relevance is right where people start: in memories of one to five texts, asked in other words."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from klaw_core import Memory, NewDocument, SearchResult

WORLD = tomllib.loads((Path(__file__).parent / "small_memories.toml").read_text("utf-8"))["memory"]


@pytest.fixture(scope="module")
def first_results(tmp_path_factory) -> tuple[dict[str, tuple[SearchResult, bool]], dict[str, SearchResult]]:
    """Return the first result of each question: with whether it is the right text, and of those without an answer."""
    answered, unanswered = {}, {}
    with Memory.open(tmp_path_factory.mktemp("small")) as memory:
        for number, each in enumerate(WORLD):
            name = f"small{number}"
            memory.add([NewDocument(str(place), text) for place, text in enumerate(each["texts"])], collection=name)
            for question, place in each["answered"].items():
                first = memory.search(question, collection=name)[0]
                answered[question] = first, first.content.strip() == each["texts"][place]
            for question in each["unanswered"]:
                unanswered[question] = memory.search(question, collection=name)[0]
    assert len(answered) >= 40
    assert len(unanswered) == 2 * len(WORLD) >= 40
    return answered, unanswered


def test_every_result_has_a_relevance(first_results):
    answered, unanswered = first_results
    unknown = [question for question, (result, _) in answered.items() if result.relevance is None]
    unknown += [question for question, result in unanswered.items() if result.relevance is None]
    assert unknown == []


def test_a_right_answer_is_not_called_weak(first_results):
    answered, _ = first_results
    right = {question: result for question, (result, is_right) in answered.items() if is_right}
    assert len(right) > 0.85 * len(answered)
    weak = {question: result.relevance for question, result in right.items() if result.is_weak}
    assert len(weak) <= 0.2 * len(right), weak


def test_what_answers_nothing_is_called_weak(first_results):
    _, unanswered = first_results
    strong = {question: result.relevance for question, result in unanswered.items() if not result.is_weak}
    assert len(strong) <= 0.1 * len(unanswered), strong


def test_a_right_answer_is_mostly_more_relevant_than_a_result_that_answers_nothing(first_results):
    answered, unanswered = first_results
    right = [result.relevance for result, is_right in answered.values() if is_right]
    pairs = [(a, b.relevance) for a in right for b in unanswered.values()]
    assert sum(a > b for a, b in pairs) > 0.95 * len(pairs)
