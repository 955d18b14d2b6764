"""The extension ``sync``: connects a run with the memory whose journals it changes, and examines the folders."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import define, field

from klaw_core import (
    AttachedExtension,
    CheckedExtension,
    Finding,
    Host,
    KlawError,
    NotFoundError,
    StatusExtension,
    StoreCorruptError,
    StoreError,
    WorkspaceError,
)
from klaw_journals import JournalingStore, Record, RecordedExtension, RunningExtension
from klaw_redaction import Redactor
from klaw_sync.options import SyncOptions

# Every index run builds all extensions, and few synchronise: the modules for that are loaded where they are used.
if TYPE_CHECKING:
    from klaw_sync.here import Missing, SyncReport
    from klaw_sync.remotes import Remote
    from klaw_sync.run import Machine, Sync

# The extension of each journal, the kind of its records in exports, and their form there.
_OWNERS: Mapping[str, tuple[str, str]] = {
    "saved": ("saved", "saved"),
    "documents": ("documents", "document"),
    "core_memory": ("core_memory", "core"),
    "conversations": ("conversations", "message"),
    "summaries": ("conversations", "summary"),
    "facts": ("facts", "fact"),
    "workspaces": ("workspaces", ""),
}


@define(eq=False)
class SyncExtension(AttachedExtension, CheckedExtension, RunningExtension, StatusExtension):
    """Synchronises the memory of a data directory with others."""

    data_dir: Path
    options: SyncOptions
    _host: Host | None = field(default=None, init=False)
    name = "sync"

    def attach(self, host: Host, /) -> None:
        """Store the host."""
        self._host = host

    @property
    def sync(self) -> Sync:
        """What synchronises the journals, without the index. Raise StoreError if the journals are in the store."""
        if self._host is not None and isinstance(self._host.store, JournalingStore):
            raise StoreError(
                "this store keeps the journals itself, so machines share them already",
                hint="give each machine the same [memory.store]",
            )
        from klaw_sync.run import Sync

        kinds = [name for name in self.options.journals if self._owner(name) is not None]
        name = self.options.machine or socket.gethostname()
        plain = not self.options.encrypt
        return Sync(self.data_dir, self._check, tuple(kinds), plain=plain, host=name, has_secret=self._has_secret)

    @property
    def is_shared(self) -> bool:
        """Whether this memory has a key."""
        return (self.data_dir / "sync" / "key").exists()

    def remotes(self, places: Sequence[str] = ()) -> list[Remote]:
        """Return the given remotes, or the configured ones. Raise ConfigError, also if there is none."""
        from klaw_sync.remotes import open_remote

        chosen = places or self.options.remotes
        return [open_remote(place, self.data_dir) for place in chosen or ("",)]

    def run(self, places: Sequence[str] = (), *, dry_run: bool = False, missing: Missing = "keep") -> SyncReport:
        """Synchronise with these places, or with the configured ones, and update the index. See :meth:`Sync.run`.

        Raise ConfigError, NotFoundError if the memory is not shared, StoreError.
        """
        notes = self._owner("workspaces")
        sync, remotes = self.sync, self.remotes(places)
        problem = "" if notes is None or dry_run else self._published(notes)
        try:
            report = sync.run(remotes, dry_run=dry_run, missing=missing)
        except KlawError:
            with suppress(KlawError):  # what an earlier run has left; the first error is the one to tell
                self._index(sync)
            raise
        if not dry_run:
            self._index(sync)
        if problem:
            report.problems += (problem,)
        elif notes is not None and self._host is not None and not dry_run:
            notes.sharing.adopt(partial(self._follow, notes, self._host, report))
        return report

    @staticmethod
    def _published(notes: Any) -> str:
        """Tell the others what was changed in the list of workspaces; return why that is not possible."""
        try:
            notes.sharing.publish()
        except StoreCorruptError as error:  # everything else is synchronised
            return f"{error.message}: {error.hint}"
        return ""

    @staticmethod
    def _follow(notes: Any, host: Host, report: SyncReport, changed: Mapping[str, Sequence[str]]) -> None:
        """Exclude and include the notes of shared workspaces as the other machines do."""
        for name, patterns in changed.items():
            notes.forget_excluded(name, patterns)
            try:
                host.index(name)
            except WorkspaceError as error:  # a disk that is not mounted: the next `klaw index` does it
                report.problems += (f"{name}: {error.message}",)
            except NotFoundError:
                continue

    def workspaces(self) -> tuple[Mapping[str, bool], int]:
        """Return the shared workspaces, each with whether this machine takes part, and the number of private ones."""
        notes = self._owner("workspaces")
        if notes is None:
            return {}, 0
        shared = {name: one.is_here for name, one in notes.sharing.shared().items()}
        return shared, len([name for name in notes.registry.all() if not shared.get(name)])

    def remove(self, machine: str, places: Sequence[str] = (), *, new_key: bool = False) -> Machine:
        """Synchronise with these places, or with the configured ones, then remove a machine. See :meth:`Sync.remove`.

        Raise ConfigError, NotFoundError, RecordError, StoreError.
        """
        sync = self.sync
        return sync.remove(machine, self.remotes(places), then=lambda _report: self._index(sync), new_key=new_key)

    def _index(self, sync: Sync) -> None:
        """Update the index of the journals that this run, or one that was interrupted, has changed."""
        if self._host is not None:
            sync.index(partial(self._update, self._host, set()))

    @staticmethod
    def _update(host: Host, done: set[str], kind: str) -> None:
        """Update the index of the extension that has a journal, once."""
        name = _OWNERS[kind][0]
        if name not in {*done, "core_memory", "workspaces"}:
            done.add(name)
            with suppress(NotFoundError):
                host.index(name)

    def start(self) -> Callable[[], object] | None:
        """Synchronise with the configured places every ``interval_seconds``, in a thread. Raise ConfigError.

        Return what stops it; None if nothing is configured, or the memory is not shared.
        """
        if not self.options.remotes or not self.options.interval_seconds or not self.is_shared:
            return None
        from klaw_sync.background import Synchroniser

        self.remotes()  # a mistake in a place is told at once
        running = Synchroniser(self.run, self.options.interval_seconds)
        running.start()
        return running.stop

    def machines(self) -> Sequence[Machine]:
        """Return the machines that share the memory, this one first."""
        return self.sync.machines()

    def status(self) -> dict[str, int | str]:
        """Return the memory's id and its machines."""
        if not self.is_shared:
            return {}
        others = [machine.host for machine in self.machines() if not machine.is_own and not machine.is_removed]
        return {"memory": self.sync.key.memory, "machines": ", ".join(others) or "no other yet"}

    def check(self) -> Iterable[Finding]:
        """Report a readable key, folders that cannot be used, and files in them that cannot be read."""
        if not self.is_shared:
            return
        from klaw_sync.keys import MemoryKey

        key = self.data_dir / "sync" / "key"
        try:
            MemoryKey.load(key)
            remotes = self.remotes() if self.options.remotes else []
        except KlawError as error:
            yield Finding("sync-key", "error", error.message, str(key), error.hint)
            return
        for remote in remotes:
            for problem in self.sync.examine(remote):
                yield _finding(problem, remote.location)

    def fix(self, _findings: Sequence[Finding], /) -> None:
        """Fix nothing: the next run does what can be done without loss."""

    def _owner(self, kind: str) -> Any:
        if self._host is None:
            return None
        with suppress(KlawError):
            return self._host.extension(_OWNERS[kind][0])
        return None

    def _has_secret(self, body: Mapping[str, Any]) -> bool:
        redactor = Redactor() if self._host is None else self._host.config.conversations.redactor
        named = {str(body["key"]): body["value"]} if {"key", "value"} <= body.keys() else {}  # a key of core memory
        return bool(redactor.value(body) != body or redactor.value(named) != named)

    def _check(self, kind: str, place: str, body: Mapping[str, Any]) -> None:
        """Raise RecordError unless an import would take this record."""
        owner: RecordedExtension | None = self._owner(kind)
        group, _, name = place.partition("/")
        value: Mapping[str, Any] = {"value": body}
        if kind == "core_memory":
            value = body
        elif kind == "conversations":
            value = {"chat": group, "day": name, "value": body}
        elif kind == "summaries":
            value = {"chat": group, "value": body}
        if kind == "workspaces" and owner is not None:
            self._owner(kind).check_declaration(body)
        elif owner is not None:
            owner.check_record(Record(_OWNERS[kind][1], value))


def _finding(problem: str, where: str) -> Finding:
    """Return the finding for a problem of a remote."""
    return Finding("sync-remote", "warning", problem, where, "klaw sync status")
