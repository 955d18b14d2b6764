"""Verify a GGUF file once: compute its SHA-256, check that llama.cpp can load it, and cache the result.

Hashing a GGUF file takes seconds, and a damaged file can end the process that loads it. Therefore a new or changed file
is first loaded in a separate process. This protects from damage, not from attacks: a malicious file can also exploit
llama.cpp in that process. Load only models from publishers that you trust.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import signal
import subprocess
import sys
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

from attrs import asdict, frozen

from klaw_core import (
    EmbedderUnavailableError,
    ModelCorruptError,
    StoreError,
    read_regular,
    update_command,
    write_atomically,
)
from klaw_embed_llamacpp.header import FETCH_AGAIN
from klaw_embed_llamacpp.runtime import Settings
from klaw_redaction.environment import child_environment

#: The timeout of the first load in seconds.
_LOAD_SECONDS = 300
_REASON = re.compile(r"error loading model: (.+)")


@frozen
class ModelIdentity:
    """The SHA-256 of a file, in hex, and the dimension of its vectors."""

    sha256: str
    dimension: int


@frozen
class VerificationCache:
    """Stores results in ``directory``, one small file per model. A changed model is verified again."""

    directory: Path

    def verify(self, path: Path, settings: Settings) -> ModelIdentity:
        """Hash a file and load it once in another process. Raise ModelCorruptError or EmbedderUnavailableError."""
        record = self.directory / f"{hashlib.sha256(os.fsencode(path)).hexdigest()[:32]}.json"
        try:
            state = path.stat()
            seen = {
                "path": str(path),
                "size": state.st_size,
                "mtime_ns": state.st_mtime_ns,
                "context_tokens": settings.context_tokens,
                "pooling": settings.pooling,
                "xllamacpp": version("xllamacpp"),
            }
            if remembered := _remembered(record, seen):
                return remembered
            with path.open("rb") as stream:
                digest = hashlib.file_digest(stream, "sha256").hexdigest()
        except OSError as error:
            raise ModelCorruptError(f"cannot read {path}: {error.strerror}", hint=FETCH_AGAIN) from error
        verified = ModelIdentity(digest, _try_out(path, settings))
        _remember(record, seen, verified)
        return verified


def _remembered(record: Path, seen: dict[str, Any]) -> ModelIdentity | None:
    with suppress(OSError, ValueError, TypeError, KeyError):
        content = json.loads(read_regular(record))
        if content["seen"] == seen:
            return ModelIdentity(str(content["proof"]["sha256"]), int(content["proof"]["dimension"]))
    return None


def _remember(record: Path, seen: dict[str, Any], verified: ModelIdentity) -> None:
    """Write the result to the cache. If the cache is not writable, the next process verifies the model again."""
    with suppress(StoreError):
        write_atomically(record, json.dumps({"seen": seen, "proof": asdict(verified)}))


def _try_out(path: Path, settings: Settings) -> int:
    """Load the model in another process and return the dimension of its vectors."""
    arguments = [str(path), str(settings.context_tokens), settings.pooling, str(settings.threads)]
    command = [sys.executable, "-m", "klaw_embed_llamacpp.trial", *arguments]
    try:
        trial = subprocess.run(  # noqa: S603  # this very Python
            command, env=child_environment("GGML_", "OMP_"), capture_output=True, timeout=_LOAD_SECONDS, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise EmbedderUnavailableError(
            f"llama.cpp has not loaded {path} in {_LOAD_SECONDS} seconds", hint="use a smaller model, or a faster disk"
        ) from error
    if trial.returncode == 0:
        return int(trial.stdout)
    raise _load_error(path, trial.returncode, trial.stderr.decode("utf-8", "replace"))


def _load_error(path: Path, code: int, log: str) -> ModelCorruptError | EmbedderUnavailableError:
    """Return the error for a failed trial, from its log or from the signal that ended it."""
    if sys.platform != "win32" and code == -signal.SIGKILL:
        return EmbedderUnavailableError(
            f"llama.cpp was killed while it loaded {path}", hint="is there enough memory for the model?"
        )
    if code < 0:
        name = signal.Signals(-code).name
        return ModelCorruptError(f"llama.cpp was killed by {name} while it loaded {path}", hint=FETCH_AGAIN)
    found = _REASON.search(log)
    last = log.strip().splitlines()[-1:] or [f"it exits with {code}"]
    reason = found.group(1) if found else last[0]
    if "unknown model architecture" in reason:
        message = f"this llama.cpp cannot run {path}: {reason}"
        return EmbedderUnavailableError(message, hint=update_command("xllamacpp"))
    return ModelCorruptError(f"llama.cpp cannot run {path}: {reason}", hint=FETCH_AGAIN)
