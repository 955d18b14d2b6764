"""The extension ``watch``: shows the state of the watcher in ``klaw status``, and its problems in ``klaw doctor``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from attrs import define, field

from klaw_core import (
    AttachedExtension,
    CheckedExtension,
    Event,
    Finding,
    Host,
    IndexEvent,
    ListeningExtension,
    StatusExtension,
)
from klaw_watch.background import BackgroundRun
from klaw_watch.names import CONSOLIDATE, CONVERSATION, FORCED, INTERVAL, RESUME, START, WATCH
from klaw_watch.options import WatchOptions
from klaw_watch.state import WatchDirectory, WatchState

_MORE_HANDLES = "raise fs.inotify.max_user_watches or max_user_instances (sysctl), then start it again"


@define(eq=False)
class WatchExtension(AttachedExtension, CheckedExtension, ListeningExtension, StatusExtension):
    """Reports on the watcher of a data directory."""

    directory: WatchDirectory
    options: WatchOptions
    _host: Host | None = field(default=None, init=False)
    name = "watch"

    def attach(self, host: Host, /) -> None:
        """Store the host."""
        self._host = host

    def status(self) -> dict[str, int | str]:
        """Return whether a watcher is running, and the last run of each trigger."""
        state = self.directory.read()
        runs = dict(self.directory.other_runs())
        for name, last in (state.runs if state else {}).items():
            runs[name] = max(last, runs.get(name, last), key=lambda run: run.at)
        facts = {f"sync_{name}": f"{last.at}: {last.result}" for name, last in runs.items()}
        for name, setting in self._settings().items():
            facts.setdefault(f"sync_{name}", setting)
        return {"watcher": self._running(state), **dict(sorted(facts.items()))}

    def on(self, event: Event, /) -> None:
        """Record a run before a search, or a forced one, of any process."""
        if isinstance(event, IndexEvent) and event.trigger:
            self.directory.record(BackgroundRun((event.trigger,), event.report))

    def check(self) -> Iterable[Finding]:
        """Report that a watcher died, polls files, or misses a directory."""
        state = self.directory.read()
        if state is None or state.stopped:
            return
        where = str(self.directory.path)
        if not self.directory.is_watched():
            yield Finding("watcher", "warning", f"the watcher (process {state.pid}) died", where, "klaw watch")
            return
        if state.scanning:
            what = f"it checks every file every few seconds: {state.scanning}"
            yield Finding("watcher", "note", what, where, _MORE_HANDLES)
        if state.problem:
            yield Finding("watcher", "warning", state.problem, where, "klaw status")

    def fix(self, _findings: Sequence[Finding], /) -> None:
        """Fix nothing, because a watcher is started by the user or by systemd."""

    def _running(self, state: WatchState | None) -> str:
        if state is None or not self.directory.is_watched():
            return "not running"
        how = "checking every file" if state.scanning else "notified of changes"
        said = f"process {state.pid}, {state.watched} watched, {how}"
        return f"{said}; {state.problem}" if state.problem else said

    def _settings(self) -> dict[str, str]:
        """Return the setting of each trigger, which is shown for triggers that never ran."""
        if self._host is None:
            return {}
        options = self.options
        waits = [f"{options.conversation_messages} messages"] if options.conversation_messages else []
        waits += [f"{options.conversation_bytes} bytes"] if options.conversation_bytes else []
        every = f"every {options.interval_minutes} minutes" if options.interval_minutes else "off"
        return {
            "search": "on" if self._host.config.sync.on_search else "off",
            START: "on, has not run yet" if options.on_start else "off",
            WATCH: f"on, {options.debounce_ms} ms after a change" if options.watch else "off",
            CONVERSATION: f"after {' or '.join(waits)}" if waits else "like other files",
            INTERVAL: every,
            CONSOLIDATE: f"at {options.consolidate}, when idle" if options.consolidate else "off",
            FORCED: "by SIGHUP, or `klaw index --force`",
            RESUME: "after the machine wakes from sleep",
        }
