"""The moment that a process believes to have. Nothing of Klaw is imported, so that any version of it can be told."""

import datetime as dt
import sys
import time
from collections.abc import Callable
from typing import Any

_datetime = dt.datetime


class _Meta(type):
    def __instancecheck__(cls, other: object) -> bool:
        return isinstance(other, _datetime)

    def __subclasscheck__(cls, other: type) -> bool:
        return issubclass(other, _datetime)


def go_on_from(at: float) -> None:
    """Let the wall clock of this process begin at a moment, and go on as the real one does, for good."""
    real, difference = time.time, at - time.time()
    time.time = lambda: real() + difference
    time.time_ns = lambda: int(time.time() * 1e9)
    show(time.time)


def show(now: Callable[[], float]) -> None:
    """Show a time as a date to everything in the process, for good."""

    class Simulated(_datetime, metaclass=_Meta):
        def __new__(cls, *parts: Any, **named: Any) -> dt.datetime:  # type: ignore[misc]  # msgspec wants no other
            return _datetime(*parts, **named)

        @classmethod
        def now(cls, tz: dt.tzinfo | None = None) -> dt.datetime:
            return _datetime.fromtimestamp(now(), tz)

    for name, module in list(sys.modules.items()):
        if name.startswith("klaw") and getattr(module, "datetime", None) is _datetime:
            module.datetime = Simulated  # type: ignore[attr-defined]
