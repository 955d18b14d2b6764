"""Choose the snippet of a chunk that contains no word of the question: the window nearest in meaning."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from attrs import define, field

# Extra time that a search may take for this. It is enough for one chunk with any model, two or three with a small one.
_SECONDS = 0.1


@define(eq=False)
class WindowChooser:
    """Asks a model for the window of each chunk, best result first, until the time is used up.

    ``ask`` returns the index of the nearest of some texts, or None if it fails; it is not called again after that.
    """

    ask: Callable[[Sequence[str]], int | None]
    seconds: float = _SECONDS
    _until: float | None = field(default=None, init=False)

    def __call__(self, windows: Sequence[str]) -> int | None:
        """Return the index of the window to show, or None for the first window."""
        if self._until is None:
            self._until = time.monotonic() + self.seconds
        if time.monotonic() > self._until:
            return None
        chosen = self.ask(windows)
        if chosen is None:
            self._until = 0.0
        return chosen
