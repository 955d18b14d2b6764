"""Choose the snippet of a chunk that contains no word of the question: the window nearest in meaning."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from attrs import define, field

# Extra time that a search may take for this. It is enough for one chunk with any model, two or three with a small one.
_SECONDS = 0.1
# The same if a server answers: its searches take a hundredth of a second.
_SECONDS_SERVED = 0.03
# If a chunk has more windows, every second one is embedded: neighbours overlap by half, so these still cover the chunk.
_FEW = 6


@define(eq=False)
class WindowChooser:
    """Asks a model for the window of each chunk, best result first, until the time is used up.

    ``ask`` returns the index of the nearest of some texts, or None if it fails; it is not called again after that.
    After the first chunk, it is called only if its answer is expected in time.
    """

    ask: Callable[[Sequence[str]], int | None]
    seconds: float = _SECONDS
    _until: float | None = field(default=None, init=False)
    _seconds_each: float = field(default=0.0, init=False)

    @classmethod
    def of_server(cls, ask: Callable[[Sequence[str]], int | None]) -> WindowChooser:
        """Return a chooser that asks a server."""
        return cls(ask, _SECONDS_SERVED)

    def __call__(self, windows: Sequence[str]) -> int | None:
        """Return the index of the window to show, or None for the first window."""
        began = time.monotonic()
        if self._until is None:
            self._until = began + self.seconds
        step = 1 if len(windows) <= _FEW else 2
        places: list[int] = sorted({*range(0, len(windows), step), len(windows) - 1})
        if began + self._seconds_each * len(places) > self._until:
            return None
        chosen = self.ask([windows[place] for place in places])
        if chosen is None:
            self._until = 0.0
            return None
        self._seconds_each = (time.monotonic() - began) / len(places)
        return places[chosen]
