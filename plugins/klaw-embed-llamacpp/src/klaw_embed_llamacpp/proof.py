"""That a file is what it was, and that llama.cpp survives it: found out once, and remembered.

Hashing a GGUF takes seconds, and a damaged one can end the process that loads it. So a file that is new here, or has
changed, is hashed, and loaded in a process of its own first. That guards against damage, not against malice: a file
made to take over llama.cpp does so in the trial too. Load models of publishers you trust.
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

from klaw_core import EmbedderUnavailableError, ModelCorruptError, StoreError, write_atomically
from klaw_embed_llamacpp.header import MENDING
from klaw_embed_llamacpp.runtime import INSTALL, Settings

#: How long a first load may take.
_LOAD_SECONDS = 300
_REASON = re.compile(r"error loading model: (.+)")


@frozen
class Proof:
    """What was found out of a file: the SHA-256 of its bytes, in hex, and the length of the vectors it makes."""

    sha256: str
    dimension: int


@frozen
class ProofBook:
    """Remembers proofs in ``directory``, one small file a model; a model that has changed is proven again."""

    directory: Path

    def prove(self, path: Path, settings: Settings) -> Proof:
        """Return the proof of a file. Raise ModelCorruptError or EmbedderUnavailableError."""
        page = self.directory / f"{hashlib.sha256(os.fsencode(path)).hexdigest()[:32]}.json"
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
            if remembered := _remembered(page, seen):
                return remembered
            with path.open("rb") as stream:
                digest = hashlib.file_digest(stream, "sha256").hexdigest()
        except OSError as error:
            raise ModelCorruptError(f"cannot read {path}: {error.strerror}", hint=MENDING) from error
        proof = Proof(digest, _try_out(path, settings))
        _remember(page, seen, proof)
        return proof


def _remembered(page: Path, seen: dict[str, Any]) -> Proof | None:
    with suppress(OSError, ValueError, TypeError, KeyError):
        content = json.loads(page.read_text(encoding="utf-8"))
        if content["seen"] == seen:
            return Proof(str(content["proof"]["sha256"]), int(content["proof"]["dimension"]))
    return None


def _remember(page: Path, seen: dict[str, Any], proof: Proof) -> None:
    """Write the page; without a cache directory that can be written, the next process finds out again."""
    with suppress(StoreError):
        write_atomically(page, json.dumps({"seen": seen, "proof": asdict(proof)}))


def _try_out(path: Path, settings: Settings) -> int:
    """Load the model in another process and return the dimension of its vectors."""
    arguments = [str(path), str(settings.context_tokens), settings.pooling, str(settings.threads)]
    command = [sys.executable, "-m", "klaw_embed_llamacpp.trial", *arguments]
    try:
        trial = subprocess.run(command, capture_output=True, timeout=_LOAD_SECONDS, check=False)  # noqa: S603  # this very Python
    except subprocess.TimeoutExpired as error:
        raise EmbedderUnavailableError(
            f"llama.cpp has not loaded {path} in {_LOAD_SECONDS} seconds", hint="use a smaller model, or a faster disk"
        ) from error
    if trial.returncode == 0:
        return int(trial.stdout)
    raise _explained(path, trial.returncode, trial.stderr.decode("utf-8", "replace"))


def _explained(path: Path, code: int, log: str) -> ModelCorruptError | EmbedderUnavailableError:
    """Make the error from how the trial ended: its log, or the signal that ended it."""
    if code == -signal.SIGKILL:
        return EmbedderUnavailableError(
            f"llama.cpp was killed while it loaded {path}", hint="is there memory enough for the model?"
        )
    if code < 0:
        name = signal.Signals(-code).name
        return ModelCorruptError(f"llama.cpp dies of {name} when it loads {path}", hint=MENDING)
    found = _REASON.search(log)
    last = log.strip().splitlines()[-1:] or [f"it exits with {code}"]
    reason = found.group(1) if found else last[0]
    if "unknown model architecture" in reason:
        return EmbedderUnavailableError(f"this llama.cpp cannot run {path}: {reason}", hint=INSTALL)
    return ModelCorruptError(f"llama.cpp cannot run {path}: {reason}", hint=MENDING)
