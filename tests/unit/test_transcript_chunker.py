"""The chunker of transcripts: the laws of every chunker, and what is particular to messages."""

import pytest
from hypothesis import strategies as st

from klaw_core import estimate_tokens
from klaw_core.builtin.transcript import TranscriptChunker, TranscriptOptions
from klaw_core.testing import chunker_laws as laws
from klaw_core.testing.chunker import ChunkerContract, count_words, markdown_documents, work

_WORDS = ["alpha", "beta", "память", "内存。", "🧵", "gamma.", "delta?", "e\u0301"]
_SAID = st.one_of(
    st.lists(st.sampled_from(_WORDS), min_size=1, max_size=60).map(" ".join),
    st.text(alphabet="ab 0é👩‍👧.!", max_size=80),
)
_LINE = st.one_of(
    st.builds(lambda who, said: f"{who}: {said}", st.sampled_from(["User", "Assistant", "Анна"]), _SAID),
    st.sampled_from(["", "", "\f"]),
)
transcripts = st.lists(_LINE, max_size=25).map("\n".join)

APPLICABLE = (
    laws.spans_lie_in_bounds_and_in_order,
    laws.every_solid_character_is_covered,
    laws.sizes_stay_within_the_bound,
    laws.overlap_stays_within_its_bound,
    laws.splitting_is_deterministic,
    laws.spans_begin_and_end_with_text,
    laws.no_grapheme_cluster_is_cut,
)


def make_chunker(max_tokens, overlap_tokens):
    return TranscriptChunker(TranscriptOptions(max_tokens, overlap_tokens))


def passages(lines, max_tokens=20, overlap_tokens=0):
    text = "\n".join(lines)
    return [text[span.start : span.end] for span in make_chunker(max_tokens, overlap_tokens).split(text, count_words)]


def message(number, words=6):
    return f"User: m{number} " + " ".join(["word"] * (words - 2))


@pytest.mark.parametrize("law", APPLICABLE, ids=lambda law: law.__name__)
@pytest.mark.parametrize("texts", [transcripts, markdown_documents()], ids=["transcripts", "other texts"])
def test_the_laws_of_every_chunker_hold(law, texts):
    ChunkerContract().holds(law, make_chunker, texts, examples=60)


def test_appending_changes_only_the_tail():
    ChunkerContract().holds(laws.appending_changes_only_the_tail, make_chunker, transcripts, examples=60)


def test_the_work_is_linear():
    lines = [message(number) if number % 9 else "\f" for number in range(400)]
    chunker = make_chunker(48, 12)
    list(chunker.split("User: warm up", estimate_tokens))
    small, large = (work(chunker, "\n".join(lines * times), estimate_tokens) for times in (1, 4))
    assert large.lines <= 5 * small.lines
    assert large.characters <= 5 * small.characters


@pytest.mark.parametrize("text", ["", "\n\n", "\f", "\n\f\n \f"])
def test_nothing_comes_of_nothing(text):
    assert list(make_chunker(20, 0).split(text, count_words)) == []


def test_whole_messages_are_packed_until_a_passage_is_full():
    lines = [message(number) for number in range(7)]
    assert passages(lines) == ["\n".join(lines[0:3]), "\n".join(lines[3:6]), lines[6]]


def test_what_is_repeated_is_whole_messages():
    lines = [message(number) for number in range(6)]
    assert passages(lines, 20, 8) == ["\n".join(lines[0:3]), "\n".join(lines[2:5]), "\n".join(lines[4:6])]


def test_no_passage_and_no_overlap_reaches_over_a_session_break():
    lines = [message(0), message(1), "\f", message(2), message(3)]
    assert passages(lines, 40, 16) == ["\n".join(lines[0:2]), "\n".join(lines[3:5])]


def test_lines_that_are_not_shown_part_nothing():
    assert passages([message(0), "", "", message(1)]) == [f"{message(0)}\n\n\n{message(1)}"]


def test_an_oversized_message_is_cut_at_its_sentences_and_says_so():
    long = "User: " + " ".join(f"Sentence {number} has five words." for number in range(9))
    text = "\n".join([message(0), long, message(1)])
    spans = list(make_chunker(20, 0).split(text, count_words))
    pieces = [text[span.start : span.end] for span in spans]
    assert pieces[0].startswith(f"{message(0)}\nUser: Sentence 0")
    assert all(piece.endswith(".") for piece in pieces[:-1])
    assert [span.continues for span in spans] == [None, *["message"] * (len(spans) - 2), None]


@pytest.mark.parametrize("values", [(7, 0), (20, 11), (20, -1)])
def test_impossible_sizes_are_refused(values):
    with pytest.raises(ValueError, match=r"must be"):
        TranscriptOptions(*values)
