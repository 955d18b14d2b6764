"""Texts are split as SQLite splits them."""

from __future__ import annotations

from threading import Thread

from klaw_words.tokenizer import makes_pairs, tokenizer


def test_many_texts_are_tokenized_at_once() -> None:
    texts = [b"", b"Running ships", "日本 x".encode(), b"...", b"harbour", b""]
    tokenize = tokenizer()
    assert tokenize.each(texts) == [tokenize(text) for text in texts]
    assert tokenize.each(texts)[1:3] == [[b"run", b"ship"], ["日本".encode(), b"x"]]
    assert tokenize.each([]) == []


def test_function_words_and_single_characters_form_no_pairs() -> None:
    tokenize = tokenizer()
    for word in ("the", "this", "They", "his", "does", "been", "its", "数", "ก"):
        (term,) = tokenize(word.encode())
        assert not makes_pairs(term), word
    for word in ("use", "using", "us", "ore", "to", "from", "lantern", "в", "é", "ß", "1", "naïve"):
        (term,) = tokenize(word.encode())
        assert makes_pairs(term), word


def test_each_thread_has_its_own_tokenizer() -> None:
    found = [tokenizer()]
    thread = Thread(target=lambda: found.append(tokenizer()))
    thread.start()
    thread.join()
    first, second = found
    assert first is tokenizer()
    assert second is not first
    assert second(b"Running ships") == first(b"Running ships") == [b"run", b"ship"]
