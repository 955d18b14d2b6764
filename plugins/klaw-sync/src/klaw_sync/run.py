"""One run: stamp what has changed here, write it, read the others, merge, and change the journals of this machine."""

from __future__ import annotations

import json
import secrets
import socket
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from shlex import quote
from typing import Any, Literal

from attrs import define, field, frozen

from klaw_core import ConfigError, KlawError, NotFoundError, RecordError, StoreError, locked, own_directory
from klaw_journals import Traces, parse_json, parse_ts
from klaw_journals.traces import digest
from klaw_sync.desks import Body, Desk, desks, is_place
from klaw_sync.errors import SegmentError
from klaw_sync.keys import MemoryKey
from klaw_sync.merging import Conflict, Merged, is_alive, merge
from klaw_sync.remotes import MEMORY_FILE, Remote
from klaw_sync.segments import Segment, Writer, is_name
from klaw_sync.segments import read as read_segment
from klaw_sync.state import State
from klaw_sync.values import KINDS, Kind, Trace, Version, deletion, is_deletion

#: Raises RecordError unless a journal may have this record.
Check = Callable[[str, str, Mapping[str, Any]], object]
#: What is done with records that are missing here although nobody has forgotten them.
Missing = Literal["keep", "restore", "forget"]

_MAX_COVERED = 500
_MANY_SEGMENTS = 64


@define
class SyncReport:
    """What one run did. ``sent``, ``received``, ``forgotten`` and ``missing`` are numbers of records.

    ``changed`` names journals of this machine. ``conflicts`` are values that another one has replaced, ``waiting`` are
    files that are not complete yet, and ``problems`` are sentences.
    """

    sent: int = 0
    received: int = 0
    forgotten: int = 0
    changed: tuple[str, ...] = ()
    missing: int = 0
    conflicts: tuple[str, ...] = ()
    waiting: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()


@frozen
class Machine:
    """A machine that shares the memory. ``last`` is the number of its last segment, ``at`` its last moment."""

    id: str
    host: str
    last: int
    at: datetime | None
    is_own: bool = False


@define
class _Item:
    """A record of a journal of this machine."""

    kind: Kind
    place: str
    body: Body
    seen: frozenset[str]


