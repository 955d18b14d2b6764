"""The extension ``watch``: shows in ``klaw status`` what a watcher does, and in ``klaw doctor`` what it cannot."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from attrs import define, field

from klaw_core import BackgroundRun, Event, Finding, Host, IndexEvent
from klaw_watch.names import CONVERSATION, FORCED, INTERVAL, RESUME, START, WATCH
from klaw_watch.state import WatchDirectory, WatchState

_MORE_HANDLES = "raise fs.inotify.max_user_watches or max_user_instances (sysctl), then start it again"


@define(eq=False)
class WatchExtension:
    """Reports on the watcher of a data directory."""

    directory: WatchDirectory
    _host: Host | None = field(default=None, init=False)
    name = "watch"

    def attach(self, host: Host, /) -> None:
        """Take the host."""
        self._host = host

    def status(self) -> dict[str, int | str]:
        """Return whether a watcher runs, and what each trigger did last."""
        state = self.directory.read()
        runs = dict(self.directory.elsewhere())
        for name, last in (state.runs if state else {}).items():
            runs[name] = max(last, runs.get(name, last), key=lambda run: run.at)
        facts = {f"sync_{name}": f"{last.at}: {last.result}" for name, last in runs.items()}
        for name, setting in self._settings().items():
            facts.setdefault(f"sync_{name}", setting)
        return {"watcher": self._running(state), **dict(sorted(facts.items()))}

    def on(self, event: Event, /) -> None:
        """Remember a run before a search, or a forced one, whichever process made it."""
        if isinstance(event, IndexEvent) and event.trigger:
            self.directory.note(BackgroundRun((event.trigger,), event.report))

    def check(self) -> Iterable[Finding]:
        """Say that a watcher died, cannot be told of changes, or misses a directory."""
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
        """Fix nothing: a watcher is started by a person, or by systemd."""

    def _running(self, state: WatchState | None) -> str:
        if state is None or not self.directory.is_watched():
            return "not running"
        how = "checking every file" if state.scanning else "told of changes"
        said = f"process {state.pid}, {state.watched} watched, {how}"
        return f"{said}; {state.problem}" if state.problem else said

    def _settings(self) -> dict[str, str]:
        """Return of each trigger what is set for it: what is shown of those that never ran."""
        if self._host is None:
            return {}
        sync = self._host.config.sync
        waits = [f"{sync.conversation_messages} messages"] if sync.conversation_messages else []
        waits += [f"{sync.conversation_bytes} bytes"] if sync.conversation_bytes else []
        every = f"every {sync.interval_minutes} minutes" if sync.interval_minutes else "off"
        return {
            "search": "on" if sync.on_search else "off",
            START: "on, not yet" if sync.on_start else "off",
            WATCH: f"on, {sync.debounce_ms} ms after a change" if sync.watch else "off",
            CONVERSATION: f"after {' or '.join(waits)}" if waits else "like every file",
            INTERVAL: every,
            FORCED: "by SIGHUP, or `klaw index --force`",
            RESUME: "after the machine wakes from sleep",
        }
