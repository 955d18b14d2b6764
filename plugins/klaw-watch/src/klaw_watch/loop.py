"""The loop of a watcher: changes of files, the sources that there are, time that passes, and sleep of the machine."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

from attrs import define, evolve, field

from klaw_core import BackgroundIndexer, KlawError, Memory
from klaw_watch.files import FileEvents
from klaw_watch.names import INTERVAL, RESUME, START, WATCH
from klaw_watch.roots import Root, identity_of, roots_of
from klaw_watch.triggers import Backlog, Requests

# A shorter sleep of the machine leaves nothing behind.
_SLEPT_SECONDS = 5.0
# A round of the loop takes half a second; after a longer one this process was stopped, or the machine is very busy.
_STOPPED_SECONDS = 3.0


@define(eq=False)
class Loop:
    """Runs until ``stop`` is set. After each look ``on_look`` is told how much is watched, and what is wrong."""

    memory: Memory
    indexer: BackgroundIndexer
    events: FileEvents
    stop: threading.Event
    get_slept: Callable[[], float]
    look_seconds: float
    on_look: Callable[[int, str], None]
    _roots: Sequence[Root] = field(default=(), init=False)
    _requests: Requests = field(init=False)

    def run(self) -> None:
        """Ask for what the settings want at the start, then go on."""
        settings = self.memory.config.sync
        backlog = Backlog(settings.conversation_messages, settings.conversation_bytes)
        self._requests = Requests(self.memory, self.indexer, backlog)
        self._look(first=True)
        backlog.begin(self._roots)
        looked = whole = now = time.monotonic()
        if settings.on_start:  # what changes from now on is told, so between the two nothing is lost
            self.indexer.request(reason=START)
        slept = self.get_slept()
        while not self.stop.is_set():
            self._hear()
            before, now = now, time.monotonic()
            if now - before > _STOPPED_SECONDS:  # the kernel's queue may have run over meanwhile, and nothing says so
                self.indexer.request(reason=RESUME)
            if now - looked < self.look_seconds:
                continue
            looked = now
            if self.get_slept() - slept > _SLEPT_SECONDS:
                slept, whole = self.get_slept(), now
                self._watch()
                self.indexer.request(reason=RESUME)
            elif 0 < settings.interval_minutes * 60 <= now - whole:
                whole = now
                self.indexer.request(reason=INTERVAL)
            self._look()

    def _hear(self) -> None:
        changes = self.events.wait()
        if changes is None:  # some may have been missed
            self._watch()
            self.indexer.request(reason=WATCH)
        elif changes:
            self._requests.handle(changes, self._roots)

    def _look(self, *, first: bool = False) -> None:
        """Watch the sources that there are now; what is new, back or replaced is to be indexed."""
        before, problem = self._roots, ""
        try:
            self._roots = roots_of(self.memory)
        except KlawError as error:
            problem = str(error)
            self._roots = tuple(evolve(root, identity=identity_of(root.path)) for root in before)
        if self._roots != before:
            self._watch()
            for root in [] if first else self._roots:
                if root.identity is not None and root not in before:
                    self.indexer.request(root.origin, reason=WATCH)
        self.on_look(sum(root.identity is not None for root in self._roots), problem or self._missing())

    def _watch(self) -> None:
        if self.memory.config.sync.watch:
            paths = [root.path for root in self._roots if root.identity is not None]
            self._requests.handle(self.events.watch(paths), self._roots)

    def _missing(self) -> str:
        """Name the directories of notes that are not there; journals may come with the first message."""
        missing = [str(root.path) for root in self._roots if root.identity is None and not root.is_conversation]
        return f"{', '.join(missing)} not found; its indexed documents stay" if missing else ""