@define(eq=False)
class Sync:
    """Synchronises one data directory. ``kinds``: the journals; ``plain`` writes segments without encryption.

    ``check`` raises RecordError for a record that its journal may not have. ``step`` is called with the name of each
    durable step, for tests.
    """

    root: Path
    check: Check = lambda _kind, _place, _body: None
    kinds: Sequence[str] = tuple(KINDS)
    plain: bool = False
    host: str = field(factory=socket.gethostname)
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    step: Callable[[str], object] = lambda _name: None
    traces: Traces = field(init=False)
    _report: SyncReport = field(factory=SyncReport, init=False)

    @traces.default
    def _make_traces(self) -> Traces:
        return Traces(self.root)

    @property
    def directory(self) -> Path:
        """The directory with the key and the state."""
        return own_directory(self.root, "sync")

    @property
    def key(self) -> MemoryKey:
        """The key of the memory. Raise NotFoundError if this machine has none."""
        found = MemoryKey.load(self.directory / "key")
        if found is None:
            raise NotFoundError(
                "this memory is not shared yet", hint="klaw sync init DIR; on other machines: klaw sync join DIR"
            )
        return found

    def init(self, remote: Remote) -> MemoryKey:
        """Make the key of a new memory, and mark the remote. Raise ConfigError if either has one already."""
        with locked(self.directory):
            if MemoryKey.load(self.directory / "key") is not None:
                raise ConfigError(["this memory is shared already"], hint="klaw sync code prints its join code")
            remote.fetch()
            if self._mark(remote) is not None:
                raise ConfigError(
                    [f"{remote.location} has a memory already"], hint=f"klaw sync join {quote(remote.location)}"
                )
            key = MemoryKey.new()
            key.save(self.directory / "key")
            self._put_mark(remote, key)
        return key

    def join(self, remote: Remote, code: str) -> MemoryKey:
        """Store the key in a join code. Raise RecordError if it is not that of the remote's memory."""
        key = MemoryKey.parse(code)
        with locked(self.directory):
            held = MemoryKey.load(self.directory / "key")
            if held is not None and held != key:
                raise ConfigError(
                    ["this memory is shared already, with another key"], hint=f"move {quote(str(self.directory))} away"
                )
            remote.fetch()
            self._require(remote, key, missing_ok=False)
            key.save(self.directory / "key")
        return key

    def run(self, remotes: Sequence[Remote], *, dry_run: bool = False, missing: Missing = "keep") -> SyncReport:
        """Synchronise with remotes. A remote that cannot be reached is a problem of the report.

        With ``dry_run`` nothing is written anywhere. ``missing``: what is done with records that are missing here
        although nobody has forgotten them. Raise NotFoundError, ConfigError, StoreError.
        """
        key = self.key
        self.traces = Traces(self.root)
        self._report = SyncReport()
        with locked(self.directory), State.open(self.directory / "state.db") as state:
            state.load_meta()
            reached = [remote for remote in remotes if self._reach(remote, key)]
            if not dry_run and missing == "keep" and self._is_idle(state, reached):
                self._report.missing = int(state.meta.get("missing", "0"))
                self._report.conflicts = tuple(json.loads(state.meta.get("conflicts", "[]")))
                return self._report
            state.load()
            _Run(self, state, key, reached, self._report, dry_run=dry_run, missing=missing).run()
        return self._report

    def machines(self) -> list[Machine]:
        """Return the machines that share the memory, this one first. Raise StoreError."""
        if not (self.directory / "state.db").exists():
            return []
        with State.open(self.directory / "state.db") as state:
            state.load_meta()
            own = state.meta.get("machine", "")
            found = [
                Machine(row["machine"], row["host"], row["last"], _moment_of(row["t"]))
                for row in state.machines()
                if row["machine"] != own
            ]
            return (
                [Machine(own, self.host, int(state.meta.get("segment", "0")), None, is_own=True), *found]
                if own
                else found
            )

    def conflicts(self) -> list[Conflict]:
        """Return the values that another one has replaced although its writer had not seen them. Raise StoreError."""
        if not (self.directory / "state.db").exists():
            return []
        with locked(self.directory), State.open(self.directory / "state.db") as state:
            state.load()
            return merge(state.versions.values(), state.traces).conflicts

    def examine(self, remote: Remote) -> Iterator[str]:
        """Yield what is wrong with a remote: it is not reachable, has another memory, or files that cannot be read."""
        try:
            self._require(remote, self.key, missing_ok=False)
            names = remote.names()
        except KlawError as error:
            yield error.message
            return
        for name in names:
            try:
                segment = read_segment(self.key, remote.get(name))
            except SegmentError as error:
                yield f"{name}: {error.message}"
            else:
                if segment.bad:
                    yield f"{name}: {segment.bad:,} lines are not valid"

    def _reach(self, remote: Remote, key: MemoryKey) -> bool:
        try:
            remote.fetch()
            self._require(remote, key, missing_ok=True)
        except KlawError as error:
            self._report.problems += (f"{remote.location}: {error.message}",)
            return False
        return True

    def _is_idle(self, state: State, remotes: Sequence[Remote]) -> bool:
        if not state.meta.get("machine") or state.meta.get("stamps") != self.stamps():
            return False
        known = all(set(remote.names()) <= state.segments(remote.location) for remote in remotes)
        return known and state.meta.get("complete", "") == ",".join(sorted(remote.location for remote in remotes))

    def stamps(self) -> str:
        """Return a text that changes whenever one of the journals, or the list of what was forgotten, does."""
        found = {f"{desk.kind.name}/{desk.place}": desk.stamp for desk in desks(self.root, self.kinds)}
        try:
            found["forgotten"] = str((self.directory / "forgotten.jsonl").stat().st_size)
        except OSError:
            found["forgotten"] = ""
        return digest(found)

    def _mark(self, remote: Remote) -> Mapping[str, Any] | None:
        try:
            return parse_json(remote.get(MEMORY_FILE))
        except SegmentError:
            return None
        except RecordError as error:
            raise ConfigError([f"{remote.location}: {MEMORY_FILE} is damaged: {error.message}"]) from error

    def _put_mark(self, remote: Remote, key: MemoryKey) -> None:
        mark = {"klaw": "memory", "v": 1, "memory": key.memory, "check": key.check}
        remote.put(MEMORY_FILE, (json.dumps(mark) + "\n").encode())
        remote.flush()

    def _require(self, remote: Remote, key: MemoryKey, *, missing_ok: bool) -> None:
        """Raise ConfigError unless a remote has this memory, with this key."""
        mark = self._mark(remote)
        if mark is None:
            if not missing_ok:
                raise ConfigError([f"{remote.location} has no memory"], hint="klaw sync init makes one")
            self._put_mark(remote, key)
        elif mark.get("memory") != key.memory or mark.get("check") != key.check:
            raise ConfigError(
                [f"{remote.location} belongs to another memory, or its key is another one"],
                hint="check the join code: klaw sync code",
            )


