"""Documents for tests with trivial chunks, and strategies for them."""

from datetime import UTC, datetime, timedelta

from hypothesis import strategies as st

from klaw_core import Chunk, Condition, Document, Metadata
from klaw_core.values.text import text_hash

MOMENT = datetime(2026, 2, 24, 12, 0, tzinfo=UTC)


def make_document(
    path: str,
    text: str,
    *,
    hours: int = 0,
    origin: str = "notes",
    chat_id: str | None = None,
    metadata: Metadata | None = None,
) -> Document:
    """Return a document dated ``hours`` after a fixed time."""
    source, created = path.partition("/")[2] or path, MOMENT + timedelta(hours=hours)
    return Document(path, text, source, origin, created, chat_id, metadata=metadata or {})


def cut_lines(document: Document) -> tuple[Chunk, ...]:
    """Return one chunk for each line that is not blank; the ids are distinct in the document."""
    chunks: list[Chunk] = []
    offset = 0
    for number, line in enumerate(document.text.split("\n"), start=1):
        if line.strip():
            seen = sum(chunk.text == line for chunk in chunks)
            chunk_id = text_hash(f"{document.path}\0{line}\0{seen}")[:32]
            heading = (f"line of {len(line)}",)
            context = "" if len(line) % 2 else f"before a line of {len(line)}"
            place = (offset, offset + len(line), number, number)
            chunks.append(Chunk(chunk_id, line, *place, heading, context=context))
        offset += len(line) + 1
    return tuple(chunks)


#: Texts of up to six lines from a small vocabulary, so that the same lines occur in several documents.
texts = st.lists(st.sampled_from(["alpha", "beta gamma", "память", "内存布局", "", "x" * 50]), max_size=6).map(
    "\n".join
)

paths = st.sampled_from(["notes/a.md", "notes/b.md", "notes/sub/c.md", "notes/sub", "saved/1"])

_words = st.sampled_from(
    [
        *("", "a", "b", "1", "1.0", "true", "A", "B/a", "b/A", "\0", "a\0"),
        *("\ud7ff", "\ue000", "\uffff", "\U00010000"),
        *("\xe9", "E\u0301", "\xdf", "SS", "\u0130"),  # the same without case, in both forms of Unicode
    ]
)
_texts = _words | st.text(st.characters(exclude_categories=["Cs"]), max_size=4)
_integers = st.sampled_from([0, 1, -1, 2**53, 2**53 + 1, -(2**63), 2**63 - 1]) | st.integers(-(2**63), 2**63 - 1)
_floats = st.sampled_from([0.0, -0.0, 1.0, 0.5, 2.0**53, 2.0**63, -(2.0**63)]) | st.floats(
    allow_nan=False, allow_infinity=False
)
# How a person may write a number: these compare as text and as a number.
_numerals = st.sampled_from(["007", "7.0", "1.10", "+1", "1e0", "0x1", "-0"])
_single = st.one_of(_words, _texts, _numerals, _integers, _floats, st.booleans())
_metadata_keys = st.sampled_from(["kind", "тег'[0]"])

#: Metadata with few keys, whose values are often equal or nearly equal.
metadata = st.dictionaries(_metadata_keys, _single | st.lists(_texts, max_size=3).map(tuple), max_size=3)

#: Conditions on the keys of :data:`metadata`.
conditions = st.one_of(
    st.builds(Condition, _metadata_keys, st.sampled_from(["=", "!=", "<", "<=", ">", ">="]), _single),
    st.builds(Condition, _metadata_keys, st.just("in"), st.lists(_single, max_size=4).map(tuple)),
)

documents = st.builds(
    make_document,
    paths,
    texts,
    hours=st.integers(0, 48),
    origin=st.sampled_from(["notes", "saved"]),
    chat_id=st.sampled_from([None, "telegram_1"]),
    metadata=st.just({}) | metadata,
)
