"""Erase at the end of a block, once, what several transactions of a thread have forgotten."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress

from klaw_core import Hold
from klaw_store_sqlitevec.connections import Writing


class Forgetting(threading.local):
    """The open blocks of the current thread that erase at their end."""

    def __init__(self) -> None:
        self.blocks: list[ErasingOnce] = []


class ErasingOnce(Hold[None]):
    """A block at whose end is erased what was forgotten within it."""

    __slots__ = ("_erase", "_forgetting", "is_due")

    def __init__(self, forgetting: Forgetting, erase: Callable[[], None]) -> None:
        self._forgetting = forgetting
        self._erase = erase
        self.is_due = False

    def take(self) -> None:
        """Begin the block."""
        self._forgetting.blocks.append(self)

    def give_back(self) -> None:
        """Erase, if anything was forgotten."""
        with suppress(ValueError):  # it may end in another thread
            self._forgetting.blocks.remove(self)
        if self.is_due:
            self.is_due = False
            self._end_transactions()
            self._erase()

    def _end_transactions(self) -> None:
        """End the transactions of the block that an interrupt has left: they would prevent it."""
        within = self.noted_in[self.noted_in.index(self) + 1 :] if self in self.noted_in else []
        for hold in reversed(within):
            if isinstance(hold, Writing):
                hold.end()
