"""Vectors of questions: computed once each, with a time limit."""

from __future__ import annotations

import os
from _thread import start_new_thread
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from queue import Empty, SimpleQueue

from attrs import define, field

from klaw_core.embedding.abilities import is_remote
from klaw_core.embedding.run import embed_question, require_same_space
from klaw_core.errors import EmbedderUnavailableError, KlawError, as_klaw_error
from klaw_core.holds import Flag, ThreadLock
from klaw_core.interfaces.components import Embedder
from klaw_core.values.vectors import SpaceRecord, Vector

#: Cached vectors. People rephrase and return to recent questions; older ones rarely come again.
MAX_CACHED = 256
# The maximum number of threads that wait for an embedder. Python cannot stop a thread that hangs.
_MAX_WAITING = 8

#: Seconds that a question waits for a server, for a local embedder that loads its model, and for one that is loaded.
REMOTE_SECONDS, LOADING_SECONDS, LOADED_SECONDS = 60.0, 300.0, 60.0

#: Seconds that a thread waits for the next question.
IDLE_SECONDS = 5.0

# The identity of a recorded space, and a text.
_Key = tuple[tuple[str, bytes], str]


def record_identity(record: SpaceRecord) -> tuple[str, bytes]:
    """Return a key for a space and its weights. The name alone is not enough, because its weights may change."""
    return record.space.identity, record.probe.tobytes()


@define(eq=False, repr=False)
class _PendingVector:
    """A question that is being embedded. Several threads may wait for it."""

    answered: Flag = field(factory=Flag)
    vector: Vector | None = None
    error: KlawError | None = None


@define(eq=False, repr=False)
class _IdleThread:
    """A thread that waits for work. A process that was forked has a copy of this, but not the thread."""

    work: SimpleQueue[Callable[[], None]] = field(factory=SimpleQueue)
    process: int = field(factory=os.getpid)


class QueryVectors:
    """Embeds questions in separate threads, and caches the last vectors. Safe to use from several threads.

    If an embedder exceeds its time limit, the search continues with words. If the vector arrives later, it is cached
    for the same question. While too many threads hang, no new one is started. ``limits`` are the seconds that a
    question waits; see ``REMOTE_SECONDS`` and the constants after it.
    """

    def __init__(self, limits: tuple[float, float, float] = (REMOTE_SECONDS, LOADING_SECONDS, LOADED_SECONDS)) -> None:
        self._limits = limits
        self._vectors: OrderedDict[_Key, Vector] = OrderedDict()
        self._waiting: dict[_Key, _PendingVector] = {}
        self._answered = False
        self._idle: list[_IdleThread] = []  # at most one
        self._lock = ThreadLock("the list of questions to embed")

    def embed(self, text: str, embedder: Embedder, record: SpaceRecord, collection: str) -> Vector:
        """Return the vector of a question in the recorded space of the collection.

        Raise VectorSpaceError if the embedder is in another space, EmbedderUnavailableError if no vector comes in
        time, or what the embedder raises.
        """
        key = (record_identity(record), text)
        with self._lock.hold():
            if key in self._vectors:
                self._vectors.move_to_end(key)
                return self._vectors[key]
            asked = self._waiting.get(key)
            if asked is None:
                if len(self._waiting) >= _MAX_WAITING:
                    raise EmbedderUnavailableError(
                        f"the embedder still has {_MAX_WAITING} earlier questions to answer", hint="try again later"
                    )
                asked = _PendingVector()
                self._submit(partial(self._ask, key, asked, embedder, record, collection))
                # After `_submit`, which raises if there are too many threads. The answer needs the lock to remove it.
                self._waiting[key] = asked
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

    def _submit(self, work: Callable[[], None]) -> None:
        """Give the work to an idle thread, or to a new one. The caller holds the lock."""
        if self._idle and self._idle[-1].process == os.getpid():  # a forked process lacks its parent's threads
            self._idle.pop().work.put(work)
        else:
            self._idle.clear()
            # One call: an exception in `Thread.start` could leave the new thread waiting for its start.
            start_new_thread(self._serve, ([work],))

    def _serve(self, first: list[Callable[[], None]]) -> None:
        """Do the work, then wait for more unless another thread is idle: starting a thread costs more than waiting.

        Drop the reference to finished work: it holds the embedder, and so a loaded model.
        """
        work = first.pop()  # pop, because a thread keeps its arguments alive as long as it runs
        own = _IdleThread()
        while True:
            work()
            del work
            with self._lock.hold():
                if self._idle:
                    return
                self._idle.append(own)
            try:
                work = own.work.get(timeout=IDLE_SECONDS)
            except Empty:
                with self._lock.hold():
                    if own.work.empty():  # who takes a thread from the list gives it work before letting the lock go
                        self._idle[:] = [idle for idle in self._idle if idle is not own]
                        return
                work = own.work.get()  # work that arrived at the last moment

    def _ask(self, key: _Key, asked: _PendingVector, embedder: Embedder, record: SpaceRecord, collection: str) -> None:
        try:
            require_same_space(record, embedder.space, collection)  # in this thread, because it may call a server
            asked.vector = embed_question(key[1], embedder)
        except BaseException as error:  # noqa: BLE001  # raised in the thread that waits, which is not to wait for ever
            asked.error = as_klaw_error(error)
        with self._lock.hold():
            self._waiting.pop(key, None)  # the search that asked may have been interrupted before it noted it
            if asked.vector is not None:
                self._answered = True
                self._vectors[key] = asked.vector
                while len(self._vectors) > MAX_CACHED:
                    self._vectors.popitem(last=False)
        asked.answered.set()

    def _limit(self, embedder: Embedder) -> float:
        remote, loading, loaded = self._limits
        if is_remote(embedder):
            return remote
        return loaded if self._answered else loading
