"""Estimate token counts for embedders without an accessible tokenizer."""

import string
from collections.abc import Sequence

# Up to five Latin letters or digits of one run, or one other character that is not white space. Word-piece and
# byte-pair tokenizers split text at the ends of such runs before they look at their vocabulary.
_RUN = 5
_END = "\x85"  # after each text; being white space beyond ASCII, it is in none
_KINDS = bytes(
    ord("a" if chr(byte) in string.ascii_letters + string.digits else " " if chr(byte).isspace() else ".")
    for byte in range(128)
).ljust(256, b".")
_KINDS = _KINDS[: ord(_END)] + b"\n" + _KINDS[ord(_END) + 1 :]
_PIECES = tuple(b"a" * length for length in range(_RUN, 0, -1))


def estimate_tokens(texts: Sequence[str], /) -> list[int]:
    r"""Estimate each text's token count: one per five letters of a word, one per other character.

    The estimate is too high rather than too low for every language in common vocabularies, so that a text that seems
    to fit does fit. It is subadditive, as ``Embedder.count_tokens`` must be. It is the number of matches of
    ``[A-Za-z0-9]{1,5}|\S``, for all texts at once.
    """
    plain = (text if text.isascii() else " ".join(text.split()) for text in texts)  # white space is ASCII's then
    kinds = "".join(text + _END for text in plain).encode("latin-1", "replace").translate(_KINDS)
    for piece in _PIECES:
        kinds = kinds.replace(piece, b".")
    return [len(text) for text in kinds.translate(None, b" ").split(b"\n")[:-1]]
