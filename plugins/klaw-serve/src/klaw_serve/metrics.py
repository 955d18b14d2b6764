"""Counts for Prometheus, in its text format."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from typing import Final

from attrs import define, field

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
_BUCKETS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)


@define(eq=False)
class Metrics:
    """Calls by operation and status, and their durations. Use it only in the event loop."""

    _ended: Counter[tuple[str, int]] = field(factory=Counter, init=False)
    _buckets: dict[str, list[int]] = field(factory=dict, init=False)
    _seconds: Counter[str] = field(factory=Counter, init=False)
    refused: Counter[int] = field(factory=Counter, init=False)

    def count(self, operation: str, status: int, seconds: float) -> None:
        """Count a call."""
        self._ended[operation, status] += 1
        buckets = self._buckets.setdefault(operation, [0] * (len(_BUCKETS) + 1))
        buckets[bisect_left(_BUCKETS, seconds)] += 1
        self._seconds[operation] += seconds  # type: ignore[assignment]  # a Counter adds what it is given

    def text(self) -> str:
        """Return all metrics in the text format."""
        return "".join(f"{line}\n" for line in self._lines())

    def _lines(self) -> Iterator[str]:
        yield "# HELP klaw_calls_total Calls of operations, by status of the response."
        yield "# TYPE klaw_calls_total counter"
        for (operation, status), number in sorted(self._ended.items()):
            yield f'klaw_calls_total{{operation="{operation}",status="{status}"}} {number}'
        yield "# HELP klaw_call_seconds Duration of calls, including the time that they waited for a thread."
        yield "# TYPE klaw_call_seconds histogram"
        for operation, buckets in sorted(self._buckets.items()):
            below = 0
            for bound, number in zip((*map(str, _BUCKETS), "+Inf"), buckets, strict=True):
                below += number
                yield f'klaw_call_seconds_bucket{{operation="{operation}",le="{bound}"}} {below}'
            yield f'klaw_call_seconds_sum{{operation="{operation}"}} {self._seconds[operation]:.6f}'
            yield f'klaw_call_seconds_count{{operation="{operation}"}} {below}'
        yield "# HELP klaw_refused_total Requests that were refused before any operation, by status of the response."
        yield "# TYPE klaw_refused_total counter"
        for status, number in sorted(self.refused.items()):
            yield f'klaw_refused_total{{status="{status}"}} {number}'
