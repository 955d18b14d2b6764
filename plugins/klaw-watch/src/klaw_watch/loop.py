"""The loop of a watcher. It reacts to changes of files and sources, to elapsed time, and to sleep of the machine."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from attrs import define, evolve, field

from klaw_core import Flag, KlawError, Memory
from klaw_watch.background import BackgroundIndexer
from klaw_watch.files import FileEvents
from klaw_watch.names import INTERVAL, RESUME, START, WATCH
from klaw_watch.options import WatchOptions
from klaw_watch.roots import Root, identity_of, roots_of
from klaw_watch.triggers import Backlog, Requests

# After a shorter sleep of the machine nothing needs to be checked.
_SLEPT_SECONDS = 5.0
# An iteration takes half a second. If it takes longer, this process was stopped, or the machine is very busy.
_STOPPED_SECONDS = 3.0


@define(eq=False)
class Loop:
    """Runs until ``stop`` is set.

    After each look at the sources, ``on_look`` is called with the number of watched paths and the problem, if any.
    """

    memory: Memory
    options: WatchOptions
    indexer: BackgroundIndexer
    events: FileEvents
    stop: Flag
    get_slept: Callable[[], float]
    look_seconds: float
    on_look: Callable[[int, str], None]
    at_each_look: Callable[[], object] = lambda: None
    _roots: Sequence[Root] = field(default=(), init=False)
    _requests: Requests = field(init=False)

    def run(self) -> None:
        """Request the index run at the start, then run the loop."""
        settings = self.options
        backlog = Backlog(settings.conversation_messages, settings.conversation_bytes)
        self._requests = Requests(self.memory, self.indexer, backlog)
        self._look(first=True)
        backlog.begin(self._roots)
        looked = whole = now = time.monotonic()
        if settings.on_start:  # later changes are reported, so no change is missed
            self.indexer.request(reason=START)
        slept = self.get_slept()
        while not self.stop.is_set():
            self._handle_changes()
            before, now = now, time.monotonic()
            if now - before > _STOPPED_SECONDS:  # the kernel's queue may have overflowed without a report
                self.indexer.request(reason=RESUME)
            if now - looked < self.look_seconds:
                continue
            looked = now
            self.at_each_look()
            if self.get_slept() - slept > _SLEPT_SECONDS:
                slept, whole = self.get_slept(), now
                self._watch()
                self.indexer.request(reason=RESUME)
            elif 0 < settings.interval_minutes * 60 <= now - whole:
                whole = now
                self.indexer.request(reason=INTERVAL)
            self._look()

    def _handle_changes(self) -> None:
        changes = self.events.wait()
        if changes is None:  # changes may have been missed
            self._watch()
            self.indexer.request(reason=WATCH)
        elif changes:
            self._requests.handle(changes, self._roots)

    def _look(self, *, first: bool = False) -> None:
        """Watch the current sources; request index runs for those that are new, available again or replaced."""
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
        if self.options.watch:
            paths = [root.path for root in self._roots if root.identity is not None]
            self._requests.handle(self.events.watch(paths), self._roots)

    def _missing(self) -> str:
        """Return a message about missing directories of notes. Journals may be created with the first message."""
        missing = [str(root.path) for root in self._roots if root.identity is None and not root.is_conversation]
        return f"{', '.join(missing)} not found; its indexed documents stay" if missing else ""