@define(eq=False)
class _Run:
    """The steps of a run. Each transaction of the state is followed by what it allows."""

    sync: Sync
    state: State
    key: MemoryKey
    remotes: Sequence[Remote]
    report: SyncReport
    dry_run: bool = False
    missing: Missing = "keep"
    _items: list[_Item] = field(factory=list)
    _lost: set[str] = field(factory=set)
    #: The versions that records would have had which something forgot that they had not seen.
    _doomed: dict[str, Version] = field(factory=dict)
    _sources: dict[tuple[str, str], list[_Item]] = field(factory=lambda: defaultdict(list))

    def run(self) -> None:
        is_new = self._identify()
        if is_new:  # what the remotes have already under the same content is not a new version
            self._look()
        before = self.sync.stamps()
        self._stamp(is_new=is_new)
        if self.dry_run:
            self._look(dry_run=True)
            return
        for remote in self.remotes:
            self._push(remote)
        self._look()
        self._apply()
        for remote in self.remotes:
            self._push(remote)  # what another remote has told
            self._compact(remote)
        self._finish(before)

    # -- identity
    def _identify(self) -> bool:
        """Take a new machine id if there is none, or if a copy of this data directory writes under it."""
        meta = self.state.meta
        is_new = "machine" not in meta
        own = meta.get("machine", "")
        for remote in self.remotes:
            written = self.state.segments(remote.location) | {name for name, _ in self.state.outbox(remote.location)}
            if any(name.startswith(f"{own}/") and is_name(name) and name not in written for name in remote.names()):
                own = ""
        if not own:
            meta["machine"], meta["segment"] = secrets.token_hex(8), "0"
            meta.setdefault("line", "0")
        if not self.dry_run:
            with self.state.commit():
                pass
        return is_new

    @property
    def _writer(self) -> Writer:
        return Writer(self.key, self.state.meta["machine"], self.sync.host, encrypt=not self.sync.plain)

    # -- step 1: stamp
    def _stamp(self, *, is_new: bool) -> None:
        """Give every change of the journals a version, and take over the traces of what was forgotten here."""
        state = self.state
        for desk in desks(self.sync.root, self.sync.kinds):
            self._scan(desk)
        # A trace is in the file before the bytes go here, and only after that if another machine has told it.
        told = [Trace(scope, name) for scope, name in self.sync.traces.read()]
        own = [trace for trace in told if trace.name not in state.done[trace.scope]]
        with self._transaction():
            state.add_traces(own, done=True)
            merged = merge(state.versions.values(), state.traces)
            live = self._live(merged)
            found = set()
            for item in self._items:
                key = item.kind.key(item.place, item.body)
                found.add(key)
                held = state.versions.get(state.here.get(key, ""))
                if held is not None and is_alive(held, state.traces) and self._is_same(held, item):
                    continue
                if known_as := live.get((item.kind.name, item.place, digest(item.body))):
                    state.here[key] = known_as
                    continue
                self._add(key, item, held, is_new=is_new)
            self._note_deletions(found)
            self._lost = self._find_missing(found)
            if self.missing != "keep" and not self.dry_run:
                self._decide_missing()
        self._step("stamped")

    def _scan(self, desk: Desk) -> None:
        """Read a place together with the traces, under the lock of those who forget something of it."""

        def look(held: list[Body]) -> list[Body]:
            names = self._trace_names()
            items = [_Item(desk.kind, desk.place, body, names) for body in held if desk.kind.is_synced(body)]
            self._items.extend(items)
            if desk.kind.name == "conversations":
                group = desk.place.partition("/")[0]
                for item in items:
                    self._sources[group, item.kind.id_of(item.body)].append(item)
            return held

        if desk.stamp:
            desk.settle(look)

    def _live(self, merged: Merged) -> dict[tuple[str, str, str], str]:
        """Return the versions that are shown now, by their content: an equal record is one of them."""
        live = {}
        for v in sorted(merged.shown, reverse=True):
            version = self.state.versions[v]
            if not KINDS[version.kind].register or merged.shown[v][0] == v:
                live[version.kind, version.place, digest(version.body)] = v
        return live

    @staticmethod
    def _is_same(held: Version, item: _Item) -> bool:
        return not item.kind.register or held.body == item.body

    def _add(self, key: str, item: _Item, held: Version | None, *, is_new: bool) -> None:
        """Make a version of a record, unless something forgot it that it had not seen."""
        state, kind = self.state, item.kind
        own = kind.scopes(self.sync.traces, item.place, item.body)
        over = [held] if held is not None and kind.register and is_alive(held, state.traces) else []
        seen = {name for scope in own for name in state.done.get(scope, ()) if name in item.seen}
        derived = self._derived(item)
        for version in (*over, *derived):
            seen |= version.seen
        scopes = dict.fromkeys((*own, *(scope for version in derived for scope in version.scopes)))
        line = int(state.meta["line"]) + 1
        version = Version(
            *(secrets.token_hex(8), kind.name, item.place, state.meta["machine"], line),
            *(self._moment(item, is_new=is_new), tuple(scopes), frozenset(seen)),
            *(tuple(version.v for version in over), dict(item.body)),
        )
        if not is_alive(version, state.traces):
            self._doomed[key] = version  # it goes, and what is derived from it
            return
        state.meta["line"] = str(line)
        state.put(version)
        state.here[key] = version.v
        self.report.sent += 1

    _read: tuple[int, frozenset[str]] = (-1, frozenset())

    def _trace_names(self) -> frozenset[str]:
        """Return the names of the traces in the file of this machine; it only grows."""
        try:
            size = (self.sync.directory / "forgotten.jsonl").stat().st_size
        except OSError:
            size = 0
        if size != self._read[0]:
            self._read = size, frozenset(name for _, name in self.sync.traces.read())
        return self._read[1]

    def _derived(self, item: _Item) -> list[Version]:
        """Return the versions that a record is derived from: the message that a fact quotes, or a summary covers."""
        body = item.body
        if item.kind.name == "facts":
            quotes = body.get("quotes")
            quoted = (
                {(str(one.get("chat")), str(one.get("message"))) for one in quotes}
                if isinstance(quotes, list) and _is_list(quotes)
                else set()
            )
            sources: Sequence[_Item | None] = [self._source(*one) for one in quoted] if len(quoted) == 1 else []
        elif item.kind.name == "summaries":
            sources = self._covered(item)
        else:
            return []
        keys = [source.kind.key(source.place, source.body) for source in sources if source is not None]
        found = [self._doomed.get(key) or self.state.versions.get(self.state.here.get(key, "")) for key in keys]
        return [version for version in found if version is not None]

    def _source(self, group: str, name: str) -> _Item | None:
        found = self._sources.get((group, name)) or self._sources.get((group, name.rpartition("~")[0]), [])
        return found[0] if found else None

    def _covered(self, item: _Item) -> Sequence[_Item | None]:
        group = item.place.partition("/")[0]
        said = [one for one in self._items if one.kind.name == "conversations" and one.place.startswith(f"{group}/")]
        names = [one.kind.id_of(one.body) for one in said]
        first, last = (item.body.get(name) for name in ("from_message_id", "to_message_id"))
        if first is None and last is None:
            return []
        start = names.index(first) if first in names else 0
        end = names.index(last) if last in names else len(names)
        return [*said[start : end + 1]][:_MAX_COVERED]

    def _moment(self, item: _Item, *, is_new: bool) -> int:
        """Return when a record was written: later than what it replaces, whatever the clock says."""
        told = _milliseconds(item.body.get("ts") or item.body.get("created_at"))
        if item.kind.form == "log" or item.kind.name == "saved":
            return told or self._now()
        name = self._thing(item.kind, item.body)
        if item.kind.register and is_new:
            moment = told or 1
        else:
            moment = max(self._now() if item.kind.register else told or self._now(), self._latest.get(name, 0) + 1)
        self._latest[name] = max(moment, self._latest.get(name, 0))
        return moment

    @staticmethod
    def _thing(kind: Kind, body: Mapping[str, Any]) -> tuple[str, str]:
        """Return what a record is written about: later writes about it have later moments."""
        return kind.name, str(body.get("fact") or body.get("id")) if kind.name == "facts" else kind.id_of(body)

    @cached_property
    def _latest(self) -> dict[tuple[str, str], int]:
        latest: dict[tuple[str, str], int] = {}
        for version in self.state.versions.values():
            if version.kind in KINDS and version.body is not None:
                name = self._thing(KINDS[version.kind], version.body)
                latest[name] = max(latest.get(name, 0), version.t)
        return latest

    def _now(self) -> int:
        return int(self.sync.now().timestamp() * 1000)

    def _note_deletions(self, found: set[str]) -> None:
        """Make versions of the deletions of keys of core memory; a file that is missing deletes nothing."""
        state, kind = self.state, KINDS["core_memory"]
        if not Desk(self.sync.root, kind).stamp or kind.name not in self.sync.kinds:
            return
        for key, v in list(state.here.items()):
            held = state.versions.get(v)
            if held is None or held.kind != kind.name or key in found or held.body is None or is_deletion(held.body):
                continue
            if not is_alive(held, state.traces):
                continue
            body = deletion(str(held.body.get("section")), str(held.body.get("key")))
            self._add(key, _Item(kind, "", body, self._trace_names()), held, is_new=False)

    def _find_missing(self, found: set[str]) -> set[str]:
        """Return the versions that a journal had, and has lost without anybody having forgotten them."""
        state, gone = self.state, set()
        for key, v in state.here.items():
            version = state.versions.get(v)
            if version is None or key in found or version.kind not in self.sync.kinds:
                continue
            if version.body is not None and not is_deletion(version.body) and is_alive(version, state.traces):
                gone.add(v)
        return gone

    def _decide_missing(self) -> None:
        """Bring the missing records back, or forget them everywhere."""
        state = self.state
        if self.missing == "forget":
            gone = [Trace(state.versions[v].scopes[0], secrets.token_hex(8)) for v in sorted(self._lost)]
            self.sync.traces.add((trace.scope, trace.name) for trace in gone)
            state.add_traces(gone, done=True)
        state.here = {key: v for key, v in state.here.items() if v not in self._lost}
        self._lost = set()

    # -- step 2: push
    def _push(self, remote: Remote) -> None:
        """Write to a remote what it does not have: first into the outbox, then there."""
        state = self.state
        carried = state.carried(remote.location)
        private = {kind.name for kind in KINDS.values() if kind.private} if self.sync.plain else set()
        versions = [one for one in state.versions.values() if one.v not in carried and one.kind not in private]
        traces = [Trace(scope, name) for scope, names in state.traces.items() for name in names]
        lines = [trace.line() for trace in traces if f"{trace.name}{trace.scope}" not in carried]
        lines += [one.line() for one in sorted(versions, key=lambda one: (one.machine, one.number, one.v))]
        if lines:
            with state.commit():
                for name, data in self._packed(lines):
                    self._enqueue(remote, name, data)
        self._step("outbox")
        self._send(remote)

    def _packed(self, lines: Iterable[Mapping[str, Any]], covers: Sequence[str] = ()) -> list[tuple[str, bytes]]:
        number = int(self.state.meta["segment"]) + 1
        made = self._writer.pack(number, lines, covers)
        self.state.meta["segment"] = str(number + len(made) - 1)
        return made

    def _enqueue(self, remote: Remote, name: str, data: bytes) -> None:
        segment = read_segment(self.key, data)
        self.state.add_segment(remote.location, name, _contents(segment))
        self.state.database.execute("INSERT OR REPLACE INTO outbox VALUES (?, ?, ?)", (remote.location, name, data))

    def _send(self, remote: Remote) -> None:
        waiting = self.state.outbox(remote.location)
        try:
            for name, data in waiting:
                remote.put(name, data)
            if waiting:
                remote.flush()
        except KlawError as error:
            self._problem(remote, error)
            return
        self._step("pushed")
        for name, _ in waiting:
            self.state.sent(remote.location, name)

    def _problem(self, remote: Remote, error: KlawError) -> None:
        told = f"{remote.location}: {error.message}"
        if told not in self.report.problems:
            self.report.problems += (told,)

    # -- step 3: look
    def _look(self, *, dry_run: bool = False) -> None:
        """Read the segments of others that have not been read yet."""
        for remote in self.remotes:
            known = self.state.segments(remote.location)
            try:
                new = [name for name in remote.names() if name not in known]
            except KlawError as error:
                self._problem(remote, error)
                continue
            found = [segment for name in new if (segment := self._get(remote, name)) is not None]
            with self._transaction():
                for name, read in found:
                    self._take(remote, name, read)
        if not dry_run:
            self._step("looked")

    def _get(self, remote: Remote, name: str) -> tuple[str, Segment] | None:
        try:
            return name, read_segment(self.key, remote.get(name))
        except SegmentError as error:  # half of it, or not ours
            told = f"{remote.location}/{name}: {error.message}"
            self.report.waiting += () if told in self.report.waiting else (told,)
            return None

    def _take(self, remote: Remote, name: str, segment: Segment) -> None:
        """Add what a segment has. A copy under another name is read like the segment, and packed away later."""
        state = self.state
        state.add_segment(remote.location, name, _contents(segment))
        if name != segment.name:
            copies = f"copies {remote.location}"
            state.meta[copies] = json.dumps([*json.loads(state.meta.get(copies, "[]")), name])
        latest = max((version.t for version in segment.versions if version.machine == segment.machine), default=0)
        state.see_machine(remote.location, segment.machine, segment.host, segment.number, latest)
        state.add_traces(segment.traces, done=False)
        for version in segment.versions:
            self._take_version(version)
        if segment.bad:
            self.report.problems += (f"{remote.location}/{name}: {segment.bad:,} lines are not valid",)

    def _take_version(self, version: Version) -> None:
        state = self.state
        held = state.versions.get(version.v)
        if held is not None:
            is_other = held.body is not None and version.body is not None and held.body != version.body
            if not is_other or digest(held.body) <= digest(version.body):
                return  # one version never stands for two texts, whoever says so
        version.is_bad = version.body is not None and not self._is_valid(version)
        self.report.received += version.body is not None and held is None
        state.put(version)

    def _is_valid(self, version: Version) -> bool:
        """Return whether a record from another machine is one that an import would take."""
        kind, body = KINDS.get(version.kind), version.body or {}
        if kind is None:
            return True  # carried, for machines that know it
        try:
            if not is_place(kind, version.place) or not kind.is_synced(body):
                raise RecordError("it names another place")
            if not set(kind.scopes(self.sync.traces, version.place, body)) <= set(version.scopes):
                raise RecordError("nobody could forget it")
            if not is_deletion(body):
                self.sync.check(kind.name, version.place, body)
            elif kind.form != "text" or not all(isinstance(body["of"].get(name), str) for name in ("section", "key")):
                raise RecordError("only a key of core memory can be deleted")
        except KlawError as error:
            self.report.problems += (
                f"a record of {version.kind} from {version.machine} was left out: {error.message}",
            )
            return False
        return True

    # -- step 4 and 5: apply
    def _apply(self) -> None:
        """Make the journals show what all versions say; then forget the bodies that are not needed any more."""
        state = self.state
        merged = merge(state.versions.values(), state.traces)
        self._note_arrived(merged)
        places = {
            (desk.kind.name, desk.place) for desk in desks(self.sync.root, self.sync.kinds)
        } | merged.places.keys()
        changed = set()
        for name, place in sorted(places):
            if name in self.sync.kinds and self._settle(Desk(self.sync.root, KINDS[name], place), merged):
                changed.add(name)
        self.report.changed = tuple(sorted(changed))
        self._step("applied")
        others = [Trace(scope, name) for scope, names in state.traces.items() for name in names - state.done[scope]]
        own = self._trace_names()
        if new := [(trace.scope, trace.name) for trace in others if trace.name not in own]:
            self.sync.traces.add(new)
        with state.commit():
            state.add_traces(others, done=True)
            self._point(merged)
            self._drop_bodies(merged)
        self._step("done")
        self.report.conflicts = tuple(map(_told, merged.conflicts))
        self.report.missing = len(self._lost)

    def _note_arrived(self, merged: Merged) -> None:
        """Write down which messages another machine wrote, before they are here: it reads them for facts."""
        if "conversations" not in self.sync.kinds:
            return
        state, kind = self.state, KINDS["conversations"]
        said = [state.versions[v] for v in merged.shown if state.versions[v].kind == kind.name]
        foreign = {
            self.sync.traces.scope(kind.name, version.place.partition("/")[0], digest(version.body))
            for version in said
            if kind.key(version.place, version.body or {}) not in state.here
        }
        if foreign:
            self.sync.traces.add_arrived(sorted(foreign))

    def _settle(self, desk: Desk, merged: Merged) -> bool:
        wanted = merged.places.get((desk.kind.name, desk.place), [])
        if not wanted and not desk.stamp:
            return False
        plan = _Plan(self, desk, merged, wanted)
        return desk.settle(plan.ordered if desk.kind.ordered else plan.unordered)

    def _point(self, merged: Merged) -> None:
        """Note which version each record of the journals is now."""
        state, hidden = self.state, self._hidden(merged)
        kept = {key: v for key, v in state.here.items() if v in self._lost}
        for (name, place), rows in merged.places.items():
            if name in self.sync.kinds:
                kept |= {KINDS[name].key(place, body): v for v, body in rows if v not in hidden}
        for (name, _), heads in merged.heads.items():
            if is_deletion(heads[-1].body or {}) and name in self.sync.kinds:
                kept[KINDS[name].key("", heads[-1].body or {})] = heads[-1].v
        for key, v in state.here.items():  # a value that was changed during this run replaces what it was before
            if v in state.versions and KINDS[state.versions[v].kind].register and v in self._changed_meanwhile:
                kept[key] = v
        state.here = kept

    _changed_meanwhile: set[str] = field(factory=set)

    def _hidden(self, merged: Merged) -> set[str]:
        """Return the records that are not written back because they were lost here without being forgotten."""
        return {merged.shown[v][0] for v in self._lost if v in merged.shown}

    def _drop_bodies(self, merged: Merged) -> None:
        """Drop the texts of versions that were forgotten or replaced."""
        state = self.state
        over = {name for version in state.versions.values() for name in version.over}
        kept = self._changed_meanwhile
        for version in list(state.versions.values()):
            is_needed = version.v in merged.shown or version.v in kept or version.kind not in KINDS or version.is_bad
            if version.body is not None and (
                not is_alive(version, state.traces) or (version.v in over and not is_needed)
            ):
                self.report.forgotten += version.v not in over
                version.body, version.place = None, ""
                state.put(version)

    # -- step 7: compaction
    def _compact(self, remote: Remote) -> None:
        """Write the segments that hold forgotten or replaced texts again without them, and delete the old ones."""
        state = self.state
        try:
            here = set(remote.names())
            copies = set(json.loads(state.meta.get(f"copies {remote.location}", "[]")))
            read = state.segments(remote.location)
            old = ((state.dirty(remote.location) | copies) & here) & read
            mine = sorted(name for name in here & read if name.startswith(f"{state.meta['machine']}/"))
            if len(mine) > _MANY_SEGMENTS:
                old |= set(mine)
            if old:
                self._repack(remote, sorted(old))
        except KlawError as error:
            self._problem(remote, error)

    def _repack(self, remote: Remote, old: Sequence[str]) -> None:
        state = self.state
        lines: dict[str, Mapping[str, Any]] = {}
        for name in old:
            segment = read_segment(self.key, remote.get(name))
            lines |= {f"{trace.name}{trace.scope}": trace.line() for trace in segment.traces}
            lines |= {digest(other): other for other in segment.others}
            lines |= {version.v: state.versions.get(version.v, version).line() for version in segment.versions}
        with state.commit():
            made = self._packed(lines.values(), old)
            for name, data in made:
                self._enqueue(remote, name, data)
        self._send(remote)
        self._step("packed")
        if any(remote.get(name) != data for name, data in made):
            raise StoreError("a new segment does not have the bytes that were written")
        for name in old:
            remote.delete(name)
        remote.flush()
        with state.commit():
            state.drop_segments(remote.location, old)
        self._step("compacted")

    def _finish(self, before: str) -> None:
        """Note what a next run compares, so that it need not read anything if nothing has changed."""
        meta = self.state.meta
        done = sorted(remote.location for remote in self.remotes)
        after = self.sync.stamps()
        meta["stamps"] = after if before == after else ""
        is_complete = not (self.report.problems or self.report.waiting)
        meta["complete"] = ",".join(done) if is_complete else "-"
        meta["missing"], meta["conflicts"] = str(self.report.missing), json.dumps(self.report.conflicts)
        with self.state.commit():
            pass

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        if self.dry_run:
            self.state.database.execute("BEGIN")
            yield
            self.state.database.execute("ROLLBACK")
        else:
            with self.state.commit():
                yield

    def _step(self, name: str) -> None:
        self.sync.step(name)


