"""Exchange segments with remotes: write what they lack, read what is new there, and pack what was forgotten away."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from attrs import define

from klaw_core import KlawError, RecordError, StoreError
from klaw_journals.traces import digest
from klaw_sync.desks import is_place
from klaw_sync.errors import SegmentError
from klaw_sync.here import NEW, Round
from klaw_sync.remotes import NOT_A_FILE, Remote
from klaw_sync.segments import Segment, Writer, is_name, read
from klaw_sync.values import KINDS, Trace, Version, is_deletion

_MANY_SEGMENTS = 64


@define(eq=False)
class Exchange:
    """The remotes of one run."""

    round: Round

    def identify(self) -> bool:
        """Take a new machine id if there is none, or if a copy of this data directory writes under it.

        Return whether this machine has made no version before.
        """
        state, meta = self.round.state, self.round.state.meta
        if "machine" not in meta:
            meta[NEW] = "1"
        own = meta.get("machine", "")
        for remote in self.round.remotes:
            written = state.segments(remote.location) | {name for name, _ in state.outbox(remote.location)}
            if any(name.startswith(f"{own}/") and is_name(name) and name not in written for name in remote.names()):
                own = ""
        if not own:
            meta["machine"], meta["segment"] = secrets.token_hex(8), "0"
            meta.setdefault("line", "0")
        if not self.round.dry_run:
            with state.commit():
                pass
        return bool(meta.get(NEW))

    # -- write
    def push(self, remote: Remote, *, is_last: bool = False) -> bool:
        """Write to a remote what it does not have: first into the outbox, then there. Return whether it has all now.

        The last time, what was in segments of this machine that have vanished is sent again: not before the others'
        segments were read, because one of them may have it.
        """
        state = self.round.state
        try:
            gone = state.vanished(remote.location, remote.names()) if is_last else set()
            gone |= state.refused(state.segments(remote.location))  # nobody else reads what these have
        except KlawError as error:
            self.round.report.add_problem(remote, error)
            return False
        carried = state.carried(remote.location, gone)
        versions = [one for one in state.versions.values() if one.v not in carried]
        if self.round.here.plain:
            versions = self._without_private(versions)
        traces = [Trace(scope, name) for scope, names in state.traces.items() for name in names]
        lines = [trace.line() for trace in traces if trace.item not in carried]
        lines += [one.line() for one in sorted(state.removals, key=lambda one: one.item) if one.item not in carried]
        lines += [one.line() for one in sorted(versions, key=lambda one: (one.machine, one.number, one.v))]
        if lines:
            with state.commit():
                for name, data in self._packed(lines):
                    self._enqueue(remote, name, data)
        self.round.here.step("outbox")
        return self._send(remote, frozenset(gone))

    def _without_private(self, versions: Iterable[Version]) -> list[Version]:
        """Return the versions that may be in a readable file, and count those with a secret, which nobody expects."""
        report, here = self.round.report, self.round.here
        told = [one for one in versions if one.kind not in KINDS or not KINDS[one.kind].private]
        open_ = [one for one in told if one.body is None or not here.has_secret(one.body)]
        report.withheld = max(report.withheld, len(told) - len(open_))
        return open_

    def _packed(
        self, lines: Iterable[Mapping[str, Any]], covers: Sequence[str] = (), *, encrypt: bool = False
    ) -> list[tuple[str, bytes]]:
        here, meta = self.round.here, self.round.state.meta
        number = int(meta["segment"]) + 1
        writer = Writer(self.round.key, meta["machine"], here.host, encrypt=encrypt or not here.plain)
        made = writer.pack(number, lines, covers)
        meta["segment"] = str(number + len(made) - 1)
        return made

    def _enqueue(self, remote: Remote, name: str, data: bytes) -> None:
        self.round.state.add_segment(remote.location, name, _contents(read(self.round.key, data)))
        self.round.state.enqueue(remote.location, name, data)

    def _send(self, remote: Remote, gone: frozenset[str] = frozenset()) -> bool:
        """Write what waits; return whether the remote has it now. Nothing may be deleted there if it has not.

        Count the records that the remote had in no other segment but those that are gone.
        """
        state = self.round.state
        waiting = state.outbox(remote.location)
        try:
            for name, data in waiting:
                remote.put(name, data)
            if waiting:
                remote.flush()
        except KlawError as error:
            self.round.report.add_problem(remote, error)
            return False
        self.round.here.step("pushed")
        names = {name for name, _ in waiting}
        if names:
            before = state.carried(remote.location, names | gone)
            self.round.sent |= state.carried_whole(remote.location, names) - before
            self.round.report.sent = len(self.round.sent)
        for name, _ in waiting:
            state.sent(remote.location, name)
        return True

    # -- read
    def look(self) -> None:
        """Read the segments of others that have not been read yet."""
        for remote in self.round.remotes:
            known = self.round.state.segments(remote.location)
            try:
                names = remote.names()
                new = [name for name in names if name not in known | self.round.state.refused(names)]
                found = [(name, segment) for name in new if (segment := self._get(remote, name)) is not None]
                for name in remote.unusable():
                    self._wait_for(f"{remote.location}/{name}: {NOT_A_FILE}")
            except KlawError as error:
                self.round.report.add_problem(remote, error)
                continue
            with self.round.transaction():
                for _, segment in found:  # first, whatever the order of names: the same files have the same result
                    self.round.state.add_removals(segment.removals)
                for name, segment in found:
                    if not self.round.state.refused([segment.name]):
                        self._take(remote, name, segment)
        self.round.here.step("looked")

    def _get(self, remote: Remote, name: str) -> Segment | None:
        try:
            return read(self.round.key, remote.get(name))
        except SegmentError as error:  # half of it, or not ours
            self._wait_for(f"{remote.location}/{name}: {error.message}")
            return None

    def _wait_for(self, told: str) -> None:
        """Report what cannot be read yet, once."""
        report = self.round.report
        report.waiting += () if told in report.waiting else (told,)

    def _take(self, remote: Remote, name: str, segment: Segment) -> None:
        """Add what a segment has. A copy under another name is read like the segment, and packed away later."""
        state = self.round.state
        state.add_segment(remote.location, name, _contents(segment))
        if name != segment.name:
            copies = f"copies {remote.location}"
            state.meta[copies] = json.dumps([*json.loads(state.meta.get(copies, "[]")), name])
        if segment.is_plain:
            state.note_plain(segment.machine)
        latest = max((version.t for version in segment.versions if version.machine == segment.machine), default=0)
        state.see_machine(remote.location, segment.machine, segment.host, segment.number, latest)
        state.add_traces(segment.traces, done=False)
        for version in segment.versions:
            self._take_version(version)
        if segment.bad:
            self.round.report.problems += (f"{remote.location}/{name}: {segment.bad:,} lines are not valid",)

    def _take_version(self, version: Version) -> None:
        state = self.round.state
        held = state.versions.get(version.v)
        if held is not None:
            is_other = held.body is not None and version.body is not None and held.body != version.body
            if not is_other or digest(held.body) <= digest(version.body):
                return  # one version never stands for two texts, whoever says so
        version.is_bad = version.body is not None and not self._is_valid(version)
        self.round.report.received += version.body is not None and held is None
        state.put(version)

    def _is_valid(self, version: Version) -> bool:
        """Return whether a record from another machine is one that an import would take."""
        kind, body, here = KINDS.get(version.kind), version.body or {}, self.round.here
        if kind is None:
            return True  # carried, for machines that know it
        try:
            if not is_place(kind, version.place) or not kind.is_synced(body):
                raise RecordError("it names another place")
            if not set(kind.scopes(here.traces, version.place, body)) <= set(version.scopes):
                raise RecordError("nobody could forget it")
            if not is_deletion(body):
                here.check(kind.name, version.place, body)
            elif not kind.has_deletions or not all(
                isinstance(body["of"].get(name), str) for name in ("section", "key")
            ):
                raise RecordError("only a key of core memory can be deleted")
        except KlawError as error:
            self.round.report.problems += (
                f"a record of {version.kind} from {version.machine} was left out: {error.message}",
            )
            return False
        return True

    # -- compaction
    def compact(self, remote: Remote) -> None:
        """Write the segments that hold forgotten or replaced texts again without them, and delete the old ones."""
        state = self.round.state
        try:
            here = set(remote.names())
            copies = set(json.loads(state.meta.get(f"copies {remote.location}", "[]")))
            known = state.segments(remote.location)
            old = ((state.dirty(remote.location) | copies) & here) & known
            mine = sorted(name for name in here & known if name.startswith(f"{state.meta['machine']}/"))
            if len(mine) > _MANY_SEGMENTS:
                old |= set(mine)
            if old:
                self._repack(remote, sorted(old))
        except KlawError as error:
            self.round.report.add_problem(remote, error)

    def _repack(self, remote: Remote, old: Sequence[str]) -> None:
        state = self.round.state
        lines: dict[str, Mapping[str, Any]] = {}
        whole: list[str] = []
        encrypt = False  # what was encrypted stays so, also on a machine that writes readable files
        for name in old:
            segment = read(self.round.key, remote.get(name))
            if segment.bad:  # lines that would be lost; a newer version may know them
                bad = f"{segment.bad:,} lines are not valid, so what was forgotten stays in this file"
                self.round.report.problems += (f"{remote.location}/{name}: {bad}; update Klaw on this machine",)
                continue
            whole.append(name)
            encrypt |= not segment.is_plain
            lines |= {trace.item: trace.line() for trace in segment.traces}
            lines |= {removal.item: removal.line() for removal in segment.removals}
            lines |= {digest(other): other for other in segment.others}
            lines |= {version.v: state.versions.get(version.v, version).line() for version in segment.versions}
        if not whole:
            return
        with state.commit():
            made = self._packed(lines.values(), whole, encrypt=encrypt)
            for name, data in made:
                self._enqueue(remote, name, data)
        if not self._send(remote):
            return
        self.round.here.step("packed")
        if any(remote.get(name) != data for name, data in made):
            raise StoreError("a new segment does not have the bytes that were written")
        for name in whole:
            remote.delete(name)
        remote.flush()
        with state.commit():
            state.drop_segments(remote.location, whole)
        self.round.here.step("compacted")


def _contents(segment: Segment) -> Iterator[tuple[str, bool]]:
    yield from ((version.v, version.body is not None) for version in segment.versions)
    yield from ((trace.item, False) for trace in segment.traces)
    yield from ((removal.item, False) for removal in segment.removals)
