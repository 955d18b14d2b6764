"""Synchronise one data directory with remotes: what is on a remote, and the order of the steps of a run."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from shlex import quote
from typing import Any

from attrs import define, evolve, field, frozen

from klaw_core import (
    ConfigError,
    KlawError,
    NotFoundError,
    RecordError,
    StoreError,
    StoreLockedError,
    locked,
    operations,
)
from klaw_journals import Traces, parse_json
from klaw_journals.timestamps import require_clock
from klaw_sync.applying import Applying
from klaw_sync.errors import SegmentError
from klaw_sync.exchange import Exchange
from klaw_sync.here import Here, Missing, Round, SyncReport
from klaw_sync.keys import MemoryKey
from klaw_sync.merging import Conflict, merge
from klaw_sync.remotes import MEMORY_FILE, NOT_A_FILE, Remote
from klaw_sync.segments import read as read_segment
from klaw_sync.stamping import Stamping
from klaw_sync.state import Due, State, gaps
from klaw_sync.values import Removal, Version

_WAIT_SECONDS = 1  # for another run, before what was indexed stays noted as due; the next run indexes it again


@frozen
class Machine:
    """A machine that shares the memory. ``last`` is the number of its last segment, ``at`` its last moment."""

    id: str
    host: str
    last: int
    at: datetime | None
    is_own: bool = False
    is_removed: bool = False


@operations
@define(eq=False)
class Sync(Here):
    """Synchronises one data directory."""

    #: What the last run left to :meth:`index`. It was read while no other run changed the journals.
    _due: Due = field(factory=Due, init=False)

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
            both = key if held is None else held.joined(key)
            if both is None:
                raise ConfigError(
                    ["this memory is shared already, with another key"], hint=f"move {quote(str(self.directory))} away"
                )
            remote.fetch()
            self._require(remote, key)
            both.save(self.directory / "key")
            with State.open(self.directory / "state.db") as state:
                state.load_meta()
                if state.meta.get("machine", "") in state.removed:
                    state.meta["machine"] = ""  # the next run takes a new id
                    with state.commit():
                        pass
        return both

    def remove(
        self,
        name: str,
        remotes: Sequence[Remote],
        *,
        then: Callable[[SyncReport], object] = lambda _report: None,
        new_key: bool = False,
    ) -> Machine:
        """Remove a machine by its id or host: what it writes from now on is not read. The next run tells the others.

        With ``new_key``, this machine writes with a new key from now on, which the others get by :meth:`join`.

        First synchronise with ``remotes``, so that everything that the machine has written counts, and call ``then``
        with the report. Return the machine. Raise StoreError, and remove nothing, if the run had a problem or a file of
        the machine cannot be read; also raise NotFoundError, RecordError if several have this name, ConfigError.
        """
        _ = self.key  # a memory that is not shared has no machines
        if not remotes:
            raise ConfigError(["no place to synchronise with first"], hint="klaw sync remove MACHINE DIR")
        report = self.run(remotes)
        then(report)
        told = f"machine {name!r} was not removed: "
        if report.problems:
            raise StoreError(told + report.problems[0], hint="klaw sync, until it has no problem; then try again")
        with locked(self.directory), State.open(self.directory / "state.db") as state:
            state.load_meta()
            machine = _named(self._machines(state), name)
            if machine.is_removed:
                if new_key:
                    self._renew()
                return machine
            for remote in remotes:
                remote.fetch()
                names = {each for each in remote.names() if each.startswith(f"{machine.id}/")}
                if unread := names - state.segments(remote.location):  # every machine would refuse these
                    raise StoreError(
                        f"{told}{remote.location}/{min(unread)} is new or not complete",
                        hint="klaw sync, until it reads the file; delete a file that cannot become complete",
                    )
            if new_key:  # first: what tells the others is written with it
                self._renew()
            state.meta["stamps"] = ""  # the next run has something to tell
            with state.commit():
                state.add_removals([Removal(machine.id, machine.last, secrets.token_hex(8))])
        return evolve(machine, is_removed=True)

    def _renew(self) -> None:
        self.key.renewed().save(self.directory / "key")

    def run(self, remotes: Sequence[Remote], *, dry_run: bool = False, missing: Missing = "keep") -> SyncReport:
        """Synchronise with remotes. A remote that cannot be reached is a problem of the report.

        With ``dry_run`` nothing is written to a remote or a journal. ``missing``: what is done with records that are
        missing here although nobody has forgotten them. Raise NotFoundError, ConfigError, StoreError.
        """
        require_clock()
        key = self.key
        self.traces = Traces(self.root)
        report = SyncReport()
        with locked(self.directory), State.open(self.directory / "state.db") as state:
            state.load_meta()
            self._due = state.due
            _require_member(state)
            reached = [one for one in remotes if self._reach(one, key, state, report, dry_run=dry_run)]
            if not dry_run and missing == "keep" and self._is_idle(state, reached):
                report.missing = int(state.meta.get("missing", "0"))
                report.conflicts = tuple(json.loads(state.meta.get("conflicts", "[]")))
                report.gaps = tuple(json.loads(state.meta.get("gaps", "[]")))
                return report
            state.load()
            _run(Round(self, state, key, reached, report, dry_run, missing))
            self._due = state.due
        return report

    def index(self, update: Callable[[str], object]) -> None:
        """Call ``update`` with each journal whose index may lack what the last run, or one before it, has changed.

        Whatever interrupts this, or a run before it, the call after the next run does it again. Raise StoreError.
        """
        due = self._due
        if not due.kinds:
            return
        for name in sorted(due.kinds):
            update(name)
        with (
            suppress(StoreLockedError),
            locked(self.directory, limit_seconds=_WAIT_SECONDS),
            State.open(self.directory / "state.db") as state,
        ):
            state.load_meta()
            if state.due == due:  # otherwise another run has changed something since
                state.due = Due()
                with state.commit():
                    pass

    def erase(self, *, limit_seconds: float | None = None) -> None:
        """Erase the texts that this machine has forgotten from ``state.db``; other machines learn of it from a run.

        Wait at most so long for a run, which does the same at its end. Raise StoreLockedError after that, StoreError.
        """
        if not (self.directory / "state.db").exists():
            return
        with locked(self.directory, limit_seconds=limit_seconds), State.open(self.directory / "state.db") as state:
            state.load_meta()
            state.erase(self.forgotten_size, self.traces.read)

    def machines(self) -> list[Machine]:
        """Return the machines that share the memory, this one first. Raise StoreError."""
        if not (self.directory / "state.db").exists():
            return []
        with State.open(self.directory / "state.db") as state:
            state.load_meta()
            return self._machines(state)

    def _machines(self, state: State) -> list[Machine]:
        own = state.meta.get("machine", "")
        found = [
            Machine(
                *(row["machine"], row["host"], row["last"], _moment_of(row["t"])),
                is_removed=row["machine"] in state.removed,
            )
            for row in state.machines()
            if row["machine"] != own
        ]
        if not own:
            return found
        return [Machine(own, self.host, int(state.meta.get("segment", "0")), None, is_own=True), *found]

    def gaps(self) -> list[str]:
        """Return what tells of records that have not arrived at the last run. Raise StoreError."""
        if not (self.directory / "state.db").exists():
            return []
        with State.open(self.directory / "state.db") as state:
            state.load_meta()
            return list(json.loads(state.meta.get("gaps", "[]")))

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
            yield from self._examined(remote)
        except KlawError as error:  # the others are examined nevertheless
            yield error.message

    def _examined(self, remote: Remote) -> Iterator[str]:
        key = self.key
        remote.fetch_all()
        self._require(remote, key)
        names = remote.names()
        unnumbered = set[str]()
        if (self.directory / "state.db").exists():
            with State.open(self.directory / "state.db") as state:
                state.load_meta()
                refused = state.refused(names) - state.segments(remote.location)
                unnumbered = state.unnumbered
                if refused:
                    state.load()
                lost = [name for name in sorted(refused) if not self._has_all(state, remote, name)]
            for name in lost:
                yield f"{name}: a machine wrote it after it was removed; it is not read until that machine joins again"
            names = [name for name in names if name not in refused]
        yield from (f"{name}: {NOT_A_FILE}" for name in remote.unusable())
        yield from self._read_all(remote, names, unnumbered)

    def _has_all(self, state: State, remote: Remote, name: str) -> bool:
        """Return whether this machine has the versions of a segment, which a machine that joined again has sent."""
        try:
            return {version.v for version in read_segment(self.key, remote.get(name)).versions} <= state.versions.keys()
        except SegmentError:
            return False

    def _read_all(self, remote: Remote, names: Sequence[str], unnumbered: set[str]) -> Iterator[str]:
        versions, hosts = list[Version](), dict[str, str]()
        for name in names:
            try:
                segment = read_segment(self.key, remote.get(name))
            except SegmentError as error:
                yield f"{name}: {error.message}"
            else:
                versions += (evolve(version, body=None) for version in segment.versions)  # not all texts at once
                hosts[segment.machine] = segment.host
                if segment.is_plain:
                    unnumbered.add(segment.machine)
                if segment.bad:
                    yield f"{name}: {segment.bad:,} lines are not valid"
        for machine, count in ({} if self.plain else gaps(versions, unnumbered)).items():
            yield _gap(hosts.get(machine) or machine, count)

    def _reach(self, remote: Remote, key: MemoryKey, state: State, report: SyncReport, *, dry_run: bool) -> bool:
        """Return whether a remote can be used. A new one is marked, unless this is a dry run."""
        try:
            remote.fetch()
            remote.names()  # one that cannot be listed is not used at all
            if self._is_marked(remote, key):
                return True
            if state.segments(remote.location):  # the mount point of a disk, or an account without its files
                told = "is missing, but this machine has synchronised here before: mount the disk, copy the file from"
                ways = "another machine, or choose a new place, which gets everything; nothing was written"
                raise ConfigError([f"{MEMORY_FILE} {told} {ways}"])
            if not dry_run:
                self._put_mark(remote, key)
        except KlawError as error:
            report.add_problem(remote, error)
            return False
        return True

    def _is_idle(self, state: State, remotes: Sequence[Remote]) -> bool:
        if not state.meta.get("machine") or state.needs_scrubbing or state.meta.get("stamps") != self.stamps():
            return False
        for remote in remotes:
            names = set(remote.names())
            names -= state.refused(names)
            if not names <= state.segments(remote.location) or self._lacks(state, remote.location, names):
                return False
        return state.meta.get("complete", "") == ",".join(sorted(remote.location for remote in remotes))

    @staticmethod
    def _lacks(state: State, location: str, names: set[str]) -> bool:
        """Return whether a remote has lost something that this machine had written."""
        gone = state.vanished(location, names)
        return bool(gone) and state.carried(location) != state.carried(location, gone)

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

    def _require(self, remote: Remote, key: MemoryKey) -> None:
        """Raise ConfigError unless a remote has this memory, with this key."""
        if not self._is_marked(remote, key):
            raise ConfigError([f"{remote.location} has no memory"], hint="klaw sync init makes one")

    def _is_marked(self, remote: Remote, key: MemoryKey) -> bool:
        """Return whether a remote has this memory, or none. Raise ConfigError if it has another one, or another key."""
        mark = self._mark(remote)
        if mark is None:
            return False
        if mark.get("memory") != key.memory or mark.get("check") != key.check:
            raise ConfigError(
                [f"{remote.location} belongs to another memory, or its key is another one"],
                hint="check the join code: klaw sync code",
            )
        return True


def _named(machines: Sequence[Machine], name: str) -> Machine:
    """Return the machine of an id or host that can be removed. Raise NotFoundError, RecordError."""
    found = [one for one in machines if name in {one.id, one.host}]
    if not found:
        raise NotFoundError(f"no machine {name!r} shares this memory", hint="klaw sync status lists them")
    if len(found) > 1:
        raise RecordError(f"{len(found)} machines have the name {name!r}", hint="name it by its id")
    if found[0].is_own:
        raise RecordError("this machine cannot remove itself", hint="do it on another machine")
    return found[0]


def _run(round_: Round) -> None:
    """Do the steps of a run. Each transaction of the state is followed by what it allows."""
    exchange = Exchange(round_)
    is_new = exchange.identify()
    if is_new:  # what the remotes have already under the same content is not a new version
        exchange.look()
    before = round_.here.stamps()
    Stamping(round_, is_new).stamp()
    if round_.dry_run:
        exchange.look()
        return
    for remote in round_.remotes:
        exchange.push(remote)
    exchange.look()
    _require_member(round_.state)
    Applying(round_).apply()
    for remote in round_.remotes:
        if exchange.push(remote, is_last=True):  # what another remote has told, and what has vanished
            exchange.compact(remote)
    _finish(round_, before)


class RemovedError(ConfigError):
    """Another machine has removed this one."""


def _require_member(state: State) -> None:
    """Raise RemovedError if another machine has removed this one."""
    if state.meta.get("machine", "") in state.removed:
        told = "another machine has removed this one from the memory; nothing was changed here"
        raise RemovedError([told], hint="to take part again: klaw sync join DIR, with the join code")


def _finish(round_: Round, before: str) -> None:
    """Note what a next run compares, so that it need not read anything if nothing has changed."""
    meta, report = round_.state.meta, round_.report
    done = sorted(remote.location for remote in round_.remotes)
    after = round_.here.stamps()
    meta["stamps"] = after if before == after else ""
    hosts = {row["machine"]: row["host"] for row in round_.state.machines()}
    found = {} if round_.here.plain else gaps(round_.state.versions.values(), round_.state.unnumbered)
    report.gaps = tuple(_gap(hosts.get(machine) or machine, count) for machine, count in found.items())
    is_complete = not (report.problems or report.waiting)
    meta["complete"] = ",".join(done) if is_complete else "-"
    meta["gaps"] = json.dumps(report.gaps)
    meta["missing"], meta["conflicts"] = str(report.missing), json.dumps(report.conflicts)
    with round_.state.commit():
        pass
    round_.state.erase(round_.here.forgotten_size, round_.here.traces.read)  # also what was forgotten meanwhile


def _gap(host: str, count: int) -> str:
    """Return what tells of records that have not arrived."""
    are = "1 record of {} has" if count == 1 else f"{count:,} records of {{}} have"
    return f"{are.format(host)} not arrived: a file is missing, or is still on its way"


def _moment_of(t: int) -> datetime | None:
    # A machine's first records of which nobody knows the moment have the first one.
    return datetime.fromtimestamp(t / 1000, UTC) if t > 1 else None