@frozen(eq=False)
class _Plan:
    """What one place of a journal becomes. It is computed under the lock of the place's writers."""

    run: _Run
    desk: Desk
    merged: Merged
    wanted: Sequence[tuple[str, Body]]

    def ordered(self, held: list[Body]) -> list[Body]:
        """Return the records in the order of all machines, and then those that were added during this run."""
        wanted = self._wanted()
        kept = [body for body in held if not self.desk.kind.is_synced(body)]
        known, extra = [], []
        for body in held:
            if self.desk.kind.is_synced(body):
                version = self._version(body)
                if version is None:
                    extra += [] if self._is_doomed(body) or body in wanted else [body]
                elif version.v in self.merged.shown:
                    known.append(body)
        if known == wanted and len(known) + len(kept) + len(extra) == len(held):
            return held
        if wanted[: len(known)] == known and len(known) + len(kept) + len(extra) == len(held) and not extra:
            return [*held, *wanted[len(known) :]]
        return [*wanted, *kept, *extra]

    def unordered(self, held: list[Body]) -> list[Body]:
        """Return the records in their places, and the new ones after them."""
        wanted = {self._key(body): body for body in self._wanted()}
        out: list[Body] = []
        for body in held:
            version = self._version(body)
            if version is None or (self.desk.kind.register and version.body != body):
                if self._is_doomed(body) or self._key(body) in {self._key(one) for one in out}:
                    continue
                out.append(body)  # written during this run: the next one makes a version of it
                if version is not None:
                    self.run._changed_meanwhile.add(version.v)  # noqa: SLF001
                wanted.pop(self._key(body), None)
            elif version.v in self.merged.shown:
                new = wanted.pop(self._key(self.merged.shown[version.v][1]), None)
                out += [] if new is None else [new]
        return [*out, *wanted.values()]

    def _wanted(self) -> list[Body]:
        hidden = self.run._hidden(self.merged)  # noqa: SLF001
        return [body for v, body in self.wanted if v not in hidden]

    def _key(self, body: Body) -> str:
        return self.desk.kind.key(self.desk.place, body)

    def _version(self, body: Body) -> Version | None:
        state = self.run.state
        return state.versions.get(state.here.get(self._key(body), ""))

    def _is_doomed(self, body: Body) -> bool:
        """Return whether something was forgotten elsewhere that a record without a version had not seen."""
        state = self.run.state
        if self._key(body) in self.run._doomed:  # noqa: SLF001
            return True
        scopes = self.desk.kind.scopes(self.run.sync.traces, self.desk.place, body)
        return any(state.traces.get(scope, set()) - state.done.get(scope, set()) for scope in scopes)


def _contents(segment: Segment) -> Iterator[tuple[str, bool]]:
    yield from ((version.v, version.body is not None) for version in segment.versions)
    yield from ((f"{trace.name}{trace.scope}", False) for trace in segment.traces)


def _is_list(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, dict) for item in value)


def _milliseconds(value: object) -> int:
    try:
        return max(0, int(parse_ts(value).timestamp() * 1000))
    except (KlawError, TypeError, ValueError, OverflowError):
        return 0


def _moment_of(t: int) -> datetime | None:
    return datetime.fromtimestamp(t / 1000, UTC) if t else None


def _told(conflict: Conflict) -> str:
    name = conflict.id if conflict.kind == "core_memory" else f"{conflict.kind}/{conflict.id}"
    return f"{name}: {conflict.version.v}"
