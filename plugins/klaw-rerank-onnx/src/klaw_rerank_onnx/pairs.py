"""Tokenise a question with each chunk, in the form that the model expects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from attrs import frozen

from klaw_core import RetrievalError
from klaw_models import CrossEncoderManifest
from klaw_models.onnx import encodable, load_tokenizer

if TYPE_CHECKING:
    from tokenizers import Tokenizer


@frozen
class Pair:
    """A question and a chunk with special tokens; ``types`` contains for each token which of the two it belongs to."""

    ids: tuple[int, ...]
    types: tuple[int, ...]


@frozen
class PairTokenizer:
    """Tokenises with the manifest's ``tokenizer.json``; a pair has at most ``window`` tokens. Thread-safe."""

    tokenizer: Tokenizer
    window: int

    @classmethod
    def load(cls, manifest: CrossEncoderManifest, max_tokens: int) -> PairTokenizer:
        """Read and check the tokenizer. Raise RetrievalError or ModelCorruptError."""
        tokenizer = load_tokenizer(manifest, unavailable=RetrievalError)
        window = min(max_tokens, manifest.window_tokens)
        # Only the chunk is truncated, because half of a question may have the opposite meaning.
        tokenizer.enable_truncation(window, strategy="only_second")
        return cls(tokenizer, window)

    def pairs(self, question: str, chunks: Sequence[str]) -> list[Pair]:
        """Return the question with each chunk. Raise RetrievalError if the question fills over half of the window."""
        question = encodable(question)
        length = len(self.tokenizer.encode(question, add_special_tokens=False).ids)
        if 2 * length > self.window:
            raise RetrievalError(
                f"the question has {length} tokens; the model reads only {self.window} of question and chunk together",
                hint="ask a shorter question",
            )
        encodings = self.tokenizer.encode_batch([(question, encodable(chunk)) for chunk in chunks])
        return [Pair(tuple(encoding.ids), tuple(encoding.type_ids)) for encoding in encodings]
