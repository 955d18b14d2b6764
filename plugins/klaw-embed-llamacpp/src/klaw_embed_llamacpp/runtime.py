"""Run llama.cpp in this process with xllamacpp: load a model and embed texts."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any

import numpy as np
from attrs import frozen

from klaw_core import EmbedderUnavailableError, EmbeddingError, update_command

if TYPE_CHECKING:
    from klaw_core import Matrix

# llama.cpp's log levels: 0 logs nothing, 1 logs errors, such as the reason why a model cannot be loaded.
SILENT, ERRORS = 0, 1
_TOO_LONG = "too large to process"


class TooLongError(EmbeddingError):
    """A text has more tokens than the context holds."""


@frozen
class Settings:
    """The settings for loading a model. ``context_tokens`` is the longest input with special tokens and prefix."""

    context_tokens: int
    pooling: str
    threads: int = 0


class Runtime:
    """A loaded model. Safe to use from several threads: llama.cpp queues their requests."""

    def __init__(self, server: Any, path: Path) -> None:
        self._server = server
        self._path = path
        self._process = os.getpid()

    @classmethod
    def load(cls, path: Path, settings: Settings, *, verbosity: int = SILENT) -> Runtime:
        """Load a model, which takes seconds, or minutes from a slow disk. Raise EmbedderUnavailableError.

        A file that was not tried before (:mod:`klaw_embed_llamacpp.verification`) may end the process.
        """
        try:
            import xllamacpp  # type: ignore[import-untyped]  # it has no hints
        except ImportError as error:
            hint = update_command("xllamacpp")
            raise EmbedderUnavailableError(f"xllamacpp cannot be imported: {error}", hint=hint) from error
        # llama.cpp always starts a server. It gets a socket in a private directory that is removed at once, so that no
        # port is open, and no other user or browser page can reach the model.
        hidden = mkdtemp(prefix="klaw-")
        try:
            parameters = _parameters(xllamacpp, path, settings)
            parameters.hostnames = [str(Path(hidden, "llama.sock"))]
            parameters.verbosity = verbosity
            return cls(xllamacpp.Server(parameters), path)
        except RuntimeError as error:
            raise EmbedderUnavailableError(
                f"llama.cpp cannot load {path}", hint="is there enough memory for the model?"
            ) from error
        except (AttributeError, TypeError) as error:  # xllamacpp's parameters change with those of llama.cpp
            raise EmbedderUnavailableError(
                f"unsupported version of xllamacpp: {error}",
                hint=f"{update_command('xllamacpp')}, or {update_command('klaw-embed-llamacpp')}",
            ) from error
        finally:
            rmtree(hidden, ignore_errors=True)

    def embed(self, texts: Sequence[str]) -> Matrix:
        """Return the model's vector for each text; a row does not depend on the other texts.

        Raise TooLongError, EmbeddingError, or EmbedderUnavailableError in a forked process.
        """
        if os.getpid() != self._process:  # llama.cpp's threads were not forked, so the call would never return
            raise EmbedderUnavailableError(
                "llama.cpp was loaded before this process was forked",
                hint="start worker processes with the method 'spawn' or 'forkserver'",
            )
        try:
            answer = self._server.handle_embeddings({"input": [_acceptable(text) for text in texts]})
        except (RuntimeError, ValueError) as error:
            raise EmbeddingError(f"llama.cpp with {self._path}: {error}") from error
        if "error" in answer:
            message = str(answer["error"].get("message"))
            kind = TooLongError if _TOO_LONG in message else EmbeddingError
            raise kind(f"llama.cpp with {self._path}: {message}")
        return np.array([entry["embedding"] for entry in answer["data"]], np.float32)


def _parameters(xllamacpp: Any, path: Path, settings: Settings) -> Any:
    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(path)
    parameters.embedding = True
    # All tokens of a text must be in one batch. One text at a time, because other texts change a vector's last digits.
    parameters.n_ctx = parameters.n_batch = parameters.n_ubatch = settings.context_tokens
    parameters.n_parallel = 1
    parameters.pooling_type = getattr(xllamacpp.llama_pooling_type, f"LLAMA_POOLING_TYPE_{settings.pooling.upper()}")
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = settings.threads or _threads()
    parameters.cache_prompt = parameters.warmup = parameters.fit_params = False
    parameters.offline = True
    return parameters


def _threads() -> int:
    """Return one thread less than there are processors.

    The threads wait for each other by spinning. If another process uses one of the processors, all of them are slower
    than a single thread.
    """
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, usable - 1)


def _acceptable(text: str) -> str:
    """Return a text that llama.cpp accepts.

    A lone surrogate is not valid in any encoding; an empty text has no tokens if the model adds no special ones.
    """
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace") or " "
