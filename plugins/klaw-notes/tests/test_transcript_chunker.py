"""The chunker of transcripts: the laws of every chunker, and what is particular to messages."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from klaw_core import estimate_tokens
from klaw_notes.chunking.transcript import TranscriptChunker, TranscriptOptions
from klaw_testing import chunker_laws as laws
from klaw_testing.chunker import COUNTERS, ChunkerContract, count_words, markdown_documents, work
from klaw_testing.laws import scaled

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


def make_chunker(max_tokens, context_tokens):
    return TranscriptChunker(TranscriptOptions(max_tokens, max_tokens // 2, context_tokens))


def cut(lines, max_tokens=20, packed_tokens=20, context_tokens=0):
    """Return (context, chunk) of each span."""
    text = "\n".join(lines)
    spans = TranscriptChunker(TranscriptOptions(max_tokens, packed_tokens, context_tokens)).split(text, count_words)
    return [
        ("" if span.context is None else text[span.context : span.start], text[span.start : span.end]) for span in spans
    ]


def passages(lines, **sizes):
    return [passage for _, passage in cut(lines, **sizes)]


def message(number, words=6):
    return f"User: m{number} " + " ".join(["word"] * (words - 2))


class TestTranscriptChunker(ChunkerContract):
    examples = 60

    @pytest.fixture
    def make_chunker(self):
        return make_chunker

    def texts(self):
        return st.one_of(transcripts, markdown_documents())


@pytest.mark.parametrize("text", ["one\n" + " " * 400 + "far to the right", "one\n" + "\n" * 400 + "far below"])
def test_white_space_without_tokens_is_limited_in_characters(text):
    ChunkerContract().holds(laws.sizes_do_not_exceed_the_maximum, make_chunker, st.just(text), examples=5)


def test_appending_changes_only_the_last_spans():
    ChunkerContract().holds(laws.appending_changes_only_the_last_spans, make_chunker, transcripts, examples=60)


def test_the_work_is_linear():
    lines = [message(number) if number % 9 else "\f" for number in range(400)]
    chunker = make_chunker(48, 12)
    list(chunker.split("User: warm up", estimate_tokens))
    small, large = (work(chunker, "\n".join(lines * times), estimate_tokens) for times in (1, 4))
    assert large.lines <= 5 * small.lines
    assert large.characters <= 5 * small.characters


@pytest.mark.parametrize("text", ["", "\n\n", "\f", "\n\f\n \f"])
def test_an_empty_text_has_no_chunks(text):
    assert list(make_chunker(20, 0).split(text, count_words)) == []


def test_whole_messages_are_packed_until_a_chunk_is_full():
    lines = [message(number) for number in range(7)]
    assert passages(lines) == ["\n".join(lines[0:3]), "\n".join(lines[3:6]), lines[6]]


def test_messages_share_a_chunk_only_while_it_is_small():
    lines = [message(0), message(1), message(2, words=15), message(3), message(4)]
    assert passages(lines, packed_tokens=12) == ["\n".join(lines[0:2]), lines[2], "\n".join(lines[3:5])]
    assert passages(lines, packed_tokens=0) == lines
    assert passages(lines, max_tokens=20, packed_tokens=99) == passages(lines, packed_tokens=20)


def test_the_context_consists_of_the_whole_messages_before():
    lines = [message(number) for number in range(4)]
    contexts = [context for context, _ in cut(lines, packed_tokens=6, context_tokens=13)]
    assert contexts == ["", f"{lines[0]}\n", f"{lines[0]}\n{lines[1]}\n", f"{lines[1]}\n{lines[2]}\n"]


def test_the_context_of_an_answer_to_a_long_message_is_its_last_sentences():
    long = "User: " + " ".join(f"Sentence {number} has five words." for number in range(4))
    (_, _), (context, passage) = cut([long, "Anna: Yes."], max_tokens=30, packed_tokens=6, context_tokens=11)
    assert (context, passage) == ("Sentence 2 has five words. Sentence 3 has five words.\n", "Anna: Yes.")


def test_a_sentence_too_long_for_a_context_is_left_out():
    lines = [message(0, words=15), message(1)]
    assert [context for context, _ in cut(lines, packed_tokens=6, context_tokens=10)] == ["", ""]


def test_later_pieces_of_a_long_message_have_its_earlier_text_as_context():
    long = "User: " + " ".join(f"Sentence {number} has five words." for number in range(9))
    first, *others = cut([message(0), long], max_tokens=12, packed_tokens=6, context_tokens=6)[1:]
    assert first[0] == f"{message(0)}\n"
    assert len(others) > 1
    for context, passage in others:
        number = int(passage.split()[1])
        assert context == f"Sentence {number - 1} has five words. "


@pytest.mark.parametrize("counter", COUNTERS, ids=lambda counter: counter.__name__)
def test_a_context_ends_at_its_chunk_and_stays_within_limit_and_session(counter):
    @settings(max_examples=scaled(100), deadline=None)
    @given(transcripts, st.sampled_from([(20, 6), (48, 0), (48, 16), (24, 60)]))
    def check(text, bounds):
        most = bounds[1]
        spans = list(make_chunker(*bounds).split(text, counter))
        assert bool(spans) == bool(text.strip())
        for span in spans:
            if span.context is not None:
                context = text[span.context : span.start]
                assert context.strip()
                assert "\n\f\n" not in f"\n{context}"
                assert sum(counter(context.splitlines())) <= most

    check()


def test_no_chunk_and_no_context_crosses_a_session_break():
    lines = [message(0), message(1), "\f", message(2), message(3)]
    assert cut(lines, max_tokens=40, packed_tokens=16, context_tokens=16) == [
        ("", "\n".join(lines[0:2])),
        ("", "\n".join(lines[3:5])),
    ]


def test_hidden_lines_do_not_separate_messages():
    assert passages([message(0), "", "", message(1)]) == [f"{message(0)}\n\n\n{message(1)}"]


def test_an_oversized_message_is_split_between_sentences_and_marked():
    long = "User: " + " ".join(f"Sentence {number} has five words." for number in range(9))
    text = "\n".join([message(0), long, message(1)])
    spans = list(make_chunker(20, 0).split(text, count_words))
    pieces = [text[span.start : span.end] for span in spans]
    assert (pieces[0], pieces[-1]) == (message(0), message(1))
    assert pieces[1].startswith("User: Sentence 0")
    assert len(pieces) > 4
    assert [piece[-1] for piece in pieces[1:-1]] == ["."] * (len(pieces) - 2)
    assert [span.continues for span in spans] == [None, None, *["message"] * (len(spans) - 3), None]


@pytest.mark.parametrize("values", [(7, 0, 0), (20, -1, 0), (20, 0, -1)])
def test_invalid_sizes_are_rejected(values):
    with pytest.raises(ValueError, match=r"must be"):
        TranscriptOptions(*values)
