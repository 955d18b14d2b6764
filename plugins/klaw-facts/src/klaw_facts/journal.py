"""The journal ``facts``: append operations, and cache their folded state until the next write."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from attrs import define, field

from klaw_core import ThreadLock, locked, operations, own_directory
from klaw_facts.fold import State, fold
from klaw_facts.secret_gate import SecretGate
from klaw_facts.values import make_id
from klaw_journals import BrokenRecord, RecordJournal, Replay


@operations
@define(eq=False)
class FactsJournal:
    """Operations on facts. Safe for several threads and processes.

    ``directory`` contains the lock of writers, which they hold from reading the state until they have written. No
    secret passes ``gate``, neither into the journal nor out of one that an older version wrote.
    """

    records: RecordJournal
    directory: Path
    gate: SecretGate = field(factory=SecretGate)
    _version: Hashable = field(default=None, init=False)
    _replay: Replay = field(factory=Replay, init=False)
    _state: State = field(factory=State, init=False)
    _guard: ThreadLock = field(factory=partial(ThreadLock, "the journal of facts"), init=False)

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Hold the lock of writers. It may be nested in one thread."""
        is_nested = self._guard.is_mine
        with self._guard.hold():
            if is_nested:
                yield
            else:
                with locked(own_directory(self.directory.parent, self.directory.name)):
                    yield

    def state(self, known_at: datetime | None = None) -> State:
        """Return the present state, or the state known at a moment. Do not change it."""
        with self._guard.hold():
            self._refresh()
            return self._state if known_at is None else fold(self._replay.records.values(), known_at)

    def operations(self) -> Sequence[Mapping[str, Any]]:
        """Return every operation, oldest first."""
        with self._guard.hold():
            self._refresh()
            return list(self._replay.records.values())

    def broken(self) -> tuple[BrokenRecord, ...]:
        """Return the broken parts of the journal."""
        with self._guard.hold():
            self._refresh()
            return self._replay.broken

    def append(self, operations: Sequence[Mapping[str, Any]]) -> None:
        """Append operations, except known ones, without secrets. They are durable when this returns."""
        operations = self.gate.lines(operations)
        with self.turn():
            self._refresh()
            new = {record["id"]: record for record in operations if record["id"] not in self._replay.records}
            if not new:
                return
            version = self.records.append(list(new.values()))
            self._replay = Replay({**self._replay.records, **new}, self._replay.broken, self._replay.unfinished)
            if any(record["op"] == "undo" for record in new.values()):
                self._state = fold(self._replay.records.values())
            else:
                state = self._state.copy()
                for record in new.values():
                    state.apply(record)
                self._state = state
            self._version = version

    def renamed(self, record: Mapping[str, Any]) -> dict[str, Any]:
        """Return an operation with a unique id, because a person may do the same twice in one millisecond."""
        name = record["id"]
        while name in self._replay.records:
            name = make_id("o", name)
        return {**record, "id": name}

    def forget(self, ids: Sequence[str]) -> None:
        """Delete operations. Their bytes are deleted when this returns."""
        if ids:
            with self.turn():
                self.records.forget(ids)
                self._version = None

    def _refresh(self) -> None:
        version = self.records.version
        if version is None:
            self._replay, self._state, self._version = Replay(), State(), None
        elif version != self._version:
            replay = self.records.replay()
            self._replay = Replay(dict(self.gate.read(replay.records)), replay.broken, replay.unfinished)
            self._state = fold(self._replay.records.values())
            self._version = version
