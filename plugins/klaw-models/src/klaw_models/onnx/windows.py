"""Count the tokens of texts, and cut texts into windows of token ids, with the tokenizer of the model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import TYPE_CHECKING, TypeAlias

from attrs import frozen

from klaw_core import EmbedderUnavailableError, EmbeddingError, KlawError
from klaw_models import OnnxEmbedderManifest
from klaw_models.onnx.tokenizer import encodable, load_tokenizer

if TYPE_CHECKING:
    from tokenizers import Encoding, Tokenizer

Ids: TypeAlias = tuple[int, ...]

_WORD = "a"


@frozen
class TextWindow:
    """The token ids of a part of a text; ``tokens`` is their number without prefix and special tokens."""

    ids: Ids
    tokens: int


@frozen
class TextTokenizer:
    """Tokenises with the manifest's ``tokenizer.json``. Safe to use from several threads."""

    tokenizer: Tokenizer
    before: Ids
    after: Ids
    query_prefix: Ids
    document_prefix: Ids
    max_tokens: int

    @classmethod
    def load(cls, manifest: OnnxEmbedderManifest) -> TextTokenizer:
        """Read and check the tokenizer. Raise EmbedderUnavailableError or ModelCorruptError."""
        tokenizer = load_tokenizer(manifest, unavailable=EmbedderUnavailableError)
        try:
            found = cls.of(tokenizer, manifest.query_prefix, manifest.document_prefix, manifest.max_tokens)
        except ValueError as error:
            raise manifest.corrupt(f"{manifest.directory / manifest.tokenizer} {error}") from error
        longest = found.added + manifest.max_tokens
        if longest > manifest.window_tokens:
            raise manifest.corrupt(
                f"{manifest.name}: a window of max_tokens with prefix and special tokens has {longest} tokens, "
                f"more than window_tokens {manifest.window_tokens}"
            )
        return found

    @classmethod
    def of(cls, tokenizer: Tokenizer, query_prefix: str, document_prefix: str, max_tokens: int) -> TextTokenizer:
        """Find out which special tokens a tokenizer adds. Raise ValueError if it has no tokens, EmbeddingError."""
        with _embedding_errors():
            before, after = _special_tokens(tokenizer)
            query, document = (_prefix(tokenizer, text) for text in (query_prefix, document_prefix))
        return cls(tokenizer, before, after, query, document, max_tokens)

    @property
    def added(self) -> int:
        """Return how many tokens of a window are special or a prefix, at most."""
        return len(self.before) + len(self.after) + max(len(self.query_prefix), len(self.document_prefix))

    def count(self, texts: Sequence[str]) -> list[int]:
        """Return each text's number of tokens, without special tokens."""
        with _embedding_errors():
            encodings = self.tokenizer.encode_batch_fast([encodable(text) for text in texts], add_special_tokens=False)
        return [len(encoding) for encoding in encodings]

    def windows(self, texts: Sequence[str], *, query: bool) -> list[list[TextWindow]]:
        """Return each text's windows, at least one, with the prefix and the special tokens in their ids."""
        prefix = self.query_prefix if query else self.document_prefix
        with _embedding_errors():
            encodings = self.tokenizer.encode_batch([encodable(text) for text in texts], add_special_tokens=False)
        return [self._cut(encoding, prefix) for encoding in encodings]

    def _cut(self, encoding: Encoding, prefix: Ids) -> list[TextWindow]:
        ids = encoding.ids
        short = len(ids) <= self.max_tokens
        cuts = [slice(0, len(ids))] if short else cut_tokens(encoding.word_ids, self.max_tokens)
        return [TextWindow((*self.before, *prefix, *ids[cut], *self.after), cut.stop - cut.start) for cut in cuts]


def cut_tokens(words: Sequence[int | None], size: int) -> list[slice]:
    """Cut a text of ``len(words)`` tokens into windows of at most ``size`` tokens, of nearly equal length.

    ``words[i]`` is the index of the word that token i belongs to. The text is cut between words, unless a word fills
    more than half of a window. A text without tokens has one empty window.

    The cuts determine the vector of a long text, so they are part of the vector space (``mean/256``): if they change,
    its name must change. Reasons: ``docs/decisions/0004-embedding-long-texts.md``.
    """
    cuts = [0]
    while len(words) - cuts[-1] > size:
        start, left = cuts[-1], len(words) - cuts[-1]
        length = -(-left // -(-left // size))
        end = start + length
        while end > start + length // 2 and words[end] is not None and words[end] == words[end - 1]:
            end -= 1
        cuts.append(end if end > start + length // 2 else start + length)
    cuts.append(len(words))
    return [slice(start, end) for start, end in pairwise(cuts)]


@contextmanager
def _embedding_errors() -> Iterator[None]:
    """Raise EmbeddingError if tokenizers fails with a tokenizer that it could load."""
    try:
        yield
    except (KlawError, ValueError):
        raise
    except Exception as error:  # tokenizers raises bare Exception, for example for a vocabulary without its [UNK]
        raise EmbeddingError(f"the model's tokenizer failed: {error}") from error


def _special_tokens(tokenizer: Tokenizer) -> tuple[Ids, Ids]:
    encoding = tokenizer.encode(_WORD)
    kept = [number for number, special in enumerate(encoding.special_tokens_mask) if not special]
    if not kept:
        raise ValueError(f"returns no tokens for {_WORD!r}")
    return tuple(encoding.ids[: kept[0]]), tuple(encoding.ids[kept[-1] + 1 :])


def _prefix(tokenizer: Tokenizer, prefix: str) -> Ids:
    """Return the ids that a prefix has in front of a text.

    A SentencePiece tokenizer adds the space after "query:" to the first token of the text. If the prefix is encoded
    alone, the space is a separate token.
    """
    whole, word = (tokenizer.encode(text, add_special_tokens=False).ids for text in (prefix + _WORD, _WORD))
    if whole[-len(word) :] == word:
        return tuple(whole[: -len(word)])
    return tuple(tokenizer.encode(prefix, add_special_tokens=False).ids)
