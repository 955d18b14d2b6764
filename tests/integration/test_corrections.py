"""Misspelled questions: the results of the corrected question are shown if those of the question do not fit."""

import os

import pytest
from attrs import evolve

from klaw_core import EmbeddingError, NewDocument
from klaw_core.searching.flow import Searcher
from klaw_core.searching.question_embedder import QuestionEmbedder

NOTES = {
    "vpn.md": "# VPN\n\nThe WireGuard port is 51820 on the router.\n",
    "java.md": "# Java\n\nThe ConcurrentHashMap is used for the cache of sessions.\n",
    **{f"garden-{number}.md": f"# Bed {number}\n\nThe garden has bed {number} of roses.\n" for number in range(20)},
}


@pytest.fixture
def memory(make_home):
    home = make_home("sqlite")  # the words of the store in RAM suggest nothing
    for name, text in NOTES.items():
        home.write(name, text)
    with home.open(embedding={"type": "none"}) as opened:
        opened.index(home.notes)
        yield opened


@pytest.mark.parametrize(
    ("question", "path", "corrected"),
    [
        ("wirguard prot", "notes/vpn.md", "wireguard prot"),
        ("ConcurentHashMap", "notes/java.md", "concurrenthashmap"),
        ("wiregard prot of the rooter", "notes/vpn.md", "wireguard prot of the router"),
    ],
)
def test_a_misspelled_question_finds_what_the_corrected_one_finds(memory, question, path, corrected):
    found = memory.search(question)
    assert found[0].path == path
    assert not found[0].is_weak
    assert found.notices == found.hints == (f"nothing fits {question!r}; showing results for {corrected!r}",)
    exact = memory.search(corrected).results
    assert [result.chunk_id for result in found] == [result.chunk_id for result in exact]
    for guessed, sure in zip(found, exact, strict=True):  # the correction may be wrong
        assert guessed.relevance == pytest.approx(0.8 * sure.relevance)
        assert evolve(guessed, relevance=sure.relevance) == sure


def test_a_corrected_answer_that_is_not_relevant_enough_is_only_offered(memory):
    best = memory.search("wireguard prot")[0].relevance
    found = memory.search("wirguard prot", min_relevance=0.9 * best)
    assert "did you mean 'wireguard prot'" in found.notices
    assert "showing" not in " ".join(found.notices)


def test_a_correction_that_cannot_be_searched_keeps_what_was_found(memory, monkeypatch):
    whole = Searcher._answer

    def only_once(searcher, request, *others):
        if request.text != "wirguard":
            raise EmbeddingError("the server is away")
        return whole(searcher, request, *others)

    monkeypatch.setattr(Searcher, "_answer", only_once)
    assert memory.search("wirguard").notices == ("did you mean 'wireguard'",)


def test_each_correction_is_searched_once_whatever_the_number_of_collections(memory, monkeypatch):
    for name in ("one", "two"):
        memory.add([NewDocument(f"bed {number}", "The garden has roses.") for number in range(20)], collection=name)
    asked = []
    whole = Searcher._answer
    monkeypatch.setattr(Searcher, "_answer", lambda *given: asked.append(given[1].text) or whole(*given))
    memory.search("zzzz gardn")
    assert asked == ["zzzz gardn", "zzzz garden"]


def test_the_notice_is_there_where_the_words_alone_find_nothing(memory):
    assert "showing results for 'wireguard'" in " ".join(memory.search("wirguard").notices)


@pytest.mark.parametrize("question", ["wireguard port", "which port has the router?"])
def test_a_question_that_is_answered_is_not_corrected(memory, question):
    found = memory.search(question)
    assert found[0].path == "notes/vpn.md"
    assert found.notices == ()


def test_a_correction_that_fits_no_better_is_only_offered(memory):
    found = memory.search("zzzz gardn")  # the corrected word is in nearly every note
    assert any(notice.startswith("did you mean '") for notice in found.notices)
    assert not any("showing results for" in notice for notice in found.notices)


def test_a_secret_in_a_misspelled_question_is_not_repeated(memory):
    secret = "ghp_" + "a1B2" * 9
    found = memory.search(f"wirguard prot {secret}")
    notices = " ".join((*found.notices, *found.hints))
    assert "wireguard" in notices
    assert secret not in notices


def test_a_question_with_a_vector_is_searched_as_it_is(make_home):
    home = make_home("sqlite")
    home.write("vpn.md", NOTES["vpn.md"])
    with home.open() as memory:
        memory.index(home.notes)
        vector = memory.embedder.embed_query("wireguard")
        assert not [notice for notice in memory.search("wirguard", vector=vector).notices if "wireguard" in notice]


class _Vocabulary:
    """An embedder to which some words are one token each, as to a model that has learnt them."""

    remote = False

    def __init__(self, *known):
        self.known = known

    def count_tokens(self, texts):
        return [2 + sum(1 if word in self.known else 3 for word in text.split()) for text in texts]


@pytest.mark.parametrize(
    ("question", "known", "corrected", "meant"),
    [
        ("lover", (), ["cover"], ["cover"]),
        ("lover", ("lover",), ["cover"], []),
        ("a lover?", ("lover",), ["a cover?"], []),
        ("wirguard lover", ("lover",), ["wireguard cover", "wireguard lover"], ["wireguard lover"]),
        ("wirguard  lover", (), ["wireguard cover", "wireguard lover"], ["wireguard cover", "wireguard lover"]),
    ],
)
def test_a_word_that_the_model_knows_is_not_corrected(question, known, corrected, meant):
    questions = QuestionEmbedder(lambda: _Vocabulary(*known))
    assert questions.mistaken(question, ["something else"])  # nothing was embedded: the model is not loaded for this
    questions._last = os.getpid(), None
    assert questions.mistaken(question, corrected) == meant
    _Vocabulary.remote = True  # it can only estimate
    try:
        assert questions.mistaken(question, corrected) == corrected
    finally:
        _Vocabulary.remote = False


def test_a_model_that_fails_knows_no_word():
    def fail():
        raise EmbeddingError("no model")

    questions = QuestionEmbedder(fail)
    questions._last = os.getpid(), None
    assert questions.mistaken("lover", ["cover"]) == ["cover"]
