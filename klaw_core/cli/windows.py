"""Which stretch of a chunk to show, where no word of the question stands in it: the nearest in meaning."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from attrs import define, field

# A person waits for this besides the search: one chunk with any model, two or three with a small one.
_SECONDS = 0.1


@define(eq=False)
class WindowChooser:
    """Asks a model for the window of one chunk after another, best result first, as long as there is time.

    ``ask`` returns the place of the nearest of some texts, None if that cannot be told; it is not asked again then.
    """

    ask: Callable[[Sequence[str]], int | None]
    seconds: float = _SECONDS
    _until: float | None = field(default=None, init=False)

    def __call__(self, windows: Sequence[str]) -> int | None:
        """Return the place of the window to show, None for the first."""
        if self._until is None:
            self._until = time.monotonic() + self.seconds
        if time.monotonic() > self._until:
            return None
        chosen = self.ask(windows)
        if chosen is None:
            self._until = 0.0
        return chosen
