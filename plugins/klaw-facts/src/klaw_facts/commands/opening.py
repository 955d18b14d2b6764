"""Open the facts of a memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from klaw_core.cli.kit import Settings, notify

if TYPE_CHECKING:
    from klaw_facts.facts import Facts


@contextmanager
def open_facts(settings: Settings) -> Iterator[Facts]:
    """Open the memory, and yield its facts; it is closed at the end. Report what the index could not do."""
    with settings.open_memory() as memory:
        from klaw_facts.facts import Facts  # here, because help and completion need none

        yield (facts := memory.extension(Facts))
        for notice in facts.notices:
            notify(settings, notice)
