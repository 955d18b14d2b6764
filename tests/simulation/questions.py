"""The answers to questions come when somebody waits for them, so that a life does not depend on how busy a machine is.

A question is embedded in a thread of its own. If that is fast, nobody waits for it; if it is slow, who waits looks
several times. Both meet other places of the code. Here the thread begins when somebody waits, who looks once.
"""

from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

from klaw_core import holds
from klaw_core.embedding.query_vectors import QueryVectors

_PATIENCE = 3600.0
_ask = QueryVectors._ask
#: What the threads wait for that have not begun.
_closed: list[SimpleQueue[None]] = []


class _Question:
    def __init__(self, ask: Callable[..., None]) -> None:
        self._ask, self._gate = ask, SimpleQueue[None]()
        _closed.append(self._gate)

    def __call__(self, *arguments: Any) -> None:
        self._gate.get()
        self._ask(*arguments)


def begin_all() -> None:
    """Let every question be embedded now, whether somebody waits for it or not."""
    while _closed:
        _closed.pop().put(None)


class _Waking(SimpleQueue[Any]):
    """What a thread waits for: as soon as it does, every question is embedded.

    ``get`` is still a function of C, after whose call a signal may come.
    """

    @property
    def get(self) -> Any:  # type: ignore[override]
        begin_all()
        return super().get


def install() -> None:
    """Let the answers come in this order in this process, for good."""
    QueryVectors._ask = property(lambda self: _Question(_ask.__get__(self)))  # type: ignore[method-assign,assignment]
    holds.SimpleQueue = _Waking  # type: ignore[misc]
    holds._LOOK_SECONDS = _PATIENCE
