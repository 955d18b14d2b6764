"""An index that keeps up by itself: at the start, and a moment after whatever has changed."""

from __future__ import annotations

import logging
import threading
from types import TracebackType
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from klaw_core.memory import Memory
    from klaw_core.values.runs import IndexReport, Progress

_LOG = logging.getLogger("klaw")

# So long after it was put off, embedding is tried again if nothing asks for a run before.
_RETRY_SECONDS = 5.0


class BackgroundIndexer:
    """Runs ``memory.index()`` in a thread of its own, once at the start and once after each burst of requests.

        with Memory.open() as memory, BackgroundIndexer(memory) as indexer:
            memory.conversations.append(message)
            indexer.request()       # returns at once

    Requests within ``debounce_seconds`` of each other are one run. Words come first: they are written whatever else
    goes on, and embedding gives way to them as soon as what was answered is kept. While another process embeds,
    embedding is put off and tried again every few seconds.

    An error is logged (logger ``klaw``) and never raised; the next request tries again. A good run logs "memory index
    ready". Leaving the block waits for the words that are being written, or for the embedder's answer; what then has
    no vector gets it from the next run, here or elsewhere.
    """

    def __init__(self, memory: Memory, *, debounce_seconds: float = 1.5) -> None:
        self._memory = memory
        self._debounce_seconds = debounce_seconds
        self._changed = threading.Condition()
        self._requests = 1  # the run at the start
        self._origins: set[str | None] = {None}
        self._handled = 0
        self._running = False
        self._asked = False
        self._put_off = False
        self._closing = False
        self._thread = threading.Thread(target=self._run, name="klaw-index", daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def request(self, origin: str | None = None) -> None:
        """Ask for a run, soon, over one source or (None) over all of them; return at once."""
        with self._changed:
            self._origins.add(origin)
            self._requests += 1
            self._changed.notify_all()

    def wait(self, timeout_seconds: float | None = None) -> bool:
        """Wait until nothing is asked for or under way; return whether that came about in time.

        Embedding that is put off is not waited for: words find what was asked for. What is asked for after
        :meth:`close` never comes about.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._is_done or (self._closing and not self._running), timeout_seconds)
            return self._is_done

    @property
    def _is_done(self) -> bool:
        return self._requests == self._handled and not self._running

    def close(self) -> None:
        """Stop once words are written, or the embedder has answered; closing twice is allowed."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        self._thread.join()

    def _run(self) -> None:
        first = True
        while self._next(at_once=first):
            first = False
            put_off = False
            try:
                report = self._bring_up_to_date()
            except _PutOffError as error:
                put_off = True
                _LOG.info("memory index ready for search by words; embedding postponed: %s", error)
            except Exception as error:  # noqa: BLE001  # whatever it is, whoever asked has gone on
                _LOG.warning("memory index not updated: %s", error)
            else:
                for notice in report.notices:
                    _LOG.warning("%d chunks are found by words alone: %s", report.lacking, notice)
                _LOG.info("memory index ready")
            with self._changed:
                self._running, self._put_off = False, put_off
                self._changed.notify_all()

    def _bring_up_to_date(self) -> IndexReport:
        """Run over what was asked for; what was put off is a smaller run, for which no file is read."""
        with self._changed:
            origins, self._origins = self._origins, set()
        if not self._asked:
            return self._memory.embed(on_progress=self._give_way)
        if None in origins:
            return self._memory.index(on_progress=self._give_way)
        from klaw_core.values.runs import IndexReport

        report = IndexReport()
        done: list[str] = []
        try:
            for origin in sorted(name for name in origins if name is not None):
                report += self._memory.index(origin=origin, on_progress=self._give_way)
                done.append(origin)
        finally:
            with self._changed:
                self._origins |= origins - set(done)
        return report

    def _give_way(self, progress: Progress) -> None:
        """Stop a run that has written its words and would wait, or keep somebody waiting. Nothing is lost by it."""
        if progress.stage in {"wait", "left"}:
            raise _PutOffError("another process is embedding")
        if progress.stage == "embed":
            with self._changed:
                if self._closing or self._requests > self._handled:
                    raise _PutOffError("other work comes first")

    def _next(self, *, at_once: bool) -> bool:
        """Wait for a request and for the burst to end, or to try again; return False when it is time to stop."""
        with self._changed:
            retry = _RETRY_SECONDS if self._put_off else None
            self._asked = self._changed.wait_for(lambda: self._requests > self._handled or self._closing, retry)
            while self._asked and not (at_once or self._closing) and self._more_come(self._requests):
                pass
            self._handled = self._requests
            self._running = not self._closing
            return self._running

    def _more_come(self, seen: int) -> bool:
        """Wait, for at most the time between two requests of one burst, for more than the ``seen`` ones."""
        return self._changed.wait_for(lambda: self._requests > seen or self._closing, self._debounce_seconds)


class _PutOffError(Exception):
    """Ends a run that was not to embed now."""
