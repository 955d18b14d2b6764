"""Count the requests and tokens of each day, in a file in the data directory that all processes share.

    {"2026-11-22": {"requests": 3, "prompt_tokens": 5210, "completion_tokens": 611}, …}

A request is counted before it is sent, with its maximum number of tokens; its answer corrects the number. So after a
crash, or without an answer, the count is too high rather than too low.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from attrs import asdict, define, evolve, field, frozen

from klaw_core import LanguageModelError, locked, read_regular, write_atomically

_DAYS_KEPT = 31


@frozen
class DayUsage:
    """The usage of one day."""

    requests: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0

    @property
    def tokens(self) -> int:
        """The tokens of prompts and completions."""
        return self.prompt_tokens + self.completion_tokens


@define
class Reservation:
    """The maximum usage of a call, counted on the day on which it started: its requests so far, and its tokens."""

    day: str
    prompt_tokens: int
    completion_tokens: int
    requests: int = 1


def _now() -> datetime:
    return datetime.now(UTC)


@frozen(eq=False)
class UsageLedger:
    """Counts usage by day, within limits. Safe for several threads and processes."""

    path: Path
    max_requests: int
    max_tokens: int
    now: Callable[[], datetime] = field(default=_now, repr=False)

    def today(self) -> DayUsage:
        """Return the usage of today (UTC). Raise LanguageModelError if the file cannot be read."""
        return self._read().get(self._day, DayUsage())

    def reserve(self, prompt_tokens: int, completion_tokens: int) -> Reservation:
        """Count a request with its maximum tokens. Raise LanguageModelError if that exceeds a limit of the day."""
        reservation = Reservation(self._day, prompt_tokens, completion_tokens)
        with self._changing(reservation.day) as (day, keep):
            self._require_room(day, prompt_tokens + completion_tokens)
            keep(
                DayUsage(day.requests + 1, day.prompt_tokens + prompt_tokens, day.completion_tokens + completion_tokens)
            )
        return reservation

    def repeat(self, reservation: Reservation) -> None:
        """Count another request of the same call. Raise LanguageModelError if that exceeds the limit of the day."""
        with self._changing(reservation.day) as (day, keep):
            self._require_room(day, 0)
            keep(evolve(day, requests=day.requests + 1))
        reservation.requests += 1

    def settle(
        self, reservation: Reservation, prompt_tokens: int, completion_tokens: int, *, was_sent: bool = True
    ) -> None:
        """Replace the reserved tokens by those that the server counted; drop the requests if none reached a server."""
        with self._changing(reservation.day) as (day, keep):
            keep(
                DayUsage(
                    max(0, day.requests - (0 if was_sent else reservation.requests)),
                    max(0, day.prompt_tokens - reservation.prompt_tokens + prompt_tokens),
                    max(0, day.completion_tokens - reservation.completion_tokens + completion_tokens),
                )
            )

    def _require_room(self, day: DayUsage, tokens: int) -> None:
        tomorrow = "wait for the next day, which begins at 00:00 UTC"
        if day.requests >= self.max_requests:
            raise LanguageModelError(
                f"the daily limit of {self.max_requests:,} requests is reached",
                hint=f"{tomorrow}, or raise memory.language_model.max_requests_per_day",
            )
        if day.tokens + tokens > self.max_tokens:
            raise LanguageModelError(
                f"{day.tokens:,} of the daily limit of {self.max_tokens:,} tokens are used; this call needs {tokens:,}",
                hint=f"{tomorrow}, or raise memory.language_model.max_tokens_per_day",
            )

    @property
    def _day(self) -> str:
        return self.now().date().isoformat()

    @contextmanager
    def _changing(self, name: str) -> Iterator[tuple[DayUsage, Callable[[DayUsage], None]]]:
        """Yield the usage of a day and a function that replaces it, while no other process changes the file."""
        with locked(self.path.parent):
            days = self._read()

            def keep(day: DayUsage) -> None:
                kept = sorted({**days, name: day}.items())[-_DAYS_KEPT:]
                write_atomically(self.path, json.dumps({key: asdict(value) for key, value in kept}, indent=1) + "\n")

            yield days.get(name, DayUsage()), keep

    def _read(self) -> dict[str, DayUsage]:
        """Return the usage of all days. An unreadable file is an error; counting from 0 would break the limits."""
        try:
            loaded = json.loads(read_regular(self.path))
            days = {str(day): DayUsage(**counts) for day, counts in loaded.items()}
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, TypeError, AttributeError, RecursionError) as error:
            raise self._unreadable(str(error)) from error
        if any(type(count) is not int or count < 0 for day in days.values() for count in asdict(day).values()):
            raise self._unreadable("a count is not a number")
        return days

    def _unreadable(self, problem: str) -> LanguageModelError:
        return LanguageModelError(
            f"{self.path}: the counts of requests cannot be read: {problem}", hint="delete it to count from zero"
        )
