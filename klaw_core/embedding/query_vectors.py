"""Vectors of questions: each computed once, and never waited for without end."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from queue import Empty, SimpleQueue

from attrs import define, field

from klaw_core.embedding.abilities import is_remote
from klaw_core.embedding.run import embed_question, require_same_space
from klaw_core.errors import EmbedderUnavailableError, KlawError, as_klaw_error
from klaw_core.interfaces.components import Embedder
from klaw_core.values.vectors import SpaceRecord, Vector

#: A person who waits for results rephrases and comes back; more than the last few hundred questions do not come again.
MOST_KEPT = 256
# Threads that may wait for an embedder at once. Python cannot stop one that hangs, so there must be an end to them.
_MOST_WAITING = 8

#: How long a question waits: for an embedder on a server, for one that loads its model, and for one that has.
REMOTE_SECONDS, LOADING_SECONDS, LOADED_SECONDS = 60.0, 300.0, 60.0

#: How long a thread that has embedded a question waits for the next.
IDLE_SECONDS = 5.0

_NOBODY = 0

# A recorded space, by name and by weights, and a text.
_Key = tuple[tuple[str, bytes], str]


def record_identity(record: SpaceRecord) -> tuple[str, bytes]:
    """Return what two records of one space and the same weights share: a name may come to stand for other weights."""
    return record.space.identity, record.probe.tobytes()


@define(eq=False, repr=False)
class _PendingVector:
    """A question on its way: several threads may wait for one answer."""

    answered: threading.Event = field(factory=threading.Event)
    vector: Vector | None = None
    error: KlawError | None = None


class QueryVectors:
    """Embeds questions in threads of their own, and keeps the last answers. Safe to use from several threads.

    An embedder that takes longer than it may is left behind: the search goes on with words, and the vector, if it
    comes after all, is there for the same question asked again. While too many are left behind none is added.
    ``limits`` are the seconds that a question waits; see ``REMOTE_SECONDS`` and its neighbours.
    """

    def __init__(self, limits: tuple[float, float, float] = (REMOTE_SECONDS, LOADING_SECONDS, LOADED_SECONDS)) -> None:
        self._limits = limits
        self._vectors: OrderedDict[_Key, Vector] = OrderedDict()
        self._waiting: dict[_Key, _PendingVector] = {}
        self._answered = False
        self._work: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._idle = _NOBODY  # or the process in which a thread waits
        self._lock = threading.Lock()

    def embed(self, text: str, embedder: Embedder, record: SpaceRecord, collection: str) -> Vector:
        """Return the vector of a question in the space that the collection is recorded to be in.

        Raise VectorSpaceError if the embedder's is another, EmbedderUnavailableError if no answer comes in time, else
        what the embedder raises.
        """
        key = (record_identity(record), text)
        with self._lock:
            if key in self._vectors:
                self._vectors.move_to_end(key)
                return self._vectors[key]
            asked = self._waiting.get(key)
            if asked is None:
                if len(self._waiting) >= _MOST_WAITING:
                    raise EmbedderUnavailableError(
                        f"the embedder still has {_MOST_WAITING} earlier questions to answer", hint="try again later"
                    )
                asked = _PendingVector()
                self._hand_over(partial(self._ask, key, asked, embedder, record, collection))
                self._waiting[key] = asked  # only now: there may be no room for another thread
        seconds = self._limit(embedder)
        if not asked.answered.wait(seconds):
            raise EmbedderUnavailableError(
                f"the embedder has not answered within {seconds:g} seconds",
                hint="search again; the model may still be loading",
            )
        if asked.error is not None:
            raise asked.error
        assert asked.vector is not None
        return asked.vector

    def _hand_over(self, work: Callable[[], None]) -> None:
        """Let a thread that waits for work do it, or a new one. The lock is held."""
        if self._idle == os.getpid():  # a process that was forked has none of its parent's threads
            self._idle = _NOBODY
            self._work.put(work)
        else:
            threading.Thread(target=self._serve, args=([work],), name="klaw-query", daemon=True).start()

    def _serve(self, first: list[Callable[[], None]]) -> None:
        """Do the work, then wait a while for more, unless another thread does: starting one costs more than waiting.

        What is done is let go of: it holds the embedder, and so a model that nobody may want any more.
        """
        work = first.pop()  # a thread keeps its arguments as long as it runs
        while True:
            work()
            del work
            with self._lock:
                if self._idle:
                    return
                self._idle = os.getpid()
            try:
                work = self._work.get(timeout=IDLE_SECONDS)
            except Empty:
                with self._lock:
                    if self._idle:
                        self._idle = _NOBODY
                        return
                work = self._work.get()  # which came at the last moment

    def _ask(self, key: _Key, asked: _PendingVector, embedder: Embedder, record: SpaceRecord, collection: str) -> None:
        try:
            require_same_space(record, embedder.space, collection)  # here, because a server may have to be asked
            asked.vector = embed_question(key[1], embedder)
        except BaseException as error:  # noqa: BLE001  # raised in the thread that waits, which is not to wait for ever
            asked.error = as_klaw_error(error)
        with self._lock:
            del self._waiting[key]
            if asked.vector is not None:
                self._answered = True
                self._vectors[key] = asked.vector
                while len(self._vectors) > MOST_KEPT:
                    self._vectors.popitem(last=False)
        asked.answered.set()

    def _limit(self, embedder: Embedder) -> float:
        remote, loading, loaded = self._limits
        if is_remote(embedder):
            return remote
        return loaded if self._answered else loading
