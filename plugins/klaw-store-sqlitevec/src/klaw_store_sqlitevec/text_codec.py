"""Texts as a compressing store keeps them: zlib's bytes, where these are fewer."""

from __future__ import annotations

import zlib

# More than any chunk has. A changed byte may turn a text into one that never ends.
_MAX_BYTES = 16 << 20


def compress_text(text: str) -> str | bytes:
    """Return the text compressed; the text itself if that is not longer."""
    plain = text.encode()
    packed = zlib.compress(plain)
    return packed if len(packed) < len(plain) else text


def decompress_text(packed: bytes) -> str:
    """Return the text of compressed bytes. Raise ValueError for what :func:`compress_text` cannot have returned."""
    unpacker = zlib.decompressobj()
    try:
        plain = unpacker.decompress(packed, _MAX_BYTES)
    except zlib.error as error:
        raise ValueError(str(error)) from error
    if not unpacker.eof or unpacker.unused_data:
        raise ValueError("not one whole compressed text")
    return plain.decode()
