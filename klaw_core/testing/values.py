"""Values to test with: documents cut by a trivial rule, and strategies for them."""

from datetime import UTC, datetime, timedelta

from hypothesis import strategies as st

from klaw_core.values.documents import Document
from klaw_core.values.text import Chunk, text_hash

MOMENT = datetime(2026, 2, 24, 12, 0, tzinfo=UTC)


def make_document(
    path: str, text: str, *, hours: int = 0, origin: str = "notes", chat_id: str | None = None
) -> Document:
    """Return a document of the origin ``notes``, dated ``hours`` after a fixed moment."""
    return Document(path, text, path.partition("/")[2] or path, origin, MOMENT + timedelta(hours=hours), chat_id)


def cut_lines(document: Document) -> tuple[Chunk, ...]:
    """Cut a document into one chunk a line; blank lines belong to none. Ids are distinct in the document."""
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


#: Texts of up to six lines from a small vocabulary, so that lines repeat within and across documents.
texts = st.lists(st.sampled_from(["alpha", "beta gamma", "память", "内存布局", "", "x" * 50]), max_size=6).map(
    "\n".join
)

paths = st.sampled_from(["notes/a.md", "notes/b.md", "notes/sub/c.md", "notes/sub", "saved/1"])

documents = st.builds(
    make_document,
    paths,
    texts,
    hours=st.integers(0, 48),
    origin=st.sampled_from(["notes", "saved"]),
    chat_id=st.sampled_from([None, "telegram_1"]),
)
