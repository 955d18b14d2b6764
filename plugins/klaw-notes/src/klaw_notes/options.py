"""The options of the chunkers and of the extension ``links``."""

from __future__ import annotations

from attrs import Attribute, field, frozen, validators

_MIN_CHUNK_TOKENS = 8


def _at_least_smallest(_options: MarkdownOptions, _attribute: Attribute[int], value: int) -> None:
    if value < _MIN_CHUNK_TOKENS:
        raise ValueError(f"max_tokens must be at least {_MIN_CHUNK_TOKENS}, not {value}")


def _at_most_half(options: MarkdownOptions, _attribute: Attribute[int], value: int) -> None:
    if not 0 <= value <= options.max_tokens // 2:
        half = options.max_tokens // 2
        raise ValueError(f"overlap_tokens must be 0 to {half} (half of max_tokens), not {value}")


@frozen
class MarkdownOptions:
    """Sizes in tokens of the embedder, without special tokens.

    ``max_tokens`` limits a chunk (at least 8), ``overlap_tokens`` the text it repeats from the previous chunk (at most
    half of ``max_tokens``, because otherwise most of the index would be repetition). Raise ValueError otherwise.
    """

    max_tokens: int = field(default=400, validator=_at_least_smallest)
    overlap_tokens: int = field(default=80, validator=_at_most_half)


@frozen
class TranscriptOptions:
    """Sizes in tokens of the embedder.

    ``max_tokens`` limits a chunk (at least 8). Consecutive messages share a chunk if they have at most
    ``packed_tokens`` together. ``context_tokens`` limits the context. Raise ValueError for smaller values.
    """

    max_tokens: int = field(default=256, validator=validators.ge(_MIN_CHUNK_TOKENS))
    packed_tokens: int = field(default=16, validator=validators.ge(0))
    context_tokens: int = field(default=96, validator=validators.ge(0))


@frozen
class LinksOptions:
    """Options of ``[extensions.links]``.

    ``neighbours``: how many notes that the best chunks of a context link to, or that link to them, it may have besides.
    """

    neighbours: int = field(default=0, validator=[validators.ge(0), validators.le(20)], metadata={"agents": True})
