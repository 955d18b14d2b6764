"""The answers to questions come when somebody waits for them, so that a life does not depend on how busy a machine is.

A question is embedded in a thread of its own. If that is fast, nobody waits for it; if it is slow, who waits looks
several times. Both meet other places of the code. So does who asks the next question before the thread waits for it.
Here who waits does what the thread would do, without any place, and looks once.
"""

import sys
from collections.abc import Callable
from functools import partial
from queue import SimpleQueue
from typing import Any

from klaw_core import holds
from klaw_core.embedding import query_vectors

_PATIENCE = 3600.0
#: What the threads would do that have not begun, the first one first.
_closed: list[Callable[[], object]] = []


def begin_all() -> None:
    """Let every question be embedded now, whether somebody waits for it or not."""
    while _closed:
        _do_aside(_closed.pop(0))


def _begin_later(work: Callable[..., object], arguments: tuple[Any, ...]) -> None:
    _closed.append(partial(work, *arguments))


def _do_aside(work: Callable[[], object]) -> None:
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
    query_vectors.start_new_thread = _begin_later  # type: ignore[assignment]
    query_vectors.IDLE_SECONDS = 0  # no other question can be there
    holds.SimpleQueue = _Waking  # type: ignore[misc]
    holds._LOOK_SECONDS = _PATIENCE
