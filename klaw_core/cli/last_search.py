"""The results of the last ``klaw search``, for ``klaw open N``: only their chunk ids, which say nothing of a text.

The file is in the cache directory, one for each memory. It is a convenience: if it cannot be written, nothing happens.
"""

from __future__ import annotations

try:  # ``hashlib`` has the same function, but loads OpenSSL, which takes longer than a search by words
    from _blake2 import blake2b
except ImportError:
    from hashlib import blake2b

import json
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from klaw_core.errors import KlawError, NotFoundError
from klaw_core.files.atomic import read_regular

if TYPE_CHECKING:
    from klaw_core.values.config import Config

_NAME_BYTES = 8
_MAX_RESULTS = 1_000


def remember(config: Config, chunk_ids: Sequence[str]) -> None:
    """Store the ids of the chunks that a search has shown, in their order; an empty answer is stored, too."""
    from klaw_core.files.atomic import make_private_directory, write_all
    from klaw_core.files.held import Temporary

    path = _file(config)
    with suppress(KlawError, OSError):
        make_private_directory(path.parent)
        temporary = Temporary(path)
        with temporary as descriptor:
            write_all(descriptor, json.dumps(list(chunk_ids[:_MAX_RESULTS])).encode())
            temporary.replace(flush=False)


def nth_result(config: Config, number: int) -> str:
    """Return the chunk id of a result of the last search; the first has the number 1. Raise NotFoundError."""
    try:
        ids = json.loads(read_regular(_file(config)))
    except (OSError, ValueError, RecursionError):
        ids = None
    if not isinstance(ids, list):
        raise NotFoundError("nothing was searched for yet", hint="klaw search QUESTION")
    if not 1 <= number <= len(ids):
        shown = f"{len(ids):,} result{'' if len(ids) == 1 else 's'}" if ids else "no results"
        raise NotFoundError(f"the last search has {shown}, and none with the number {number}")
    return str(ids[number - 1])


def _file(config: Config) -> Path:
    name = f"{config.data_dir}\0{config.agent}".encode("utf-8", "surrogatepass")
    memory = blake2b(name, digest_size=_NAME_BYTES).hexdigest()
    return config.cache_dir / "searches" / f"{memory}.json"
