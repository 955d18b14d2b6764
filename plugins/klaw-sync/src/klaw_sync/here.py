"""This machine: how it takes part in a shared memory, and what the steps of one run share."""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from attrs import define, field, frozen

from klaw_core import Hold, KlawError, operations, own_directory
from klaw_journals import Traces
from klaw_journals.traces import digest
from klaw_sync.desks import Body, desks
from klaw_sync.keys import MemoryKey
from klaw_sync.remotes import Remote
from klaw_sync.state import State
from klaw_sync.values import KINDS, Kind, Version

#: The name in the state's ``meta`` of the mark that this machine has not looked at its journals yet.
NEW = "new"
#: The name in `meta` of whether the journals are being changed to what all versions say.
APPLYING = "applying"
#: Raises RecordError unless a journal may have this record.
Check = Callable[[str, str, Mapping[str, Any]], object]
#: What is done with records that are missing here although nobody has forgotten them.
Missing = Literal["keep", "restore", "forget"]


class _RolledBack(Hold[None]):
    """A transaction of which nothing stays."""

    __slots__ = ("_state",)

    def __init__(self, state: State) -> None:
        self._state = state

    def take(self) -> None:
        self._state.database.execute("BEGIN")

    def give_back(self) -> None:
        self._state.roll_back()


@define
class SyncReport:
    """What one run did. ``sent``, ``received``, ``forgotten`` and ``missing`` are numbers of records.

    ``withheld`` is the number of records with secrets that stay on this machine, because it writes readable files.
    ``changed`` names journals of this machine. ``conflicts`` are values that another one has replaced, ``waiting`` are
    files that are not complete yet, ``gaps`` say how many records of which machine have not arrived, and ``problems``
    are sentences.
    """

    sent: int = 0
    received: int = 0
    forgotten: int = 0
    changed: tuple[str, ...] = ()
    missing: int = 0
    withheld: int = 0
    conflicts: tuple[str, ...] = ()
    waiting: tuple[str, ...] = ()
    gaps: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()

    def add_problem(self, remote: Remote, error: KlawError) -> None:
        """Add what is wrong with a remote, once."""
        told = f"{remote.location}: {error.message}"
        if told not in self.problems:
            self.problems += (told,)


@operations
@define(eq=False)
class Here:
    """One data directory. ``kinds``: its journals that others get; ``plain`` writes segments without encryption.

    ``check`` raises RecordError for a record that its journal may not have. ``has_secret`` says of a record whether it
    contains a secret, so that it is in no readable file. ``step`` is called with the name of each
    durable step, for tests.
    """

    root: Path
    check: Check = lambda _kind, _place, _body: None
    kinds: Sequence[str] = tuple(KINDS)
    plain: bool = False
    host: str = field(factory=socket.gethostname)
    has_secret: Callable[[Mapping[str, Any]], bool] = lambda _body: False
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    step: Callable[[str], object] = lambda _name: None
    traces: Traces = field(init=False)

    @traces.default
    def _make_traces(self) -> Traces:
        return Traces(self.root)

    @property
    def directory(self) -> Path:
        """The directory with the key and the state."""
        return own_directory(self.root, "sync")

    @property
    def forgotten_size(self) -> int:
        """The size of the list of what was forgotten; it only grows."""
        try:
            return (self.directory / "forgotten.jsonl").stat().st_size
        except OSError:
            return 0

    def stamps(self) -> str:
        """Return a text that changes whenever one of the journals, or the list of what was forgotten, does."""
        found = {f"{desk.kind.name}/{desk.place}": desk.stamp for desk in desks(self.root, self.kinds)}
        found["forgotten"] = str(self.forgotten_size or "")
        return digest(found)


@frozen
class Item:
    """A record of a journal of this machine, and the names of the traces that it has seen."""

    kind: Kind
    place: str
    body: Body
    seen: frozenset[str]

    @property
    def key(self) -> str:
        """What identifies it here."""
        return self.kind.key(self.place, self.body)


@define(eq=False)
class Round:
    """What the steps of one run share. With ``dry_run`` nothing is written to a journal, a remote or the state."""

    here: Here
    state: State
    key: MemoryKey
    remotes: Sequence[Remote]
    report: SyncReport
    dry_run: bool = False
    missing: Missing = "keep"
    #: The keys of the records that the journals had when they were read.
    found: set[str] = field(factory=set)
    #: Versions that a journal has lost without anybody having forgotten them.
    lost: set[str] = field(factory=set)
    #: The journals that cannot be read: this run changes, deletes and forgets nothing of them.
    unread: set[str] = field(factory=set)
    #: The versions that records would have had which something forgot that they had not seen.
    doomed: dict[str, Version] = field(factory=dict)
    #: The versions that this run has written to a remote that had none of their text.
    sent: set[str] = field(factory=set)
    #: Versions of registers whose records were changed during this run.
    changed_meanwhile: set[str] = field(factory=set)
    _read: tuple[int, frozenset[str]] = (-1, frozenset())

    @property
    def kinds(self) -> set[str]:
        """The journals whose content is known."""
        return {*self.here.kinds} - self.unread

    @property
    def trace_names(self) -> frozenset[str]:
        """The names of the traces in the file of this machine; it only grows."""
        size = self.here.forgotten_size
        if size != self._read[0]:
            self._read = size, frozenset(name for _, name in self.here.traces.read())
        return self._read[1]

    def now(self) -> int:
        """Return the moment, in milliseconds."""
        return int(self.here.now().timestamp() * 1000)

    def transaction(self) -> AbstractContextManager[object]:
        """Commit what the block changes in the state; a dry run rolls it back."""
        return _RolledBack(self.state) if self.dry_run else self.state.commit()
