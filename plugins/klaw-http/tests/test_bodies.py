"""Bounded reading: what is held never exceeds the limit, whatever is sent."""

from __future__ import annotations

import gzip
import tracemalloc
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klaw_http import BodyError
from klaw_http.bodies import error_detail, read_body

LIMIT = 1_000_000


def pieces(data: bytes, size: int) -> list[bytes]:
    return [data[start : start + size] for start in range(0, len(data), size)]


@given(data=st.binary(max_size=5000), size=st.integers(1, 600), packed=st.booleans())
def test_law_a_body_is_read_completely_in_any_pieces(data: bytes, size: int, packed: bool) -> None:  # noqa: FBT001  # a strategy's value
    sent = gzip.compress(data) if packed else data
    assert read_body(pieces(sent, size), "gzip" if packed else "", LIMIT) == data


@given(data=st.binary(min_size=1, max_size=5000), packed=st.booleans())
def test_law_the_limit_is_exact(data: bytes, packed: bool) -> None:  # noqa: FBT001  # a strategy's value
    sent = zlib_bytes(data) if packed else data
    encoding = "gzip" if packed else ""
    limit = max(len(data), len(sent))
    assert read_body([sent], encoding, limit) == data
    with pytest.raises(BodyError, match="larger than"):
        read_body([sent], encoding, limit - 1)


def zlib_bytes(data: bytes) -> bytes:
    return gzip.compress(data, 9, mtime=0)


@given(data=st.binary(max_size=500), cut=st.integers(1, 400))
def test_law_a_truncated_gzip_stream_is_never_complete(data: bytes, cut: int) -> None:
    sent = gzip.compress(data)
    with pytest.raises(BodyError):
        read_body([sent[: max(0, len(sent) - cut)]], "gzip", LIMIT)


def test_a_gzip_bomb_is_stopped_before_it_fills_the_memory() -> None:
    packer = zlib.compressobj(9, zlib.DEFLATED, zlib.MAX_WBITS | 16)
    bomb = b"".join(packer.compress(bytes(1 << 20)) for _ in range(256)) + packer.flush()
    tracemalloc.start()
    with pytest.raises(BodyError, match="larger than"):
        read_body([bomb], "gzip", LIMIT)
    held = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(bomb) < LIMIT
    assert held < 8 * LIMIT


def test_data_after_the_gzip_stream_is_rejected() -> None:
    with pytest.raises(BodyError, match="continues after"):
        read_body([gzip.compress(b"{}"), b"more"], "gzip", LIMIT)


@pytest.mark.parametrize("encoding", ["br", "zstd", "deflate", "gzip, gzip"])
def test_an_encoding_that_was_not_requested_is_rejected(encoding: str) -> None:
    with pytest.raises(BodyError, match="was not requested"):
        read_body([b"{}"], encoding, LIMIT)


@pytest.mark.parametrize(
    ("body", "detail"),
    [
        (b'{"error": "no way"}', "no way"),
        (b'{"error": {"message": "no\\nway", "code": 7}}', "no way"),
        (b'{"object": "error", "message": "no way"}', "no way"),
        (b'{"detail": "no way"}', "no way"),
        (b'{"error": {"message": null}}', ""),
        (b'{"error": null, "detail": [{"msg": "no"}]}', "[{'msg': 'no'}]"),
        (b"no  way\n", "no way"),
        (b"{}", ""),
        (b"", ""),
    ],
)
def test_the_error_message_of_each_provider_is_found(body: bytes, detail: str) -> None:
    assert error_detail(body) == detail
