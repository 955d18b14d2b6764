"""Update the index in the background: at the start, and shortly after each change."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from attrs import define, evolve, field, frozen

from klaw_core import IndexReport, MessageEvent, NotFoundError, Notifier, QueryError, StoreError, ThreadLock, operations

if TYPE_CHECKING:
    from klaw_core import Event, Memory, Progress

_LOG = logging.getLogger("klaw")

# Seconds until postponed embedding is tried again, if no run is requested before, and until a run is repeated that
# found the store locked or full.
_RETRY_SECONDS = 5.0
# Requests that never pause start a run after this many times the debounce.
_MAX_DEBOUNCES = 10
# Seconds that a run may continue to write words after it was told to stop; then it stops between two transactions.
_CLOSING_SECONDS = 0.5


@frozen
class BackgroundRun:
    """A run that ended. ``reasons`` are those of its requests; ``error`` is the exception that ended it, or None."""

    reasons: tuple[str, ...]
    report: IndexReport
    error: Exception | None = None


@define
class _PendingRequests:
    """The requests that have not run yet, merged."""

    everything: bool = False
    force: bool = False  # everything
    # Each with whether to force it.
    origins: dict[str, bool] = field(factory=dict)
    paths: dict[str, bool] = field(factory=dict)
    reasons: dict[str, None] = field(factory=dict)

    def __bool__(self) -> bool:
        return self.everything or bool(self.origins) or bool(self.paths)

    def add(self, other: _PendingRequests) -> None:
        """Merge another set of requests into this one."""
        self.everything |= other.everything
        self.force |= other.force
        for mine, more in ((self.origins, other.origins), (self.paths, other.paths)):
            mine.update({name: force or mine.get(name, False) for name, force in more.items()})
        self.reasons |= other.reasons

    def parts(self) -> Iterator[tuple[Mapping[str, Any], bool]]:
        """Yield the arguments of ``Memory.index`` for what is not part of a run over everything, and ``force``."""
        done = {True: self.everything and self.force, False: self.everything}
        for force in (False, True):
            if done[force]:
                continue
            yield from (({"origin": name}, force) for name in sorted(self.origins) if self.origins[name] == force)
            if paths := sorted(path for path, forced in self.paths.items() if forced == force):
                yield {"paths": paths}, force


@operations
class BackgroundIndexer:
    """Runs ``memory.index()`` in a thread of its own, once at the start and once after each burst of requests.

        with Memory.open() as memory, BackgroundIndexer(memory) as indexer:
            memory.conversations.append(message)
            indexer.request()       # returns at once

    With ``follow``, it requests a run after each message that this process appends, so a program that keeps a chat need
    not. Requests within ``debounce_seconds`` of each other are one run. Words are always written first: embedding stops
    for a request as soon as the received vectors are stored. While another process embeds, embedding is postponed and
    tried again every few seconds. Without ``at_start`` there is no run before the first request.

    An error is logged (logger ``klaw``) and never raised; the next request tries again. If the store was locked or
    full, the run is also repeated after some seconds. A successful run logs "memory index ready". ``on_run`` is called
    after every requested run, in the thread of the runs. Leaving the block waits for the embedder's current response,
    or about half a second for the words that are being written; the next run, in this process or another, continues.
    """

    def __init__(
        self,
        memory: Memory,
        *,
        debounce_seconds: float = 1.5,
        at_start: bool = True,
        follow: bool = False,
        on_run: Callable[[BackgroundRun], None] = lambda _run: None,
    ) -> None:
        self._memory = memory
        self._debounce_seconds = debounce_seconds
        self._on_run = on_run
        self._state = ThreadLock("the list of requested index runs")
        self._changed = Notifier()
        self._wanted = _PendingRequests(everything=at_start)
        self._at_once = at_start
        self._requests = 0  # in total
        self._running = False
        self._postponed = False
        self._failed = False
        self._closing = False
        self._last_words = 0.0
        self._unfollow = memory.on_change(self._follow) if follow else lambda: None
        self._thread = threading.Thread(target=self._run, name="klaw-index", daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def request(
        self,
        origin: str | None = None,
        *,
        paths: Iterable[str | Path] | None = None,
        force: bool = False,
        reason: str = "",
    ) -> None:
        """Request a run over one source, over single files, or (neither) over everything; return at once.

        ``force`` chunks every document of these again. ``reason`` is passed to ``on_run``. Raise QueryError if both a
        source and files are given.
        """
        if origin is not None and paths is not None:
            raise QueryError("request takes one of: an origin, paths")
        wanted = _PendingRequests(reasons={reason: None})
        if paths is not None:
            wanted.paths = dict.fromkeys(map(str, [paths] if isinstance(paths, str | Path) else paths), force)
        elif origin is not None:
            wanted.origins[origin] = force
        else:
            wanted.everything, wanted.force = True, force
        with self._state.hold():
            self._wanted.add(wanted)
            self._requests += 1
            self._failed = False
        self._changed.notify()

    def _follow(self, event: Event) -> None:
        if isinstance(event, MessageEvent):
            self.request("conversations")

    def wait(self, timeout_seconds: float | None = None) -> bool:
        """Wait until no run is requested or running; return whether that happened in time.

        It does not wait for postponed embedding: search by words finds the new text. Requests after :meth:`close` are
        never run.
        """
        self._changed.wait_for(lambda: self._is_done or (self._closing and not self._running), timeout_seconds)
        return self._is_done

    @property
    def _is_done(self) -> bool:
        with self._state.hold():
            return (self._failed or not self._wanted) and not self._running

    def close(self, timeout_seconds: float | None = None) -> bool:
        """Stop after words are written, or soon, or after the embedder's response; return whether it was in time.

        Closing twice is allowed.
        """
        if not self._closing:
            self._last_words = time.monotonic() + _CLOSING_SECONDS
        self._closing = True
        self._unfollow()
        self._changed.notify()
        self._thread.join(timeout_seconds)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while (wanted := self._next()) is not None:
            ended = self._run_once(wanted)
            if wanted:
                self._report(ended)
            with self._state.hold():
                self._running = False
                self._postponed = isinstance(ended.error, _PostponedError)
                if isinstance(ended.error, StoreError):  # the store is locked or full, perhaps temporarily
                    self._wanted.add(wanted)
                    self._failed = True
            self._changed.notify()

    def _run_once(self, wanted: _PendingRequests) -> BackgroundRun:
        """Run the requests, or embed what was postponed. An exception is returned in the result."""
        ended = BackgroundRun(tuple(filter(None, wanted.reasons)), IndexReport())
        try:
            ended = evolve(ended, report=self._update(wanted))
        except _StoppedError as error:
            _LOG.info("memory index not complete: %s", error)
            return evolve(ended, error=error)
        except _PostponedError as error:
            _LOG.info("memory index ready for search by words; embedding postponed: %s", error)
            return evolve(ended, error=error)
        except Exception as error:  # noqa: BLE001  # no caller waits for the run
            _LOG.warning("memory index not updated: %s", error)
            return evolve(ended, error=error)
        for notice in ended.report.notices:
            _LOG.warning("chunks found by words alone: %d; %s", ended.report.lacking, notice)
        _LOG.info("memory index ready")
        return ended

    def _update(self, wanted: _PendingRequests) -> IndexReport:
        """Run the requests. Without any, embed what was postponed, which reads no files."""
        if not wanted:
            return self._memory.embed(on_progress=self._stop_if_needed)
        report = IndexReport()
        if wanted.everything:
            report += self._memory.index(force=wanted.force, on_progress=self._stop_if_needed)
        for part, force in wanted.parts():
            try:
                report += self._memory.index(**part, force=force, on_progress=self._stop_if_needed)
            except NotFoundError:
                if "paths" not in part:
                    raise
                report += self._memory.index(force=force, on_progress=self._stop_if_needed)  # a source was removed
        return report

    def _stop_if_needed(self, progress: Progress) -> None:
        """End a run that would wait, or that delays other work. The next run continues it."""
        if progress.stage == "index" and self._closing and time.monotonic() > self._last_words:
            raise _StoppedError("the next run writes the rest")
        if progress.stage in {"wait", "left"}:
            raise _PostponedError("another process is embedding")
        if progress.stage == "embed" and (self._closing or self._wanted):
            raise _PostponedError("other work comes first")

    def _report(self, ended: BackgroundRun) -> None:
        try:
            self._on_run(ended)
        except Exception as error:  # noqa: BLE001  # the callback may raise anything
            _LOG.warning("%s", error)

    def _next(self) -> _PendingRequests | None:
        """Wait for requests until they pause, or for the next retry; return None after :meth:`close`."""
        retry = _RETRY_SECONDS if self._postponed or self._failed else None
        is_requested = self._changed.wait_for(lambda: self._is_requested or self._closing, retry)
        deadline = time.monotonic() + _MAX_DEBOUNCES * self._debounce_seconds
        while is_requested and not (self._at_once or self._closing) and self._more_requests(self._requests, deadline):
            pass
        with self._state.hold():
            self._at_once = self._failed = False
            if self._closing:
                return None
            wanted, self._wanted = self._wanted, _PendingRequests()
            self._running = True
            return wanted

    @property
    def _is_requested(self) -> bool:
        with self._state.hold():
            return bool(self._wanted) and not self._failed

    def _more_requests(self, seen: int, deadline: float) -> bool:
        """Wait for more than ``seen`` requests, at most for the debounce time; return whether there are."""
        left = min(self._debounce_seconds, deadline - time.monotonic())
        return left > 0 and self._changed.wait_for(lambda: self._requests > seen or self._closing, left)


class _PostponedError(Exception):
    """Ends a run whose embedding must wait."""


class _StoppedError(_PostponedError):
    """Ends a run that has more words to write."""
