"""Repeat a transaction that another writer or a lost connection has ended."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from klaw_core.errors import RetryableStoreError

# Attempts in total. The pause between two of them doubles each time.
_ATTEMPTS = 8
_FIRST_PAUSE_SECONDS = 0.01

P = ParamSpec("P")
T = TypeVar("T")


def retried(method: Callable[P, T]) -> Callable[P, T]:
    """Decorate a method that is one transaction: repeat it when the store raises RetryableStoreError."""

    @wraps(method)
    def repeat(*args: P.args, **kwargs: P.kwargs) -> T:
        for attempt in range(_ATTEMPTS - 1):
            try:
                return method(*args, **kwargs)
            except RetryableStoreError:
                # A random pause keeps two writers from colliding again.
                time.sleep(random.uniform(0, _FIRST_PAUSE_SECONDS * 2**attempt))  # noqa: S311  # no secret
        return method(*args, **kwargs)

    return repeat
