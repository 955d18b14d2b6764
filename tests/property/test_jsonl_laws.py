"""The laws of a JSON Lines file with any content."""

from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klaw_core.errors import RecordError
from klaw_journals.contents import BadLine, LogRecord
from klaw_journals.jsonl import JsonLines, encode, parse_json

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=8,
)
RECORDS = st.dictionaries(st.text(), JSON, max_size=4)
GOOD = RECORDS.map(encode).map(lambda line: line[:-1])
ODD = st.sampled_from(
    [b"", b"{", b"NaN", b'{"a":NaN}', b'{"a":"\\ud800"}', b"\0", b"\xff", b"\xef\xbb\xbf{}", b" \r", b"[]"]
)
LINES = st.lists(GOOD | ODD | st.binary(max_size=40), max_size=12)
FILES = st.tuples(LINES.map(b"\n".join), st.sampled_from([b"", b"\n"])).map(b"".join)
BOUND = 60


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("laws") / "x.jsonl"


def expected(data: bytes) -> list[tuple[str, int, object]]:
    """Return what must be found, by the simplest program that knows the whole file."""
    found: list[tuple[str, int, object]] = []
    offset = 0
    *whole, torn = data.split(b"\n")
    for line in whole:
        if len(line) > BOUND:
            found.append(("bad", offset, None))
        elif line.strip():
            try:
                found.append(("good", offset, parse_json(line)))
            except RecordError:
                found.append(("bad", offset, None))
        offset += len(line) + 1
    return [*found, ("torn", offset, None)] if torn else found


def as_found(lines) -> list[tuple[str, int, object]]:
    kinds = [("torn" if line.torn else "bad") if isinstance(line, BadLine) else "good" for line in lines]
    values = [line.value if isinstance(line, LogRecord) else None for line in lines]
    return [(kind, line.offset, value) for kind, line, value in zip(kinds, lines, values, strict=True)]


@given(FILES)
def test_valid_records_are_read_in_order_and_bad_lines_have_their_offset(path, data):
    path.write_bytes(data)
    lines = JsonLines(path, BOUND)
    found = list(lines.read())
    assert as_found(found) == expected(data)
    assert list(lines.read_backwards()) == found[::-1]


@given(FILES, st.integers(0, 12))
def test_reading_in_two_parts_returns_all_lines(path, data, cut):
    path.write_bytes(data)
    lines = JsonLines(path, BOUND)
    whole = list(lines.read())
    part = whole[:cut]
    assert part + [line for line in lines.read(part[-1].end if part else 0) if line not in part] == whole


@given(FILES, st.integers(0, 14))
def test_read_backwards_returns_the_last_lines(path, data, count):
    path.write_bytes(data)
    lines = JsonLines(path, BOUND)
    assert list(islice(lines.read_backwards(), count)) == list(lines.read())[::-1][:count]


@given(FILES, st.lists(RECORDS.filter(lambda record: len(encode(record)) <= BOUND), min_size=1, max_size=3))
def test_appending_after_any_content_keeps_all_records(path, data, records):
    path.write_bytes(data)
    lines = JsonLines(path, BOUND)
    before = [line for line in lines.read() if isinstance(line, LogRecord)]
    written = lines.append(*records)
    assert path.read_bytes().startswith(data)
    after = [line for line in lines.read() if isinstance(line, LogRecord)]
    assert tuple(after[-len(records) :]) == written
    assert [line.value for line in written] == records
    assert after[: len(before)] == before
    assert len(after) - len(before) - len(records) in (0, 1), "the torn one may have been whole but for its end"
    assert path.read_bytes().endswith(b"\n")


@given(RECORDS)
def test_a_record_is_decoded_as_it_was_encoded(record):
    line = encode(record)
    assert line.count(b"\n") == 1
    assert parse_json(line) == record


@given(FILES, st.integers(0, 600))
def test_reading_can_start_at_any_offset(path, data, start):
    path.write_bytes(data)
    begins_line = start == 0 or data[start - 1 : start] == b"\n"
    found = list(JsonLines(path, BOUND).read(start))
    whole = list(JsonLines(path, BOUND).read())
    assert found == [line for line in whole if line.offset >= start] if begins_line else len(found) == 1
