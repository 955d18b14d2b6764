"""The answers to questions come when somebody waits for them, so that a life does not depend on how busy a machine is.

A question is embedded in a thread of its own. If that is fast, nobody waits for it; if it is slow, who waits looks
several times. Both meet other places of the code. Here the thread begins when somebody waits, who looks once. While two
threads take turns, a third one would disturb them: then who waits embeds the question itself, without any place.
"""

import sys
from collections.abc import Callable
from functools import partial
from queue import SimpleQueue
from typing import Any

import turns

from klaw_core import holds
from klaw_core.embedding import query_vectors
from klaw_core.embedding.query_vectors import QueryVectors

_PATIENCE = 3600.0
_ask = QueryVectors._ask
_submit = QueryVectors._submit
#: What lets the questions be embedded that nobody has waited for, the first one first.
_closed: list[Callable[[], object]] = []


class _Question:
    def __init__(self, ask: Callable[..., None]) -> None:
        self._ask, self._gate = ask, SimpleQueue[None]()
        _closed.append(partial(self._gate.put, None))

    def __call__(self, *arguments: Any) -> None:
        self._gate.get()
        self._ask(*arguments)


def begin_all() -> None:
    """Let every question be embedded now, whether somebody waits for it or not."""
    while _closed:
        _closed.pop(0)()


def _submitted(self: QueryVectors, work: Callable[[], None]) -> None:
    if turns.are_taken():
        _closed.append(partial(_do_aside, work))
    else:
        _submit(self, work)


def _do_aside(work: Callable[[], None]) -> None:
    """Do what another thread would do, so that it has no place of this one."""
    look = sys.getprofile()
    sys.setprofile(None)
    try:
        work()
    finally:
        sys.setprofile(look)


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
    QueryVectors._submit = _submitted  # type: ignore[method-assign]
    query_vectors.IDLE_SECONDS = _PATIENCE
    holds.SimpleQueue = _Waking  # type: ignore[misc]
    holds._LOOK_SECONDS = _PATIENCE
