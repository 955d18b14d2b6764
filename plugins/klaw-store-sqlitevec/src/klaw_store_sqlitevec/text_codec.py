"""The format of texts in a compressing store: zlib, if that is shorter."""

from __future__ import annotations

import zlib

# Longer than any chunk. Without a limit, a changed byte could make a text expand endlessly.
_MAX_BYTES = 16 << 20


def compress_text(text: str) -> str | bytes:
    """Return the compressed text, or the text itself if it is not longer."""
    plain = text.encode()
    packed = zlib.compress(plain)
    return packed if len(packed) < len(plain) else text


def decompress_text(packed: bytes) -> str:
    """Decompress a text. Raise ValueError for bytes that :func:`compress_text` cannot have returned."""
    unpacker = zlib.decompressobj()
    try:
        plain = unpacker.decompress(packed, _MAX_BYTES)
    except zlib.error as error:
        raise ValueError(str(error)) from error
    if not unpacker.eof or unpacker.unused_data:
        raise ValueError("not one whole compressed text")
    return plain.decode()
