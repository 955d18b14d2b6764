"""The options of both chunkers."""

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
    """How large chunks are. Tokens are the embedder's own, without the model's special tokens.

    ``max_tokens`` bounds a chunk (at least 8), ``overlap_tokens`` what it repeats of the one before it (at
    most half of the bound: more, and most of the index would be repetition). Raise ValueError otherwise.
    """

    max_tokens: int = field(default=400, validator=_at_least_smallest)
    overlap_tokens: int = field(default=80, validator=_at_most_half)


@frozen
class TranscriptOptions:
    """How large chunks are, in the embedder's own tokens.

    ``max_tokens`` bounds a chunk (at least 8). Messages share one while together they have at most
    ``packed_tokens``, and no more than a chunk may. ``context_tokens`` bounds the context. Raise ValueError for
    anything smaller.
    """

    max_tokens: int = field(default=256, validator=validators.ge(_MIN_CHUNK_TOKENS))
    packed_tokens: int = field(default=16, validator=validators.ge(0))
    context_tokens: int = field(default=96, validator=validators.ge(0))
