"""One run at a time embeds, so that no text is sent to an embedder twice."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from klaw_core.embedding.run import EmbeddingRun
from klaw_core.indexing.run_counts import ProgressCallback
from klaw_core.interfaces.store import Store
from klaw_core.values.runs import Progress

#: The name of the lock that a run holds while it embeds; see ``Store.lock``.
EMBEDDING_LOCK = "embedding"


class _TakenError(Exception):
    """Another run holds the lock, and the caller does not wait."""


@contextmanager
def turn_to_embed(
    store: Store[Any], data_dir: Path, run: EmbeddingRun, on_progress: ProgressCallback, *, patient: bool
) -> Iterator[bool]:
    """Wait until no other run embeds, so that a text that another run has just sent is not sent, and paid for, again.

    Yield True when this run may embed. A run that has stopped embedding does not wait, and neither does a run in a
    read-only directory. If ``patient`` is false, do not wait: yield False while another run embeds.
    """
    if run.stopped or not os.access(data_dir, os.W_OK):
        yield True
        return

    def wait() -> None:
        on_progress(Progress("wait" if patient else "left", 0, 0))
        if not patient:
            raise _TakenError

    with ExitStack() as stack:
        try:
            stack.enter_context(store.lock(EMBEDDING_LOCK, wait))
        except _TakenError:
            yield False
        else:
            yield True
