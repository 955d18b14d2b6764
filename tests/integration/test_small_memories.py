"""The relevance is right where people start: in memories of one to twenty texts, asked in other words."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from klaw_core import Memory, NewDocument, SearchResult

Found: TypeAlias = tuple[dict[str, tuple[SearchResult, bool]], dict[str, SearchResult]]


def world(name: str) -> list[Any]:
    return tomllib.loads((Path(__file__).parent / name).read_text("utf-8"))["memory"]


WORLD, LARGER = world("small_memories.toml"), world("memories_of_twenty.toml")


def ask(directory: Path, memories: list[Any]) -> Found:
    """Return the first result of each question: with whether it is the right text, and of those without an answer."""
    answered, unanswered = {}, {}
    with Memory.open(directory) as memory:
        for number, each in enumerate(memories):
            name = f"small{number}"
            memory.add([NewDocument(str(place), text) for place, text in enumerate(each["texts"])], collection=name)
            for question, place in each["answered"].items():
                first = memory.search(question, collection=name)[0]
                answered[question] = first, first.content.strip() == each["texts"][place]
            for question in each["unanswered"]:
                unanswered[question] = memory.search(question, collection=name)[0]
    return answered, unanswered


@pytest.fixture(scope="module")
def demo(tmp_path_factory) -> Iterator[Memory]:
    """A memory of the notes of `klaw demo`."""
    packaged = files("klaw_core") / "demo" / "notes"
    with Memory.open(tmp_path_factory.mktemp("demo")) as memory, as_file(packaged) as notes:
        memory.index(notes)
        yield memory


@pytest.fixture(scope="module")
def first_results(tmp_path_factory) -> Found:
    answered, unanswered = found = ask(tmp_path_factory.mktemp("small"), WORLD)
    assert len(answered) >= 40
    assert len(unanswered) == 2 * len(WORLD) >= 40
    return found


@pytest.fixture(scope="module")
def larger_results(tmp_path_factory) -> Found:
    answered, unanswered = found = ask(tmp_path_factory.mktemp("larger"), LARGER)
    assert sorted(len(each["texts"]) for each in LARGER) == list(range(1, 21))
    assert len(answered) >= 80
    assert len(unanswered) >= 50
    return found


@pytest.mark.parametrize("question", ["price of bitcoin", "best pizza in Naples", "tune a guitar", "learn to swim"])
def test_notes_that_share_only_frequent_words_with_a_question_are_weak(demo, question):
    assert demo.search(question)[0].is_weak


@pytest.mark.parametrize("question", ["employee authentication", "how are staff identified", "trip to Norway"])
def test_notes_that_answer_in_other_words_are_not_weak(demo, question):
    assert not demo.search(question)[0].is_weak


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


def calibration_error(found: Found) -> float:
    """Return the mean difference between relevance and the share that is right, over ten bins."""
    answered, unanswered = found
    pairs = [(result.relevance or 0.0, is_right) for result, is_right in answered.values()]
    pairs += [(result.relevance or 0.0, False) for result in unanswered.values()]
    bins: list[list[tuple[float, bool]]] = [[] for _ in range(10)]
    for relevance, is_right in pairs:
        bins[min(int(relevance * 10), 9)].append((relevance, is_right))
    return sum(abs(sum(value - is_right for value, is_right in each)) for each in bins) / len(pairs)


def test_the_relevance_is_how_often_a_first_result_is_right(first_results, larger_results):
    assert calibration_error(first_results) < 0.13
    assert calibration_error(larger_results) < 0.13


def test_larger_memories_answer_and_decline_too(larger_results):
    answered, unanswered = larger_results
    right = [result for result, is_right in answered.values() if is_right]
    assert len(right) > 0.7 * len(answered)
    assert sum(result.is_weak for result in right) <= 0.15 * len(right)
    assert sum(not result.is_weak for result in unanswered.values()) <= 0.15 * len(unanswered)
