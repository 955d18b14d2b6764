"""Give every change of the journals of this machine a version."""

from __future__ import annotations

import secrets
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

from attrs import define, field

from klaw_core import KlawError, StoreCorruptError
from klaw_journals import parse_ts
from klaw_journals.traces import digest
from klaw_sync.desks import Body, Desk, desks
from klaw_sync.here import APPLYING, NEW, Item, Round
from klaw_sync.merging import Merged, is_alive, merge
from klaw_sync.values import KINDS, Kind, Trace, Version, deletion, is_deletion

_MAX_COVERED = 99_000  # fewer than the scopes of a version


@define(eq=False)
class Stamping:
    """One pass over the journals. ``is_new``: this machine has made no version before."""

    round: Round
    is_new: bool
    _items: list[Item] = field(factory=list)
    #: The messages of each chat that other records are derived from, in order; and the places of each id, which writers
    #: may have used for several.
    _said: dict[str, list[Item]] = field(factory=lambda: defaultdict(list))
    _places: dict[str, dict[str, list[int]]] = field(factory=lambda: defaultdict(lambda: defaultdict(list)))

    #: The versions that a run was about to replace in the journals when it was killed.
    _doubtful: set[str] = field(factory=set)

    def stamp(self) -> None:
        """Take over the traces of what was forgotten here, make versions, and note what is missing."""
        state, round_ = self.round.state, self.round
        for desk in desks(round_.here.root, round_.here.kinds):
            self._scan(desk)
        # A trace is in the file before the bytes go here, and only after that if another machine has told it.
        told = [Trace(scope, name) for scope, name in round_.here.traces.read()]
        own = [trace for trace in told if trace.name not in state.done[trace.scope]]
        with round_.transaction():
            state.meta[NEW] = ""  # not before: a run that was killed before this must look again what others have
            state.add_traces(own, done=True)
            merged = merge(state.versions.values(), state.traces)
            if state.meta.get(APPLYING):
                self._doubtful = {v for v in state.versions if merged.shown.get(v, ("",))[0] != v}
            live = self._live(merged)
            found = set()
            for item in self._items:
                key = item.key
                found.add(key)
                held = state.versions.get(state.here.get(key, ""))
                if held is not None and is_alive(held, state.traces) and _is_same(held, item):
                    continue
                if known_as := live.get((item.kind.name, item.place, digest(item.body))):
                    state.here[key] = known_as
                    continue
                self._add(key, item, held)
            round_.found = found
            self._note_deletions(found)
            round_.lost = self._find_missing(found)
            if round_.missing != "keep" and not round_.dry_run:
                self._decide_missing()
        round_.here.step("stamped")

    def _scan(self, desk: Desk) -> None:
        """Read a place together with the traces, under the lock of those who forget something of it."""

        def look(held: list[Body]) -> list[Body]:
            names = self.round.trace_names
            items = [Item(desk.kind, desk.place, body, names) for body in held if desk.kind.is_synced(body)]
            self._items.extend(items)
            if desk.kind.is_source:
                group = desk.place.partition("/")[0]
                for item in items:
                    self._places[group][item.kind.id_of(item.body)].append(len(self._said[group]))
                    self._said[group].append(item)
            return held

        if not desk.stamp:
            return
        try:
            desk.settle(look)
        except StoreCorruptError as error:
            if desk.kind.form != "text":  # other journals are derived from it, and forgotten with it
                raise
            self.round.unread.add(desk.kind.name)
            self.round.report.problems += (error.message,)

    def _live(self, merged: Merged) -> dict[tuple[str, str, str], str]:
        """Return the versions that are shown now, by their content: an equal record is one of them.

        Also by the content that stands for them, such as that of a text under another id: a version of that would not
        belong to the first id, and would stay when it is forgotten.
        """
        live = {}
        for v in sorted(merged.shown, reverse=True):
            version, (stands_for_it, body) = self.round.state.versions[v], merged.shown[v]
            if not KINDS[version.kind].register:
                live[version.kind, version.place, digest(body)] = v
            if not KINDS[version.kind].register or stands_for_it == v:
                live[version.kind, version.place, digest(version.body)] = v
        return live

    def _add(self, key: str, item: Item, held: Version | None) -> None:
        """Make a version of a record, unless something forgot it that it had not seen."""
        state, kind = self.round.state, item.kind
        own = kind.scopes(self.round.here.traces, item.place, item.body)
        if held is not None and kind.content:  # a text under an id of its own still belongs to that of its writer
            own = (*own, *held.scopes)
        is_over = held is not None and kind.register and is_alive(held, state.traces)
        # Whoever wrote this may have seen what the killed run had put in the place of the version: so it is a conflict.
        over = [held] if held is not None and is_over and held.v not in self._doubtful else []
        seen = {name for scope in own for name in state.done.get(scope, ()) if name in item.seen}
        derived = self._derived(item)
        seen = seen.union(self._seen_by_all(derived), *(version.seen for version in over))
        scopes = dict.fromkeys((*own, *(scope for version in derived for scope in version.scopes)))
        line = int(state.meta["line"]) + 1
        version = Version(
            *(secrets.token_hex(8), kind.name, item.place, state.meta["machine"], line),
            *(self._moment(item), tuple(scopes), frozenset(seen)),
            *(tuple(version.v for version in over), dict(item.body)),
        )
        if not is_alive(version, state.traces):
            self.round.doomed[key] = version  # it goes, and what is derived from it
            return
        state.meta["line"] = str(line)
        state.put(version)
        state.here[key] = version.v
        self.round.report.sent += self.round.dry_run  # what would be sent; otherwise what was is counted

    # -- what a record is derived from
    def _derived(self, item: Item) -> list[Version]:
        """Return the versions that a record is derived from."""
        ways: Mapping[str, Callable[[Item], Iterable[Item]]] = {"quotes": self._quoted, "range": self._covered}
        find = ways.get(item.kind.derived_by)
        if find is None:
            return []
        state, doomed = self.round.state, self.round.doomed
        found = [doomed.get(source.key) or state.versions.get(state.here.get(source.key, "")) for source in find(item)]
        return [version for version in found if version is not None]

    def _seen_by_all(self, sources: Sequence[Version]) -> set[str]:
        """Return the traces that had been seen by each of these versions that they concern.

        A trace that has not arrived yet may concern each of them.
        """
        seen: set[str] = set().union(*(version.seen for version in sources))
        return {
            name
            for name in seen
            if all(name in one.seen or self._scopes.get(name, one.scopes[0]) not in one.scopes for one in sources)
        }

    @cached_property
    def _scopes(self) -> dict[str, str]:
        """The scope of each trace, by its name."""
        return {name: scope for scope, names in self.round.state.traces.items() for name in names}

    def _quoted(self, item: Item) -> list[Item]:
        """Return the message that a record quotes. With several quotes, it stays when one of them goes.

        If several messages have the id, it is that with the quoted text, or else it could be each of them.
        """
        quotes = item.body.get("quotes")
        if not isinstance(quotes, list) or not all(isinstance(one, dict) for one in quotes):
            return []
        quoted = {(str(one.get("chat")), str(one.get("message"))) for one in quotes}
        if len(quoted) != 1:
            return []
        ((group, name),) = quoted
        places = self._places.get(group, {})
        found = places.get(name) or places.get(name.rpartition("~")[0]) or []
        named = [self._said[group][place] for place in found]
        return [one for one in named if _has_quote(one.body, quotes, item.body.get("text"))] or named

    def _covered(self, item: Item) -> list[Item]:
        """Return the messages from the first to the last one that a record names."""
        group = item.place.partition("/")[0]
        first, last = (item.body.get(name) for name in ("from_message_id", "to_message_id"))
        if first is None and last is None:
            return []
        said, places = self._said.get(group, []), self._places.get(group, {})
        start, end = min(places.get(str(first)) or [0]), max(places.get(str(last)) or [len(said)])
        return said[start : end + 1][:_MAX_COVERED]

    # -- moments
    def _moment(self, item: Item) -> int:
        """Return when a record was written: later than what it replaces, whatever the clock says."""
        kind, now = item.kind, self.round.now()
        told = _milliseconds(item.body.get("ts") or item.body.get("created_at"))
        if kind.keeps_moment:
            return told or now
        name = kind.subject_of(item.body)
        if kind.register and self.is_new:
            moment = told or 1
        else:
            moment = max(now if kind.register else told or now, self._latest.get((kind.name, name), 0) + 1)
        self._latest[kind.name, name] = max(moment, self._latest.get((kind.name, name), 0))
        return moment

    @cached_property
    def _latest(self) -> dict[tuple[str, str], int]:
        latest: dict[tuple[str, str], int] = {}
        for version in self.round.state.versions.values():
            if version.kind in KINDS and version.body is not None:
                name = version.kind, KINDS[version.kind].subject_of(version.body)
                latest[name] = max(latest.get(name, 0), version.t)
        return latest

    # -- what is not there any more
    def _note_deletions(self, found: set[str]) -> None:
        """Make versions of deletions that are writes; a file that is missing deletes nothing."""
        for kind in KINDS.values():
            is_known = kind.has_deletions and kind.name in self.round.kinds
            if is_known and Desk(self.round.here.root, kind).stamp:
                self._note_deletions_of(kind, found)

    def _note_deletions_of(self, kind: Kind, found: set[str]) -> None:
        state = self.round.state
        for key, v in list(state.here.items()):
            held = state.versions.get(v)
            if held is None or held.kind != kind.name or key in found or held.body is None or is_deletion(held.body):
                continue
            if not is_alive(held, state.traces):
                continue
            body = deletion(str(held.body.get("section")), str(held.body.get("key")))
            self._add(key, Item(kind, "", body, self.round.trace_names), held)

    def _find_missing(self, found: set[str]) -> set[str]:
        """Return the versions that a journal had, and has lost without anybody having forgotten them."""
        state, gone, kinds = self.round.state, set(), self.round.kinds
        for key, v in state.here.items():
            version = state.versions.get(v)
            if version is None or key in found or version.kind not in kinds:
                continue
            if version.body is not None and not is_deletion(version.body) and is_alive(version, state.traces):
                gone.add(v)
        return gone

    def _decide_missing(self) -> None:
        """Bring the missing records back, or forget them everywhere."""
        state, lost = self.round.state, self.round.lost
        if self.round.missing == "forget":
            gone = [Trace(state.versions[v].scopes[0], secrets.token_hex(8)) for v in sorted(lost)]
            self.round.here.traces.add((trace.scope, trace.name) for trace in gone)
            state.add_traces(gone, done=True)
        state.here = {key: v for key, v in state.here.items() if v not in lost}
        self.round.lost = set()


def _has_quote(said: Body, quotes: Sequence[Mapping[str, Any]], text: object) -> bool:
    """Return whether a message has a text at the place of one of these quotes."""
    content = said.get("content")
    ranges = [(quote.get("start"), quote.get("end")) for quote in quotes]
    return isinstance(content, str) and any(
        content[start:end] == text for start, end in ranges if isinstance(start, int) and isinstance(end, int)
    )


def _is_same(held: Version, item: Item) -> bool:
    return not item.kind.register or held.body == item.body


def _milliseconds(value: Any) -> int:
    try:
        return max(0, int(parse_ts(value).timestamp() * 1000))
    except (KlawError, TypeError, ValueError, OverflowError):
        return 0
