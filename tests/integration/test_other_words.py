"""The relevance is right for questions in other words than the text, where words cannot tell what answers."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from pathlib import Path

import pytest
from attrs import field, frozen

from klaw_core import Memory, NewDocument, SearchResult

WORLD = tomllib.loads((Path(__file__).parent / "other_words.toml").read_text("utf-8"))["memory"]
KINDS = ("in_other_words", "in_another_language", "misspelled", "in_its_words")


@frozen
class Found:
    """The right first results of the questions of each kind, and the first results of those without an answer."""

    right: dict[str, list[SearchResult]] = field(factory=lambda: {kind: [] for kind in KINDS})
    unanswered: list[SearchResult] = field(factory=list)


@pytest.fixture(scope="module")
def found(tmp_path_factory) -> Found:
    found = Found()
    with Memory.open(tmp_path_factory.mktemp("notes")) as memory:
        for each in WORLD:
            notes, name = each["notes"], each["name"]
            memory.add([NewDocument(key, text) for key, text in notes.items()], collection=name)
            for kind in KINDS:
                for question, key in each[kind].items():
                    first = memory.search(question, collection=name)[0]
                    found.right[kind] += [first] if first.content.strip() == notes[key] else []
            found.unanswered.extend(memory.search(question, collection=name)[0] for question in each["unanswered"])
    return found


def weak(results: Iterable[SearchResult]) -> float:
    """Return the share of the results that are called weak."""
    marks = [result.is_weak for result in results]
    return sum(marks) / len(marks)


def test_texts_that_answer_in_other_words_are_not_mostly_weak(found):
    assert len(found.right["in_other_words"]) >= 35
    assert weak(found.right["in_other_words"]) <= 0.6


@pytest.mark.parametrize("kind", ["misspelled", "in_its_words"])
def test_words_of_the_text_are_not_weak(found, kind):
    assert len(found.right[kind]) >= 10
    assert weak(found.right[kind]) <= 0.15


def test_what_nothing_answers_is_weak(found):
    assert len(found.unanswered) >= 60
    assert weak(found.unanswered) >= 0.9
