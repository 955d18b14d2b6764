"""How texts are parted into calls of an embedder: each once, in calls of equal work, alike beside alike."""

from __future__ import annotations

import numpy as np
import pytest
from attrs import define, field
from hypothesis import given
from hypothesis import strategies as st

from klaw_core import EmbeddingError, VectorSpace
from klaw_core.embedding.run import CHARACTERS_PER_CALL, EmbeddingRun, embed_chunk_texts, gathered

SPACE = VectorSpace("calls", "1", 2)


@define
class Embedder:
    """Writes its calls down; ``refused`` is a text that fails its call."""

    texts_per_call: int = 64
    remote: bool = False
    refused: str | None = None
    calls: list[list[str]] = field(factory=list)
    space = SPACE
    max_tokens = 100

    def embed_documents(self, texts, /):
        self.calls.append(list(texts))
        if self.refused in texts:
            raise EmbeddingError("not this one")
        return np.tile(np.array([1, 0], np.float32), (len(texts), 1))


def embed(passages, embedder):
    """Return the digests that were given a vector, a list for each call that was answered."""
    return [list(part) for part in embed_chunk_texts(passages, embedder, EmbeddingRun())]


lengths = st.lists(st.integers(1, CHARACTERS_PER_CALL * 3 // 2), max_size=30)


@given(lengths, st.integers(1, 8), st.booleans())
def test_every_text_is_sent_once_in_calls_within_the_limits(lengths, most, remote):
    passages = {f"{number:02}": "x" * length for number, length in enumerate(lengths)}
    embedder = Embedder(most, remote)
    answered = embed(passages, embedder)
    assert sorted(digest for part in answered for digest in part) == sorted(passages)
    for call in embedder.calls:
        assert 1 <= len(call) <= most
        assert remote or len(call) == 1 or sum(map(len, call)) <= CHARACTERS_PER_CALL


@given(st.lists(st.integers(1, 5000), max_size=60), st.integers(1, 8))
def test_a_call_has_the_longest_or_the_shortest_remaining_texts(lengths, most):
    passages = {f"{number:02}": "x" * length for number, length in enumerate(lengths)}
    embedder = Embedder(most)
    embed(passages, embedder)
    left = sorted(lengths)
    for call in embedder.calls:
        sizes = sorted(map(len, call))
        assert sizes in (left[: len(sizes)], left[len(left) - len(sizes) :])
        for size in sizes:
            left.remove(size)
    assert left == []


def test_calls_alternate_between_the_longest_and_the_shortest_texts():
    passages = {str(number): "x" * (number + 1) for number in range(6)}
    assert embed(passages, Embedder(2)) == [["5", "4"], ["0", "1"], ["3", "2"]]


def test_a_server_gets_full_calls_of_texts_of_any_length():
    passages = {str(number): "x" * CHARACTERS_PER_CALL for number in range(4)}
    remote = Embedder(4, remote=True)
    embed(passages, remote)
    assert [len(call) for call in remote.calls] == [4]


@pytest.mark.parametrize("refused", ["x", "xxx", "xxxxxxxx"])
def test_a_rejected_text_does_not_affect_the_others(refused):
    passages = {str(number): "x" * (number + 1) for number in range(8)}
    embedder = Embedder(4, refused=refused)
    answered = embed(passages, embedder)
    assert sorted(digest for part in answered for digest in part) == sorted(
        digest for digest, text in passages.items() if text != refused
    )


def test_the_next_call_waits_until_the_last_answer_is_used():
    passages = {str(number): "x" for number in range(6)}
    embedder = Embedder(2)
    for taken, _ in enumerate(embed_chunk_texts(passages, embedder, EmbeddingRun()), start=1):
        assert len(embedder.calls) == taken
    assert taken == 3


@pytest.mark.parametrize(("remote", "sizes"), [(True, [100] * 6), (False, [600])])
def test_answers_of_a_local_model_are_collected(remote, sizes, monkeypatch):
    monkeypatch.setattr("klaw_core.embedding.run.SECONDS_PER_COMMIT", float("inf"))
    passages = {str(number): "x" for number in range(600)}
    embedder = Embedder(100)
    embedder.remote = remote
    parts = list(gathered(embed_chunk_texts(passages, embedder, EmbeddingRun()), embedder))
    assert [len(part) for part in parts] == sizes
    assert {digest for part in parts for digest in part} == set(passages)


@pytest.mark.promise("D24")
def test_collected_answers_are_released_in_time(monkeypatch):
    monkeypatch.setattr("klaw_core.embedding.run.SECONDS_PER_COMMIT", 0.0)
    embedder = Embedder(2)
    answers = embed_chunk_texts({str(number): "x" for number in range(6)}, embedder, EmbeddingRun())
    assert [len(part) for part in gathered(answers, embedder)] == [2, 2, 2]


@pytest.mark.promise("D24")
def test_answers_before_an_interruption_are_returned_first():
    def answers():
        yield {"a": np.ones(1)}
        raise KeyboardInterrupt

    parts = gathered(answers(), Embedder(1))
    assert list(next(parts)) == ["a"]
    with pytest.raises(KeyboardInterrupt):
        next(parts)
